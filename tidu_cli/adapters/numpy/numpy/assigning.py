"""Assignment to elements: an array as it is after `x[index] = value`, as a new one.

Slices become updates of a block, or where they have steps a choice between the array and the padded value; masks become choices,
and arrays of integers scatters, of which the last stays where places repeat, as in NumPy. Traced places beyond an end are the
nearest, as in reading.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, Shape
from tidu_cli.adapters.numpy.arrays.operands import arrays_in, lift
from tidu_cli.adapters.numpy.arrays.storage import Selection, masked_axes
from tidu_cli.adapters.numpy.errors import UntraceableError
from tidu_cli.adapters.numpy.numpy.indexing import Picked, expanded, filled, open_slice, picked, select, shown_shape, sliced
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.lax.arrays.windows import ScatterDimensionNumbers


def updated(x: Array, index: Any, value: Any, op: str = "scatter") -> Array:
    """x with the elements x[index] replaced, or with what another op than "scatter" makes of them, of places that are traced.

    Raises what NumPy does, and UntraceableError for what depends on traced masks.
    """
    if isinstance(value, Selection):
        return value.put(x, index)
    masked = masked_axes(x, index) if op == "scatter" else None
    if masked is not None:
        mask, axis = masked
        kept = _broadcast_along(x, mask.ndim, axis, converted(value, x), traced=isinstance(mask, Array))
        if kept is not None:
            return select(over(lift(mask, x), x.shape, axis), kept, x)
    entries = expanded(x, index)
    along = [e for e in entries if e is not None]
    if any(isinstance(e, Array | np.ndarray) for e in entries):
        part = sliced(x, along)
        at = picked(part, entries)
        if math.prod(at.shape) == 0 and not np.size(value):
            return x
        new = fitted(
            converted(value, x), at.shape, "shape mismatch: value array of shape {} could not be broadcast to indexing result"
        )
        part, along = _scattered(part, at, new, op), [e if isinstance(e, slice) else slice(None) for e in along]
    else:
        block = tuple(_length(n, e) for n, e in zip(x.shape, along, strict=True))
        part = fitted(converted(value, x), shown_shape(block, entries)).reshaped(block)
    return _replaced(x, along, part)


def converted(value: Any, x: Array) -> Array:
    """A value in the dtype of x, as NumPy converts it in an assignment: floats lose what follows the point.

    Warns of complex numbers that lose their imaginary part, and raises what NumPy does of constants.
    """
    if arrays_in([value]):
        new = lift(value, x)
        if new.type.complex and not x.type.complex and x.type.dtype != "bool":
            warnings.warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning, stacklevel=2)
        return new.astype(x.dtype)
    given = np.asarray(value) if isinstance(value, list | tuple) else value
    if isinstance(given, np.ndarray) and given.dtype == x.dtype:
        return x.constant(given)
    room = np.empty(np.shape(given), x.dtype)
    room[...] = given
    return x.constant(room)


def fitted(value: Array, shape: Shape, words: str = "could not broadcast input array from shape {} into shape") -> Array:
    """A value as NumPy's assignment broadcasts it, which drops axes of one element in front. Raises ValueError as NumPy does."""
    extra = max(value.ndim - len(shape), 0)
    sizes = value.shape if set(value.shape[:extra]) - {1} else value.shape[extra:]
    if len(sizes) > len(shape) or any(n not in (1, m) for n, m in zip(sizes[::-1], shape[::-1], strict=False)):
        told = "(" + ",".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
        raise ValueError(f"{words.format('(' + ','.join(map(str, value.shape)) + (',' if value.ndim == 1 else '') + ')')} {told}")
    return value.reshaped(sizes).broadcast(shape)


def over(mask: Array, shape: Shape, axis: int) -> Array:
    """A mask of the axes from `axis` on, for each element of an array of that shape."""
    if mask.shape == shape:
        return mask
    return mask.emit("broadcast_in_dim", shape=shape, broadcast_dimensions=tuple(range(axis, axis + mask.ndim)))


def _broadcast_along(x: Array, n_axes: int, axis: int, value: Array, *, traced: bool) -> Array | None:
    """A value that is the same for all elements that a mask of these axes chooses, for each element of x; None for others."""
    rest = x.shape[axis + n_axes :]
    after = value.shape[max(value.ndim - len(rest), 0) :]
    before = value.shape[: max(value.ndim - len(rest), 0)]
    chosen = before[-1:]  # the axis of those that are chosen
    if all(n == 1 for n in chosen) and len(before) <= axis + 1:
        outer = before[:-1]
        sizes = (*(1,) * (axis - len(outer)), *outer, *(1,) * n_axes, *(1,) * (len(rest) - len(after)), *after)
        return fitted(value.reshaped(sizes), x.shape)
    if not traced:
        return None
    raise UntraceableError(
        f"NumPy assigns {value.type} to as many elements as the mask, which is traced, has True; write "
        "x[...] = np.where(mask, new, x) of arrays of one shape, or one number"
    )


def _scattered(x: Array, at: Picked, new: Array, op: str) -> Array:
    if math.prod(at.gathered) == 0 or x.size == 0:
        return x
    numbers = ScatterDimensionNumbers(
        update_window_dims=at.offsets, inserted_window_dims=tuple(sorted(at.axes)), scatter_dims_to_operand_dims=at.axes
    )
    return x.emit(
        op,
        at.vectors,
        new.reshaped(at.gathered),
        dimension_numbers=numbers,
        mode="clip" if at.constant is None else "promise_in_bounds",
        **({"unique_indices": True} if at.constant is not None and unique(x, at) else {}),
    )


def unique(x: Array, at: Picked) -> bool:
    """Whether constant places are apart."""
    assert at.constant is not None
    if any(isinstance(x.shape[a], OpenSize) for a in at.axes):
        rows = np.stack([np.ravel(k) for k in at.constant])
        return bool(np.unique(rows, axis=1).shape == rows.shape)
    flat = np.ravel_multi_index(at.constant, tuple(x.shape[a] for a in at.axes)).ravel()
    return len(np.unique(flat)) == len(flat)


def _length(n: int, entry: Any) -> int:
    """How many places of an axis an integer or a slice takes."""
    if _is_open(n, entry):
        start, limit, step = _open_places(n, entry)
        return (limit - start + abs(step) - 1) // abs(step)
    return len(range(n)[_as_slice(entry)])


def _as_slice(entry: Any) -> slice:
    return entry if isinstance(entry, slice) else slice(entry, entry + 1)


def _is_open(n: int, entry: Any) -> bool:
    """Whether the size of an axis is open, or an end of what is taken of it."""
    ends = (entry.start, entry.stop) if isinstance(entry, slice) else (entry,)
    return any(isinstance(k, OpenSize) for k in (n, *ends))


def _open_places(n: int, entry: Any) -> tuple[int, int, int]:
    start, limit, step = open_slice(n, _as_slice(entry))
    if abs(step) != 1:
        raise UntraceableError(f"assignment to each element number {step} of the open size {n}; write np.where with np.arange")
    return start, limit, step


def _replaced_rows(x: Array, entries: Sequence[Any], part: Array) -> Array:
    """As `_replaced`, for axes of which some are open."""
    starts, back = list[Any](), list[int]()
    for axis, (n, entry) in enumerate(zip(x.shape, entries, strict=True)):
        if _is_open(n, entry):
            start, _, step = _open_places(n, entry)
        else:
            places = range(n)[_as_slice(entry)]
            if abs(places.step) != 1 and len(places) > 1:
                raise UntraceableError(f"assignment to each element number {places.step} of an axis of {x.type}; write np.where")
            start, step = (places if places.step > 0 else places[::-1]).start, places.step
        starts.append(start)
        back += [axis] if step < 0 else []
    part = part.emit("rev", dimensions=tuple(back)) if back else part
    return part if part.shape == x.shape else x.emit("dynamic_update_slice", part, *[lift(k, x, "i64") for k in starts])


def _replaced(x: Array, entries: Sequence[Any], part: Array) -> Array:
    """x with what `sliced` gives of these entries replaced."""
    if part.size == 0:
        return x
    if any(_is_open(n, e) for n, e in zip(x.shape, entries, strict=True)):
        return _replaced_rows(x, entries, part)
    taken = [range(n)[_as_slice(e)] for n, e in zip(x.shape, entries, strict=True)]
    back = tuple(axis for axis, r in enumerate(taken) if r.step < 0 and len(r) > 1)
    part = part.emit("rev", dimensions=back) if back else part
    taken = [r if r.step > 0 else r[::-1] for r in taken]
    if part.shape == x.shape:
        return part
    if all(r.step == 1 or len(r) == 1 for r in taken):
        return x.emit("dynamic_update_slice", part, *[x.constant(r.start, np.int64) for r in taken])
    steps = [r.step if len(r) > 1 else 1 for r in taken]
    around = tuple((r.start, n - 1 - r[-1], step - 1) for r, n, step in zip(taken, x.shape, steps, strict=True))
    chosen = x.constant(True).broadcast(part.shape).emit("pad", x.constant(False), padding_config=around)
    return select(chosen, part.emit("pad", filled(x, 0, ()), padding_config=around), x)
