"""Windows: the parts of an array where gather reads and scatter writes, as StableHLO's dimension numbers describe them.

Each index vector (the last axis of the indices) says where one window starts. Gather and scatter name the same five lists of
axes differently, and are transposes of one another: here they are one thing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from tidu_cli.errors import TypeRuleError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.types import INTEGERS, TensorType
from tidu_cli.rules.attrs import Axes
from tidu_cli.rules.batching import later, with_batch_axis
from tidu_cli.rules.contract import Attrs
from tidu_cli.rules.fields import field_names
from tidu_cli.rules.terms import Term, op

Mode = Literal["clip", "fill", "promise_in_bounds"]
"""What becomes of windows that do not fit: `clip` and `promise_in_bounds` move their start, `fill` leaves them out."""


class GatherDimensionNumbers(Attrs):
    """The axes of gather: those of its result that run over windows; of the operand, those that windows have but results do not;
    for each entry of an index vector the operand's axis that it is about; and axes of operand and indices that run in step.
    """

    offset_dims: Axes
    collapsed_slice_dims: Axes
    start_index_map: Axes
    operand_batching_dims: Axes = ()
    start_indices_batching_dims: Axes = ()


class ScatterDimensionNumbers(Attrs):
    """The axes of scatter, in the order of gather's fields; in place of gather's result it has updates."""

    update_window_dims: Axes
    inserted_window_dims: Axes
    scatter_dims_to_operand_dims: Axes
    operand_batching_dims: Axes = ()
    scatter_indices_batching_dims: Axes = ()


Numbers = GatherDimensionNumbers | ScatterDimensionNumbers


def _numbers(kind: type[Numbers], axes: Iterable[tuple[int, ...]]) -> Numbers:
    return kind(**dict(zip(field_names(kind), axes, strict=True)))


def transposed(numbers: Numbers) -> Numbers:
    """The numbers with which scatter writes the windows that gather reads, or the other way round."""
    other = ScatterDimensionNumbers if isinstance(numbers, GatherDimensionNumbers) else GatherDimensionNumbers
    return _numbers(other, vars(numbers).values())


def staying(numbers: Numbers, windowed: Sequence[int], operand: Sequence[int]) -> list[tuple[int, int]]:
    """Axes of an array of windows, and of the operand, along which elements stay where they are, wherever windows begin.

    They are those of which windows have all, and batches that indices run in step with.
    """
    window, left_out, _, batches, in_indices = vars(numbers).values()
    inside = [d for d in range(len(operand)) if d not in (*left_out, *batches)]
    outside = [axis for axis in range(len(windowed)) if axis not in window]
    whole = [(axis, d) for axis, d in zip(window, inside, strict=True) if windowed[axis] == operand[d]]
    return [*whole, *((outside[i], d) for i, d in zip(in_indices, batches, strict=True))]


def taking(shape: Sequence[int], n: int, axis: int) -> dict[str, Any]:
    """The attrs of the gather x[..., places[..., i], ...] along an axis, for x of this shape and places of n axes.

    The indices are the places with one more axis. Axes of x behind those of the places are taken whole.
    """
    others = tuple(k for k in range(n) if k != axis)
    numbers = _numbers(GatherDimensionNumbers, (tuple(range(n, len(shape))), (axis,), (axis,), others, others))
    return {"dimension_numbers": numbers, "slice_sizes": (*[1] * n, *shape[n:]), "mode": "promise_in_bounds"}


def taken(x: Term, places: Term, axis: int) -> Term:
    """What `taking` says, within rules."""
    n = places.type.rank
    return op("gather")(x, op("expand_dims")(places, dimensions=(n,)), **taking(x.type.shape, n, axis))


def batched_numbers(numbers: Numbers, *, operand: bool, indices: bool) -> Numbers:
    """The numbers where the windowed array has a batch as its first axis, and so has the operand, or the indices, or both.

    Windows take the whole batch of an operand whose indices are shared; operand and indices that have both one run in step.
    """
    window, dropped, index_map, ours, theirs = vars(numbers).values()
    window = with_batch_axis(window) if not indices else later(window)
    if operand:
        dropped, index_map = later(dropped), later(index_map)
        ours = with_batch_axis(ours) if indices else later(ours)
    if indices:
        theirs = with_batch_axis(theirs) if operand else later(theirs)
    return _numbers(type(numbers), (window, dropped, index_map, ours, theirs))


class Windows(Frozen, slots=False):
    """The windows of an operand of shape `operand`, one for each index of `batch`, the shape of the indices less its last axis.

    `sizes` has an entry per axis of the operand, `kept` are those axes that the windowed array (gather's result, scatter's
    updates) also has, as its axes `window_dims`; its other axes are those of `batch`. Entry k of an index vector is about
    axis `index_map[k]`. Each pair of `in_step` is an operand's axis, where the window is at the index of that axis of `batch`.
    """

    operand: tuple[int, ...]
    batch: tuple[int, ...]
    sizes: tuple[int, ...]
    kept: tuple[int, ...]
    window_dims: tuple[int, ...]
    index_map: tuple[int, ...]
    in_step: tuple[tuple[int, int], ...]

    @property
    def layout(self) -> tuple[int, ...]:
        """For each axis of the windowed array, its place among the axes of `batch` followed by those of the window."""
        batch, window = iter(range(len(self.batch))), iter(range(len(self.batch), len(self.batch) + len(self.kept)))
        return tuple(next(window) if axis in self.window_dims else next(batch) for axis in range(len(self.batch) + len(self.kept)))

    @property
    def unordered(self) -> tuple[int, ...]:
        """The shape of the windowed array with its axes in the order batch, then window."""
        return (*self.batch, *(self.sizes[axis] for axis in self.kept))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the windowed array."""
        return tuple(self.unordered[k] for k in self.layout)

    @property
    def n_tail(self) -> int:
        """How many of the operand's last axes windows cover whole: there, elements move as blocks."""
        moving = [axis for axis, size in enumerate(self.sizes) if size != self.operand[axis] or axis in dict(self.in_step)]
        return len(self.operand) - 1 - max(moving, default=-1)


def gather_windows(numbers: GatherDimensionNumbers, sizes: tuple[int, ...], operand: TensorType, indices: TensorType) -> Windows:
    """The windows that gather reads. Raises TypeRuleError."""
    if len(sizes) != operand.rank:
        raise TypeRuleError(f"slice_sizes has {len(sizes)} entries for the operand {operand} of rank {operand.rank}")
    windows = _windows(numbers, sizes, operand, indices)
    for axis, (size, available) in enumerate(zip(sizes, operand.shape, strict=True)):
        if axis not in windows.kept and size != 1 and (size, available) != (0, 0):
            raise TypeRuleError(f"slice size {size} of axis {axis}, which the result does not have, must be 1")
        # No window is read at all where the batch is empty: then an axis of the result's other axes may be.
        if size > available and not (axis not in windows.kept and 0 in windows.batch):
            raise TypeRuleError(f"slice size {size} exceeds axis {axis} of the operand {operand}, which has {available} elements")
    return windows


def scatter_windows(numbers: ScatterDimensionNumbers, operand: TensorType, indices: TensorType, updates: TensorType) -> Windows:
    """The windows that scatter writes. Raises TypeRuleError."""
    if updates.dtype != operand.dtype:
        raise TypeRuleError(f"type mismatch: the operand is {operand}, the updates are {updates}; use convert_element_type first")
    dims = numbers.update_window_dims
    if updates.rank != max(indices.rank - 1, 0) + len(dims):
        raise TypeRuleError(
            f"the updates {updates} have {updates.rank} axes; the indices {indices} have {max(indices.rank - 1, 0)} "
            f"before their last, and update_window_dims {list(dims)} {'adds' if len(dims) == 1 else 'add'} {len(dims)}"
        )
    if any(axis >= updates.rank for axis in dims):
        raise TypeRuleError(f"update_window_dims {list(dims)}: the updates {updates} have no axis {max(dims)}")
    gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    own = iter(dims)
    sizes = tuple(1 if axis in gone else updates.shape[next(own, 0)] for axis in range(operand.rank))
    windows = _windows(numbers, sizes, operand, indices)
    for axis in windows.kept:
        if sizes[axis] > operand.shape[axis]:
            raise TypeRuleError(
                f"the windows of the updates {updates} have {sizes[axis]} elements along axis {axis} of the operand {operand}, "
                f"which has {operand.shape[axis]}"
            )
    for axis, (n, m) in enumerate(zip(updates.shape, windows.shape, strict=True)):
        if n != m:
            raise TypeRuleError(f"axis {axis} of the updates {updates} has {n} elements; the indices {indices} have {m} there")
    return windows


def _windows(numbers: Numbers, sizes: tuple[int, ...], operand: TensorType, indices: TensorType) -> Windows:
    (window, dims), (gone, dropped), (mapping, index_map), (ours, batching), (theirs, in_indices) = numbers
    if indices.dtype not in INTEGERS or not indices.rank:
        raise TypeRuleError(f"the indices (input 1) are {indices}; they must be integers, of rank 1 at least")
    batch = indices.shape[:-1]
    for name, axes in ((gone, dropped), (mapping, index_map), (ours, batching)):
        _require_axes(name, axes, operand.rank, f"the operand {operand}")
    _require_axes(theirs, in_indices, len(batch), f"the indices {indices} less the last")
    for name, axes in ((window, dims), (gone, dropped), (ours, batching)):
        if list(axes) != sorted(axes):
            raise TypeRuleError(f"{name} {list(axes)} must increase")
    for name, axes in ((gone, dropped), (mapping, index_map)):
        if set(axes) & set(batching):
            raise TypeRuleError(f"{name} {list(axes)} and {ours} {list(batching)} share axis {min(set(axes) & set(batching))}")
    if len(index_map) != indices.shape[-1]:
        raise TypeRuleError(f"{mapping} has {len(index_map)} axes; the last axis of the indices {indices} has {indices.shape[-1]}")
    kept = tuple(axis for axis in range(operand.rank) if axis not in dropped and axis not in batching)
    if len(dims) != len(kept):
        raise TypeRuleError(
            f"{window} has {len(dims)} axes; the operand {operand} has {len(kept)} that are neither in {gone} nor in {ours}"
        )
    _require_axes(window, dims, len(batch) + len(kept), f"an array of rank {len(batch) + len(kept)}")
    if len(batching) != len(in_indices):
        raise TypeRuleError(f"{ours} has {len(batching)} axes, {theirs} {len(in_indices)}; they go in pairs")
    pairs = tuple(zip(batching, in_indices, strict=True))
    for i, j in pairs:
        if operand.shape[i] != batch[j]:
            raise TypeRuleError(
                f"batching dimensions differ: "
                f"operand {operand} axis {i} is {operand.shape[i]}, indices {indices} axis {j} is {batch[j]}"
            )
    return Windows(operand.shape, batch, sizes, kept, dims, index_map, pairs)


def _require_axes(name: str, axes: Sequence[int], rank: int, what: str) -> None:
    if any(axis >= rank for axis in axes):
        raise TypeRuleError(f"{name} {list(axes)}: no axis {max(axes)} in {what}")


def locator(np: Any, windows: Windows, mode: Mode) -> Callable[[Any], tuple[Any, Any]]:
    """The function from indices to rows: with the operand as a matrix whose rows are its `n_tail` last axes, for each window the
    numbers of its rows (the start moved so that the window fits), and whether it is to be used. The operand must not be empty.
    """
    head = len(windows.operand) - windows.n_tail
    strides = [math.prod(windows.operand[axis + 1 : head]) for axis in range(head)] + [0] * windows.n_tail
    within = np.zeros(1, np.intp)
    for axis in range(head):
        within = np.add.outer(within, np.arange(windows.sizes[axis]) * strides[axis]).ravel()
    batch = np.zeros(windows.batch if windows.in_step else (1,) * len(windows.batch), np.intp)
    for axis, other in windows.in_step:
        aligned = [-1 if k == other else 1 for k in range(len(windows.batch))]
        batch += np.reshape(np.arange(windows.batch[other]) * strides[axis], aligned)
    batch = batch.ravel()  # one for all, or one per window
    entries = [(windows.operand[axis] - windows.sizes[axis], strides[axis]) for axis in windows.index_map]
    n_windows = math.prod(windows.batch)

    def locate(indices: Any) -> tuple[Any, Any]:
        numbers, fits = np.full(n_windows, batch), np.ones(n_windows, bool)
        if indices.dtype == np.uint64:
            indices = np.minimum(indices, np.uint64(2**63 - 1))
        vectors = np.reshape(indices, (n_windows, len(entries)))
        for k, (limit, stride) in enumerate(entries):
            given = vectors[:, k].astype(np.int64)
            start = np.clip(given, 0, limit)
            numbers += start * stride
            if mode == "fill":
                fits &= start == given
        return np.add.outer(numbers, within), fits

    return locate
