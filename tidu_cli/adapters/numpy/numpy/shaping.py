"""Shapes and axes, joining, splitting, repeating and padding: functions that move elements and compute nothing.

The functions of this module and those beside it are NumPy's of the same name. What they take as an `Array` has been made one.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, Shape
from tidu_cli.adapters.numpy.arrays.operands import Operand, an_array, arrays_in, lift, lifted, lifted_as_arrays, lifted_weak
from tidu_cli.adapters.numpy.errors import UntraceableError
from tidu_cli.adapters.numpy.numpy.indexing import (
    along,
    common_shape,
    filled,
    indexed,
    normal_axes,
    normal_axis,
    part,
    places,
    resized,
    size_of,
    sizes_of,
)
from tidu_cli.graph.sizes.open import OpenSize, least, smaller, surely


def _empty(x: Array) -> Any:
    """A NumPy array of the shape of x, whatever its size: all elements are one."""
    return np.broadcast_to(np.empty(()), x.shape)


def _shapes(numpys: Callable[..., Any], *arrays: Array) -> list[Shape]:
    """The shapes that a function of NumPy's gives of arrays of these shapes."""
    if any(isinstance(n, OpenSize) for x in arrays for n in x.shape):
        from tidu_cli.adapters.numpy.arrays.sizes import open_shapes

        return open_shapes(numpys, [x.shape for x in arrays])
    result = numpys(*map(_empty, arrays))
    return [x.shape for x in (result if isinstance(result, list | tuple) else [result])]


def reshape(x: Array, shape: Any = None, order: str | None = "C", *, newshape: Any = None, copy: object = None) -> Array:
    if order not in ("C", "K", "A", None):
        raise UntraceableError(f"order={order!r} cannot be traced; transpose first")
    sizes = sizes_of(newshape if shape is None else shape)
    if any(isinstance(n, OpenSize) for n in (*x.shape, *sizes)):
        from tidu_cli.adapters.numpy.arrays.sizes import reshaped

        return x.reshaped(reshaped(x.type, sizes))
    try:
        return x.reshaped(_empty(x).reshape(sizes).shape)
    except ValueError:
        raise ValueError(f"{x.type} has {x.size} elements and does not reshape to {list(sizes)}") from None


def ravel(x: Array, order: str = "C") -> Array:
    return reshape(x, (x.size,), order)


def _permuting(numpys: Callable[..., Any]) -> Callable[..., Array]:
    """A function of NumPy's that puts axes in another order. NumPy says which, of an array whose axis k has k elements."""

    def permuted(x: Array, *args: Any, **options: Any) -> Array:
        return x.permuted(numpys(np.empty(range(x.ndim)), *args, **options).shape)

    return permuted


swapaxes, moveaxis = _permuting(np.swapaxes), _permuting(np.moveaxis)
rollaxis, transpose = _permuting(np.rollaxis), _permuting(np.transpose)


def matrix_transpose(x: Array) -> Array:
    return swapaxes(x, -1, -2)


def _with_axes_of_one(numpys: Callable[..., Any]) -> Callable[..., Array]:
    """A function of NumPy's that adds or drops axes of one element."""

    def reshaped(x: Array, *args: Any, **options: Any) -> Array:
        return x.reshaped(_shapes(lambda empty: numpys(empty, *args, **options), x)[0])

    return reshaped


expand_dims, _squeeze = _with_axes_of_one(np.expand_dims), _with_axes_of_one(np.squeeze)


def squeeze(x: Array, axis: Any = None) -> Array:
    one = next((n for n in x.shape if isinstance(n, OpenSize) and least(n) < 2), None)
    if axis is None and one is not None:
        from tidu_cli.graph.sizes.names import way_to_be_at_least

        way = way_to_be_at_least(one, 2).removeprefix("; ")
        raise ValueError(f"squeeze of {x.type} drops axes that may have one element; say which, with axis=, or {way}")
    return _squeeze(x, axis)


def _of_each(numpys: Callable[..., Any]) -> Callable[..., Any]:
    """A function that adds axes to one array, or to several, one after the other."""

    def of_each(*arrays: Operand) -> Any:
        results = tuple(map(_with_axes_of_one(numpys), lifted(*arrays)))
        return results[0] if len(results) == 1 else results

    return of_each


atleast_1d, atleast_2d, atleast_3d = map(_of_each, (np.atleast_1d, np.atleast_2d, np.atleast_3d))


def broadcast_to(x: Array, shape: Any, subok: bool = False) -> Array:
    return x.broadcast(sizes_of(shape))


def broadcast_arrays(*arrays: Operand, subok: bool = False) -> tuple[Array, ...]:
    given = lifted(*arrays)
    shape = common_shape(*(x.shape for x in given))
    return tuple(x.broadcast(shape) for x in given)


def flip(x: Array, axis: Any = None) -> Array:
    axes = normal_axes(axis, x.ndim)
    return x.emit("rev", dimensions=axes) if axes else x


def rot90(x: Array, k: int = 1, axes: Any = (0, 1)) -> Array:
    a, b = normal_axes(axes, x.ndim)
    k = operator.index(k) % 4
    if k % 2 == 0:
        return flip(x, (a, b)) if k else x
    return flip(swapaxes(x, a, b), a) if k == 1 else swapaxes(flip(x, a), a, b)


def meshgrid(*arrays: Operand, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> list[Array]:
    axes = list(map(ravel, lifted(*arrays)))
    shapes = _shapes(lambda *empty: np.meshgrid(*empty, indexing=indexing, sparse=True, copy=False), *axes)  # type: ignore[call-overload]
    shaped = [x.reshaped(shape) for x, shape in zip(axes, shapes, strict=True)]
    return shaped if sparse else list(broadcast_arrays(*shaped))


MAX_REPEATS = 10_000_000
"""As many places as different counts of repeats, or padding from the array itself, may make: they become a constant."""


def concatenate(
    arrays: Sequence[Operand], axis: int | None = 0, out: object = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Array:
    """Python numbers, which it takes for axis=None, give way."""
    parts = lifted_weak(*arrays)
    if dtype is not None:
        parts = [x.astype(dtype) for x in parts]
    if axis is None:
        parts, axis = [ravel(x) for x in parts], 0
    if not parts[0].shape:
        raise ValueError("arrays without axes cannot be concatenated; use stack")
    axis = normal_axis(axis, parts[0].ndim)
    return parts[0].emit("concatenate", *parts[1:], dimension=axis) if len(parts) > 1 else parts[0]


def stack(arrays: Sequence[Operand], axis: int = 0, out: object = None, *, dtype: Any = None, casting: str = "same_kind") -> Array:
    parts = lifted_as_arrays(*arrays)
    if any(x.shape != parts[0].shape for x in parts):
        raise ValueError(f"stack takes arrays of one shape, got {', '.join(str(x.type) for x in parts[:8])}")
    axis = normal_axis(axis, parts[0].ndim + 1)
    return concatenate([expand_dims(x, axis) for x in parts], axis, dtype=dtype)


def hstack(arrays: Sequence[Operand], **options: Any) -> Array:
    parts = [atleast_1d(x) for x in lifted_as_arrays(*arrays)]
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1, **options)


def array_split(x: Array, sections: Any, axis: int = 0) -> list[Array]:
    axis = normal_axis(axis, x.ndim)
    n = x.shape[axis]
    if isinstance(sections, int | np.integer):
        if not 0 < sections <= 100_000:
            raise ValueError("the number of sections is from 1 to 100,000")
        each, more = divmod(n, int(sections))
        ends = [k * each + smaller(k, more) for k in range(1, int(sections))]
    else:
        ends = [size_of(k) for k in sections]
    bounds = [0, *ends, n]
    if n and surely(lambda: all(a <= b for a, b in pairwise(bounds))):  # of one node cotangents are joined, not padded and added
        return list(x.recorder.emit_all("split", [x], sizes=tuple(b - a for a, b in pairwise(bounds)), axis=axis))
    return [part(x, axis, slice(a, b)) for a, b in pairwise(bounds)]


def split(x: Array, sections: Any, axis: int = 0) -> list[Array]:
    n = x.shape[normal_axis(axis, x.ndim)]
    if isinstance(sections, int) and (sections < 1 or n % sections):
        raise ValueError(f"{n} elements do not split into {sections} equal sections")
    return array_split(x, sections, axis)


def tile(x: Array, reps: Any) -> Array:
    counts = sizes_of(reps)
    rank = max(x.ndim, len(counts))
    sizes, counts = ((1,) * (rank - len(s)) + s for s in (x.shape, counts))
    pairs = list(zip(counts, sizes, strict=True))
    repeated = x.reshaped(tuple(k for n in sizes for k in (1, n))).broadcast(tuple(chain(*pairs)))
    return repeated.reshaped(tuple(c * n for c, n in pairs))


def repeat(x: Array, repeats: Any, axis: int | None = None) -> Array:
    x, axis = along(x, axis)
    if np.ndim(repeats):
        if sum(operator.index(n) for n in repeats) > MAX_REPEATS:
            raise ValueError(f"counts of repeats add up to {MAX_REPEATS:,} at most; write one count for all")
        return part(x, axis, np.repeat(np.arange(x.shape[axis]), np.asarray(repeats)))
    n, before, after = size_of(repeats), x.shape[: axis + 1], x.shape[axis + 1 :]
    return x.reshaped((*before, 1, *after)).broadcast((*before, n, *after)).reshaped(resized(x.shape, axis, x.shape[axis] * n))


def roll(x: Array, shift: Any, axis: Any = None) -> Array:
    if axis is None:
        return roll(ravel(x), shift, 0).reshaped(x.shape)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    shifts = shift if isinstance(shift, tuple | list) else (shift,) * len(axes)
    for by, a in zip(shifts, axes, strict=True):
        k = normal_axis(a, x.ndim)
        at = _first_of_rolled(operator.index(by), x.shape[k])
        if at != 0:
            x = concatenate([part(x, k, slice(at, None)), part(x, k, slice(None, at))], k)
    return x


def _first_of_rolled(by: int, n: int) -> int:
    """The place of the element that comes first after a roll. Raises UndecidedSizeError where it is not known."""
    if not isinstance(n, OpenSize):
        return -by % n if n else 0
    if not abs(by) <= n:
        raise ValueError(f"roll by {by} of an axis of {n} elements")
    return n - by if by > 0 else -by


def _shifted(sign: int) -> Callable[..., Array]:
    def shift(x: Array, axes: Any = None) -> Array:
        every = normal_axes(axes, x.ndim)
        return roll(x, [sign * (x.shape[k] // 2) for k in every], list(every))

    return shift


_PAD_BY_PLACES = ("edge", "reflect", "symmetric", "wrap")


def pad(x: Operand, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Array:
    """With the modes constant, edge, reflect, symmetric and wrap."""
    x = an_array(x, constant_values)
    widths = _each_side(pad_width, x.ndim)
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError("pad widths cannot be negative")
    if mode in _PAD_BY_PLACES:
        for axis, width in [(k, pair) for k, pair in enumerate(widths) if any(n != 0 for n in pair)]:
            if any(isinstance(n, OpenSize) for n in (x.shape[axis], *width)):
                from tidu_cli.adapters.numpy.arrays.sizes import with_ends

                x = concatenate(with_ends(x, axis, width, mode), axis)
            elif sum(width) + x.shape[axis] > MAX_REPEATS:
                raise ValueError(f"np.pad with mode={mode!r} makes axes of {MAX_REPEATS:,} elements at most")
            else:  # NumPy pads the places of the elements, and so says what goes where.
                x = part(x, axis, np.pad(np.arange(x.shape[axis]), width, mode=mode))  # type: ignore[call-overload]
        return x
    if mode != "constant":
        modes = ", ".join(("constant", *_PAD_BY_PLACES))
        raise UntraceableError(f"np.pad with mode={mode!r} cannot be traced (modes: {modes}); write np.concatenate")
    if isinstance(constant_values, Array | int | float | complex | np.generic) and not np.ndim(constant_values):
        value = lift(constant_values, x, x.dtype)
        return x.emit("pad", value, padding_config=tuple((a, b, 0) for a, b in widths))
    if arrays_in([constant_values]):
        raise UntraceableError("np.pad with several traced constant_values= cannot be traced; write np.concatenate")
    for axis, ((before, after), values) in enumerate(zip(widths, np.broadcast_to(constant_values, (x.ndim, 2)), strict=True)):
        for config, value in zip((((before, 0, 0)), ((0, after, 0))), values, strict=True):
            around = tuple(config if k == axis else (0, 0, 0) for k in range(x.ndim))
            x = x.emit("pad", lift(value, x, x.dtype), padding_config=around) if any(config) else x
    return x


def _each_side(pad_width: Any, rank: int) -> list[tuple[int, int]]:
    if isinstance(pad_width, dict):
        pairs = [(0, 0)] * rank
        for axis, width in pad_width.items():
            pairs[normal_axis(axis, rank)] = tuple(np.broadcast_to(width, 2).tolist())
        return pairs
    return [(size_of(a), size_of(b)) for a, b in np.broadcast_to(pad_width, (rank, 2)).tolist()]


def block(arrays: Any) -> Array:
    def depth(value: object) -> int:
        return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0

    def leaves(value: Any) -> list[Operand]:
        return [leaf for part in value for leaf in leaves(part)] if isinstance(value, list) else [value]

    levels, parts = depth(arrays), lifted_as_arrays(*leaves(arrays))
    rank, rest = max(levels, *(x.ndim for x in parts)), iter(parts)

    def joined(value: Any, level: int) -> Array:
        if not isinstance(value, list):
            if level != levels:
                raise ValueError("np.block takes lists that nest equally deep")
            x = next(rest)
            return x.reshaped((1,) * (rank - x.ndim) + x.shape)
        return concatenate([joined(part, level + 1) for part in value], rank - levels + level)

    return joined(arrays, 0)


def delete(x: Array, obj: Any, axis: int | None = None) -> Array:
    """Of places that are constant."""
    x, axis = along(x, axis)
    if arrays_in([obj]):
        raise UntraceableError("np.delete at traced places cannot be traced; make them a constant")
    if isinstance(x.shape[axis], OpenSize):
        raise UntraceableError(f"np.delete along the open size {x.shape[axis]} cannot be traced; write np.concatenate of slices")
    if x.shape[axis] > MAX_REPEATS:
        raise ValueError(f"np.delete takes axes of {MAX_REPEATS:,} elements at most")
    return part(x, axis, np.delete(np.arange(x.shape[axis]), obj))


def insert(x: Operand, obj: Any, values: Operand, axis: int | None = None) -> Array:
    """At one constant place."""
    if arrays_in([obj]) or not isinstance(obj, int | np.integer):
        raise UntraceableError("np.insert is traced for one constant place; write np.concatenate for more")
    x = an_array(x, values)
    new = lift(values, x, x.dtype)
    x, axis = along(x, axis)
    n = x.shape[axis]
    if not -n <= obj <= n:
        raise IndexError(f"np.insert at {obj} is out of range for an axis of {n} elements of {x.type}")
    at = int(obj) + n if obj < 0 else int(obj)
    if new.ndim < x.ndim:
        new = new.broadcast(x.shape[:axis] + x.shape[axis + 1 :]).reshaped(resized(x.shape, axis))
    between = new.broadcast(resized(x.shape, axis, new.shape[axis]))
    return concatenate([part(x, axis, slice(None, at)), between, part(x, axis, slice(at, None))], axis)


def resize(x: Array, new_shape: Any) -> Array:
    """Elements in a row, repeated as often as it takes."""
    x, sizes = ravel(x), sizes_of(new_shape)
    n = math.prod(sizes)
    if not x.size or not n:
        return filled(x, 0, sizes)
    return indexed(tile(x, -(-n // x.size)), slice(0, n)).reshaped(sizes)


def sliding_window_view(x: Array, window_shape: Any, axis: Any = None, **options: Any) -> Array:
    """np.lib.stride_tricks.sliding_window_view, a copy."""
    sizes = sizes_of(window_shape)
    axes = range(x.ndim) if axis is None else [normal_axis(a, x.ndim) for a in sizes_of(axis)]
    if len(axes) != len(sizes):
        raise ValueError(f"{len(sizes)} windows for {len(axes)} axes")
    for a, size in zip(axes, sizes, strict=True):
        count = x.shape[a] - size + 1
        if count < 1 or size < 0:
            raise ValueError(f"a window of {size} elements does not fit axis {a} of {x.type}")
        if isinstance(count, OpenSize) or isinstance(size, OpenSize):
            at: Any = places(x, (count, size), 0) + places(x, (count, size), 1)
        elif count * size > MAX_REPEATS:
            raise ValueError(f"windows hold {MAX_REPEATS:,} elements at most")
        else:
            at = np.arange(count)[:, None] + np.arange(size)
        x = moveaxis(part(x, a, at), a + 1, -1)
    return x


COMPOSED: Mapping[str, Callable[..., Any]] = {
    "permute_dims": transpose,
    "flipud": lambda m: flip(m, 0),
    "fliplr": lambda m: flip(m, 1),
    "concat": concatenate,
    "vstack": lambda arrays, **options: concatenate([atleast_2d(x) for x in lifted_as_arrays(*arrays)], 0, **options),
    "dstack": lambda arrays: concatenate([atleast_3d(x) for x in lifted_as_arrays(*arrays)], 2),
    "column_stack": lambda xs: concatenate([x if x.ndim > 1 else x.reshaped((x.size, 1)) for x in lifted_as_arrays(*xs)], 1),
    "append": lambda x, values, axis=None: concatenate(lifted_as_arrays(x, values), axis),
    "hsplit": lambda x, sections: split(an_array(x), sections, 0 if an_array(x).ndim == 1 else 1),
    "vsplit": lambda x, sections: split(an_array(x), sections, 0),
    "dsplit": lambda x, sections: split(an_array(x), sections, 2),
    "unstack": lambda x, *, axis=0: tuple(moveaxis(x := an_array(x), normal_axis(axis, x.ndim), 0)),
    "fft.fftshift": _shifted(1),
    "fft.ifftshift": _shifted(-1),
}
