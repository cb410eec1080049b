"""What was before, and what was taken back: undo and redo over immutable values. No UI in it."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")
DEPTH = 500
"""Changes that can be taken back."""


class Undo(Generic[T]):
    """Two stacks around a present value that the owner keeps.

    >>> undo = Undo[int]()
    >>> undo.changed(1)
    >>> undo.back(2), undo.forth(1), undo.back(2), undo.back(1)
    (1, 2, 1, None)
    """

    def __init__(self) -> None:
        self._past: list[T] = []
        self._future: list[T] = []

    def changed(self, before: T) -> None:
        """The present value is about to be replaced; `before` is it."""
        self._past = [*self._past[1 - DEPTH :], before]
        self._future = []

    def back(self, present: T) -> T | None:
        """The value before `present`, None when there is none."""
        if not self._past:
            return None
        self._future.append(present)
        return self._past.pop()

    def forth(self, present: T) -> T | None:
        """The value that was taken back last, None when there is none."""
        if not self._future:
            return None
        self._past.append(present)
        return self._future.pop()
