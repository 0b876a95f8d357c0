"""What transpose accepts and refuses, and where it puts what its rules need besides."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pytest

from tests.graphs.interpret import evaluate
from tests.graphs.sketch import F, Mask, Sketch, T, Value, document, function, key, listing, names, op, ports
from tidu_cli.errors import MissingRuleError, TransformError
from tidu_cli.graph.graph import Document, Output
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import Transposition
from tidu_cli.rules.families import changed
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.compose import detach
from tidu_cli.transforms.linking.resolve import resolve
from tidu_cli.transforms.matrix import matrix
from tidu_cli.transforms.transpose import transpose

X = key("x")
sin, conj, select_n, gt = map(op, ("sin", "conj", "select_n", "gt"))


def raises(error: type[Exception], message: str) -> object:
    return pytest.raises(error, match=f"^{re.escape(message)}$")


def by_hand(
    body: Callable[[Value, Value], Value], *, inputs: Mapping[str, str] | None = None, output: str = "y@1", linear: int | None = 1
) -> Document:
    """A document of f(x) = x and a linear graph `body(tangent, x)` written by hand."""
    f = function("f", {"x": "f64[]"}, lambda x: x)
    sketch = Sketch(inputs or {"x@1": "f64[]"}, cases=f.cases, number=1)
    f_sketch = Sketch({"x": "f64[]"}, cases=f.cases, number=0)
    made = body(sketch.inputs[0], f_sketch.inputs[0])
    return document(f.head, sketch.build("f@1", {output: made}, linear=linear))


def with_op(name: str, *order: str, mask: Mask | None) -> Callable[[Value, Value], Value]:
    """A node that reads the tangent t or the primal x."""
    return lambda t, x: t.sketch.apply(name, *({"t": t, "x": x}[o] for o in order), mask=mask)


def test_only_a_linear_graph_is_transposed() -> None:
    message = "graph 'f' is not a linear graph; transpose() takes the output of linearize()"
    with raises(TransformError, message):
        transpose(function("f", {"x": "f64[]"}, sin))
    with raises(TransformError, "graph 'f@1' is not a linear graph; transpose() takes the output of linearize()"):
        transpose(by_hand(with_op("neg", "t", mask=(T,)), linear=None))


@pytest.mark.parametrize(
    ("node", "complaint"),
    [
        (with_op("neg", "t", mask=None), "graph 'f@1', node 0 (neg): it is primary, in a linear graph"),
        (
            with_op("mul", "x", "t", mask=(F, F)),
            "graph 'f@1', node 0 (mul): input 1 is inactive, but it depends on the tangents",
        ),
        (
            with_op("mul", "x", "t", mask=(T, T)),
            "graph 'f@1', node 0 (mul): input 0 is active, but it is a value of another graph",
        ),
        (
            with_op("mul", "x", "t", mask=(T, F)),
            "graph 'f@1', node 0 (mul): input 0 is active, but it is a value of another graph",
        ),
        (
            lambda t, x: t * t.sketch.apply("neg", x),
            "graph 'f@1', node 1 (mul): it is primary, in a linear graph",
        ),
        (
            lambda t, x: t.sketch.apply("mul", t, t.sketch.apply("neg", x, mask=(F,)), mask=(T, F)),
            "graph 'f@1', node 1 (mul): input 1 is inactive, but it depends on the tangents",
        ),
    ],
)
def test_a_graph_that_is_not_linear_is_refused_with_the_node(node: Callable[[Value, Value], Value], complaint: str) -> None:
    with raises(TransformError, complaint):
        transpose(by_hand(node))


@pytest.mark.parametrize(
    ("node", "complaint"),
    [
        (
            with_op("mul", "t", "t", mask=(T, T)),
            "graph 'f@1', node 0 (mul): missing transpose rule for mul with active inputs [0, 1]: it is linear in one at a time",
        ),
        (
            with_op("div", "x", "t", mask=(F, T)),
            "graph 'f@1', node 0 (div): missing transpose rule for div with an active divisor: it is not linear in it",
        ),
        (with_op("sin", "t", mask=(T,)), "graph 'f@1', node 0 (sin): missing transpose rule for sin"),
    ],
)
def test_an_operation_that_is_not_linear_has_no_transpose_rule(node: Callable[[Value, Value], Value], complaint: str) -> None:
    with raises(MissingRuleError, complaint):
        transpose(by_hand(node))


def test_an_output_that_does_not_depend_on_the_tangents_is_refused() -> None:
    with raises(TransformError, "graph 'f@1', output 'y@1': it is a value of another graph, not linear in the inputs"):
        transpose(by_hand(lambda t, x: Value(t.sketch, t.sketch.argument(x), x.type)))


def test_keys_of_a_linear_graph_are_tangents_or_cotangents() -> None:
    neg = with_op("neg", "t", mask=(T,))
    with raises(TransformError, "graph 'f@1': 'y' is neither a tangent nor a cotangent, as a linear graph's must be"):
        transpose(by_hand(neg, output="y"))
    with raises(TransformError, "graph 'f@1': 't' is neither a tangent nor a cotangent, as a linear graph's must be"):
        transpose(by_hand(neg, inputs={"t": "f64[]"}))


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        (lambda node: [], "the rule of neg gives 0 tangents where 1 are due"),
        (lambda node: [node.cotangents[0]] * 2, "the rule of neg gives 2 tangents where 1 are due"),
        (
            lambda node: [node.cotangents[0].trace.full(1, node.types[0])],
            "the rule of neg gives a value that is not a tangent where a tangent f64[] is due",
        ),
        (
            lambda node: [node.cotangents[0].trace.emit("convert_element_type", node.cotangents[0], new_dtype="f32")],
            "the rule of neg gives a tangent f32[] where a tangent f64[] is due",
        ),
    ],
)
def test_a_transpose_rule_that_gives_something_wrong_is_caught(rule: Callable[[Transposition], object], complaint: str) -> None:
    wrong = PrimitiveSet(dict(BUILTIN.primitives) | {"neg": changed(BUILTIN["neg"], transpose=rule)})
    with raises(MissingRuleError, f"graph 'f@1', node 0 (neg): {complaint}"):
        transpose(by_hand(with_op("neg", "t", mask=(T,))), primitives=wrong)


def test_contributions_accumulate_in_the_order_in_which_they_arise() -> None:
    doc = transpose(linearize(function("f", {"x": "f64[]"}, lambda x: (x * x) * x), [X]))
    # The last node first: x² dx, then x (x dx) + x (dx x).
    assert listing(linearize(function("f", {"x": "f64[]"}, lambda x: (x * x) * x), [X]).head) == [
        "mul([0,0], 0) FT",
        "mul(0, [0,0]) TF",
        "add(1, 2) TT",
        "mul([0,1], 0) FT",
        "mul(3, [0,0]) TF",
        "add(4, 5) TT",
    ]
    assert listing(doc.head) == [
        "mul([0,0], 0) FT",
        "mul([0,1], 0) FT",
        "mul([0,0], 1) FT",
        "add(2, 3) TT",
        "mul([0,0], 1) FT",
        "add(4, 5) TT",
    ]
    assert ports(doc.head) == (["y@-1"], {"x@-1": 6})


def test_a_residual_graph_takes_what_rules_need_besides() -> None:
    f = function("f", {"z": "c128[]"}, lambda z: sin(z) * z)
    forward = linearize(f, [key("z")])
    assert names(forward) == ["f", "f@1.residual", "f@1"]
    back = transpose(forward)
    assert names(back) == ["f", "f@1.residual", "f@-1.residual", "f@-1"]
    assert back.graphs[1] is forward.graphs[1], "what linearize made stays as it is"
    assert {back.graphs[2].case(n).op for n in range(back.graphs[2].n_nodes)} == {"conj"}
    assert all(back.head.case(n).mask is not None for n in range(back.head.n_nodes))
    assert names(transpose(back)) == ["f", "f@1.residual", "f@-1.residual", "f@1.residual.2", "f@1"]


def test_a_map_and_its_transpose_can_be_linked() -> None:
    forward = linearize(function("f", {"z": "c128[]"}, lambda z: sin(z) * z), [key("z")])
    linked = resolve([forward, transpose(forward)])
    assert names(linked) == ["f", "f@1.residual", "f@1", "f@-1.residual", "f@-1"]


def test_a_residual_that_another_graph_makes_of_the_same_tangent_is_refused() -> None:
    # Each node by itself is linear; together they multiply the tangent by itself.
    early = Sketch({"x@1": "f64[]"})
    first = early.build("g", {"s": early.inputs[0]})
    head = Sketch({"x@1": "f64[]"}, cases=first.cases, number=1)
    squared = head.apply("mul", early.inputs[0], head.inputs[0], mask=(F, T))
    with raises(TransformError, "graph 'h' reads values of other graphs that depend on its input 'x@1', so it is not linear"):
        transpose(document(first, head.build("h", {"y@1": squared}, linear=1)))


def test_a_residual_graph_is_made_where_there_was_none() -> None:
    forward = linearize(function("f", {"z": "c128[]", "w": "c128[]"}, lambda z, w: z * w), [key("z"), key("w")])
    assert names(forward) == ["f", "f@1"]
    back = transpose(forward)
    assert names(back) == ["f", "f@-1.residual", "f@-1"]
    assert listing(back.graphs[1]) == ["conj([0,1])", "conj([0,0])"]
    assert listing(back.head) == ["mul([1,0], 0) FT", "mul([1,1], 0) FT"]
    assert ports(back.head) == (["y@-1"], {"z@-1": 1, "w@-1": 2})


def test_transposing_leaves_the_documents_other_graphs_alone() -> None:
    f = function("f", {"z": "c128[]"}, lambda z: sin(z) * conj(z))
    forward = linearize(f, [key("z")])
    before = [listing(g) for g in forward.graphs]
    back = transpose(forward)
    assert back.graphs[0] is forward.graphs[0]
    assert [listing(g) for g in forward.graphs] == before, "the document that was given has changed"


def test_shared_zeros_of_rules_are_emitted_once() -> None:
    def body(x: Value) -> Value:
        for k in range(5):
            x = select_n(gt(x, float(k)), x, x * x)
        return x

    back = transpose(linearize(function("f", {"x": "f64[]"}, body), [X]))
    constants = [g.case(n) for g in back.graphs[1:] for n in range(g.n_nodes) if g.case(n).op == "constant"]
    assert len(constants) == len(set(constants)) == 1


def test_null_outputs_have_cotangents_that_nothing_reads() -> None:
    sketch = Sketch({"x@1": "f64[]"})
    graph = sketch.builder.build(
        "f@1", [Output(key("none@1"), None, TensorType("f64")), sketch.output("y@1", sketch.inputs[0])], linear=1
    )
    back = transpose(document(graph))
    assert ports(back.head) == (["none@-1", "y@-1"], {"x@-1": 1})
    assert back.head.name == "f@-1"
    assert ports(transpose(back).head) == (["x@1"], {"none@1": None, "y@1": 0})


def test_a_graph_of_zeros_alone_can_be_transposed_and_has_a_matrix() -> None:
    f = function("f", {"x": "f64[2]", "p": "f64[]"}, lambda x, p: {"y": x, "z": p})
    linear = linearize(f, [key("p")], outputs=[key("y")])
    back = transpose(linear)
    assert ports(back.head) == (["y@-1"], {"p@-1": None})
    for one in (linear, back):
        (block,) = matrix(one).head.outputs
        assert (str(block.key), str(block.type), block.value) == ("y/p", "f64[2]", None)


def test_a_detached_linear_graph_can_be_transposed() -> None:
    f = function("f", {"z": "c128[]"}, lambda z: sin(z) * z)
    forward = linearize(f, [key("z")])
    loose = transpose(detach(forward, 1))
    assert names(loose) == ["f@1.residual", "f@-1.residual", "f@-1"]
    z, w = 0.3 + 0.4j, 1.0 - 2.0j
    at = {key("z"): z, key("y@-1"): w}
    assert evaluate(resolve([f, loose]), at) == evaluate(transpose(forward), at)
