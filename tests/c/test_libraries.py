"""Large products by cblas, factors by LAPACK: NumPy's values, of derivatives too; and neither where it is not asked for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.linalg import lu_factor, solve_triangular

from tests.c.compiled import compiled
from tests.c.test_programs import agree, values_for
from tests.programs import needs
from tidu_cli.adapters.c.libraries import blas, lapack
from tidu_cli.adapters.numpy.api import trace
from tidu_cli.errors import DocumentError
from tidu_cli.formats.write import format_document
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

LINKED = needs("cc", "openblas")
LIBRARIES = {"blas": True, "lapack": True}


def holds(function, *values, called=(), order=2, rounding=64, **options):
    """Holds a function and its derivatives up to an order, in C that calls these, to what evaluation gives; its source."""
    document = trace(function, *values)
    source = format_document(document, "c", **LIBRARIES, **options).decode()
    for name in called:
        assert f"{name}(" in source, name
    agree(document, list(values), link=["-lopenblas"], rounding=rounding, **LIBRARIES, **options)
    for _ in range(order):
        document = materialize(transpose(linearize(document, [document.head.inputs[0].key])))
        given = [*values, *values_for(document, 3)[len(values) :]]
        agree(document, given, "-O0", link=["-lopenblas"], rounding=2**14, **LIBRARIES, **options)
    return source


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


PRODUCTS = {
    "rows": lambda x, y: x @ y,
    "turned": lambda x, y: (y.T @ x.T).T + 1,
    "steps": lambda x, y: x[::2, 1:] @ y[:-1, ::-1],
    "one row repeated": lambda x, y: np.broadcast_to(x[1], (20, 30)) @ y,
    "several axes": lambda x, y: np.tensordot(x.reshape(4, 5, 6, 5), y.reshape(6, 5, 12), [[3, 2], [1, 0]]),
    "batches": lambda x, y: np.einsum("abij,bajk->abki", x.reshape(2, 1, 20, 15), y.reshape(1, 2, 15, 12)),
}

VECTORS = {
    "by rows": lambda x, y: x @ y[:, 1],
    "by columns": lambda x, y: x.T @ (x @ y[:, 0]),
    "from the left": lambda x, y: y[:, 2] @ x.T,
    "turned, from the left": lambda x, y: x[:, 3] @ x,
    "both in a row": lambda x, y: np.sum(x) + x.reshape(600) @ (2 * x).reshape(600),
    "in steps": lambda x, y: x.T[1:] @ x[:, 4],
}


@LINKED
@pytest.mark.parametrize("name", [*PRODUCTS, *VECTORS])
def test_products(name):
    called = ["cblas_dgemm" if name in PRODUCTS else "cblas_dgemv"]
    holds({**PRODUCTS, **VECTORS}[name], drawn(20, 30), drawn(30, 12, seed=1), called=called)


@LINKED
def test_products_of_floats():
    x, y = drawn(20, 30).astype(np.float32), drawn(30, 12, seed=1).astype(np.float32)
    holds(lambda x, y: np.sin(x @ y) @ y[0, :].T, x, y, called=["cblas_sgemm"], order=1)
    source = holds(lambda x, y: x @ y, x.astype(float), y.astype(float), called=["cblas_dgemm"], real="double", order=0)
    assert "cblas_s" not in source


N = lapack.FROM + 3


def good(n=N, seed=0):
    """A matrix far from singular ones, whose eigenvalues and singular values are apart."""
    return np.diag(np.arange(2.0, n + 2)) + drawn(n, n, seed=seed) / n


def turned(x):
    return np.swapaxes(x, -1, -2)


def in_batch(function):
    return lambda x: function(np.stack([x, x.T + np.eye(N)]))


FACTORS = {
    "cholesky": ("dpotrf_", lambda x: np.linalg.cholesky(x @ turned(x))),
    "solve": ("dgetrf_", lambda x: np.linalg.solve(x, turned(x[..., :2, :]) * 2)),
    "lu": ("dgetrf_", lambda x: lu_factor(x[::-1])),
    "det": ("dgetrf_", lambda x: np.linalg.det(x[..., [1, 0, 2, *range(3, N)]] / N * 2)),
    "inv": ("dtrsm_", lambda x: np.linalg.inv(x)[..., :3, :]),
    "qr": ("dgelqf_", lambda x: np.linalg.qr(x)),
    "qr, tall": ("dorglq_", lambda x: np.linalg.qr(np.concatenate([x, x[..., :5, :] ** 2], -2))),
    "eigh": ("dsyevd_", lambda x: np.linalg.eigh(x + turned(x))),
    "eigh, upper": ("dsyevd_", lambda x: np.linalg.eigh(x, UPLO="U")),
    "svd": ("dgesdd_", lambda x: np.linalg.svd(x)),
    "svd, values": ("dgesdd_", lambda x: np.linalg.svd(x[..., :-5], compute_uv=False)),
}
"""What calls each. Signs of vectors are LAPACK's own, as they are where tidu evaluates."""


def roundings(name):
    """By how many two LAPACKs, or one on two processors, may differ.

    Vectors err by some two of the largest eigenvalue or singular value, over how far one is from the next, which is 1 in N of the
    largest here.
    """
    return 4 * N if name.startswith(("eigh", "svd")) else 64


@LINKED
@pytest.mark.parametrize("batched", [False, True], ids=["one", "batch"])
@pytest.mark.parametrize("name", FACTORS)
def test_factors(name, batched):
    called, function = FACTORS[name]
    holds(in_batch(function) if batched else function, good(), called=[called], order=0, rounding=roundings(name))


SMALL = {
    "eigh": lambda x: np.linalg.eigh(x + x.T),
    "svd, tall": lambda x: np.linalg.svd(np.concatenate([x, x[:1] ** 2]), full_matrices=False),
    "svd, wide": lambda x: np.linalg.svd(x[:2], full_matrices=False),
    "singular values": lambda x: np.linalg.svd(x[:3], compute_uv=False),
}


@LINKED
@pytest.mark.parametrize("name", SMALL)
def test_derivatives_of_eigenvalues_and_singular_values(name):
    holds(SMALL[name], good(4))


LARGE = ["cholesky", "solve", "qr, tall"]


@LINKED
@pytest.mark.parametrize("name", LARGE)
def test_derivatives_of_factors(name):
    holds(FACTORS[name][1], good(), order=1)


@LINKED
@pytest.mark.parametrize("name", ["cholesky", "solve", "qr", "svd", "svd, values"])
def test_floats_become_doubles(name):
    source = holds(FACTORS[name][1], good().astype(np.float32).astype(float), order=0, rounding=roundings(name), real="double")
    assert "float *" not in source


@LINKED
def test_bases_are_completed():
    """Rows or columns of none or few that vectors of the others come to, the same as where tidu evaluates."""
    shapes = [(3, 0), (0, 3), (1, 1), (6, 2), (2, 6), (2, 5, 3)]
    for shape, complete in itertools.product(shapes, (False, True)):
        x = drawn(*shape)
        holds(lambda x, c=complete: np.linalg.svd(x, full_matrices=c), x, order=0)
    x = drawn(N, N + 4)
    holds(lambda x: (np.linalg.qr(x.T, "complete"), np.linalg.qr(x)), x, order=0)


TRIANGLES = list(itertools.product((False, True), repeat=4))


@LINKED
def test_triangular_systems(tmp_path):
    """On either side, of either triangle, turned or not, by an operand that lies by rows or by columns."""

    def function(a, b):
        options = [{"lower": low, "trans": int(t), "unit_diagonal": unit} for low, t, unit, _ in TRIANGLES]
        results = [solve_triangular(a.T if turn[3] else a, b, **o) for o, turn in zip(options, TRIANGLES, strict=True)]
        return [*results, solve_triangular(a[::-1, ::-1], b, lower=True)]

    a = good() / 4
    source = holds(function, a / np.diag(a)[:, None] + np.eye(N), drawn(N, 2), called=["dtrsm_"], order=1)
    assert source.count("dtrsm_(") == len(TRIANGLES) + 2  # one of which declares it


@LINKED
def test_what_is_not_finite_gives_nan(tmp_path):
    """As where tidu evaluates, and no other matrix of the batch suffers."""
    x = np.stack([good(4), good(4, seed=1), good(4, seed=2)])
    x[0, 1, 1], x[1, 2, 0] = np.nan, np.inf
    agree(trace(lambda x: (np.linalg.eigh(x), np.linalg.svd(x)), x), [x], link=["-lopenblas"], **LIBRARIES)
    y = np.stack([good(), good()])
    y[0, 3, 2] = np.nan
    agree(trace(np.linalg.qr, y), [y], link=["-lopenblas"], **LIBRARIES)
    z = np.stack([good() + good().T, -good() - good().T])
    run = compiled(trace(np.linalg.cholesky, z), tmp_path, link=["-lopenblas"], **LIBRARIES)
    first, second = run(z)[0]
    assert np.isfinite(first).all() and np.isnan(second[np.tril_indices(N)]).all() and not second[0, 1]


def test_small_ones_are_loops():
    """Calls of the libraries, and what declares them, are there only from some size on, and where they are asked for."""
    side = round(blas.FROM ** (1 / 3))
    for n, expected in ((side - 1, False), (side, True)):
        text = format_document(trace(lambda x: x @ x, np.ones((n, n))), "c", blas=True, lapack=True).decode()
        assert ("cblas_" in text) is expected
    for n, expected in ((lapack.FROM - 1, False), (lapack.FROM, True)):
        text = format_document(trace(np.linalg.cholesky, np.ones((n, n))), "c", blas=True, lapack=True).decode()
        assert ("dpotrf_" in text) is expected
    document = trace(lambda x: np.linalg.cholesky(x @ x), np.ones((64, 64)))
    for options, words in (({}, set()), ({"blas": True}, {"cblas"}), ({"lapack": True}, {"dpotrf"})):
        text = format_document(document, "c", **options).decode()
        assert {word for word in ("cblas", "dpotrf") if word in text} == words


def test_integers_have_no_blas():
    x = np.ones((20, 20), np.int32)
    assert "cblas" not in format_document(trace(lambda x: x @ x, x), "c", blas=True).decode()


@needs("cc")
def test_complex_numbers_and_halves_stay_loops():
    """Also with the libraries, which then are not linked with; what LAPACK alone has is refused."""
    z = good() + 1j * good(seed=1)
    agree(trace(lambda z: (z @ z, np.linalg.solve(z, z[:, :2]), np.linalg.det(z / N), np.linalg.qr(z)), z), [z], **LIBRARIES)
    half = trace(lambda x: x @ x, "f16[20,20]")
    agree(half, [drawn(20, 20).astype(np.float16)], **LIBRARIES)
    assert "cblas_sgemm" in format_document(half, "c", real="float", **LIBRARIES).decode()
    for function in (np.linalg.eigh, np.linalg.svd):
        with pytest.raises(DocumentError, match=r"C has no \w+ of c128, and LAPACK is called of real matrices alone"):
            format_document(trace(function, z), "c", **LIBRARIES)
