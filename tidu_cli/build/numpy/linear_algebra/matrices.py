"""Triangles, diagonals, and matrices made of vectors."""

from __future__ import annotations

import numpy as np

from tidu_cli.build.arrays.array import Array
from tidu_cli.build.arrays.operands import Operand, an_array, array_dtype, lift
from tidu_cli.build.numpy.elementwise.elementwise import select
from tidu_cli.build.numpy.indexing import indexed
from tidu_cli.build.numpy.joining import pad, stack
from tidu_cli.build.numpy.shaping import moveaxis, ravel


def positions(x: Array) -> tuple[Array, Array]:
    """For each element of matrices its row and its column."""
    rows, columns = (x.recorder.emit("iota", dtype="i64", shape=x.shape, dimension=x.ndim + k) for k in (-2, -1))
    return rows, columns


def tril(x: Operand, k: int = 0) -> Array:
    """np.tril."""
    x = an_array(x)
    x = x if x.ndim > 1 else x.broadcast((x.size, x.size))
    rows, columns = positions(x)
    return select(columns - rows <= k, x, x.constant(x.dtype.type(0)).broadcast(x.shape))


def triu(x: Operand, k: int = 0) -> Array:
    """np.triu."""
    x = an_array(x)
    x = x if x.ndim > 1 else x.broadcast((x.size, x.size))
    rows, columns = positions(x)
    return select(columns - rows >= k, x, x.constant(x.dtype.type(0)).broadcast(x.shape))


def diagonal(x: Operand, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """np.diagonal."""
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = x.shape[-2:]
    n = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    at = x.recorder.emit("iota", dtype="i64", shape=(n,), dimension=0)
    return indexed(x, (Ellipsis, at + max(-offset, 0) if offset < 0 else at, at + offset if offset > 0 else at))


def diag(x: Operand, k: int = 0) -> Array:
    """np.diag: the diagonal of a matrix, or the matrix of a diagonal."""
    x = an_array(x)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError(f"diag takes a vector or a matrix, got {x.type}")
    n = x.size + abs(k)
    column = pad(x, (max(k, 0), max(-k, 0))) if k else x
    square = column.broadcast((n, n))
    rows, columns = positions(square)
    return select(
        (columns - rows).emit("eq", lift(k, rows, rows.dtype).broadcast((n, n))),
        square,
        square.constant(x.dtype.type(0)).broadcast((n, n)),
    )


def diagflat(x: Operand, k: int = 0) -> Array:
    """np.diagflat."""
    return diag(ravel(x), k)


def vander(x: Operand, N: int | None = None, increasing: bool = False) -> Array:  # noqa: N803
    """np.vander: powers, the highest first. NumPy computes them in what the dtype and i64 promote to."""
    x = an_array(x)
    if x.ndim != 1:
        raise ValueError(f"vander takes a vector, got {x.type}")
    n = x.size if N is None else N
    if not 0 <= n <= 1000:
        raise ValueError("vander makes 1000 columns at most")
    x = x.convert(array_dtype(x, np.int64(0)))
    if not n:
        return x.constant(x.dtype.type(0)).broadcast((x.size, 0))
    # Products and no powers, which would cost a logarithm each.
    columns = [x.constant(x.dtype.type(1)).broadcast(x.shape)]
    for _ in range(n - 1):
        columns.append(columns[-1] * x)
    return stack(columns if increasing else columns[::-1], -1)
