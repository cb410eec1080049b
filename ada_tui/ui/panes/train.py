"""Train: the open run as facts, curves, alarms and log, and the keys that steer it.

The page draws from the session's store and writes wishes into the session; new runs are started by the main screen.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message

from ada_tui.store import RunStore
from ada_tui.ui import actions
from ada_tui.ui.draw import duration, gib, signed
from ada_tui.ui.session import Session
from ada_tui.ui.widgets.empty import Empty
from ada_tui.ui.widgets.facts import Fact, Facts
from ada_tui.ui.widgets.log_tail import LogTail

if TYPE_CHECKING:
    from textual.css.query import DOMQuery

    from ada_tui.ui.widgets.curve import Chart, Curve


def charts(store: RunStore) -> list[Chart]:
    """The charts that this run has curves for, the telling ones first (loss says little in GRPO)."""
    from ada_tui.ui.widgets.curve import Chart

    rewards = [name for name in store.curves if name.startswith("reward/")]
    wanted = [
        Chart("reward (total)", ("reward",), digits=3),
        Chart("KL", ("kl",), digits=4),
        Chart("tokens per reply", ("length",), digits=0),
        *(Chart(name.removeprefix("reward/"), (name,)) for name in rewards),
        Chart("shares", ("dead", "truncated"), low=0.0, high=1.0),
        Chart("loss", ("loss",), digits=4),
        Chart("entropy", ("entropy",), digits=3),
        Chart("learning rate, millionths", ("lr",), digits=1, scale=1e-6),
        Chart("memory, GiB", ("memory/device_used", "memory/reserved", "memory/rss"), digits=1, scale=2**30, low=0.0,
              marks=False),
    ]  # fmt: skip
    return [chart for chart in wanted if any(name in store.curves for name in chart.names)]


class TrainPane(Vertical, can_focus=True):
    """The page."""

    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("train")]

    class NewWanted(Message):
        """The person wants to start a run."""

    class StopWanted(Message):
        """The person wants to stop the open run."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.main: Session | None = None
        self._shown: list[Chart] = []
        self._at = 0

    def compose(self) -> ComposeResult:
        with Horizontal(id="run"):
            yield Facts(id="facts")
            yield VerticalScroll(id="curves", can_focus=False)
        yield LogTail(id="log")
        yield Empty(id="no-run")

    def on_mount(self) -> None:
        self._toggle()

    def focus_first(self) -> None:
        self.focus()
        self.draw()

    def attach(self, session: Session) -> None:
        self.main, self._at = session, 0
        self._toggle()
        self.draw()

    def _toggle(self) -> None:
        for name in ("#run", "#log"):
            self.query_one(name).display = self.main is not None
        nothing = self.query_one("#no-run", Empty)
        nothing.display = self.main is None
        nothing.say(
            "No run is open",
            "Training runs in a process of its own: it goes on when this terminal closes, and you can come back to it.",
            [("n", "new run: SFT on your chats, or GRPO"), ("o", "open a past run"),
             ("d", "demo: the whole loop, small model")],
        )  # fmt: skip

    def frame(self, session: Session, topics: frozenset[str]) -> None:
        if session is self.main and topics - {"groups"}:
            self.draw()

    def tick(self) -> None:
        """Once a second: what changes without an event (ages, the log)."""
        if self.main is not None and self.shown:
            self.query_one("#log", LogTail).show(self.main.dir.tail_of_log(40))

    @property
    def shown(self) -> bool:
        return self.display and self.is_mounted

    def draw(self) -> None:
        """Bring facts and curves up to date; nothing while the page is hidden."""
        session = self.main
        if session is None or not self.shown:
            return
        self.query_one("#facts", Facts).show(facts(session))
        wanted = charts(session.store)
        if [c.title for c in wanted] != [c.title for c in self._shown]:
            self._shown = wanted
            self.run_worker(self._mount_curves(wanted), exclusive=True)
            return
        for curve in self._curves():
            curve.show(session.store)

    def _curves(self) -> DOMQuery[Curve]:
        from ada_tui.ui.widgets.curve import Curve

        return self.query(Curve)

    async def _mount_curves(self, wanted: list[Chart]) -> None:
        from ada_tui.ui.widgets.curve import Curve

        box = self.query_one("#curves")
        await box.remove_children()
        if self.main is not None:
            await box.mount(*(Curve(chart, self.main.store) for chart in wanted))

    # -- keys

    def action_new(self) -> None:
        self.post_message(self.NewWanted())

    def action_pause(self) -> None:
        if self._steerable():
            assert self.main is not None
            self.main.want(now=True, paused=not self.main.wish.paused)

    def action_save(self) -> None:
        if self._steerable():
            assert self.main is not None
            self.main.want(now=True, save=self.main.wish.save + 1)
            self.notify("An adapter is saved at the next step.", timeout=3, markup=False)

    def action_stop(self) -> None:
        if self._steerable():
            self.post_message(self.StopWanted())

    def _steerable(self) -> bool:
        if self.main is not None and self.main.live:
            return True
        self.notify("No running job is open; n starts one, o opens another.", severity="warning", markup=False)
        return False

    def action_log(self) -> None:
        self.toggle_class("tall-log")

    def action_next(self) -> None:
        self._go_to(self._at + 1)

    def action_previous(self) -> None:
        self._go_to(self._at - 1)

    def _go_to(self, place: int) -> None:
        curves = list(self._curves())
        if curves:
            self._at = max(0, min(place, len(curves) - 1))
            curves[self._at].scroll_visible(animate=False)


def facts(session: Session) -> list[Fact]:
    """What stands left of the curves."""
    job, store, step = session.job, session.store, session.store.step
    out = [Fact(f"{job.kind.upper()} {session.id}", tone="heading"), *_how(session)]
    if store.model is not None:
        model = store.model
        out.append(Fact("model", PurePath(model.model or str(job.model.get("base", ""))).name))
        out.append(Fact("adapter", f"{model.adapter} {model.adapter_hash[:8]}".strip() or "a new one"))
        if model.rank:
            trained = f"{model.trainable / 1e6:.1f} M of {model.parameters / 1e6:.0f} M, r {model.rank}"
            out.append(Fact("trains", trained, "" if model.trainable else "bad"))
        out.append(Fact("on", f"{model.device} {model.dtype}, {model.backend}"))
    group, prompts = job.params.get("group"), job.params.get("prompts_per_step")
    if isinstance(group, int) and isinstance(prompts, int) and job.kind == "grpo":
        out.append(Fact("batch", f"{prompts} prompts × {group} = {prompts * group} completions"))
    if step is not None:
        out += [Fact(""), Fact(f"Step {step.step}", tone="heading")]
        figures = (
            ("reward", step.reward, 3), ("spread", step.reward_std, 3), ("KL", step.kl, 4), ("loss", step.loss, 4),
            ("entropy", step.entropy, 3), ("grad norm", step.grad_norm, 3),
        )  # fmt: skip
        out += [Fact(name, signed(value, digits).strip()) for name, value, digits in figures if value is not None]
        if step.length is not None:
            cut = f", {step.truncated:.0%} cut ✂" if step.truncated else ""
            out.append(Fact("length", f"{step.length:.0f} tokens{cut}", "bad" if (step.truncated or 0) > 0.2 else ""))
        if step.groups:
            dead = step.dead_groups or 0
            out.append(Fact("flat", f"{dead} of {step.groups} groups", "bad" if dead > step.groups / 2 else ""))
        if step.seconds:
            out.append(Fact("pace", _pace(step.seconds, step.step, store.steps_wanted if session.live else 0)))
    memory = store.memory
    if memory is not None:
        out += [Fact(""), Fact("Memory", tone="heading"), Fact("process", gib(memory.rss))]
        if memory.device_total:
            out.append(Fact("device", f"{gib(memory.device_used)} of {gib(memory.device_total)}"))
            out.append(Fact("torch", f"{gib(memory.allocated)} used, {gib(memory.peak)} peak"))
        out.append(Fact("host free", gib(memory.host_available)))
    if store.alarms:
        out += [Fact(""), Fact("Alarms", tone="heading")]
        out += [Fact(f"⚠ {a.kind}", f"{a.detail} {a.action}".strip(), "bad") for a in list(store.alarms)[-4:]]
    if store.saved:
        out += [Fact(""), Fact("Saved", tone="heading"), *(Fact(f"step {s.step}", s.path) for s in store.saved[-3:])]
    return out


def _how(session: Session) -> list[Fact]:
    status, stage = session.status, session.store.stage
    bad = status.name in ("failed", "dead")
    out = [Fact("status", status.name, "bad" if bad else "good")]
    if bad and status.reason:
        out.append(Fact("because", status.reason, "bad"))
    elif session.live and stage is not None:
        share = f" {stage.fraction:.0%}" if stage.fraction is not None else ""
        out.append(Fact("phase", f"{stage.name}{share} {stage.detail}"))
    if session.live and session.wish.stop:
        out.append(Fact("asked", "to stop after this step", "bad"))
    elif session.live and session.wish.paused != (status.name == "paused"):
        out.append(Fact("asked", "to pause" if session.wish.paused else "to go on"))
    return out


def _pace(seconds: float, step: int, steps: int) -> str:
    pace = f"{seconds:.1f} s a step"
    return f"{pace}, {duration((steps - step) * seconds)} left" if steps > step else pace
