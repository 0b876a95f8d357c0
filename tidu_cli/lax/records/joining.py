"""Vectors of different types as operands of one sum, each converted to the type of the result first; and strong products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import CaseTable, Graph, Input
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import Type
from tidu_cli.rules.batching import itself, stacked
from tidu_cli.rules.contract import Batching, BatchRule, Kernel, Types, ValueTypes
from tidu_cli.rules.recording.conversion import converted
from tidu_cli.rules.recording.trace import Trace, as_output, recorded
from tidu_cli.rules.tangents import scaled_operand
from tidu_cli.rules.terms import Term, op

Conversion = Callable[[Term, Type], Term]
"""What makes of a vector one of another type: of tangents `converted`, of cotangents `converted_cotangent`."""


def conversion_graph(given: Type, wanted: Type, convert: Conversion) -> Graph:
    """The graph that makes of a vector one of another type."""
    from tidu_cli.lax.vocabulary import BUILTIN  # which has this family

    trace = Trace(BUILTIN, CaseTable())
    made = as_output("y", convert(trace.source(given, linear=False), wanted))
    return recorded(trace, "conversion", [Input(Key("x"), given)], [made])


def conversion_kernel(np: Any, given: Type, wanted: Type, convert: Conversion = converted) -> Kernel:
    """The kernel that makes of a vector one of another type."""
    from tidu_cli.lax.vocabulary import BUILTIN
    from tidu_cli.rules.recording.functions import kernel

    return kernel(np, conversion_graph(given, wanted, convert), BUILTIN)


def converted_batch(x: Term, given: Type, wanted: Type, size: int, convert: Conversion = converted) -> Term:
    """So many vectors of a type together, as ones of another type: the maps of views are of single ones."""
    if given == wanted:
        return x
    graph = conversion_graph(given, wanted, convert)
    values, batched = [x], [True]
    for code, args, first, end in forwards(graph, graph.args):
        case, operands, flags = graph.cases[code], [values[a] for a in args], tuple([batched[a] for a in args])
        if any(flags):
            rule = x.trace.primitives.batch_rule(case.op)
            values += rule(Batching(case.attrs, operands, cast(Types, case.operands), flags, size))
        else:
            values += x.trace.apply(case.op, case.attrs, operands)
        batched += [any(flags)] * (end - first)
    (result,) = graph.outputs
    return values[cast(int, result.value)]


def joining_kernel(np: Any, add: Kernel, operands: ValueTypes, result: Type, convert: Conversion = converted) -> Kernel:
    """The kernel that adds vectors of different types."""
    ready = [None if t == result else conversion_kernel(np, t, result, convert) for t in operands]
    return lambda *values: add(*(x if made is None else made(x) for x, made in zip(values, ready, strict=True)))


def joining_batch(name: str, convert: Conversion = converted) -> BatchRule:
    """The batch rule of what adds vectors of different types."""

    def batch(node: Batching) -> Sequence[Term]:
        if node.types[0] == node.types[1]:
            return itself(name)(node)
        (result,) = node.operands[0].trace.primitives.case(name, node.attrs, None, node.types).results
        return [op(name)(*[converted_batch(stacked(node, k), node.types[k], result, node.size, convert) for k in range(2)])]

    return batch


Strong = tuple[str, Sequence[Term]] | None


def strong_product(operands: Sequence[Term]) -> Strong:
    """Where zeros are strong: strong_mul of numbers, with the tangent as operand 1; vectors that are scaled stay as they are."""
    return None if _scale(operands) else ("strong_mul", sorted(operands, key=lambda t: t.linear))


def strong_quotient(operands: Sequence[Term]) -> Strong:
    """strong_div."""
    return None if _scale(operands) else ("strong_div", operands)


def _scale(operands: Sequence[Term]) -> bool:
    return scaled_operand([t.value_type for t in operands]) is not None
