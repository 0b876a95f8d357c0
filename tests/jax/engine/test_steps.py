"""XLA runs to the end what it has begun, so that loops are refused where their steps are limited, by name and with the way out."""

from __future__ import annotations

import pytest

import tidu_cli
from tests.graphs.loops import WHILE
from tidu_cli.errors import EvaluationError
from tidu_cli.formats.read import parse_document
from tidu_cli.limits import Limits, limited

pytestmark = [pytest.mark.jax, pytest.mark.usefixtures("jax")]


def test_loops_are_refused_where_steps_are_limited():
    loop, given = parse_document(WHILE, "f")[0], {"tol": 1.0, "h": 0.5, "a": 4.0}
    with pytest.raises(EvaluationError, match=r"graph 'f', node 0 \(while\) has loops, whose steps only numpy and native count"):
        tidu_cli.evaluate(loop, given, engine="xla", max_steps=100)
    assert tidu_cli.evaluate(loop, given, engine="xla")["a"] == 1.0
    assert tidu_cli.evaluate(loop, given, engine="auto", max_steps=100)["a"] == 1.0


def test_solvers_of_equations_are_loops_too():
    """Also those that a document does not hold, as they are tidu's own."""
    for name, equation in {
        "root": lambda a: tidu_cli.root(lambda x: x * x - a, a),
        "fixed_point": lambda a: tidu_cli.fixed_point(lambda x: (x + a / x) / 2, a),
        "linear_solve": lambda a: tidu_cli.linear_solve(lambda x: a**0.5 * x, a),
    }.items():
        document = tidu_cli.trace(equation, "f64[]")
        with pytest.raises(EvaluationError, match=rf"\({name}\) has loops, whose steps only numpy and native count"):
            tidu_cli.evaluate(document, {"a": 4.0}, engine="xla", max_steps=100)
        values = [tidu_cli.evaluate(document, {"a": 4.0}, engine=engine)["y"] for engine in ("numpy", "xla")]
        assert values == pytest.approx([2.0] * 2, rel=1e-15)


def test_loops_within_nodes_and_programs_made_before_are_refused_too():
    def halved(x):
        return tidu_cli.while_loop(lambda x: x > 1, lambda x: 0.5 * x, x)

    chosen = tidu_cli.trace(lambda x: tidu_cli.cond(x > 0, halved, lambda x: -x, x), x=1.0)
    repeated = tidu_cli.trace(lambda x: tidu_cli.scan(lambda x, _: (halved(x), x), x, length=2)[0], x=1.0)
    for document, op in ((chosen, "cond"), (repeated, "scan")):
        with pytest.raises(EvaluationError, match=rf"\({op}\) has loops, whose steps only numpy and native count"):
            tidu_cli.evaluate(document, x=8.0, engine="xla", max_steps=100)
        compiled = tidu_cli.compile(document, engine="xla")
        assert compiled(x=8.0)["y"] == 1
        with limited(Limits(steps=100)), pytest.raises(EvaluationError, match=rf"\({op}\) has loops, whose steps"):
            compiled(x=8.0)
