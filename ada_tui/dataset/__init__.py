"""Chats in any shape people have them, turned into prompt rows. Reads files; imports neither torch nor textual."""

from ada_tui.dataset.prepare import PreparedData, prepare
from ada_tui.dataset.rows import PromptRow, content_id, load_rows, write_rows

__all__ = ["PreparedData", "PromptRow", "content_id", "load_rows", "prepare", "write_rows"]
