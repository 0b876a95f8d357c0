"""What sizes are while a function is traced, where more than arithmetic of integers is asked; and questions that are open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, NoReturn, Protocol

from tidu_cli.graph.sizes.open import OpenSize


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
