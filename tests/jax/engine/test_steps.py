"""XLA runs to the end what it has begun, so that loops are refused where their steps are limited, by name and with the way out."""

from __future__ import annotations

import pytest

import tidu_cli
from tests.loops import WHILE
from tidu_cli.errors import EvaluationError
from tidu_cli.formats.read import parse_document

pytestmark = [pytest.mark.jax, pytest.mark.usefixtures("jax")]


def test_loops_are_refused_where_steps_are_limited():
    loop, given = parse_document(WHILE, "f")[0], {"tol": 1.0, "h": 0.5, "a": 4.0}
    with pytest.raises(EvaluationError, match=r"graph 'f', node 0 \(while\) has loops, whose steps only numpy and native count"):
        tidu_cli.evaluate(loop, given, engine="xla", max_steps=100)
    assert tidu_cli.evaluate(loop, given, engine="xla")["a"] == 1.0
    assert tidu_cli.evaluate(loop, given, engine="auto", max_steps=100)["a"] == 1.0
