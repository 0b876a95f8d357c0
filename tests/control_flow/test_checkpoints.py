"""Loops in segments: the same bits, and about 2 √n states."""

from __future__ import annotations

import numpy as np
import pytest

from tidu_cli.control_flow.graphs import _graph
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.terms import op
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.runtime.memory import evaluation
from tidu_cli.transforms.checkpoints import Segments, Sqrt
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.recompute import recompute
from tidu_cli.transforms.transpose import transpose

sin, cos = op("sin"), op("cos")


def gradient(length: int, *, reverse: bool) -> Document:
    """Of a pendulum that is pushed, whose energies are an output, too, by everything."""
    step = _graph(["f64[]"] * 4, lambda k, x, v, u: (x + 0.01 * v, v - 0.01 * k * sin(x) + 0.01 * u, v * v - k * cos(x)))

    def loop(k, x, v, u):
        results = k.trace.emit_all("scan", k, x, v, u, length=length, num_consts=1, num_carry=2, reverse=reverse, body=step)
        return results[0] * results[1], results[2]

    graph = _graph(["f64[]", "f64[]", "f64[]", f"f64[{length}]"], loop).graph
    document = Document((graph,), graph.cases)
    return transpose(linearize(document, [i.key for i in graph.inputs]))


def run(document: Document, length: int) -> dict[Key, np.ndarray]:
    rng = np.random.default_rng(0)
    values = {i.key: rng.standard_normal(i.type.shape) for i in document.head.inputs}
    return evaluate(document.head, values)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("length", "steps"), [(12, 3), (13, 3), (7, 5), (3, 2), (5, 1), (4, 4), (4, 9)])
def test_segments_change_no_bit(length: int, steps: int, reverse: bool) -> None:
    document = gradient(length, reverse=reverse)
    expected, recomputed = run(materialize(document), length), run(recompute(document, Segments(steps)), length)
    assert {k: v.tobytes() for k, v in recomputed.items()} == {k: v.tobytes() for k, v in expected.items()}


def test_of_n_states_twice_the_root_is_held() -> None:
    n = 100_000
    graph = _graph(["f64[]"] * 3, lambda k, x, v: (x + 0.01 * v, v - 0.01 * k * sin(x)))

    def loop(k, x, v):
        results = k.trace.emit_all("scan", k, x, v, length=n, num_consts=1, num_carry=2, body=graph)
        return [results[0] * results[1]]

    whole = _graph(["f64[]"] * 3, loop).graph
    document = transpose(linearize(Document((whole,), whole.cases), [i.key for i in whole.inputs]))
    held, all_held = (evaluation(d).peak for d in (recompute(document, Sqrt()), materialize(document)))
    state = 2 * 8
    assert all_held >= n * state
    assert held <= 2 * np.sqrt(n) * state + 20 * state  # and what one step works with
    assert BUILTIN["scan"].rules.segmented
