"""Samples of orthogonal factors, singular values, eigenvalues and matrix functions.

Factors are not unique: what is compared is what defines them, such as Q R = x and Qᴴ Q = 1. Values are mpmath's.
"""

from __future__ import annotations

import itertools

import mpmath
import numpy as np

from tests.lax.sampling.linear_algebra_samples import BATCHES, SIZES, dominated, hermitian, wide
from tests.lax.sampling.sample import ORDER, Sample, draw
from tidu_cli.lax.linear_algebra.matrices import DTYPES

RECTANGLES = [(0, 0), (0, 2), (2, 0), (1, 1), (1, 3), (3, 1), (3, 3), (4, 2), (2, 4)]


def shapes(sizes):
    """A dtype and a shape of matrices, of all ranks and dtypes."""
    for dtype, batch, (m, n) in itertools.product(sorted(DTYPES, key=ORDER.index), BATCHES, sizes):
        yield dtype, (*batch, m, n)


def squares():
    return shapes([(n, n) for n in SIZES])


def apart(dtype, shape, seed=0):
    """Matrices whose eigenvalues and singular values are apart, as are those of leading columns."""
    x = draw(dtype, shape, seed)
    return (x / 4 + np.eye(*shape[-2:]) * np.arange(1, 1 + shape[-1]) * 2).astype(x.dtype)


def back(x, like):
    """What was computed in double precision, as the results that it tells of."""
    kind = np.promote_types(like.dtype, np.complex64) if np.iscomplexobj(x) else like.real.dtype
    return np.asarray(x).astype(kind)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def ones(x, n):
    return np.broadcast_to(np.eye(n), (*x.shape[:-2], n, n))


def phase(v, x):
    """The imaginary parts of the greatest components of columns, which are to be 0; of complex matrices they are positive."""
    if not v.size:
        return np.zeros((*v.shape[:-2], v.shape[-1]))
    greatest = np.take_along_axis(v, np.abs(v).argmax(-2, keepdims=True), -2)[..., 0, :]
    return np.abs(greatest.imag) + (greatest.real < 0 if x.dtype.kind == "c" else 0)


def by_mpmath(function, shape_of, dtype=complex):
    """A function of mpmath's matrices, of each matrix of batches; arrays of a shape that that of a matrix tells."""

    def apply(*arrays):
        batch = arrays[0].shape[:-2]
        array = np.zeros((*batch, *shape_of(*(x.shape[-2:] for x in arrays))), dtype)
        with mpmath.workdps(30):
            for k in np.ndindex(*batch):
                one = function(*(mpmath.matrix(wide(x[k]).tolist()) for x in arrays)) if array[k].size else []
                array[k] = np.array([complex(z) if dtype is complex else float(mpmath.re(z)) for z in one]).reshape(array[k].shape)
        return array

    return apply


singular_values = by_mpmath(lambda x: mpmath.svd_c(x, compute_uv=False), lambda s: (min(s),), float)
hermitian_values = by_mpmath(lambda x: mpmath.eighe(x, eigvals_only=True), lambda s: s[:1], float)


def _eigenvalues(x):
    solution = mpmath.eig(x, left=False, right=False)
    return solution[0] if isinstance(solution, tuple) else solution  # mpmath 1.3 gives vectors, too, of a matrix of one number


general_values = by_mpmath(_eigenvalues, lambda s: s[:1])


def ordered(w):
    return np.sort_complex(w.round(5)) if w.size else w


def seen_qr(results, x):
    q, r, *order = map(wide, results)
    columns = np.take_along_axis(wide(x), order[0].astype(int)[..., None, :], -1) if order else wide(x)
    falling = np.abs(np.diagonal(r, axis1=-2, axis2=-1)).round(5) if order else np.zeros(1)
    k = np.arange(min(r.shape[-2:]))
    seen = [q @ r - columns, adjoint(q) @ q, np.tril(r, -1), r[..., k, k].imag, np.minimum(-np.diff(falling), 0)]
    return [back(y, results[0]) for y in seen]


def expected_qr(attrs):
    def expected(x):
        m, n = x.shape[-2:]
        k = m if attrs["full_matrices"] else min(m, n)
        falling = (*x.shape[:-2], max(min(m, n) - 1, 0)) if attrs.get("pivoting") else (0,)
        return [0 * wide(x), ones(x, k), np.zeros((*x.shape[:-2], k, n)), np.zeros((*x.shape[:-2], min(k, n))), np.zeros(falling)]

    return expected


def qrs():
    for (dtype, shape), full, pivoting in itertools.product(shapes(RECTANGLES), (False, True), (False, True)):
        attrs = {"full_matrices": full, "pivoting": pivoting}
        yield Sample("qr", [apart(dtype, shape)], attrs, expected_qr(attrs), seen_qr)


def seen_svd(results, x):
    s, u, vh = map(wide, results)
    k = s.shape[-1]
    seen = [s.real, (u[..., :k] * s[..., None, :]) @ vh[..., :k, :], adjoint(u) @ u, vh @ adjoint(vh), phase(u[..., :k], x)]
    return [back(y, results[1]) for y in seen]


def expected_svd(attrs):
    def expected(x):
        m, n = x.shape[-2:]
        k = min(m, n)
        left, right = (m, n) if attrs["full_matrices"] else (k, k)
        return [singular_values(x), wide(x), ones(x, left), ones(x, right), np.zeros((*x.shape[:-2], k))]

    return expected


def svds():
    for dtype, shape in shapes(RECTANGLES):
        x = apart(dtype, shape)
        yield Sample("svd", [x], {"compute_uv": False}, singular_values)
        for full in (False, True):
            yield Sample("svd", [x], {"full_matrices": full}, expected_svd({"full_matrices": full}), seen_svd)


def seen_eigh(results, x):
    v, w = map(wide, results)
    seen = [w.real, (v * w[..., None, :]) @ adjoint(v), adjoint(v) @ v, phase(v, x)]
    return [back(y, results[0]) for y in seen]


def eighs():
    for (dtype, shape), lower in itertools.product(squares(), (False, True)):

        def expected(x, lower=lower):
            whole = hermitian(wide(x if lower else adjoint(x)))
            return [hermitian_values(whole), whole, ones(x, x.shape[-1]), np.zeros(x.shape[:-1])]

        yield Sample("eigh", [apart(dtype, shape)], {"lower": lower}, expected, seen_eigh)


def seen_eig(attrs):
    def seen(results, x):
        w, *vectors = map(wide, results)
        parts = [ordered(w)]
        for side, v in zip([side for side in ("left", "right") if attrs[f"compute_{side}_eigenvectors"]], vectors, strict=True):
            residual = wide(x) @ v - v * w[..., None, :] if side == "right" else adjoint(v) @ wide(x) - w[..., :, None] * adjoint(v)
            parts += [residual, (np.abs(v) ** 2).sum(-2), phase(v, x)]
        return [back(y, results[0]) for y in parts]

    return seen


def eigs():
    for (dtype, shape), left, right in itertools.product(squares(), (False, True), (False, True)):
        attrs = {"compute_left_eigenvectors": left, "compute_right_eigenvectors": right}

        def expected(x, n=left + right):
            vectors = [np.zeros(x.shape, complex), np.ones(x.shape[:-1]), np.zeros(x.shape[:-1])]
            parts = [ordered(general_values(x)), *vectors * n]
            return parts if n else parts[0]

        yield Sample("eig", [apart(dtype, shape)], attrs, expected, seen_eig(attrs))


def seen_schur(results, x):
    t, z = map(wide, results)
    below = np.tril(t, -1 if x.dtype.kind == "c" else -2)
    return [back(y, results[0]) for y in (z @ t @ adjoint(z), adjoint(z) @ z, below)]


def schurs():
    for dtype, shape in squares():
        x = apart(dtype, shape)
        yield Sample("schur", [x], {}, lambda x: [wide(x), ones(x, x.shape[-1]), np.zeros(x.shape)], seen_schur)
        yield Sample("schur", [np.triu(x)], {"compute_schur_vectors": False}, np.triu)


def of_block(function):
    """The derivative of a function of matrices: what it makes of the corner of a block triangle."""

    def derivative(a, e):
        n = a.rows
        block = mpmath.zeros(2 * n)
        block[:n, :n], block[n:, n:], block[:n, n:] = a, a, e
        return function(block)[:n, n:]

    return derivative


def matrix_functions():
    for name in ("expm", "logm", "sqrtm"):
        function = getattr(mpmath, name)
        for dtype, shape in shapes([(0, 0), (1, 1), (3, 3)]):
            if name == "logm" and len(shape) == 3 and all(shape):
                continue  # SciPy takes milliseconds for each
            x = (dominated(dtype, shape) / 2).astype(draw(dtype, ()).dtype)
            yield Sample(name, [x], {}, by_mpmath(function, lambda s: s, complex if dtype[0] == "c" else float))
            if name != "sqrtm":
                of_types = by_mpmath(of_block(function), lambda s, _: s, complex if dtype[0] == "c" else float)
                yield Sample(f"{name}_frechet", [x, draw(dtype, shape, 1)], {}, of_types)


def sylvester(a, b, c):
    m, n = c.shape[-2:]
    solution = np.zeros(c.shape, wide(c).dtype)
    for k in np.ndindex(*c.shape[:-2]):
        system = np.kron(wide(a[k]), np.eye(n)) + np.kron(np.eye(m), wide(b[k]).T)
        solution[k] = np.linalg.solve(system, wide(c[k]).reshape(-1)).reshape(m, n)
    return solution


def sylvesters():
    for dtype, shape in shapes([(0, 2), (1, 1), (3, 2), (2, 4)]):
        *batch, m, n = shape
        operands = [dominated(dtype, (*batch, m, m)), dominated(dtype, (*batch, n, n), 1), draw(dtype, shape, 2)]
        yield Sample("solve_sylvester", operands, {}, sylvester)


def pseudoinverse(x):
    """Of full rank."""
    m, n = x.rows, x.cols
    return mpmath.inverse(x.H * x) * x.H if m >= n else x.H * mpmath.inverse(x * x.H)


def pinvs():
    for dtype, shape in shapes(RECTANGLES):
        inverses = by_mpmath(pseudoinverse, lambda s: s[::-1], complex if dtype[0] == "c" else float)
        yield Sample("pinv", [apart(dtype, shape)], {"rtol": 1e-5}, inverses)


def seen_polar(results, x):
    u, p = map(wide, results)
    seen = [u @ p, adjoint(u) @ u, p - adjoint(p), np.minimum(np.linalg.eigvalsh(p), 0) if p.size else np.zeros(p.shape[:-1])]
    return [back(y, results[0]) for y in seen]


def polars():
    for dtype, shape in shapes(RECTANGLES):
        if shape[-2] >= shape[-1]:

            def expected(x):
                n = x.shape[-1]
                zero = np.zeros((*x.shape[:-2], n, n))
                return [wide(x), ones(x, n), zero, np.zeros((*x.shape[:-2], n))]

            yield Sample("polar", [apart(dtype, shape)], {}, expected, seen_polar)


def permutations():
    for batch, n, size in itertools.product([*BATCHES, (2, 1, 2)], (0, 1, 3), (3, 5)):
        pivots = np.random.default_rng(n).integers(0, size, (*batch, n)).astype(np.int32)
        yield Sample("lu_pivots_to_permutation", [pivots], {"permutation_size": size}, lambda p, size=size: exchanged(p, size))


def exchanged(pivots, size):
    orders = np.empty((*pivots.shape[:-1], size), int)
    for k in np.ndindex(*pivots.shape[:-1]):
        rows = list(range(size))
        for i, j in enumerate(pivots[k]):
            rows[i], rows[j] = rows[j], rows[i]
        orders[k] = rows
    return orders


def derivative(x, *directions):
    """Of the determinant at x in these directions: sums over all rows that are replaced by those of a direction."""
    n = x.shape[-1]
    total = np.zeros(x.shape[:-2], x.dtype)
    for rows in itertools.permutations(range(n), len(directions)):
        moved = x.copy()
        for row, e in zip(rows, directions, strict=True):
            moved[..., row, :] = e[..., row, :]
        total += expanded(moved)
    return total


def expanded(x):
    """The determinant by Laplace's expansion, which divides by nothing."""
    n = x.shape[-1]
    if not n:
        return np.ones(x.shape[:-2], x.dtype)
    return sum((-1) ** k * x[..., 0, k] * expanded(np.delete(x[..., 1:, :], k, -1)) for k in range(n))


def of_unit(x, *directions):
    """In these directions and that of each element."""
    n = x.shape[-1]
    x, *directions = map(wide, (x, *directions))
    derivatives = np.zeros(x.shape, x.dtype)
    for k, unit in enumerate(np.eye(n * n).reshape(n * n, n, n)):
        derivatives[..., k // n, k % n] = derivative(x, *directions, np.broadcast_to(unit, x.shape))
    return derivatives


def determinants():
    for dtype, shape in shapes([(n, n) for n in (0, 1, 2, 3)]):
        operands = [draw(dtype, shape, seed) for seed in range(3)]
        yield Sample("det", operands[:1], {}, lambda x: derivative(wide(x)))
        yield from (Sample("cofactors", operands[: k + 1], {}, of_unit) for k in range(3))


FAMILIES = (qrs, svds, eighs, eigs, schurs, matrix_functions, sylvesters, polars, pinvs, permutations, determinants)
