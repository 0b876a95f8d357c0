"""Loops of Python are seen in what they unroll to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidu_cli.adapters.numpy.tracing import repetition, trace


def unrolled(turns: int, before: int = 5) -> Any:
    def function(x: Any) -> Any:
        for _ in range(before):
            x = np.cos(x)
        for k in range(turns):
            x = x - 0.01 * k * np.sin(x)  # another constant in each turn
        return np.exp(x)

    return trace(function, "f64[]").head


@pytest.mark.parametrize(("turns", "loop"), [(1001, (1001, 4)), (5000, (5000, 4)), (1000, None), (3, None)])
def test_a_loop_is_found_with_its_length(turns: int, loop: tuple[int, int] | None) -> None:
    assert repetition(unrolled(turns)) == loop


def test_graphs_without_one() -> None:
    rng = np.random.default_rng(0)

    def function(x: Any) -> Any:
        for k in rng.integers(0, 3, 3000):
            x = (np.sin, np.cos, np.tanh)[k](x)
        return x

    assert repetition(trace(function, "f64[]").head) is None
