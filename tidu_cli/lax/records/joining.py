"""Vectors of different types as operands of one sum: each is converted to the type of the result first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidu_cli.graph.graph import CaseTable, Input
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import Type, of_batch
from tidu_cli.rules.batching import itself, stacked
from tidu_cli.rules.contract import Batching, BatchRule, Kernel, ValueTypes
from tidu_cli.rules.recording.trace import Trace
from tidu_cli.rules.tangents.conversion import converted
from tidu_cli.rules.terms import Term, op

Conversion = Callable[[Term, Type], Term]
"""What makes of a vector one of another type: of tangents `converted`, of cotangents `converted_cotangent`."""


def joining_kernel(np: Any, add: Kernel, operands: ValueTypes, result: Type, convert: Conversion = converted) -> Kernel:
    """The kernel that adds vectors of different types."""
    from tidu_cli.lax.builtin import BUILTIN  # which has this family
    from tidu_cli.rules.recording.functions import kernel
    from tidu_cli.rules.recording.graphs import as_output, recorded  # here, as vectors are rare

    def conversion(given: Type) -> Kernel:
        trace = Trace(BUILTIN, CaseTable())
        made = as_output("y", convert(trace.source(given, linear=False), result))
        return kernel(np, recorded(trace, "conversion", [Input(Key("x"), given)], [made]), BUILTIN)

    ready = [None if t == result else conversion(t) for t in operands]
    return lambda *values: add(*(x if made is None else made(x) for x, made in zip(values, ready, strict=True)))


def joining_batch(name: str, convert: Conversion = converted) -> BatchRule:
    """The batch rule of what adds vectors of different types."""

    def batch(node: Batching) -> Sequence[Term]:
        if node.types[0] == node.types[1]:
            return itself(name)(node)
        (result,) = node.operands[0].trace.primitives.case(name, node.attrs, None, node.types).results
        return [op(name)(*[convert(stacked(node, k), of_batch(result, node.size)) for k in range(2)])]

    return batch
