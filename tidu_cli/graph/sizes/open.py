"""What all modules know of open sizes. The modules beside this one compute with them, and documents without them import none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidu_cli.errors import UndecidedSizeError


class OpenSize:
    """A size that a document leaves open, which stands where an int would: see `tidu_cli.graph.sizes.algebra`."""

    __slots__ = ()
    least: Callable[[], int]
    larger: Callable[[Any], Any]
    smaller: Callable[[Any], Any]
    halves: Callable[[], tuple[str, Any, Any] | None]


def are_there_open_sizes() -> bool:
    """Whether this process has met any: where it has not, nobody looks for them."""
    return bool(OpenSize.__subclasses__())


def least(size: int) -> int:
    """The least that the size of an axis may be. Raises TypeRuleError for an open one that may be less than 0, or is too long."""
    return size.least() if isinstance(size, OpenSize) else size


def larger(a: Any, b: Any) -> Any:
    """The maximum of two sizes."""
    return a.larger(b) if isinstance(a, OpenSize) else b.larger(a) if isinstance(b, OpenSize) else max(a, b)


def smaller(a: Any, b: Any) -> Any:
    """The minimum of two sizes."""
    return a.smaller(b) if isinstance(a, OpenSize) else b.smaller(a) if isinstance(b, OpenSize) else min(a, b)


def surely(condition: Callable[[], bool]) -> bool:
    """Whether a condition on sizes holds, whatever open ones are."""
    return number_of(condition) is True


def number_of(size: Callable[[], int]) -> int | None:
    """What a computation of sizes gives; None if that is open, or needs a number."""
    try:
        number = size()
    except UndecidedSizeError:
        return None
    return None if isinstance(number, OpenSize) else number
