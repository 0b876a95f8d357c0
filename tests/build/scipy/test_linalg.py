"""scipy.linalg in traced functions: SciPy's values, and derivatives by difference quotients."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg as sl

from tests.build.comparing import assert_same, check, check_close, traced
from tests.tiers import few
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.checking.numeric.laws import check_numerically
from tidu_cli.errors import TiduError
from tidu_cli.graph.keys import Key
from tidu_cli.lax.vocabulary import BUILTIN

RNG = np.random.default_rng(5)
A = RNG.normal(size=(3, 3))
B, V = RNG.normal(size=(3, 2)), RNG.normal(size=3)
C = A + 1j * RNG.normal(size=A.shape)
SPD, HPD = A @ A.T + np.eye(3), C @ C.T.conj() + np.eye(3)
POSITIVE = SPD + 0.3 * A  # its eigenvalues have positive real parts
TALL, WIDE = RNG.normal(size=(4, 2)), RNG.normal(size=(2, 4))

CALLS = {
    "solve": (sl.solve, A, B),
    "solve, transposed": (lambda a, b: sl.solve(a, b, transposed=True), A, V),
    "solve, positive definite": (lambda a, b: sl.solve(a, b, assume_a="pos"), HPD, B + 1j),
    "solve_triangular": (lambda a, b: sl.solve_triangular(a, b, trans="C", lower=True), C, B + 0j),
    "inv": (sl.inv, C),
    "det": (sl.det, A),
    "cholesky": (sl.cholesky, HPD),
    "cholesky, lower": (lambda a: sl.cholesky(a, lower=True), SPD),
    "cho_factor": (lambda a: np.tril(sl.cho_factor(a, lower=True)[0]), SPD),
    "cho_solve": (lambda a, b: sl.cho_solve(sl.cho_factor(a), b), HPD, B + 1j),
    "cho_solve, lower, vector": (lambda a, b: sl.cho_solve(sl.cho_factor(a, lower=True), b), SPD, V),
    "lu's L": (lambda a: sl.lu(a)[1], A),
    "lu's U": (lambda a: sl.lu(a)[2], WIDE),
    "lu, permuted": (lambda a: sl.lu(a, permute_l=True)[0], TALL),
    "lu, multiplied": (lambda a: sl.lu(a)[0] @ sl.lu(a)[1] * sl.lu(a)[2], C),
    "lu_factor": (lambda a: sl.lu_factor(a)[0], A),
    **{f"lu_solve, {t}": (lambda a, b, t=t: sl.lu_solve(sl.lu_factor(a), b, trans=t), C, B + 0j) for t in (0, 1, 2)},
    "lu_solve for a vector": (lambda a, b: sl.lu_solve(sl.lu_factor(a), b), A, V),
    "qr": (lambda a: sl.qr(a)[0], A),
    "qr, economic": (lambda a: sl.qr(a, mode="economic")[1], TALL),
    "qr, pivoting": (lambda a: sl.qr(a, mode="economic", pivoting=True)[1], TALL),
    "svd": (lambda a: sl.svd(a)[0], A),
    "svdvals": (sl.svdvals, C),
    "eigh": (lambda a: abs(sl.eigh(a)[1]), SPD),
    "eigh for two": (lambda a, b: sl.eigh(a, b)[0], A + A.T, SPD),
    "eigh for two, upper": (lambda a, b: abs(sl.eigh(a, b, lower=False)[1]), C + C.T.conj(), HPD),
    "eigvalsh": (sl.eigvalsh, HPD),
    "eig": (lambda a: sl.eig(a)[1], C),
    "eig, left": (lambda a: sl.eig(a, left=True, right=False)[1], C),
    "eigvals": (sl.eigvals, A),
    "pinv": (sl.pinv, TALL),
    "lstsq": (lambda a, b: sl.lstsq(a, b)[0], TALL, RNG.normal(size=4)),
    "lstsq's residual": (lambda a, b: sl.lstsq(a, b)[1], TALL, RNG.normal(size=4)),
    "norm": (lambda a: sl.norm(a, "nuc"), A),
    "polar": (lambda a: sl.polar(a)[0], C),
    "polar, left": (lambda a: sl.polar(a, side="left")[1], A),
    "polar, wide": (lambda a: sl.polar(a)[0], WIDE),
    "polar, tall, left": (lambda a: sl.polar(a, side="left")[1], TALL),
    "expm": (sl.expm, C),
    "expm, batch": (sl.expm, np.stack([A, 3 * A])),
    "expm_frechet": (lambda a, e: sl.expm_frechet(a, e)[1], A, SPD),
    "expm_frechet alone": (lambda a, e: sl.expm_frechet(a, e, compute_expm=False), A, SPD),
    "logm": (sl.logm, POSITIVE),
    "logm, complex": (sl.logm, HPD + 0.2 * C),
    "sqrtm": (sl.sqrtm, POSITIVE),
    "sqrtm, complex": (sl.sqrtm, HPD + 0.2 * C),
    **{name: (getattr(sl, name), A) for name in ("cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm")},
    **{f"{name}, complex": (getattr(sl, name), C) for name in ("cosm", "sinm", "coshm")},
    "solve_sylvester": (sl.solve_sylvester, POSITIVE, SPD[:2, :2], B),
    "solve_continuous_lyapunov": (sl.solve_continuous_lyapunov, POSITIVE, SPD),
    "solve_discrete_lyapunov": (sl.solve_discrete_lyapunov, A / 3, SPD),
    "solve_discrete_lyapunov, bilinear": (lambda a, q: sl.solve_discrete_lyapunov(a, q, method="bilinear"), C / 4, HPD),
    "toeplitz": (sl.toeplitz, V, RNG.normal(size=4)),
    "toeplitz, Hermitian": (sl.toeplitz, C[0]),
    "hankel": (sl.hankel, V),
    "hankel, with a row": (sl.hankel, V, RNG.normal(size=2)),
    "circulant": (sl.circulant, V),
    "block_diag": (sl.block_diag, A, V, TALL),
    "khatri_rao": (sl.khatri_rao, A, SPD),
}


@pytest.mark.parametrize("name", CALLS)
def test_values(name: str) -> None:
    function, *operands = CALLS[name]
    assert_same(traced(function, *operands), function(*operands), rtol=1e-12)


@pytest.mark.parametrize("name", few(CALLS, 25))
def test_derivatives(name: str) -> None:
    function, *operands = CALLS[name]
    given = {Key(f"x.{k}"): x for k, x in enumerate(operands)}
    verdicts = check_numerically(trace(lambda x: function(*x), operands), BUILTIN, given=given)
    assert verdicts
    assert all(v.ok and v.error is not None for v in verdicts), verdicts


def test_permutations() -> None:
    check(lambda a: sl.lu(a)[0], A)
    check(lambda a: sl.lu(a, p_indices=True)[0], TALL)
    check(lambda a: sl.qr(a, pivoting=True)[2], A)
    check(lambda a: sl.lu_factor(a)[1], A)


def test_schur_forms() -> None:
    check(lambda a: sl.schur(a)[0], A)
    check(lambda a: sl.schur(a, output="complex")[0], SPD)


def test_one_traced_operand_of_several() -> None:
    check(lambda b: sl.solve(A, b), V)
    check(lambda b: sl.cho_solve((np.linalg.cholesky(SPD), True), b), V)
    check(lambda b: sl.lu_solve(sl.lu_factor(A), b), V)
    check(lambda e: sl.expm_frechet(A, e, compute_expm=False), SPD)
    check(lambda x: sl.block_diag(np.eye(2), x), V)


@pytest.mark.parametrize(("lower", "upper"), [(1, 1), (2, 1), (0, 2), (1, 0), (0, 0)])
def test_banded_systems(lower: int, upper: int) -> None:
    ab = np.random.default_rng(7).normal(size=(lower + upper + 1, 5))
    ab[upper] += 4
    for b in (V5, V5[:, None] * [1.0, 2.0], V5 * 1j):
        check_close(lambda b: sl.solve_banded((lower, upper), ab, b), b)
        check_close(lambda a, b=b: sl.solve_banded((lower, upper), a, b, check_finite=False), ab)
        check_close(lambda a, b: sl.solve_banded((lower, upper), a, b), ab, b)


@pytest.mark.parametrize("lower", [False, True])
def test_banded_systems_that_are_positive_definite(lower: bool) -> None:
    for n in (1, 2, 3):
        ab = np.random.default_rng(8).normal(size=(n, 5)) * 0.5
        ab[0 if lower else -1] = 5
        for b in (V5, V5[:, None] * [1.0, 2.0]):
            check_close(lambda b, ab=ab: sl.solveh_banded(ab, b, lower=lower), b)
            check_close(lambda a, b=b: sl.solveh_banded(a, b, lower=lower), ab)


V5 = np.array([0.5, -1.0, 2.0, 0.25, 1.5])


def test_derivatives_of_banded_systems() -> None:
    for function in (
        lambda a, b: sl.solve_banded((1, 1), a + np.array([[0], [5], [0]]), b),
        lambda a, b: sl.solveh_banded(a[:2] + np.array([[0], [9]]), b),
        lambda a, b: sl.solve_banded((0, 1), np.array([[0, 1, 1, 1], [2, 3, 4, 5]]), a[0] * b),
    ):
        for verdict in check_numerically(trace(function, "f64[3,4]", "f64[4]"), BUILTIN):
            assert verdict.ok, verdict


def test_what_is_not_real_is_nan() -> None:
    x = np.diag([-1.0, 4.0])
    assert np.isnan(traced(sl.sqrtm, x)).all()
    assert np.isnan(traced(sl.logm, x)).all()
    np.testing.assert_allclose(traced(lambda x: sl.sqrtm(x + 0j), x), np.diag([1j, 2]))
    np.testing.assert_allclose(traced(lambda x: sl.logm(x.astype(complex)), x), np.diag([np.pi * 1j, np.log(4)]), atol=1e-15)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: sl.eigh(a, subset_by_index=(0, 1)), "scipy.linalg.eigh with subset_by_index= cannot be traced; leave it out"),
        (lambda a: sl.eigh(a, a, type=2), "is traced of type 1"),
        (lambda a: sl.schur(a, sort="lhp"), "scipy.linalg.schur with sort= cannot be traced"),
        (lambda a: sl.qr(a, mode="raw"), "write 'full', 'economic' or 'r'"),
        (lambda a: sl.toeplitz(a), "scipy.linalg.toeplitz is traced of vectors"),
        (lambda a: sl.solve_banded((1, 1), a[:2], a[0]), "solve_banded takes 3 diagonals"),
        (lambda a: sl.solve_banded((0, 0), np.ones((1, 2001)), np.ones(2001) * a[0, 0]), "for 2,000 equations at most"),
        (lambda a: sl.solve_sylvester(a, a, a[0]), "solve_sylvester solves a x + x b = q"),
    ],
)
def test_errors_say_what_is_wrong(function: object, message: str) -> None:
    with pytest.raises(TiduError) as caught:
        trace(function, "f64[3,3]")
    assert message in str(caught.value)
