"""Put a finished export on the device while the app goes on: `ada_tui.export.deliver` in a thread.

Asked for by the main screen; it draws nothing.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ada_tui.errors import BadInput
from ada_tui.jobs import JobDir
from ada_tui.ui.background import tell
from ada_tui.ui.widgets.facts import Fact

if TYPE_CHECKING:
    from ada_tui.export.deliver import Delivery
    from ada_tui.ui.main_screen import MainScreen


def deliver(screen: MainScreen, export: JobDir, host: str, tag: str) -> None:
    """Deliver `export` to `host`; returns at once. The export page tells how it goes and how it ended."""
    app, page = screen.app, screen.export
    last = [-1]

    def report(words: str, fraction: float | None = None) -> None:
        percent = -1 if fraction is None else int(100 * fraction)
        if percent >= 0 and percent == last[0]:
            return
        last[0] = percent
        share = f" {percent}%" if percent >= 0 else ""
        tell(app, page.show_delivery, [Fact(""), Fact("delivery", f"to {host}: {words}{share}")])

    def run() -> None:
        from ada_tui.export import deliver as put

        try:
            done = put.deliver(export, host, tag, report)
        except (BadInput, OSError) as error:
            tell(app, page.show_delivery, [Fact(""), Fact("delivery", str(error), "bad")])
        else:
            tell(app, page.show_delivery, facts(done))

    page.show_delivery([Fact(""), Fact("delivery", f"to {host}")])
    threading.Thread(target=run, name=f"deliver {export.id}", daemon=True).start()


def facts(done: Delivery) -> list[Fact]:
    """What a delivery did."""
    out = [
        Fact(""),
        Fact("delivered", f"{done.tag} on {done.host}", "good" if done.promoted else "bad"),
        Fact("runs on", f"{done.processor}, {done.tokens_per_s:.1f} tokens/s"),
    ]
    if done.removed:
        out.append(Fact("removed", ", ".join(done.removed)))
    for reply in done.replies:
        out += [Fact("you", reply.prompt, "muted"), Fact("device", reply.device), Fact("this PC", reply.pc)]
    return out
