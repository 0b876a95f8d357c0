"""Expressions of files that tidu wrote, as the operations that they stand for, where NumPy's functions are traced as others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, dtype_of, known
from tidu_cli.adapters.numpy.arrays.operands import Clipped
from tidu_cli.adapters.numpy.arrays.sizes import broadcast, number_of
from tidu_cli.adapters.numpy.buffers.memory import resolved
from tidu_cli.adapters.numpy.numpy.indexing import product, reduce
from tidu_cli.adapters.numpy.recorder import innermost
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import INTEGERS

Operand = Any


def _arrays(*operands: Operand, dtype: str = "") -> list[Array] | None:
    """Operands as arrays of this recording; numbers of Python's have a dtype. None where nothing is traced."""
    given = [resolved(x) for x in operands]
    recorder = innermost()
    if recorder is None or not any(isinstance(x, Array) for x in given):
        return None
    return [as_array(recorder, x, dtype) for x in given]


def _converted(*operands: Operand, dtype: str) -> list[Array] | None:
    """As `_arrays`; also None where a number of Python's is another one in the dtype, or where there is none."""
    numbers = [x for x in operands if isinstance(x, bool | int | float | complex)]
    if any(x is None for x in operands) or (dtype_of(dtype).kind in "iub" and not all(isinstance(x, int) for x in numbers)):
        return None
    return _arrays(*operands, dtype=dtype)


def as_array(recorder: Any, x: Operand, dtype: str = "") -> Array:
    """An operand as an array of a recording; numbers of Python's have the dtype."""
    if isinstance(x, Array):
        return x
    if isinstance(x, OpenSize):
        return number_of(recorder, x, dtype or "i64")
    is_number = dtype and isinstance(x, bool | int | float | complex)
    given: Array = recorder.constant(np.asarray(x, dtype_of(dtype) if is_number else None))
    return given


def _alike(arrays: Sequence[Array]) -> list[Array]:
    """Arrays of the shape to which all broadcast."""
    shape = broadcast(*[x.shape for x in arrays])
    return [x.broadcast(shape) for x in arrays]


def matmul(x: Operand, y: Operand, turned: tuple[bool, bool]) -> Any:
    """x @ y, or `x.T @ y` and the like, which is one product."""
    given = _arrays(x, y)
    if given is None or not all(0 < a.ndim < 3 for a in given) or given[0].type.dtype != given[1].type.dtype:
        return (x.T if turned[0] else x) @ (y.T if turned[1] else y)
    a, b = given
    ends = (0 if turned[0] else a.ndim - 1), (b.ndim - 1 if turned[1] else 0)
    return product(a, b, ((ends[0],), (ends[1],)))


def outer(x: Operand, y: Operand) -> Any:
    """np.outer of vectors."""
    given = _arrays(x, y)
    if given is None or any(a.ndim != 1 for a in given) or given[0].type.dtype != given[1].type.dtype:
        return np.outer(x, y)
    return product(given[0], given[1], ((), ()))


def stack(rows: Any) -> Any:
    """np.stack, also of rows that a loop has stacked."""
    return rows if isinstance(rows, Array) else np.stack(rows)


def in_order(rows: Any) -> Any:
    """The rows of a loop that goes backwards, of which those that are stacked are in order."""
    return rows if isinstance(rows, Array) else rows[::-1]


def arange(n: Any, dtype: Any) -> Any:
    """np.arange, which counts where the graph runs."""
    recorder = innermost()
    if recorder is None or not (isinstance(n, OpenSize) or (isinstance(n, int) and n >= 0)):
        return np.arange(n, dtype=dtype)
    return recorder.emit("iota", dtype=known(np.dtype(dtype)), shape=(n,), dimension=0)


def view(x: Operand, dtype: Any) -> Any:
    """x.view(dtype), of a dtype of as many bits."""
    given = _arrays(x)
    if given is None or dtype_of(given[0].type.dtype).itemsize != np.dtype(dtype).itemsize:
        return x.view(dtype)
    return given[0].emit("bitcast_convert_type", new_dtype=known(np.dtype(dtype)))


_ACCUMULATING: Mapping[str, Callable[..., Any]] = {
    "cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate, "cummin": np.minimum.accumulate,
    "cumlogsumexp": np.logaddexp.accumulate,
}  # fmt: skip


def accumulated(op: str, reverse: bool, x: Operand, axis: int, **options: Any) -> Any:
    """np.cumsum and the like, from the other end if `reverse`. NumPy's adds small integers in wide ones if nothing else is said."""
    own, function = resolved(x), _ACCUMULATING[op]
    recorder = innermost()
    if recorder is not None and isinstance(axis, int) and axis >= 0 and options.keys() <= {"dtype"}:
        given = as_array(recorder, own)
        dtype = dtype_of(given.type.dtype)
        widens = op in ("cumsum", "cumprod") and dtype.kind in "iub" and dtype.itemsize < 8
        if options.get("dtype", None if widens else dtype) == dtype:
            return given.emit(op, axis=axis, reverse=reverse)
    return np.flip(function(np.flip(x, axis), axis=axis, **options), axis) if reverse else function(x, axis=axis, **options)


def bitwise(op: str, x: Operand, axis: tuple[int, ...]) -> Any:
    """np.bitwise_and.reduce and the like."""
    given = _arrays(x)
    if given is None or not isinstance(axis, tuple):
        return getattr(np, f"bitwise_{op}").reduce(x, axis=axis)
    return given[0].emit(f"reduce_{op}", axes=axis)


def extreme(op: str, x: Operand, initial: Operand, axis: Any = None) -> Any:
    """np.max and np.min of what may have no elements, whose extreme is an infinity."""
    given, least = _arrays(x), -np.inf if op == "max" else np.inf
    if given is None or not given[0].type.inexact or given[0].type.complex or not (isinstance(initial, float) and initial == least):
        return getattr(np, op)(x, axis=axis, initial=initial)
    return reduce(given[0], f"reduce_{op}", axis, keepdims=False)


def number(dtype: Any, x: Any) -> Any:
    """np.float64(x) and the like, of numbers and of sizes."""
    recorder = innermost() if isinstance(x, OpenSize) else None
    return dtype(x) if recorder is None else number_of(recorder, x, np.dtype(dtype))


def pad(x: Operand, widths: Sequence[tuple[int, int]], constant_values: Operand = 0) -> Any:
    """np.pad with one number around."""
    own = resolved(x)
    pairs = isinstance(widths, tuple | list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in widths)
    if pairs and any(isinstance(n, OpenSize) for pair in widths for n in pair):
        own = as_array(innermost(), own)
    is_plain = pairs and isinstance(own, Array) and len(widths) == own.ndim
    given = _converted(own, constant_values, dtype=own.type.dtype) if is_plain else None
    if given is None or given[1].ndim:
        return np.pad(x, widths, constant_values=constant_values)
    return given[0].emit("pad", given[1], padding_config=tuple([(*pair, 0) for pair in widths]))


def rsqrt(x: Operand) -> Any:
    """1 / np.sqrt(x)."""
    given = _arrays(x)
    return 1 / np.sqrt(x) if given is None or not given[0].type.inexact else given[0].emit("rsqrt")


def clip(x: Operand, low: Operand, high: Operand) -> Any:
    """np.clip."""
    own = resolved(x)
    dtype = own.type.dtype if isinstance(own, Array) else known(np.asarray(own).dtype)
    given = _converted(x, low, high, dtype=dtype)
    if given is None or len({a.type.dtype for a in given}) > 1:
        return np.clip(x, low, high)
    if given[1].ndim or given[2].ndim:
        given = _alike(given)
    clipped = given[1].emit("clamp", given[0], given[2])
    is_place = given[0].type.dtype in INTEGERS and isinstance(low, int) and low == 0 and isinstance(high, int | OpenSize)
    return Clipped(clipped, given[0], high) if is_place else clipped


def select(index: Operand, *cases: Operand) -> Any:
    """`np.select([i < 1, i < 2, ...], cases, default)`, the default being the last case."""
    own = [resolved(x) for x in cases]
    first = next((x for x in own if not isinstance(x, bool | int | float | complex)), own[0])
    dtype = first.type.dtype if isinstance(first, Array) else known(np.asarray(first).dtype)
    given, at = _converted(*own, index, dtype=dtype), resolved(index)
    if given is None or len({x.type.dtype for x in given[:-1]}) > 1 or given[-1].type.dtype != "i32":
        return np.select([at < k for k in range(1, len(cases))], list(cases[:-1]), cases[-1])
    *values, at = given
    shape = broadcast(*[x.shape for x in given])
    return (at.broadcast(shape) if at.ndim else at).emit("select_n", *[x.broadcast(shape) for x in values])


def _where_traced(operation: Callable[..., Any]) -> Callable[..., Any]:
    """A helper that is this operation, or what is written where that gives None."""

    def helper(function: Callable[..., Any]) -> Callable[..., Any]:
        def computed(*args: Any) -> Any:
            result = operation(*args)
            return function(*args) if result is None else result

        return computed

    return helper


def _same(op: str, **attrs: object) -> Callable[..., Any]:
    """A helper that is an operation of arrays of one shape and dtype."""

    def same(*operands: Operand) -> Array | None:
        given = _arrays(*operands)
        if given is None or len({x.type.dtype for x in given}) > 1:
            return None
        first, *others = _alike(given)
        return first.emit(op, *others, **attrs)

    return _where_traced(same)


@_where_traced
def _to_integer(x: Operand, dtype: Any) -> Array | None:
    given = _arrays(x)
    return given[0].convert(np.dtype(dtype)) if given else None


@_where_traced
def _complex(real: Operand, imag: Operand, dtype: Any) -> Array | None:
    given = _arrays(real, imag, dtype="f32" if dtype is np.complex64 else "f64")
    if given is None:
        return None
    a, b = _alike(given)
    return a.emit("complex", b)


@_where_traced
def _solve_triangular(a: Operand, b: Operand, lower: bool, unit: bool) -> Array | None:
    given, attrs = _arrays(a, b), dict.fromkeys(("transpose_a", "conjugate_a"), False)
    return given[0].emit("triangular_solve", given[1], left_side=True, lower=lower, unit_diagonal=unit, **attrs) if given else None


@_where_traced
def _lu(x: Operand) -> tuple[Array, ...] | None:
    given = _arrays(x)
    return given[0].recorder.emit_all("lu", given) if given else None


@_where_traced
def _permutation(pivots: Operand, n: int) -> Array | None:
    given = _arrays(pivots)
    return given[0].emit("lu_pivots_to_permutation", permutation_size=n) if given else None


@_where_traced
def _slice(x: Operand, starts: Sequence[Operand], sizes: Sequence[int]) -> Array | None:
    given = _arrays(x, *starts)
    return given[0].emit("dynamic_slice", *given[1:], slice_sizes=tuple(sizes)) if given else None


@_where_traced
def _updated(x: Operand, part: Operand, starts: Sequence[Operand]) -> Array | None:
    given = _arrays(x, part, *starts)
    return given[0].emit("dynamic_update_slice", *given[1:]) if given else None


@_where_traced
def _spread(x: Operand, fill: Operand, padding: Sequence[tuple[int, int]], dilation: Sequence[int]) -> Array | None:
    own = resolved(x)
    given = _arrays(own, fill, dtype=own.type.dtype) if isinstance(own, Array) else None
    config = tuple([(low, high, step - 1) for (low, high), step in zip(padding, dilation, strict=True)])
    return given[0].emit("pad", given[1], padding_config=config) if given else None


HELPERS: Mapping[str, Callable[..., Any]] = {
    "_strong_mul": _same("strong_mul"), "_strong_div": _same("strong_div"), "_logistic": _same("logistic"), "_div": _same("div"),
    "_rem": _same("rem"), "_clz": _same("clz"), "_shift_right_arithmetic": _same("shift_right_arithmetic"),
    "_round": _same("round", rounding_method="AWAY_FROM_ZERO"), "_constant": _same("stop_gradient"),
    "_cofactors": _same("cofactors"), "_to_integer": _to_integer, "_complex": _complex, "_solve_triangular": _solve_triangular,
    "_lu": _lu, "_permutation": _permutation, "_slice": _slice, "_updated": _updated, "_spread": _spread,
}  # fmt: skip
"""Functions above that of the graph, by name: from one as it is written to the operation that it stands for."""
