"""resolve: linking documents, composing graphs, and what cannot be linked."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.graphs.interpret import evaluate
from tests.graphs.sketch import Sketch, document, function, key, listing, names, op, ports, structure
from tidu_cli.errors import TransformError, TypeRuleError, UnknownNameError
from tidu_cli.graph.graph import Detached, Document, Externals, Graph
from tidu_cli.graph.identity import digest_text, digests
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.compose import detach
from tidu_cli.transforms.linking.resolve import dangling, renamed, resolve
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

X = key("x")
sin, cos, exp, tanh, dot_general = map(op, ("sin", "cos", "exp", "tanh", "dot_general"))


def raises(error: type[Exception], message: str) -> object:
    return pytest.raises(error, match=f"^{re.escape(message)}$")


def inner_and_outer() -> tuple[Document, Document]:
    """f(x) = sin(x) x, and g(t, x) = exp(t) + x."""
    f = function("f", {"x": "f64[]"}, lambda x: {"s": sin(x) * x})
    g = function("g", {"t": "f64[]", "x": "f64[]"}, lambda t, x: {"z": exp(t) + x})
    return f, g


# Bindings


@pytest.mark.parametrize("outer_first", [False, True])
def test_derivatives_of_a_composition_are_those_of_the_graph_written_in_one(outer_first: bool) -> None:
    f, g = inner_and_outer()
    composed = resolve([g, f] if outer_first else [f, g], bind=[(key("t"), key("s"))])
    assert names(composed) == ["f", "g"]
    by_hand = function("g", {"x": "f64[]"}, lambda x: {"z": exp(sin(x) * x) + x})
    at = {X: 0.7, key("x@1"): 1.3, key("x@2"): -0.4, key("z@-1"): 2.0, key("x@-1@-2"): 0.9}
    pair = [composed, by_hand]
    for step in (lambda d: linearize(d, [X]), transpose, lambda d: linearize(d, [X]), transpose):
        pair = [step(d) for d in pair]
        ours, theirs = (evaluate(d, at) for d in pair)
        assert ours == theirs
        assert evaluate(materialize(pair[0]), at) == theirs
        assert [str(i.key) for i in materialize(pair[0]).head.inputs] == [str(i.key) for i in materialize(pair[1]).head.inputs]


def test_two_bindings_in_a_row() -> None:
    f, g = inner_and_outer()
    h = function("h", {"u": "f64[]"}, lambda u: {"w": tanh(u) * u})
    composed = resolve([h, g, f], bind=[(key("u"), key("z")), (key("t"), key("s"))])
    assert names(composed) == ["f", "g", "h"]
    x = 0.7
    z = np.exp(np.sin(x) * x) + x
    dz = np.exp(np.sin(x) * x) * (np.cos(x) * x + np.sin(x)) + 1
    expected = (np.tanh(z) + z / np.cosh(z) ** 2) * dz
    back = transpose(linearize(composed, [X]))
    assert evaluate(back, {X: x, key("w@-1"): 1.0})[key("x@-1")] == pytest.approx(expected, rel=1e-13)


def test_binding_in_two_steps_is_binding_at_once() -> None:
    f, g = inner_and_outer()
    h = function("h", {"u": "f64[]"}, lambda u: {"w": tanh(u) * u})
    first = resolve([f, g], bind=[(key("t"), key("s"))])
    again = resolve([first, h], bind=[(key("u"), key("z"))])
    assert structure(again) == structure(resolve([f, g, h], bind=[(key("t"), key("s")), (key("u"), key("z"))]))


def test_the_same_binding_in_two_documents_is_one() -> None:
    f, g = inner_and_outer()
    composed = resolve([f, g], bind=[(key("t"), key("s"))])
    derived = linearize(composed, [X])
    assert structure(resolve([composed, derived])) == structure(derived)
    assert structure(resolve([derived, f, g])) == structure(derived)


def test_binding_to_an_output_that_is_an_input_or_a_value_of_another_graph() -> None:
    f, g = inner_and_outer()
    same = function("f", {"x": "f64[]"}, lambda x: {"s": x})
    composed = resolve([same, g], bind=[(key("t"), key("s"))])
    assert evaluate(composed, {X: 0.5})[key("z")] == np.exp(0.5) + 0.5
    passing = Sketch({}, cases=f.cases, number=1)
    argument = passing.builder.refer(0, f.head.n_values - 1)
    forwarded = document(f.head, passing.builder.build("p", [replace(f.head.outputs[0], key=key("r"), value=argument)]))
    composed = resolve([forwarded, g], bind=[(key("t"), key("r"))])
    assert evaluate(composed, {X: 0.5})[key("z")] == np.exp(np.sin(0.5) * 0.5) + 0.5


def test_the_graph_bound_to_is_the_latest_that_has_the_output_and_not_the_input() -> None:
    f = function("f", {"x": "f64[]"}, lambda x: {"y": sin(x)})
    step = function("step", {"y": "f64[]"}, lambda y: {"y": exp(y)})
    composed = resolve([f, step], bind=[(key("y"), key("y"))])
    assert evaluate(composed, {X: 0.5})[key("y")] == np.exp(np.sin(0.5))


def test_bindings_that_cannot_be() -> None:
    f, g = inner_and_outer()
    back = function("back", {"z": "f64[]"}, lambda z: {"x": -z})
    with raises(TransformError, "graphs 'f', 'g', 'back' depend on one another in a cycle; check the bindings"):
        resolve([f, g, back], bind=[(key("t"), key("s")), (key("z"), key("z")), (X, X)])
    vector = function("v", {"x": "f64[2]"}, lambda x: {"s": x})
    with pytest.raises(TransformError, match=r"^cannot bind input 't' of type f64\[\] to a value of graph 'v' of type f64\[2\]$"):
        resolve([vector, function("g", {"t": "f64[]"}, exp)], bind=[(key("t"), key("s"))])
    other = function("k", {"q": "f64[]"}, lambda q: {"s2": cos(q)})
    with raises(TransformError, "input 't' is bound twice, to different values; bind it once"):
        resolve([f, other, g], bind=[(key("t"), key("s")), (key("t"), key("s2"))])
    with raises(UnknownNameError, "no graph has an input 'tt' to bind; did you mean 't'?"):
        resolve([f, g], bind=[(key("tt"), key("s"))])
    with raises(UnknownNameError, "cannot bind 't': no graph has an output 'ss'; did you mean 's'? (outputs: s, z)"):
        resolve([f, g], bind=[(key("t"), key("ss"))])
    with raises(UnknownNameError, "cannot bind 't': only graphs that declare that input have an output 'z'"):
        resolve([f, g], bind=[(key("t"), key("z"))])


def test_a_zero_cannot_be_bound_to() -> None:
    f, g = inner_and_outer()
    null = document(replace(f.head, outputs=(replace(f.head.outputs[0], value=None),)))
    with raises(TransformError, "cannot bind 't' to output 's' of graph 'f': it is zero or detached"):
        resolve([null, g], bind=[(key("t"), key("s"))])


# Merging


def test_equal_graphs_become_one_and_different_ones_of_one_name_get_another() -> None:
    f, g = inner_and_outer()
    again, _ = inner_and_outer()
    assert names(resolve([f, g, again])) == ["f", "g"]
    other = function("f", {"x": "f64[]"}, lambda x: {"s": cos(x) * x})
    third = function("f", {"x": "f64[]"}, lambda x: {"s": cos(x)})
    linked = resolve([f, function("f.2", {"x": "f64[]"}, exp), other, again, third, other])
    assert names(linked) == ["f", "f.2", "f.3", "f.4"]
    assert [*renamed(linked, [f, other, function("f.2", {"x": "f64[]"}, exp)])] == [("f", "f.3"), ("f", "f.4")]
    for k, alone in ((0, f), (2, other), (3, third)):
        assert structure(Document((replace(linked.graphs[k], name="f"),), linked.cases)) == structure(alone)


def test_one_input_has_one_type() -> None:
    f = function("f", {"x": "f64[]"}, sin)
    with raises(TransformError, "input 'x' is f64[] in graph 'f' and f32[2] in graph 'g'; rename one"):
        resolve([f, function("g", {"x": "f32[2]"}, sin)])


def test_meta_of_documents_adds_up_and_meta_of_graphs_does_not_tell_them_apart() -> None:
    f, _ = inner_and_outer()
    a = Document((replace(f.head, meta={"by": "a"}),), f.cases, meta={"a": 1, "both": "a"})
    b = Document((replace(f.head, meta={"by": "b"}),), f.cases, meta={"b": 2, "both": "b"})
    linked = resolve([a, b])
    assert linked.meta == {"a": 1, "both": "b", "b": 2}
    assert [g.meta for g in linked.graphs] == [{"by": "a"}]


# Detached values


def test_what_no_document_defines_stays_detached_and_is_named() -> None:
    f, _ = inner_and_outer()
    forward = linearize(f, [X])
    loose = detach(forward, 1)
    assert ports(loose.head)[0] == ["x@1"]
    assert structure(resolve([loose])) == structure(loose)
    by_hand = {digest_text(d) for d in digests(f)[0]}
    reported = dict(dangling(loose))
    assert set(reported) <= by_hand
    assert set(reported.values()) == {"f@1.residual", "f@1"}
    assert list(dangling(resolve([f, loose]))) == []


def test_detaching_twice_changes_nothing_and_detaching_part_by_part_comes_together() -> None:
    f, _ = inner_and_outer()
    second = linearize(transpose(linearize(f, [X])), [X])
    loose = detach(second, 1)
    assert structure(detach(loose, 0)) == structure(loose)
    parts = [detach(second, k) for k in range(1, len(second.graphs))]
    at = {X: 0.3, key("s@-1"): 2.0, key("x@2"): 0.7}
    for order in ([f, *parts], [*reversed(parts), f], [second, *parts], [*parts, second]):
        linked = resolve(order)
        assert sorted(names(linked)) == sorted(names(second))
        assert evaluate(linked, at, [key("x@-1@2")]) == evaluate(second, at)


def test_a_graph_and_its_detached_copy_are_one_where_a_value_is_defined_twice() -> None:
    f = function("f", {"x": "f64[]"}, lambda x: {"y": exp(x) + exp(x) * x})
    forward = linearize(f, [X])
    assert [r for r in forward.head.external if r[1] in (1, 2)] == [(0, 1), (0, 2)], "the linear graph reads both copies of exp x"
    assert structure(resolve([forward, detach(forward, 1)])) == structure(forward)
    other = function("f", {"x": "f64[]"}, lambda x: {"y": exp(x) + exp(x) * exp(x)})
    with raises(TransformError, "two different graphs are named 'f@1'; rename one of them with rename(document, graphs=...)"):
        resolve([forward, replace(detach(linearize(other, [X]), 1), passes={})])


@pytest.mark.parametrize("loose_first", [False, True])
def test_a_part_that_defines_a_value_it_reads_detached_is_linked_all_the_same(loose_first: bool) -> None:
    # The residual graph reads f's cos x, by digest, and holds a cos x of its own, from the rule of sin.
    f = function("f", {"x": "f64[]"}, lambda x: sin(x) + sin(cos(x)))
    forward = linearize(f, [X])
    residual = forward.graphs[1]
    assert listing(residual)[0] == "cos([0,0])" and (0, 2) in residual.external
    loose = detach(forward, 1)
    linked = resolve([loose, f] if loose_first else [f, loose])
    assert not linked.detached
    at = {X: 0.7, key("x@1"): 1.0}
    assert evaluate(linked, at, [key("y@1")]) == evaluate(forward, at)
    assert not materialize(linked, outputs=[key("y@1")]).detached
    # Alone, it keeps that reference, and its place.
    assert structure(resolve([loose])) == structure(loose)
    assert names(resolve([loose, function("g", {"other": "f64[]"}, exp)])) == [*names(loose), "g"]


def reader(name: str, digest: bytes, *, makes: str) -> Document:
    """A graph that computes `makes`(x) and multiplies it by the detached value of that digest."""
    s = Sketch({"x": "f64[]"})
    made = s.apply(makes, s.inputs[0])
    argument = s.builder.refer(Externals.DETACHED, 0)
    code = s.builder.cases.intern(s.primitives.case("mul", s.primitives.parse_attrs("mul", {}), None, [made.type] * 2))
    s.builder.append(code, [made.id, argument])
    graph = s.builder.build(name, [s.output(f"{name}y", made)])
    return Document((graph,), graph.cases, (Detached(digest_text(digest), made.type),))


def test_parts_that_read_one_another_are_linked_where_that_is_possible() -> None:
    both = function("both", {"x": "f64[]"}, lambda x: {"s": sin(x), "c": cos(x)})
    _, sine, cosine = digests(both)[0]
    a, b = reader("a", cosine, makes="sin"), reader("b", sine, makes="cos")
    for order in ([a, b, both], [both, b, a], [b, a, both]):
        linked = resolve(order)
        assert not linked.detached
        assert names(linked)[0] == "both"
    # Without a third document one of them goes first, and its reference stays.
    alone = resolve([a, b])
    assert names(alone) == ["a", "b"]
    assert [name for _, name in dangling(alone)] == ["a"]


def test_a_detached_type_that_turns_out_otherwise_is_an_error() -> None:
    f = function("f", {"x": "f64[2]"}, sin)
    wrong = reader("a", digests(f)[0][1], makes="exp")
    g = replace(wrong.head, inputs=(replace(wrong.head.inputs[0], key=key("other")),))
    with pytest.raises(TypeRuleError, match=r"^graph 'a', node 1 \(mul\): type mismatch: input 0 is f64\[\], input 1 is f64\[2\]"):
        resolve([f, Document((g,), wrong.cases, wrong.detached)])


def test_one_detached_value_has_one_type() -> None:
    digest = digests(function("f", {"x": "f64[]"}, sin))[0][1]
    a, b = reader("a", digest, makes="exp"), reader("b", digest, makes="cos")
    b = replace(b, detached=(replace(b.detached[0], type=replace(b.detached[0].type, dtype="f32")),))
    message = f"the detached value {digest_text(digest)} is read as f64[] and as f32[]"
    with raises(TransformError, message):
        resolve([a, b])


def test_the_order_of_documents_does_not_matter() -> None:
    f, g = inner_and_outer()
    composed = resolve([f, g], bind=[(key("t"), key("s"))])
    forward = linearize(composed, [X])
    back = transpose(forward)
    parts = [composed, detach(forward, 2), detach(linearize(back, [X]), len(back.graphs))]
    second = detach(back, 2)
    from itertools import permutations

    seen = set()
    for order in permutations([parts[0], second, parts[2]]):
        linked = resolve(order)
        at = {X: 0.3, key("z@-1"): 2.0, key("x@2"): 0.7}
        seen.add(float(evaluate(linked, at, [key("x@-1@2")])[key("x@-1@2")]))
        assert set(names(linked)) == set(names(linearize(back, [X])))
    assert len(seen) == 1


def test_graphs_within_a_document_keep_their_order() -> None:
    s = [Sketch({"x": "f64[]"}) for _ in range(1)]
    cases = s[0].builder.cases
    graphs: list[Graph] = []
    for k, name in enumerate("dbca"):
        sketch = Sketch({"x": "f64[]"}, cases=cases, number=k)
        graphs.append(sketch.build(name, {name: sin(sketch.inputs[0])}))
    assert names(resolve([document(*graphs)])) == list("dbca")
