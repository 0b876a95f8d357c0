"""Words of other languages lead to what formulas write, and what they lead to builds."""

from __future__ import annotations

import re

import pytest

from tidu_cli.build.formulas.formula import FormulaError, build_formula
from tidu_cli.build.formulas.language import function_names
from tidu_cli.build.formulas.words import FUNCTIONS, NOT_HERE, SYNTAX
from tidu_cli.graph.types import TensorType

TYPES = {"x": TensorType("f64"), "y": TensorType("f64")}


def refusal(text: str) -> str:
    with pytest.raises(FormulaError) as caught:
        build_formula(text, TYPES)
    return str(caught.value)


def require_builds(hint: str) -> None:
    build_formula(hint, TYPES)


@pytest.mark.parametrize("word", FUNCTIONS)
def test_functions(word: str) -> None:
    assert word not in function_names() and word == word.lower()
    for name in (word, word.upper(), word.capitalize()):
        if name != "if":
            assert refusal(f"{name}(x)").endswith(f"unknown function '{name}'; write {FUNCTIONS[word]}")
    require_builds(FUNCTIONS[word])


@pytest.mark.parametrize("word", NOT_HERE)
def test_what_formulas_do_not_do(word: str) -> None:
    assert refusal(f"{word}(x)").endswith(NOT_HERE[word])


WRITTEN = {
    "x > 0 && y > 0": "(x > 0) & (y > 0)", "x || y": "(x > 0) | (y > 0)", "x .* y": "without a dot", "x ^ ^ y": "x**2",
    "x > 0 ? x : 0": "where(x > 0, x, 0)", "if x > 0 then x else y": "where(x > 0, x, 0)", "x <> y": "!=", "!x": "~(x > 0)",
    "x²": "x**2", "√x": "sqrt(x)", "x × y": "*", "x ÷ y": "/", "x − y": "-", "x ≤ y": "<=", r"\sin x": "backslash",
    "1.0d3 * x": "1.0e3", "|x|": "abs(x)", "x'": "transpose(x)", "2x": "2*x", "sin x": "sin(x)", "2 x": "2*x",
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


@pytest.mark.parametrize("word", ["qux", "foo", "spectrum", "scale", "power_law", "model", "rate", "signal", "value", "energy"])
def test_no_function_of_another_meaning_is_suggested(word: str) -> None:
    assert "did you mean" not in refusal(f"{word}(x)")
