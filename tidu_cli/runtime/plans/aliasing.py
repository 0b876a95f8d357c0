"""Which arrays of its operands a node's results are: those that a record is put together of, or the field that is taken of one.

Such results take no memory of their own, and what they share lives on in them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeVar

from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import RecordType, Type, leaves
from tidu_cli.rules.contract import Primitive

T = TypeVar("T")

Sharing = Callable[[Sequence[tuple[T | None, ...]]], Sequence[tuple[T | None, ...]]]
"""From what stands for the tensors of each operand, to what stands for those of each result; None stands for a zero."""


def shared_by(primitive: Primitive, case: Case) -> Sharing[T] | None:
    """How the results of a case are its operands, tensor by tensor; None where they are new arrays, or a type is hidden."""
    if None in case.operands:
        return None
    if primitive.evaluation.passes:
        return lambda operands: operands
    if primitive.domain.takes is not None:
        (record,) = case.operands
        assert isinstance(record, RecordType)
        before = record.names.index(primitive.domain.takes(case.attrs))
        start = sum(_n_tensors(type_) for _, type_ in record.fields[:before])
        end = start + _n_tensors(record.fields[before][1])
        return lambda operands: [operands[0][start:end]]
    if primitive.domain.makes is not None:
        (result,) = case.results
        assert isinstance(result, RecordType)
        names = primitive.domain.makes(case.attrs)
        parts = [(names.index(name) if name in names else None, (None,) * _n_tensors(type_)) for name, type_ in result.fields]
        return lambda operands: [tuple(chain.from_iterable(zeros if k is None else operands[k] for k, zeros in parts))]
    return None


def _n_tensors(type_: Type) -> int:
    return sum(1 for _ in leaves(type_))
