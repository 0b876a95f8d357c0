"""Simplifying documents: values keep their bits in every engine, readers take them, twice is once, derivatives are the same."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import strategies as st

import tidu_cli
from tests.control_flow.laws import ORDERS, assert_alike, forward, gradient, hold, longer, run, tolerance_of
from tests.control_flow.strategies import CONDITIONED, SCANS, looping
from tests.graphs.interpret import random_inputs
from tests.graphs.strategies import ANY, Maker, Pool, documents, seeds
from tests.identities.values import same
from tests.runtime.plans.test_plans import assert_plans_agree
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.literals import filled
from tidu_cli.rules.terms import ASSUMPTIONS
from tidu_cli.transforms.linking.rename import bind_constants
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.rewriting import simplify


def _noise(pool: Pool) -> object:
    """What may be simplified, of any value."""
    x = pool.pick()
    if x is None:
        return None
    t, b, apply, full = x.type, x.bound, pool.apply, pool.sketch.full
    ways = {
        "one": lambda: apply("mul", x, full(1, t), bound=b),
        "zero": lambda: apply("sub", x, full(0, t), bound=b),
        "plus zero": lambda: apply("add", x, full(0, t), bound=b),
        "minus one": lambda: apply("mul", x, full(-1, t), bound=b),
        "neg": lambda: apply("neg", apply("neg", x, bound=b), bound=b),
        "less": lambda: apply("add", x, apply("neg", x, bound=b), bound=2 * b),
        "half": lambda: apply("neg", apply("mul", x, full(0.5, t), bound=b), bound=b),
        "power": lambda: apply("integer_pow", x, y=1, bound=b),
        "flat": lambda: apply("reshape", apply("reshape", x, new_sizes=(t.size,), bound=b), new_sizes=t.shape, bound=b),
        "turned": lambda: apply(
            "mul", apply("transpose", x, permutation=[*range(t.rank)][::-1], bound=b), full(1, _turned(t)), bound=b
        ),
        "repeated": lambda: (
            apply(
                "mul",
                apply("broadcast_in_dim", x, shape=(2, *t.shape), broadcast_dimensions=[*range(1, t.rank + 1)], bound=b),
                full(1, t.with_shape((2, *t.shape))),
                bound=b,
            )
            if t.rank < 2
            else None
        ),
        "joined": lambda: apply("concatenate", x, dimension=0, bound=b) if t.rank else None,
    }
    return ways[pool.draw(st.sampled_from(sorted(ways)))]()


def _turned(type_: object) -> object:
    return type_.with_shape(type_.shape[::-1])


NOISY: tuple[Maker, ...] = (*ANY, *[_noise] * 15)
SHAPES = ((), (3,), (4, 40), (17, 9))
"""Large enough for sums to round by how operands lie in memory."""
GRANTED = [(), *[(a,) for a in ASSUMPTIONS], ASSUMPTIONS]


@longer
def test_values_stay_bit_for_bit_in_every_engine(times: int) -> None:
    def law(doc: Document, seed: int) -> None:
        at = random_inputs(doc, seed)
        for derived in (doc, forward(doc), gradient(doc)):
            single = materialize(derived)
            simplified = simplify(single)
            at = random_inputs(single, seed)
            one, other = run(simplified, at), run(single, at)
            assert list(one) == list(other)
            assert all(same(one[k], x) for k, x in other.items())
            assert_plans_agree(simplified, at)

    hold(60 * times, law, documents(makers=NOISY, shapes=SHAPES, max_nodes=12), seeds)


@longer
def test_what_is_simplified_is_read_and_not_simplified_again(times: int) -> None:
    def law(doc: Document) -> None:
        for derived, granted in product((doc, forward(doc), gradient(doc)), GRANTED):
            single = materialize(derived)
            simplified = simplify(single, granted)
            assert [(i.key, i.type) for i in simplified.head.inputs] == [(i.key, i.type) for i in single.head.inputs]
            assert [(o.key, o.type) for o in simplified.head.outputs] == [(o.key, o.type) for o in single.head.outputs]
            text = format_document(simplified, "json")
            read, _ = parse_document(text, "-")
            assert format_document(simplify(materialize(read), granted), "json") == text
            assert format_document(simplify(single, granted), "json") == text

    hold(30 * times, law, documents(makers=NOISY, max_nodes=12), check=12)


@longer
def test_derivatives_of_what_is_simplified_are_the_same(times: int) -> None:
    def law(doc: Document, seed: int) -> None:
        single = materialize(doc)
        for order in ORDERS.values():
            derived = order(single)
            at = random_inputs(derived, seed)
            for granted in GRANTED:
                assert_alike(run(order(simplify(single, granted)), at), run(derived, at), tolerance_of(doc))

    hold(20 * times, law, documents(makers=NOISY, max_graphs=1), seeds)


@longer
def test_a_gradient_that_begins_with_a_constant_is_differentiated_again(times: int) -> None:
    def law(doc: Document, seed: int) -> None:
        derived = gradient(doc)
        cotangents = [i for i in derived.free_inputs if i.key.path]
        single = materialize(bind_constants(derived, {i.key: filled(i.type, 1) for i in cotangents}))
        for order in (forward, gradient):
            again, of_simplified = order(single), order(simplify(single))
            at = random_inputs(again, seed)
            assert_alike(run(of_simplified, at), run(again, at), 100 * tolerance_of(doc))
            parse_document(format_document(of_simplified, "json"), "-")

    hold(20 * times, law, documents(makers=NOISY, max_graphs=1), seeds)


@longer
@pytest.mark.parametrize("order", ORDERS)
def test_loops_and_branches_keep_their_values(order: str, times: int) -> None:
    def law(doc: Document, seed: int) -> None:
        single = materialize(ORDERS[order](doc))
        simplified, at = simplify(single), random_inputs(single, seed)
        one, other = run(simplified, at), run(single, at)
        assert all(same(one[k], x) for k, x in other.items())
        text = format_document(simplified, "json")
        read, _ = parse_document(text, "-")
        assert format_document(simplify(materialize(read)), "json") == text

    hold(20 * times, law, looping(nested=SCANS if "reverse" in order or order == "vjp" else CONDITIONED), seeds, check=10)


def test_what_counts_as_the_same() -> None:
    assert not same(np.array([0.0]), np.array([-0.0]))
    assert not same(np.array([np.nan]), np.array([0.0]))
    assert same(np.array([np.nan]), -np.array([np.nan]))


def test_padding_on_one_side_that_is_taken_off_is_gone() -> None:
    for low, high in ((0, 1), (2, 0)):
        document = tidu_cli.trace(lambda x, low=low, high=high: np.pad(x, (low, high))[low : low + 3] * 2, "f64[3]")
        assert "pad" in {case.op for case, _ in document.head.nodes()}
        assert {case.op for case, _ in simplify(document).head.nodes()}.isdisjoint({"pad", "slice"})
