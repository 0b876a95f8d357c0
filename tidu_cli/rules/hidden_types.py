"""Operand types that a detached reference hides, found by what else a node says: its other operands, and its result types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.graph import CaseAttrs
from tidu_cli.graph.types import RecordType, TensorType, Type
from tidu_cli.rules.contract import Domain, Types, ValueTypes


def with_hidden_types(
    domain: Domain, attrs: CaseAttrs, operands: Sequence[Type | None], declared: ValueTypes | None
) -> Sequence[Type | None]:
    """Operand types, of those that are None as many as the domain of the primitive can tell."""
    if domain.one_type:
        type_ = next((t for t in operands if t is not None), None) or _one_type(domain, attrs, len(operands), declared)
        operands = operands if type_ is None else _completed(domain, attrs, operands, type_, declared)
    return domain.hidden(attrs, operands, declared) if None in operands and domain.hidden is not None else operands


def as_declared(domain: Domain, attrs: CaseAttrs, n: int, declared: ValueTypes | None) -> ValueTypes:
    """The result types of a node of n operands some of whose types stay hidden: those that it declares. Raises TypeRuleError."""
    if declared is None:
        raise TypeRuleError(
            "reads a detached value, so its result types cannot be inferred; give the node's types or resolve first"
        )
    due = domain.n_results(attrs, n)
    if len(declared) != due:
        raise TypeRuleError(f"declares {len(declared)} result types, but has {due} result{'' if due == 1 else 's'}")
    return declared


def _completed(
    domain: Domain, attrs: CaseAttrs, operands: Sequence[Type | None], type_: Type, declared: ValueTypes | None
) -> Sequence[Type | None]:
    """Operand types with this one for those that are hidden; or with one that gives what is declared: a number that scales, say.

    Unchanged where the primitive takes no operands of that one type.
    """
    others = () if declared is None or isinstance(type_, RecordType) else (type_.with_dtype("f64"),)
    found = operands
    for candidate in (type_, *others, *(declared or ())):
        completed = [candidate if t is None else t for t in operands]
        try:
            results = domain.types(attrs, cast(Types, tuple(completed)))
        except TypeRuleError:
            continue  # the primitive does not take it
        if declared is None or results == declared:
            return completed
        found = completed if candidate == type_ else found  # which says what is wrong with the declaration
    return found


def _one_type(domain: Domain, attrs: CaseAttrs, n: int, declared: ValueTypes | None) -> Type | None:
    """The type of n operands of one type that gives the declared results; None where there is none, or more than one."""
    if declared is None or len(declared) != 1 or not isinstance(declared[0], TensorType):
        return None
    found: list[TensorType] = []
    for dtype in domain.dtypes:
        candidate = declared[0].with_dtype(dtype)
        try:
            if domain.types(attrs, (candidate,) * n) == declared:
                found.append(candidate)
        except TypeRuleError:
            continue  # the primitive does not take it
    return found[0] if len(found) == 1 else None
