"""What traced arrays share with their views: elements that may be changed in place."""

from __future__ import annotations


class Elements:
    """What several arrays share: how often it was changed, and where last."""

    __slots__ = ("changes", "place")

    def __init__(self) -> None:
        self.changes = 0
        self.place = ""


class Share:
    """An array's part in elements, whose value it has as it was after `seen` changes."""

    __slots__ = ("elements", "seen", "writable")

    def __init__(self, elements: Elements | None = None, seen: int = 0, *, writable: bool = True) -> None:
        self.elements = elements or Elements()
        self.seen = seen
        self.writable = writable
