"""The laws of the transforms, on random documents."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.graphs.interpret import difference_quotient, evaluate, free_inputs, inner, random_inputs, random_value
from tests.graphs.sketch import document, structure
from tests.graphs.strategies import ANY, ELEMENTWISE, SMOOTH, documents, seeds
from tests.tiers import examples
from tidu_cli.graph.graph import Document
from tidu_cli.graph.identity import digests
from tidu_cli.graph.keys import Key
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.compose import detach
from tidu_cli.transforms.linking.resolve import resolve
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

law = settings(
    max_examples=examples(80, check=60),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


def wrt_of(doc: Document, seed: int) -> list[Key]:
    """Some of the inputs that carry tangents, in any order."""
    keys = [k for k, t in free_inputs(doc).items() if t.inexact]
    random.Random(seed).shuffle(keys)
    return keys[: 1 + seed % len(keys)]


def directions(doc: Document, seed: int) -> dict[Key, object]:
    """Random values for the inputs of the head."""
    rng = np.random.default_rng([seed, 7])
    return {i.key: random_value(i.type, rng) for i in doc.head.inputs}


def close(a: float, b: float, *parts: object, tolerance: float = 1e-9) -> bool:
    """Whether a and b agree relative to the magnitudes that made them."""
    scale = 1 + abs(a) + abs(b) + sum(float(np.sum(np.abs(p))) for p in parts)
    return abs(a - b) <= tolerance * scale


def same(a: dict[Key, object], b: dict[Key, object]) -> bool:
    return list(a) == list(b) and all(np.asarray(a[k]).tobytes() == np.asarray(b[k]).tobytes() for k in a)


def nearly(a: object, b: object, tolerance: float) -> bool:
    return bool(np.all(np.abs(np.subtract(a, b)) <= tolerance * (1 + np.max(np.abs(b), initial=0))))


@law
@given(documents(makers=SMOOTH), seeds)
def test_jvp_is_the_directional_derivative(doc: Document, seed: int) -> None:
    at, wrt = random_inputs(doc, seed), wrt_of(doc, seed)
    linear = linearize(doc, wrt)
    v = directions(linear, seed)
    expected = difference_quotient(doc, at, {k: v[k.tangent(1)] for k in wrt})
    tangents = evaluate(linear, at | v)
    assert list(tangents) == [k.tangent(1) for k in expected]
    for k, quotient in expected.items():
        assert nearly(tangents[k.tangent(1)], quotient, 1e-6), k


@law
@given(documents(makers=ANY), seeds)
def test_linearize_is_linear_over_the_reals(doc: Document, seed: int) -> None:
    at = random_inputs(doc, seed)
    linear = linearize(doc, wrt_of(doc, seed))
    u, v = directions(linear, seed), directions(linear, seed + 1)
    ju, jv = evaluate(linear, at | u), evaluate(linear, at | v)
    for k, x in evaluate(linear, at | {k: 2.5 * u[k] - 0.75 * v[k] for k in u}).items():
        assert nearly(x, 2.5 * ju[k] - 0.75 * jv[k], 1e-11)


@law
@given(documents(makers=ANY), seeds)
def test_transpose_is_the_adjoint(doc: Document, seed: int) -> None:
    at = random_inputs(doc, seed)
    linear = linearize(doc, wrt_of(doc, seed))
    transposed = transpose(linear)
    v, w = directions(linear, seed), directions(transposed, seed)
    jv, jtw = evaluate(linear, at | v), evaluate(transposed, at | w)
    live = [o.key for o in linear.head.outputs if o.value is not None]
    assert list(w) == [o.key.dual() for o in linear.head.outputs], "of zeros, too"
    assert list(jtw) == [k.dual() for k in v]
    left = sum(inner(w[k.dual()], jv[k]) for k in live)
    right = sum(inner(v[k], jtw[k.dual()]) for k in v)
    assert close(left, right, *(jv[k] for k in live), *jtw.values())


@law
@given(documents(makers=ANY), seeds)
def test_transposing_twice_gives_the_same_map(doc: Document, seed: int) -> None:
    at = random_inputs(doc, seed)
    linear = linearize(doc, wrt_of(doc, seed))
    twice = transpose(transpose(linear))
    assert twice.head.name == linear.head.name
    jv = evaluate(linear, at | directions(linear, seed))
    assert twice.head.inputs == linear.head.inputs
    tangents = evaluate(twice, at | directions(linear, seed))
    assert list(tangents) == list(jv)
    for k, x in jv.items():
        assert nearly(np.asarray(tangents[k], complex), np.asarray(x, complex), 1e-10)  # bools have no difference


@law
@given(documents(makers=ELEMENTWISE, dtypes=("f64",), bindings=False), seeds)
def test_transposing_a_real_graph_twice_gives_as_many_nodes_of_each_op(doc: Document, seed: int) -> None:
    linear = linearize(doc, wrt_of(doc, seed))
    twice = transpose(transpose(linear))

    def census(d: Document) -> list[list[str]]:
        return [sorted(g.case(n).op for n in range(g.n_nodes)) for g in d.graphs]

    assert census(twice) == census(linear)


@law
@given(documents(makers=ANY), seeds)
def test_materialize_keeps_every_value_bit_for_bit_and_is_idempotent(doc: Document, seed: int) -> None:
    linear = linearize(doc, wrt_of(doc, seed))
    for d in (doc, linear, transpose(linear)):
        given_values = random_inputs(d, seed)
        single = materialize(d)
        assert len(single.graphs) == 1 and not single.bindings and not single.head.external
        assert same(evaluate(single, given_values), evaluate(d, given_values))
        declared = list(free_inputs(d))
        positions = [declared.index(i.key) for i in single.head.inputs]
        assert positions == sorted(positions)
        assert structure(materialize(single)) == structure(single)
        (values,) = digests(single)
        assert len(set(values)) == len(values)


@law
@given(documents(makers=ANY), seeds)
def test_materialize_declares_the_inputs_that_are_free_or_just_those_that_are_needed(doc: Document, seed: int) -> None:
    whole, needed = materialize(doc).head, materialize(doc, needed_inputs=True).head
    assert {i.key: i.type for i in whole.inputs} == free_inputs(doc)
    assert [i for i in whole.inputs if i in needed.inputs] == list(needed.inputs)
    assert whole.outputs == materialize(document(whole)).head.outputs
    for single in (whole, needed):
        read = {a for a in single.args if a >= 0} | {o.value for o in single.outputs}
        assert set(range(len(single.inputs), single.n_values)) <= read, "a dead node was kept"
    assert set(range(len(needed.inputs))) <= read


@law
@given(documents(makers=SMOOTH, max_nodes=5, max_graphs=2), seeds)
def test_second_derivatives_agree_in_all_four_modes_and_are_symmetric(doc: Document, seed: int) -> None:
    at, wrt = random_inputs(doc, seed), wrt_of(doc, seed)
    rng = np.random.default_rng(seed)
    types = free_inputs(doc)
    u, v = ({k: random_value(types[k], rng) for k in wrt} for _ in range(2))
    forward = linearize(doc, wrt)
    reverse = transpose(forward)
    w = {i.key: random_value(i.type, rng) for i in reverse.head.inputs}
    in_pass_1 = at | {k.tangent(1): u[k] for k in wrt}

    def fof(a: dict[Key, object], b: dict[Key, object]) -> float:
        twice = linearize(forward, wrt)
        tangents = evaluate(twice, at | {k.tangent(1): a[k] for k in wrt} | {k.tangent(2): b[k] for k in wrt})
        return sum(inner(w[Key(k.name, (-1,))], x) for k, x in tangents.items() if Key(k.name, (-1,)) in w)

    def paired(cotangents: dict[Key, object], step: int) -> float:
        return sum(inner(v[k], cotangents[Key(k.name, (step,))]) for k in wrt)

    values = [fof(u, v), fof(v, u)]
    reverse_of_forward = transpose(linearize(forward, wrt))
    seeds_2 = {i.key: w[Key(i.key.name, (-1,))] for i in reverse_of_forward.head.inputs}
    values.append(paired(evaluate(reverse_of_forward, in_pass_1 | seeds_2), -2))
    forward_of_reverse = linearize(reverse, wrt)
    cotangents = evaluate(forward_of_reverse, at | w | {k.tangent(2): u[k] for k in wrt})
    values.append(sum(inner(v[k], cotangents[Key(k.name, (-1, 2))]) for k in wrt))
    reverse_of_reverse = transpose(forward_of_reverse)
    seeds_2 = {i.key: u[Key(i.key.name)] for i in reverse_of_reverse.head.inputs}
    values.append(paired(evaluate(reverse_of_reverse, at | w | seeds_2), -2))
    for value in values[1:]:
        assert close(value, values[0], *cotangents.values(), tolerance=1e-8), values


@law
@given(documents(makers=ANY, bindings=False), seeds)
def test_linking_detached_parts_in_any_order_keeps_every_value(doc: Document, seed: int) -> None:
    given_values = random_inputs(doc, seed)
    parts = [detach(Document(doc.graphs[: k + 1], doc.cases), k) for k in range(len(doc.graphs))]
    assert all(len(part.graphs) == 1 for part in parts)
    random.Random(seed).shuffle(parts)
    linked = resolve(parts)
    assert not linked.detached
    outputs = [o.key for g in doc.graphs for o in g.outputs]
    assert same(evaluate(linked, given_values, outputs), evaluate(doc, given_values, outputs))
    together = dict(zip((g.name for g in linked.graphs), digests(linked), strict=True))
    assert together == dict(zip((g.name for g in doc.graphs), digests(doc), strict=True))


@law
@given(documents(makers=ANY), seeds, st.booleans())
def test_linking_a_detached_derivative_gives_its_values(doc: Document, seed: int, document_first: bool) -> None:
    linear = linearize(doc, wrt_of(doc, seed))
    loose = detach(linear, len(doc.graphs))
    linked = resolve([doc, loose] if document_first else [loose, doc])
    assert not linked.detached
    at = random_inputs(linear, seed)
    outputs = [o.key for o in linear.head.outputs]
    assert same(evaluate(linked, at, outputs), evaluate(linear, at, outputs))


@law
@given(documents(makers=ANY), seeds)
def test_detached_and_linked_documents_transpose_alike(doc: Document, seed: int) -> None:
    linear = linearize(doc, wrt_of(doc, seed))
    linked, n = transpose(linear), len(doc.graphs)
    loose = transpose(detach(linear, n))
    assert digests(loose) == digests(detach(linked, n)) == digests(linked)[n:]
    assert [g.name for g in loose.graphs] == [g.name for g in linked.graphs[n:]]
    again = resolve([doc, loose])
    at = random_inputs(linked, seed)
    outputs = [o.key for o in linked.head.outputs]
    assert same(evaluate(again, at, outputs), evaluate(linked, at, outputs))
    assert same(evaluate(resolve([doc, detach(linked, n)]), at, outputs), evaluate(linked, at, outputs))


@law
@given(documents(makers=ANY), seeds)
def test_resolve_of_a_document_and_its_parts_changes_nothing(doc: Document, seed: int) -> None:
    linear = linearize(doc, wrt_of(doc, seed))
    assert structure(resolve([linear])) == structure(linear)
    assert structure(resolve([doc, linear])) == structure(linear)
    assert structure(resolve([linear, detach(linear, len(doc.graphs))])) == structure(linear)


@law
@given(documents(makers=ANY), seeds)
def test_linearize_refers_and_never_copies(doc: Document, seed: int) -> None:
    linear = linearize(doc, wrt_of(doc, seed))
    assert linear.graphs[: len(doc.graphs)] == doc.graphs
    *residual, head = linear.graphs[len(doc.graphs) :]
    assert all(head.case(n).mask is not None and any(head.case(n).mask) for n in range(head.n_nodes))
    for graph in residual:
        assert graph.n_nodes and not graph.inputs and not graph.outputs and graph.linear is None
        assert all(graph.case(n).mask is None for n in range(graph.n_nodes))
        assert graph.name == f"{head.name}.residual"
    # No node is dead: each is read within its graph, by the head, or is an output.
    live = {a for a in head.args if a >= 0} | {o.value for o in head.outputs if o.value is not None}
    assert set(range(len(head.inputs), head.n_values)) <= live
    if residual:
        read = {v for g, v in head.external if g == len(linear.graphs) - 2} | {a for a in residual[0].args if a >= 0}
        assert set(range(residual[0].n_values)) <= read


@pytest.mark.parametrize("order", [1, 2, 3])
@settings(max_examples=examples(25), suppress_health_check=list(HealthCheck))
@given(doc=documents(makers=SMOOTH, max_nodes=4, max_graphs=2), seed=seeds)
def test_each_order_is_the_derivative_of_the_one_before(order: int, doc: Document, seed: int) -> None:
    """Reverse, then forward and reverse in turn: the next JVP is the difference quotient of what there is."""
    wrt = wrt_of(doc, seed)
    current = doc
    for n in range(order):
        current = linearize(current, wrt)
        if n % 2 == 0:
            current = transpose(current)
    assume(any(o.value is not None for o in current.head.outputs))
    pass_number = current.next_pass()
    following = linearize(current, wrt)
    at, v = random_inputs(current, seed), directions(following, seed)
    single = materialize(current)
    expected = difference_quotient(single, at, {k: v[k.tangent(pass_number)] for k in wrt})
    tangents = evaluate(following, at | v)
    for k, quotient in expected.items():
        assert nearly(tangents[k.tangent(pass_number)], quotient, 1e-5), k
