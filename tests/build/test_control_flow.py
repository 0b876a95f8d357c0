"""Loops and branches in traced functions: as Python's loops on NumPy, with the derivatives of loops that are unrolled."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu_cli as tidu
from tests.tiers import examples
from tests.waiting import cpu_seconds
from tidu_cli.errors import TiduError


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass(frozen=True)
class Point:
    x: Any
    y: Any


# Trees and functions of them.

LEAF = st.sampled_from([0.5, -1.25, np.array([0.1, 0.2, -0.3]), np.array([[1.0], [-0.5]])])
TREE = st.recursive(
    LEAF,
    lambda below: st.one_of(
        st.lists(below, min_size=1, max_size=2),
        st.tuples(below, below),
        st.builds(Pair, below, st.none()),
        st.builds(Point, below, below),
        st.dictionaries(st.sampled_from("abc"), below, min_size=1, max_size=2),
    ),
    max_leaves=4,
)


def mapped(f, tree):
    if tree is None:
        return None
    if isinstance(tree, dict):
        return {k: mapped(f, v) for k, v in tree.items()}
    if isinstance(tree, Pair):
        return Pair(*(mapped(f, v) for v in tree))
    if isinstance(tree, Point):
        return Point(mapped(f, tree.x), mapped(f, tree.y))
    if isinstance(tree, list | tuple):
        return type(tree)(mapped(f, v) for v in tree)
    return f(tree)


def leaves(tree):
    parts: list[Any] = []
    mapped(parts.append, tree)
    return parts


def unrolled(f, init, xs, n, reverse):
    """What scan is, by a Python loop."""
    carry, ys = init, [None] * n
    for i in range(n)[:: -1 if reverse else 1]:
        carry, ys[i] = f(carry, mapped(lambda x, i=i: x[i], xs))
    return carry, ys


@given(init=TREE, row=TREE, n=st.integers(1, 4), reverse=st.booleans())
@settings(max_examples=examples(40, check=12), deadline=None)
def test_a_scan_is_the_loop(init, row, n, reverse):
    """Traced, and on plain values, with values that f closes over; and so are its derivatives."""
    xs = mapped(lambda x: np.stack([x * (0.5 + k) for k in range(n)]), row)

    def step(w):
        def f(carry, x):
            drive = sum(np.sum(np.sin(w * leaf)) for leaf in leaves(x))
            carry = mapped(lambda c: np.tanh(c) * w + 0.1 * drive, carry)
            return carry, {"all": carry, "drive": drive * w}

        return f

    def looped(w):
        carry, ys = tidu.scan(step(w), init, xs, reverse=reverse)
        return sum(np.sum(y * y) for y in leaves((carry, ys)))

    def plainly(w):
        carry, ys = unrolled(step(w), init, xs, n, reverse)
        return sum(np.sum(y * y) for y in leaves((carry, ys)))

    at = {"w": 0.7}
    graph, loop = tidu.trace(looped, "f64[]"), tidu.trace(plainly, "f64[]")
    assert [case.op for case in graph.cases.cases].count("scan") == 1
    expected = plainly(0.7)
    assert looped(0.7) == pytest.approx(expected, rel=1e-13)
    assert tidu.evaluate(graph, at)["y"] == pytest.approx(expected, rel=1e-13)
    slope = tidu.evaluate(tidu.grad(loop, "w"), at)["w@-1"]
    assert tidu.evaluate(tidu.grad(graph, "w"), at)["w@-1"] == pytest.approx(slope, rel=1e-11)
    assert tidu.evaluate(tidu.jvp(graph, "w"), at | {"w@1": 1.0})["y@1"] == pytest.approx(slope, rel=1e-11)


def both(f, *types, **values):
    """The value of a function, which is the same traced and plain."""
    results = tidu.evaluate(tidu.trace(f, *types), values)
    expected = f(*values.values())
    for k, leaf in enumerate(leaves(expected)):
        np.testing.assert_allclose(list(results.values())[k], leaf, rtol=1e-13)
        assert list(results.values())[k].dtype == np.asarray(leaf).dtype
    return expected


def test_structures_come_back():
    def f(x):
        init = {"b": Point(x, None), "a": [Pair(x, 1)]}
        return tidu.scan(lambda c, _: ({"a": [Pair(c["b"].x, 2)], "b": Point(c["a"][0].left, None)}, None), init, length=3)

    seen: list[Any] = []
    tidu.trace(lambda x: seen.append(f(x)) or x, "f64[]")
    (carry, ys), (plain, none) = seen[0], f(1.0)
    for some in (carry, plain):
        assert list(some) == ["b", "a"] and isinstance(some["b"], Point) and some["b"].y is None and isinstance(some["a"][0], Pair)
    assert ys is None and none is None


def newton(a, x):
    return tidu.while_loop(lambda x: abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), x)


def test_while_loop():
    assert both(newton, "f64[]", "f64[]", a=2.0, x=1.0) == pytest.approx(2**0.5)
    forward = tidu.jvp(tidu.trace(newton, "f64[]", "f64[]"), "a")
    assert tidu.evaluate(forward, {"a": 2.0, "x": 1.0, "a@1": 1.0})["y@1"] == pytest.approx(0.5 / 2**0.5, rel=1e-9)
    with pytest.raises(TiduError, match="no transpose"):
        tidu.vjp(tidu.trace(newton, "f64[]", "f64[]"), "a")


@pytest.mark.parametrize("x", [-2.0, 0.5, 3.0])
def test_branches(x):
    def f(x, y):
        small = tidu.cond(x > 0, lambda y: {"s": np.sqrt(abs(x)) * y}, lambda y: {"s": 0 * y}, y)
        return small["s"] + tidu.switch(np.floor(x).astype(int), [lambda v: v, lambda v: v * x, lambda v: v[0] * y], y)

    def chosen(x, y):
        return (np.sqrt(x) * y if x > 0 else 0.0) + [y, y * x, y[0] * y][min(max(int(np.floor(x)), 0), 2)]

    y = np.array([1.5, 2.0])
    np.testing.assert_allclose(both(f, "f64[]", "f64[2]", x=x, y=y), chosen(x, y), rtol=1e-15)


def test_numbers_of_branches_give_way():
    def f(x):
        return tidu.cond(x > 0, lambda: x, lambda: 0), tidu.cond(x > 0, lambda: 1, lambda: 2.5)

    results = tidu.evaluate(tidu.trace(f, "f32[]"), x=np.float32(-1))
    assert [y.dtype.name for y in results.values()] == ["float32", "float64"] and [*results.values()] == [0, 2.5]


def test_what_a_branch_computes_of_outside_is_computed_in_it():
    """1/x of the other branch would make the gradient NaN."""
    graph = tidu.trace(lambda x: tidu.cond(x == 0, lambda: x + 1.0, lambda: np.sqrt(x) / x), "f64[]")
    assert tidu.evaluate(tidu.grad(graph, "x"), x=0.0)["x@-1"] == 1.0


@pytest.mark.parametrize("n", [0, 1, 5])
def test_fori_loop(n):
    """Of fixed and traced bounds; the counter gives way as a number of Python's."""

    def fixed(x):
        return tidu.fori_loop(2, 2 + n, lambda i, v: v * (-i) + x / (i + 1) + i // 2, x)

    def counted(x, m):
        return tidu.fori_loop(2, m, lambda i, v: v * (-i) + x / (i + 1) + i // 2, x)

    for dtype, x in {"f32": np.float32(0.3), "f64": np.float64(0.3)}.items():
        assert both(fixed, f"{dtype}[]", x=x).dtype == x.dtype
        expected = both(counted, f"{dtype}[]", "i64[]", x=x, m=2 + n)
        np.testing.assert_allclose(expected, fixed(x), rtol=1e-6)
    graph = tidu.trace(fixed, "f64[]")
    assert tidu.evaluate(tidu.grad(graph, "x"), x=0.3)["x@-1"] == pytest.approx(fixed(1.0) - fixed(0.0), rel=1e-12)


def test_elements_by_the_counter():
    def f(x):
        return tidu.fori_loop(0, 3, lambda i, v: v * x[i] + x[-1 - i, ...] + np.array([1.0, 2.0, 3.0], like=x)[i], 1.0)

    both(lambda x: tidu.fori_loop(0, 3, lambda i, v: v * x[i] + x[-1 - i], 1.0), "f64[3]", x=np.array([0.3, -0.5, 2.0]))
    assert tidu.evaluate(tidu.trace(f, "f64[3]"), x=[0.0, 0.0, 0.0])["y"] == 3.0


def test_loops_in_loops_reach_through_all_of_them():
    def f(a, b, xs):
        def outer(c, row):
            def inner(v, e):
                def once(u):
                    return u[0] * a + row.sum() * c, u[1] + 1

                v = tidu.while_loop(lambda u: u[1] < 2, once, (v, 0))[0]
                return tidu.cond(v > e, lambda: v * b, lambda: v + c), v

            v, vs = tidu.scan(inner, c, row)
            return np.sin(v), vs

        return tidu.scan(outer, 0.5, xs)

    xs = np.random.default_rng(1).normal(size=(3, 2))
    both(f, "f64[]", "f64[]", "f64[3,2]", a=0.3, b=-0.7, xs=xs)


@pytest.mark.parametrize(
    ("init", "body", "due"),
    [
        (0.0, lambda c, x: c + x, "float32"),
        (0, lambda c, x: c + x, "float32"),
        (0, lambda c, x: c + 1, "int64"),
        (0, lambda c, x: c + 0.5, "float64"),
        (1, lambda c, x: 2.5, "float64"),
        (0.5, lambda c, x: 2, "float64"),
        (1j, lambda c, x: c * x, "complex64"),
        (np.float32(1), lambda c, x: 2.5, "float32"),
        (True, lambda c, x: ~c, "bool"),
        (np.zeros(2), lambda c, x: c * x, "float64"),
    ],
)
def test_numbers_give_way(init, body, due):
    def f(xs):
        return tidu.scan(lambda c, x: (body(c, x), None), init, xs)[0]

    if init is True:
        body = lambda c, x: c == (x > 9)  # noqa: E731  # Python's ~True is a number
    xs = np.array([1.5, 2.5], np.float32)
    carry = tidu.evaluate(tidu.trace(f, "f32[2]"), xs=xs)["y"]
    assert carry.dtype == f(xs).dtype == due
    np.testing.assert_allclose(carry, f(xs), rtol=1e-6)


def test_no_steps():
    def f(x):
        return tidu.scan(lambda c, _: (c + 1.5, (x * c, np.ones(3))), 0, length=0)

    (carry, (y, ones)) = both(f, "f64[]", x=1.0)
    assert carry.dtype == float and y.shape == (0,) and ones.shape == (0, 3)
    assert tidu.while_loop(lambda v: v > 9, lambda v: v + 0.5, 0).dtype == float


def test_a_loop_of_plain_values_in_a_traced_function_is_run():
    """Its result may be a shape, or an index."""

    def f(x):
        n, ys = tidu.scan(lambda c, k: (c + k, c), 0, np.arange(4))
        return np.zeros(n) + x * ys[2]

    assert tidu.evaluate(tidu.trace(f, "f64[]"), x=2.0)["y"].tolist() == [2.0] * 6


def test_a_loop_of_plain_values_that_closes_over_traced_ones_is_a_node():
    def f(x):
        def g(c, t):
            c += x * t  # in place
            return c, None

        return tidu.scan(g, np.zeros(2), np.arange(3.0))[0]

    graph = tidu.trace(f, "f64[]")
    assert "scan" in [case.op for case in graph.cases.cases]
    assert tidu.evaluate(graph, x=2.0)["y"].tolist() == [6.0, 6.0] == f(2.0).tolist()


def test_plain_arguments_are_not_changed():
    start, xs = np.zeros(2), np.ones((3, 2))

    def f(c, x):
        c += 1
        x *= 2
        return c, c + x

    carry, ys = tidu.scan(f, start, xs)
    assert start.tolist() == [0, 0] and (xs == 1).all() and carry.tolist() == [3, 3] and ys[:, 0].tolist() == [3, 4, 5]


def test_large_constants_stand_outside_of_the_body():
    table = np.arange(100.0)
    graph = tidu.trace(lambda x: tidu.fori_loop(0, 3, lambda i, v: v + (table * x)[i] * 2.0, 0.0), "f64[]")
    body = next(case.attrs.body for case in graph.cases.cases if case.op == "scan").graph
    assert [case.op for case in graph.cases.cases].count("constant") == 2  # the table, and what the loop begins with
    assert all(c.results[0].size == 1 for c in body.cases.cases if c.op == "constant")


def test_fields_of_records_are_read_in_loops():
    graph = tidu.trace(lambda p, x: tidu.fori_loop(0, 2, lambda i, v: v * p.a + p.b, x) * p.a, "{a: f64[], b: f64[]}", "f64[]")
    assert tidu.evaluate(graph, p={"a": 2.0, "b": 1.0}, x=1.0)["y"] == 14.0


def test_ten_thousand_steps_are_a_few_nodes():
    def orbit(x, steps):
        return tidu.fori_loop(0, steps, lambda i, x: x + 0.01 * np.sin(x), x)

    sizes = [len(tidu.trace(lambda x, n=n: orbit(x, n), "f64[3]").cases.cases) for n in (10, 10_000)]
    assert sizes[0] == sizes[1] <= 6


def test_ten_thousand_steps_are_derived_in_no_time():
    """Half a second is the promise; a recording takes milliseconds. The second round pays for no imports."""

    def orbit(state):
        def motion(s):
            return np.concatenate([s[2:], -s[:2] / (s[:2] @ s[:2]) ** 1.5])

        def step(s, h):
            k = [motion(s)]
            for c in (0.5, 0.5, 1.0):
                k.append(motion(s + c * h * k[-1]))
            return s + h / 6 * (k[0] + 2 * k[1] + 2 * k[2] + k[3]), None

        return tidu.scan(step, state, np.full(10_000, 1e-3))[0]

    def derived():
        tidu.transpose(tidu.linearize(tidu.trace(orbit, "f64[4]"), "state"))

    assert min(cpu_seconds(derived) for _ in range(2)) < 0.5


# What is refused.


def leaking(x):
    kept = []
    tidu.scan(lambda c, _: (kept.append(c * 2) or c, None), x, length=2)
    return kept[0] + x


REFUSED = {
    "dtype": (lambda x: tidu.scan(lambda c, _: ({"q": c["q"] * x}, None), {"q": np.zeros(2, np.float32)}, length=2),
              r"control_flow.py:\d+: the loop carries 'c.q' as f32\[2\], but f gives f64\[2\] for it; convert it before the loop, "
              r"x.astype\('float64'\), or in f, x.astype\('float32'\)"),
    "shape": (lambda x: tidu.scan(lambda c, _: (np.stack([c, c]), None), x, length=2),
              r"carries 'c' as f64\[\], but f gives f64\[2\]"),
    "structure": (lambda x: tidu.scan(lambda c, _: ((x, x), None), [x, x], length=2),
                  "'c' is a tuple as f gives it, where a list is due"),
    "keys": (lambda x: tidu.scan(lambda c, _: ({"b": x}, None), {"a": x}, length=2), "'c' holds b as f gives it, where a is due"),
    "pair": (lambda x: tidu.scan(lambda c, _: c, x, length=2), "f gives an array, but a step of scan gives a pair"),
    "no length": (lambda x: tidu.scan(lambda c, _: (c, c), x), "scan needs xs or length"),
    "lengths": (lambda x: tidu.scan(lambda c, r: (c, c), x, (np.ones(2), np.ones(3))),
                "'r.1' has 3 slices, but the length of 'r.0' is 2"),
    "scalar xs": (lambda x: tidu.scan(lambda c, r: (c, c), x, x), "'r' has no axes"),
    "text": (lambda x: tidu.scan(lambda c, _: (c, None), (x, "a"), length=2), "'c.1' is a str"),
    "condition": (lambda x: tidu.while_loop(lambda c: c, lambda c: c, x),
                  r"cond_fun gives f64\[\], but the condition of a loop is one bool"),
    "branches": (lambda x: tidu.cond(x > 0, lambda: {"v": x}, lambda: {"v": np.float32(1)}),
                 r"branches must give one type, but 'y.v' is f32\[\] of false_fun and f64\[\] of true_fun; "
                 r"convert it there, x.astype\('float32'\)"),
    "predicate": (lambda x: tidu.cond(np.stack([x, x]) > 0, lambda: x, lambda: x), r"pred of cond is bool\[2\]"),
    "leak": (leaking, "is known outside of it only if it is returned"),
    "bounds": (lambda x: tidu.fori_loop(0, x, lambda i, v: v, x), r"upper of fori_loop is f64\[\], but a loop counts integers"),
    "if": (lambda x: x if x > 0 else -x, r"write np.where\(condition, a, b\) or tidu.cond, tidu.while_loop for while"),
    "range": (lambda x: [x for _ in range(np.floor(x).astype(int))], r"tidu.fori_loop for range\(\)"),
    "parameters": (lambda x: tidu.scan(lambda c: c, x, length=2),
                   "f: too many positional arguments; it is called with carry and x"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    function, words = REFUSED[name]
    with pytest.raises(TiduError, match=words):
        tidu.trace(function, "f64[]")


def test_what_is_of_outside_is_not_changed_in_place():
    def f(x):
        kept = [x * 2]

        def g(c, _):
            kept[0] += c
            return c, None

        return tidu.scan(g, x, length=2)[0]

    with pytest.raises(TiduError, match="would change an array of outside"):
        tidu.trace(f, "f64[3]")


def test_types_are_kept_on_plain_values_too():
    with pytest.raises(TiduError, match=r"carries 'c' as f32\[2\], but f gives f64\[2\]"):
        tidu.scan(lambda c, _: (c * np.ones(2), None), np.zeros(2, np.float32), length=2)
