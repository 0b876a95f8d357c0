"""Formulas: their values, what they refuse, and that they execute nothing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.build.comparing import assert_same, formula, run
from tests.cli.running import ROOT
from tidu_cli.adapters.numpy.formulas.formula import build_formula
from tidu_cli.errors import TiduError
from tidu_cli.formats.read import parse_document
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
    "divmod(V, 0.3)[1]": V % 0.3,
    "split(X, 2, axis=1)[-1]": X[:, 2:],
    "interp(V, [0, 1], [2, 4])": 2 + 2 * V,
    "pad(V, 2, mode='edge')": np.pad(V, 2, mode="edge"),
    "searchsorted(sort(V), V, side='right')": np.searchsorted(np.sort(V), V, side="right"),
    "quantile(V, [0.25, 0.75])": np.quantile(V, [0.25, 0.75]),
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


def test_several_names():
    text = "q, r = divmod(x, 2); [a, b] = split(x, 2); (c, d) = x[0], 2 * r; e, f, g, h = x"
    values = run(build_formula(text, {"x": parse_type("f64[4]")}), {"x": [1.0, 3.0, 4.0, 6.0]})
    assert {k: v.tolist() for k, v in values.items()} == {
        "q": [0, 1, 2, 3], "r": [1, 1, 0, 0], "a": [1, 3], "b": [4, 6], "c": 1, "d": [2, 2, 0, 0], "e": 1, "f": 3, "g": 4, "h": 6
    }  # fmt: skip


@pytest.mark.parametrize(("text", "values"), [("max(x, axis=0)", [3.0, 4.0]), ("maximum(x, 2)", [[2.0, 4.0], [3.0, 2.0]])])
def test_both_readings_of_max_are_there(text, values):
    assert formula(text, x=np.array([[1.0, 4.0], [3.0, 0.0]])).tolist() == values


REFUSED = {
    "sine(x)": "column 1: unknown function 'sine'; did you mean 'sin'?",
    "2 * numpy": "column 5: unknown name 'numpy'; functions and constants go without a module",
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
    "a, b, c = x": "gives 2 arrays for 3 names",
    "a, b = x, x, 3": "gives 3 arrays for 2 names",
    "a, a = x": "'a' stands twice",
    "a, b[0] = x": "the parts of a, b = ... are names",
    "x, b = x": "'x' is an input",
    "a, b = 3": "gives one number and not 2 arrays",
    "(a, b), c = x": "the parts of a, b = ... are names",
    "x[0] = 3": "a formula is an expression",
    "a = b = x": "a formula is an expression",
    "divmod(x, 2) + 1": "column 1: gives 2 arrays; name them, as in a, b = ...",
    "divmod(x, 2)[2]": "of 2 arrays one is taken by an integer",
    "sum(divmod(x, 2))": "column 5: gives 2 arrays",
    "frexp(x)": "unknown function 'frexp'",
    "eigh(x)": "unknown function 'eigh'",
    "1 + max(x, 0)": "column 5: max(x, 0) can be read in two ways; write maximum(x, 0) elementwise, or max(x, axis=0) along",
    "min(x, (0,))": "write minimum(x, (0,)) elementwise, or min(x, axis=(0,)) along an axis",
    "amax(x, None)": "write maximum(x, None) elementwise, or amax(x, axis=None)",
    "nanmin(x - 1, -1)": "write fmin(x - 1, -1) elementwise, or nanmin(x - 1, axis=-1)",
    "logsumexp(x, 0)": "write logaddexp(x, 0) elementwise, or logsumexp(x, axis=0)",
    "any(x > 0, 0)": "write logical_or(x > 0, 0) elementwise, or any(x > 0, axis=0)",
    "max(x, x * 2)": "max is of the elements of one array; write maximum(x, x * 2)",
    "max(x, 0.0)": "write maximum(x, 0.0)",
    "x[x > 0]": "np.where(mask, x, 0)",
    "nonzero(x)": "unknown function 'nonzero'",
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
    "x +": "is unfinished: something must follow 'x +'",
    "": "is empty",
    "#": "is empty",
    "-" * 5000 + "x": "nests too deeply",
    "(" * 100 + "x" + ")" * 100 + "+": "",
    "x" + "[0]" * 500: "nests too deeply",
    "x" * 20_000: "has 20000 characters",
    "x\0": "null",
    "where(x)": "",
    "concatenate(x, Sum)": "unknown name 'Sum'",
    "diff(x, n=99999999)": "n is from 0 to 1000",
    "tile(x, 10**18)": "larger than any memory",
    "reshape(x, (2, 2))": "does not reshape",
    "repeat(x, [10**9, 1])": "add up to 10,000,000 at most",
    "stack(zeros(10**9))": "iteration over 1,000,000,000 elements",
    "add(x, x, out=x)": "no place",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda t: t[:30])
def test_refusal(text):
    with pytest.raises(TiduError) as refusal:
        build_formula(text, {"x": parse_type("f64[2]")})
    message = str(refusal.value)
    assert message.startswith("formula") and "\n" not in message
    assert REFUSED[text] in message
