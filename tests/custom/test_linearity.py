"""What counts as linear is: where a primitive is said to vanish with some operands, it does, and no primitive is forgotten."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest

from tests.custom.making import body, primitives_of, unary
from tidu_cli.checking.numeric.trials import draw, example_cases, of_operand
from tidu_cli.custom.graphs import typed_graph
from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.graph.graph import CaseTable, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.types import RecordType, leaves, parse_type
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.recording.linearity import require_linear


def judged_linear(case, moving) -> list[bool]:
    """Of each result of a built-in case, whether it is found to be linear in the `moving` operands."""
    n, inputs = len(moving), [Input(Key(f"x{k}"), t) for k, t in enumerate(case.operands)]
    verdicts = []
    for slot, type_ in enumerate(case.results):
        builder = GraphBuilder(CaseTable(), inputs)
        builder.append(builder.cases.intern(case), range(n))
        try:
            require_linear(BUILTIN, builder.build("f", [Output(Key("y"), n + slot, type_)]), moving, "tangents")
            verdicts.append(True)
        except MissingRuleError:
            verdicts.append(False)
    return verdicts


def of_each(function, *values):
    """Values, of which records are tuples, from what a function makes of the arrays in others."""
    if isinstance(values[0], tuple):
        return tuple(of_each(function, *fields) for fields in zip(*values, strict=True))
    return function(*values)


def arrays_in(value) -> list:
    return [a for field in value for a in arrays_in(field)] if isinstance(value, tuple) else [value]


def drawn(rng, type_, interval):
    if isinstance(type_, RecordType):
        return tuple(drawn(rng, field, interval) for _, field in type_.fields)
    return draw(rng, type_, interval)


def is_vector(type_) -> bool:
    return all(leaf.inexact for _, leaf in leaves(type_))


@pytest.mark.parametrize("op", [p.name for p in BUILTIN])
def test_what_is_linear_is_zero_and_additive(op):
    primitive = BUILTIN[op]
    rng = np.random.default_rng(0)
    for example, case in example_cases(BUILTIN, primitive):
        operands = case.operands
        dtypes = {leaf.dtype for t in (*operands, *case.results) for _, leaf in leaves(t) if leaf.inexact}
        if not 0 < len(operands) <= 5 or not dtypes <= {"f64", "c128"}:
            continue
        compute = primitive.evaluation.kernel(np, case.attrs, operands, case.results)
        several = len(case.results) > 1

        def run(arrays, compute=compute, several=several):
            with np.errstate(all="ignore"):
                result = compute(*[of_each(np.array, a) for a in arrays])
            return result if several else (result,)

        for moving in product((False, True), repeat=len(operands)):
            if not any(moving) or not all(is_vector(t) or not m for t, m in zip(operands, moving, strict=True)):
                continue
            linear = judged_linear(case, moving)
            if not any(linear):
                continue
            x, y = ([drawn(rng, t, of_operand(example.within, k)) for k, t in enumerate(operands)] for _ in range(2))
            y = [b if m else a for a, b, m in zip(x, y, moving, strict=True)]
            at_zero = run([of_each(lambda a: a * 0, a) if m else a for a, m in zip(x, moving, strict=True)])
            both = run([of_each(lambda a, b: 2 * a - b, a, b) if m else a for a, b, m in zip(x, y, moving, strict=True)])
            for is_linear, *results in zip(linear, at_zero, both, run(x), run(y), strict=True):
                if not is_linear:
                    continue
                for zero, z, fx, fy in zip(*map(arrays_in, results), strict=True):
                    assert not np.any(zero), (case.op, moving)
                    scale = max([1.0, *np.abs(np.ravel(fx)), *np.abs(np.ravel(fy))])
                    assert np.allclose(z, 2 * np.asarray(fx) - fy, rtol=0, atol=1e-11 * scale, equal_nan=True), (case.op, moving)


@pytest.mark.parametrize(
    ("nodes", "value", "linear"),
    [
        ([], 1, True),
        ([("neg", 1)], 2, True),
        ([("mul", 0, 1)], 2, True),
        ([("mul", 1, 1)], 2, False),
        ([("sin", 1), ("mul", 1, 2)], 3, False),
        ([("gt", 1, 0), ("neg", 1), ("select_n", 2, 1, 3)], 4, False),
        ([("div", 1, 0)], 2, True),
        ([("div", 0, 1)], 2, False),
        ([("add", 1, 0)], 2, False),
        ([("sub", 0, 0), ("add", 1, 2)], 3, False),  # zero, but not seen to be
        ([("constant", {"value": {"type": "f64[]", "data": [0]}}), ("add", 1, 2)], 3, True),
        ([("constant", {"value": {"type": "f64[]", "data": [0]}}), ("mul", 0, 2), ("add", 1, 3)], 4, True),
        ([("constant", {"value": {"type": "f64[]", "data": [0]}}), ("exp", 1), ("mul", 2, 3)], 4, True),
        ([("gt", 0, 0), ("select_n", 2, 1, 1)], 3, True),
        ([("gt", 0, 0), ("select_n", 2, 1, 0)], 3, False),
        ([("stop_gradient", 1)], 2, False),
        ([("abs", 1)], 2, False),
        ([("twice", 1)], 2, True),
        ([("more", 1)], 2, False),
    ],
)
def test_bodies(nodes, value, linear):
    ops = {
        "twice": unary(body("x", [("add", 0, 0)], {"y": 1})),
        "more": unary(body("x", [("constant", {"value": {"type": "f64[]", "data": [1]}}), ("add", 0, 1)], {"y": 2})),
        "o": unary(jvp=body("x x@1", nodes, {"y@1": value})),
    }
    primitives = primitives_of(ops)
    f64 = parse_type("f64[]")
    refused = nullcontext() if linear else pytest.raises(TypeRuleError, match="not known to be linear in the tangents")
    with refused:
        typed_graph(primitives.definition_of("o"), "jvp", primitives, primitives.parse_attrs("o", {}), (f64,))
