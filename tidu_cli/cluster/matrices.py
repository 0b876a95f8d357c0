"""Jacobians and Hessians by chunks of columns or rows: a linear graph evaluated for a batch of unit tangents, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from tidu_cli.cluster.items import Items, Plan, tensor_at
from tidu_cli.cluster.work import Values
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import Path, RecordType, TensorType, Type, leaves
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.limits import require
from tidu_cli.runtime.plans.program import needed_inputs


class Units(Frozen):
    """The unit tangents of one input, as items: of `size` in all, those from `first` on are its own, and the others are zero."""

    type: Type
    first: int
    size: int

    def read(self, start: int, stop: int) -> Any:
        """Those from `start` to `stop`."""
        return self._of(self.type, self.first, start, stop)

    def identity(self) -> str:
        """What says which these are."""
        return f"{self.type} from {self.first} of {self.size}"

    def _of(self, type_: Type, first: int, start: int, stop: int) -> Any:
        import numpy as np

        if isinstance(type_, RecordType):
            fields = {}
            for name, field in type_.fields:
                fields[name] = self._of(field, first, start, stop)
                first += sum(t.size for _, t in leaves(field))
            return tuple(fields.values()) if type_.is_tuple else fields
        units = np.zeros((stop - start, type_.size), numpy_dtype(np, type_.dtype))
        mine = np.arange(max(start, first), min(stop, first + type_.size))
        units[mine - start, mine - first] = 1
        return units.reshape(stop - start, *type_.shape)


class _Array(Frozen):
    """An array of an input or output of a linear graph; its units are those from `first` on, None where nothing reads it."""

    key: Key
    path: Path
    type: TensorType
    first: int | None = None


class Blocks(Frozen, slots=False):
    """The blocks of a matrix, `types` by key, and the arrays of inputs and outputs of the linear map that each is of."""

    types: Mapping[Key, Type]
    ends: Sequence[tuple[_Array, _Array]]
    by_rows: bool
    units: Mapping[Key, Items]

    def collected(self, chunks: Iterable[tuple[int, Values]], plan: Plan) -> Values:
        """The blocks, of the images of unit tangents, by chunks in any order. Raises LimitError if they would not fit in memory."""
        import numpy as np

        arrays = {key: type_ for key, type_ in self.types.items() if isinstance(type_, TensorType)}
        require("memory", sum(t.nbytes for t in arrays.values()), "the blocks of the matrix")
        blocks = {key: np.zeros(t.shape, numpy_dtype(np, t.dtype)) for key, t in arrays.items()}
        for k, values in chunks:
            start, stop = plan.range(k)
            for block, (unit, image) in zip(blocks.values(), self.ends, strict=True):
                if unit.first is None:
                    continue
                low, high = max(start, unit.first), min(stop, unit.first + unit.type.size)
                if low < high:
                    value = tensor_at(values[image.key], image.path)
                    rows = value[low - start : high - start].reshape(high - low, image.type.size)
                    self._put(block, rows, low - unit.first, unit.type.size)
        return dict(blocks)

    def _put(self, block: Any, rows: Any, at: int, n_units: int) -> None:
        if self.by_rows:  # the adjoint's rows are conjugates
            block.reshape(n_units, -1)[at : at + len(rows)] = rows.conj() if rows.dtype.kind == "c" else rows
        else:
            block.reshape(-1, n_units)[:, at : at + len(rows)] = rows.T


def blocks_of(linear: Graph, matrix: Graph, inputs: Sequence[Input], outputs: Sequence[Output]) -> Blocks:
    """How the outputs of `matrix` come of the self-contained graph `linear` of the same map.

    `inputs` and `outputs` are those of the map, as `transforms.matrix` had it.
    """
    needed = needed_inputs(linear)
    by_rows = all(i.key.path[-1] < 0 for i in inputs)
    live = [i for i in inputs if i.key in needed]
    size = sum(t.size for i in live for _, t in leaves(i.type))
    units = list(_arrays(inputs, needed))
    images = [_Array(o.key, path, type_) for o in outputs for path, type_ in leaves(o.type)]
    pairs = product(units, images) if by_rows else ((unit, image) for image, unit in product(images, units))
    first = {unit.key: unit.first for unit in reversed(units)}
    given: dict[Key, Items] = {i.key: Units(i.type, first[i.key] or 0, size) for i in live}
    return Blocks({o.key: o.type for o in matrix.outputs}, list(pairs), by_rows, given)


def _arrays(inputs: Iterable[Input], needed: set[Key]) -> Iterator[_Array]:
    first = 0
    for i in inputs:
        for path, type_ in leaves(i.type):
            yield _Array(i.key, path, type_, first if i.key in needed else None)
            first += type_.size if i.key in needed else 0
