"""The pass that applies the table: what it leaves alone, how far it goes, and what stays with nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tidu_cli as tidu
from tests.graphs.interpret import evaluate
from tests.graphs.sketch import Sketch, document, key
from tidu_cli.errors import ArgumentError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.types import TensorType
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.rewriting import simplify


def ops(doc: Document) -> list[str]:
    """The ops of the head's nodes, in order."""
    return [case.op for case, _ in doc.head.nodes()]


def test_chains_of_any_length_go_in_one_walk() -> None:
    s = Sketch({"x": "f64[3]"})
    x = s.inputs[0]
    for k in range(5001):
        x = -x if k % 2 else s.apply("reshape", x, new_sizes=(1, 3) if k % 4 else (3,))
    simplified = simplify(materialize(document(s.build("f", {"y": x}))))
    assert sorted(ops(simplified)) in (["reshape"], []), "an even number of negations, and a change of shape"


def test_what_has_another_purpose_than_its_value_stays() -> None:
    s = Sketch({"x": "f64[3]"})
    held = s.apply("optimization_barrier", s.apply("stop_gradient", s.inputs[0]))
    doc = materialize(document(s.build("f", {"y": held * 1})))
    assert ops(simplify(doc)) == ["stop_gradient", "optimization_barrier"]


def test_large_constants_are_not_computed_with() -> None:
    s = Sketch({})
    small, large = (s.full(2, TensorType("f64", (n,))) for n in (128, 129))
    doc = materialize(document(s.build("f", {"small": small + small, "large": large + large})))
    assert ops(simplify(doc)).count("add") == 1


def test_a_constant_of_equal_elements_is_one_that_is_repeated() -> None:
    s = Sketch({})
    twos = s.full(2, TensorType("f64", (128,)))
    doc = materialize(document(s.build("f", {"y": twos + twos})))
    sizes = {case.op: case.results[0].size for case, _ in simplify(doc).head.nodes()}
    assert sizes == {"constant": 1, "broadcast_in_dim": 128}


def test_functions_that_machines_round_otherwise_are_not_computed() -> None:
    s = Sketch({})
    two = s.full(2, TensorType("f64"))
    doc = materialize(document(s.build("f", {"y": s.apply("exp", two * two), "z": s.apply("sqrt", two)})))
    assert sorted(ops(simplify(doc))) == ["constant", "constant", "exp"]


def test_a_zero_that_is_seen_to_be_one_stays_one() -> None:
    s = Sketch({})
    doc = materialize(document(s.build("f", {"y": -s.full(0, TensorType("f64"))})))
    assert ops(simplify(doc)) == ["constant", "neg"], "-0 is no structural zero"


def test_meta_stays_with_nodes_that_stay() -> None:
    s = Sketch({"x": "f64[]"})
    y = s.apply("sin", s.apply("exp", s.inputs[0]) * 1)
    graph = s.build("f", {"y": y})
    noted = replace(graph, meta={"of": "graph"}, node_meta={node: {"op": case.op} for node, (case, _) in enumerate(graph.nodes())})
    simplified = simplify(materialize(document(noted))).head
    assert simplified.meta == {"of": "graph"}
    assert [simplified.node_meta[node] for node in range(simplified.n_nodes)] == [{"op": case.op} for case, _ in simplified.nodes()]


def test_bodies_of_loops_are_simplified_and_keep_their_interface() -> None:
    def f(x: object) -> object:
        return tidu.fori_loop(0, 3, lambda k, v: np.sin(v * 1.0) - (-v), x)

    before = tidu.materialize(tidu.trace(f, "f64[]"))
    after = tidu.materialize(before, simplify=True)
    (old,), (new,) = ([case.attrs.body for case, _ in d.head.nodes() if case.op == "scan"] for d in (before, after))
    assert [case.op for case, _ in new.graph.nodes()] == ["sin", "add"]
    assert (new.input_types, new.output_types) == (old.input_types, old.output_types)
    at = {key("x"): np.float64(0.3)}
    assert evaluate(before, at) == evaluate(after, at)


def test_inputs_stay_unless_only_needed_ones_are_asked_for() -> None:
    s = Sketch({"x": "i32[2]", "y": "i32[2]"})
    doc = document(s.build("f", {"z": s.inputs[0] - s.inputs[0] + s.inputs[1]}))
    assert [str(i.key) for i in tidu.materialize(doc, simplify=True).head.inputs] == ["x", "y"]
    assert [str(i.key) for i in tidu.materialize(doc, simplify=True, needed_inputs=True).head.inputs] == ["y"]


def test_misuse_is_told_in_words_of_python() -> None:
    doc = tidu.trace(lambda x: x, "f64[]")
    with pytest.raises(ArgumentError, match=r"argument 'assume' says what simplify may take for granted; add simplify=True"):
        tidu.materialize(doc, assume="finite")
    with pytest.raises(ArgumentError, match=r"argument 'assume' takes one of 'no-signed-zeros', 'finite', or a list of these"):
        tidu.materialize(doc, simplify=True, assume="fast")
