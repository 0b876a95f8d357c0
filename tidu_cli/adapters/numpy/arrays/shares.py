"""Which traced arrays share elements, as NumPy's views do: plain data, which `storage` reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from tidu_cli.graph.types import TensorType


class Lens(Protocol):
    """How an array shows elements of another one: what it shows, and what the other becomes once that is replaced."""

    def get(self, whole: Any) -> Any:
        """What it shows of an array."""

    def put(self, whole: Any, shown: Any) -> Any:
        """The array with what it shows replaced."""

    def laid(self, whole: Any) -> Any:
        """What it shows of a NumPy array, as NumPy's view of that."""


@dataclass(slots=True, eq=False)
class Root:
    """Elements that one array or several show, which belong to the recording `recorder`.

    `version` is how often they were changed, and `place` is where last. `contiguous` says whether an array that shows all of them
    has them in memory as C has; None if that is not known. `doubt` is why it is not certain who shares them, if so.
    """

    recorder: Any
    contiguous: bool | None = True
    version: int = 0
    place: str = ""
    doubt: str = ""


@dataclass(slots=True, eq=False)
class Share:
    """An array's part in elements: all of them, or what `lens` shows of those of `parent`.

    `value` and `type` are as of the elements' version `seen`. `layout` is an empty NumPy array that lies in memory as this does.
    `doubt` is why it is not certain whether it shows elements of its parent, or has copies of them, if so.
    """

    root: Root
    value: int
    type: TensorType
    seen: int = 0
    parent: Share | None = None
    lens: Lens | None = None
    writable: bool = True
    layout: Any = None
    doubt: str = ""
