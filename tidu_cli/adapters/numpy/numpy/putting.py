"""NumPy's functions that write into their first argument, and its ufuncs at places, where each place counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import NUMBERS, Operand, an_array, arrays_in, lift, result_dtype
from tidu_cli.adapters.numpy.arrays.storage import Selection, require_writable, write
from tidu_cli.adapters.numpy.errors import UntraceableError
from tidu_cli.adapters.numpy.numpy.assigning import converted, fitted, updated
from tidu_cli.adapters.numpy.numpy.indexing import indexed, normal_axis, places, select, taken
from tidu_cli.adapters.numpy.numpy.statements import Flat, require_apart, set_item
from tidu_cli.lax.arrays.windows import ScatterDimensionNumbers


def _an_array(x: Operand, what: str) -> Array:
    if not isinstance(x, Array):
        raise UntraceableError(
            f"{what} cannot be traced into a {type(x).__name__} of NumPy's, which holds numbers; write into an array that is "
            "traced, or np.stack and np.concatenate of parts"
        )
    require_writable(x, what)
    return x


def copyto(dst: Operand, src: Operand, casting: str = "same_kind", where: Operand = True) -> None:
    x = _an_array(dst, "np.copyto")
    dtype = result_dtype(x, src) if isinstance(src, NUMBERS) else an_array(src, x).dtype
    if not np.can_cast(dtype, x.dtype, casting):  # type: ignore[arg-type]
        raise TypeError(f"Cannot cast array data according to the rule '{casting}'; write x[...] = y")
    if isinstance(src, Array) and src.share is not None:
        require_apart(x, ..., src.share)
    new = fitted(converted(src, x), x.shape)
    write(x, new if where is True else select(lift(where, x, np.dtype(bool)).broadcast(x.shape), new, x))


def fill_diagonal(a: Operand, val: Operand, wrap: bool = False) -> None:
    x = _an_array(a, "np.fill_diagonal")
    if x.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if x.ndim > 2 and len(set(x.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    step = x.shape[1] + 1 if x.ndim == 2 else 1 + int(np.cumprod(x.shape[:-1]).sum())
    end = x.shape[1] * x.shape[1] if x.ndim == 2 and not wrap else None
    Flat(x)[slice(None, end, step)] = val


def put(a: Operand, ind: Any, v: Operand, mode: str = "raise") -> None:
    x = _an_array(a, "np.put")
    at: Any = ind if isinstance(ind, Array) else np.asarray(ind)
    at = at.reshape(-1)
    if mode == "wrap":
        at = at % x.size
    elif mode == "clip":
        at = np.clip(at, 0, max(x.size - 1, 0))
    elif mode != "raise":
        raise ValueError(f"mode is 'raise', 'wrap' or 'clip', not {mode!r}")
    Flat(x).put(at, v)


def place(arr: Operand, mask: Operand, vals: Operand) -> None:
    x = _an_array(arr, "np.place")
    if isinstance(mask, Array):
        new = converted(vals, x)
        if new.size != 1:
            raise UntraceableError("np.place with a mask that is traced takes one value; write x[...] = np.where(mask, new, x)")
        set_item(x, mask.reshape(x.shape), new.reshaped(()))
        return
    chosen = np.asarray(mask, bool).reshape(x.shape)
    if chosen.any() and not np.size(vals):  # type: ignore[arg-type]
        raise ValueError("Cannot insert from an empty array!")
    Flat(x).put(np.flatnonzero(chosen), vals)


def putmask(a: Operand, mask: Operand, values: Operand) -> None:
    x = _an_array(a, "np.putmask")
    chosen = lift(mask, x).astype(bool)
    new = converted(values, x)
    if chosen.size != x.size:
        raise ValueError("putmask: mask and data must be the same size")
    if new.size:
        new = new.reshaped((new.size,) if new.size > 1 else ())
        row = taken(new, np.arange(x.size) % new.size) if new.ndim else new.broadcast((x.size,))
        write(x, select(chosen.reshaped(x.shape), row.reshaped(x.shape), x))


def put_along_axis(arr: Operand, indices: Operand, values: Operand, axis: int | None) -> None:
    x = _an_array(arr, "np.put_along_axis")
    if axis is None:
        Flat(x)[indices] = values
        return
    axis = normal_axis(axis, x.ndim)
    at = indices if isinstance(indices, Array) else np.asarray(indices)
    if np.ndim(at) != x.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    grid = np.ogrid[tuple(slice(0, n) for n in x.shape)]
    set_item(x, tuple(at if k == axis else grid[k] for k in range(x.ndim)), values)


WRITING: Mapping[str, Callable[..., Any]] = {f.__name__: f for f in (copyto, fill_diagonal, place, put, put_along_axis, putmask)}
"""NumPy's functions that write into their first argument."""


# Ufuncs at places, where each one counts.

_SCATTERS = {
    "add": "scatter-add", "subtract": "scatter-sub", "multiply": "scatter-mul", "maximum": "scatter-max", "minimum": "scatter-min",
}  # fmt: skip

MAX_ROUNDS = 1_000
"""As often as one place may be counted by a ufunc that has no scatter of its own."""


def at_places(ufunc: Any, inputs: Sequence[Any]) -> None:
    """np.add.at and its like: x[indices] = f(x[indices], y), one place after the other, each converted to the dtype of x."""
    name = ufunc.__name__
    x, index, *rest = inputs
    x = _an_array(x, f"np.{name}.at")
    numbers = places(x, (x.size,), 0).reshaped(x.shape) if arrays_in([index]) else np.arange(x.size).reshape(x.shape)
    at = numbers[index]
    if isinstance(at, Selection):  # whose places are apart
        return set_item(x, index, ufunc(x[index], *rest))
    operands = [v if isinstance(v, NUMBERS) else fitted(lift(v, x), np.shape(at)).reshaped((np.size(at),)) for v in rest]
    row, at = x.reshaped((x.size,)), at.reshape(-1)
    trial = ufunc(row[:1], *(v if isinstance(v, NUMBERS) else v[:1] for v in operands))
    if not at.size:
        return None
    exact = trial.type.dtype == x.type.dtype and (name in ("add", "subtract") or isinstance(at, Array))
    if name in _SCATTERS and exact and len(operands) == 1 and isinstance(at, Array):
        return write(x, updated(x, index, rest[0], _SCATTERS[name]))
    if name in _SCATTERS and exact and len(operands) == 1 and at.size > 1:
        row = scattered_row(row, at, converted(operands[0], x).broadcast(at.shape), _SCATTERS[name])
    elif isinstance(at, Array) and at.size != 1:
        raise UntraceableError(
            f"np.{name}.at of {x.type} with traced indices cannot be traced (of one dtype {', '.join(_SCATTERS)} can)"
        )
    else:
        row = _in_rounds(row, at, operands, ufunc)
    write(x, row.reshaped(x.shape))
    return None


def scattered_row(row: Array, at: Any, new: Array, op: str) -> Array:
    """A vector into which values were scattered, each at its place."""
    vectors = lift(at, row, np.dtype(np.int64)).reshaped((at.size, 1))
    numbers = ScatterDimensionNumbers(update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    return row.emit(op, vectors, new, dimension_numbers=numbers, mode="clip" if isinstance(at, Array) else "promise_in_bounds")


def _in_rounds(row: Array, at: Any, operands: Sequence[Any], ufunc: Any) -> Array:
    """Each round takes every place once at most."""
    rounds = np.zeros(at.size, np.int64)
    if not isinstance(at, Array):
        order = np.argsort(at, kind="stable")
        first = np.r_[True, at[order][1:] != at[order][:-1]]
        rounds[order] = np.arange(at.size) - np.flatnonzero(first)[np.cumsum(first) - 1]
    if rounds.max() >= MAX_ROUNDS:
        raise UntraceableError(f"np.{ufunc.__name__}.at takes a place more than {MAX_ROUNDS:,} times; write a loop")
    for k in range(rounds.max() + 1):
        chosen = rounds == k
        here = at if isinstance(at, Array) else at[chosen]
        taken_now = [v if isinstance(v, NUMBERS) else v if chosen.all() else indexed(v, chosen) for v in operands]
        row = updated(row, here, ufunc(indexed(row, here), *taken_now))
    return row
