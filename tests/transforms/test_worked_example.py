"""The worked example of the design, node for node: f(x) = (x + x) x, its JVP, its transpose, and second order in both modes."""

from __future__ import annotations

from tests.graphs.interpret import evaluate
from tests.graphs.sketch import function, key, listing, names, ports
from tidu_cli.graph.graph import Document
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

X = key("x")


def worked_example() -> Document:
    return function("f", {"x": "f64[]"}, lambda x: (x + x) * x)


def test_linearize_writes_the_jvp_node_for_node() -> None:
    doc = linearize(worked_example(), [X])
    assert names(doc) == ["f", "f@1"]
    assert listing(doc.graphs[0]) == ["add(0, 0)", "mul(1, 0)"]
    assert listing(doc.head) == ["add(0, 0) TT", "mul([0,1], 0) FT", "mul(1, [0,0]) TF", "add(2, 3) TT"]
    assert ports(doc.head) == (["x@1"], {"y@1": 4})
    assert doc.head.linear == 1


def test_transpose_writes_the_adjoint_node_for_node() -> None:
    doc = transpose(linearize(worked_example(), [X]))
    assert names(doc) == ["f", "f@-1"]
    assert listing(doc.head) == ["mul([0,0], 0) FT", "mul([0,1], 0) FT", "add(2, 1) TT", "add(3, 1) TT"]
    assert ports(doc.head) == (["y@-1"], {"x@-1": 4})
    assert doc.head.linear == 1


def test_values_of_first_order() -> None:
    forward = linearize(worked_example(), [X])
    assert evaluate(forward, {X: 3.0, key("x@1"): 1.0}) == {key("y@1"): 12.0}
    assert evaluate(transpose(forward), {X: 3.0, key("y@-1"): 1.0}) == {key("x@-1"): 12.0}


def test_forward_over_reverse_gives_4_x2_y_1() -> None:
    doc = linearize(transpose(linearize(worked_example(), [X])), [X])
    assert names(doc) == ["f", "f@-1", "f@-1@2"]
    assert ports(doc.head) == (["x@2"], {"x@-1@2": doc.head.n_values - 1})
    single = materialize(doc)
    assert names(single) == ["f@-1@2"]
    assert [str(i.key) for i in single.head.inputs] == ["x", "y@-1", "x@2"]
    assert [str(i.key) for i in materialize(doc, needed_inputs=True).head.inputs] == ["y@-1", "x@2"]
    for x in (0.0, 3.0, -7.0):
        assert evaluate(single, {X: x, key("x@2"): 5.0, key("y@-1"): 7.0}) == {key("x@-1@2"): 140.0}


def test_reverse_over_reverse_takes_and_gives_the_keys_of_the_design() -> None:
    doc = transpose(linearize(transpose(linearize(worked_example(), [X])), [X]))
    assert names(doc) == ["f", "f@-1", "f@-1@-2"]
    inputs, outputs = ports(doc.head)
    assert (inputs, list(outputs)) == (["x@-1@-2"], ["x@-2"])
    assert evaluate(doc, {X: 3.0, key("y@-1"): 7.0, key("x@-1@-2"): 5.0}) == {key("x@-2"): 140.0}


def test_names_through_the_passes() -> None:
    f = function("f", {"x": "f64[]"}, lambda x: x.sketch.apply("sin", x))
    forward = linearize(f, [X])
    assert names(forward) == ["f", "f@1.residual", "f@1"]
    assert names(transpose(forward)) == ["f", "f@1.residual", "f@-1"]
    assert names(transpose(transpose(forward))) == names(forward)
    second = linearize(transpose(forward), [X])
    assert names(second) == ["f", "f@1.residual", "f@-1", "f@-1@2.residual", "f@-1@2"]
    assert names(transpose(second))[-1] == "f@-1@-2"
    assert names(linearize(forward, [X]))[-2:] == ["f@1@2.residual", "f@1@2"]
    assert names(transpose(linearize(forward, [X])))[-1] == "f@1@-2"
    # A second derivative of f itself, in a document that has one already: keys do not clash, and names do not either.
    assert names(linearize(forward, [X], outputs=[key("y")]))[-1] == "f@1@2"


def test_a_name_that_is_taken_gets_a_number() -> None:
    from tests.graphs.sketch import Sketch, document

    cases = worked_example()
    other = Sketch({"x": "f64[]"}, cases=cases.cases, number=0)
    g = other.build("f@1", {"z": -other.inputs[0]})
    f = Sketch({"x": "f64[]"}, cases=cases.cases, number=1)
    doc = document(g, f.build("f", {"y": f.inputs[0] * f.inputs[0]}))
    forward = linearize(doc, [X])
    assert names(forward) == ["f@1", "f", "f@1.2"]
    assert len(set(names(transpose(forward)))) == 3
