"""Batch rules that families share: a primitive applied to many operands at once, by primitives with one more axis.

In what a rule emits the batch is the first axis, so that axes which attrs name move on by one. Operands that all applications
share are broadcast, which costs nothing where NumPy runs it, and left as they are where a primitive can make do with one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidu_cli.graph.types import RecordType, of_batch
from tidu_cli.rules.contract import Batching, BatchRule
from tidu_cli.rules.terms import Term, field, fieldwise, op

broadcast_in_dim = op("broadcast_in_dim")

AttrShift = Callable[[Any, int], Any]
"""From (an attr's value, the size of the batch) to its value with the batch as first axis."""


def later(axes: Any, size: int = 0) -> Any:
    """An axis, or several, with one more axis before them all."""
    return axes + 1 if isinstance(axes, int) else tuple(axis + 1 for axis in axes)


def with_batch_axis(axes: Sequence[int], size: int = 0) -> tuple[int, ...]:
    """The batch axis, and then these axes, which come after it."""
    return (0, *later(axes))


def sized(shape: Sequence[int], size: int) -> tuple[int, ...]:
    """A shape with the batch as its first axis."""
    return (size, *shape)


def preceded(entry: Any) -> AttrShift:
    """The shift of an attr with an entry per axis: that of the batch is this one. An attr of None stays so."""
    return lambda entries, size: None if entries is None else (entry, *entries)


def stacked(node: Batching, k: int, part: Term | None = None) -> Term:
    """Operand k, or a part of it, with the batch as its first axis; a shared one is broadcast."""
    x = part or node.operands[k]
    return x if node.batched[k] else repeated(x, node.size)


def repeated(x: Term, size: int) -> Term:
    """x once for each item of a batch; of a record, each of its arrays."""
    if isinstance(x.value_type, RecordType):
        return fieldwise(of_batch(x.value_type, size), lambda name, _: repeated(field(x, name), size))
    return broadcast_in_dim(x, shape=(size, *x.type.shape), broadcast_dimensions=tuple(range(1, x.type.rank + 1)))


def spread(x: Term, shape: Sequence[int]) -> Term:
    """A batch of scalars, each repeated over all of its item of an array with the batch as first axis."""
    return broadcast_in_dim(x, shape=tuple(shape), broadcast_dimensions=(0,)) if len(shape) > 1 else x


def itself(name: str, **shifts: AttrShift) -> BatchRule:
    """The batch rule of what treats the batch as one more axis: the primitive itself, with these attrs shifted."""

    def batch(node: Batching) -> Sequence[Term]:
        operands = [stacked(node, k) for k in range(len(node.operands))]
        shifted = {attr: shift(getattr(node.attrs, attr), node.size) for attr, shift in shifts.items()}
        return operands[0].trace.emit_all(name, *operands, **(dict(node.attrs) | shifted))

    return batch


def itself_with_scalars(name: str) -> BatchRule:
    """The batch rule of an elementwise primitive some operands of which may be of rank 0, whatever the shape of the others.

    Those scalars stay as they are where they are shared, and are repeated over their item where not.
    """

    def batch(node: Batching) -> Sequence[Term]:
        largest = max(node.types, key=lambda t: t.rank)
        operands = []
        for x, type_, batched in zip(node.operands, node.types, node.batched, strict=True):
            if type_.rank < largest.rank:
                operands.append(spread(x, (node.size, *largest.shape)) if batched else x)
            else:
                operands.append(x if batched else repeated(x, node.size))
        return [operands[0].trace.emit(name, *operands, **dict(node.attrs))]

    return batch
