"""Where eigenvalues or singular values repeat: derivatives of symmetric functions of them, and nothing finite where there is none.

And matrices that are not finite: their results are NaN, and LAPACK neither hangs nor says a word.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.lax.linear_algebra.test_matrices import results, run
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.graph.keys import Key
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose

CYCLE = 2 * np.eye(4) - np.roll(np.eye(4), 1, 0) - np.roll(np.eye(4), -1, 0)
SKEWED = np.array([[1.0, 2, 0], [0, 1, 1], [0, 0, 1]])
SEMISIMPLE = [np.eye(2), CYCLE, SKEWED @ np.diag([2.0, 2.0, 5.0]) @ np.linalg.inv(SKEWED), np.kron(np.eye(2), CYCLE)]
DEFECTIVE = [
    np.array([[1.0, 1], [0, 1]]),
    np.array([[3.0, 1], [-1, 1]]),
    SKEWED @ np.array([[2.0, 1, 0], [0, 2, 0], [0, 0, 5]]) @ np.linalg.inv(SKEWED),
    np.array([[0.0, 1, 0], [0, 0, 1], [0, 0, 0]]),
]
FORMS = {"values": np.linalg.eigvals, "with vectors": lambda x: np.linalg.eig(x)[0]}


def gradient(function: Any, x: Any) -> Any:
    document = trace(lambda x: function(x), x)
    pulled = transpose(linearize(document, [Key("x")]))
    with np.errstate(all="ignore"):
        return run(pulled, {Key("x"): x, document.head.outputs[0].key.cotangent(1): np.float64(1)})[0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("power", [1, 3])
def test_sums_of_powers_of_eigenvalues(form: str, power: int) -> None:
    """Of defective matrices they have gradients, too, which no rule of `eig` can give.

    At [[1, 1], [0, 1]] the sum of w³ and three times the sum of w have the same cotangent, 3 for both values, but different
    gradients: 3 (x²)ᵀ and 3 I. Where values move by the square root of a change, their squares count in the first derivative, and a
    cotangent says nothing of them. A finite answer would be wrong for one of the two.
    """

    def function(x: Any) -> Any:
        return (FORMS[form](x) ** power).real.sum()

    for x in SEMISIMPLE:
        np.testing.assert_allclose(gradient(function, x), power * np.linalg.matrix_power(x, power - 1).T, 1e-11, 1e-11)
    for x in DEFECTIVE:
        assert not np.isfinite(gradient(function, x)).all(), x


def test_an_eigenvalue_beside_a_defective_one() -> None:
    """Of a Leslie matrix, whose last classes have no offspring, the growth rate: uᵀ A' v / uᵀ v."""
    x = np.zeros((5, 5))
    x[0, 1:3], x[1, 0], x[2, 1], x[3, 2], x[4, 3] = (1, 2), 0.5, 0.4, 0.3, 0.2
    (w, v), (rows, u) = np.linalg.eig(x), np.linalg.eig(x.T)
    v, u = v[:, w.real.argmax()].real, u[:, rows.real.argmax()].real
    np.testing.assert_allclose(gradient(lambda x: np.linalg.eigvals(x).real.max(), x), np.outer(u, v) / (u @ v), 1e-12, 1e-12)


@pytest.mark.parametrize(("op", "attrs"), [("eigh", {}), ("svd", {}), ("svd", {"full_matrices": False}), ("eig", {})])
def test_vectors_of_values_that_are_equal_but_for_rounding(op: str, attrs: dict[str, Any]) -> None:
    t = np.random.default_rng(0).normal(size=(4, 4))
    with np.errstate(all="ignore"):
        _, moved = results(op, CYCLE, t, **attrs)
    assert not all(np.isfinite(y).all() for y in moved)


def test_vectors_that_are_not_among_those_that_repeat() -> None:
    """Of three samples in five dimensions: the first principal direction, beside two eigenvalues that are 0."""
    x = np.random.default_rng(1).normal(size=(3, 5))

    def first(x: Any) -> Any:
        v = np.linalg.eigh(x.mT @ x)[1][:, -1]
        return (v * np.arange(5.0)).sum() ** 2

    h, slopes = 1e-6, gradient(first, x)
    steps = [(first(x + h * e) - first(x - h * e)) / (2 * h) for e in np.eye(15).reshape(15, 3, 5)]
    np.testing.assert_allclose(slopes.reshape(-1), steps, 1e-6, 1e-7)


def test_squares_of_singular_values() -> None:
    for x in (CYCLE, np.zeros((3, 2)), np.ones((3, 3)), np.eye(2, 3)):
        np.testing.assert_allclose(gradient(lambda x: (np.linalg.svdvals(x) ** 2).sum(), x), 2 * x, 1e-13, 1e-13)


BAD = """
import resource; resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
import numpy as np
from tests.graphs.templates import apply, make_case, type_of
np.seterr(all="ignore")
ops = {"svd": 1, "eigh": 1, "eig": 1, "schur": 1, "expm": 1, "logm": 1, "sqrtm": 1, "pinv": 1, "polar": 1, "qr": 1,
       "expm_frechet": 2, "logm_frechet": 2, "solve_sylvester": 3}
for op, n in ops.items():
    for bad in (np.inf, -np.inf, np.nan):
        for at in ((1, 0), (1, 1)):
            operands = [np.stack([np.diag([1.0, 2.0]) + k, np.diag([3.0, 4.0])]) for k in range(n)]
            fine = [x.copy() for x in operands]
            operands[0][1][at] = bad
            case = make_case(op, {"rtol": 1e-9} if op == "pinv" else {}, [type_of(x) for x in operands])
            for y, z in zip(apply(case, operands), apply(case, fine)):
                assert np.isnan(y[1]).all(), (op, bad, at)
                np.testing.assert_allclose(y[0], z[0], 1e-13)
"""


def test_matrices_that_are_not_finite_are_nan_and_lapack_is_silent() -> None:
    child = subprocess.run([sys.executable, "-c", BAD], capture_output=True, text=True, check=False)
    assert (child.returncode, child.stdout, child.stderr) == (0, "", "")


@pytest.mark.parametrize("x", [np.ones((3, 3)), np.arange(9.0).reshape(3, 3), np.outer([1.0, 2, 3], [3.0, 1, 2])])
def test_roots_and_polar_factors_of_singular_matrices(x: Any) -> None:
    """These are singular but for rounding."""
    import scipy.linalg

    for function in (lambda x: (scipy.linalg.polar(x)[0] * np.arange(3.0)).sum(), lambda x: scipy.linalg.sqrtm(x @ x.mT).sum()):
        assert not np.isfinite(gradient(function, x)).all()
