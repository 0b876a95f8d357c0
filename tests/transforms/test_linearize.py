"""What linearize emits and what it leaves out, and its errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.graphs.interpret import evaluate, zeros
from tests.graphs.sketch import Sketch, Value, document, function, key, listing, names, op, ports
from tidu_cli.errors import KeyTextError, MissingRuleError, TransformError, UnknownNameError
from tidu_cli.graph.graph import Binding, Document, Output
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import JVP, Primitive, Transposition
from tidu_cli.rules.families import changed, numpy_function, of_one_type, primitive
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.compose import detach
from tidu_cli.transforms.linking.resolve import resolve
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

X, Y = key("x"), key("y")
sin, exp, stop_gradient, gt, select_n, convert, integer_pow, sign, tanh, logistic = map(
    op, ("sin", "exp", "stop_gradient", "gt", "select_n", "convert_element_type", "integer_pow", "sign", "tanh", "logistic")
)
F64 = TensorType("f64")


def raises(error: type[Exception], message: str) -> object:
    return pytest.raises(error, match=f"^{re.escape(message)}$")


# Residual graphs


@pytest.mark.parametrize(
    ("body", "residual"),
    [
        (lambda x: x + x, None),
        (lambda x: x * x, None),
        (exp, None),
        (lambda x: -x, None),
        (sin, ["cos([0,0])"]),
        (lambda x: sin(x) + sin(x * x), ["cos([0,0])", "cos([0,2])"]),
    ],
)
def test_a_residual_graph_stands_before_the_linear_one_only_where_needed(
    body: Callable[[Value], Value], residual: list[str] | None
) -> None:
    doc = linearize(function("f", {"x": "f64[]"}, body), [X])
    if residual is None:
        assert names(doc) == ["f", "f@1"]
    else:
        assert names(doc) == ["f", "f@1.residual", "f@1"]
        assert listing(doc.graphs[1]) == residual
        assert doc.graphs[1].linear is None and not doc.graphs[1].outputs


def test_what_does_not_depend_on_wrt_is_left_alone() -> None:
    doc = linearize(function("f", {"x": "f64[]", "y": "f64[]"}, lambda x, y: sin(y) * exp(y) * x), [X])
    assert names(doc) == ["f", "f@1"]
    assert listing(doc.head) == ["mul([0,4], 0) FT"]


def test_what_no_chosen_output_depends_on_is_left_alone() -> None:
    f = function("f", {"x": "f64[]"}, lambda x: {"u": sin(x), "v": exp(x)})
    assert listing(linearize(f, [X], outputs=[key("v")]).head) == ["mul([0,2], 0) FT"]
    assert names(linearize(f, [X], outputs=[key("v")])) == ["f", "f@1"]


# Zeros


@pytest.mark.parametrize(
    "body",
    [
        lambda x, y: stop_gradient(x),
        lambda x, y: gt(x, y),
        lambda x, y: convert(x, new_dtype="i32"),
        lambda x, y: convert(convert(x, new_dtype="i32"), new_dtype="f64"),
        lambda x, y: integer_pow(x, y=0),
        lambda x, y: sign(x),
        lambda x, y: sin(y),
        lambda x, y: x.sketch.full(3, x.type),
        lambda x, y: stop_gradient(sin(x)) * sin(y),
        lambda x, y: sin(integer_pow(sin(x), y=0)),
    ],
)
def test_zero_tangents_are_null_and_emit_nothing(body: Callable[[Value, Value], Value]) -> None:
    f = function("f", {"x": "f64[]", "y": "f64[]"}, body)
    doc = linearize(f, [X])
    assert names(doc) == ["f", "f@1"]
    assert ports(doc.head) == (["x@1"], {"y@1": None})
    assert doc.head.n_nodes == 0
    at = {X: 0.5, Y: 0.25}
    assert evaluate(doc, at | {key("x@1"): 1.0}) == {key("y@1"): zeros(doc.head.outputs[0].type)}
    transposed = transpose(doc)
    assert ports(transposed.head) == (["y@-1"], {"x@-1": None})
    assert transposed.head.outputs[0].type == F64
    # A structural zero has derivatives of every order, and they are zero.
    assert ports(linearize(transposed, [X]).head) == (["x@2"], {"x@-1@2": None})
    assert [str(i.key) for i in materialize(transposed).head.inputs] == ["x", "y", "y@-1"]
    assert materialize(transposed, needed_inputs=True).head.inputs == ()


def test_integer_outputs_have_null_tangents_of_a_float_type() -> None:
    f = function("f", {"x": "f64[]"}, lambda x: {"i": convert(x, new_dtype="i32"), "b": gt(x, 0.0), "y": sin(x)})
    outputs = linearize(f, [X]).head.outputs
    assert [(o.value, str(o.type)) for o in outputs] == [(None, "f64[]"), (None, "bool[]"), (1, "f64[]")]
    assert [f"{i.key}: {i.type}" for i in transpose(linearize(f, [X])).head.inputs] == [
        "i@-1: f64[]",
        "b@-1: bool[]",
        "y@-1: f64[]",
    ]


def test_a_zero_beside_a_tangent_is_not_added() -> None:
    doc = linearize(function("f", {"x": "f64[]"}, lambda x: stop_gradient(x) * x + integer_pow(x, y=0)), [X])
    assert listing(doc.head) == ["mul([0,1], 0) FT"]


def test_linear_nodes_that_end_in_a_zero_are_dropped_with_their_residuals() -> None:
    def body(x: Value) -> dict[str, Value]:
        return {"u": stop_gradient(sin(sin(x))), "v": exp(x)}

    doc = linearize(function("f", {"x": "f64[]"}, body), [X])
    assert names(doc) == ["f", "f@1"]
    assert listing(doc.head) == ["mul([0,4], 0) FT"]
    assert ports(doc.head) == (["x@1"], {"u@1": None, "v@1": 1})


def test_residuals_that_are_still_read_stay() -> None:
    def body(x: Value) -> Value:
        return stop_gradient(sin(exp(x))) + sin(x)

    doc = linearize(function("f", {"x": "f64[]"}, body), [X])
    assert listing(doc.graphs[1]) == ["cos([0,0])"]
    assert listing(doc.head) == ["mul([1,0], 0) FT"]


@pytest.mark.parametrize(
    "body",
    [
        tanh,  # whose rule has 1 twice
        lambda x: tanh(x) + tanh(x * x),  # two nodes of one case
        lambda x: tanh(x) + logistic(x),  # two rules
    ],
)
def test_a_constant_is_emitted_once(body: Callable[[Value], Value]) -> None:
    doc = linearize(function("f", {"x": "f64[]"}, body), [X])
    assert [doc.graphs[1].case(n).op for n in range(doc.graphs[1].n_nodes)].count("constant") == 1


# Inputs and outputs


def test_the_ports_follow_the_order_asked_for_and_each_wrt_counts_once() -> None:
    f = function("f", {"x": "f64[]", "y": "f64[2]"}, lambda x, y: {"v": y, "u": x * x})
    doc = linearize(f, [Y, X, Y], outputs=[key("u"), key("v"), key("u")])
    assert ports(doc.head) == (["y@1", "x@1"], {"u@1": doc.head.n_values - 1, "v@1": 0})
    assert [str(i.type) for i in doc.head.inputs] == ["f64[2]", "f64[]"]


def test_an_unused_input_is_a_tangent_input_that_nothing_reads() -> None:
    f = function("f", {"x": "f64[]", "unused": "f64[]"}, lambda x, unused: sin(x))
    doc = linearize(f, [key("unused"), X])
    assert ports(doc.head) == (["unused@1", "x@1"], {"y@1": 2})
    assert ports(transpose(doc).head) == (["y@-1"], {"unused@-1": None, "x@-1": 1})


def test_an_output_that_is_an_input() -> None:
    doc = linearize(function("f", {"x": "f64[]"}, lambda x: {"same": x, "y": x * x}), [X])
    assert ports(doc.head)[1]["same@1"] == 0
    back = transpose(doc)
    cotangents = evaluate(back, {X: 3.0, key("same@-1"): 10.0, key("y@-1"): 1.0})
    assert cotangents == {key("x@-1"): 16.0}
    only = transpose(linearize(function("f", {"x": "f64[]"}, lambda x: x), [X]))
    assert ports(only.head) == (["y@-1"], {"x@-1": 0})
    assert only.head.n_nodes == 0


def test_one_value_under_two_keys_accumulates_both_cotangents() -> None:
    def body(x: Value) -> dict[str, Value]:
        y = sin(x)
        return {"u": y, "v": y}

    doc = linearize(function("f", {"x": "f64[]"}, body), [X])
    assert ports(doc.head) == (["x@1"], {"u@1": 1, "v@1": 1})
    back = transpose(doc)
    assert listing(back.head) == ["add(0, 1) TT", "mul([1,0], 2) FT"]
    assert ports(back.head) == (["u@-1", "v@-1"], {"x@-1": 3})


def test_a_null_output_of_the_head_stays_null() -> None:
    f = function("f", {"x": "f64[]"}, sin)
    graph = replace(f.head, outputs=(*f.head.outputs, Output(key("none"), None, TensorType("f64", (2,)))))
    doc = linearize(document(graph), [X])
    assert ports(doc.head) == (["x@1"], {"y@1": 1, "none@1": None})
    assert str(doc.head.outputs[1].type) == "f64[2]"
    assert ports(materialize(document(graph)).head) == (["x"], {"y": 1, "none": None})


def test_outputs_are_looked_up_in_the_head_first_then_in_the_latest_graph() -> None:
    f = function("f", {"x": "f64[]"}, lambda x: {"y": x + x, "old": exp(x)})
    g = Sketch({"x": "f64[]"}, cases=f.cases, number=1)
    h = Sketch({"x": "f64[]"}, cases=f.cases, number=2)
    doc = document(f.head, g.build("g", {"y": sin(g.inputs[0])}), h.build("h", {"z": -h.inputs[0]}))
    assert listing(linearize(doc, [X], outputs=[Y]).head) == ["mul([3,0], 0) FT"]
    assert listing(linearize(doc, [X], outputs=[key("old")]).head) == ["mul([0,2], 0) FT"]
    assert listing(linearize(doc, [X], outputs=[key("z"), key("old")]).head) == ["mul([0,2], 0) FT", "neg(0) T"]


def test_an_input_that_only_an_earlier_graph_declares() -> None:
    f = function("f", {"x": "f64[]"}, lambda x: x * x)
    g = Sketch({}, cases=f.cases, number=1)
    y = Value(g, -1, F64)
    g.builder.refer(0, 1)
    doc = document(f.head, g.build("g", {"z": sin(y)}))
    linear = linearize(doc, [X])
    assert names(linear) == ["f", "g", "g@1.residual", "g@1"]
    assert listing(linear.head) == ["mul([0,0], 0) FT", "mul(0, [0,0]) TF", "add(1, 2) TT", "mul([2,0], 3) FT"]


def test_an_output_that_is_a_value_of_another_graph() -> None:
    f = function("f", {"x": "f64[]"}, lambda x: x * x)
    g = Sketch({"x": "f64[]"}, cases=f.cases, number=1)
    argument = g.builder.refer(0, 1)
    doc = document(f.head, g.builder.build("g", [Output(key("z"), argument, F64)]))
    at = {X: 3.0, key("x@1"): 1.0}
    assert evaluate(linearize(doc, [X]), at) == {key("z@1"): 6.0}


def test_no_wrt_at_all_gives_a_graph_of_zeros() -> None:
    assert ports(linearize(function("f", {"x": "f64[]"}, sin), []).head) == ([], {"y@1": None})


# Pass numbers


def test_passes_are_one_past_the_greatest_in_any_key() -> None:
    f = function("f", {"x": "f64[]", "a@-7": "f64[]", "b@2@4": "f64[]"}, lambda x, a, b: x * a)
    doc = linearize(f, [X])
    assert doc.head.linear == 8
    assert linearize(doc, [X]).head.linear == 9
    assert ports(linearize(doc, [X]).head) == (["x@9"], {"y@8@9": None})


def test_a_pass_may_be_chosen_and_a_used_one_is_refused() -> None:
    f = function("f", {"x": "f64[]"}, sin)
    doc = linearize(f, [X], pass_number=5)
    assert (names(doc)[-1], ports(doc.head)[0], doc.head.linear) == ("f@5", ["x@5"], 5)
    assert linearize(doc, [X]).head.linear == 6
    assert linearize(doc, [X], pass_number=2).head.linear == 2
    for used in (doc, transpose(doc)):
        with raises(TransformError, "pass 5 is in use in this document; the next free one is 6"):
            linearize(used, [X], pass_number=5)


def test_bindings_and_linear_graphs_count_for_passes() -> None:
    f = function("f", {"x": "f64[]"}, sin)
    g = Sketch({"t@6": "f64[]"}, cases=f.cases, number=1)
    graph = g.build("g", {"z": sin(g.inputs[0])})
    assert linearize(document(f.head, graph, bindings=(Binding(key("t@6"), 0, 1),)), [X]).head.linear == 7
    assert linearize(document(replace(f.head, linear=11)), [X]).head.linear == 12


# Errors


def test_unknown_keys_name_a_likely_one() -> None:
    f = function("f", {"weights": "f64[]", "x": "f64[]"}, lambda w, x: {"loss": w * x})
    with raises(UnknownNameError, "no graph has an input 'weigths'; did you mean 'weights'? (inputs: weights, x)"):
        linearize(f, [key("weigths")])
    with raises(UnknownNameError, "no graph has an output 'los'; did you mean 'loss'? (outputs: loss)"):
        linearize(f, [X], outputs=[key("los")])


def test_wrt_takes_what_carries_tangents() -> None:
    f = function("f", {"b": "bool[]", "x": "f64[]"}, lambda b, x: x)
    why = "whose only tangent is zero; if it is meant as a number, "
    way_out = "declare it as a float and use convert_element_type where a bool is needed"
    with raises(TransformError, f"input 'b' has type bool[], {why}{way_out}"):
        linearize(f, [X, key("b")])


def test_wrt_a_bound_input_points_to_the_graph_that_it_comes_from() -> None:
    f = function("f", {"x": "f64[]"}, sin)
    g = Sketch({"t": "f64[]"}, cases=f.cases, number=1)
    doc = document(f.head, g.build("g", {"z": exp(g.inputs[0])}), bindings=(Binding(key("t"), 0, 1),))
    message = "input 't' is bound to a value of graph 'f'; differentiate with respect to that graph's inputs"
    with raises(TransformError, message):
        linearize(doc, [key("t")])


# Primitive sets


def extended(*primitives: Primitive) -> PrimitiveSet:
    return PrimitiveSet.of([*BUILTIN, *primitives])


def foo(**rules: object) -> Primitive:
    return primitive("foo", 1, of_one_type(frozenset({"f64"})), numpy_function("positive"), **rules)


def applied_foo(primitives: PrimitiveSet) -> Document:
    return function("f", {"x": "f64[]"}, lambda x: x.sketch.apply("foo", x * x), primitives=primitives)


def test_a_primitive_without_a_jvp_rule_is_named_with_its_place() -> None:
    primitives = extended(foo())
    with raises(MissingRuleError, "graph 'f', node 1 (foo): missing JVP rule for foo"):
        linearize(applied_foo(primitives), [X], primitives=primitives)


def test_a_primitive_without_rules_does_no_harm_where_no_tangent_meets_it() -> None:
    primitives = extended(foo())
    f = function("f", {"x": "f64[]", "y": "f64[]"}, lambda x, y: y.sketch.apply("foo", y) * x, primitives=primitives)
    assert listing(linearize(f, [X], primitives=primitives).head) == ["mul([0,2], 0) FT"]


def test_a_primitive_without_a_transpose_rule_is_named_with_its_place() -> None:
    def jvp(node: JVP) -> list[object]:
        return [node.tangents[0].trace.emit("foo", node.tangents[0])]

    primitives = extended(foo(jvp=jvp))
    doc = linearize(applied_foo(primitives), [X], primitives=primitives)
    with raises(MissingRuleError, "graph 'f@1', node 3 (foo): missing transpose rule for foo"):
        transpose(doc, primitives=primitives)


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        (lambda node: [], "the rule of foo gives 0 tangents where 1 are due"),
        (lambda node: [node.tangents[0]] * 2, "the rule of foo gives 2 tangents where 1 are due"),
        (lambda node: [node.operands[0]], "the rule of foo gives a value that is not a tangent where a tangent f64[] is due"),
        (
            lambda node: [node.tangents[0].trace.emit("convert_element_type", node.tangents[0], new_dtype="f32")],
            "the rule of foo gives a tangent f32[] where a tangent f64[] is due",
        ),
    ],
)
def test_a_jvp_rule_that_gives_something_wrong_is_caught(rule: Callable[[JVP], object], complaint: str) -> None:
    primitives = extended(foo(jvp=rule))
    with raises(MissingRuleError, f"graph 'f', node 1 (foo): {complaint}"):
        linearize(applied_foo(primitives), [X], primitives=primitives)


def test_a_jvp_rule_that_is_not_linear_in_the_tangent_is_stopped_where_it_is_recorded() -> None:
    square = extended(foo(jvp=lambda node: [node.tangents[0] * node.tangents[0]]))
    message = (
        "graph 'f', node 1 (foo): the JVP rule of foo emits mul, which is not linear in its active inputs 0, 1; "
        "mul is linear in input 0, or in input 1"
    )
    with raises(MissingRuleError, message):
        linearize(applied_foo(square), [X], primitives=square)
    sine = extended(foo(jvp=lambda node: [node.tangents[0].trace.emit("sin", node.tangents[0])]))
    with raises(
        MissingRuleError, "graph 'f', node 1 (foo): the JVP rule of foo emits sin, which is not linear in its active input 0"
    ):
        linearize(applied_foo(sine), [X], primitives=sine)


def test_a_set_needs_no_more_than_the_rules_use() -> None:
    few = PrimitiveSet.of([p for p in BUILTIN if p.name in ("mul", "add", "neg")])
    f = function("f", {"x": "f64[]"}, lambda x: -(x * x) + x, primitives=few)
    doc = linearize(transpose(linearize(f, [X], primitives=few), primitives=few), [X], primitives=few)
    assert evaluate(doc, {X: 3.0, key("y@-1"): 1.0, key("x@2"): 1.0}) == {key("x@-1@2"): -2.0}


def test_cotangents_accumulate_with_the_primitive_that_the_set_names() -> None:
    plus = replace(BUILTIN["add"], name="plus")
    primitives = PrimitiveSet.of([p for p in BUILTIN if p.name == "mul"] + [plus], add="plus")

    def rule(node: JVP) -> list[object]:
        (x, y), (tx, ty) = node.operands, node.tangents
        return [x.trace.emit("plus", x * ty, tx * y)]

    primitives = replace(primitives, primitives=primitives.primitives | {"mul": changed(BUILTIN["mul"], jvp=rule)})
    f = function("f", {"x": "f64[]"}, lambda x: x * x, primitives=primitives)
    doc = transpose(linearize(f, [X], primitives=primitives), primitives=primitives)
    assert listing(doc.head) == ["mul([0,0], 0) FT", "mul([0,0], 0) FT", "plus(1, 2) TT"]


def rotation() -> Primitive:
    """(x, y) to (x + y, x - y): linear, with two results."""

    def jvp(node: JVP) -> list[object]:
        trace = next(t.trace for t in node.tangents if t is not None)
        emitted = trace.emit("rotate", *(0 if t is None else t for t in node.tangents))
        return [emitted, replace(emitted, slot=emitted.slot + 1)]

    def transposed(node: Transposition) -> list[object]:
        u, v = node.cotangents
        total = u if v is None else v if u is None else u + v
        difference = u if v is None else -v if u is None else u - v
        return [c if a else None for c, a in zip((total, difference), node.active, strict=True)]

    return primitive(
        "rotate",
        2,
        lambda attrs, t: (t[0], t[0]),
        lambda np, *_: lambda x, y: (x + y, x - y),
        jvp=jvp,
        transpose=transposed,
        one_type=True,
    )


def test_a_primitive_of_two_results() -> None:
    primitives = extended(rotation())

    def body(x: Value, y: Value) -> dict[str, Value]:
        total, difference = x.sketch.apply_all("rotate", sin(x), y)
        return {"p": total * difference, "q": difference}

    f = function("f", {"x": "f64[]", "y": "f64[]"}, body, primitives=primitives)
    at = {X: 0.3, Y: -0.8}
    forward = linearize(f, [X, Y], primitives=primitives)
    assert forward.head.case(1).op == "rotate" and forward.head.firsts[2] == 5
    tangents = evaluate(forward, at | {key("x@1"): 2.0, key("y@1"): 0.0}, primitives=primitives)
    s, c = float(evaluate(function("s", {"x": "f64[]"}, sin), at)[Y]), 0.955336489125606
    assert tangents == pytest.approx({key("p@1"): 4 * s * c, key("q@1"): 2 * c})  # p = sin² x - y²
    back = transpose(forward, primitives=primitives)
    cotangents = evaluate(back, at | {key("p@-1"): 1.0, key("q@-1"): 0.0}, primitives=primitives)
    assert cotangents == pytest.approx({key("x@-1"): 2 * s * c, key("y@-1"): 1.6})
    second = linearize(back, [X, Y], primitives=primitives)
    given = {key("p@-1"): 1.0, key("q@-1"): 0.0, key("x@2"): 1.0, key("y@2"): 1.0}
    expected = {key("x@-1@2"): 2 * (c * c - s * s), key("y@-1@2"): -2.0}
    assert evaluate(second, at | given, primitives=primitives) == pytest.approx(expected)
    assert evaluate(materialize(second), at | given, primitives=primitives) == pytest.approx(expected)
    only_q = transpose(linearize(f, [Y], outputs=[key("q")], primitives=primitives), primitives=primitives)
    assert evaluate(only_q, at | {key("q@-1"): 1.0}, primitives=primitives) == {key("y@-1"): -1.0}


def test_detached_linear_graphs_can_be_differentiated_in_their_own_inputs() -> None:
    f = function("f", {"x": "f64[]"}, lambda x: exp(x))
    loose = detach(linearize(f, [X]), 1)
    assert ports(linearize(loose, [key("x@1")]).head) == (["x@1@2"], {"y@1@2": 1})
    with raises(UnknownNameError, "no graph has an input 'x' (inputs: x@1)"):
        linearize(loose, [X])


def test_an_input_on_which_detached_values_may_depend_is_refused() -> None:
    # z = x sin x in a second graph, cut loose from the first: the path through sin x must not be lost in silence.
    f = function("f", {"x": "f64[]"}, sin)
    second = Sketch({"x": "f64[]"}, cases=f.cases, number=1)
    product = second.builder.append(
        f.cases.intern(BUILTIN.case("mul", BUILTIN.parse_attrs("mul", {}), None, [TensorType("f64")] * 2)),
        [0, second.builder.refer(0, 1)],
    )
    whole = document(f.head, second.build("g", {"z": Value(second, product, TensorType("f64"))}))
    message = "the outputs read detached values, which may depend on 'x'; resolve them with the document that defines them"
    with raises(TransformError, message):
        linearize(detach(whole, 1), [X])
    assert linearize(resolve([f, detach(whole, 1)]), [X]).head.linear == 1


@pytest.mark.parametrize("pass_number", [0, -3])
def test_a_pass_is_positive(pass_number: int) -> None:
    with raises(KeyTextError, f"a pass is an integer from 1 to 2**53 - 1, not {pass_number}"):
        linearize(function("f", {"x": "f64[]"}, sin), [X], pass_number=pass_number)
