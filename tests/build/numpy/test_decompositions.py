"""Factors, eigenvalues, singular values and least squares: NumPy's values, and derivatives by difference quotients.

Of complex vectors what does not depend on their phases is compared; of eigenvalues, which NumPy has real where they happen to be,
complex ones.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.build.comparing import check, traced
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.checking.numeric.laws import check_numerically
from tidu_cli.errors import TiduError
from tidu_cli.graph.keys import Key
from tidu_cli.lax.vocabulary import BUILTIN

RNG = np.random.default_rng(11)
A = RNG.normal(size=(2, 4, 4))
TALL, WIDE, V = RNG.normal(size=(4, 2)), RNG.normal(size=(2, 4)), RNG.normal(size=4)
C = A + 1j * RNG.normal(size=A.shape)
S, H = A + A.mT, C + C.mT.conj()
LOW = TALL @ WIDE  # of rank 2
ROTATION = np.array([[1.0, 3.0], [-2.0, 1.0]])


def projectors(v):
    return v[..., :, None, :] * v.conj()[..., None, :, :]


CALLS = {
    "qr's Q": (lambda a: np.linalg.qr(a).Q, A),
    "qr's R": (lambda a: np.linalg.qr(a)[1], C),
    "qr, complete": (lambda a: np.linalg.qr(a, mode="complete").Q, TALL),
    "qr, wide": (lambda a: np.linalg.qr(a)[1], WIDE),
    "qr, R alone": (lambda a: np.linalg.qr(a, "r"), TALL),
    "svd": (lambda a: np.linalg.svd(a, full_matrices=False).S, A),
    "svd's U": (lambda a: np.linalg.svd(a, full_matrices=False).U, TALL),
    "svd's Vh": (lambda a: np.linalg.svd(a)[2], A),
    "svd, values alone": (lambda a: np.linalg.svd(a, compute_uv=False), C),
    "svd, complex": (lambda a: projectors(np.linalg.svd(a)[0]), C),
    "svd, full, up to a rotation": (lambda a: projectors(np.linalg.svd(a)[0])[:, :, 2:].sum(-1), TALL),
    "svdvals": (np.linalg.svdvals, WIDE),
    "eigh": (lambda a: np.linalg.eigh(a).eigenvectors, S),
    "eigh's values": (lambda a: np.linalg.eigh(a)[0], H),
    "eigh, complex": (lambda a: projectors(np.linalg.eigh(a)[1]), H),
    "eigvalsh": (np.linalg.eigvalsh, S),
    "eigvalsh of the upper triangle": (lambda a: np.linalg.eigvalsh(a, UPLO="U"), np.triu(H)),
    "eig": (lambda a: np.linalg.eig(a).eigenvectors, C),
    "eig's values": (lambda a: np.linalg.eig(a)[0], C),
    "eig, of a real matrix": (lambda a: np.linalg.eig(a)[1], ROTATION),
    "eigvals": (np.linalg.eigvals, C),
    "eigvals of a real matrix": (np.linalg.eigvals, ROTATION),
    "pinv": (np.linalg.pinv, TALL),
    "pinv, complex": (np.linalg.pinv, C),
    "pinv with tolerance": (lambda a: np.linalg.pinv(a, rtol=0.5), A),
    "lstsq": (lambda a, b: np.linalg.lstsq(a, b)[0], TALL, V),
    "lstsq's residuals": (lambda a, b: np.linalg.lstsq(a, b)[1], TALL, A[0]),
    "lstsq's residuals of a vector": (lambda a, b: np.linalg.lstsq(a, b)[1], TALL, V),
    "lstsq's singular values": (lambda a, b: np.linalg.lstsq(a, b)[3], TALL, V),
    "lstsq, wide": (lambda a, b: np.linalg.lstsq(a, b)[0], WIDE, A[0, :2]),
    "cond": (np.linalg.cond, A),
    "cond, -2": (lambda a: np.linalg.cond(a, -2), C),
    "cond, 1": (lambda a: np.linalg.cond(a, 1), A),
    "cond, fro": (lambda a: np.linalg.cond(a, "fro"), A),
    "norm, 2": (lambda a: np.linalg.norm(a, 2), TALL),
    "norm, -2": (lambda a: np.linalg.norm(a, -2, axis=(2, 0)), A),
    "norm, nuc": (lambda a: np.linalg.norm(a, "nuc", axis=(0, 1), keepdims=True), A),
    "matrix_norm, nuc": (lambda a: np.linalg.matrix_norm(a, ord="nuc", keepdims=True), C),
}

ONLY_VALUES = {
    "pinv of a lower rank": (np.linalg.pinv, LOW),
    "lstsq of a lower rank": (lambda a, b: np.linalg.lstsq(a, b)[0], LOW, V),
    "lstsq's rank": (lambda a, b: np.linalg.lstsq(a, b)[2], LOW, V),
    "lstsq's residuals, wide": (lambda a, b: np.linalg.lstsq(a, b)[1], WIDE, V[:2]),
    "matrix_rank": (np.linalg.matrix_rank, np.stack([LOW, A[0]])),
    "matrix_rank of a vector": (np.linalg.matrix_rank, V),
    "matrix_rank with tolerance": (lambda a: np.linalg.matrix_rank(a, tol=1.5), A),
    "matrix_rank with relative tolerance": (lambda a: np.linalg.matrix_rank(a, rtol=0.3), A),
    "matrix_rank of nothing": (np.linalg.matrix_rank, np.zeros((0, 2))),
    "svd of nothing": (lambda a: np.linalg.svd(a).U, np.zeros((2, 0))),
    "qr of nothing": (lambda a: np.linalg.qr(a).Q, np.zeros((0, 2))),
    "eigvalsh of nothing": (np.linalg.eigvalsh, np.zeros((3, 0, 0))),
    "svdvals of integers": (np.linalg.svdvals, np.array([[1, 2], [3, 4]])),
    "eigvalsh in single precision": (np.linalg.eigvalsh, S.astype(np.float32)),
}


@pytest.mark.parametrize("name", CALLS | ONLY_VALUES)
def test_values(name):
    function, *operands = (CALLS | ONLY_VALUES)[name]
    check(function, *operands)


@pytest.mark.parametrize("name", CALLS)
def test_derivatives(name):
    function, *operands = CALLS[name]
    given = {Key(f"x.{k}"): x for k, x in enumerate(operands)}
    verdicts = check_numerically(trace(lambda x: function(*x), operands), BUILTIN, given=given)
    assert verdicts
    assert all(v.ok and v.error is not None for v in verdicts), verdicts


def test_a_rank_has_no_derivative():
    assert check_numerically(trace(np.linalg.matrix_rank, LOW), BUILTIN) == []


def test_real_eigenvalues_are_complex_numbers():
    """Which dtype NumPy gives depends on the values."""
    eigenvalues = traced(np.linalg.eigvals, S[0])
    assert eigenvalues.dtype == complex
    np.testing.assert_allclose(np.sort(eigenvalues.real), np.linalg.eigvalsh(S[0]), 1e-12)
    assert not eigenvalues.imag.any()


def test_what_lapack_refuses_is_nan():
    x = np.full((2, 3, 3), np.nan)
    x[1] = np.eye(3)
    for function in (np.linalg.svdvals, np.linalg.eigvalsh, np.linalg.eigvals, np.linalg.pinv):
        values = traced(function, x)
        assert np.isnan(values[0]).all()
        np.testing.assert_allclose(values[1], function(x[1]))


@pytest.mark.parametrize(
    ("function", "operands", "message"),
    [
        (np.linalg.svd, ["f64[3]"], "svd takes matrices, got f64[3]"),
        (np.linalg.eigh, ["f64[2,3]"], "eigh takes square matrices, got f64[2,3]"),
        (lambda a: np.linalg.eigh(a, "X"), ["f64[2,2]"], "UPLO is 'L' or 'U', got 'X'"),
        (lambda a: np.linalg.qr(a, "raw"), ["f64[2,2]"], "write 'reduced', 'complete' or 'r'"),
        (np.linalg.svdvals, ["f16[2,2]"], "svdvals takes f32, f64, c64 and c128, got f16[2,2]; convert it first"),
        (np.linalg.lstsq, ["f64[3,2]", "f64[2]"], "lstsq takes a matrix, and a vector or a matrix with as many rows"),
        (lambda a: np.linalg.pinv(a, rtol=a[0, 0]), ["f64[2,2]"], "pinv takes one tolerance, a number that is not traced"),
        (np.linalg.cond, ["f64[0,0]"], "cond is not defined for empty matrices"),
        (lambda a: np.linalg.norm(a, 3), ["f64[2,2]"], "the matrix norm of order 3 is not defined; orders are 1, -1, 2"),
    ],
)
def test_errors_say_what_is_wrong(function, operands, message):
    with pytest.raises(TiduError) as caught:
        trace(lambda x: function(*x), operands)
    assert message in str(caught.value)
