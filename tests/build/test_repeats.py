"""What is recorded again is what would have been recorded anew, and takes less time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build.numpy.test_functions import FUNCTIONS
from tests.tiers import examples, few
from tests.waiting import cpu_seconds
from tidu_cli.adapters.numpy.arrays import operands
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.formats.write import format_document


def text(function: Callable[..., Any], *types: str) -> bytes:
    return format_document(trace(function, *types), "json")


def require_the_same(function: Callable[..., Any], *types: str) -> None:
    again = text(function, *types)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operands, "MOST", 0)
        assert text(function, *types) == again


@pytest.mark.parametrize("name", few(FUNCTIONS, 50))
def test_functions(name: str) -> None:
    """Of several arrays, also of the same one and of a constant."""
    function = FUNCTIONS[name]
    require_the_same(lambda x: [function(y) for y in (x, x * 2, x * 2, x + 1, x / x, x)], "f64[2,3,4]")


NUMBERS = st.sampled_from([0, 1, 2, -1, 0.0, -0.0, 0.5, 2.0, 1.0, np.nan, np.inf, 1j, True, np.float64(0.5), np.float32(2)])
OPERATORS: dict[str, Callable[..., Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "**": lambda x, y: x**y,
    "//": lambda x, y: x.real // y.real,
    "divmod": lambda x, y: divmod(x.real, y.real)[1],
    "sin": lambda x, y: np.sin(x) * y,
    "maximum": lambda x, y: np.maximum(x.real, y.real),
    "stack": lambda x, y: np.stack([x, x + y])[1],
    "item": lambda x, y: x[::-1] if x.ndim else x + y,
}
OPERANDS = st.tuples(st.just("value"), st.integers(0, 9)) | st.tuples(st.just("number"), NUMBERS)


@settings(max_examples=examples(2000, check=33))
@given(st.lists(st.tuples(st.sampled_from(sorted(OPERATORS)), st.integers(0, 9), OPERANDS), max_size=30))
def test_operators(program: list[tuple[str, int, tuple[str, Any]]]) -> None:
    """Of arrays of several types and of Python's numbers, some of which are equal and not the same."""

    def function(*inputs: Any) -> Any:
        values = list(inputs)
        for name, i, (kind, other) in program:
            y = values[other % len(values)] if kind == "value" else other
            x = values[i % len(values)]
            if np.shape(x) and np.shape(y) and np.shape(x) != np.shape(y):
                continue
            try:
                values.append(OPERATORS[name](x, y))
            except (TypeError, ValueError, OverflowError, BuildError) as error:
                assert str(error)  # noqa: PT017  # both ways refuse what NumPy refuses
        return values

    require_the_same(function, "f64[3]", "f64[3]", "f32[3]", "i64[3]", "f64[]", "f32[]")


def test_equal_operands_are_not_taken_for_one() -> None:
    """The first calls have the same operand twice, the later ones have two."""
    require_the_same(lambda x, y: [x * x, x * x, y * y, x * y, y * x, np.dot(x, x), np.dot(y, y), np.dot(x, y)], "f64[3]", "f64[3]")


@pytest.mark.check
def test_loops_in_python_are_recorded_fast() -> None:
    """An operation takes a fraction of what it takes where all is worked out: about a third, measured."""

    def function(x: Any, y: Any) -> Any:
        for _ in range(1000):
            x = x * y + 0.5
            x = np.sin(x) - y / x
        return x

    def seconds() -> float:
        return cpu_seconds(lambda: trace(function, "f64[]", "f64[]"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operands, "MOST", 0)
        slow = min(seconds() for _ in range(3))
    assert min(seconds() for _ in range(3)) < 0.8 * slow
