"""What stop_gradient passes on within loops is held in difference quotients; where that cannot be, it is said why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu_cli as td
from tests.tiers import examples
from tidu_cli.checking.numeric.laws import check_numerically
from tidu_cli.checking.numeric.twins import unrolled
from tidu_cli.lax.vocabulary import vocabulary


def stop(x: Any) -> Any:
    return x.emit("stop_gradient")


def plain(x: Any) -> Any:
    """The derivative of this is not that of its values."""
    c, ys = td.scan(lambda c, _: (c * stop(np.sin(c)) + x, np.sum(c)), x, length=3)
    return {"y": np.sum(c) + np.sum(ys * ys)}


def nested(x: Any, reverse: bool = True) -> Any:
    def inner(c: Any, v: Any) -> Any:
        return c + stop(np.cos(c)) * v, v * stop(c)

    def outer(c: Any, v: Any) -> Any:
        c, ys = td.scan(inner, c, np.stack([v * x, v + x]), reverse=reverse)
        return c, ys[0] * v

    c, ys = td.scan(outer, x, x * x, reverse=not reverse)
    return {"y": np.sum(c) + np.sum(ys), "c": c, "ys": ys}


@pytest.mark.parametrize("f", [plain, nested])
def test_loops_get_a_verdict(f: Any) -> None:
    document = td.trace(f, x="f64[3]")
    verdicts = {v.law: v for v in check_numerically(document, vocabulary(document.cases))}
    assert set(verdicts) == {"jvp", "adjoint", "linear", "second", "symmetry"}
    assert all(v.error is not None and v.ok and not v.why for v in verdicts.values())


@settings(max_examples=examples(60, check=20))
@given(st.integers(1, 4), st.booleans(), st.integers(0, 2**32 - 1))
def test_loops_that_are_written_out_have_the_same_values(n: int, reverse: bool, seed: int) -> None:
    document = td.trace(lambda x: nested(x, reverse), x=f"f64[{n}]")
    written = unrolled(document, vocabulary(document.cases))
    assert "scan" not in [case.op for case, _ in written.head.nodes()]
    values = {"x": np.random.default_rng(seed).standard_normal(n)}
    for key, value in td.evaluate(document, values).items():
        np.testing.assert_array_equal(td.evaluate(written, values)[key], value, err_msg=key)


def test_other_loops_stay() -> None:
    document = td.trace(lambda x: td.scan(lambda c, _: (np.sin(c), None), x, length=3)[0], x="f64[]")
    assert unrolled(document, vocabulary(document.cases)) is document


@pytest.mark.parametrize(
    ("f", "why"),
    [
        (
            lambda x: td.while_loop(lambda c: np.sum(c) < 10, lambda c: c * 2 + stop(np.exp(c)), x),
            "while, which runs as its values say",
        ),
        (lambda x: td.cond(x[0] > 0, lambda x: x * stop(np.sin(x)), lambda x: x, x), "cond, which runs as its values say"),
        (
            lambda x: td.scan(lambda c, _: (c - stop(np.sin(c)) / 9, None), x, length=9000)[0],
            "scan, which of 9000 steps is more than 20,000 nodes",
        ),
    ],
)
def test_where_they_cannot_be_held_it_is_said_why(f: Any, why: str) -> None:
    document = td.trace(lambda x: {"y": f(x)}, x="f64[2]")
    for verdict in check_numerically(document, vocabulary(document.cases)):
        if verdict.law in ("jvp", "second"):
            assert verdict.error is None
            assert verdict.why == (
                f"stop_gradient passes on values within {why}, so that difference quotients cannot hold them still",
            )
        else:
            assert verdict.error is not None and verdict.ok and not verdict.why
