"""Derivatives say which lines of a user's code they come from, where their primal nodes do, and are otherwise what they were."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graphs.strategies import ANY, documents, seeds
from tests.tiers import examples
from tests.transforms.large.test_bulk import scalars
from tests.transforms.laws.test_laws import wrt_of
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import link
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose


def marked(document: Document) -> Document:
    """The document, in which each node has a source of its own."""
    graphs = tuple(
        replace(graph, node_meta={k: {"source": [f"f f.py:{g * 1000 + k}"], "own": k} for k in range(graph.n_nodes)})
        for g, graph in enumerate(document.graphs)
    )
    return replace(document, graphs=graphs)


def unmarked(document: Document) -> bytes:
    return format_document(replace(document, graphs=tuple(replace(graph, node_meta={}) for graph in document.graphs)), "json")


def number(graph: Graph, node: int) -> int | None:
    """The number in the source of a node."""
    meta = graph.node_meta.get(node)
    return None if meta is None else int(str(meta["source"][0]).rpartition(":")[2])  # type: ignore[index]


@settings(max_examples=examples(2000, check=50))
@given(documents(makers=ANY), seeds, st.sampled_from(["l", "lt", "ltlt", "ll"]))
def test_sources_change_nothing_else(document: Document, seed: int, steps: str) -> None:
    plain, told = document, marked(document)
    wrt = wrt_of(document, seed)
    for step in steps:
        plain, told = (transpose(d) if step == "t" else linearize(d, wrt) for d in (plain, told))
    assert unmarked(told) == unmarked(plain)
    assert unmarked(materialize(told)) == unmarked(materialize(plain))
    for graph in told.graphs[len(document.graphs) :]:
        assert all(set(meta) == {"source"} for meta in graph.node_meta.values() if meta)


@settings(max_examples=examples(2000, check=65))
@given(documents(makers=ANY), seeds)
def test_linear_nodes_are_of_the_nodes_whose_values_they_hold_fixed(document: Document, seed: int) -> None:
    made, flat_id = linearize(marked(document), wrt_of(document, seed)), link(document).flat_id
    before = len(document.graphs)
    for g, graph in enumerate(made.graphs[before:], before):
        for node, case in enumerate(map(graph.case, range(graph.n_nodes))):
            origin = number(graph, node)
            if origin is None:
                assert not case.operands  # a constant, which several nodes share
                continue
            around, of = made.graphs[origin // 1000], origin % 1000
            known = {around.place(origin // 1000, a) for a in around.operands(of)}
            known |= {(origin // 1000, value) for value in range(around.firsts[of], around.firsts[of + 1])}
            fixed = {graph.place(g, argument) for argument in graph.operands(node)}
            assert {flat_id(*place) for place in fixed if 0 <= place[0] < before} <= {flat_id(*place) for place in known}


def test_dead_nodes_take_theirs_along() -> None:
    for n in (20, 400):  # node by node, and by columns
        told = marked(scalars(n))
        outputs = [Key("y")]
        made = linearize(told, [Key("x0")], outputs=outputs)
        whole = linearize(told, [Key("x0")])
        assert made.head.n_nodes <= whole.head.n_nodes
        sources = [number(made.head, node) for node in range(made.head.n_nodes)]
        assert [s for s in sources if s is not None] == sorted(s for s in sources if s is not None)
        assert len(made.head.node_meta) > made.head.n_nodes * 0.9
