"""What sizes are while a function is traced, where more than arithmetic of integers is asked of them."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NoReturn, Protocol

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
