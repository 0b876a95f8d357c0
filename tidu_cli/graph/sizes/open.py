"""What all modules know of open sizes.

The modules beside this one compute with them, and documents without them import none. While a function is traced, more than
arithmetic of integers is asked of sizes (`Numbers`); a question about them that is open has a way out (`WayOut`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, NoReturn, Protocol

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


class Numbers(Protocol):
    """What sizes are while a function is traced, where more than integers do is asked of them. The frame is what asks."""

    def number(self, size: OpenSize) -> Any:
        """The size as a number of the graph."""

    def ufunc(self, ufunc: Any, method: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """What a function of NumPy gives of operands of which one is a size."""

    def require_number(self, size: OpenSize, frame: Any) -> NoReturn:
        """Raises the error of what needs an int of Python's."""

    def require_decided(self, a: OpenSize, b: Any, frame: Any) -> None:
        """Raises UndecidedSizeError where users compare sizes of which it is open whether they are equal."""


NUMBERS: ContextVar[Numbers | None] = ContextVar("numbers of sizes", default=None)
"""Set while a function is traced."""

Dues = Sequence[tuple[Any, Any, int]]


class WayOut(NamedTuple):
    """The way out of a question about sizes, worked out when it is read: most are asked by who goes on where they are open.

    It is bounds of names by which one of `dues`, (a, b, n), has a at least n more than b, or the two in `same` are the same: as a
    document has them; or, where a function is traced, sizes `in_types` of its arguments, as nothing else is written there.
    """

    name: str
    dues: Dues
    same: tuple[Any, Any] | None
    in_types: bool = False

    def __str__(self) -> str:
        return _WORDS[0](self) if _WORDS else "; give it a number: "


_WORDS: list[Callable[[WayOut], str]] = []


def say_ways_out(words: Callable[[WayOut], str]) -> None:
    """Set what puts ways out in words, which is above all that asks."""
    _WORDS[:] = [words]
