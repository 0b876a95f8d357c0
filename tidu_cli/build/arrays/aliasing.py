"""Which traced arrays share elements, as NumPy's views do.

A traced array is an object whose value may change, so that `x += y` is seen by every name of it. Arrays that NumPy would make
views, such as x[1:] and x.T, are other objects: they know the `Elements` that they share, and once one of them has been changed the
others can no longer be used, as no graph says what they hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from tidu_cli.build.arrays.array import OPERANDS_OF_OPERATORS, Array, Share
from tidu_cli.build.arrays.operands import arrays_in
from tidu_cli.build.errors import UntraceableError, place_of_caller

VIEWS = frozenset(
    {"array_split", "atleast_1d", "atleast_2d", "atleast_3d", "dsplit", "expand_dims", "flip", "fliplr", "flipud", "hsplit",
     "linalg.matrix_transpose", "matrix_transpose", "moveaxis", "permute_dims", "ravel", "real", "reshape", "rollaxis", "rot90",
     "split", "squeeze", "swapaxes", "transpose", "unstack", "vsplit"}
)  # fmt: skip
"""Functions whose results are views in NumPy, or may be."""

READ_ONLY = frozenset(
    {"broadcast_arrays", "broadcast_to", "diagonal", "imag", "linalg.diagonal", "meshgrid", "sliding_window_view"}
)
"""Those whose results cannot be changed, or had better not be, as one element stands in several places."""

OPERANDS = frozenset({"asarray", "diff", "linalg.matrix_power"})
"""Functions that may give an operand back."""

_EACH = frozenset({"atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "meshgrid"})
"""Functions that give a result for each argument."""

WITHOUT_AXES = frozenset(
    {"arange", "array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "astype", "copy", "cov", "cross", "empty",
     "empty_like", "full", "full_like", "i0", "kron", "linalg.cross", "linalg.tensordot", "linalg.tensorsolve", "ones", "ones_like",
     "require", "resize", "roll", "select", "tensordot", "tile", "where", "zeros", "zeros_like"}
)  # fmt: skip
"""Functions that in NumPy give an array even where it has no axes. All others then give a number, which cannot be changed."""


def shared(name: str, found: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """What the function of that name gave, as NumPy's shares elements with its arguments: views, or arrays of their own."""
    if isinstance(found, list | tuple):
        each = name in _EACH and len(args) > 1
        parts = [shared(name, x, (args[k],) if each else args, options) for k, x in enumerate(found)]
        return type(found)(*parts) if hasattr(found, "_fields") else type(found)(parts)
    if not isinstance(found, Array):
        return found
    operands = arrays_in([*args, *options.values()])
    model = operands[0] if operands else found
    copies = options.get("copy", True)
    if (name in READ_ONLY and not (name == "meshgrid" and copies)) or (name == "diag" and found.type.rank == 1):
        return view_of(model, found, writable=False)
    same = name in OPERANDS and any(found is x for x in operands)
    if name in VIEWS or not copies or same or (name == "einsum" and _only_moves(args)):
        own = view_of(model, found, writable=bool(operands))
    else:
        own = renewed(found)
    if own.share is None and not own.type.rank and name in WITHOUT_AXES:
        own.share = Share()
    return own


def _only_moves(args: Sequence[Any]) -> bool:
    """Whether an einsum is of one array and adds nothing up."""
    before, arrow, after = args[0].partition("->") if isinstance(args[0], str) else ("", "->", "")
    return len(args) == 2 and (set(before) <= {*after, " "} if arrow else len(set(before)) == len(before))


def renewed(x: Array) -> Array:
    """An array of its own with the value of x."""
    require_current(x)
    return Array(x.recorder, x.value, x.type)


def view_of(x: Array, found: Array, *, writable: bool = True) -> Array:
    """An array with the value of `found` that shares its elements with x."""
    require_current(found)
    view = Array(found.recorder, found.value, found.type)
    if x.share is None and x.type.rank:
        x.share = Share()
    if x.share is not None:
        view.share = Share(x.share.elements, x.share.seen, writable=writable and x.share.writable)
    elif not writable:  # numbers have no views but those that cannot be changed
        view.share = Share(writable=False)
    return view


def item_of(x: Array, index: Any, found: Array) -> Array:
    """What x[index] found: a view but for numbers, and for indices that are masks or arrays of integers."""
    entries = index if isinstance(index, tuple) else (index,)
    basic = all(
        (isinstance(e, int | np.integer | slice | EllipsisType) and not isinstance(e, bool))
        or e is None
        or (isinstance(e, Array) and not e.type.rank and e.type.dtype != "bool")
        for e in entries
    )
    number = not found.type.rank and not any(e is Ellipsis for e in entries)
    return renewed(found) if number or not basic else view_of(x, found)


def require_current(x: Array) -> None:
    """Raises UntraceableError for an array whose elements were changed by way of another."""
    share = x.share
    if share is None or share.seen == share.elements.changes:
        return
    place = share.elements.place
    if not x.type.rank:
        raise UntraceableError(
            f"a value of {x.type} that was changed in place at {place} is used again: a number would still have its old value, and "
            "an array the new one; write x = x + y there for x += y"
        )
    raise UntraceableError(
        f"an array ({x.type}) whose elements were changed in place at {place}, by way of another array that shares them, is used "
        "again; write x = x + y there for x += y, or change a copy: x = x.copy()"
    )


def changed_by(x: Array, name: str, symbol: str, other: object) -> Array:
    """x after `x symbol= other`, the operator of that name. Raises UntraceableError for what NumPy refuses, too."""
    if not isinstance(other, OPERANDS_OF_OPERATORS):
        raise UntraceableError(f"x {symbol}= y of a traced array and a {type(other).__name__}; y is an array or a number")
    if name == "matmul" and np.ndim(other) < 2:
        raise UntraceableError("x @= y takes a y of two axes or more; write x = x @ y")
    found: Array = x.recorder.numpy["operator"](name, x, other)
    require_room(x, symbol, found)
    if found.recorder is not x.recorder:
        raise UntraceableError(
            f"x {symbol}= y in the function of a loop or branch would change an array of outside; write x = x {symbol} y, or let "
            "the function take x and return it"
        )
    share = x.share
    if not x.type.rank:  # a number, of which `x` names another one now, or an array, which has changed: no other name is safe
        assert share is not None
        x = Array(x.recorder, x.value, x.type)
        x.share = share = Share(share.elements)
    x.value = found.convert(x.type.dtype).value
    if share is not None:
        share.elements.changes += 1
        share.elements.place = place_of_caller()
        share.seen = share.elements.changes
    return x


def require_room(x: Array, symbol: str, found: Array) -> None:
    """Raises UntraceableError unless `found` may be written into x."""
    instead = f"write x = x {symbol} y"
    if x.share is not None and not x.share.writable:
        raise UntraceableError(f"x {symbol}= y of an array that is read-only, as it shows elements of another; {instead}")
    if found.type.shape != x.type.shape:
        raise UntraceableError(f"x {symbol}= y gives {found.type}, which does not fit into x, {x.type}; {instead}")
    if found.type.dtype != x.type.dtype and (not x.type.rank or not np.can_cast(found.dtype, x.dtype, "same_kind")):
        raise UntraceableError(f"x {symbol}= y gives {found.type}, which is not converted to {x.type.dtype} in place; {instead}")
