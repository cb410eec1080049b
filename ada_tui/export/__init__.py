"""From an adapter to a file that Ollama serves: convert, quantise, Modelfile, try, compare, deliver.

No torch in here and no screen: what needs transformers (merge, the reference side of parity) is in
`ada_tui.worker.export`. The worker, the commands and the app may import it.
"""
