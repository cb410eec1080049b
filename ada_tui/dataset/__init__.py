"""Chats in any shape people have them, turned into prompt rows. Reads files; imports neither torch nor textual."""

from ada_tui.dataset.checks import Report, check, scan
from ada_tui.dataset.convert import rows_of_chat, rows_of_files
from ada_tui.dataset.labels import Balance, Guess, Labelling, Labels, balance, guess, prefill
from ada_tui.dataset.lengths import Probe, probe
from ada_tui.dataset.prefer import preferences
from ada_tui.dataset.prepared import PreparedData, prepare, write_split
from ada_tui.dataset.problems import CODES, Problem
from ada_tui.dataset.repair import Fixed, fix
from ada_tui.dataset.rows import PromptRow, content_id, load_rows, write_rows
from ada_tui.dataset.sft import other_systems, sft_chats
from ada_tui.dataset.split import Split, split_rows

__all__ = [
    "CODES", "Balance", "Fixed", "Guess", "Labelling", "Labels", "PreparedData", "Probe", "Problem",
    "PromptRow", "Report", "Split", "balance", "check", "content_id", "fix", "guess", "load_rows", "other_systems",
    "preferences", "prefill", "prepare", "probe", "rows_of_chat", "rows_of_files", "scan", "sft_chats",
    "split_rows", "write_rows", "write_split",
]  # fmt: skip
