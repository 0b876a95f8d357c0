"""Statements that write into traced arrays: operators in place, assignment to elements and to attributes, and out=."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from tidu_cli.adapters.numpy.arrays.aliasing import Call, Item, is_basic
from tidu_cli.adapters.numpy.arrays.array import OPERANDS_OF_OPERATORS, Array
from tidu_cli.adapters.numpy.arrays.operands import Operand, arrays_in
from tidu_cli.adapters.numpy.arrays.shares import Share
from tidu_cli.adapters.numpy.arrays.storage import A_NUMBER, Selection, is_view, layout, own, require_writable, rooted, write
from tidu_cli.adapters.numpy.errors import UntraceableError
from tidu_cli.adapters.numpy.numpy.assigning import converted, updated
from tidu_cli.adapters.numpy.numpy.indexing import taken


def set_item(x: Array, index: Any, value: Any) -> None:
    """x[index] = value."""
    require_writable(x, "assignment to elements")
    share = value.share if isinstance(value, Array) else None
    if share is not None and _is_part(x, index, share):
        if not share.doubt:
            return
        value = _undone(x, value, share)
    if share is not None and is_basic(index):
        require_apart(x, index, share)
    _certain(x)
    write(x, updated(x, index, value))


def _is_part(x: Array, index: Any, share: Share) -> bool:
    """Whether it is the share of x[index] itself, as it is after x[index] += y, which has been written already."""
    if share.parent is None or share.parent is not x.share or not isinstance(share.lens, Item):
        return False
    one, other = (i if isinstance(i, tuple) else (i,) for i in (share.lens.index, index))
    return is_basic(index) and len(one) == len(other) and all(_equal(a, b) for a, b in zip(one, other, strict=True))


def require_apart(x: Array, index: Any, source: Share) -> None:
    """Raises UntraceableError where NumPy's assignment to x[index] overwrites elements of the source before it has read them.

    It copies a source that overlaps, but for a row that is written with another stride in the direction in which it is read.
    """
    if x.share is None or x.share.root is not source.root:
        return
    whole, read = layout(x.share), layout(source)
    if whole is None or read is None or not read.ndim:
        return
    shown = Item(index).laid(whole)
    step = read.strides[-1]
    if (
        shown.ndim == 1
        and shown.strides[0] != step
        and shown.strides[0] * step > 0
        and np.may_share_memory(shown, read, max_work=0)
    ):
        raise UntraceableError(
            "assignment to elements of an array that it reads with another stride: NumPy overwrites some before it reads them; "
            "write x[...] = y.copy()"
        )


def _undone(x: Array, part: Any, share: Share) -> Array:
    """What was written into a part of x, which may be a copy, as a value that has not been written yet."""
    new = own(part)
    assert x.share is not None
    if share.seen == share.root.version == x.share.seen + 1:
        share.root.version, share.root.doubt, share.seen = x.share.seen, "", -1
    return new


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Array) or isinstance(b, Array):
        return isinstance(a, Array) and isinstance(b, Array) and bool(a.value == a.recorder.value_of(b))
    return type(a) is type(b) and bool(a == b)


def _certain(x: Array) -> None:
    """What is assigned to is an array, also where it might have been a number."""
    if x.share is not None and x.share.root.doubt == A_NUMBER and not x.share.root.version:
        x.share.root.doubt = ""


def changed_by(x: Array, name: str, symbol: str, other: object) -> Any:
    """x after `x symbol= other`, the operator of that name. Raises UntraceableError for what NumPy refuses, too."""
    if isinstance(other, Selection):
        return NotImplemented
    if not isinstance(other, OPERANDS_OF_OPERATORS):
        raise UntraceableError(f"x {symbol}= y of a traced array and a {type(other).__name__}; y is an array or a number")
    if name == "matmul" and np.ndim(cast(Any, other)) < 2:
        raise UntraceableError("x @= y takes a y of two axes or more; write x = x @ y")
    statement, instead = f"x {symbol}= y", f"write x = x {symbol} y"
    require_writable(x, statement)
    new: Array = x.recorder.numpy["operator"](name, x, other)
    if new.type.shape != x.type.shape:
        raise UntraceableError(f"{statement} gives {new.type}, which does not fit into x, {x.type}; {instead}")
    if new.type.dtype != x.type.dtype and (not x.type.rank or not np.can_cast(new.dtype, x.dtype, "same_kind")):
        raise UntraceableError(f"{statement} gives {new.type}, which is not converted to {x.type.dtype} in place; {instead}")
    share = x.share
    if share is not None and share.root.doubt == A_NUMBER and not x.type.rank:
        # A number, of which `x` names another one now, or an array, which has changed: no other name is safe.
        x = Array(x.recorder, x.value, x.type)
        x.share = Share(share.root, x.value, x.type)
    write(x, new.convert(x.type.dtype))
    return x


def written(out: Array, result: Array, what: str, *, broadcast: bool = False) -> Array:
    """`out` with what a function gave in it. Raises UntraceableError for what does not fit."""
    require_writable(out, f"{what} with out=")
    same = result.shape == out.shape or (broadcast and np.broadcast_shapes(result.shape, out.shape) == out.shape)
    if not same or not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise UntraceableError(f"{what} gives {result.type}, which does not fit into out, {out.type}; write out[...] = {what}(...)")
    _certain(out)
    write(out, converted(result, out).broadcast(out.shape))
    return out


# Methods and attributes.


def fill(x: Array, value: Operand) -> None:
    """x.fill(value)."""
    require_writable(x, "fill")
    write(x, converted(value, x).reshaped(()).broadcast(x.shape))


def sort_in_place(x: Array, axis: int = -1, kind: object = None, order: object = None, *, stable: object = None) -> None:
    """x.sort()."""
    require_writable(x, "sort")
    write(x, x.recorder.numpy["sort"](x, axis))


def set_part(x: Array, name: str, value: Operand) -> None:
    """x.real = value, or x.imag."""
    require_writable(x, f"assignment to .{name}")
    if name == "imag" and not x.type.complex:
        raise TypeError("array does not have imaginary part to set")
    if not x.type.complex and isinstance(value, complex | np.ndarray | np.generic):
        value = value.real  # as NumPy does, with a warning
    set_item(getattr(x, name), ..., value)


def set_shape(x: Array, shape: Any) -> None:
    """x.shape = shape, of an array that lies in memory so that it can have it without a copy."""
    parent = rooted(x)
    new = x.reshape(shape)
    lens = Call("reshape", np.reshape, (x, new.shape), {}, x)
    whole = layout(parent)
    if whole is None or not is_view(lens.laid(whole), whole):
        raise UntraceableError("Incompatible shape for in-place modification; write x = x.reshape(shape)")
    x.type = new.type
    x.share = Share(parent.root, new.recorder.open[-1].value_of(new), x.type, parent.root.version, parent, lens, parent.writable)


class Flat:
    """x.flat: the elements in the order of C."""

    def __init__(self, x: Array) -> None:
        self._x = x

    def __len__(self) -> int:
        return self._x.size

    def __iter__(self) -> Iterator[Any]:
        return iter(self._x.flatten())

    def __getitem__(self, index: Any) -> Any:
        return self._x.flatten()[index]

    def __setitem__(self, index: Any, value: Operand) -> None:
        """Values are repeated where there are more places than values."""
        share = value.share if isinstance(value, Array) else None
        if value is self._x or (share is not None and self._x.share is not None and share.root is self._x.share.root):
            raise UntraceableError(
                "assignment to .flat reads elements of the array while it writes them; write x.flat[i] = y.copy()"
            )
        self.put(index, value)

    def put(self, index: Any, value: Operand) -> None:
        """As assignment does, but all values are read first."""
        x = self._x
        require_writable(x, "assignment to elements")
        new = converted(value, x)
        if not new.size:
            return
        shape = np.shape(index) if arrays_in([index]) else np.shape(np.empty(x.size, bool)[index])
        n = math.prod(shape)
        if not n:
            return
        new = new.reshaped((new.size,))
        if new.size != n:
            new = taken(new, np.arange(n) % new.size)
        write(x, updated(x.reshaped((x.size,)), index, new.reshaped(shape)).reshaped(x.shape))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._x.flatten(), name)
