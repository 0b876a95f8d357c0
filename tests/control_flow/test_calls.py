"""What people call, on loops and branches: shorthands, outputs that are chosen, other tangents, integers, less memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

import tidu_cli as api
from tests.control_flow.laws import assert_alike, hold, longer, run, tolerance_of, wrt
from tests.control_flow.strategies import CONDITIONED, looping
from tests.control_flow.unrolled import unrolled
from tests.graphs.interpret import free_inputs, random_inputs
from tests.graphs.strategies import seeds
from tests.transforms.large.test_recompute import policies
from tests.transforms.laws.test_laws import same
from tidu_cli.errors import MissingRuleError, TransformError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.transforms.checkpoints import Segments
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.matrix import matrix
from tidu_cli.transforms.recompute import recompute
from tidu_cli.transforms.transpose import transpose


def pair(doc: Document, plain: Document, seed: int) -> None:
    at = random_inputs(doc, seed)
    assert free_inputs(doc) == free_inputs(plain)
    assert_alike(run(doc, at), run(plain, at), tolerance_of(doc))


@longer
def test_outputs_that_are_chosen(times: int) -> None:
    def law(doc: Document, seed: int) -> None:
        chosen = [o.key for n, o in enumerate(doc.head.outputs) if seed >> n & 1] or [doc.head.outputs[0].key]
        linear, plain = (linearize(d, wrt(doc)[seed % 2 :] or wrt(doc), outputs=chosen) for d in (doc, unrolled(doc)))
        pair(linear, plain, seed)
        pair(transpose(linear), transpose(plain), seed)

    hold(25 * times, law, looping(steps=3), seeds)


@longer
def test_matrices(times: int) -> None:
    def law(doc: Document, seed: int) -> None:
        for turned in (False, True):
            documents = [transpose(d) if turned else d for d in (linearize(d, wrt(doc)) for d in (doc, unrolled(doc)))]
            try:
                due = matrix(documents[1])
            except TransformError:  # of complex numbers
                continue
            pair(matrix(documents[0]), due, seed)

    hold(15 * times, law, looping(dtypes=("f64", "i32", "bool")), seeds)


SHORTHANDS = {
    "grad": lambda d: api.grad(d, "x", "v"),
    "jacobian by columns": lambda d: api.jacobian(d, "x", "v"),
    "hessian": lambda d: api.hessian(d, "x", "v"),
    "hvp": lambda d: api.hvp(d, "x", "v"),
    "derivative": lambda d: api.derivative(d, "x", "v", order=3),
    "jvp with values": lambda d: api.jvp(d, "x", "v", value=True),
}


def with_number(doc: Document) -> Document:
    """The document with a real number as its output v, and x as an input of it."""
    head = doc.head
    value = next(o for o in head.outputs if str(o.type) == "f64[]")
    return replace(doc, graphs=(replace(head, outputs=(replace(value, key=Key("v")),)),))


@longer
@pytest.mark.parametrize("name", SHORTHANDS)
def test_shorthands(name: str, times: int) -> None:
    def law(doc: Document, seed: int) -> None:
        if any(str(o.type) == "f64[]" for o in doc.head.outputs):
            number = with_number(doc)
            pair(SHORTHANDS[name](number), SHORTHANDS[name](unrolled(number)), seed)

    hold(12 * times, law, looping(dtypes=("f64", "i32")), seeds)


@longer
def test_tangents_of_other_types_and_of_integers(times: int) -> None:
    def law(doc: Document, seed: int) -> None:
        types = free_inputs(doc)
        integers = [k for k, t in types.items() if t.dtype == "i32"]
        for dtype in ("f32", "f64"):
            tangents = {k: types[k].with_dtype(dtype) for k in integers}
            keys = [*wrt(doc), *tangents]
            linear, plain = (linearize(d, keys, tangent_types=tangents) for d in (doc, unrolled(doc)))
            pair(linear, plain, seed)
            pair(transpose(linear), transpose(plain), seed)

    hold(20 * times, law, looping(dtypes=("f64", "i32", "i32")), seeds)


@longer
def test_recomputation_changes_no_value(times: int) -> None:
    def law(doc: Document, seed: int, policy: object) -> None:
        turned = transpose(linearize(doc, wrt(doc)))
        at = random_inputs(turned, seed)
        single = materialize(turned)
        assert same(run(recompute(single, policy), at), run(single, at))

    hold(30 * times, law, looping(), seeds, st.one_of(policies, st.builds(Segments, st.integers(1, 2))))


@longer
def test_reverse_mode_through_a_while_is_refused_in_one_line(times: int) -> None:
    """Or the while has no part in the derivative; never another error."""

    def law(doc: Document, seed: int) -> None:
        linear = linearize(doc, wrt(doc))
        try:
            turned = transpose(linear)
        except MissingRuleError:
            with pytest.raises(MissingRuleError, match=r"^[^\n]*while[^\n]*use scan[^\n]*$"):
                transpose(linear)
            return
        at = random_inputs(turned, seed)
        assert all(
            np.shape(x) == t.shape for x, t in zip(run(turned, at).values(), [o.type for o in turned.head.outputs], strict=True)
        )

    hold(25 * times, law, looping(nested=CONDITIONED), seeds)


def test_a_loop_in_a_loop_may_give_numbers_without_tangents() -> None:
    """A scan around a while, in a while: its derivative is taken along; of the two that it gives at each step one is an integer."""

    def sine(x):
        return api.while_loop(lambda s: s[1] < 1, lambda s: (np.sin(s[0]), s[1] + 1), (x, 0))[0]

    def step(x, k):
        y = sine(x) * (k + 1.0)
        return y, (k + 1, y * y)

    def body(s):
        last, (numbers, squares) = api.scan(step, s[0], np.arange(3))
        return last + squares.sum() + numbers.sum(), s[1] + 1

    def plain(x):
        for _ in range(2):
            total = 0
            for k in range(3):
                x = np.sin(x) * (k + 1.0)
                total += x * x + k + 1
            x = x + total
        return x

    doc = api.trace(lambda x: api.while_loop(lambda s: s[1] < 2, body, (x, 0))[0], "f64[]")
    (slope,) = api.evaluate(api.derivative(doc, "x"), {"x": 0.3}).values()
    np.testing.assert_allclose(slope, plain(0.3 + 1e-30j).imag / 1e-30, rtol=1e-14)
