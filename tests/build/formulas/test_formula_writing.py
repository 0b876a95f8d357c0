"""Graphs of numbers are written as formulas that read as graphs of the same values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build.comparing import run
from tests.tiers import examples
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.formulas.formula import build_formula, formula_of
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

UNARY = (
    "sin",
    "cos",
    "tanh",
    "exp",
    "log",
    "sqrt",
    "abs",
    "floor",
    "erf",
    "gammaln",
    "sigmoid",
    "arctan",
    "log1p",
    "cbrt",
    "-",
    "",
)
BINARY = ("+", "-", "*", "/", "**")
ATOMS = st.sampled_from(["x", "y", "2", "0.5", "-3.0", "1e-300", "pi", "a", "-x", "0.1"])


def expressions(depth: int = 3) -> st.SearchStrategy[str]:
    below = ATOMS if not depth else expressions(depth - 1)
    return (
        ATOMS
        | st.builds("{}({})".format, st.sampled_from(UNARY), below)
        | st.builds("({}) {} ({})".format, below, st.sampled_from(BINARY), below)
        | st.builds("where(({}) > ({}), {}, maximum({}, {}))".format, below, below, below, below, below)
    )


def values(document: Any, x: float, y: float) -> dict[str, Any]:
    with np.errstate(all="ignore"):
        return run(document, {"x": x, "y": y})


@settings(max_examples=examples(2000, check=40))
@given(expressions(), expressions(), st.sampled_from(["f64", "f32", "c128"]))
def test_what_is_written_reads_as_the_same(first: str, second: str, dtype: str) -> None:
    types = {"x": TensorType(dtype), "y": TensorType(dtype)}
    try:
        document = build_formula(f"a = x * y + 1; z = ({first}) * a; w = ({second}) - z", types, outputs=("z", "w"))
    except (BuildError, ZeroDivisionError, OverflowError):
        return  # a formula that is refused
    read = build_formula(formula_of(document), types)
    for x, y in ((0.3, 1.7), (-2.0, 0.0), (np.inf, -0.0)):
        at = np.dtype({"f64": "f8", "f32": "f4", "c128": "c16"}[dtype]).type
        expected, reread = values(document, at(x), at(y)), values(read, at(x), at(y))
        for key, value in expected.items():
            np.testing.assert_array_equal(reread[key], value)


def test_a_gradient() -> None:
    document = build_formula("sin(x) * y + y**3", {"x": TensorType("f64"), "y": TensorType("f64")})
    gradient = materialize(transpose(linearize(document, [Key("x"), Key("y")])))
    assert formula_of(gradient) == "x_ct1 = cos(x) * (y * out_ct1); y_ct1 = y ** 2 * 3.0 * out_ct1 + sin(x) * out_ct1"


def test_deep_ones_are_parted() -> None:
    def function(x: Any) -> Any:
        for _ in range(200):
            x = np.sin(x) + 1
        return x

    document = trace(function, "f64[]")
    text = formula_of(document)
    assert text.count(";") > 5
    read = build_formula(text, {"x": TensorType("f64")}, outputs=("y",))
    assert run(read, {"x": 0.3}) == run(document, {"x": 0.3})


@pytest.mark.parametrize(
    ("function", "types", "words"),
    [
        (lambda x: x * 2, ("f64[3]",), "'x' is f64[3]; formulas are written of numbers without axes"),
        (lambda x: np.sum(x[None] * np.ones(2)), ("f64[]",), " has no form in formulas"),
        (lambda x: sum(np.sin(k * x) for k in range(2000)), ("f64[]",), "characters, and tidu build reads 10,000"),
    ],
)
def test_what_no_formula_has_is_refused(function: Any, types: tuple[str, ...], words: str) -> None:
    with pytest.raises(BuildError) as caught:
        formula_of(trace(function, *types))
    assert words in str(caught.value)
