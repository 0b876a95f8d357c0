"""Linear systems, inverses, determinants and factors: NumPy's values, and derivatives by difference quotients."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from tests.build.comparing import assert_same, check, formula, traced
from tidu_cli.adapters.numpy.formulas.formula import build_formula
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.checking.numeric.laws import check_numerically
from tidu_cli.errors import TiduError
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import parse_type
from tidu_cli.lax.vocabulary import BUILTIN

RNG = np.random.default_rng(11)
A = RNG.normal(size=(2, 4, 4))
B, V = RNG.normal(size=(2, 4, 3)), RNG.normal(size=4)
C = A + 1j * RNG.normal(size=A.shape)
SPD = A @ A.mT + np.eye(4)
HERMITIAN = C @ C.mT.conj() + np.eye(4)
CUBE, SIX = RNG.normal(size=(2, 3, 6)), RNG.normal(size=(2, 3))

CALLS = {
    "solve": (np.linalg.solve, A, B),
    "solve for a vector": (np.linalg.solve, A[0], V),
    "solve many for one vector": (np.linalg.solve, A, V),
    "solve one for many": (np.linalg.solve, A[0], B),
    "solve with a batch of one": (np.linalg.solve, A[:1], B),
    "solve complex": (np.linalg.solve, C, B),
    "solve for constants": (lambda a: np.linalg.solve(a, [1, 2, 3, 4]), A[0]),
    "solve constants": (lambda b: np.linalg.solve([[1, 2], [3, 4]], b), V[:2]),
    "solve nothing": (np.linalg.solve, np.zeros((0, 0)), np.zeros((0, 2))),
    "inv": (np.linalg.inv, C),
    "inv of integers": (np.linalg.inv, np.array([[1, 2], [3, 4]])),
    "inv in single precision": (np.linalg.inv, np.array([[1, 2], [3, 4]], np.float32)),
    "det": (np.linalg.det, A),
    "det, complex": (np.linalg.det, C),
    "det of a singular matrix": (np.linalg.det, np.ones((3, 3))),
    "det of empty matrices": (np.linalg.det, np.zeros((2, 0, 0))),
    "det of exchanged rows": (np.linalg.det, np.eye(4)[[1, 2, 0, 3]][:, ::-1]),
    "slogdet": (lambda a: np.linalg.slogdet(a).logabsdet, C),
    "slogdet's sign": (lambda a: np.linalg.slogdet(a)[0], C),
    "slogdet's sign, real": (lambda a: np.linalg.slogdet(a).sign, A),
    "slogdet of a singular matrix": (lambda a: np.linalg.slogdet(a).logabsdet, np.zeros((2, 2))),
    "cholesky": (np.linalg.cholesky, SPD),
    "cholesky, complex": (np.linalg.cholesky, HERMITIAN),
    "cholesky, upper": (lambda a: np.linalg.cholesky(a, upper=True), HERMITIAN),
    "cholesky reads the lower triangle": (np.linalg.cholesky, np.tril(SPD)),
    "cholesky, upper, reads the upper triangle": (lambda a: np.linalg.cholesky(a, upper=True), np.triu(SPD)),
    "matrix_power": (lambda a: np.linalg.matrix_power(a, -3), A),
    "tensorsolve": (np.linalg.tensorsolve, CUBE, SIX),
    "tensorsolve along axes": (lambda a, b: np.linalg.tensorsolve(a, b, axes=(0,)), np.moveaxis(CUBE, 2, 0), SIX),
    "tensorinv": (lambda a: np.linalg.tensorinv(a, ind=2), CUBE),
}


@pytest.mark.parametrize("name", CALLS)
def test_values(name):
    function, *operands = CALLS[name]
    check(function, *operands)


@pytest.mark.parametrize("name", [n for n in CALLS if "singular" not in n and "empty" not in n and "nothing" not in n])
def test_derivatives(name):
    function, *operands = CALLS[name]
    operands = [np.asarray(x, np.result_type(x, np.float64)) for x in operands]
    given = {Key(f"x.{k}"): x for k, x in enumerate(operands)}
    verdicts = check_numerically(trace(lambda x: function(*x), operands), BUILTIN, given=given)
    assert verdicts
    assert all(v.ok and v.error is not None for v in verdicts), verdicts


@pytest.mark.parametrize("trans", [0, 1, 2])
@pytest.mark.parametrize("lower", [True, False])
def test_triangular_systems_in_formulas(trans, lower):
    a, b = C[0] + 3 * np.eye(4), B[0] + 0j
    expected = scipy.linalg.solve_triangular(a, b, trans, lower, unit_diagonal=True)
    assert_same(formula(f"solve_triangular(a, b, {trans}, {lower}, unit_diagonal=True)", a=a, b=b), expected)
    expected = scipy.linalg.solve_triangular(a, b[:, 0], trans=trans, lower=lower)
    assert_same(formula(f"solve_triangular(a, b, trans={trans}, lower={lower})", a=a, b=b[:, 0]), expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("solve(x, b)", np.linalg.solve(SPD[0], V)),
        ("inv(x) @ b", np.linalg.inv(SPD[0]) @ V),
        ("det(x) + 0 * b", np.linalg.det(SPD[0]) + 0 * V),
        ("slogdet(x)[1] * b", np.linalg.slogdet(SPD[0]).logabsdet * V),
        ("cholesky(x) @ b", np.linalg.cholesky(SPD[0]) @ V),
        ("matrix_power(x, -2) @ b", np.linalg.matrix_power(SPD[0], -2) @ V),
    ],
)
def test_formulas(text, expected):
    assert_same(formula(text, x=SPD[0], b=V), expected)


def test_the_array_api():
    def model(x):
        xp = x.__array_namespace__()
        sign, logarithm = xp.linalg.slogdet(x)
        return (
            sign * logarithm + xp.linalg.det(x) + xp.sum(xp.linalg.solve(x, xp.linalg.inv(x)) + xp.linalg.cholesky(x, upper=True))
        )

    value = traced(model, SPD[0])
    x = SPD[0]
    expected = (
        np.linalg.slogdet(x).logabsdet + np.linalg.det(x) + np.sum(np.linalg.solve(x, np.linalg.inv(x)) + np.linalg.cholesky(x).T)
    )
    assert_same(value, expected)


def test_one_factorization_serves_all():
    """Equal nodes are one: a matrix is factored once, however often systems with it are solved."""
    document = trace(lambda a, b: np.linalg.solve(a, np.linalg.solve(a, b)) * np.linalg.det(a), a=A[0], b=V)
    graph = document.head
    assert [document.cases[code].op for code in graph.code].count("lu") == 1


def test_right_hand_sides_do_not_repeat_the_matrix():
    document = trace(np.linalg.solve, a=A[0], b=B)
    types = [
        t for code in document.head.code for t in document.cases[code].operands if document.cases[code].op == "triangular_solve"
    ]
    assert {str(t) for t in types} == {"f64[4,4]", "f64[4,6]"}


def test_no_factor_is_nan():
    assert np.isnan(traced(lambda x: np.linalg.cholesky(x), np.array([[1.0, 2.0], [2.0, 1.0]]))[0, 0])


@pytest.mark.parametrize(
    ("text", "types", "message"),
    [
        ("inv(x)", {"x": "f64[3,2]"}, "inv takes square matrices, got f64[3,2]"),
        ("inv(x)", {"x": "f16[2,2]"}, "inv takes f32, f64, c64 and c128, got f16[2,2]; convert it first"),
        ("solve(x, y)", {"x": "f64[3,3]", "y": "f64[2]"}, "as many rows on the right as on the left, got f64[3,3] and f64[2]"),
        ("solve(x, y)", {"x": "f64[3,3]", "y": "f64[]"}, "got a number"),
        ("solve(x, y)", {"x": "f64[2,3,3]", "y": "f64[5,3,1]"}, "broadcast"),
        ("slogdet(x)", {"x": "f64[2,2]"}, "gives 2 arrays; name them"),
        ("solve_triangular(x, x, 3)", {"x": "f64[2,2]"}, "trans is 0, 1 or 2"),
        ("solve_triangular(x, x)", {"x": "f64[2,2,2]"}, "takes a matrix and a vector or a matrix"),
        ("matrix_power(x, -10001)", {"x": "f64[2,2]"}, "exponents from -10,000 to 10,000"),
    ],
)
def test_refusals(text, types, message):
    with pytest.raises(TiduError) as caught:
        build_formula(text, {k: parse_type(t) for k, t in types.items()})
    assert message in str(caught.value)
