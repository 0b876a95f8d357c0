"""Values that equations define: solutions and their derivatives are those of formulas, whatever solves the equation."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import tidu_cli as api
from tests.control_flow.laws import assert_alike, hold, run
from tests.graphs.interpret import inner, random_inputs
from tests.graphs.sketch import Sketch, document
from tidu_cli.control_flow import solvers
from tidu_cli.control_flow.graphs import a_system, an_equation
from tidu_cli.errors import MissingRuleError, TiduError
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.graph import Document
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

Function = Callable[..., Any]
Arrays = Mapping[str, Any]

RANDOM = np.random.default_rng(7)
MATRIX = RANDOM.normal(size=(4, 4)) + 4 * np.eye(4)
RIGHT = RANDOM.normal(size=4)


@pytest.fixture(scope="module", autouse=True)
def by_numpy() -> Iterator[None]:
    """`auto` would take XLA for loops that may be long, and processes in which JAX runs cannot fork."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDU_ENGINE", "numpy")
        yield


def sqrt(a: Any) -> Any:
    return api.root(lambda x: x * x - a, 1.0)


def newton(f: Function, x: Any) -> Any:
    """Some Newton steps for x² - a, as a user writes them."""
    return api.fori_loop(0, 30, lambda i, x: x - f(x) / (2 * x), x)


def jacobi(matvec: Function, b: Any) -> Any:
    return api.fori_loop(0, 300, lambda i, x: x + (b - matvec(x)) / 5, np.zeros(4))


def until_still(matvec: Function, b: Any) -> Any:
    """The same, as long as the residual is not small."""
    return api.while_loop(lambda x: np.max(abs(b - matvec(x))) > 1e-14, lambda x: x + (b - matvec(x)) / 5, np.zeros(4))


def kepler(e: Any, m: Any) -> Any:
    return api.root(lambda u: u - e * np.sin(u) - m, m)


def heron(a: Any) -> Any:
    return api.fixed_point(lambda x: (x + a / x) / 2, a)


def contracted(f: Function, x: Any) -> Any:
    return api.fori_loop(0, 60, lambda i, x: f(x), x)


def unrolled(a: Any) -> Any:
    x = a
    for _ in range(70):
        x = np.sin(a * x) + a
    return x


def implicit_step(a: Any) -> Any:
    """A step of y' = -a y³ from y = 1 by 0.1, by the implicit Euler method."""
    return api.root(lambda y: y - 1 + 0.1 * a * y**3, 1.0)


def cardano(a: Any) -> Any:
    """The same by Cardano's formula."""
    p = 10 / a
    s = np.sqrt(p * p / 4 + p**3 / 27)
    return np.cbrt(p / 2 + s) + np.cbrt(p / 2 - s)


def stationary(w: Any) -> Any:
    return np.sum(api.fixed_point(lambda x: 0.2 * w @ x + RIGHT, np.zeros(4)))


ROOTS: Mapping[str, tuple[Function, Function, Arrays]] = {
    "by Newton's method": (sqrt, lambda a: np.sqrt(a), {"a": 2.5}),
    "by a given solver": (
        lambda a: api.root(lambda x: x * x - a, 1.0, newton, lambda g, b: b / g(1.0)),
        lambda a: np.sqrt(a),
        {"a": 2.5},
    ),
    "several": (
        lambda a: np.sum(api.root(lambda x: x * x - a, np.ones(3))),
        lambda a: np.sum(np.sqrt(a)),
        {"a": np.array([1.0, 2.0, 3.0])},
    ),
    "nested unknowns": (
        lambda a: (lambda s: s["u"] + s["v"])(
            api.root(lambda s: {"u": s["u"] ** 2 - a, "v": s["v"] * s["u"] - 1}, {"u": 1, "v": 1})
        ),
        lambda a: np.sqrt(a) + 1 / np.sqrt(a),
        {"a": 2.5},
    ),
    "in one another": (
        lambda a: api.root(lambda x: api.root(lambda y: y * y - x, 1.0) - a, 1.0),
        lambda a: a * a,
        {"a": 1.5},
    ),
    "in a scan": (
        lambda a: api.scan(lambda c, _: (api.root(lambda x: x * x - c * a, 1.0), None), 2.0, length=3)[0],
        lambda a: a**0.875 * 2**0.125,
        {"a": 2.5},
    ),
    "of slices": (
        lambda a: np.sum(api.scan(lambda c, x: (c, c * sqrt(x)), 2.0, a)[1]),
        lambda a: 2 * np.sum(np.sqrt(a)),
        {"a": np.array([1.0, 2.0, 3.0])},
    ),
    "in a branch": (lambda a: api.cond(a > 1, sqrt, lambda a: a * a, a), lambda a: np.sqrt(a), {"a": 2.5}),
    "fixed point": (heron, lambda a: np.sqrt(a), {"a": 2.5}),
    "fixed point by given solvers": (
        lambda a: api.fixed_point(lambda x: np.cos(x) / 2 + a, a, contracted, lambda g, b: b / g(1.0)),
        lambda a: api.root(lambda x: x - np.cos(x) / 2 - a, a),
        {"a": 0.4},
    ),
    "fixed point, unrolled": (lambda a: api.fixed_point(lambda x: np.sin(a * x) + a, a), unrolled, {"a": 0.4}),
    "fixed points, nested": (
        lambda a: (lambda s: s["u"] * s["v"][1])(
            api.fixed_point(lambda s: {"u": np.cos(s["v"][0]), "v": s["u"] * a / 3}, {"u": 1, "v": a})
        ),
        lambda a: (lambda s: s["u"] * s["v"][1])(
            api.root(lambda s: {"u": np.cos(s["v"][0]) - s["u"], "v": s["u"] * a / 3 - s["v"]}, {"u": 1, "v": a})
        ),
        {"a": np.array([1.0, 2.0])},
    ),
    "fixed point of matrices": (
        stationary,
        lambda w: np.sum(np.linalg.solve(np.eye(4) - 0.2 * w, RIGHT)),
        {"w": MATRIX / 4},
    ),
    "implicit Euler": (implicit_step, cardano, {"a": 1.7}),
}

SYSTEMS: Mapping[str, Function] = {
    "by the matrix": lambda a, b: api.linear_solve(lambda x: a @ x, b),
    "by given solvers": lambda a, b: api.linear_solve(lambda x: a @ x, b, jacobi, jacobi),
    "by one of the map alone": lambda a, b: api.linear_solve(lambda x: a @ x, b, jacobi),
    "by a while, in a scan": lambda a, b: api.scan(
        lambda x, _: (api.linear_solve(lambda x: a @ x, x, until_still, until_still), None), a @ b, length=2
    )[0],
    "with a loop in the map": lambda a, b: api.linear_solve(lambda x: api.scan(lambda c, r: (c, r @ x), 0.0, a)[1], b),
    "with a branch in the map": lambda a, b: api.linear_solve(
        lambda x: api.cond(b[0] > 9, lambda x: a.T @ x, lambda x: a @ x, x), b
    ),
    "solver of a solver": lambda a, b: api.linear_solve(
        lambda x: a @ x, b, lambda matvec, b: api.linear_solve(matvec, b), lambda vecmat, b: api.linear_solve(vecmat, b)
    ),
}  # fmt: skip


def traced(function: Function, at: Arrays) -> Document:
    return api.trace(function, *[np.asarray(x) for x in at.values()])


def assert_same(one: Document, other: Document, at: Arrays, tolerance: float = 1e-9) -> None:
    given, due = api.evaluate(one, at), api.evaluate(other, at)
    assert list(given) == list(due)
    for key, x in due.items():
        np.testing.assert_allclose(given[key], x, rtol=tolerance, atol=tolerance, err_msg=str(key))


DERIVATIVES: Mapping[str, Function] = {
    "values": lambda d, wrt: d,
    "forward": lambda d, wrt: api.jacobian(d, wrt, forward=True),
    "reverse": lambda d, wrt: api.grad(d, wrt),
    "forward over reverse": lambda d, wrt: api.hessian(d, wrt),
    "reverse over reverse": lambda d, wrt: api.jacobian(api.grad(d, wrt), wrt, reverse=True),
    "third": lambda d, wrt: api.jacobian(api.hessian(d, wrt), wrt, reverse=True),
}


def hold_for(solved: Function, formula: Function, at: Arrays) -> None:
    for order, derive in DERIVATIVES.items():
        one, other = [derive(traced(f, at), list(at)) for f in (solved, formula)]
        assert_same(one, other, at, 1e-9 if order != "third" else 1e-7)


@pytest.mark.parametrize("name", ROOTS)
def test_roots_have_the_derivatives_of_the_implicit_function(name: str) -> None:
    hold_for(*ROOTS[name])


@pytest.mark.parametrize("name", SYSTEMS)
def test_solutions_of_linear_systems_have_those_of_dense_ones(name: str) -> None:
    at = {"a": MATRIX / 3 + 3 * np.eye(4), "b": RIGHT}
    solve = SYSTEMS[name]
    orders = ("values", "forward", "reverse", "reverse over reverse")
    for order in orders:
        one, other = [
            DERIVATIVES[order](traced(lambda a, b, f=f: np.sum(np.sin(f(a, b))), at), list(at)) for f in (solve, np.linalg.solve)
        ]
        assert_same(one, other, at)


def test_kepler() -> None:
    """u - e sin u = m: du/dm = 1/(1 - e cos u), du/de = sin u du/dm."""

    def law(e: float, m: float) -> None:
        doc = api.trace(kepler, "f64[]", "f64[]")
        u = api.evaluate(doc, {"e": e, "m": m})["y"]
        assert abs(u - e * np.sin(u) - m) <= 1e-12
        gradient = api.evaluate(api.grad(doc, ["e", "m"]), {"e": e, "m": m})
        slope = 1 / (1 - e * np.cos(u))
        assert np.allclose([gradient["e@-1"], gradient["m@-1"]], [np.sin(u) * slope, slope], rtol=1e-9)

    hold(30, law, st.floats(0, 0.7), st.floats(0.1, 3), check=15)


@pytest.mark.parametrize("dtype", ["f64", "f32", "c128"])
def test_transpose_is_the_adjoint_and_its_own_inverse(dtype: str) -> None:
    matrix, vector = f"{dtype}[3,3]", f"{dtype}[3]"

    def law(seed: int) -> None:
        sketch = Sketch({"a": matrix, "b": vector})
        attrs = api.trace(lambda a, x: a @ x, matrix, vector)
        system = {"num_consts": 1, "matvec": solvers.made(solvers.made_of(a_system()["matvec"]), [("a", attrs.head.inputs[0].type),
                  ("x", attrs.head.inputs[1].type)], lambda t, xs: solvers.nested.apply(t, attrs.head, xs))}  # type: ignore[arg-type]  # fmt: skip
        doc = document(sketch.build("f", {"y": sketch.apply("linear_solve", *sketch.inputs, **system)}))
        at = random_inputs(doc, seed)
        at = {k: x + 6 * np.eye(3, dtype=x.dtype) if x.ndim == 2 else x for k, x in at.items()}
        linear = linearize(doc, [k for k in at if k.name == "b"])
        turned = transpose(linear)
        v, w = ({i.key: random_inputs(d, seed + 1)[i.key] for i in d.head.inputs} for d in (linear, turned))
        jv, jtw = run(linear, at | v), run(turned, at | w)
        left, right = sum(inner(w[k.dual()], jv[k]) for k in jv), sum(inner(v[k], jtw[k.dual()]) for k in v)
        tolerance = 1e-5 if dtype == "f32" else 1e-12
        assert abs(left - right) <= tolerance * (1 + abs(left))
        assert_alike(run(transpose(turned), at | v), jv, tolerance)

    hold(20, law, st.integers(0, 10**6), check=10)


@pytest.mark.parametrize(
    "name", ["by Newton's method", "by a given solver", "several", "in one another", "fixed point", "fixed point by given solvers"]
)
def test_batches(name: str) -> None:
    solved, _, at = ROOTS[name]
    doc = traced(solved, at)
    for derive in ("values", "reverse", "forward over reverse"):
        derived = DERIVATIVES[derive](doc, ["a"])
        items = np.stack([np.asarray(at["a"]) * k for k in (1.0, 1.5, 2.0)])
        together = api.evaluate(derived, {"a": items}, batch={"a": 0})
        for k, item in enumerate(items):
            for key, x in api.evaluate(derived, {"a": item}).items():
                np.testing.assert_allclose(together[key][k], x, rtol=1e-9)


@pytest.mark.parametrize("batched", [("a",), ("b",), ("a", "b")])
def test_a_batch_of_systems_solves_each(batched: tuple[str, ...]) -> None:
    at = {"a": np.stack([MATRIX, MATRIX.T, 2 * MATRIX]), "b": np.stack([RIGHT, -RIGHT, RIGHT**2])}
    given = {k: x if k in batched else x[0] for k, x in at.items()}
    doc = api.trace(lambda a, b: api.linear_solve(lambda x: a @ x, b)[0] ** 2, "f64[4,4]", "f64[4]")
    for derived in (doc, api.grad(doc, ["a", "b"]), api.hvp(doc, ["b"])):
        rest = {str(i.key): np.ones(i.type.shape) for i in derived.head.inputs if str(i.key) not in at}  # type: ignore[union-attr]
        together = api.evaluate(derived, {**given, **rest}, batch=dict.fromkeys(batched, 0))
        for k in range(3):
            item = {name: x[k] if name in batched else x for name, x in given.items()}
            for key, x in api.evaluate(derived, {**item, **rest}).items():
                np.testing.assert_allclose(together[key][k], x, rtol=1e-9, atol=1e-12)


def test_many_unknowns_are_solved_without_a_matrix() -> None:
    """A x = a x - x shifted / 3, forward and reverse, against the matrix; and a system that does not converge is NaN."""
    n = solvers.DENSE + 2
    a, b = 1 + RANDOM.random(n), RANDOM.normal(size=n)

    def loss(a: Any, b: Any) -> Any:
        return np.sum(api.linear_solve(lambda x: a * x - np.roll(x, 1) / 3, b) ** 2)

    doc = api.trace(loss, f"f64[{n}]", f"f64[{n}]")
    matrix = np.diag(a) - np.roll(np.eye(n), 1, axis=0) / 3
    x = np.linalg.solve(matrix, b)
    right = np.linalg.solve(matrix.T, 2 * x)
    gradient = api.evaluate(api.grad(doc, ["a", "b"]), {"a": a, "b": b})
    np.testing.assert_allclose(gradient["b@-1"], right, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gradient["a@-1"], -right * x, rtol=1e-9, atol=1e-9)
    for scale in (1e-200, 1e200):
        small = api.trace(lambda a, b: api.linear_solve(lambda x: a * x - np.roll(x, 1) / 3, b), f"f64[{n}]", f"f64[{n}]")
        np.testing.assert_allclose(api.evaluate(small, {"a": a, "b": b * scale})["y"] / scale, x, rtol=1e-9, atol=1e-9)
    for bad in ({"a": a * 0 + 1 / 3, "b": b}, {"a": a, "b": b * np.inf}, {"a": a * np.nan, "b": b}):
        assert np.isnan(api.evaluate(doc, bad)["y"])


def test_maps_that_are_linear_over_the_reals_alone() -> None:
    """2 z + conj z = b has z = Re b / 3 + i Im b."""
    doc = api.trace(lambda b: api.linear_solve(lambda z: 2 * z + np.conj(z), b), "c128[2]")
    b = np.array([3 + 1j, -6 - 2j])
    np.testing.assert_allclose(api.evaluate(doc, {"b": b})["y"], b.real / 3 + 1j * b.imag, rtol=1e-14)


def test_a_root_that_is_not_there_is_nan() -> None:
    doc = api.trace(lambda a: api.root(lambda x: x * x + a * a + 1, 0.5), "f64[]")
    for derived in (doc, api.grad(doc, "a"), api.hessian(doc, "a")):
        assert all(np.isnan(x).all() for x in api.evaluate(derived, {"a": 1.0}).values())
    assert np.isnan(api.fixed_point(lambda x: 1 - x, 0.25))
    assert np.isnan(api.evaluate(api.trace(lambda a: api.root(lambda x: x * x + a, 1.0), "f64[]"), {"a": 1.0})["y"])  # by way of ∞


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1.0, 1e20])
@pytest.mark.parametrize("dtype", ["f64", "f32", "f16"])
def test_newton_ends_by_the_size_of_the_root(scale: float, dtype: str) -> None:
    """Of roots that are tiny, and of such that rounding leaves no better than 0."""
    if dtype != "f64":
        scale = float(np.sign(np.log10(scale))) * 2 + 3  # 1, 3 or 5
    doc = api.trace(lambda a: api.root(lambda x: x * (x / a) - a, 3 * a), f"{dtype}[]")
    epsilon = {"f64": 1e-14, "f32": 1e-6, "f16": 4e-3}[dtype]
    assert abs(api.evaluate(doc, {"a": scale})["y"] / scale - 1) <= epsilon
    doc = api.trace(lambda a: api.root(lambda x: np.sin(x + a) - np.sin(a), 0 * a), f"{dtype}[]")
    assert abs(api.evaluate(doc, {"a": 1.25})["y"]) <= epsilon


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_an_iteration_ends_by_the_size_of_the_fixed_point(scale: float) -> None:
    for dtype, epsilon in (("f64", 1e-14), ("f32", 1e-6), ("c128", 1e-14), ("c64", 1e-6)):
        at = 1.0 if dtype in ("f32", "c64") else scale
        doc = api.trace(lambda a: api.fixed_point(lambda x: (x + a * (a / x)) / 2, 3 * a), f"{dtype}[]")
        assert abs(api.evaluate(doc, {"a": at})["y"] / at - 1) <= epsilon
    doc = api.trace(lambda a: api.fixed_point(lambda x: 0.7 * x + np.sin(x + a) / 9 - np.sin(a) / 9, a), "f64[]")
    assert abs(api.evaluate(doc, {"a": 1.25})["y"]) <= 1e-14  # where rounding leaves no better
    turned = np.array([[np.cos(1), -np.sin(1)], [np.sin(1), np.cos(1)]]) * 0.99
    doc = api.trace(lambda b: api.fixed_point(lambda x: turned @ x + b, b), "f64[2]")  # the greatest of a step goes up and down
    due = np.linalg.solve(np.eye(2) - turned, [1.0, 2.0])
    np.testing.assert_allclose(api.evaluate(doc, {"b": [1.0, 2.0]})["y"], due, rtol=1e-13)


def test_what_leads_away_from_a_fixed_point_is_nan() -> None:
    """Nothing else is tried: 2 x - sin x has the fixed point 0."""
    doc = api.trace(lambda a: api.fixed_point(lambda x: 2 * x - a * np.sin(x), 0.25), "f64[]")
    for derived in (doc, api.grad(doc, "a")):
        assert all(np.isnan(x) for x in api.evaluate(derived, {"a": 1.0}).values())


def test_a_gradient_holds_no_steps_of_a_solver() -> None:
    """10,000 steps on 2,050 numbers: 164 MB if they were kept."""
    n, steps = solvers.DENSE + 2, 10_000

    def solve(f: Function, x: Any) -> Any:
        return api.fori_loop(0, steps, lambda i, x: f(x), x)

    doc = api.trace(lambda a: np.sum(api.fixed_point(lambda x: np.sin(x) / 2 + a, np.zeros(n), solve)), f"f64[{n}]")
    gradient = api.grad(doc, "a")
    a = np.ones(n)
    api.evaluate(gradient, {"a": a})  # plans are made once, and modules imported
    tracemalloc.start()
    result = api.evaluate(gradient, {"a": a})["a@-1"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    x = api.fixed_point(lambda x: np.sin(x) / 2 + 1, 0.0)
    np.testing.assert_allclose(result, 1 / (1 - np.cos(x) / 2), rtol=1e-12)
    assert peak <= 100 * n * 8, peak


@pytest.mark.parametrize("form", ["json", "msgpack"])
def test_files(form: str, tmp_path: Any) -> None:
    doc = api.grad(api.trace(lambda a: ROOTS["by a given solver"][0](a) + heron(a), "f64[]"), "a")
    api.save(doc, tmp_path / f"d.{form}")
    again = api.load(tmp_path / f"d.{form}")
    assert api.diff(again, doc)["same"] and api.check(again)["ok"]
    assert_same(again, doc, {"a": 2.0}, 0)
    assert api.diff(materialize(again), doc)["same"]


def test_where_nothing_is_traced() -> None:
    assert np.allclose(api.root(lambda x: x * x - 2, 1), np.sqrt(2))
    assert np.allclose(api.fixed_point(np.cos, 1), 0.7390851332151607)
    assert np.allclose(api.linear_solve(lambda x: MATRIX @ x, RIGHT), np.linalg.solve(MATRIX, RIGHT))
    assert api.root(lambda x: x - 1, 0.0, lambda f, x: x + 5) == 5


def test_check_tries_reverse_mode_though_a_solver_is_a_while() -> None:
    doc = api.trace(lambda b: api.linear_solve(lambda x: MATRIX @ x, b, until_still, until_still), "f64[4]")
    laws = api.check(doc, "numeric", inputs={"b": RIGHT})["numeric"]
    assert laws["adjoint"]["ok"] and laws["adjoint"]["error"] is not None


def test_in_a_while_forward() -> None:
    def loop(a: Any) -> Any:
        return api.while_loop(lambda s: s[1] < 3, lambda s: (sqrt(s[0] * a), s[1] + 1), (a, 0))[0]

    doc = api.trace(loop, "f64[]")
    given = api.evaluate(api.jvp(doc, "a"), {"a": 2.5, "a@1": 1.0})
    assert abs(given["y@1"] - 1) <= 1e-12  # as it is a
    with pytest.raises(MissingRuleError, match="has no transpose"):
        api.grad(doc, "a")


REFUSED = {
    "linear in b": (lambda b: api.linear_solve(lambda x: x * x, b), "not known to be linear in the unknowns"),
    "affine": (lambda b: api.linear_solve(lambda x: x + 1, b), "not known to be linear in the unknowns|zero"),
    "another shape": (lambda b: api.root(lambda x: x[0], b), "carries 'x' as"),
    "another structure": (lambda b: api.root(lambda x: (x, x), b), "is a tuple as"),
    "integers": (lambda b: api.root(lambda x: x, b, lambda f, x: (x, 1)), "is a tuple as"),
    "another shape of a fixed point": (lambda b: api.fixed_point(lambda x: x[0], b), "carries 'x' as"),
    "no unknowns": (lambda b: api.root(lambda x: x, {}), "has no unknowns"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    function, why = REFUSED[name]
    with pytest.raises(TiduError, match=why):
        api.trace(function, "f64[2]")


def test_a_file_that_claims_a_map_to_be_linear_is_refused() -> None:
    graph = an_equation()["f"].to_data(binary=False)
    node = {"op": "linear_solve", "inputs": [0, 0], "attrs": {"num_consts": 1, "matvec": graph}}
    data = {
        "tidu": 1,
        "graphs": [
            {"name": "f", "inputs": [{"key": "a", "type": "f64[]"}], "nodes": [node], "outputs": [{"key": "y", "value": 1}]}
        ],
    }
    with pytest.raises(TiduError, match=r"node 0 \(linear_solve\): its matvec: .*linear in the unknowns"):
        parse_document(json.dumps(data).encode(), "d")


@pytest.mark.parametrize("steps", [2, 30])
def test_check_says_where_a_solver_has_not_converged(steps: int) -> None:
    def few(f: Function, x: Any) -> Any:
        return api.fori_loop(0, steps, lambda i, x: x - f(x) / (2 * x), x)

    def again(f: Function, x: Any) -> Any:
        return api.fori_loop(0, steps, lambda i, x: f(x), x)

    def jacobi(matvec: Function, b: Any) -> Any:
        return api.fori_loop(0, steps, lambda i, x: x + (b - matvec(x)) / 3, b)

    for function, why in (
        (lambda a: api.root(lambda x: x * x - a, 1.0, few), r"\(root\): its residual is .* Newton step"),
        (lambda a: api.fixed_point(lambda x: (x + a / x) / 2, 1.0, again), r"\(fixed_point\): its residual is .* Newton step"),
        (lambda a: api.linear_solve(lambda x: a * x, 1.0, jacobi), r"\(linear_solve\): its solution leaves a residual"),
    ):
        report = json.dumps(api.check(api.trace(function, "f64[]"), parts=["numeric"], inputs={"a": 2.5}))
        assert bool(re.search(why, report)) is (steps == 2)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: api.root(lambda x: x * x - a, a),
        lambda a: api.fixed_point(lambda x: x / 2 + a, a),
        lambda a: api.linear_solve(lambda x: 3 * x, a),
    ],
    ids=["root", "fixed_point", "linear_solve"],
)
@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32", "c64"])
def test_check_knows_the_rounding_of_each_dtype(function: Function, dtype: str) -> None:
    report = api.check(api.trace(lambda a: function(a), a=f"{dtype}[2]"), ["numeric"], {"a": [1, 2]})
    assert report["ok"] and "has not converged" not in json.dumps(report)
