"""What the main screen starts: a sample, a run, an export, a fit. It asks what must be asked; work goes to a thread.

Jobs are made by `ada_tui.runs`; screens are shown by the main screen. Nothing is drawn here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ada_tui.errors import BadInput
from ada_tui.jobs import JobDir
from ada_tui.picks import Fit, fit
from ada_tui.ui.dialogs.ask_text import AskText
from ada_tui.ui.dialogs.choice import Answer, Choice

if TYPE_CHECKING:
    from ada_tui.ui.main_screen import MainScreen
    from ada_tui.ui.panes.review import ReviewPane

GREETING = "Morning"
"""What is sampled when nothing is typed: the prompt that assistants love to over-help on."""

SAMPLES = 8
"""Completions of a group that is sampled for a typed prompt."""


def ask_and_sample(screen: MainScreen) -> None:
    """Ask for a prompt; a live GRPO run answers between two steps, otherwise a worker of its own does."""
    main = screen.main
    live = main is not None and main.live and main.job.kind == "grpo"
    speaker = _speaker(screen)

    def asked(prompt: str | None) -> None:
        if prompt is None:
            return
        if live and main is not None:
            main.probe(prompt or GREETING, SAMPLES)
            screen.notify("Asked the running job; the group appears between two steps.", timeout=4)
        else:
            _sample(screen, speaker, prompt or GREETING)

    who = f"{speaker}, between two steps" if live else speaker
    question = f"{SAMPLES} replies by {who}. What does the person say?"
    screen.app.push_screen(AskText("Sample now", question, example=GREETING), asked)


def _speaker(screen: MainScreen) -> str:
    """Who answers a typed prompt: the open run, else what it started from, else the base model."""
    main = screen.main
    if main is None:
        return "base"
    if main.dir.adapters() or main.live:
        return main.id
    return main.job.parent or "base"


def _sample(screen: MainScreen, speaker: str, prompt: str) -> None:
    def work() -> JobDir:
        from ada_tui import runs

        who = runs.policy(screen.workspace, speaker)
        asked = {"prompt": prompt, "history": [], "row": {}}
        return runs.start_sample(screen.workspace, screen.settings, who, [asked], n=SAMPLES)

    screen.in_background("starting to sample", work, screen.follow_sample)


def ask_and_train(screen: MainScreen) -> None:
    """Ask what to train and with which figures, then start it."""

    def chosen(key: str | None) -> None:
        if key:
            _fill_form(screen, {"s": "sft", "g": "grpo"}[key])

    answers = [Answer("s", "SFT: teach the chats to a new adapter"), Answer("g", "GRPO: go on with the rules")]
    screen.app.push_screen(Choice("New run", "What should be trained?", answers), chosen)


def _fill_form(screen: MainScreen, kind: str) -> None:
    from ada_tui import runs
    from ada_tui.ui.dialogs.new_run import NewRun, RunWanted

    workspace = screen.workspace
    try:
        policy = runs.start_of_grpo(workspace, screen.settings)
    except BadInput as error:
        screen.complain(error)
        return

    def filled(wanted: RunWanted | None) -> None:
        if wanted is None:
            return

        def work() -> JobDir:
            if wanted.kind == "sft":
                return runs.start_sft(workspace, wanted.settings)
            return runs.start_grpo(workspace, wanted.settings, policy)

        screen.in_background(f"starting {wanted.kind.upper()}", work, screen.follow_run)

    words = "Trains a new adapter on the base model."
    if kind == "grpo":
        words = f"Starts at {policy.name}: {policy.reason}."
    screen.app.push_screen(NewRun(workspace, screen.settings, kind, words), filled)


def export(screen: MainScreen) -> None:
    """Export the newest adapter of the open run."""
    main = screen.main
    if main is None or not main.dir.adapters():
        screen.notify("Open a run that has an adapter first.", severity="warning")
        return

    def work() -> JobDir:
        from ada_tui import runs

        policy = runs.policy(screen.workspace, main.id)
        return runs.start_export(screen.workspace, screen.settings, policy, main.dir)

    screen.in_background("starting the export", work, screen.follow_export)


def learn_from_picks(screen: MainScreen, asked: ReviewPane.FitWanted) -> None:
    """Fit weights to the picks and ask whether to take them."""

    def work() -> Fit | None:
        return fit(asked.judged, asked.config)

    def show(found: Fit | None) -> None:
        from ada_tui.ui.dialogs.fitted import Fitted

        def answered(wanted: bool | None) -> None:
            if wanted and found is not None:
                config = asked.config
                for name, value in found.weights.items():
                    config = config.with_weight(name, value)
                screen.review.turn(config)

        if found is None:
            screen.notify("These picks say nothing that a rule could learn from.", severity="warning")
        else:
            screen.app.push_screen(Fitted(found, asked.config, asked.prompts), answered)

    screen.in_background("learning from your picks", work, show)
