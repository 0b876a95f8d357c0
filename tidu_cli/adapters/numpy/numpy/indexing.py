"""Indexing as NumPy has it: integers, slices, None, Ellipsis, and arrays of integers, which become gathers."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, Shape
from tidu_cli.adapters.numpy.arrays.operands import Clipped, Operand, an_array, arrays_in, lift, lifted
from tidu_cli.adapters.numpy.errors import UntraceableError
from tidu_cli.errors import Remedy
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.sizes.open import OpenSize, larger
from tidu_cli.lax.arrays.windows import GatherDimensionNumbers

# What NumPy's functions are made of: axes and shapes as they take them, and primitives with NumPy's conventions.


Axes = Sequence[int]


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
    axes = tuple(normal_axis(a, rank) for a in (axis if isinstance(axis, tuple | list | range) else (axis,)))
    if len(set(axes)) < len(axes):
        raise ValueError(f"axes repeat: {list(axes)}")
    return axes


def along(x: Array, axis: Any) -> tuple[Array, int]:
    """x and an axis of it from 0 up; for None all its elements in a row."""
    return (x.reshaped((x.size,)), 0) if axis is None else (x, normal_axis(axis, x.ndim))


def size_of(n: Any) -> int:
    """An integer, or an open size."""
    return n if isinstance(n, OpenSize) else operator.index(n)  # type: ignore[return-value]


def sizes_of(shape: Any) -> Shape:
    """A shape that was given as one size or several."""
    return tuple(map(size_of, shape)) if isinstance(shape, tuple | list) else (size_of(shape),)


def resized(shape: Shape, axes: int | tuple[int, ...], n: int = 1) -> Shape:
    """A shape with n elements along an axis, or along several."""
    changed = axes if isinstance(axes, tuple) else (axes,)
    return tuple(n if k in changed else size for k, size in enumerate(shape))


def laid_along(axis: int, n: int, rank: int) -> Shape:
    """The shape of n elements along one of the axes."""
    return resized((1,) * rank, axis, n)


def common_shape(*shapes: Shape) -> Shape:
    """The shape that these broadcast to. Raises ValueError in the user's terms."""
    if all(s == shapes[0] for s in shapes):
        return shapes[0]
    if any(isinstance(n, OpenSize) for shape in shapes for n in shape):
        from tidu_cli.adapters.numpy.arrays.sizes import broadcast

        return broadcast(*shapes)
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"shapes {' and '.join(str(list(s)) for s in shapes)} do not broadcast together") from None


def unlike(told: str, a: Any, b: Any) -> ValueError:
    """The error of two sizes that ought to be one, with the way out where they are open."""
    if not isinstance(a, OpenSize) and not isinstance(b, OpenSize):
        return ValueError(told)
    from tidu_cli.adapters.numpy.arrays.sizes import DifferentSizesError

    return DifferentSizesError(told, a, b)


def is_given(option: Any) -> bool:
    """Whether an option of NumPy's was given."""
    return option is not None and option is not np._NoValue


def filled(x: Array, value: Any, shape: tuple[int, ...] | None = None) -> Array:
    """A number in the dtype of x, of its shape or another."""
    return x.constant(x.dtype.type(value), x.dtype).broadcast(x.shape if shape is None else shape)


def floating(x: Array, dtype: Any = None) -> Array:
    """x as floats or complex numbers, which it keeps: integers and bools become f64, as in NumPy's means."""
    if is_given(dtype):
        return x.convert(np.dtype(dtype))
    return x if x.type.inexact else x.convert("f64")


def select(condition: Array, if_true: Array, if_false: Array) -> Array:
    """if_true where the condition (bool) holds, else if_false; all of one shape."""
    return condition.emit("select_n", if_false, if_true)


def truth(x: Array) -> Array:
    """Whether elements are other than 0."""
    return x if x.type.dtype == "bool" else x.emit("ne", filled(x, 0))


def squares(x: Array) -> Array:
    """The squares of magnitudes: they have derivatives at 0, which magnitudes have not."""
    return x.emit("real") * x.emit("real") + x.emit("imag") * x.emit("imag") if x.type.complex else x * x


def is_nan(x: Array) -> Array:
    """Where x is NaN."""
    return x.emit("ne", x)


def places(x: Array, shape: tuple[int, ...], axis: int, dtype: str = "i64") -> Array:
    """For each place of a shape its number along an axis."""
    return x.recorder.emit("iota", dtype=dtype, shape=shape, dimension=axis % len(shape))


def reduce(x: Array, op: str, axis: Any, keepdims: Any) -> Array:
    """A reducing primitive along axes, all for None."""
    axes = normal_axes(axis, x.ndim)
    reduced = x.emit(op, axes=axes) if axes else x
    return reduced.reshaped(resized(x.shape, axes)) if keepdims is True else reduced


def product(x: Array, y: Array, contract: tuple[Axes, Axes], batch: tuple[Axes, Axes] = ((), ())) -> Array:
    """dot_general: axes of the result are batch, then those left of x, then of y. Products of bools are "and", sums "or"."""
    for a, b in (*zip(*contract, strict=True), *zip(*batch, strict=True)):
        if x.shape[a] != y.shape[b]:
            told = f"axis {a} of {x.type} has {x.shape[a]} elements, axis {b} of {y.type} has {y.shape[b]}"
            raise unlike(told, x.shape[a], y.shape[b])
    if x.type.dtype == "bool":
        return product(x.convert("i32"), y.convert("i32"), contract, batch) != 0
    numbers = tuple((tuple(a), tuple(b)) for a, b in (contract, batch))
    return x.emit("dot_general", y, dimension_numbers=numbers)


ALL_OF_IT = slice(None)


def indexed(x: Array, index: Operand) -> Array:
    """x[index]. Raises IndexError as NumPy does, UntraceableError for masks that are traced."""
    if isinstance(index, bool | np.bool_):
        x, index = x.reshaped((1, *x.shape)), np.zeros(int(index), np.int64)
    entries = expanded(x, index)
    advanced = [k for k, e in enumerate(entries) if isinstance(e, Array | np.ndarray)]
    x = sliced(x, [e for e in entries if e is not None])
    kept = [e for e in entries if advanced or not isinstance(e, int | OpenSize)]
    if not advanced:
        return x.reshaped(shown_shape(x.shape, entries))
    at = picked(x, kept)
    return _gathered(x, at).reshaped(at.shape)


def shown_shape(sliced: Sequence[int], entries: Sequence[Any]) -> tuple[int, ...]:
    """The shape that basic indices show of what `sliced` gave of this shape: without the axes of integers, and with new ones."""
    taken = (int, OpenSize)
    shape = iter([n for n, e in zip(sliced, (e for e in entries if e is not None), strict=True) if not isinstance(e, taken)])
    return tuple(1 if e is None else next(shape) for e in entries if not isinstance(e, taken))


def _as_integers(index: Any) -> str:
    """How to declare an input that is used as an index, as untyped data are floats."""
    recorder: Any = getattr(index, "recorder", None)
    if recorder is None or index.value >= len(recorder.inputs) or index.dtype.kind != "f":
        return ""
    type_ = f"{recorder.name_of(index.value)}:{replace(index.type, dtype='i64')}"
    name, _, short = type_.rpartition(":")
    return f"; declare it as such, {Remedy(name, type_, flag='-i', python=f'{name}={short!r}')}"


def part(x: Array, axis: int, entry: Any) -> Array:
    """What an index takes along one axis."""
    return indexed(x, (ALL_OF_IT,) * axis + (entry,))


def expanded(x: Array, index: Operand) -> list[Any]:
    """One entry per axis, and None for each new axis: integers from 0 up, slices, arrays of integers."""
    entries: list[Any] = []
    for e in index if isinstance(index, tuple) else (index,):
        if isinstance(e, list | range):
            e = lift(e, x) if any(isinstance(i, Array) for i in e) else np.asarray(e, None if len(e) else int)
        if isinstance(e, Array) and e.type.dtype == "bool":
            raise UntraceableError(
                "indexing with a mask that is traced gives an unknown shape; write np.where(mask, x, 0), or use a constant mask"
            )
        if isinstance(e, bool | np.bool_) or (isinstance(e, np.ndarray) and e.dtype == bool):
            mask = np.asarray(e)
            at = sum(1 for d in entries if d is not None and d is not Ellipsis)
            if not any(d is Ellipsis for d in entries) and mask.shape != x.shape[at : at + mask.ndim]:
                raise IndexError(f"a mask of shape {list(mask.shape)} does not fit {x.type}")
            if mask.ndim == 0:
                raise UntraceableError("indexing with one bool cannot be traced; write np.where")
            entries += list(np.nonzero(mask))
            continue
        if isinstance(e, Array | np.ndarray | np.generic) and not np.issubdtype(e.dtype, np.integer):
            told = f"type {e.type}" if isinstance(e, Array) else f"dtype {e.dtype}"
            raise IndexError(f"an index of {told}; indices are integers{_as_integers(e)}")
        if isinstance(e, np.integer) or (isinstance(e, np.ndarray) and e.ndim == 0):
            e = int(e)
        if not (e is None or e is Ellipsis or isinstance(e, int | OpenSize | slice | Array | np.ndarray)):
            raise IndexError(f"an index is an integer, a slice, None, ... or an array of integers, not {type(e).__name__}")
        entries.append(e)
    dots = [k for k, e in enumerate(entries) if e is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index has at most one ...")
    given = sum(1 for e in entries if e is not None and e is not Ellipsis)
    if given > x.ndim:
        raise IndexError(f"too many indices: {given} for {x.type}")
    at = dots[0] if dots else len(entries)
    entries[at : at + len(dots)] = [ALL_OF_IT] * (x.ndim - given)
    sizes = iter(x.shape)
    return [None if e is None else _normal(e, next(sizes), x) for e in entries]


def _is_place(e: Any) -> bool:
    """Whether an index is one place of an axis, of which the number may be an open size."""
    return isinstance(e, int | OpenSize)


def _normal(e: Any, n: int, x: Array) -> Any:
    """An index from 0 up for an axis of n elements."""
    if isinstance(e, slice):
        return e
    if _is_place(e):
        if not -n <= e < n:
            raise IndexError(f"index {e} is out of range for an axis of {n} elements of {x.type}")
        return e % n if isinstance(n, int) and isinstance(e, int) else e if e >= 0 else e + n
    if isinstance(e, np.ndarray):
        low, high = (int(e.min()), int(e.max())) if e.size else (0, -1)
        if e.size and (low < -n or high >= n):
            wrong = low if low < -n else high
            raise IndexError(f"index {wrong} is out of range for an axis of {n} elements of {x.type}")
        if not isinstance(n, OpenSize):
            return np.where(e < 0, e.astype(np.int64) + n, e.astype(np.int64))
        if low >= 0:
            return e.astype(np.int64)
        e = x.constant(e)
    if isinstance(e, Clipped) and (given := e.along(n)) is not None:
        return given
    e = e.convert("i64")
    return select(e < 0, e + n, e)


def sliced(x: Array, entries: list[Any]) -> Array:
    """x with the slices taken; an integer leaves an axis of size 1, unless there are index arrays, which take it."""
    arrays = any(isinstance(e, Array | np.ndarray) for e in entries)
    starts, limits, strides, reverse = [], [], [], []
    for axis, (n, e) in enumerate(zip(x.shape, entries, strict=True)):
        entry = e if isinstance(e, slice) else slice(e, e + 1) if _is_place(e) and not arrays else ALL_OF_IT
        if any(isinstance(k, OpenSize) for k in (n, entry.start, entry.stop)):
            start, limit, step = open_slice(n, entry)
            strides.append(abs(step))
        else:
            taken = range(n)[entry]
            step = taken.step
            strides.append(min(abs(step), max(n, 1)))
            taken = taken if step > 0 else taken[::-1] or range(0)
            start, limit = taken.start, taken[-1] + 1 if taken else taken.start
        reverse += [axis] if step < 0 else []
        starts.append(start)
        limits.append(limit)
    if (starts, limits) != ([0] * x.ndim, list(x.shape)) or any(s != 1 for s in strides):
        some = None if all(s == 1 for s in strides) else tuple(strides)
        x = x.emit("slice", start_indices=tuple(starts), limit_indices=tuple(limits), strides=some)
    return x.emit("rev", dimensions=tuple(reverse)) if reverse else x


def open_slice(n: int, entry: slice) -> tuple[int, int, int]:
    """Where a slice of an axis of open size begins and ends, from 0 up, and its step: if that is negative, it goes from the end.

    Of the sizes of slices only the largest of one and 0 is taken, so that those of x[2:] and x[1:-1] are one.
    """
    step = 1 if entry.step is None else operator.index(entry.step)
    if step < 0 and (step != -1 or entry.start is not None or entry.stop is not None):
        raise UntraceableError(f"a slice with step {step} of an axis of the open size {n}; write x[::-1], and slice that")
    if step < 0:
        return 0, n, step
    first = 0 if entry.start is None else _clipped(size_of(entry.start), n)
    stop = n if entry.stop is None else _clipped(size_of(entry.stop), n)
    return first, first + larger(stop - first, 0), step


def _clipped(at: int, n: int) -> int:
    """A place between 0 and n, for an end of a slice, which may count from the end."""
    place: int = n - larger(n - at, 0) if at >= 0 else larger(n + at, 0)
    return place


class Picked(Frozen, slots=False):
    """What arrays of integers pick of an array: windows along the axes `offsets` of what they give, at the index `vectors`.

    `axes` are those of the array that the vectors index. `gathered` is the shape of the windows, and `shape` that with new axes.
    `constant` are the places as NumPy's integers, an axis each, None if one of them is traced.
    """

    vectors: Array
    axes: tuple[int, ...]
    offsets: tuple[int, ...]
    gathered: tuple[int, ...]
    shape: tuple[int, ...]
    constant: tuple[Any, ...] | None


def picked(x: Array, entries: list[Any]) -> Picked:
    """The axes of integers and index arrays become those of the arrays, broadcast: in their place if it is one, else in front."""
    entries = [lift(e, x, "i64") if isinstance(e, OpenSize) else e for e in entries]
    places = [k for k, e in enumerate(entries) if isinstance(e, int | Array | np.ndarray)]
    axis_of = {k: sum(1 for e in entries[:k] if e is not None) for k in range(len(entries))}
    axes = tuple(axis_of[k] for k in places)
    constant = all(isinstance(entries[k], int | np.ndarray) for k in places)
    batch = common_shape(*(np.shape(entries[k]) for k in places))
    if constant:
        constants = tuple(np.broadcast_to(entries[k], batch) for k in places)
        vectors = x.constant(np.stack(constants, axis=-1), np.int64)
    else:
        columns = [lift(entries[k], x, None if len(places) == 1 else np.dtype(np.int64)) for k in places]
        columns = [column.broadcast(batch).reshaped((*batch, 1)) for column in columns]
        vectors = columns[0] if len(columns) == 1 else columns[0].emit("concatenate", *columns[1:], dimension=len(batch))
    together = places[-1] - places[0] + 1 == len(places)
    windows = [k for k, e in enumerate(entries) if e is not None and k not in places]
    first = sum(1 for k in windows if k < places[0]) if together else 0
    offsets = tuple(k if k < first else k + len(batch) for k in range(len(windows)))
    sizes = [x.shape[axis_of[k]] for k in windows]
    gathered = (*sizes[:first], *batch, *sizes[first:])
    # New axes go where None stands among what is not an index array.
    shape = [1 if e is None else x.shape[axis_of[k]] for k, e in enumerate(entries) if k not in places]
    at = places[0] if together else 0
    shape[at:at] = batch
    return Picked(vectors, axes, offsets, gathered, tuple(shape), constants if constant else None)


def _gathered(x: Array, at: Picked) -> Array:
    """What is picked of x."""
    if math.prod(at.gathered) == 0 or x.size == 0:
        return filled(x, 0, at.gathered)
    return x.emit(
        "gather",
        at.vectors,
        dimension_numbers=GatherDimensionNumbers(
            offset_dims=at.offsets, collapsed_slice_dims=tuple(sorted(at.axes)), start_index_map=at.axes
        ),
        slice_sizes=tuple(1 if a in at.axes else n for a, n in enumerate(x.shape)),
        mode="clip" if at.constant is None else "promise_in_bounds",
    )


def taken(x: Operand, indices: Operand, axis: int | None = None, out: object = None, mode: str = "raise") -> Array:
    """np.take. With mode "raise" traced places that are out of range are clipped, as in indexing."""
    x, axis = along(lift(x, arrays_in([x, indices])[0]), axis)
    n = x.shape[axis]
    at: Any = an_array(indices) if arrays_in([indices]) else np.asarray(indices)
    if mode == "wrap":
        at = at % n
    elif mode == "clip":
        low, high = at.dtype.type(0), at.dtype.type(n - 1)
        at = np.minimum(np.maximum(at, low), high)
    elif mode != "raise":
        raise ValueError(f"mode is 'raise', 'wrap' or 'clip', not {mode!r}")
    return part(x, axis, at)


def taken_along(x: Operand, indices: Operand, axis: int | None = -1) -> Array:
    """np.take_along_axis: one index per element."""
    x, at = lifted(x, indices)
    x, axis = along(x, axis)
    if at.ndim != x.ndim:
        raise ValueError(f"take_along_axis takes as many axes of places as of elements, got {at.type} for {x.type}")
    shape = resized(common_shape(resized(x.shape, axis), resized(at.shape, axis)), axis, at.shape[axis])
    index = [
        at.broadcast(shape) if k == axis else places(x, shape, k) if n != 1 else x.constant(0).broadcast(shape)
        for k, n in enumerate(x.shape)
    ]
    return indexed(x, tuple(index))
