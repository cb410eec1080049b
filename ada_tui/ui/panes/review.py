"""Review: the groups of the open run (and what was sampled just now), their completions as cards, and the weights.

Weights turned here rank everything anew at once, from the stored raw scores; for a live run they are also sent to it.
The page shows and asks; jobs are started by the main screen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message

from ada_tui.errors import BadInput
from ada_tui.finding import Order, find, orders
from ada_tui.picks import Judged, Pick
from ada_tui.protocol import Group, NotARecord
from ada_tui.ranking import Ranking, Summary
from ada_tui.store import GroupEntry
from ada_tui.ui import actions
from ada_tui.ui.dialogs.ask_text import AskText
from ada_tui.ui.panes.review_cards import Evidence, views
from ada_tui.ui.panes.review_empty import say_why
from ada_tui.ui.session import Session
from ada_tui.ui.undo import Undo
from ada_tui.ui.widgets.card import CardView
from ada_tui.ui.widgets.cards import Cards
from ada_tui.ui.widgets.empty import Empty
from ada_tui.ui.widgets.prompt_head import PromptHead
from ada_tui.ui.widgets.prompt_list import PromptList
from ada_tui.ui.widgets.weights import WeightsPanel
from ada_tui.ui.widgets.why import Why
from rewards.config import RewardConfig
from rewards.types import Card


class ReviewPane(Vertical):
    """The page. `main` is the open run, `samples` are groups sampled for typed prompts; both are shown in one list."""

    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("review")]

    class SampleWanted(Message):
        """The person wants to type a prompt and see a group for it."""

    class KeepWanted(Message):
        """The person wants these weights as the workspace's own."""

        def __init__(self, config: RewardConfig) -> None:
            super().__init__()
            self.config = config

    class FitWanted(Message):
        """The person wants weights learned from these picks."""

        def __init__(self, judged: list[Judged], config: RewardConfig, prompts: dict[str, str]) -> None:
            super().__init__()
            self.judged = judged
            self.config = config
            self.prompts = prompts

    class LargeWanted(Message):
        """The person wants one completion large."""

        def __init__(self, view: CardView, card: Card, prompt: str) -> None:
            super().__init__()
            self.view = view
            self.card = card
            self.prompt = prompt

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.main: Session | None = None
        self.samples: list[Session] = []
        self.ranking = Ranking(RewardConfig(), RewardConfig())
        self._group: Group | None = None
        self._entry: GroupEntry | None = None
        self._evidence = Evidence()
        self._sweep: Iterator[Summary] | None = None
        self._sweep_again = False
        self._query = ""
        self._order = 0
        self._undo = Undo[RewardConfig]()

    def compose(self) -> ComposeResult:
        with Horizontal():
            with Vertical(id="side"):
                yield PromptList(lambda: self.ranking, self.pick_of, id="prompts")
                yield WeightsPanel(id="weights")
            with Vertical(id="stage"):
                with Vertical(id="group"):
                    yield PromptHead(id="head")
                    yield Cards(id="cards")
                    yield Why(id="why")
                yield Empty(id="nothing")

    def on_mount(self) -> None:
        self._show_entries()

    def rank_by(self, config: RewardConfig) -> None:
        """Rank by `config`, which is also what edits are compared with."""
        self.ranking = Ranking(config, config)
        self._undo = Undo()
        self.query_one("#weights", WeightsPanel).show(config, config)
        self._show_entries()
        self._start_sweep()

    def focus_first(self) -> None:
        """Where the focus goes when the page opens."""
        self.query_one("#prompts", PromptList).focus()

    # -- what is shown

    @property
    def sessions(self) -> list[Session]:
        return [*reversed(self.samples), *([self.main] if self.main else [])]

    def entries(self) -> list[GroupEntry]:
        """Everything there is to review, the newest first."""
        return [entry for session in self.sessions for entry in reversed(session.store.groups)]

    def listed(self) -> list[GroupEntry]:
        """What the person wants to see of it, in the order they want."""
        try:
            found = find(self.entries(), self._query, self.ranking, self._is_picked)
        except BadInput as error:
            self.notify(str(error), severity="error")
            self._query, found = "", self.entries()
        key = self._order_now.key
        return found if key is None else sorted(found, key=key)

    @property
    def _order_now(self) -> Order:
        known = orders(self.ranking)
        return known[self._order % len(known)]

    def _is_picked(self, entry: GroupEntry) -> bool:
        pick = self.pick_of(entry)
        return pick is not None and (pick.decided or pick.tie)

    def home(self, entry: GroupEntry) -> Session | None:
        """The session that `entry` comes from."""
        return next((s for s in self.sessions if s.store.group(entry.id) is entry), None)

    def pick_of(self, entry: GroupEntry) -> Pick | None:
        """The person's verdict on a group."""
        home = self.home(entry)
        return home.picks.get(entry.id) if home is not None else None

    def attach(self, session: Session) -> None:
        """Another run is the open one. What was sampled by hand stays."""
        self.main = session
        self.rank_by(session.rewards())

    def add_samples(self, session: Session) -> None:
        self.samples.append(session)

    def frame(self, session: Session, topics: frozenset[str]) -> None:
        """Repaint what these topics touch."""
        if "groups" in topics:
            fresh = session in self.samples
            self._show_entries()
            if fresh and session.store.groups:
                self.query_one("#prompts", PromptList).select(session.store.groups[-1].id)
            self._sweep_again = True
            if self._sweep is None:
                self._start_sweep()
        elif topics & {"life", "status", "phase"}:
            self._say_why_empty()
        if "control" in topics and session is self.main and not session.unsent:
            self._follow_control(session)

    def _follow_control(self, session: Session) -> None:
        """Another viewer edited the weights, or the worker took ours over."""
        config = session.rewards()
        weights = self.query_one("#weights", WeightsPanel)
        if config.fingerprint() != self.ranking.config.fingerprint():
            self.ranking.turn(config)
            self._rerank()
        applied = session.store.applied
        if applied is not None and applied.error is None and applied.version == session.control.version:
            self.ranking.rebase(config)
            self._rerank()
        weights.show(self.ranking.config, self.ranking.reference)

    def _show_entries(self) -> None:
        entries, everything = self.listed(), sum(len(session.store.groups) for session in self.sessions)
        prompts = self.query_one("#prompts", PromptList)
        prompts.show(entries)
        count = f"{len(entries)}/{everything}" if self._query else str(everything)
        order = "" if self._order_now.key is None else f" · {self._order_now.name}"
        prompts.border_title = f" Prompts {count}{order} "
        self.query_one("#group").display = bool(entries)
        self.query_one("#nothing").display = not entries
        self._say_why_empty()
        if not entries:
            self._entry = self._group = None
        elif self._entry is None:
            self._show_group()

    def _say_why_empty(self) -> None:
        nothing = self.query_one("#nothing", Empty)
        if nothing.display:
            say_why(nothing, self.main, self.samples, self._query)

    @on(PromptList.Moved, "#prompts")
    def _show_group(self) -> None:
        entry = self.query_one("#prompts", PromptList).entry
        same = entry is self._entry and entry is not None
        self._entry, self._group = entry, None
        home = self.home(entry) if entry is not None else None
        if entry is None or home is None:
            return
        try:
            self._group = home.read(entry)
        except (NotARecord, OSError) as error:
            self.notify(f"This group cannot be read: {error}", severity="error", markup=False)
            return
        first = entry.raws[0] if entry.raws else None
        if first is not None:
            self.query_one("#weights", WeightsPanel).show_kind(first.kind, first.has_gold)
        self.query_one("#head", PromptHead).show(entry, self._group, len(home.store.batch(entry)))
        self._show_cards(keep=same)

    def _show_cards(self, *, keep: bool) -> None:
        entry, group = self._entry, self._group
        home = self.home(entry) if entry is not None else None
        if entry is None or group is None or home is None:
            return
        batch = home.store.batch(entry)
        shown = views(entry, group, self.ranking, batch, home.picks.get(entry.id))
        self.query_one("#cards", Cards).show(shown, keep=keep)

    @on(Cards.Focused)
    def _explain(self, message: Cards.Focused) -> None:
        view = message.view
        card = self._card(view) if view is not None else None
        self.query_one("#why", Why).show(card)
        if view is not None and card is not None and view.spans != card.spans:
            self.query_one("#cards", Cards).mark(view.index, card.spans)

    def _card(self, view: CardView) -> Card | None:
        if self._entry is None or self._group is None:
            return None
        return self._evidence.card(self._entry, self._group, view.index, self.ranking.config)

    # -- turning weights

    @on(WeightsPanel.Turned)
    def _turned(self, message: WeightsPanel.Turned) -> None:
        self.turn(message.config)

    def turn(self, config: RewardConfig) -> None:
        """Rank everything under `config`, and ask a live run to train with it; undo brings back what was."""
        self._undo.changed(self.ranking.config)
        self._apply(config)

    def _apply(self, config: RewardConfig) -> None:
        self.ranking.turn(config)
        self.query_one("#weights", WeightsPanel).show(config, self.ranking.reference)
        self._rerank()
        if self.main is not None and self.main.live:
            self.main.want_rewards(config)

    def _rerank(self) -> None:
        self._show_cards(keep=True)
        if self._query or self._order_now.key is not None:
            self._show_entries()  # what is found, and where it stands, may hang on the weights
        self.query_one("#prompts", PromptList).refresh()
        self._start_sweep()

    def _start_sweep(self) -> None:
        """Go through all groups in the background; a running sweep is dropped."""
        running = self._sweep is not None
        self._sweep = self.ranking.sweep(self.entries())
        self._sweep_again = False
        if not running:
            self.call_later(self._go_on_sweeping)

    def _go_on_sweeping(self) -> None:
        summary = next(self._sweep, None) if self._sweep is not None else None
        if summary is None:
            self._sweep = None
            return
        if summary.complete or summary.groups <= 400:
            self.query_one("#weights", WeightsPanel).show_summary(summary)
        if not summary.complete:
            self.call_later(self._go_on_sweeping)
            return
        self._sweep = None
        if self._sweep_again:
            self.set_timer(1.0, self._start_sweep)

    # -- keys

    def action_next(self) -> None:
        self.query_one("#prompts", PromptList).action_down()

    def action_previous(self) -> None:
        self.query_one("#prompts", PromptList).action_up()

    def action_sample(self) -> None:
        self.post_message(self.SampleWanted())

    def action_weights(self) -> None:
        weights = self.query_one("#weights", WeightsPanel)
        if weights.has_focus:
            weights.at = (weights.at + 1) % len(weights.names)
        weights.focus()

    def action_cards(self) -> None:
        self.query_one("#cards", Cards).focus()

    def action_reset(self) -> None:
        self.turn(self.ranking.reference)

    def action_find(self) -> None:
        def asked(query: str | None) -> None:
            if query is not None:
                self._query = query
                self._show_entries()

        question = "Words of the prompt, kind:greeting, source:sample, dead, changed, picked, filler<0.5, -not"
        self.app.push_screen(AskText("Find prompts", question, value=self._query), asked)

    def action_order(self) -> None:
        self._order = (self._order + 1) % len(orders(self.ranking))
        self._show_entries()
        self.query_one("#prompts", PromptList).action_first()

    def action_undo(self) -> None:
        self._step(self._undo.back(self.ranking.config), "Nothing to undo.")

    def action_redo(self) -> None:
        self._step(self._undo.forth(self.ranking.config), "Nothing to redo.")

    def _step(self, config: RewardConfig | None, otherwise: str) -> None:
        if config is None:
            self.notify(otherwise, timeout=2)
        else:
            self._apply(config)

    def action_fit(self) -> None:
        judged, prompts = [], {}
        for session in self.sessions:
            for group_id, pick in session.picks.items():
                entry = session.store.group(group_id)
                if entry is not None and pick.decided:
                    judged.append(Judged(pick, entry.raws))
                    prompts[group_id] = entry.prompt
        if judged:
            self.post_message(self.FitWanted(judged, self.ranking.config, prompts))
        else:
            self.notify("Pick some best completions first: c, then its number.", severity="warning")

    @on(Cards.Judged)
    def _judged(self, message: Cards.Judged) -> None:
        entry, view = self._entry, message.view
        home = self.home(entry) if entry is not None else None
        if entry is None or home is None:
            return
        old = home.picks.get(entry.id) or Pick(entry.id, row_id=entry.row_id)
        if message.verdict == "comment":
            self._ask_comment(home, old)
        else:
            self._save_pick(home, old.judged(message.verdict, view.index))

    def _ask_comment(self, home: Session, pick: Pick) -> None:
        def said(words: str | None) -> None:
            if words is not None:
                self._save_pick(home, pick.commented(words))

        self.app.push_screen(AskText("Comment", "What makes the difference here?", value=pick.comment), said)

    def _save_pick(self, home: Session, pick: Pick) -> None:
        try:
            home.pick(pick)
        except OSError as error:
            self.notify(f"The pick could not be saved: {error.strerror}", severity="error")
            return
        self.query_one("#prompts", PromptList).refresh()
        self._show_cards(keep=True)

    def action_keep(self) -> None:
        self.post_message(self.KeepWanted(self.ranking.config))

    @on(PromptList.Chosen, "#prompts")
    def _to_cards(self) -> None:
        self.action_cards()

    @on(Cards.Opened)
    def _large(self, message: Cards.Opened) -> None:
        card = self._card(message.view)
        if card is not None and self._group is not None:
            self.post_message(self.LargeWanted(message.view, card, self._group.prompt))
