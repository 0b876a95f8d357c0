"""Laws of linear algebra, and its edges: what defines factors is so of their derivatives; theirs are of perturbation theory."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.graphs.templates import apply, inner, jvp, make_case, type_of
from tests.tiers import examples
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.errors import TiduError
from tidu_cli.graph.keys import Key
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

TOLERANCE = 1e-9
"""Of matrices as below: their condition numbers, and those of their eigenvectors, are up to 10⁴."""


def adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def numbers(shape: tuple[int, ...], kind: str) -> Any:
    parts = arrays(np.float64, (2, *shape), elements=st.integers(-64, 64).map(lambda k: k / 64))
    return parts.map(lambda x: x[0] + 1j * x[1] if kind == "c" else x[0])


@st.composite
def matrices(draw: Any, shapes: Any = ((3, 3), (4, 2), (2, 4), (1, 1), (2, 2, 2))) -> tuple[Any, Any]:
    """A matrix whose leading columns, eigenvalues and singular values are apart, and a direction."""
    shape, kind = draw(st.sampled_from(shapes)), draw(st.sampled_from("fc"))
    x, t = draw(numbers(shape, kind)), draw(numbers(shape, kind))
    return x / 2 + np.eye(*shape[-2:]) * 3 * np.arange(1, 1 + shape[-1]), t


SQUARE = ((3, 3), (1, 1), (2, 2, 2))


def results(op: str, x: Any, t: Any, **attrs: Any) -> tuple[list[Any], list[Any]]:
    case = make_case(op, attrs, [type_of(x)])
    return apply(case, [x]), jvp(case, [x], [t])


def close(actual: Any, expected: Any) -> None:
    scale = max(np.abs(expected).max(initial=0), 1)
    np.testing.assert_allclose(actual, expected, TOLERANCE, TOLERANCE * scale)


@given(matrices(), st.booleans())
def test_qr(drawn: tuple[Any, Any], full: bool) -> None:
    x, t = drawn
    (q, r), (dq, dr) = results("qr", x, t, full_matrices=full)
    close(dq @ r + q @ dr, t)
    close(adjoint(q) @ dq + adjoint(dq) @ q, 0 * adjoint(q) @ q)
    close(np.tril(dr, -1), 0 * dr)
    assert not np.diagonal(dr, axis1=-2, axis2=-1).imag.round(9).any()


@settings(max_examples=examples(2000, check=60))
@given(matrices(), st.booleans())
def test_svd(drawn: tuple[Any, Any], full: bool) -> None:
    x, t = drawn
    (s, u, vh), (ds, du, dvh) = results("svd", x, t, full_matrices=full)
    k = s.shape[-1]
    u1, du1, v1, dv1 = u[..., :k], du[..., :k], vh[..., :k, :], dvh[..., :k, :]
    close((du1 * s[..., None, :]) @ v1 + (u1 * ds[..., None, :]) @ v1 + (u1 * s[..., None, :]) @ dv1, t)
    close(adjoint(u) @ du + adjoint(du) @ u, 0 * adjoint(u) @ u)
    close(vh @ adjoint(dvh) + dvh @ adjoint(vh), 0 * vh @ adjoint(vh))
    close(results("svd", x, t, compute_uv=False)[1][0], ds)


@settings(max_examples=examples(2000, check=60))
@given(matrices(SQUARE), st.booleans())
def test_perturbed_eigenvalues(drawn: tuple[Any, Any], lower: bool) -> None:
    """w′ = vᴴ A′ v, and for general matrices uᴴ A′ v / uᴴ v, with left eigenvectors u."""
    x, t = drawn
    half = np.tril if lower else np.triu
    whole, moved = ((half(a) + adjoint(half(a))) / 2 for a in (x, t))
    (v, w), (dv, dw) = results("eigh", whole, moved, lower=lower)
    close(dw, np.einsum("...ik,...ij,...jk->...k", v.conj(), moved, v).real)
    close(moved @ v + whole @ dv, dv * w[..., None, :] + v * dw[..., None, :])
    (w, u, v), (dw, du, dv) = results("eig", x, t)
    close(dw, np.einsum("...ik,...ij,...jk->...k", u.conj(), t, v) / np.einsum("...ik,...ik->...k", u.conj(), v))
    close(t @ v + x @ dv, dv * w[..., None, :] + v * dw[..., None, :])
    close(adjoint(du) @ x + adjoint(u) @ t, dw[..., None] * adjoint(u) + w[..., None] * adjoint(du))
    close((v.conj() * dv).sum(-2).real, 0 * w.real)


@settings(max_examples=examples(60))
@given(matrices(SQUARE))
def test_determinants(drawn: tuple[Any, Any]) -> None:
    """Jacobi's formula, and det expm A = e^tr A."""
    x, t = drawn
    determinant, moved = both(np.linalg.det, x, t)
    close(moved, determinant * np.trace(np.linalg.solve(x, t), axis1=-2, axis2=-1))
    (y,), (dy,) = results("expm", x / 8, t / 8)
    close(np.linalg.det(y), np.exp(np.trace(x / 8, axis1=-2, axis2=-1)))
    close(np.trace(np.linalg.solve(y, dy), axis1=-2, axis2=-1), np.trace(t / 8, axis1=-2, axis2=-1))


@settings(max_examples=examples(60))
@given(matrices(SQUARE))
def test_matrix_functions_are_inverse_to_one_another(drawn: tuple[Any, Any]) -> None:
    x, t = drawn
    (y,), (dy,) = results("logm", x, t)
    (back,), (dx,) = results("expm", y, dy)
    close(back, x)
    close(dx, t)
    (y,), (dy,) = results("sqrtm", x, t)
    close(y @ y, x)
    close(dy @ y + y @ dy, t)


@given(matrices(((3, 3), (4, 2), (2, 2, 2))))
def test_polar_factors(drawn: tuple[Any, Any]) -> None:
    x, t = drawn
    (u, p), (du, dp) = results("polar", x, t)
    close(du @ p + u @ dp, t)
    close(adjoint(u) @ du + adjoint(du) @ u, 0 * p)
    close(dp, adjoint(dp))


@given(matrices())
def test_pseudoinverses(drawn: tuple[Any, Any]) -> None:
    """The derivatives of Penrose's four equations."""
    x, t = drawn
    (p,), (dp,) = results("pinv", x, t, rtol=1e-12)
    close(t @ p @ x + x @ dp @ x + x @ p @ t, t)
    close(dp @ x @ p + p @ t @ p + p @ x @ dp, dp)
    close(t @ p + x @ dp, adjoint(t @ p + x @ dp))
    close(dp @ x + p @ t, adjoint(dp @ x + p @ t))


def both(function: Any, x: Any, t: Any) -> tuple[Any, Any]:
    """The value of a traced function, and its derivative."""
    document = trace(lambda x: function(x), x)
    value = run(document, {Key("x"): x})[0]
    return value, run(linearize(document, [Key("x")]), {Key("x"): x, Key("x").tangent(1): t})[0]


def run(document: Any, given: dict[Key, Any]) -> list[Any]:
    graph = materialize(document).head
    values = evaluate(graph, {i.key: given[i.key] for i in graph.inputs})
    return [np.asarray(values[o.key]) for o in graph.outputs]


INVARIANT = {
    "a projector on eigenvectors": (lambda x: (v := np.linalg.eigh(x + x.mT.conj())[1][:, :2]) @ v.mT.conj(), (3, 3)),
    "a function of a Hermitian matrix": (lambda x: of_hermitian(x + x.mT.conj()), (3, 3)),
    "singular vectors together": (lambda x: (f := np.linalg.svd(x, full_matrices=False))[0] @ f[2], (4, 2)),
    "overlaps of eigenvectors": (lambda x: abs((v := np.linalg.eig(x)[1]).mT.conj() @ v), (3, 3)),
    "the space that svd leaves": (lambda x: (u := np.linalg.svd(x)[0][:, 2:]) @ u.mT.conj(), (4, 2)),
}


def of_hermitian(x: Any) -> Any:
    w, v = np.linalg.eigh(x)
    return (v * np.sin(w)) @ v.mT.conj()


@pytest.mark.parametrize("name", INVARIANT)
def test_what_does_not_depend_on_phases_has_a_derivative_of_its_own(name: str) -> None:
    """By complex steps along a line, for which functions are written without phases; forward, and in reverse."""
    function, shape = INVARIANT[name]
    rng = np.random.default_rng(4)
    x = rng.normal(size=shape) + 1j * rng.normal(size=shape) + np.eye(*shape) * 2
    t = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    value, moved = both(function, x, t)
    steps = [2.0**-k for k in (6, 7, 8, 9)]
    table = [(function(x + h * t) - function(x - h * t)) / (2 * h) for h in steps]
    for order in range(1, 4):
        table = [(4**order * b - a) / (4**order - 1) for a, b in itertools.pairwise(table)]
    np.testing.assert_allclose(moved, table[0], 1e-8, 1e-8)
    document = trace(lambda x: function(x), x)
    u = rng.normal(size=value.shape) + (1j * rng.normal(size=value.shape) if value.dtype.kind == "c" else 0)
    (pulled,) = run(transpose(linearize(document, [Key("x")])), {Key("x"): x, document.head.outputs[0].key.cotangent(1): u})
    np.testing.assert_allclose(inner(u, moved), inner(pulled, t), 1e-12)


D = np.diag([3.0, 2.0, 1.0])
REPEATED = {
    "eigenvalues": (np.linalg.eigvalsh, [3.0, 2.0, 1.0]),
    "singular values": (np.linalg.svdvals, [3.0, 2.0, 1.0]),
    "the nuclear norm": (lambda x: np.linalg.norm(x, "nuc"), 6.0),
    "the pseudoinverse": (np.linalg.pinv, -D / 4),
    "polar factors": (lambda x: scipy.linalg.polar(x)[0], 0 * D),
    "the square root": (scipy.linalg.sqrtm, D / 2 / 2**0.5),
    "the logarithm": (scipy.linalg.logm, D / 2),
    "least squares": (lambda x: np.linalg.lstsq(x, np.ones(3))[0], -np.diag(D) / 4),
}


@pytest.mark.parametrize("name", REPEATED)
def test_where_values_repeat_first_derivatives_are_right(name: str) -> None:
    """At 2, along a diagonal matrix, which keeps the vectors."""
    function, expected = REPEATED[name]
    _, moved = both(function, 2 * np.eye(3), D)
    moved = np.sort(moved)[::-1] if "values" in name else moved  # they are in no order
    np.testing.assert_allclose(moved, expected, 1e-12, 1e-12)


@pytest.mark.parametrize(
    ("op", "attrs", "x"),
    [
        ("eigh", {}, np.eye(2)),
        ("svd", {}, np.eye(2)),
        ("eig", {}, np.eye(2)),
        ("qr", {}, np.zeros((2, 2))),
        ("qr", {}, np.ones((3, 2)) * [1, 0]),
        ("polar", {}, np.zeros((3, 2))),
    ],
)
def test_derivatives_that_do_not_exist_are_not_finite(op: str, attrs: dict[str, Any], x: Any) -> None:
    rng = np.random.default_rng(0)
    case = make_case(op, attrs, [type_of(x)])
    with np.errstate(all="ignore"):
        tangents = jvp(case, [x], [rng.normal(size=x.shape)])
    assert not all(np.isfinite(y).all() for y in tangents if y is not None)


@pytest.mark.parametrize(
    ("op", "operands"),
    [
        ("svd", [np.nan]),
        ("eigh", [np.nan]),
        ("eig", [np.inf]),
        ("schur", [np.nan]),
        ("expm", [np.nan]),
        ("logm", [np.nan]),
        ("sqrtm", [np.inf]),
        ("pinv", [np.nan]),
        ("polar", [np.nan]),
        ("expm_frechet", [np.nan, 1.0]),
        ("logm_frechet", [np.inf, 1.0]),
        ("solve_sylvester", [np.nan, 1.0, 1.0]),
    ],
)
def test_of_a_batch_only_what_is_not_finite_suffers(op: str, operands: list[float]) -> None:
    good = [np.diag([1.0, 2.0]), np.diag([3.0, 4.0]), np.ones((2, 2))][: len(operands)]
    attrs = {"rtol": 1e-9} if op == "pinv" else {}
    batch = [np.stack([x, np.full((2, 2), bad)]) for x, bad in zip(good, operands, strict=True)]
    wholes = apply(make_case(op, attrs, [type_of(x) for x in batch]), batch)
    expected = apply(make_case(op, attrs, [type_of(x) for x in good]), good)
    for whole, one in zip(wholes, expected, strict=True):
        np.testing.assert_allclose(whole[0], one, 1e-14)
        assert np.isnan(whole[1]).all()


def test_what_has_no_solution_is_nan() -> None:
    a = np.diag([1.0, -2.0])
    (solution,) = apply(make_case("solve_sylvester", {}, [type_of(a)] * 3), [a, np.diag([2.0, 5.0]), np.ones((2, 2))])
    assert np.isnan(solution).all()
    for op in ("logm", "sqrtm"):
        assert np.isnan(apply(make_case(op, {}, [type_of(a)]), [a])[0]).all()
    assert np.isnan(apply(make_case("logm", {}, [type_of(a)]), [np.zeros((2, 2))])[0]).all()


def test_schur_forms_have_no_derivative() -> None:
    document = trace(lambda x: scipy.linalg.schur(x)[0], "f64[3,3]")
    with pytest.raises(TiduError, match=r"node 0 \(schur\)"):
        linearize(document, [Key("x")])


@pytest.mark.parametrize("order", [1, 2, 3])
def test_expm_to_any_order(order: int) -> None:
    """d/dt expm(t A) = A expm(t A), repeatedly; by linearizing again and again."""
    a = np.array([[0.3, -1.0], [0.5, 0.2]])
    document = trace(lambda t: scipy.linalg.expm(t * a), np.float64(0.7))
    given = {Key("t"): np.float64(0.7)}
    key = Key("t")
    for k in range(1, order + 1):
        document = linearize(document, [key])
        given[key.tangent(k)] = np.float64(1.0)
    (derivative,) = run(document, given)
    np.testing.assert_allclose(derivative, np.linalg.matrix_power(a, order) @ scipy.linalg.expm(0.7 * a), 1e-13)


@pytest.mark.parametrize(
    ("op", "types", "attrs", "message"),
    [
        ("svd", ["f64[3]"], {}, "takes matrices, got f64[3]"),
        ("eigh", ["f64[2,3]"], {}, "takes square matrices, got f64[2,3]"),
        ("expm", ["f16[2,2]"], {}, "input 0 has type f16[2,2]"),
        ("expm_frechet", ["f64[2,2]", "f64[3,3]"], {}, "type mismatch: input 0 is f64[2,2], input 1 is f64[3,3]"),
        ("polar", ["f64[2,3]"], {}, "at least as many rows as columns, got f64[2,3]; take that of the conjugate transpose"),
        ("solve_sylvester", ["f64[2,2]", "f64[3,3]", "f64[3,2]"], {}, "solves a x + x b = c, so c must be f64[2,3]"),
        ("lu_pivots_to_permutation", ["i32[4]"], {"permutation_size": 3}, "takes at most 3 pivots (permutation_size)"),
        ("pinv", ["f64[2,2]"], {"rtol": -1.0}, "rtol"),
    ],
)
def test_what_does_not_fit_is_refused(op: str, types: list[str], attrs: dict[str, Any], message: str) -> None:
    from tidu_cli.graph.types import parse_type

    with pytest.raises(TiduError) as caught:
        BUILTIN.case(op, BUILTIN.parse_attrs(op, attrs), None, [parse_type(t) for t in types])
    assert message in str(caught.value)
