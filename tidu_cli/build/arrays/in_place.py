"""In-place operators of traced arrays: NumPy's meaning, or a refusal."""

from __future__ import annotations

import numpy as np

from tidu_cli.build.arrays.aliasing import Share
from tidu_cli.build.arrays.array import OPERANDS_OF_OPERATORS, Array
from tidu_cli.build.calling import place_of_caller
from tidu_cli.build.errors import UntraceableError
from tidu_cli.build.numpy.elementwise.ufuncs import apply_operator


def changed_by(x: Array, name: str, symbol: str, other: object) -> Array:
    """x after `x symbol= other`, the operator of that name. Raises UntraceableError for what NumPy refuses, too."""
    if not isinstance(other, (Array, *OPERANDS_OF_OPERATORS)):
        raise UntraceableError(f"x {symbol}= y of a traced array and a {type(other).__name__}; y is an array or a number")
    if name == "matmul" and np.ndim(other) < 2:
        raise UntraceableError("x @= y takes a y of two axes or more; write x = x @ y")
    found = apply_operator(name, x, other)
    require_room(x, symbol, found)
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
