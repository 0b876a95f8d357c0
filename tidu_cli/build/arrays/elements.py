"""What traced arrays share with their views: elements that may be changed in place."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Elements:
    """What several arrays share: how often it was changed, and where last."""

    changes: int = 0
    place: str = ""


@dataclass(slots=True, eq=False)
class Share:
    """An array's part in elements, whose value it has as it was after `seen` changes."""

    elements: Elements = field(default_factory=Elements)
    seen: int = 0
    writable: bool = True
