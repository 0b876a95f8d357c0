"""Graphs within graphs: derivatives take work in proportion to how deep they stand, and not to its square; nodes in them count."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tidu_cli
from tests.graphs.loops import F64, I32, NESTED, SCAN, WHILE, document, graph, node
from tidu_cli.control_flow.graphs import made
from tidu_cli.errors import LimitError, TiduError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.closed import graphs_within
from tidu_cli.graph.graph import Document
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.limits import Limits, limited
from tidu_cli.rules.terms import Recorder, Term, op

sin = op("sin")

DERIVATIVES: dict[str, Callable[[tidu_cli.Document], object]] = {
    "hessian": lambda f: tidu_cli.hessian(f, ["c"]),
    "derivative": lambda f: tidu_cli.derivative(f, ["c"], order=3),
    "check": lambda f: tidu_cli.check(f, "all"),
}


def nested(depth: int) -> tidu_cli.Document:
    """sin(x) inside `depth` scans. No two levels are equal: equal ones would be derived only once."""
    nest: dict[str, Any] = graph({"c": F64}, [node("sin", 0), *[node("neg", k + 1) for k in range(depth)]], {"c": depth + 1})
    for _ in range(depth):
        nest = graph({"c": F64}, [node("scan", 0, length=2, num_consts=0, num_carry=1, body=nest)], {"c": 1})
    return parse_document(document(nest), "here")[0]


@pytest.mark.check
@pytest.mark.parametrize("name", DERIVATIVES)
def test_each_level_more_takes_as_much_work(name, monkeypatch):
    module = importlib.import_module("tidu_cli.transforms.materialize")
    made: list[object] = []
    plain = module.materialize_traced
    monkeypatch.setattr(module, "materialize_traced", lambda *args, **kwargs: made.append(args) or plain(*args, **kwargs))
    graphs = []
    for depth in (4, 6, 8):
        made.clear()
        DERIVATIVES[name](nested(depth))
        graphs.append(len(made))
    assert graphs[2] - graphs[1] == graphs[1] - graphs[0] > 0, "the graphs that are made within graphs"


def n_written(derived: Document) -> int:
    """The nodes of a document as JSON has them."""
    return format_document(derived, "json").count(b'"op"')


@pytest.mark.parametrize(("source", "wrt"), [(SCAN, "k"), (WHILE, "a"), (NESTED, "y")], ids=["scan", "while", "branches"])
def test_a_document_has_as_many_nodes_as_are_written(source, wrt):
    derived = tidu_cli.linearize(parse_document(source, "here")[0], [wrt])
    n = n_written(derived)
    text, packed = format_document(derived, "json"), format_document(derived, "msgpack")
    with limited(Limits(nodes=n)):
        for data in (text, packed):
            assert format_document(parse_document(data, "here")[0], "json") == text
    with limited(Limits(nodes=n - 1)):
        for data in (text, packed):
            with pytest.raises(TiduError, match=f"the document: {n} nodes, more than the limit of {n - 1}; allow more"):
                parse_document(data, "here")
    with limited(Limits(nodes=3)), pytest.raises(TiduError, match=r"graph '.*', with the graphs within its nodes: \d+ nodes, more"):
        format_document(derived, "json")


def test_who_makes_too_much_within_a_node_names_it():
    body = graph({"c": F64}, [node("sin", k) for k in range(9)], {"c": 9})
    source = document(graph({"x": F64}, [node("scan", 0, length=29, num_consts=0, num_carry=1, body=body)], {"y": 1}))
    with limited(Limits(nodes=15)), pytest.raises(TiduError, match=r"^graph 'f', node 0 \(scan\): .* more than the limit of 15; "):
        tidu_cli.linearize(parse_document(source, "here")[0], ["x"])


def test_graphs_that_are_shared_count_as_often_as_they_are_held():
    """And each is looked at once."""
    f64 = TensorType("f64")
    closed = made(BUILTIN, [("c", f64)], lambda trace, terms: [sin(terms[0])])

    def twice(trace: Recorder, terms: list[Term]) -> list[Term]:
        for _ in range(2):
            terms = list(trace.emit_all("scan", *terms, length=2, num_consts=0, num_carry=1, body=closed))
        return terms

    with limited(Limits(nodes=2**42)):
        for _ in range(40):
            closed = made(BUILTIN, [("c", f64)], twice)
        assert closed.n_nodes == 2**40 + sum(2**k for k in range(1, 41))
        assert len([*graphs_within(closed.graph.cases.cases)]) == 40
        with pytest.raises(LimitError, match="a graph within a node"):
            made(BUILTIN, [("c", f64)], twice)


def around(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    """Two steps of a loop, or a branch that is taken, around a graph of one number."""
    if kind == "scan":
        return graph({"c": F64}, [node("scan", 0, length=2, num_consts=0, num_carry=1, body=body)], {"c": 1})
    if kind == "cond":
        other = graph({"c": F64}, [node("neg", 0)], {"c": 1})
        return graph({"c": F64}, [constant(F64, -5.0), node("lt", 1, 0), node("cond", 2, 0, branches=[other, body])], {"c": 3})
    condition = graph({"k": I32, "c": F64}, [constant(I32, 2), node("lt", 0, 2)], {"go": 3})
    applied = node("scan", 1, length=1, num_consts=0, num_carry=1, body=body)
    step = graph({"k": I32, "c": F64}, [constant(I32, 1), node("add", 0, 2), applied], {"k": 3, "c": 4})
    loop = node("while", 1, 0, cond_consts=0, body_consts=0, condition=condition, body=step)
    return graph({"c": F64}, [constant(I32, 0), loop], {"c": 3})


def constant(type_: str, value: float) -> dict[str, Any]:
    return node("constant", value={"type": type_, "data": [value]})


@pytest.mark.check
@pytest.mark.parametrize("kinds", [("while",), ("cond", "scan", "while")], ids=" ".join)
def test_graphs_around_a_while_are_derived_once_whatever_they_are(kinds):
    """In derivatives of graphs that apply a sine again and again each level more is as many nodes more, and values stay right."""
    sizes = []
    for times in range(1, 5):
        nested_sine = graph({"c": F64}, [node("sin", 0)], {"c": 1})
        for kind in kinds * times:
            nested_sine = around(kind, nested_sine)
        derived = tidu_cli.derivative(parse_document(document(nested_sine), "here")[0], ["c"], order=2)
        sizes.append(n_written(derived))
        if times <= 2:
            n = 2 ** (times * sum(kind != "cond" for kind in kinds))
            plain = parse_document(document(graph({"c": F64}, [node("sin", k) for k in range(n)], {"c": n})), "here")[0]
            (value,), (due,) = (
                tidu_cli.evaluate(d, {"c": 0.7}).values() for d in (derived, tidu_cli.derivative(plain, ["c"], order=2))
            )
            np.testing.assert_allclose(value, due, rtol=1e-12)
    assert sizes[3] - sizes[2] == sizes[2] - sizes[1] > 0, "the nodes of the derivative"
