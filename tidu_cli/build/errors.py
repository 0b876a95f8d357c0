"""What can go wrong while a graph is built from a formula or a function, and methods of traced arrays that refuse."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from tidu_cli.errors import TiduError


class BuildError(TiduError):
    """A formula or a function cannot be made into a graph."""


class UntraceableError(BuildError, TypeError):
    """A traced function asks for something that has no value yet. A TypeError, too, as NumPy and Python expect of conversions."""


class UnknownFunctionError(BuildError, AttributeError):
    """A function of NumPy or of the array API that has no counterpart in graphs. An AttributeError, too, for `hasattr`."""


AN_INTEGER = "an integer (as for range(), a slice or an axis)"


def refused(what: str, instead: str) -> Callable[..., NoReturn]:
    """A method that would need a value."""

    def refuse(self: Any, *args: object, **options: object) -> NoReturn:
        raise needs_value(self, what, instead)

    return refuse


def fixed(name: str, instead: str) -> Callable[[Any, object], NoReturn]:
    """The setter of an attribute."""

    def refuse(self: Any, value: object) -> NoReturn:
        raise UntraceableError(f"assignment to .{name} changes an array in place, which a traced one cannot; {instead}")

    return refuse


def refused_conversion(what: str, instead: str) -> Callable[..., NoReturn]:
    """As `refused`, for what NumPy calls on an array's behalf: what the user wrote there says what to write instead."""

    def refuse(self: Any, *args: object, **options: object) -> NoReturn:
        frame = sys._getframe(1)
        written = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        if written.startswith("STORE_"):
            raise needs_value(
                self,
                "assignment to elements of a NumPy array, which holds numbers,",
                "collect the parts in a list and write np.stack(parts) or np.concatenate(parts), or write np.where(mask, new, old)",
            )
        if "SUBSCR" in written or (written.startswith("BINARY_") and what is AN_INTEGER):
            raise needs_value(self, "indexing a NumPy array or a list", "write np.array(table, like=i)[i]")
        raise needs_value(self, what, instead)

    return refuse


def needs_value(x: Any, what: str, instead: str) -> UntraceableError:
    """The error of an operation that needs the value of an array."""
    return UntraceableError(f"{what} needs the value of an array, which a graph does not have yet ({x.type}); {instead}")
