"""Samples of factorizations and triangular systems: well-conditioned matrices, and references in NumPy's products and loops."""

from __future__ import annotations

import itertools

import numpy as np

from tests.lax.sampling.sample import ORDER, Sample, draw
from tidu_cli.lax.linear_algebra.matrices import DTYPES

BATCHES = [(), (2,), (2, 1), (0,)]
SIZES = [0, 1, 2, 4]
FLAGS = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")


def matrices():
    """A dtype and a shape of square matrices, of all ranks, sizes and dtypes."""
    for dtype, batch, n in itertools.product(sorted(DTYPES, key=ORDER.index), BATCHES, SIZES):
        yield dtype, (*batch, n, n)


def wide(x):
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def dominated(dtype, shape, seed=0):
    """Matrices whose diagonal outweighs all else: positive definite where Hermitian, and well conditioned where not."""
    x = draw(dtype, shape, seed)
    return (x / 4 + 3 * np.eye(shape[-1])).astype(x.dtype)


def hermitian(x):
    """The Hermitian matrix with this lower triangle."""
    below = np.tril(x, -1)
    return below + np.conj(np.swapaxes(below, -1, -2)) + np.real(x) * np.eye(x.shape[-1])


def factor(x):
    """Cholesky's algorithm, row by row."""
    x = hermitian(wide(x))
    lower = np.zeros_like(x)
    for i, j in itertools.product(range(x.shape[-1]), repeat=2):
        rest = x[..., i, j] - (lower[..., i, :j] * lower[..., j, :j].conj()).sum(-1)
        if i == j:
            lower[..., i, i] = np.sqrt(rest)
        elif i > j:
            lower[..., i, j] = rest / lower[..., j, j]
    return lower


def choleskys():
    for dtype, shape in matrices():
        yield Sample("cholesky", [dominated(dtype, shape)], {}, factor)


def solution(attrs):
    """The product with the inverse of op(a), which is made explicitly."""

    def reference(a, b):
        a = (np.tril if attrs["lower"] else np.triu)(wide(a))
        if attrs["unit_diagonal"]:
            a = a * (1 - np.eye(a.shape[-1])) + np.eye(a.shape[-1])
        a = np.swapaxes(a, -1, -2) if attrs["transpose_a"] else a
        inverse = np.linalg.inv(a.conj() if attrs["conjugate_a"] else a)
        return inverse @ wide(b) if attrs["left_side"] else wide(b) @ inverse

    return reference


def triangular_systems():
    for dtype, shape in matrices():
        for k, flags in enumerate(itertools.product((False, True), repeat=5)):
            attrs = dict(zip(FLAGS, flags, strict=True))
            *batch, n = shape[:-1]
            m = (0, 1, 3)[k % 3]
            b = draw(dtype, (*batch, n, m) if attrs["left_side"] else (*batch, m, n), 1)
            yield Sample("triangular_solve", [dominated(dtype, shape), b], attrs, solution(attrs))


def eliminated(x):
    """Gaussian elimination, row by row, on the greatest pivot of each column: that of |Re| + |Im|, as LAPACK has it."""
    *batch, m, n = x.shape
    lu, order = wide(x).copy(), np.empty((*batch, m), object)
    pivots = np.empty((*batch, min(m, n)), object)
    for k in np.ndindex(*batch):
        rows, a = list(range(m)), lu[k]
        for i in range(min(m, n)):
            sizes = abs(a[i:, i].real) + abs(a[i:, i].imag)
            p = i + int(sizes.argmax())
            pivots[(*k, i)] = p
            a[[i, p]] = a[[p, i]]
            rows[i], rows[p] = rows[p], rows[i]
            a[i + 1 :, i] /= a[i, i]
            a[i + 1 :, i + 1 :] -= np.outer(a[i + 1 :, i], a[i, i + 1 :])
        order[k] = rows
    return lu, pivots, order


def lus():
    for dtype, shape in matrices():
        yield Sample("lu", [dominated(dtype, shape)], {}, eliminated)
        # The rows turned round are to be exchanged; and then more columns than rows, and more rows than columns.
        turned = np.flip(dominated(dtype, shape, 1), -2)
        yield Sample("lu", [turned], {}, eliminated)
        if shape[-1] > 1:
            yield Sample("lu", [turned[..., :-1]], {}, eliminated)
            yield Sample("lu", [turned[..., 1:, :]], {}, eliminated)


FAMILIES = (choleskys, triangular_systems, lus)
