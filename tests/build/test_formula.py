"""Formulas: their values, what they refuse, and that they execute nothing."""

from __future__ import annotations

import builtins
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build.comparing import assert_same, formula, run
from tests.cli.running import ROOT
from tidu_cli.build.formula import build_formula, function_names
from tidu_cli.documents.read import parse_document
from tidu_cli.documents.write import format_document
from tidu_cli.errors import TiduError
from tidu_cli.graph.types import parse_type

RNG = np.random.default_rng(3)
X, V, W = RNG.uniform(0.1, 1, (3, 4)), RNG.uniform(0.1, 1, 4), RNG.uniform(0.1, 1, 3)

VALUES = {
    "sum(log1p(exp(-W * (X @ V))))": np.sum(np.log1p(np.exp(-W * (X @ V)))),
    "X[1]": X[1],
    "X[::-2, None, 1:3]": X[::-2, None, 1:3],
    "X[..., [0, -1]]": X[..., [0, -1]],
    "mean(X, axis=(0, 1), keepdims=True)": np.mean(X, axis=(0, 1), keepdims=True),
    "X.T @ W": X.T @ W,
    "einsum('ij,j->i', X, V)": X @ V,
    "where(X > 0.5, X, 0) + 2 * pi": np.where(X > 0.5, X, 0) + 2 * np.pi,
    "stack([V, 2 * V, zeros(4)])": np.stack([V, 2 * V, np.zeros(4)]),
    "X ** 2 + 2 ** X - X / 3 // 0.1 % 7": X**2 + 2**X - X / 3 // 0.1 % 7,
    "arange(4) * V": np.arange(4) * V,
    "linspace(0, 1, 4)": np.linspace(0, 1, 4),
    "eye(3, 4) + X": np.eye(3, 4) + X,
    "exp(1)": np.exp(1),
    "norm(X)": np.linalg.norm(X),
    "convert(X, f32)": X.astype(np.float32),
    "sum(X, dtype=f32)": np.sum(X, dtype=np.float32),
    "(X > 0.2) & ~(X > 0.7)": (X > 0.2) & ~(X > 0.7),
    "3": 3,
    "maximum(1, 2) + V": 2 + V,
    "array([[1, 2], [3, 4]])[1]": np.array([3, 4]),
    "sum(softmax(X, axis=1))": 3.0,
    "abs(-V)": V,
    " + ".join(["V"] * 2000): 2000 * V,
}


@pytest.mark.parametrize("text", VALUES, ids=lambda t: t[:40])
def test_value(text):
    assert_same(formula(text, X=X, V=V, W=W), VALUES[text], rtol=1e-10)


def test_logistic_regression_has_the_values_of_the_sample():
    sample = ROOT / "samples" / "logistic_regression"
    document, _ = parse_document((sample / "loss.json").read_bytes(), "loss.json")
    data = dict(np.load(sample / "data.npz"))
    values = {str(i.key): data.get(str(i.key), np.linspace(-0.3, 0.3, i.type.size)) for i in document.head.inputs}
    text = "sum(log1p(exp(-t * (X @ w)))) + 0.5 * sum(penalty * w * w)"
    built = build_formula(text, {str(i.key): i.type for i in document.head.inputs}, name="loss", outputs=["loss"])
    assert built.head.name == "loss"
    assert_same(run(built, values)["loss"], run(document, values)["loss"])


def test_several_outputs():
    text = "h = x * x; y = sum(h); z = h + y"
    document = build_formula(text, {"x": parse_type("f64[2]")})
    assert {k: v.tolist() for k, v in run(document, {"x": [1.0, 2.0]}).items()} == {"h": [1, 4], "y": 5, "z": [6, 9]}
    chosen = build_formula(text, {"x": parse_type("f64[2]")}, outputs=["z", "y"])
    assert [str(o.key) for o in chosen.head.outputs] == ["z", "y"]


REFUSED = {
    "sine(x)": "column 1: unknown function 'sine'; did you mean 'sin'?",
    "2 * z": "column 5: unknown name 'z'; give it a type with -i z:TYPE",
    "x.__class__": "column 1: attributes other than .T",
    "x.sum()": "column 1: only functions can be called, by their names; write sum(...)",
    "__import__('os')": "column 1: unknown function '__import__'",
    "eval('1')": "column 1: unknown function 'eval'",
    "(lambda: 1)()": "only functions can be called",
    "[i for i in x]": "a comprehension has no place",
    "x if x else x": "write where(condition, a, b)",
    "x and x": "write & and |",
    "not x": "write ~",
    "0 < x < 1": "comparisons do not chain",
    "x in x": "'in' and 'is'",
    "'text'": "text has no place",
    "f'{x}'": "text has no place",
    "x = 3": "'x' is an input and cannot be assigned",
    "y = 1; x; z = 3": "only the last part may go without a name",
    "import os": "a formula is an expression",
    "y: int = 3": "a formula is an expression",
    "y += x": "a formula is an expression",
    "a, b = x": "a formula is an expression",
    "9**9**9": "a number past 2**64",
    "(-1)**99999999999 * 10**99": "a number past 2**64",
    "1 << 999999999": "left_shift of two numbers",
    "x[5]": "column 1: index 5 is out of range",
    "x + ones(3)": "do not broadcast",
    "sum(x, axis=4)": "axis 4 is out of range",
    "sum(x, axes=0)": "axes",
    "zeros(10**18) + x": "larger than any memory",
    "1 / 0": "division by zero",
    "1e308 * 10 ** 400": "a number past 2**64",
    "sin": "'sin' is a function; write sin(...)",
    "sin()": "sin takes",
    "sin(x, x)": "takes 1 argument, got 2",
    "sum(x, dtype=f23)": "not a dtype; did you mean 'f32'?",
    "sum(*x)": "no place in a formula",
    "sum(**x)": "'**' has no place",
    "x +": "invalid syntax",
    "": "is empty",
    "#": "is empty",
    "-" * 5000 + "x": "nests too deeply",
    "(" * 100 + "x" + ")" * 100 + "+": "",
    "x" + "[0]" * 500: "nests too deeply",
    "x" * 20_000: "has 20000 characters",
    "x\0": "null",
    "where(x)": "",
    "concatenate(x, y)": "unknown name 'y'",
    "diff(x, n=99999999)": "n is from 0 to 1000",
    "tile(x, 10**18)": "larger than any memory",
    "reshape(x, (2, 2))": "does not reshape",
    "repeat(x, [10**9, 1])": "add up to 10,000,000 at most",
    "stack(zeros(10**9))": "iteration over 1,000,000,000 elements",
    "add(x, x, out=x)": "no place",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda t: t[:30])
def test_refusal(text):
    with pytest.raises(TiduError) as found:
        build_formula(text, {"x": parse_type("f64[2]")})
    message = str(found.value)
    assert message.startswith("formula") and "\n" not in message
    assert REFUSED[text] in message


WORDS = [*function_names(), "x", "n", "pi", "eval", "exec", "__import__", "open", "os", "lambda", "f32", "None", "True", "1", "0",
         "-1", "2.5", "1e300", "9" * 30, "3j",
         "'ij,j->i'", "axis=", "dtype=", "(", ")", "[", "]", ",", ":", "**", "*", "@", "+", "-",
         "/", "//", "%", "<", "==", "&", "|", "~", "<<", ".", ".T", "...", "=", ";", "\n", " ", "\0", "é", "\ud800"]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=14).map("".join) | st.text(max_size=30))
@settings(deadline=None, max_examples=400)
def test_fuzz(text):
    with pytest.MonkeyPatch.context() as patch:
        for name in ("open", "input"):
            patch.setattr(builtins, name, None)
        _build_or_refuse(text)


CALL = st.recursive(
    st.sampled_from(
        ["x", "n", "A", "1", "0", "-3", "2.5", "True", "None", "[0, 1]", "(2, 3)", "[]", "1e300", "f32", "'ij->i'", "10**18"]
    ),
    lambda inner: (
        st.builds(
            lambda name, args, options: f"{name}({', '.join([*args, *options])})",
            st.sampled_from(function_names()),
            st.lists(inner, max_size=3),
            st.lists(
                st.builds("{}={}".format, st.sampled_from(["axis", "dtype", "keepdims", "n", "k", "shape", "ord", "mode"]), inner),
                max_size=1,
            ),
        )
        | st.builds("({} {} {})".format, inner, st.sampled_from(["+", "*", "@", "**", "//", "<", "&", ">>"]), inner)
        | st.builds("{}[{}]".format, inner, inner)
    ),
    max_leaves=6,
)


@given(CALL)
@settings(deadline=None, max_examples=600)
def test_fuzz_of_calls(text):
    _build_or_refuse(text)


def _build_or_refuse(text):
    types = {"x": parse_type("f64[2,3]"), "n": parse_type("i64[]"), "A": parse_type("c64[3,3]")}
    try:
        document = build_formula(text, types)
    except TiduError:
        return
    data = format_document(document, "json")
    json.loads(data)
    parse_document(data, "built")
