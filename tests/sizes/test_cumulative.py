"""Derivatives of what is cumulative along an open axis: a loop gives there what steps that double give along a fixed one."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tidu_cli
from tests.c.test_primitives import documented
from tests.tiers import few
from tidu_cli.graph.types import parse_type
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.sizing import specialized

NUMBERS = (1, 2, 3, 7, 64)
EPS = np.finfo("f8").eps
NAN, INF = math.nan, math.inf
OPS = ["cumprod", "cummax", "cummin", "cumlogsumexp"]


def one(op, axis=0, dtype="f64", **attrs):
    attrs = {"axis": axis, **attrs}
    type_ = parse_type(f"{dtype}[{'2,' * axis}N]")
    return documented([BUILTIN.case(op, BUILTIN.parse_attrs(op, attrs), None, [type_])])


def forward(document):
    return tidu_cli.linearize(document, ["x0"])


def back(document):
    return tidu_cli.transpose(forward(document))


PROGRAMS = {
    "jvp": forward,
    "vjp": back,
    "forward over forward": lambda d: forward(forward(d)),
    "forward over reverse": lambda d: forward(back(d)),
    "reverse over reverse": lambda d: back(back(d)),
    "a batch of directions": lambda d: tidu_cli.jacobian(d, "x0"),
}


def both(document, program, n, draw):
    """What a program gives at a number: derived at the open size, and derived at the number."""
    found, due = (
        tidu_cli.materialize(d)
        for d in (specialized(program(document), {"N": n}, BUILTIN), program(specialized(document, {"N": n}, BUILTIN)))
    )
    given = {str(i.key): draw(i) for i in due.free_inputs}
    with np.errstate(all="ignore"):
        return zip(*[tidu_cli.evaluate(d, given, engine="numpy").values() for d in (found, due)], strict=True)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_products_are_the_same_bits_where_they_are_exact(name, reverse):
    for axis, n in few([(axis, n) for axis in (0, 1) for n in NUMBERS], 6):
        # Of zeros and signs, and tangents of few bits, all that is computed is exact, in whatever order.
        elements, rng = ([-1.0, 1.0, 1.0, 0.0] if n > 2 else [2.0, 0.0]), np.random.default_rng(n)

        def draw(i, elements=elements, rng=rng):
            return rng.choice([-2.0, 1.0, 3.0] if i.key.path else elements, i.type.shape)

        for found, due in both(one("cumprod", axis, reverse=reverse), PROGRAMS[name], n, draw):
            np.testing.assert_array_equal(found, due)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("op", OPS)
def test_they_differ_by_the_order_of_roundings(op, reverse):
    """Each of n steps adds a few roundings to what it carries, relative to the greatest result."""
    cases = [(dtype, axis, name, n) for dtype in ("f64", "c128") for axis in (0, 1) for name in PROGRAMS for n in NUMBERS]
    for dtype, axis, name, n in few([c for c in cases if c[0] in BUILTIN[op].domain.dtypes], 12):
        rng = np.random.default_rng(n)

        def draw(i, rng=rng):
            x = np.asarray(rng.uniform(0.8, 1.2, i.type.shape))
            return np.round(x, 0 if i.key.path else 1).astype("c16" if i.type.complex else "f8")  # with ties

        for found, due in both(one(op, axis, dtype, reverse=reverse), PROGRAMS[name], n, draw):
            bound = 8 * n * EPS
            np.testing.assert_allclose(found, due, bound, bound * np.abs(due).max(initial=0), err_msg=f"{name}, {n}")


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("op", "x"),
    [
        ("cumprod", [2.0, 0.0, 3.0, 0.0, 4.0]),
        ("cumprod", [2.0, NAN, 3.0]),
        ("cumprod", [2.0, INF, 3.0]),
        ("cumprod", [0.0, INF, 1.0]),
        ("cummax", [0.0, 2.0, 2.0, 1.0, 2.0, 3.0, 1.0]),
        ("cummin", [0.0, -2.0, -2.0, -1.0, -2.0, -3.0, -1.0]),
        ("cummax", [1.0, 2.0, NAN, 3.0]),
        ("cummax", [-INF, 1.0, INF, 2.0, INF]),
        ("cummin", [0.0, -0.0, 0.0]),
        ("cumlogsumexp", [-INF, 0.0, -INF, 0.0]),
        ("cumlogsumexp", [-INF, -INF]),
        ("cumlogsumexp", [0.0, INF, 1.0]),
        ("cumlogsumexp", [0.0, NAN, 1.0]),
        ("cumlogsumexp", [1000.0, 1000.0, -1000.0]),
    ],
)
def test_ties_zeros_and_what_is_not_finite(op, x, reverse):
    """As along a fixed axis: shares of ties, and infinities and NaN where they belong and nowhere else.

    But for infinite factors: steps that double multiply them by zeros from beyond the axis, which is NaN, and the loop does not.
    """
    for name in ("jvp", "vjp", "forward over forward"):
        for k in range(len(x)):

            def draw(i, k=k):
                return np.eye(len(x))[k] if i.key.path else np.array(x[::-1] if reverse else x)

            for found, due in both(one(op, reverse=reverse), PROGRAMS[name], len(x), draw):
                found = np.where(np.isnan(due), NAN, found) if op == "cumprod" and INF in x else found
                np.testing.assert_allclose(found, due, 1e-14, 1e-14)


def test_strong_zeros_stay_zeros():
    document = one("cumprod")
    gradient = tidu_cli.vjp(document, "x0", strong_zeros=True)
    for x, ct in (([INF, 2.0, 3.0], [0.0, 0.0, 0.0]), ([2.0, INF, 3.0], [1.0, 0.0, 0.0])):
        (key,) = [str(i.key) for i in gradient.free_inputs if i.key.path]
        (found,) = tidu_cli.evaluate(gradient, {"x0": x, key: ct}).values()
        assert found.tolist() == [ct[0], 0, 0]


def test_graphs_do_not_grow_with_the_axis_and_second_products_are_derived():
    for op in OPS:
        assert sum(graph.n_nodes for graph in back(one(op)).graphs) < 40
    document = documented(
        [BUILTIN.case("reduce_prod", BUILTIN.parse_attrs("reduce_prod", {"axes": [0]}), None, [parse_type("f64[N]")])]
    )
    hessian = tidu_cli.jacobian(tidu_cli.grad(document, "x0"), "x0")
    (found,) = tidu_cli.evaluate(specialized(hessian, {"N": 3}, BUILTIN), {"x0": [2.0, 0.0, 5.0]}).values()
    assert found.tolist() == [[0, 5, 0], [5, 0, 2], [0, 2, 0]]


def test_an_axis_without_elements_at_some_number():
    document = documented([BUILTIN.case("cumprod", BUILTIN.parse_attrs("cumprod", {"axis": 0}), None, [parse_type("f64[N-1]")])])
    (found,) = tidu_cli.evaluate(specialized(back(document), {"N": 1}, BUILTIN), {"x0": [], "y1@-1": []}).values()
    assert found.shape == (0,)
