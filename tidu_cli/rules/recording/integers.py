"""Integers under differentiation: where a JVP rule has a say, and what it sees of operands that are not floats."""

from __future__ import annotations

from collections.abc import Sequence

from tidu_cli.frozen import replace
from tidu_cli.graph.types import DATETIMES, INTEGERS, RecordType, TensorType, moves, tensor_tangent_type
from tidu_cli.rules.contract import JVP
from tidu_cli.rules.recording.trace import Trace
from tidu_cli.rules.terms import Term


def tangents_of_results(trace: Trace, op: str, node: JVP) -> Sequence[Term | None]:
    """What a primitive's JVP rule gives, where it has a say.

    A bool has no tangent, and an integer or datetime only one that comes from such: what is made of floats alone is made by
    rounding. What is an index, or a step function, contributes nothing. Of records the rule has the say. Raises MissingRuleError.
    """
    primitive, rule = trace.primitives[op], trace.primitives.jvp_rule(op)
    zeros: list[Term | None] = [None] * len(node.results)
    if primitive.rules.integers == "moved" or _holds_record(node):
        if not any(moves(y.value_type) for y in node.results):
            return zeros
        return [t if moves(y.value_type) else None for t, y in zip(rule(node), node.results, strict=True)]
    exact = {k for k, (x, t) in enumerate(zip(node.operands, node.tangents, strict=True)) if t and _is_exact(x)}
    if exact:
        idle = {k for k in exact if primitive.rules.integers == "steps" or primitive.domain.is_index(k)}
        exact -= idle
        node = replace(node, tangents=[None if k in idle else t for k, t in enumerate(node.tangents)])
        if not any(node.tangents):
            return zeros
    if not exact:
        if not any(y.type.inexact for y in node.results):
            return zeros
        inactive = {k for k, y in enumerate(node.results) if not y.type.inexact}
        return [None if k in inactive else t for k, t in enumerate(rule(node))]
    if all(y.type.dtype == "bool" for y in node.results):
        return zeros
    if primitive.rules.integers == "numbers":
        operands = [x if primitive.domain.is_index(k) else _as_number(trace, x) for k, x in enumerate(node.operands)]
        node = replace(node, operands=operands, results=[_as_number(trace, y) for y in node.results])
    return rule(node)


def _holds_record(node: JVP) -> bool:
    return any(isinstance(x.known_type, RecordType) for x in (*node.operands, *node.results))


def _is_exact(x: Term) -> bool:
    """Whether a value is of integers or datetimes, whose tangents have another dtype."""
    return isinstance(x.known_type, TensorType) and x.known_type.dtype in INTEGERS | DATETIMES


def _as_number(trace: Trace, x: Term) -> Term:
    """An integer value in the float dtype of its tangents. (A recording keeps the conversion only if the rule reads it.)"""
    return trace.emit("convert_element_type", x, new_dtype=tensor_tangent_type(x.type).dtype) if _is_exact(x) else x
