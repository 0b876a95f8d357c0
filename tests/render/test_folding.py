"""Folds: what may be drawn as one node, that folding makes no cycles, and that it is quick on long chains."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.running import document, graph
from tests.tiers import campaign
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.keys import parse_key
from tidu_cli.render.folding import folds
from tidu_cli.render.picture import Kind, n_items, picture
from tidu_cli.render.words import Words
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose

ONE = {"op": "constant", "inputs": [], "attrs": {"value": {"type": "f64[]", "data": [1.0]}}}


def read(nodes, output):
    made = graph(outputs=[("y", output)])
    made["nodes"] = [node if isinstance(node, dict) else {"op": node[0], "inputs": list(node[1:])} for node in nodes]
    return parse_document(document(made), "test")[0]


def test_runs_fold_and_branches_do_not():
    assert folds(read([("exp", 0), ("log1p", 1), ("neg", 2)], 3).head) == [2, 2, 2]
    assert folds(read([("exp", 0), ("sin", 1), ("cos", 1), ("mul", 2, 3)], 4).head) == [0, 1, 2, 3]
    assert folds(read([("exp", 0), ("mul", 1, 0), ("neg", 2)], 3).head) == [0, 2, 2]


def test_an_output_ends_a_run():
    made = parse_document(document(graph([("exp", 0), ("neg", 1)], outputs=[("a", 1), ("b", 2)])), "test")[0]
    assert folds(made.head) == [0, 1]


def test_constants_fold_into_their_only_reader():
    assert folds(read([ONE, ("exp", 1), ("mul", 2, 0), ("sin", 3)], 4).head) == [3, 3, 3, 3]
    shared = read([ONE, ("exp", 1), ("mul", 2, 0), ("add", 3, 2)], 4).head
    assert folds(shared) == [1, 1, 3, 3]


def test_accumulating_adds_are_drawn_apart():
    """v + v gives v's cotangent twice, the same one, and a run goes on from the sum."""
    made = read([("neg", 0), ("sin", 1), ("add", 2, 2), ("exp", 3), ("neg", 4)], 5)
    reverse = transpose(linearize(made, [parse_key("x")]))
    (add,) = [item.id for item in picture(reverse).items if item.accumulates]
    collapsed = picture(reverse, collapse=True)
    assert [item.id for item in collapsed.items if item.accumulates] == [add]
    runs = [item for item in collapsed.items if item.kind is Kind.COLLAPSED and item.graph == len(reverse.graphs) - 1]
    assert [len(item.nodes) for item in runs] == [2, 2]
    told = [caption for _, caption in Words(collapsed).captions()]
    assert sum("second and last contribution" in caption for caption in told) == 1


@st.composite
def programs(draw):
    """Random programs of constants, unary and binary nodes over one input."""
    nodes = []
    for k in range(draw(st.integers(1, 14))):
        value = st.integers(0, k)
        nodes.append(draw(st.one_of(st.just(ONE), st.tuples(st.just("neg"), value), st.tuples(st.just("mul"), value, value))))
    return read(nodes, len(nodes))


@given(programs())
def test_folding_makes_no_cycles_and_hides_no_branch(made):
    shown = picture(made, collapse=True)
    assert n_items(made, collapse=True) == (len(shown.items), len(shown.edges))
    drawn = [node for item in shown.items for node in item.nodes]
    assert len(drawn) == len(set(drawn))
    ids = {item.id for item in shown.items}
    before = {id_: {edge.source for edge in shown.edges if edge.target == id_} for id_ in ids}
    while ready := {id_ for id_, sources in before.items() if not sources & before.keys()}:
        before = {id_: sources for id_, sources in before.items() if id_ not in ready}
    assert not before
    assert all(edge.source in ids and edge.target in ids for edge in shown.edges)


@pytest.mark.check
def test_a_long_chain_is_one_node():
    n = 100_000 if campaign() else 30_000
    made = read([("neg", k) for k in range(n)], n)
    assert n_items(made, collapse=True)[0] == 3
    assert len(picture(made, collapse=True).items) == 3
