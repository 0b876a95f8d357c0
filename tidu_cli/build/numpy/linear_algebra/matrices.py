"""Triangles, diagonals, and matrices made of vectors."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tidu_cli.build.arrays.array import Array
from tidu_cli.build.arrays.operands import an_array, array_dtype, lift
from tidu_cli.build.numpy.indexing import indexed
from tidu_cli.build.numpy.joining import pad, stack
from tidu_cli.build.numpy.primitives import filled, places, select
from tidu_cli.build.numpy.shaping import matrix_transpose, moveaxis, ravel


def _triangle(keeps: Callable[[Any, int], Array]) -> Callable[..., Array]:
    def triangle(x: Array, k: int = 0) -> Array:
        x = x if x.ndim > 1 else x.broadcast((x.size, x.size))
        rows, columns = places(x, x.shape, -2), places(x, x.shape, -1)
        return select(keeps(columns - rows, k), x, filled(x, 0))

    return triangle


tril, triu = _triangle(operator.le), _triangle(operator.ge)


def diagonal(x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = x.shape[-2:]
    at = places(x, (max(0, min(rows + min(offset, 0), columns - max(offset, 0))),), 0)
    return indexed(x, (Ellipsis, at + max(-offset, 0) if offset < 0 else at, at + offset if offset > 0 else at))


def diag(x: Array, k: int = 0) -> Array:
    """The diagonal of a matrix, or the matrix of a diagonal."""
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError(f"diag takes a vector or a matrix, got {x.type}")
    n = x.size + abs(k)
    square = (pad(x, (max(k, 0), max(-k, 0))) if k else x).broadcast((n, n))
    rows, columns = places(square, (n, n), -2), places(square, (n, n), -1)
    above = columns - rows
    return select(above.emit("eq", lift(k, rows, rows.dtype).broadcast((n, n))), square, filled(square, 0))


def vander(x: Array, N: int | None = None, increasing: bool = False) -> Array:  # noqa: N803
    """Powers, the highest first. NumPy computes them in what the dtype and i64 promote to."""
    if x.ndim != 1:
        raise ValueError(f"vander takes a vector, got {x.type}")
    n = x.size if N is None else N
    if not 0 <= n <= 1000:
        raise ValueError("vander makes 1000 columns at most")
    x = x.convert(array_dtype(x, np.int64(0)))
    if not n:
        return filled(x, 0, (x.size, 0))
    # Products and no powers, which would cost a logarithm each.
    columns = [filled(x, 1)]
    for _ in range(n - 1):
        columns.append(columns[-1] * x)
    return stack(columns if increasing else columns[::-1], -1)


COMPOSED: Mapping[str, Callable[..., Any]] = {
    "diagflat": lambda x, k=0: diag(ravel(an_array(x)), k),
    "linalg.matrix_transpose": matrix_transpose,
    "linalg.diagonal": lambda x, /, *, offset=0: diagonal(an_array(x), offset, -2, -1),
}
