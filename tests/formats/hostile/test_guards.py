"""Selects that reading a StableHLO module puts before slopes that may be infinite: on graphs as they are, without JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tidu_cli
from tests import tiers
from tidu_cli.adapters.stablehlo.reading import guards
from tidu_cli.adapters.stablehlo.reading.guards import HARMLESS, guarded, is_steep
from tidu_cli.checking.numeric.trials import example_cases
from tidu_cli.custom.packages import KNOWN
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Document, Graph, Input
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.rules.recording.known import Recording
from tidu_cli.rules.terms import Term

VALUES = np.array([-3.0, -1.0, -0.5, -0.0, 0.0, 0.3, 0.5, 1.0, 1.5, 2.0, np.inf, np.nan])
ONES = np.ones(len(VALUES))
VECTOR = TensorType("f64", VALUES.shape)
ANY = ["neg", "log", "sqrt", "rsqrt", "exp", "sin", "square", "log1p", "acosh", "asin", "tanh", "sign"]
REAL = ["abs", "cbrt", "max", "min"]
BINARY = ["add", "sub", "mul", "div", "pow", "max", "min"]


def document(graph: Graph) -> Document:
    return Document((graph,), graph.cases)


def recorded(function: Callable[..., Sequence[Term]], *types: TensorType) -> Graph:
    recording = Recording(KNOWN, types)
    results = function(*recording.sources)
    inputs = [Input(Key(f"x{k}"), t) for k, t in enumerate(types)]
    return recording.graph("f", inputs, [(Key(f"y{k}"), y) for k, y in enumerate(results)])


def values(of: Document, **inputs: Any) -> list[Any]:
    with np.errstate(all="ignore"):
        return list(tidu_cli.evaluate(of, inputs).values())


@st.composite
def programs(draw: st.DrawFn) -> Graph:
    """Elementwise operations and selects of all values before, which branches, selectors and outputs share as it comes."""
    dtype = draw(st.sampled_from(["f64", "f32", "bf16", "c128"]))
    ops = [*ANY, *BINARY[:5], *(REAL if dtype != "c128" else ()), *["select_n"] * 12]
    steps = draw(st.lists(st.tuples(st.sampled_from(ops), *[st.integers(1, 5)] * 3), min_size=3, max_size=20))

    def program(x: Term) -> list[Term]:
        emit, terms = x.trace.emit, [x]
        for op, *places in steps:
            a, b, c = (terms[-min(n, len(terms))] for n in places)
            if op == "select_n":
                terms.append(emit(op, emit("eq", emit("sign", a), emit("square", a)), b, c))
            else:
                terms.append(emit(op, *[a, b][: 1 + (op in BINARY)]))
        return [terms[-1], terms[len(terms) // 2]]

    return recorded(program, TensorType(dtype, VECTOR.shape))


@settings(max_examples=tiers.examples(80))
@given(graph=programs())
def test_values_keep_their_bits_and_no_derivative_gets_worse(graph: Graph) -> None:
    """Where the VJP is finite without guards it is the same with them."""
    dtype = numpy_dtype(np, str(graph.inputs[0].type).partition("[")[0])
    x = VALUES.astype(dtype)
    safe, plain = document(guarded(graph, KNOWN)), document(graph)
    for y, expected in zip(values(safe, x0=x), values(plain, x0=x), strict=True):
        assert y.tobytes() == expected.tobytes()
    slopes, expected = (values(tidu_cli.vjp(d, "x0", "y0"), x0=x, **{"y0@-1": ONES.astype(dtype)})[0] for d in (safe, plain))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(slopes[finite], expected[finite])


SELECTS, LIMITS = st.sampled_from(["lt", "gt"]), st.sampled_from([-0.5, 0.0, 0.5, 1.0])
PARTS = st.recursive(
    st.sampled_from([("x",), ("1.5",), ("x",), ("-0.5",), ("x",), ("0.0",), ("inf",)]),
    lambda part: st.one_of(
        st.tuples(st.sampled_from(["log", "sqrt", "exp", "sin", "asin", "square", "log1p"]), part),
        st.tuples(st.sampled_from(["add", "sub", "mul", "div"]), part, part),
        st.tuples(SELECTS, part, part, LIMITS),
    ),
    max_leaves=8,
)
TREES = st.tuples(SELECTS, st.tuples(st.sampled_from(["log", "sqrt", "rsqrt"]), PARTS), PARTS, LIMITS)
"""An operation and its operands; of lt and gt: what is taken where x is so, what elsewhere, and what x is compared with."""


def grown(x: Term, tree: Any) -> Term:
    """The value of a tree, in which nothing is shared."""
    op, *parts = tree
    if not parts:
        return x if op == "x" else x.trace.full(float(op), x.type)
    operands = [grown(x, part) for part in parts[:2]]
    if op in ("lt", "gt"):
        return x.trace.emit("select_n", x.trace.emit(op, x, parts[2]), *operands[::-1])
    return x.trace.emit(op, *operands)


@settings(max_examples=tiers.examples(80, check=25))
@example(tree=("gt", ("div", ("1.5",), ("x",)), ("x",), 0.0))
@example(tree=("gt", ("div", ("x",), ("0.0",)), ("x",), 0.5))
@example(tree=("gt", ("mul", ("x",), ("inf",)), ("x",), 0.5))
@example(tree=("gt", ("sqrt", ("sub", ("x",), ("0.5",))), ("x",), 1.0))
@given(tree=TREES)
def test_reverse_mode_is_right_where_forward_mode_is(tree: Any) -> None:
    """Twice, too, in programs whose selectors do not depend on what has a singularity, and whose branches share no values."""
    graph = recorded(lambda x: [x.trace.emit("add", x, grown(x, tree))], VECTOR)
    f = document(guarded(graph, KNOWN))
    forward, reverse = tidu_cli.jvp(f, "x0"), tidu_cli.vjp(f, "x0")
    twice = [of(first, "x0") for of in (tidu_cli.jvp, tidu_cli.vjp) for first in (forward, reverse)]
    for order in ([forward, reverse], twice):
        expected, *derivatives = (values(d, **{str(i.key): ONES for i in d.head.inputs} | {"x0": VALUES})[0] for d in order)
        finite = np.isfinite(expected) & np.isfinite(VALUES)  # inputs count as finite
        for derivative in derivatives:
            np.testing.assert_allclose(derivative[finite], expected[finite], rtol=1e-9, atol=1e-9)


def test_harmless_operands_are_harmless() -> None:
    """At them each operation whose slopes are not finite everywhere has a finite value and finite slopes."""
    tried = set()
    for primitive in (KNOWN[op] for op in sorted(guards._ELEMENTWISE) if op not in ("strong_mul", "strong_div")):
        for _, case in example_cases(KNOWN, primitive):
            dtype = getattr(case.results[0], "dtype", "")
            if not is_steep(case) or dtype not in ("f32", "c128"):
                continue
            type_ = TensorType(dtype)
            graph = recorded(lambda *xs, case=case: xs[0].trace.apply(case.op, case.attrs, xs), *[type_] * len(case.operands))
            given_ = {str(i.key): np.array(HARMLESS.get(case.op, 0.5), numpy_dtype(np, dtype)) for i in graph.inputs}
            first_only = ["x1"] if case.op in ("polygamma", "zeta") else list(given_)  # the other is an order
            jvp = tidu_cli.jvp(document(graph), first_only, value=True)
            results = values(jvp, **given_, **{f"{key}@1": np.ones_like(given_[key]) for key in first_only})
            assert np.isfinite(results).all(), case
            tried.add(case.op)
    assert len(tried) > 35


def test_what_is_read_elsewhere_is_not_guarded() -> None:
    def program(x: Term) -> list[Term]:
        emit = x.trace.emit
        y, positive = emit("log", x), emit("gt", x, 0.0)
        return [emit("add", emit("select_n", positive, 0.0, y), emit("exp", y)), emit("select_n", positive, emit("exp", y), y)]

    graph = recorded(program, VECTOR)
    assert [y.tobytes() for y in values(document(guarded(graph, KNOWN)), x0=VALUES)] == [
        y.tobytes() for y in values(document(graph), x0=VALUES)
    ]


def test_of_many_cases_and_graphs_within_nodes() -> None:
    def several(x: Term, which: Term) -> list[Term]:
        emit = x.trace.emit
        return [emit("select_n", which, emit("log", x), x, emit("sqrt", x), emit("rsqrt", emit("sub", x, 0.3)))]

    which = TensorType("i32", VECTOR.shape)
    inner = recorded(several, VECTOR, which)

    def branches(x: Term, which: Term) -> list[Term]:
        body = ClosedGraph.of(inner)
        return [x.trace.emit("cond", x.trace.full(1, TensorType("i32")), x, which, branches=[body, body])]

    numbers = np.arange(len(VALUES), dtype="i4") % 7 - 1
    for graph in (inner, recorded(branches, VECTOR, which)):
        safe, plain = document(guarded(graph, KNOWN)), document(graph)
        given_ = {"x0": VALUES, "x1": numbers}
        assert values(safe, **given_)[0].tobytes() == values(plain, **given_)[0].tobytes()
        forward = values(tidu_cli.jvp(safe, "x0"), **given_, **{"x0@1": ONES})[0]
        reverse = values(tidu_cli.vjp(safe, "x0"), **given_, **{"y0@-1": ONES})[0]
        np.testing.assert_array_equal(reverse[:-2], forward[:-2])


def test_work_is_linear_in_nodes_however_deep_selects_are_nested() -> None:
    def nested(n: int) -> Graph:
        def program(x: Term) -> list[Term]:
            emit, y = x.trace.emit, x
            for _ in range(n):
                y = emit("select_n", emit("lt", x, 0.5), emit("mul", x, emit("log", emit("add", y, x))), y)
            return [y]

        return recorded(program, VECTOR)

    small, large = (guarded(nested(n), KNOWN).n_nodes for n in (100, 1_600))
    assert large / 1_600 < 1.5 * small / 100
    assert large > nested(1_600).n_nodes


def test_a_graph_that_needs_no_guards_is_as_it_was() -> None:
    plain = recorded(lambda x: [x.trace.emit("select_n", x.trace.emit("lt", x, 0.0), x.trace.emit("sin", x), x)], VECTOR)
    assert guarded(plain, KNOWN) is plain
