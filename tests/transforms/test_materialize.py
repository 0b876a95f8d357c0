"""materialize: one graph, each value once, and nothing merged that differs."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.graphs import loops
from tests.graphs.interpret import evaluate
from tests.graphs.loops import node
from tests.graphs.sketch import Sketch, Value, document, function, key, listing, names, op, ports, structure
from tidu_cli.errors import TransformError, UnknownNameError
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.graph import Binding, Document, Input, Output
from tidu_cli.graph.types import TensorType
from tidu_cli.runtime.plans.program import plain_program
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.compose import detach
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose
from tidu_cli.watching import listening

X = key("x")
sin, cos, exp, integer_pow = map(op, ("sin", "cos", "exp", "integer_pow"))


def raises(error: type[Exception], message: str) -> object:
    return pytest.raises(error, match=f"^{re.escape(message)}$")


def test_shared_subexpressions_of_primal_residual_and_linear_graphs_are_computed_once() -> None:
    # f computes cos x; so do the residual graph, from sin's rule, and the second graph.
    f = function("f", {"x": "f64[]"}, lambda x: sin(x) * cos(x))
    doc = linearize(f, [X])
    assert listing(doc.graphs[1])[0] == "cos([0,0])"
    single = materialize(doc)
    assert names(single) == ["f@1"]
    ops = [single.head.case(n).op for n in range(single.head.n_nodes)]
    assert ops.count("cos") == 1
    assert ops.count("sin") == 1, "that of f, and that of cos's rule"
    assert ops.count("neg") == 1


def test_equal_nodes_within_one_graph_and_across_graphs_become_one() -> None:
    f = function("f", {"x": "f64[]"}, lambda x: {"u": exp(x) * exp(x), "v": exp(x)})
    g = Sketch({"x": "f64[]"}, cases=f.cases, number=1)
    product = exp(g.inputs[0]) * exp(g.inputs[0])
    doc = document(f.head, g.build("g", {"w": product}))
    assert listing(materialize(f).head) == ["exp(0)", "mul(1, 1)"]
    assert listing(materialize(doc, outputs=[key("u"), key("w")]).head) == ["exp(0)", "mul(1, 1)"]
    assert ports(materialize(doc, outputs=[key("u"), key("w")]).head) == (["x"], {"u": 2, "w": 2})


def test_operand_order_attrs_ops_roles_and_masks_are_never_merged() -> None:
    s = Sketch({"x": "f64[]", "y": "f64[]"})
    x, y = s.inputs
    values = [
        x * y,
        y * x,
        x + y,
        integer_pow(x, y=2),
        integer_pow(x, y=3),
        s.apply("mul", x, y, mask=(True, False)),
        s.apply("mul", x, y, mask=(False, True)),
        s.apply("mul", x, y, mask=(True, True)),
        s.full(0.0, x.type),
        s.full(-0.0, x.type),
    ]
    doc = document(s.build("f", {f"o{k}": v for k, v in enumerate(values)}))
    assert materialize(doc).head.n_nodes == len(values)
    assert structure(materialize(doc)) == structure(doc)


def test_all_inputs_stay_or_those_needed_in_the_order_declared() -> None:
    f = function("f", {"c": "f64[]", "b": "f64[]", "a": "f64[]"}, lambda c, b, a: {"u": b * a, "v": a * c})
    g = Sketch({"d": "f64[]", "c": "f64[]"}, cases=f.cases, number=1)
    d, c = g.inputs
    doc = document(f.head, g.build("g", {"w": d * c}))
    for outputs, needed in ((["v"], ["c", "a"]), ([], ["c", "d"]), (["w", "u"], ["c", "b", "a", "d"])):
        chosen = [key(name) for name in outputs]
        assert ports(materialize(doc, outputs=chosen).head)[0] == ["c", "b", "a", "d"]
        assert ports(materialize(doc, outputs=chosen, needed_inputs=True).head)[0] == needed


def test_outputs_follow_the_order_asked_for_each_once() -> None:
    f = function("f", {"x": "f64[]"}, lambda x: {"u": sin(x), "v": cos(x)})
    doc = linearize(f, [X])
    single = materialize(doc, outputs=[key("v"), key("u@1"), key("v"), key("u")])
    assert list(ports(single.head)[1]) == ["v", "u@1", "u"]
    assert single.head.name == "f@1"
    with raises(UnknownNameError, "no graph has an output 'w' (outputs: u, v, u@1, v@1)"):
        materialize(doc, outputs=[key("w")])


def test_an_output_is_that_of_the_latest_graph_that_has_it() -> None:
    f = function("f", {"x": "f64[]"}, lambda x: {"y": exp(x), "old": exp(x)})
    g, h = (Sketch({"x": "f64[]"}, cases=f.cases, number=k) for k in (1, 2))
    doc = document(f.head, g.build("g", {"y": sin(g.inputs[0])}), h.build("h", {"z": -h.inputs[0]}))
    assert listing(materialize(doc, outputs=[key("y")]).head) == ["sin(0)"]
    assert listing(materialize(doc, outputs=[key("old")]).head) == ["exp(0)"]
    assert materialize(doc, outputs=[key("old")]).head.name == "h"


def test_a_detached_value_that_is_needed_is_an_error_and_any_other_is_not() -> None:
    def body(x: Value) -> dict[str, Value]:
        return {"u": sin(x), "v": x + x}

    loose = detach(linearize(function("f", {"x": "f64[]"}, body), [X]), 1)
    assert len(loose.detached) == 1
    (digest,) = (d.digest for d in loose.detached)
    reader = "f@1.residual"
    message = f"graph '{reader}' reads the detached value {digest}; resolve it with the document that defines it"
    with raises(TransformError, message):
        materialize(loose)
    assert listing(materialize(loose, outputs=[key("v@1")]).head) == ["add(0, 0) TT"]


def test_a_materialized_linear_graph_is_an_ordinary_one() -> None:
    doc = linearize(function("f", {"x": "f64[]"}, sin), [X])
    single = materialize(doc)
    assert single.head.linear is None
    assert listing(single.head) == ["cos(0)", "mul(2, 1) FT"]
    with pytest.raises(TransformError, match="is not a linear graph"):
        transpose(single)
    # It can be differentiated again, in everything that it reads.
    again = linearize(single, [X])
    assert evaluate(again, {X: 0.0, key("x@1"): 2.0, key("x@2"): 3.0})[key("y@1@2")] == 0.0


def test_bound_inputs_are_gone() -> None:
    f = function("f", {"x": "f64[]"}, sin)
    g = Sketch({"t": "f64[]"}, cases=f.cases, number=1)
    doc = document(f.head, g.build("g", {"z": exp(g.inputs[0])}), bindings=(Binding(key("t"), 0, 1),))
    single = materialize(doc)
    assert ports(single.head) == (["x"], {"z": 2})
    assert listing(single.head) == ["sin(0)", "exp(1)"]
    assert single.bindings == ()


def test_meta_stays_with_its_owner() -> None:
    s = Sketch({"x": "f64[]", "unused": "f64[]"})
    x = s.inputs[0]
    s.builder.inputs[0] = Input(X, x.type, {"unit": "m"})
    dead, used, again = sin(x), exp(x), exp(x)
    assert (dead.id, again.id) == (2, 4)
    output = Output(key("y"), used.id, used.type, {"of": "y"})
    node_meta = {0: {"node": "dead"}, 1: {"node": "used"}, 2: {"node": "again"}}
    graph = s.builder.build("f", [output], meta={"graph": 1}, node_meta=node_meta)
    doc = Document((graph,), graph.cases, meta={"document": [1]})
    single = materialize(doc)
    assert single.meta == {"document": [1]}
    assert single.head.meta == {"graph": 1}
    assert single.head.inputs[0].meta == {"unit": "m"}
    assert single.head.outputs[0].meta == {"of": "y"}
    assert single.head.node_meta == {0: {"node": "used"}}
    # The other transforms keep the graphs that they do not replace as they are.
    forward = linearize(doc, [X])
    assert forward.meta == {"document": [1]} and forward.graphs[0] is graph
    assert transpose(forward).graphs[0] is graph
    assert detach(document(graph), 0).graphs[0].node_meta == node_meta


def test_an_input_as_an_output_and_a_value_under_two_keys() -> None:
    def body(x: Value, y: Value) -> dict[str, Value]:
        z = x * y
        return {"y": y, "u": z, "v": z}

    single = materialize(function("f", {"x": "f64[]", "y": "f64[]"}, body))
    assert ports(single.head) == (["x", "y"], {"y": 1, "u": 2, "v": 2})


def test_an_empty_graph() -> None:
    s = Sketch({"x": "f64[]"})
    empty = replace(s.build("f", {}), outputs=())
    assert ports(materialize(document(empty)).head) == (["x"], {})
    assert ports(materialize(document(empty), needed_inputs=True).head) == ([], {})


def test_the_result_shares_nothing_with_other_types() -> None:
    s = Sketch({"x": "f64[2]"})
    (x,) = s.inputs
    values = {"a": s.apply("reduce_sum", x, axes=[]), "b": s.apply("reduce_sum", x, axes=[0])}
    assert [str(o.type) for o in materialize(document(s.build("f", values))).head.outputs] == [
        str(TensorType("f64", (2,))),
        str(TensorType("f64")),
    ]


def test_a_graph_is_the_same_while_somebody_listens() -> None:
    class Listener:
        def begin(self, stage: str, total: int | None) -> None: ...

        def advance(self, n: int) -> None: ...

    doc = linearize(function("f", {"x": "f64[]"}, lambda x: sin(x) * cos(sin(x))), [X])
    with listening(Listener()):
        heard = materialize(doc)
    assert structure(heard) == structure(materialize(doc))


def test_a_product_of_two_equal_values_is_that_of_one_with_itself_once_they_are_merged() -> None:
    # BLAS computes x xᵀ as such (syrk) if both factors are one array, and rounds otherwise than for two arrays that are equal.
    # All plans merge equal nodes, as materialize does, so that it changes no bit of theirs; an evaluator that does not may differ.
    numbers = {"dimension_numbers": [[[1], [1]], [[], []]]}
    nodes = [node("sin", 0), node("sin", 0), node("dot_general", 1, 2, **numbers)]
    doc, _ = parse_document(loops.document(loops.graph({"x": "f64[33,33]"}, nodes, {"y": 3})), "f")
    x = np.random.default_rng(0).standard_normal((33, 33))
    merged = materialize(doc)
    assert [merged.head.case(n).op for n in range(merged.head.n_nodes)] == ["sin", "dot_general"]
    (planned,), (plain,) = (plain_program(d.head).run({X: x}) for d in (merged, doc))
    assert planned.tobytes() == plain.tobytes(), "materialize changed a bit"
    np.testing.assert_allclose(evaluate(doc, {X: x})[key("y")], planned, rtol=1e-12, atol=1e-12)
