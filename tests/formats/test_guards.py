"""Selects that reading a StableHLO module puts before slopes that may be infinite: on graphs as they are, without JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu_cli
from tests import tiers
from tidu_cli.checking.numeric.examples import example_cases
from tidu_cli.custom.packages import KNOWN
from tidu_cli.formats.stablehlo.reading import guards
from tidu_cli.formats.stablehlo.reading.guards import HARMLESS, Slopes, guarded
from tidu_cli.formats.stablehlo.reading.recording import Recording
from tidu_cli.graph.graph import Document, Graph, Input
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import INEXACT, TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.rules.terms import Term

POINTS = [-3.0, -1.0, -0.5, -0.0, 0.0, 0.3, 0.5, 1.0, 1.5, 2.0, np.inf, np.nan]
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


def read(text: str) -> tuple[Document, Document]:
    """A formula in x, a vector of POINTS, read with and without guards."""
    plain = tidu_cli.formula(text, inputs={"x": f"f64[{len(POINTS)}]"})
    return document(guarded(plain.head, KNOWN)), plain


def values(of: Document, **inputs: Any) -> list[Any]:
    with np.errstate(all="ignore"):
        return list(tidu_cli.evaluate(of, inputs).values())


def derivatives(of: Document, dtype: Any = "f8") -> tuple[Any, Any]:
    """The JVP and the VJP of y0 by x0 at POINTS, of elementwise functions."""
    x, one = np.array(POINTS).astype(dtype), np.ones(len(POINTS), dtype)
    key, y = (str(port.key) for port in (of.head.inputs[0], of.head.outputs[0]))
    forward = values(tidu_cli.jvp(of, key, output=y), **{key: x, f"{key}@1": one})
    return forward[0], values(tidu_cli.vjp(of, key, output=y), **{key: x, f"{y}@-1": one})[0]


@st.composite
def programs(draw: st.DrawFn) -> Graph:
    """Elementwise operations and selects of all values before, which branches, selectors and outputs share as it comes."""
    dtype = draw(st.sampled_from(["f64", "f32", "bf16", "c128"]))
    ops = [*ANY, *BINARY[:5], *(REAL if dtype != "c128" else ()), *["select_n"] * 12]
    steps = draw(st.lists(st.tuples(st.sampled_from(ops), *[st.integers(1, 5)] * 3), min_size=3, max_size=20))

    def program(x: Term) -> list[Term]:
        emit, found = x.trace.emit, [x]
        for op, *places in steps:
            a, b, c = (found[-min(n, len(found))] for n in places)
            if op == "select_n":
                found.append(emit(op, emit("eq", emit("sign", a), emit("square", a)), b, c))
            else:
                found.append(emit(op, *[a, b][: 1 + (op in BINARY)]))
        return [found[-1], found[len(found) // 2]]

    return recorded(program, TensorType(dtype, (len(POINTS),)))


@settings(max_examples=tiers.examples(80))
@given(graph=programs())
def test_values_keep_their_bits_and_no_derivative_gets_worse(graph: Graph) -> None:
    """Where the VJP is finite without guards it is the same with them."""
    dtype = numpy_dtype(np, graph.inputs[0].type.dtype)
    x = np.array(POINTS).astype(dtype)
    safe, plain = document(guarded(graph, KNOWN)), document(graph)
    for y, expected in zip(values(safe, x0=x), values(plain, x0=x), strict=True):
        assert y.tobytes() == expected.tobytes()
    (_, found), (_, expected) = derivatives(safe, dtype), derivatives(plain, dtype)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[finite], expected[finite])


TREES = st.recursive(
    st.sampled_from(["x", "1.5", "x", "-0.5"]),
    lambda part: st.one_of(
        st.tuples(st.sampled_from(["log", "sqrt", "exp", "sin", "arcsin", "square", "log1p"]), part).map(lambda t: f"{t[0]}({t[1]})"),
        st.tuples(part, st.sampled_from("+-*/"), part).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(st.sampled_from("<>"), st.sampled_from([-0.5, 0, 0.5, 1]), part, part).map(
            lambda t: f"where(x {t[0]} {t[1]}, {t[2]}, {t[3]})"
        ),
    ),
    max_leaves=10,
)


@settings(max_examples=tiers.examples(80))
@given(text=TREES)
def test_reverse_mode_is_right_where_forward_mode_is(text: str) -> None:
    """In programs whose selectors do not depend on what has a singularity."""
    of = read(f"x * 0 + {text}")[0]
    forward, reverse = derivatives(of)
    finite = np.isfinite(forward) & np.isfinite(POINTS)  # inputs count as finite
    np.testing.assert_allclose(reverse[finite], forward[finite], rtol=1e-9, atol=1e-9)
