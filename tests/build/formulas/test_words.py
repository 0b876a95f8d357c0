"""Words of other languages lead to what formulas write, and what they lead to builds."""

from __future__ import annotations

import re

import pytest

from tidu_cli.adapters.numpy.formulas.formula import FormulaError, build_formula
from tidu_cli.adapters.numpy.formulas.language import FOREIGN, NAMES, NOT_HERE, SYNTAX, function_names
from tidu_cli.graph.types import TensorType

TYPES = {"x": TensorType("f64"), "y": TensorType("f64")}


def refusal(text: str) -> str:
    with pytest.raises(FormulaError) as caught:
        build_formula(text, TYPES)
    return str(caught.value)


def require_builds(hint: str) -> None:
    build_formula(hint, TYPES)


@pytest.mark.parametrize("word", FOREIGN)
def test_functions(word: str) -> None:
    assert word not in function_names() and word == word.lower()
    for name in (word, word.upper(), word.capitalize()):
        if name != "if":
            assert refusal(f"{name}(x)").endswith(f"unknown function '{name}'; write {FOREIGN[word]}")
    require_builds(FOREIGN[word])


@pytest.mark.parametrize("word", NOT_HERE)
def test_what_formulas_do_not_do(word: str) -> None:
    assert refusal(f"{word}(x)").endswith(NOT_HERE[word])


@pytest.mark.parametrize("word", NAMES)
def test_constants(word: str) -> None:
    assert f"; write {NAMES[word]}" in refusal(f"{word} * x")
    require_builds(f"where({NAMES[word]}, x, y)" if NAMES[word] in ("True", "False") else f"{NAMES[word]} * x")


WRITTEN = {
    "x > 0 && y > 0": "(x > 0) & (y > 0)", "x || y": "(x > 0) | (y > 0)", "x .* y": "without a dot", "x ^ ^ y": "x**2",
    "x > 0 ? x : 0": "where(x > 0, x, 0)", "if x > 0 then x else y": "where(x > 0, x, 0)", "x <> y": "!=", "!x": "~(x > 0)",
    "x²": "x**2", "√x": "sqrt(x)", "x × y": "*", "x ÷ y": "/", "x − y": "-", "x ≤ y": "<=", r"\sin x": "backslash",
    "1.0d3 * x": "1.0e3", "|x|": "abs(x)", "x'": "transpose(x)", "2x": "2*x", "sin x": "sin(x)", "2 x": "2*x",
    "x %*% y": "write @", "x %% 2": "x % 2", "x mod 2": "mod(x, 2)", r"\frac{x}{y}": "x / y", r"x \cdot y": "write *",
    "sin(x)cos(x)": "sin(x)*cos(x)", "2(x + 1)": "write *", "(x + 1)(y - 1)": "write *", "Sin[x]": "write sin(...)",
    "exp[x]": "write exp(...)", "torch.relu(x)": "maximum(x, 0)", "np.sin(x)": "write sin(...)", "log(x, 2)": "log(x) / log(b)",
    "arctan(x, y)": "arctan2(y, x)", "TRUE": "write True", "sin^2(x)": "sin(x)**2", "Math.PI": "without a module", "∞": "write inf",
    "Pi": "write pi",
}  # fmt: skip


@pytest.mark.parametrize("text", WRITTEN)
def test_signs(text: str) -> None:
    assert WRITTEN[text] in refusal(text)


def test_what_hints_write_builds() -> None:
    for _, hint in SYNTAX:
        for formula in re.findall(r"(?:where|sqrt|sin|abs|gamma|exp|transpose)\([^()]*\)|\d\*x|x\*\*2", hint):
            require_builds(formula)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x^2", "write ** for a power"),
        ("e^x", "write ** for a power"),
        ("π * x", "write pi"),
        ("sum(x, y)", "write sum(stack([x, y]), axis=0)"),
        ("max(x, 0)", "write maximum(x, 0) elementwise, or max(x, axis=0) along an axis"),
        ("sine(x)", "did you mean 'sin'?"),
        ("Sin(x)", "did you mean 'sin'?"),
    ],
)
def test_readings(text: str, words: str) -> None:
    assert words in refusal(text)


@pytest.mark.parametrize("text", ["i", "j"])
def test_no_name_of_another_meaning_is_suggested(text: str) -> None:
    assert "did you mean" not in refusal(text)


@pytest.mark.parametrize("text", ["k", "dx", "rho", "Re", "xs"])
def test_names_without_a_type_are_numbers(text: str) -> None:
    inputs = build_formula(f"x * {text}", TYPES).inputs
    assert {str(key): str(declared.type) for key, declared in inputs.items()} == {"x": "f64[]", "y": "f64[]", text: "f64[]"}


@pytest.mark.parametrize(
    "word", ["qux", "foo", "spectrum", "scale", "power_law", "model", "rate", "signal", "value", "energy", "zeta", "H"]
)
def test_no_function_of_another_meaning_is_suggested(word: str) -> None:
    assert "did you mean" not in refusal(f"{word}(x)")
