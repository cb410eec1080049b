"""Every key of the app, once: bindings, footer, command palette, help page and docs/keys.md are made from this table.

It says which key does what where, in words; the doing is a method `action_<name>` of the widget that carries the
bindings. Bare letters, digits, arrows and F-keys only: Windows Terminal and tmux eat Alt and Ctrl+Shift.
`python -m ada_tui.ui.actions` prints docs/keys.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from textual.binding import Binding


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a person can do by key."""

    id: str
    """"place.name": the place carries the binding, the name is the method `action_name`."""
    keys: str
    """Textual's key names, comma-separated."""
    label: str
    """In the footer: one or two words."""
    help: str
    """One sentence: tooltip, palette, help page, docs."""
    shown: str = ""
    """How the keys are written; empty = made from `keys`."""
    footer: bool = True
    argument: bool = False
    """The pressed key is handed to the method (digits)."""

    @property
    def place(self) -> str:
        return self.id.partition(".")[0]

    @property
    def name(self) -> str:
        return self.id.partition(".")[2]

    @property
    def written(self) -> str:
        """The keys as a person reads them."""
        return self.shown or " ".join(_written(key) for key in self.keys.split(","))


PLACES = {
    "app": "Everywhere",
    "review": "Review",
    "prompts": "Review: the list of prompts",
    "cards": "Review: the completions",
    "weights": "Review: the weights",
    "train": "Train",
    "export": "Export",
    "detail": "One completion, large",
    "runs": "The list of runs",
    "fitted": "Weights from picks",
    "confirm": "Questions",
}
"""Where keys work, in the order of the help page."""

DIGITS = ",".join("123456789")

ACTIONS = (
    Action("app.help", "f1,question_mark", "help", "Show every key, those of the focused panel first", "F1 ?"),
    Action("app.review", "f2", "review", "Completions side by side, and the weights that rank them", footer=False),
    Action("app.train", "f3", "train", "Start, watch, pause and stop training", footer=False),
    Action("app.export", "f4", "export", "From adapter to a model that runs on the device", footer=False),
    Action("app.runs", "o", "open run", "Open another run of this workspace"),
    Action("app.export_now", "e", "export it", "Export the open run; deliver it when a host is set", footer=False),
    Action("app.demo", "d", "demo", "Play the whole loop on the embedded model", footer=False),
    Action("app.palette", "f5,colon", "commands", "Find any action by its name", "F5 :"),
    Action("app.theme", "f6", "theme", "Switch between dark and light", footer=False),
    Action("app.ask_quit", "q,ctrl+q", "quit", "Leave; a running job may go on without the app", "q"),
    Action("review.next", "n", "next", "Next prompt, wherever the focus is", footer=False),
    Action("review.previous", "p", "previous", "Previous prompt, wherever the focus is", footer=False),
    Action("review.sample", "s", "sample", "Type a prompt and sample a group for it now"),
    Action("review.weights", "w", "weights", "Go to the weights; again: the next weight"),
    Action("review.cards", "c", "cards", "Go to the completions"),
    Action(
        "review.find",
        "slash",
        "find",
        "Show only some prompts: words, kind:greeting, dead, changed, picked, filler<0.5",
    ),
    Action(
        "review.order", "r", "order", "Sort the prompts another way: spread, mean, changed, lowest reward", footer=False
    ),
    Action("review.fit", "f", "learn", "Find the weights that agree best with your picks"),
    Action("review.undo", "u", "undo", "Take back the last change of the weights or lists", footer=False),
    Action("review.redo", "U", "redo", "Make it again", "U", footer=False),
    Action("review.reset", "z", "reset all", "Put every weight back to what the run uses", footer=False),
    Action("review.keep", "k", "keep", "Save these weights as the workspace's own (data/rewards)", footer=False),
    Action("prompts.up", "up", "up", "One prompt up", footer=False),
    Action("prompts.down", "down", "down", "One prompt down", footer=False),
    Action("prompts.page_up", "pageup", "page up", "One page up", footer=False),
    Action("prompts.page_down", "pagedown", "page down", "One page down", footer=False),
    Action("prompts.first", "home", "newest", "To the newest prompt", footer=False),
    Action("prompts.last", "end", "oldest", "To the oldest prompt", footer=False),
    Action("prompts.choose", "enter,right", "cards", "Go to the completions of this prompt", "enter →", footer=False),
    Action("cards.left", "left", "left", "One completion to the left", footer=False),
    Action("cards.right", "right", "right", "One completion to the right", footer=False),
    Action("cards.up", "up", "up", "One completion up", footer=False),
    Action("cards.down", "down", "down", "One completion down", footer=False),
    Action("cards.detail", "enter", "large", "Show this completion large, with every reason"),
    Action(
        "cards.pick",
        DIGITS,
        "best",
        "This completion is the best one (its number); again: take it back",
        "1-9",
        argument=True,
    ),
    Action("cards.reject", "x", "reject", "The focused completion is unusable, or the worst"),
    Action("cards.tie", "t", "tie", "None of them is better than the others", footer=False),
    Action("cards.comment", "i", "comment", "Say why, in your own words", footer=False),
    Action("cards.copy", "y", "copy", "Copy this completion to the clipboard (OSC 52)", footer=False),
    Action("weights.up", "up", "", "The weight above", footer=False),
    Action("weights.down", "down", "", "The weight below", footer=False),
    Action("weights.less", "left", "-0.1", "Turn this weight down by 0.1", "←"),
    Action("weights.more", "right", "+0.1", "Turn this weight up by 0.1", "→"),
    Action("weights.finer_less", "comma,minus", "-0.01", "Turn this weight down by 0.01", ", -", footer=False),
    Action("weights.finer_more", "full_stop,plus", "+0.01", "Turn this weight up by 0.01", ". +", footer=False),
    Action("weights.digit", DIGITS, "set", "Set this weight to that number", "1-9", footer=True, argument=True),
    Action("weights.mute", "0", "mute", "Weight 0: still scored and charted, no pull"),
    Action("weights.restore", "equals_sign", "reset", "Put this weight back to what the run uses", "="),
    Action("train.new", "n", "new run", "Start SFT or GRPO"),
    Action("train.pause", "p", "pause", "Pause the run between two steps, or go on"),
    Action("train.save", "c", "checkpoint", "Save an adapter at the next step"),
    Action("train.stop", "x", "stop", "Stop the run after this step; its adapter is saved"),
    Action("train.log", "l", "log", "More or less of the worker's log", footer=False),
    Action("train.previous", "left", "", "The chart before", footer=False),
    Action("train.next", "right", "", "The next chart", footer=False),
    Action("export.start", "enter", "export", "Export the open run"),
    Action("export.deliver", "v", "deliver", "Put this export on the device (export.host of ada.toml)"),
    Action("detail.close", "escape,enter,q", "back", "Back to the cards", "esc"),
    Action("detail.up", "up", "", "Scroll up", footer=False),
    Action("detail.down", "down", "", "Scroll down", footer=False),
    Action("runs.up", "up", "", "One run up", footer=False),
    Action("runs.down", "down", "", "One run down", footer=False),
    Action("runs.choose", "enter", "open", "Open this run"),
    Action("runs.close", "escape,q,o", "back", "Back without opening a run", "esc"),
    Action("fitted.apply", "enter", "take them", "Use the fitted weights"),
    Action("fitted.close", "escape,q", "back", "Leave the weights as they are", "esc"),
    Action("confirm.close", "escape", "back", "Change nothing", "esc"),
)


def of(place: str) -> list[Action]:
    return [action for action in ACTIONS if action.place == place]


def bindings(place: str) -> list[Binding]:
    """What a widget puts into its BINDINGS."""
    made = []
    for action in of(place):
        keys = action.keys.split(",")
        for number, key in enumerate(keys):
            made.append(
                Binding(
                    key,
                    f"{action.name}({key!r})" if action.argument else action.name,
                    action.label or action.help,
                    show=action.footer and number == 0,
                    key_display=action.written,
                    tooltip=action.help,
                    id=action.id if len(keys) == 1 else f"{action.id}.{number + 1}",
                )
            )
    return made


def by_binding(binding_id: str) -> Action | None:
    """The action that a binding's id belongs to."""
    place, _, rest = binding_id.partition(".")
    wanted = f"{place}.{rest.partition('.')[0]}"
    return next((action for action in ACTIONS if action.id == wanted), None)


_SIGNS = {
    "up": "↑", "down": "↓", "left": "←", "right": "→", "escape": "esc", "pageup": "pgup", "pagedown": "pgdn",
    "question_mark": "?", "slash": "/", "colon": ":", "comma": ",", "full_stop": ".", "equals_sign": "=", "minus": "-",
    "plus": "+",
}  # fmt: skip


def _written(key: str) -> str:
    return _SIGNS.get(key, key.upper() if key[:1] == "f" and key[1:].isdigit() else key)


def markdown(actions: Iterable[Action] = ACTIONS) -> str:
    """docs/keys.md."""
    known = list(actions)
    lines = [
        "# Keys",
        "",
        "Made from `ada_tui/ui/actions.py` by `python -m ada_tui.ui.actions > docs/keys.md`.",
        "Every action is also in the command palette (F5) and, for the focused panel first, on the help page (F1).",
    ]
    for place, title in PLACES.items():
        lines += ["", f"## {title}", "", "| key | does | id |", "|---|---|---|"]
        lines += [f"| {_code(action)} | {action.help} | `{action.id}` |" for action in known if action.place == place]
    return "\n".join(lines) + "\n"


def _code(action: Action) -> str:
    return " ".join(f"`{key}`" for key in action.written.split(" "))


if __name__ == "__main__":
    print(markdown(), end="")
