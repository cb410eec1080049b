"""The worker: the only package that imports torch, transformers, trl and peft. Started by `ada_tui.launch`.

`python -m ada_tui.worker <job-dir>` runs one job. The app talks to it through the job directory alone and imports
nothing from here.
"""
