"""compose and rename: pipelines of documents, whose VJPs are the VJPs of the parts in reverse."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import tidu_cli
from tests.cli.running import graph, invoke
from tests.graphs.interpret import evaluate, free_inputs
from tests.graphs.sketch import Sketch, document, function, key, names, ports, structure
from tests.transforms.linking.composing import SAMPLES, X, bound, composed_by_command, cos, exp, scalar, sin, tanh
from tidu_cli.errors import TransformError, TypeRuleError, UnknownNameError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.select import another_name
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.compose import compose, detach
from tidu_cli.transforms.linking.rename import Owner, Renaming, owner, rename
from tidu_cli.transforms.linking.resolve import resolve
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.shorthands import vjp
from tidu_cli.transforms.transpose import transpose


def raises(error: type[Exception], message: str) -> object:
    return pytest.raises(error, match=f"^{re.escape(message)}$")


# Pairs


def test_composition_is_resolve_with_bindings_where_no_names_clash() -> None:
    f, g = scalar("f", sin, y="v"), function("g", {"w": "f64[]", "u": "f64[]"}, lambda w, u: exp(u) * w)
    assert structure(compose([f, g]).document) == structure(resolve([f, g], bind=[(key("w"), key("v"))]))
    assert structure(compose([f]).document) == structure(f)


def test_the_default_is_by_name_where_a_key_is_on_both_sides() -> None:
    f = function("f", {"t": "f64[]"}, lambda t: {"w": sin(t), "u": cos(t)})
    g = function("g", {"u": "f64[]", "w": "f64[]"}, lambda u, w: {"u": exp(u) * w, "z": u})
    h = function("h", {"p": "f64[]", "q": "f64[]"}, lambda p, q: p - q)
    composition = compose([f, g, h])
    assert bound(composition) == [["u=u", "w=w"], ["p=u", "q=z"]]
    assert [joint.by for joint in composition.joints] == ["name", "position"]
    assert bound(compose([f, g], by="position")) == [["u=w", "w=u"]]
    assert evaluate(composition.document, {key("t"): 0.3})[key("y")] == np.exp(np.cos(0.3)) * np.sin(0.3) - np.cos(0.3)


def test_outputs_that_feed_nothing_are_told() -> None:
    f = function("f", {"t": "f64[]"}, lambda t: {"loss": sin(t), "u": cos(t)})
    composition = compose([f, scalar("g", exp, x="u")])
    assert bound(composition) == [["u=u"]]
    assert [joint.idle for joint in composition.joints] == [(key("loss"),)]


def test_a_function_composes_with_itself() -> None:
    f = scalar("f", lambda x: sin(x) * x)
    composition = compose([f] * 3)
    assert bound(composition) == [["x.2=y"], ["x.3=y"]]
    assert names(composition.document) == ["f", "f.2", "f.3"]
    assert list(free_inputs(composition.document)) == [X]
    assert ports(composition.document.head)[1] == {"y": 2}
    values = [0.7]
    for _ in range(3):
        values.append(np.sin(values[-1]) * values[-1])
    assert evaluate(composition.document, {X: 0.7}) == {key("y"): values[3]}
    slope = np.prod([np.cos(v) * v + np.sin(v) for v in values[:3]])
    back = transpose(linearize(composition.document, [X]))
    assert evaluate(back, {X: 0.7, key("y@-1"): 1.0})[key("x@-1")] == pytest.approx(slope, rel=1e-14)


def test_a_step_from_y_to_y_composes_with_itself_by_name_and_keeps_its_output() -> None:
    step = scalar("step", lambda y: sin(y) * y, x="y")
    composition = compose([step, step])
    assert (composition.joints[0].by, bound(composition)) == ("name", [["y.2=y"]])
    assert composition.joints[0].outputs == {}
    once = np.sin(0.7) * 0.7
    assert evaluate(composition.document, {key("y"): 0.7}) == {key("y"): np.sin(once) * once}


def test_composing_from_the_left_in_two_steps_is_composing_at_once() -> None:
    parts = [scalar("f", sin), function("f", {"x": "f64[]", "c": "f64[]"}, lambda x, c: exp(x) * c), scalar("f", tanh)]
    parts.append(function("g", {"y": "f64[]", "c": "f64[]"}, lambda y, c: y - c))
    whole = compose(parts, share=[key("c")]).document
    for cut in (1, 2, 3):
        left = compose(parts[:cut]).document
        assert structure(compose([left, *parts[cut:]], share=[key("c")]).document) == structure(whole)


def test_the_output_that_is_bound_is_the_earlier_documents() -> None:
    """The later document, of two graphs, has an output of the same key."""
    f = scalar("f", sin)
    first = Sketch({"u": "f64[]"})
    inner = first.apply("exp", first.inputs[0])
    second = Sketch({}, cases=first.builder.cases, number=1)
    g = document(first.build("inner", {"e": inner}), second.build("outer", {"y": second.apply("neg", inner)}))
    assert evaluate(compose([f, g]).document, {X: 0.3}) == {key("y"): -np.exp(np.sin(0.3))}


def test_inputs_are_all_that_the_document_declares() -> None:
    """As materialize declares them: of a graph that nothing reads, too."""
    dead = Sketch({"dead": "f64[]"})
    used = Sketch({"u": "f64[]"}, cases=dead.builder.cases, number=1)
    value = used.apply("exp", used.inputs[0])
    head = Sketch({"unused": "f64[]"}, cases=dead.builder.cases, number=2)
    doc = document(dead.build("dead", {}), used.build("used", {}), head.build("head", {"y": head.apply("neg", value)}))
    f = function("f", {"t": "f64[]"}, lambda t: {"a": sin(t), "b": cos(t)})
    assert bound(compose([f, doc])) == bound(compose([f, materialize(doc)])) == [["dead=a", "u=b"]]


def test_derivatives_feed_inputs_of_their_kind_or_else_plain_ones() -> None:
    f = scalar("f", lambda x: sin(x) * x)
    gradient = vjp(f, [X]).document
    step = function("step", {"v": "f64[]", "c": "f64[]"}, lambda v, c: {"z": v * c})
    assert bound(compose([gradient, gradient])) == [["y.2@-1=x@-1"]]
    assert bound(compose([gradient, step])) == [["v=x@-1"]]
    linear = vjp(scalar("neg", lambda x: -x), [X]).document
    assert bound(compose([f, linear])) == [["x.2=y"]], "though the derivative does not depend on it"
    with raises(
        TransformError,
        "cannot compose by position: the outputs of graph 'f' are 'y' and the inputs of graph 'neg@-1' 'y@-1'; "
        "compose by name, choose outputs with materialize(), or bind them with resolve()",
    ):
        compose([f, materialize(linear, needed_inputs=True)])


# Names


def test_free_inputs_of_one_key_are_two_unless_they_are_shared() -> None:
    f = function("f", {"x": "f64[]", "w": "f64[]"}, lambda x, w: {"v": sin(x) * w})
    g = function("g", {"u": "f64[]", "w": "f64[]"}, lambda u, w: exp(u) * w)
    apart, one = compose([f, g]), compose([f, g], share=[key("w")])
    assert apart.joints[0].inputs == {key("w"): key("w.2")}
    assert one.joints[0].inputs == {}
    assert [list(map(str, free_inputs(c.document))) for c in (apart, one)] == [["x", "w", "w.2"], ["x", "w"]]
    at = {X: 0.3, key("w"): 0.5}
    v = np.sin(0.3) * 0.5
    assert evaluate(apart.document, at | {key("w.2"): 2.0})[key("y")] == np.exp(v) * 2.0
    assert evaluate(one.document, at)[key("y")] == np.exp(v) * 0.5


def test_new_names_are_not_taken_before() -> None:
    f = function("f", {"x": "f64[]", "x.2": "f64[]"}, lambda x, other: x * other)
    composition = compose([f, f])
    assert composition.joints[0].inputs == {X: key("x.3"), key("x.2"): key("x.2.2")}
    assert another_name("x", {"x.2", "x.4"}) == "x.3"


def test_tangents_and_cotangents_are_renamed_with_their_owners() -> None:
    f = function("f", {"x": "f64[]", "w": "f64[]"}, lambda x, w: sin(x) * w)
    backward = vjp(f, [X], value=True).document
    composition = compose([backward, backward])
    joint = composition.joints[0]
    assert bound(composition) == [["x.2=y", "y.2@-1=x@-1"]]
    assert {str(old): str(new) for old, new in joint.inputs.items()} == {"x": "x.2", "w": "w.2", "y@-1": "y.2@-1"}
    assert {str(old): str(new) for old, new in joint.outputs.items()} == {"y": "y.2", "x@-1": "x.2@-1"}


@pytest.mark.parametrize(
    ("text", "of_an_input", "of_an_output"),
    [("x", True, False), ("x@1", True, False), ("x@-1", False, True), ("x@-1@2", False, True), ("x@-1@-2", True, False)],
)
def test_owners(text: str, of_an_input: bool, of_an_output: bool) -> None:
    assert owner(key(text), is_input=True) == Owner(of_an_input, "x")
    assert owner(key(text), is_input=False) == Owner(of_an_output, "x")


# What cannot be


def test_types_must_agree() -> None:
    f, g = scalar("f", sin), function("g", {"u": "f64[2]"}, exp)
    message = "output 'y' of graph 'f' is f64[] and input 'u' of graph 'g' is f64[2] (paired by {}); types must agree"
    with raises(TransformError, message.format("position")):
        compose([f, g])
    with raises(TransformError, message.replace("'u'", "'y'").format("name")):
        compose([f, rename(g, Renaming({"u": "y"}))])


def test_pairs_there_must_be() -> None:
    f, g = function("f", {"x": "f64[]"}, lambda x: {"a": sin(x), "b": x}), scalar("g", exp)
    with raises(
        TransformError,
        "cannot compose by name: the outputs of graph 'f' are 'a', 'b' and the inputs of graph 'g' 'x'; "
        "compose by position, or bind them with resolve()",
    ):
        compose([f, g], by="name")
    with pytest.raises(TransformError, match=r"^cannot compose by position: the outputs of graph 'f' are 'a', 'b' and the inputs"):
        compose([f, g])
    with raises(TransformError, "documents are composed by name or position, not by 'size'"):
        compose([f, g], by="size")
    with raises(TransformError, "there is nothing to compose; give a document"):
        compose([])


def test_zeros_and_detached_values_feed_nothing() -> None:
    f, g = scalar("f", sin), scalar("g", exp)
    zero = document(replace(f.head, outputs=(replace(f.head.outputs[0], value=None),)))
    with raises(
        TransformError,
        "output 'y' of graph 'f' is zero all over, and feeds no input; "
        "make 'x' a constant with materialize(document, set={'x': ...})",
    ):
        compose([zero, g])
    loose = detach(linearize(f, [X]), 1)
    for pair in ([loose, g], [g, loose]):
        with pytest.raises(
            TransformError, match=r"^graph 'f@1\.residual' reads the detached value .*; resolve it with the document that"
        ):
            compose(pair)


def test_only_free_inputs_of_two_documents_are_shared() -> None:
    f, g = scalar("f", sin), function("g", {"u": "f64[]", "weight": "f64[]"}, lambda u, w: {"z": exp(u) * w})
    for name, hint in (("x", ""), ("u", ""), ("weight", ""), ("wait", "; did you mean 'weight'?")):
        with raises(
            UnknownNameError,
            f"there is no input '{name}' that two documents have and no output feeds, so it cannot be shared{hint}",
        ):
            compose([f, g], share=[key(name)])
    with pytest.raises(UnknownNameError):
        compose([f, f], share=[X])


def test_own_ops_come_along_and_two_of_one_name_are_refused() -> None:
    def using(body: str) -> Document:
        definition = {
            "inputs": [{"key": "a", "type": "f64[...]"}],
            "outputs": [{"key": "b", "type": "f64[...]"}],
            "forward": {"inputs": [{"key": "a"}], "nodes": [{"op": body, "inputs": [0]}], "outputs": [{"key": "b", "value": 1}]},
        }
        data = {"tidu": 1, "ops": {"curve": definition}, "graphs": [graph([("curve", 0)], outputs=[("y", 1)])]}
        return parse_document(json.dumps(data).encode(), "own")[0]

    f, g = using("sin"), scalar("g", exp)
    for parts, expected in (([f, g], np.exp(np.sin(0.3))), ([g, f], np.sin(np.exp(0.3))), ([f, f], np.sin(np.sin(0.3)))):
        composed = compose(parts).document
        assert tidu_cli.evaluate(composed, x=0.3) == {"y": expected}
        assert json.loads(format_document(composed, "json"))["ops"].keys() == {"curve"}
    with pytest.raises(TypeRuleError, match="curve"):
        compose([f, using("cos")])


def test_names_are_exchanged_at_once() -> None:
    f = function("f", {"x": "f64[]", "w": "f64[]"}, lambda x, w: sin(x) * w)
    assert structure(rename(rename(f, Renaming({"x": "w", "w": "x"})), Renaming({"x": "w", "w": "x"}))) == structure(f)
    loose = detach(linearize(f, [X]), 1)
    assert names(rename(loose, Renaming(graphs={"f@1": "g@1"})))[-1] == "g@1"


def test_a_linear_head_whose_input_is_bound_is_not_transposed() -> None:
    """Its transpose would be that of one factor only."""
    forward = linearize(scalar("f", lambda x: sin(x) * x), [X])
    with pytest.raises(TransformError, match=r"input 'x\.2@1' is bound to a value of graph 'f@1', so that transpose\(\) would see"):
        transpose(compose([forward, forward]).document)


# The command and the function


def test_the_command_writes_what_the_function_gives() -> None:
    f, g = (tidu_cli.load(path) for path in SAMPLES)
    composed = tidu_cli.compose(f, g)
    assert composed_by_command(*SAMPLES) == format_document(composed, "json")
    assert tidu_cli.evaluate(composed, x=0.5) == {"y": np.sin(0.25)}
    shared = tidu_cli.compose(f, tidu_cli.vjp(g, "u"), tidu_cli.vjp(f, "x"), share="x", by="position", one_pass=[1])
    assert set(tidu_cli.evaluate(shared, {"x": 0.5, "y@-1": 1})) == {"x@-1"}


def test_the_command_says_what_it_did_unless_quiet() -> None:
    told = invoke("compose", *SAMPLES)
    assert told.stderr == f"tidu compose: note: {SAMPLES[1]}: bound by position u=v\n"
    assert invoke("compose", "--quiet", *SAMPLES).stderr == ""
