"""Export: one key from adapter to a model that runs on the device; its stages, memory and result.

The page shows an export job of the open run (or of any run); the main screen starts it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message

from ada_tui.jobs import JobDir
from ada_tui.ui import actions
from ada_tui.ui.session import Session
from ada_tui.ui.widgets.empty import Empty
from ada_tui.ui.widgets.facts import Fact, Facts
from ada_tui.ui.widgets.stages import Stages


def newest_export(run: JobDir) -> JobDir | None:
    """The newest export job of a run, or None."""
    found = sorted(run.path.glob("exports/*/job.json"), key=lambda path: path.stat().st_mtime)
    return JobDir(found[-1].parent) if found else None


class ExportPane(Vertical, can_focus=True):
    """The page."""

    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("export")]

    class Wanted(Message):
        """The person wants to export the open run."""

    class DeliverWanted(Message):
        """The person wants this export on the device."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.session: Session | None = None
        self.main: Session | None = None
        self.delivery: list[Fact] = []
        """How the delivery to the device goes, or went."""

    def compose(self) -> ComposeResult:
        with Horizontal(id="export-job"):
            with Vertical(id="export-left"):
                yield Stages(id="stages")
                yield Facts(id="result")
            yield Vertical(id="export-curve")
        yield Empty(id="no-export")

    def on_mount(self) -> None:
        self.draw()

    def focus_first(self) -> None:
        self.focus()
        self.draw()

    def attach(self, main: Session | None, session: Session | None) -> None:
        """Show `session`, an export job of `main`; None = there is none yet."""
        self.main, self.session, self.delivery = main, session, []
        self.draw()

    def frame(self, session: Session) -> None:
        if session is self.session:
            self.draw()

    def show_delivery(self, facts: list[Fact]) -> None:
        """How far the delivery to the device is, or how it ended."""
        self.delivery = facts
        self.draw()

    def tick(self) -> None:
        if self.display and self.session is not None and self.session.live:
            self.draw()

    def draw(self) -> None:
        session = self.session
        self.query_one("#export-job").display = session is not None
        nothing = self.query_one("#no-export", Empty)
        nothing.display = session is None
        if session is None:
            self._say_why_empty(nothing)
            return
        if not self.display:
            return
        self.query_one("#stages", Stages).show(session.store.stages, session.status.name)
        self.query_one("#result", Facts).show([*result(session), *self.delivery])
        self._draw_curve(session)

    def _draw_curve(self, session: Session) -> None:
        from ada_tui.ui.widgets.curve import Chart, Curve

        box = self.query_one("#export-curve")
        found = list(box.query(Curve))
        if found and found[0].shows(session.store):
            found[0].show(session.store)
        elif "memory/rss" in session.store.curves:
            memory = Chart("memory of the export, GiB", ("memory/rss",), digits=2, scale=2**30, low=0.0, marks=False)
            box.remove_children()
            box.mount(Curve(memory, session.store))

    def _say_why_empty(self, nothing: Empty) -> None:
        what = "merge the adapter, convert to GGUF, quantise, write the Modelfile, ask the result"
        if self.main is None:
            nothing.say(
                "No run is open", f"An export takes the newest adapter of a run: {what}.",
                [("o", "open a run"), ("d", "demo: the whole loop, small model")],
            )  # fmt: skip
        elif not self.main.dir.adapters():
            nothing.say(
                f"{self.main.id} has no adapter yet", "An adapter appears with the first checkpoint of a training run.",
                [("F3", "watch the run"), ("o", "open another run")],
            )  # fmt: skip
        else:
            nothing.say(f"{self.main.id} has not been exported", f"One key: {what}.", [("e", "export it")])

    def action_start(self) -> None:
        self.post_message(self.Wanted())

    def action_deliver(self) -> None:
        self.post_message(self.DeliverWanted())


def result(session: Session) -> list[Fact]:
    """What came out so far: files, parity, the reply; or why nothing did."""
    status = session.status
    bad = status.name in ("failed", "dead")
    out = [Fact(f"Export {session.id}", tone="heading"), Fact("status", status.name, "bad" if bad else "good")]
    if bad and status.reason:
        out.append(Fact("because", status.reason, "bad"))
    data = session.store.outcomes.get("export")
    if not data:
        return out
    out.append(Fact(""))
    if reply := data.get("reply"):
        out += [Fact("Morning", "", "muted"), Fact("answers", str(reply), "good")]
    if gguf := data.get("gguf"):
        out.append(Fact("folder", _below_workspace((session.dir.path / str(gguf)).parent)))
    for key in ("gguf", "modelfile", "sha256"):
        if value := data.get(key):
            out.append(Fact(key, str(value) if key == "sha256" else Path(str(value)).name))
    return out + parity(data.get("parity") or {})


def _below_workspace(path: Path) -> str:
    """The path from checkpoints/ on; the whole of it for a job that lives elsewhere."""
    parts = path.parts
    return "/".join(parts[parts.index("checkpoints") :]) if "checkpoints" in parts else str(path)


def parity(found: dict[str, Any]) -> list[Fact]:
    """What the comparison of adapter and GGUF found, a line per file."""
    if "passed" not in found:
        return []
    passed = bool(found["passed"])
    prompts = found.get("prompts", 0)
    out = [Fact("parity", f"{'passed' if passed else 'failed'} on {prompts} prompts", "good" if passed else "bad")]
    out += [Fact("", str(problem), "bad") for problem in found.get("problems", ())]
    rules = found.get("rules", {})
    for name, measured in found.items():
        if isinstance(measured, dict) and "agreement" in measured:
            out.append(
                Fact(
                    name,
                    f"same next token {measured['agreement']:.0%}, KL {measured['kl']:.4f}, "
                    f"perplexity {measured['perplexity']:.1f} (adapter {measured['perplexity_adapter']:.1f}), "
                    f"rules {rules.get(name, 0.0):.2f} (adapter {rules.get('adapter', 0.0):.2f}), "
                    f"{measured['tokens_per_s']:.0f} tokens/s here",
                )
            )
    if advice := found.get("advice"):
        out.append(Fact("", str(advice), "bad"))
    return out
