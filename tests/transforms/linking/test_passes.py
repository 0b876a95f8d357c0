"""Passes are calls: a pass number stands for one call of linearize, and documents in which it is two are not linked."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

import tidu_cli
from tests.graphs.interpret import evaluate
from tests.graphs.sketch import function, key, names, op, structure
from tests.graphs.strategies import ANY, documents, seeds
from tests.tiers import examples
from tests.transforms.large.test_bulk import large_from
from tests.transforms.laws.test_laws import law, wrt_of
from tidu_cli.checking.comparison import compare
from tidu_cli.checking.exact_comparison import structural_differences
from tidu_cli.checking.static import findings
from tidu_cli.errors import TransformError, UnknownNameError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Binding, Document
from tidu_cli.graph.identity import digest_text, digests
from tidu_cli.graph.keys import MAX_PASS
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.compose import compose, detach
from tidu_cli.transforms.linking.passes import renumber
from tidu_cli.transforms.linking.rename import Renaming, rename
from tidu_cli.transforms.linking.resolve import resolve
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.matrix import matrix
from tidu_cli.transforms.transpose import transpose

X, W = key("x"), key("w")
sin, cos = map(op, ("sin", "cos"))


def f_and_h() -> tuple[Document, Document]:
    """f(x) = x², and h(x, w) = w x."""
    f = function("f", {"x": "f64[]"}, lambda x: {"y": x * x})
    return f, function("h", {"x": "f64[]", "w": "f64[]"}, lambda x, w: {"z": w * x})


def identity(doc: Document, number: int = 1) -> str:
    return doc.passes[number]


def refused(message: str) -> object:
    return pytest.raises(TransformError, match=re.escape(message))


# Two calls under one number


@pytest.mark.parametrize("h_first", [True, False])
def test_tangents_of_two_calls_are_not_mixed_up(h_first: bool) -> None:
    """Of w = y@1 = 2 x x@1 the derivative of w x by x is w: at x = 3 it is 6 for x@1 = 1, and not linear in both."""
    f, h = f_and_h()
    f1, h1 = linearize(f, [X]), linearize(h, [X])
    pair = [h1, f1] if h_first else [f1, h1]
    with refused("pass 1 is one call of linearize in document 1") as raised:
        resolve(pair, bind=[(W, key("y@1"))])
    for part in ("graph 'h@1'", "graph 'f@1'", "renumber(document, {1: 2})", "pass_number=2", "one_pass=[1]"):
        assert part in str(raised.value)
    with refused("pass 1 is one call"):
        tidu_cli.resolve(*pair, bind={"w": "y@1"})
    with refused("a.json (graph 'f@1') and another in b.json (graph 'h@1')"):
        compose([f1, h1], names=["a.json", "b.json"])
    third = linearize(function("g", {"x": "f64[]"}, lambda x: {"u": sin(x)}), [X])
    with refused("document 1 (graph 'f@1') and another in document 2 (graph 'h@1')"):
        resolve([f1, h1, third])


@pytest.mark.parametrize("way", ["renumber f", "renumber h", "linearize f"])
def test_each_way_out_gives_the_derivative(way: str) -> None:
    f, h = f_and_h()
    f1, h1 = linearize(f, [X]), linearize(h, [X])
    if way == "linearize f":
        f1 = linearize(f, [X], pass_number=2)
    elif way == "renumber f":
        f1 = renumber(f1, {1: 2})
    else:
        h1 = renumber(h1, {1: 2})
    p, q = ("1", "2") if way != "renumber h" else ("2", "1")  # of h, of f
    linked = resolve([h1, f1], bind=[(W, key(f"y@{q}"))])
    assert linked.passes.keys() == {1, 2}
    for direction in (1.0, 2.0):
        at = {X: 3.0, key(f"x@{p}"): direction, key(f"x@{q}"): 1.0}
        assert evaluate(linked, at, [key(f"z@{p}")]) == {key(f"z@{p}"): 6 * direction}


def test_two_outputs_linearized_apart_are_one_pass_where_one_says_so() -> None:
    f = function("f", {"x": "f64[]"}, lambda x: {"a": x * x, "b": sin(x)})
    a, b = (linearize(f, [X], outputs=[key(k)]) for k in "ab")
    with refused("pass 1 is one call"):
        resolve([a, b])
    linked = resolve([a, b], one_pass=[1])
    assert names(linked) == ["f", "f@1", "f@1.residual", "f@1.2"]
    whole = linearize(f, [X])
    at, outputs = {X: 0.7, key("x@1"): 1.3}, [key("a@1"), key("b@1")]
    assert evaluate(linked, at, outputs) == evaluate(whole, at, outputs)
    other_way = resolve([b, a], one_pass=[1])
    assert evaluate(other_way, at, outputs) == evaluate(whole, at, outputs)
    assert identity(linked) == identity(other_way)
    assert identity(linked) not in (identity(a), identity(b), identity(whole))
    assert resolve([a, a], one_pass=[1]).passes == a.passes


def test_bindings_do_not_make_linear_graphs_read_their_own_tangents() -> None:
    """Without identities nobody knows which calls passes are, and with --one-pass they are one: then w depends on x@1."""
    f, h = f_and_h()
    f1, h1 = linearize(f, [X]), linearize(h, [X])
    message = "graph 'h@1' is linear in pass 1, but through bindings it reads values that depend on 'x@1'"
    for pair, one in (([f1, replace(h1, passes={})], ()), ([replace(f1, passes={}), h1], ()), ([f1, h1], (1,))):
        with refused(message):
            resolve(pair, bind=[(W, key("y@1"))], one_pass=one)
    # Tangents of another input of the same pass are no better.
    f2 = rename(f1, Renaming(inputs={"x": "t"}))
    with refused(message.replace("x@1", "t@1")):
        resolve([replace(f2, passes={}), h1], bind=[(W, key("y@1"))])
    # A tangent that another gives is linear, and so is what is bound to a primal value.
    chain = function("g", {"u": "f64[]"}, lambda u: {"z": sin(u)})
    linked = resolve([f1, linearize(chain, [key("u")])], bind=[(key("u"), key("y")), (key("u@1"), key("y@1"))], one_pass=[1])
    at = {X: 0.5, key("x@1"): 1.0}
    assert evaluate(linked, at, [key("z@1")]) == evaluate(linearize(resolve([f, chain], bind=[(key("u"), key("y"))]), [X]), at)


def test_a_document_without_identities_is_linked_with_any_and_takes_theirs() -> None:
    f, h = f_and_h()
    f1, h1 = linearize(f, [X]), linearize(h, [X])
    loose = replace(h1, passes={})
    linked = resolve([loose, f1])
    assert linked.passes == f1.passes
    with refused("pass 1 is one call"):
        resolve([linked, h1])
    assert resolve([loose, loose]).passes == {}


def test_one_pass_is_of_a_pass_that_is_there() -> None:
    f, h = f_and_h()
    with pytest.raises(UnknownNameError, match=r"^no document uses pass 3 \(passes: 1\)$"):
        resolve([linearize(f, [X])], one_pass=[3])
    with pytest.raises(UnknownNameError, match=r"^no document uses pass 1 \(passes: none\)$"):
        compose([f, h], one_pass=[1])


# What an identity tells


def test_what_is_differentiated_makes_the_identity() -> None:
    f = function("f", {"x": "f64[]", "w": "f64[]"}, lambda x, w: {"a": x * w, "b": sin(x)})
    g = function("f", {"x": "f64[]", "w": "f64[]"}, lambda x, w: {"a": x * w, "b": cos(x)})
    swapped = function("f", {"x": "f64[]", "w": "f64[]"}, lambda x, w: {"a": w * x, "b": sin(x)})
    half = {X: TensorType("f32")}
    calls = [
        linearize(f, [X]),
        linearize(g, [X]),
        linearize(swapped, [X]),
        linearize(f, [W]),
        linearize(f, [X, W]),
        linearize(f, [W, X]),
        linearize(f, [X], outputs=[key("a")]),
        linearize(f, [X], outputs=[key("b"), key("a")]),
        linearize(f, [X], tangent_types=half),
        linearize(rename(f, Renaming(inputs={"x": "t"})), [key("t")]),
        linearize(rename(f, Renaming(outputs={"a": "c"})), [X]),
    ]
    assert len({identity(d) for d in calls}) == len(calls)


def test_what_does_not_tell_makes_no_difference() -> None:
    f = function("f", {"x": "f64[]"}, lambda x: {"y": sin(x) * x})
    noted = replace(f, meta={"a": 1}, graphs=(replace(f.graphs[0], meta={"b": 2}, node_meta={0: {"c": 3}}),))
    same = [
        linearize(rename(f, Renaming(graphs={"f": "other"})), [X]),
        linearize(noted, [X]),
        linearize(f, [X], outputs=[key("y")]),
        linearize(f, [X, X]),
        linearize(f, [X], tangent_types={X: TensorType("f64")}),
    ]
    assert {identity(d) for d in same} == {identity(linearize(f, [X]))}
    assert identity(linearize(f, [X], pass_number=7), 7) == identity(linearize(f, [X]))


def test_passes_that_were_there_before_tell() -> None:
    f1 = linearize(function("f", {"x": "f64[]"}, lambda x: {"y": sin(x) * x}), [X])
    other = replace(f1, passes={1: "sha256:" + "00" * 32})
    assert identity(linearize(f1, [X]), 2) != identity(linearize(other, [X]), 2)
    assert linearize(f1, [X]).passes[1] == f1.passes[1]


@law
@given(documents(makers=ANY), seeds)
def test_an_identity_does_not_depend_on_how_a_document_is_written(doc: Document, seed: int) -> None:
    wrt = wrt_of(doc, seed)
    linear = linearize(doc, wrt)
    for format_, listed in (("json", True), ("json", False), ("msgpack", False), ("msgpack", True)):
        again = parse_document(format_document(doc, format_, listed=listed), "again")[0]
        derived = linearize(again, wrt)
        assert derived.passes == linear.passes
        assert parse_document(format_document(derived, format_, listed=listed), "it")[0].passes == linear.passes
    with large_from(0, block=3):
        assert linearize(doc, wrt).passes == linear.passes


@law
@given(documents(makers=ANY), seeds, seeds)
def test_files_of_one_call_are_linked_and_files_of_two_are_not(doc: Document, seed: int, other: int) -> None:
    wrt, another = wrt_of(doc, seed), wrt_of(doc, other)
    one = linearize(doc, wrt)
    assert structure(resolve([one, one])) == structure(one) and resolve([one, one]).passes == one.passes
    assert resolve([one, doc, transpose(one), detach(linearize(doc, wrt), len(doc.graphs))]).passes == one.passes
    calls = [linearize(doc, another), linearize(doc, wrt, outputs=[doc.head.outputs[-1].key])]
    if another == wrt:
        calls.pop(0)
    if len(doc.head.outputs) == 1:
        calls.pop()
    for call in calls:
        with refused("is one call of linearize in document 1"):
            resolve([one, call])
        assert resolve([one, call], one_pass=one.passes).passes.keys() == one.passes.keys()


def test_detached_values_are_in_no_order() -> None:
    f = function("f", {"x": "f64[]", "w": "f64[]"}, lambda x, w: {"y": sin(x) * cos(w)})
    loose = detach(linearize(f, [X, W]), 1)
    assert len(loose.detached) > 1
    turned = [*reversed(range(len(loose.detached)))]

    def moved(graph):
        value = type(graph.external.value)("i", [turned[v] if g == -1 else v for g, v in graph.external])
        return replace(graph, external=replace(graph.external, value=value))

    other = replace(loose, detached=loose.detached[::-1], graphs=tuple(map(moved, loose.graphs)))
    assert structure(resolve([f, other])) == structure(resolve([f, loose]))
    by = [key("x@1")]
    assert linearize(other, by).passes == linearize(loose, by).passes
    with large_from(0, block=3):
        assert linearize(other, by).passes == linearize(loose, by).passes


# Keeping them


def test_every_transform_keeps_the_identities_of_passes_in_use() -> None:
    f = function("f", {"x": "f64[2]"}, lambda x: {"y": sin(x) * x})
    one = linearize(f, [X])
    kept = dict(one.passes)
    backward = transpose(one)
    assert backward.passes == kept and materialize(backward).passes == kept and detach(one, 1).passes == kept
    assert transpose(backward).passes == kept
    assert resolve([one, one]).passes == kept and resolve([f, detach(one, 1)]).passes == kept
    two = linearize(backward, [X])
    assert two.passes.keys() == {1, 2} and two.passes[1] == kept[1]
    assert materialize(two, outputs=[key("y")], needed_inputs=True).passes == {}
    assert matrix(one).passes == {}
    assert rename(one, Renaming(inputs={"x": "t"}, graphs={"f": "g"})).passes == kept
    assert compose([f, one]).document.passes == kept
    assert tidu_cli.grad(function("f", {"x": "f64[]"}, lambda x: {"y": sin(x)}), "x").passes.keys() == {1}


def test_only_an_exact_comparison_tells_identities_apart() -> None:
    one = linearize(f_and_h()[0], [X])
    loose, other = replace(one, passes={}), replace(one, passes={1: "sha256:" + "00" * 32})
    assert compare(one, other).same and compare(one, loose).same
    assert list(structural_differences(one, one)) == []
    assert list(structural_differences(one, other)) == ["pass 1 is another call of linearize in B"]
    assert list(structural_differences(one, loose)) == ["pass 1 has an identity in A only"]
    assert list(structural_differences(loose, one)) == ["pass 1 has an identity in B only"]
    assert [f.text for f in findings(loose, BUILTIN)] == [
        "pass 1 has no identity, so it is linked with any other pass 1; tidu linearize gives one"
    ]
    assert list(findings(one, BUILTIN)) == []


# Other numbers


@settings(law, max_examples=examples(80, check=30))
@given(documents(makers=ANY), seeds)
def test_renumbering_there_and_back_changes_nothing(doc: Document, seed: int) -> None:
    wrt = wrt_of(doc, seed)
    whole = linearize(linearize(doc, wrt), wrt)
    first, second = sorted(whole.used_passes())[-2:]
    there = renumber(whole, {first: second, second: first})
    assert there.passes == {first: whole.passes[second], second: whole.passes[first]}
    assert format_document(renumber(there, {first: second, second: first}), "json") == format_document(whole, "json")
    far = renumber(whole, {first: MAX_PASS})
    assert format_document(renumber(far, {MAX_PASS: first}), "json") == format_document(whole, "json")
    alone = linearize(doc, wrt)
    (number,) = alone.passes
    chosen = linearize(doc, wrt, pass_number=MAX_PASS)
    assert format_document(renumber(alone, {number: MAX_PASS}), "json") == format_document(chosen, "json")


def test_graphs_are_renamed_with_their_pass() -> None:
    f = function("f@1 of mine", {"x": "f64[]"}, lambda x: {"y": sin(x) * x})
    doc = linearize(transpose(linearize(f, [X])), [X])
    base = "f@1 of mine"  # in which no pass is named
    assert names(doc) == [base, f"{base}@1.residual", f"{base}@-1", f"{base}@-1@2.residual", f"{base}@-1@2"]
    renamed = names(renumber(doc, {1: 12, 2: 1}))
    assert renamed == [base, f"{base}@12.residual", f"{base}@-12", f"{base}@-12@1.residual", f"{base}@-12@1"]


def test_bound_tangents_are_renumbered_too() -> None:
    f = function("f", {"x": "f64[]"}, lambda x: {"y": sin(x)})
    t = function("t", {"s": "f64[]"}, lambda s: {"d": s * s})
    doc = resolve([t, linearize(f, [X])], bind=[(key("x@1"), key("d"))])
    there = renumber(doc, {1: 4})
    assert there.bindings == (Binding(key("x@4"), doc.bindings[0].graph, doc.bindings[0].value),)


def test_what_cannot_be_renumbered() -> None:
    f = function("f", {"x": "f64[]"}, lambda x: {"y": sin(x) * x})
    one = linearize(f, [X])
    two = linearize(one, [X])
    with pytest.raises(UnknownNameError, match=r"^pass 3 is not in use \(passes: 1, 2\)$"):
        renumber(two, {3: 4})
    with refused("passes 1 and 2 would both be pass 2; 3 is free"):
        renumber(two, {1: 2})
    named = rename(one, Renaming(graphs={"f": "f@2"}))
    with refused("graphs 'f@2' and 'f@1' would both be named 'f@2'"):
        renumber(named, {1: 2})
    # The digests of detached values hold the passes of what they depend on.
    loose = detach(one, 1)
    assert structure(resolve([f, renumber(loose, {1: 2})])) == structure(linearize(f, [X], pass_number=2))
    deep = detach(two, len(one.graphs))
    with refused("may depend on tangents of pass 1"):
        renumber(deep, {1: 3})
    assert structure(resolve([one, renumber(deep, {2: 3})])) == structure(renumber(two, {2: 3}))


# Digests as keys


def test_a_digest_names_a_value_where_a_key_names_an_output() -> None:
    f = function("f", {"x": "f64[]"}, lambda x: {"y": sin(x) * x})
    inner = digest_text(digests(f)[0][1])
    value, tangent = key(inner), key(inner).tangent(1)
    assert [o.key for o in linearize(f, [X], outputs=[value]).head.outputs] == [tangent]
    at = {X: 0.7, key("x@1"): 1.0}
    by_key = linearize(function("f", {"x": "f64[]"}, lambda x: {"s": sin(x)}), [X])
    assert evaluate(linearize(f, [X], outputs=[value]), at)[tangent] == evaluate(by_key, at)[key("s@1")]
    assert tidu_cli.evaluate(f, {"x": 0.7}, output=[inner, "y"])[inner] == pytest.approx(np.sin(0.7), rel=1e-15)
    g = function("g", {"u": "f64[]"}, lambda u: {"z": cos(u)})
    for pair in ([f, g], [g, f]):
        linked = resolve(pair, bind=[(key("u"), value)])
        assert evaluate(linked, {X: 0.7}, [key("z")])[key("z")] == pytest.approx(np.cos(np.sin(0.7)), rel=1e-15)
    taken = function("h", {"x": "f64[]"}, lambda x: {inner: cos(x)})  # an output that is called so comes first
    assert tidu_cli.evaluate(taken, {"x": 0.0}, output=inner) == {inner: 1.0}


@pytest.mark.parametrize("act", [lambda d, k: linearize(d, [X], outputs=[k]), lambda d, k: materialize(d, outputs=[k])])
def test_digests_that_name_nothing(act: Callable[[Document, object], object]) -> None:
    f = function("f", {"x": "f64[]"}, lambda x: {"y": sin(x) * x})
    absent = "sha256:" + "0a" * 32
    with pytest.raises(UnknownNameError, match=f"^no graph has a value {absent}; info\\(document, digests=True\\) lists"):
        act(f, key(absent))
    with pytest.raises(UnknownNameError, match=r"^no graph has an output 'sha256:0a'; a digest is sha256: and 64 digits"):
        act(f, key("sha256:0a"))
    loose = detach(linearize(f, [X]), 1)
    with pytest.raises(UnknownNameError, match="is detached: nothing here defines it"):
        materialize(loose, outputs=[key(loose.detached[0].digest)])
    g = function("g", {"u": "f64[]"}, lambda u: {"z": cos(u)})
    with pytest.raises(UnknownNameError, match=f"^no graph without an input 'u' has a value {absent}"):
        resolve([f, g], bind=[(key("u"), key(absent))])
    with pytest.raises(UnknownNameError, match=r"^no graph without an input 'x' has a value"):
        resolve([f], bind=[(X, key(digest_text(digests(f)[0][1])))])


def test_each_detached_value_is_asked_for_its_pass() -> None:
    """Of two documents: what the linear graphs of pass 3 read knows no tangent of it, and of what the others read nobody knows."""
    once = renumber(detach(linearize(function("g", {"x": "f64[]"}, lambda x: {"y": cos(x)}), [X]), 1), {1: 3})
    twice = detach(linearize(linearize(function("f", {"x": "f64[]"}, lambda x: {"z": sin(x)}), [X]), [X]), 2)
    assert renumber(once, {3: 8}).passes.keys() == {8}
    with pytest.raises(TransformError, match="which may depend on tangents of pass 3; resolve it"):
        renumber(resolve([once, twice]), {3: 8})
