"""The one main screen: pages in a switcher, the open run, and everything that starts or opens a job.

Pages show and ask; this file answers. Long work (preparing rows, starting a worker) happens in a thread, so that no key
ever waits. It owns the sessions; it draws nothing itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import ContentSwitcher, Footer

from ada_tui import jobs
from ada_tui.errors import BadInput, JobFailed
from ada_tui.jobs import JobDir
from ada_tui.settings import Settings
from ada_tui.ui import actions, starting
from ada_tui.ui.background import tell
from ada_tui.ui.dialogs.choice import Answer, Choice
from ada_tui.ui.panes.export import ExportPane, newest_export
from ada_tui.ui.panes.help import HelpPane
from ada_tui.ui.panes.review import ReviewPane
from ada_tui.ui.panes.train import TrainPane
from ada_tui.ui.session import Arrived, Frame, Session
from ada_tui.ui.widgets.status_line import StatusLine
from ada_tui.ui.widgets.top_bar import TopBar
from ada_tui.workspace import Workspace
from rewards.config import ConfigError, RewardConfig

T = TypeVar("T")


class MainScreen(Screen[None]):
    """Everything."""

    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("app")]

    def __init__(self, workspace: Workspace, settings: Settings, *, run: str | None, demo: bool) -> None:
        super().__init__()
        self.workspace = workspace
        self.settings = settings
        self.main: Session | None = None
        self.exporting: Session | None = None
        self._first_run = run
        self._play_demo = demo
        self._busy = ""
        """What a background thread is doing; "" = nothing."""
        self._before_help = "review"
        self._to_deliver: JobDir | None = None
        """The export that is delivered as soon as it is done."""
        self.bar = TopBar(id="bar")
        self.review = ReviewPane(id="review")
        self.train = TrainPane(id="train")
        self.export = ExportPane(id="export")
        self.help_page = HelpPane(id="help")
        self.status = StatusLine(id="status")

    def compose(self) -> ComposeResult:
        yield self.bar
        with ContentSwitcher(initial="review", id="pages"):
            yield self.review
            yield self.train
            yield self.export
            yield self.help_page
        yield self.status
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.set_interval(1.0, self._tick)
        self.review.focus_first()
        self.call_after_refresh(self._open_first)

    def on_unmount(self) -> None:
        for session in self._sessions():
            session.close()

    def _open_first(self) -> None:
        """The run that was asked for, else the newest one; then the demo, if wanted."""
        try:
            if self._first_run:
                self.open_run(jobs.find(self.workspace.checkpoints, self._first_run))
            elif not self._play_demo:
                found = [job for job in jobs.all_jobs(self.workspace.checkpoints) if "/" not in job.id]
                if found:
                    self.open_run(found[0])
        except BadInput as error:
            self.complain(error)
        if self.main is None:
            self.review.rank_by(self._own_rewards())
        if self._play_demo:
            self.action_demo()

    def _own_rewards(self) -> RewardConfig:
        """The workspace's weights and lists; the default ones, with a message, when they cannot be read."""
        try:
            return RewardConfig.load(self.workspace.resolve(self.settings.rewards.folder))
        except ConfigError as error:
            self.complain(error)
            return RewardConfig.default()

    def complain(self, error: Exception) -> None:
        self.notify(str(error), severity="error", timeout=12, markup=False)

    # -- sessions

    def _sessions(self) -> list[Session]:
        known = [self.main, self.exporting, *self.review.samples]
        return [session for session in known if session is not None]

    def open_run(self, job: JobDir) -> None:
        """Attach to a job: running, finished, foreign or dead. Raises BadInput."""
        if job.path.parent.name == "exports":
            self._open_export(job)
            return
        if self.main is not None and self.main.dir == job:
            return
        session = self._session(job)
        if self.main is not None:
            self.main.close()
        self.main = session
        self.bar.session = session
        self.review.attach(session)
        self.train.attach(session)
        export = newest_export(job)
        if self.exporting is not None:
            self.exporting.close()
        self.exporting = self._session(export) if export is not None else None
        self.export.attach(session, self.exporting)
        self._repaint_bars()

    def _open_export(self, job: JobDir) -> None:
        run = JobDir(job.path.parent.parent)
        if self.main is None or self.main.dir != run:
            self.open_run(run)
        if self.exporting is None or self.exporting.dir != job:
            if self.exporting is not None:
                self.exporting.close()
            self.exporting = self._session(job)
            self.export.attach(self.main, self.exporting)
        self.show_page("export")

    def _session(self, job: JobDir) -> Session:
        session = Session(job, self.post_message)
        session.start()
        return session

    @on(Arrived)
    def _arrived(self, message: Arrived) -> None:
        topics = message.session.fold(message.batch)
        if topics:
            self.post_message(Frame(message.session, topics))

    @on(Frame)
    def _frame(self, message: Frame) -> None:
        session, topics = message.session, message.topics
        if session not in self._sessions():
            return
        self.review.frame(session, topics)
        self.train.frame(session, topics)
        self.export.frame(session)
        if self._to_deliver is not None:
            self._deliver_when_done(session)
        if session is self.main or topics & {"phase", "status", "life"}:
            self._repaint_bars()

    def _repaint_bars(self) -> None:
        self.bar.refresh()
        exporting = self.exporting is not None and self.exporting.live
        self.status.session = self.exporting if exporting else self.main
        self.status.note = self._busy or self._sampling()
        self.status.refresh()

    def _sampling(self) -> str:
        """Progress of a group that is being sampled, "" = none is."""
        for session in self.review.samples:
            if session.live:
                stage = session.store.stage
                return f"sampling: {stage.name} {stage.detail}" if stage else "sampling: the worker starts"
        return ""

    def _tick(self) -> None:
        self._repaint_bars()
        self.train.tick()
        self.export.tick()

    # -- work in the background

    def in_background(self, words: str, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Do `work` in a thread, then `then` here; errors become messages. One thing at a time."""
        if self._busy:
            self.notify(f"One moment: {self._busy}.", severity="warning", markup=False)
            return
        self._busy = words
        self._repaint_bars()

        def run() -> None:
            try:
                result = work()
            except (BadInput, JobFailed, OSError) as error:
                tell(self.app, self._finished, partial(self.complain, error))
            else:
                tell(self.app, self._finished, partial(then, result))

        threading.Thread(target=run, name=words, daemon=True).start()

    def _finished(self, then: Callable[[], None]) -> None:
        self._busy = ""
        then()
        self._repaint_bars()

    # -- pages

    def show_page(self, page: str) -> None:
        pages = self.query_one("#pages", ContentSwitcher)
        if pages.current != "help":
            self._before_help = pages.current or "review"
        pages.current = page
        self.bar.page = page
        pane = self.query_one(f"#{page}")
        assert isinstance(pane, ReviewPane | TrainPane | ExportPane | HelpPane)
        pane.focus_first()

    @on(TopBar.Pressed)
    def _pressed(self, message: TopBar.Pressed) -> None:
        self.show_page(message.page)

    def action_review(self) -> None:
        self.show_page("review")

    def action_train(self) -> None:
        self.show_page("train")

    def action_export(self) -> None:
        self.show_page("export")

    def action_help(self) -> None:
        pages = self.query_one("#pages", ContentSwitcher)
        if pages.current == "help":
            self.show_page(self._before_help)
            return
        focused = self.focused.id if self.focused is not None else ""
        places = [place for place in (focused, pages.current, "app") if place in actions.PLACES]
        self.help_page.show(tuple(dict.fromkeys(place for place in places if place)))
        self.show_page("help")

    def action_palette(self) -> None:
        self.app.action_command_palette()

    def action_theme(self) -> None:
        self.app.theme = "ada-light" if self.app.theme == "ada-dark" else "ada-dark"

    # -- runs

    def action_runs(self) -> None:
        from ada_tui.ui.dialogs.runs import Runs, listed

        def opened(job: JobDir | None) -> None:
            if job is not None:
                try:
                    self.open_run(job)
                except BadInput as error:
                    self.complain(error)

        self.app.push_screen(Runs(listed(self.workspace)), opened)

    @on(ReviewPane.SampleWanted)
    def _sample(self) -> None:
        starting.ask_and_sample(self)

    def follow_sample(self, job: JobDir) -> None:
        """Show the group that `job` samples, beside the open run's."""
        self.review.add_samples(self._session(job))

    @on(ReviewPane.KeepWanted)
    def _keep(self, message: ReviewPane.KeepWanted) -> None:
        folder = self.workspace.root / self.settings.rewards.folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            message.config.save(folder)
        except (OSError, ConfigError) as error:
            self.complain(error)
        else:
            self.notify(f"Saved in {folder}; the next run starts with them.", timeout=5, markup=False)

    @on(ReviewPane.LargeWanted)
    def _large(self, message: ReviewPane.LargeWanted) -> None:
        from ada_tui.ui.dialogs.large import Large

        self.app.push_screen(Large(message.view, message.card, message.prompt))

    @on(ReviewPane.FitWanted)
    def _fit(self, message: ReviewPane.FitWanted) -> None:
        starting.learn_from_picks(self, message)

    # -- training

    @on(TrainPane.NewWanted)
    def _new_run(self) -> None:
        starting.ask_and_train(self)

    def follow_run(self, job: JobDir) -> None:
        """Open the run that was just started."""
        self.open_run(job)
        self.show_page("train")

    @on(TrainPane.StopWanted)
    def _ask_stop(self) -> None:
        main = self.main
        assert main is not None

        def answered(key: str | None) -> None:
            if key == "s":
                main.want(now=True, stop=True)
            elif key == "k":
                from ada_tui import launch

                launch.take_rung(main.dir, "terminate")

        answers = [
            Answer("s", "stop after this step; the adapter is saved"),
            Answer("k", "terminate now; what was not saved is lost"),
        ]
        self.app.push_screen(Choice(f"Stop {main.id}?", "The run cannot go on afterwards.", answers), answered)

    # -- export

    @on(ExportPane.Wanted)
    def action_export_now(self) -> None:
        self.show_page("export")
        if self.exporting is None or not self.exporting.live:
            starting.export(self)

    def follow_export(self, job: JobDir) -> None:
        """Watch the export that was just started; deliver it when there is a host."""
        self._open_export(job)
        self._to_deliver = job if self.settings.export.host else None

    def _deliver_when_done(self, session: Session) -> None:
        if session.dir == self._to_deliver and session.status.name == "done":
            self._to_deliver = None
            self._deliver()

    @on(ExportPane.DeliverWanted)
    def _deliver(self) -> None:
        export, host = self.exporting, self.settings.export.host
        if export is None or export.status.name != "done":
            self.notify("There is no finished export of this run; e makes one.", severity="warning")
        elif not host:
            self.notify('Say where to: host = "user@jetson.local" under [export] in ada.toml.', severity="warning")
        else:
            from ada_tui.ui.delivering import deliver

            deliver(self, export.dir, host, self.settings.export.tag)

    # -- demo, end

    def action_demo(self) -> None:
        from ada_tui.ui.demo import play

        play(self)

    def action_ask_quit(self) -> None:
        live = [session for session in self._sessions() if session.live]
        if not live:
            self.app.exit()
            return

        def answered(key: str | None) -> None:
            if key == "s":
                for session in live:
                    session.want(now=True, stop=True)
            if key:
                self.app.exit()

        names = ", ".join(session.id for session in live)
        answers = [
            Answer("d", "detach: it goes on without the app; `ada-tui` comes back to it"),
            Answer("s", "stop it after this step, and leave"),
        ]
        self.app.push_screen(Choice("Leave?", f"{names} is running.", answers), answered)
