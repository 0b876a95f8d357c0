"""Scattered cotangents: those of arrays of which nodes read a few elements, as pairs of values and positions.

The cotangent of an array that is read at one place is zero everywhere else. Made dense for each read, n reads of one of n elements
would cost n² elements; kept as what was read and where, they are n, and one scatter-add makes them the array's cotangent.
Positions count the array's elements row-major; its number of elements stands for none of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tidu_cli.graph.graph import Case, CaseTable
from tidu_cli.graph.types import TensorType
from tidu_cli.rules.contract import Types
from tidu_cli.rules.recording.trace import Template, Trace
from tidu_cli.rules.terms import Term, op
from tidu_cli.rules.vocabulary import PrimitiveSet

concatenate, reshape, scatter_add = op("concatenate"), op("reshape"), op("scatter-add")

POSITION = "i64"

_MERGING = ("iota", "reshape", "concatenate", "scatter-add")
"""What merging takes. In a set that lacks some of it, all cotangents are dense."""

FEW = 8
"""A read is of few elements if the array has more than so many times as many: else its cotangent is dense at once.

An element that is read takes its value, its position, a copy of both and a slow addition: about as much as eight elements of an
array of zeros. So the dense form is the smaller one then, and either way reads cost in proportion to what they read.
"""


def reads_few(primitives: PrimitiveSet, case: Case) -> bool:
    """Whether a linear node of this case reads few elements of operand 0, at places that it is known how to tell."""
    if case.mask is None or not case.mask[0] or any(case.mask[1:]) or None in case.operands:
        return False
    if primitives[case.op].rules.reads is None or any(name not in primitives.primitives for name in _MERGING):
        return False
    return 0 < FEW * case.results[0].size < operand_type(case).size


def operand_type(case: Case) -> TensorType:
    """The type of the array that a node reads few elements of."""
    (array, *_) = case.operands
    assert isinstance(array, TensorType)
    return array


def positions_template(primitives: PrimitiveSet, cases: CaseTable, code: int) -> Template:
    """The template of the positions that a node reads: one i64 array of rank 1, in the order of the elements of its result.

    Its sources are the operands, of which the first is never read. Nothing in it is linear. Raises MissingRuleError.
    """
    case = cases[code]
    reads = primitives[case.op].rules.reads
    assert reads is not None
    trace = Trace(primitives, cases)
    array, *others = [trace.source(t, linear=False) for t in case.operands]
    n_sources, shape = trace.n_slots, array.type.shape
    numbers = trace.emit("iota", dtype=POSITION, shape=(math.prod(shape),), dimension=0)
    return trace.template(n_sources, [_flat(reads(case.attrs, _shaped(numbers, shape), others))])


def merging_template(primitives: PrimitiveSet, cases: CaseTable, type_: TensorType, parts: Types, *, onto: bool) -> Template:
    """The template of a cotangent of type `type_` from values of the types `parts` and where they belong.

    Its sources are the values, then their positions; and before both, if `onto`, a dense cotangent that they are added to. Values
    of one position are added one after the other, in the order of the parts.
    """
    trace = Trace(primitives, cases)
    dense = trace.source(type_, linear=True) if onto else None
    values = [trace.source(part, linear=True) for part in parts]
    positions = [trace.source(TensorType(POSITION, (part.size,)), linear=False) for part in parts]
    n_sources, flat = trace.n_slots, type_.with_shape((type_.size,))
    rows = reshape(concatenate(*positions, dimension=0), new_sizes=(sum(part.size for part in parts), 1))
    updates = concatenate(*map(_flat, values), dimension=0)
    target = trace.full(0, flat) if dense is None else _flat(dense)
    numbers = {"update_window_dims": (), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)}
    total = scatter_add(target, rows, updates, dimension_numbers=numbers, mode="fill")
    return trace.template(n_sources, [_shaped(total, type_.shape)])


def _flat(term: Term) -> Term:
    return _shaped(term, (term.type.size,))


def _shaped(term: Term, shape: Sequence[int]) -> Term:
    return term if term.type.shape == tuple(shape) else reshape(term, new_sizes=tuple(shape))
