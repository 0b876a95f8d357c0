"""Functions that move elements: shapes, axes, joining, splitting, padding, triangles and diagonals."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tidu_cli.build.array import Array, Operand, lift, result_dtype
from tidu_cli.build.elementwise import common_shape, select, truth
from tidu_cli.build.indexing import indexed
from tidu_cli.build.recorder import arrays_in
from tidu_cli.build.trouble import BuildError, UntraceableError

MAX_REPEATS = 10_000_000
"""As many elements as different counts may make: their places become a constant."""


def lifted(*values: Operand) -> list[Array]:
    """Operands as Arrays of one dtype, the one that NumPy promotes them to. One of them is an Array, or holds one."""
    like = arrays_in(values)[0]
    dtype = result_dtype(*values)
    return [lift(v, like, dtype) for v in values]


def an_array(x: Operand) -> Array:
    """An Array from itself or from nested lists that hold some."""
    return lift(x, arrays_in([x])[0])


def normal_axis(axis: Any, rank: int) -> int:
    """An axis from 0 up. Raises np.exceptions.AxisError's text as a ValueError."""
    k = operator.index(axis)
    if not -rank <= k < rank:
        raise ValueError(f"axis {k} is out of range for an array of {rank} axes")
    return k % rank


def normal_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Axes from 0 up, all for None, each once."""
    if axis is None:
        return tuple(range(rank))
    axes = tuple(normal_axis(a, rank) for a in (axis if isinstance(axis, tuple | list) else (axis,)))
    if len(set(axes)) < len(axes):
        raise ValueError(f"axes repeat: {list(axes)}")
    return axes


def require_row_major(order: str | None) -> None:
    """Raises UntraceableError for other orders than NumPy's default."""
    if order not in ("C", "K", "A", None):
        raise UntraceableError(f"order={order!r} cannot be traced; transpose first")


def _sizes(shape: Any) -> tuple[int, ...]:
    return tuple(operator.index(n) for n in shape) if isinstance(shape, tuple | list) else (operator.index(shape),)


def reshape(x: Operand, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: object = None) -> Array:
    """np.reshape."""
    require_row_major(order)
    x = an_array(x)
    sizes = _sizes(newshape if shape is None else shape)
    if sizes.count(-1) == 1:
        others = math.prod(n for n in sizes if n != -1)
        if others == 0 or x.size % others:
            raise ValueError(f"{x.type} does not reshape to {list(sizes)}")
        sizes = tuple(x.size // others if n == -1 else n for n in sizes)
    if math.prod(sizes) != x.size or any(n < 0 for n in sizes):
        raise ValueError(f"{x.type} has {x.size} elements and does not reshape to {list(sizes)}")
    return x.reshaped(sizes)  # type: ignore[no-any-return]


def ravel(x: Operand, order: str = "C") -> Array:
    """np.ravel."""
    return reshape(x, -1 if an_array(x).size else (0,), order)


def transpose(x: Operand, axes: Any = None) -> Array:
    """np.transpose."""
    x = an_array(x)
    if axes is None:
        return x.permuted(range(x.ndim)[::-1])  # type: ignore[no-any-return]
    permutation = normal_axes(axes, x.ndim)
    if len(permutation) != x.ndim:
        raise ValueError(f"axes {list(permutation)} do not permute the {x.ndim} axes of {x.type}")
    return x.permuted(permutation)  # type: ignore[no-any-return]


def swapaxes(x: Operand, axis1: int, axis2: int) -> Array:
    """np.swapaxes."""
    x = an_array(x)
    axes = list(range(x.ndim))
    a, b = normal_axis(axis1, x.ndim), normal_axis(axis2, x.ndim)
    axes[a], axes[b] = b, a
    return x.permuted(axes)  # type: ignore[no-any-return]


def matrix_transpose(x: Operand) -> Array:
    """np.matrix_transpose."""
    return swapaxes(x, -1, -2)


def moveaxis(x: Operand, source: Any, destination: Any) -> Array:
    """np.moveaxis."""
    x = an_array(x)
    old, new = normal_axes(source, x.ndim), normal_axes(destination, x.ndim)
    if len(old) != len(new):
        raise ValueError("source and destination must have as many axes")
    axes = [k for k in range(x.ndim) if k not in old]
    for place, axis in sorted(zip(new, old, strict=True)):
        axes.insert(place, axis)
    return x.permuted(axes)  # type: ignore[no-any-return]


def rollaxis(x: Operand, axis: int, start: int = 0) -> Array:
    """np.rollaxis."""
    x = an_array(x)
    axis = normal_axis(axis, x.ndim)
    start = start + x.ndim if start < 0 else start
    return moveaxis(x, axis, start - 1 if axis < start else start)


def expand_dims(x: Operand, axis: Any) -> Array:
    """np.expand_dims."""
    x = an_array(x)
    many = axis if isinstance(axis, tuple | list) else (axis,)
    new = normal_axes(many, x.ndim + len(many))
    sizes = iter(x.shape)
    return x.reshaped(tuple(1 if k in new else next(sizes) for k in range(x.ndim + len(new))))  # type: ignore[no-any-return]


def squeeze(x: Operand, axis: Any = None) -> Array:
    """np.squeeze."""
    x = an_array(x)
    gone = tuple(k for k, n in enumerate(x.shape) if n == 1) if axis is None else normal_axes(axis, x.ndim)
    if any(x.shape[k] != 1 for k in gone):
        raise ValueError(f"squeeze takes axes of size 1, but those of {x.type} given are not")
    return x.reshaped(tuple(n for k, n in enumerate(x.shape) if k not in gone))  # type: ignore[no-any-return]


def broadcast_to(x: Operand, shape: Any, subok: bool = False) -> Array:
    """np.broadcast_to."""
    return an_array(x).broadcast(_sizes(shape))


def broadcast_arrays(*arrays: Operand, subok: bool = False) -> tuple[Array, ...]:
    """np.broadcast_arrays."""
    like = arrays_in(arrays)[0]
    found = [lift(x, like) for x in arrays]
    shape = common_shape(*(x.shape for x in found))
    return tuple(x.broadcast(shape) for x in found)


def atleast_1d(x: Operand) -> Array:
    """np.atleast_1d of one array."""
    x = an_array(x)
    return x if x.ndim else x.reshaped((1,))  # type: ignore[no-any-return]


def atleast_2d(x: Operand) -> Array:
    """np.atleast_2d of one array."""
    x = atleast_1d(x)
    return x if x.ndim > 1 else x.reshaped((1, *x.shape))  # type: ignore[no-any-return]


def atleast_3d(x: Operand) -> Array:
    """np.atleast_3d of one array."""
    x = atleast_2d(x) if an_array(x).ndim != 1 else an_array(x).reshaped((1, an_array(x).size))
    return x if x.ndim > 2 else x.reshaped((*x.shape, 1))  # type: ignore[no-any-return]


def concatenate(
    arrays: Sequence[Operand], axis: int | None = 0, out: object = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Array:
    """np.concatenate."""
    if isinstance(arrays, Array):
        arrays = list(arrays)
    parts = lifted(*arrays)
    if dtype is not None:
        parts = [x.astype(dtype) for x in parts]
    if axis is None:
        parts, axis = [x.reshaped((x.size,)) for x in parts], 0
    if not parts[0].shape:
        raise ValueError("arrays without axes cannot be concatenated; use stack")
    axis = normal_axis(axis, parts[0].ndim)
    return parts[0].emit("concatenate", *parts[1:], dimension=axis) if len(parts) > 1 else parts[0]


def stack(arrays: Sequence[Operand], axis: int = 0, out: object = None, *, dtype: Any = None, casting: str = "same_kind") -> Array:
    """np.stack."""
    parts = lifted(*arrays)
    if any(x.shape != parts[0].shape for x in parts):
        raise ValueError(f"stack takes arrays of one shape, got {', '.join(str(x.type) for x in parts[:8])}")
    axis = normal_axis(axis, parts[0].ndim + 1)
    return concatenate([expand_dims(x, axis) for x in parts], axis, dtype=dtype)


def vstack(arrays: Sequence[Operand], **options: Any) -> Array:
    """np.vstack."""
    return concatenate([atleast_2d(x) for x in lifted(*arrays)], 0, **options)


def hstack(arrays: Sequence[Operand], **options: Any) -> Array:
    """np.hstack."""
    parts = [atleast_1d(x) for x in lifted(*arrays)]
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1, **options)


def dstack(arrays: Sequence[Operand]) -> Array:
    """np.dstack."""
    return concatenate([atleast_3d(x) for x in lifted(*arrays)], 2)


def column_stack(arrays: Sequence[Operand]) -> Array:
    """np.column_stack."""
    return concatenate([x if x.ndim > 1 else x.reshaped((x.size, 1)) for x in lifted(*arrays)], 1)


def append(x: Operand, values: Operand, axis: int | None = None) -> Array:
    """np.append."""
    return concatenate([x, values], axis)


def array_split(x: Operand, sections: Any, axis: int = 0) -> list[Array]:
    """np.array_split."""
    x = an_array(x)
    axis = normal_axis(axis, x.ndim)
    n = x.shape[axis]
    if isinstance(sections, int | np.integer):
        if not 0 < sections <= 100_000:
            raise ValueError("the number of sections is from 1 to 100,000")
        each, more = divmod(n, int(sections))
        ends = np.cumsum([each + 1] * more + [each] * (int(sections) - more)).tolist()[:-1]
    else:
        ends = [operator.index(k) for k in sections]
    return [indexed(x, (slice(None),) * axis + (slice(a, b),)) for a, b in zip([0, *ends], [*ends, n], strict=True)]


def split(x: Operand, sections: Any, axis: int = 0) -> list[Array]:
    """np.split."""
    n = an_array(x).shape[normal_axis(axis, an_array(x).ndim)]
    if isinstance(sections, int) and (sections < 1 or n % sections):
        raise ValueError(f"{n} elements do not split into {sections} equal sections")
    return array_split(x, sections, axis)


def unstack(x: Operand, *, axis: int = 0) -> tuple[Array, ...]:
    """np.unstack."""
    return tuple(moveaxis(x, axis, 0))


def tile(x: Operand, reps: Any) -> Array:
    """np.tile."""
    x, counts = an_array(x), _sizes(reps)
    rank = max(x.ndim, len(counts))
    sizes = (1,) * (rank - x.ndim) + x.shape
    counts = (1,) * (rank - len(counts)) + counts
    paired = x.reshaped(tuple(k for n in sizes for k in (1, n))).broadcast(
        tuple(k for c, n in zip(counts, sizes, strict=True) for k in (c, n))
    )
    return paired.reshaped(tuple(c * n for c, n in zip(counts, sizes, strict=True)))  # type: ignore[no-any-return]


def repeat(x: Operand, repeats: Any, axis: int | None = None) -> Array:
    """np.repeat."""
    x = an_array(x)
    if axis is None:
        x, axis = ravel(x), 0
    axis = normal_axis(axis, x.ndim)
    if np.ndim(repeats):
        if sum(operator.index(n) for n in repeats) > MAX_REPEATS:
            raise ValueError(f"counts of repeats add up to {MAX_REPEATS:,} at most; write one count for all")
        return indexed(x, (slice(None),) * axis + (np.repeat(np.arange(x.shape[axis]), np.asarray(repeats)),))
    n, before, after = operator.index(repeats), x.shape[:axis], x.shape[axis + 1 :]
    spread = x.reshaped((*before, x.shape[axis], 1, *after)).broadcast((*before, x.shape[axis], n, *after))
    return spread.reshaped((*before, x.shape[axis] * n, *after))  # type: ignore[no-any-return]


def flip(x: Operand, axis: Any = None) -> Array:
    """np.flip."""
    x = an_array(x)
    axes = normal_axes(axis, x.ndim)
    return x.emit("rev", dimensions=axes) if axes else x  # type: ignore[no-any-return]


def roll(x: Operand, shift: Any, axis: Any = None) -> Array:
    """np.roll."""
    x = an_array(x)
    if axis is None:
        return roll(ravel(x), shift, 0).reshaped(x.shape)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    shifts = shift if isinstance(shift, tuple | list) else (shift,) * len(axes)
    for by, a in zip(shifts, axes, strict=True):
        k = normal_axis(a, x.ndim)
        at = -operator.index(by) % x.shape[k] if x.shape[k] else 0
        if at:
            whole = (slice(None),) * k
            x = concatenate([indexed(x, (*whole, slice(at, None))), indexed(x, (*whole, slice(None, at)))], k)
    return x  # type: ignore[no-any-return]


def pad(x: Operand, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Array:
    """np.pad, with mode "constant"."""
    x = an_array(x)
    if mode != "constant" or np.ndim(constant_values):
        raise UntraceableError("np.pad is traced with mode='constant' and one constant value; write np.concatenate for others")
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError("pad widths cannot be negative")
    value = lift(constant_values, x, x.dtype)
    return x.emit("pad", value, padding_config=tuple((int(a), int(b), 0) for a, b in widths))  # type: ignore[no-any-return]


def _positions(x: Array) -> tuple[Array, Array]:
    rows, columns = (x.recorder.emit("iota", dtype="i64", shape=x.shape, dimension=x.ndim + k) for k in (-2, -1))
    return rows, columns


def tril(x: Operand, k: int = 0) -> Array:
    """np.tril."""
    x = an_array(x)
    x = x if x.ndim > 1 else x.broadcast((x.size, x.size))
    rows, columns = _positions(x)
    return select(columns - rows <= k, x, x.constant(x.dtype.type(0)).broadcast(x.shape))


def triu(x: Operand, k: int = 0) -> Array:
    """np.triu."""
    x = an_array(x)
    x = x if x.ndim > 1 else x.broadcast((x.size, x.size))
    rows, columns = _positions(x)
    return select(columns - rows >= k, x, x.constant(x.dtype.type(0)).broadcast(x.shape))


def diagonal(x: Operand, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """np.diagonal."""
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = x.shape[-2:]
    n = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    at = x.recorder.emit("iota", dtype="i64", shape=(n,), dimension=0)
    return indexed(x, (Ellipsis, at + max(-offset, 0) if offset < 0 else at, at + offset if offset > 0 else at))


def diag(x: Operand, k: int = 0) -> Array:
    """np.diag: the diagonal of a matrix, or the matrix of a diagonal."""
    x = an_array(x)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError(f"diag takes a vector or a matrix, got {x.type}")
    n = x.size + abs(k)
    column = pad(x, (max(k, 0), max(-k, 0))) if k else x
    square = column.broadcast((n, n))
    rows, columns = _positions(square)
    return select(
        (columns - rows).emit("eq", lift(k, rows, rows.dtype).broadcast((n, n))),
        square,
        square.constant(x.dtype.type(0)).broadcast((n, n)),
    )


def diff(x: Operand, n: int = 1, axis: int = -1) -> Array:
    """np.diff."""
    x = an_array(x)
    if not 0 <= n <= 1000:
        raise ValueError("n is from 0 to 1000")
    whole = (slice(None),) * normal_axis(axis, x.ndim)
    for _ in range(n):
        after, before = indexed(x, (*whole, slice(1, None))), indexed(x, (*whole, slice(None, -1)))
        x = after.emit("ne", before) if x.type.dtype == "bool" else after - before
    return x  # type: ignore[no-any-return]


def where(condition: Operand, *cases: Operand) -> Array:
    """np.where with three arguments."""
    if len(cases) != 2:
        raise UntraceableError("np.where(condition) gives an array of unknown shape; write np.where(condition, a, b)")
    like = arrays_in((condition, *cases))[0]
    dtype = result_dtype(*cases)
    which, *options = truth(lift(condition, like)), *(lift(x, like, dtype) for x in cases)
    shape = common_shape(which.shape, *(x.shape for x in options))
    return select(which.broadcast(shape), *(x.broadcast(shape) for x in options))


def choose(conditions: Sequence[Operand], choices: Sequence[Operand], default: Operand = 0) -> Array:
    """np.select."""
    if len(conditions) != len(choices):
        raise ValueError("as many conditions as choices")
    found: Operand = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        found = where(condition, choice, found)
    return an_array(found)


def meshgrid(*arrays: Operand, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> list[Array]:
    """np.meshgrid."""
    like = arrays_in(arrays)[0]
    axes = [ravel(lift(x, like)) for x in arrays]
    order = [1, 0, *range(2, len(axes))] if indexing == "xy" and len(axes) > 1 else list(range(len(axes)))
    shaped = [x.reshaped(tuple(x.size if order[k] == j else 1 for j in range(len(axes)))) for k, x in enumerate(axes)]
    return shaped if sparse else list(broadcast_arrays(*shaped))


def full_like(
    x: Operand, fill_value: Operand, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **options: Any
) -> Array:
    """np.full_like."""
    like = arrays_in([x, fill_value])[0]
    model = lift(x, like)
    wanted = model.dtype if dtype is None else np.dtype(dtype)
    return lift(fill_value, like, wanted).broadcast(model.shape if shape is None else _sizes(shape))


def require_matrix(x: Array) -> None:
    """Raises BuildError for fewer axes than two."""
    if x.ndim < 2:
        raise BuildError(f"takes a matrix, got {x.type}")
