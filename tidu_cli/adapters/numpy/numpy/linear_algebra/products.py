"""Matrices and products, all onto dot_general. NumPy's ufuncs among them let numbers give way, the others make arrays of them."""

from __future__ import annotations

import operator
import string
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import Operand, an_array, array_dtype, lifted_as_arrays, lifted_weak
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.numpy.indexing import common_shape, filled, indexed, normal_axes, places, product, select, unlike
from tidu_cli.adapters.numpy.numpy.shaping import matrix_transpose, moveaxis, pad, ravel, squeeze, stack
from tidu_cli.graph.sizes.open import larger, smaller


def _triangle(keeps: Callable[[Any, int], Array]) -> Callable[..., Array]:
    """The function that keeps those diagonals of matrices whose numbers compare so with `k`, and makes zeros of the others."""

    def triangle(x: Array, k: int = 0) -> Array:
        x = x if x.ndim > 1 else x.broadcast((x.size, x.size))
        rows, columns = places(x, x.shape, -2), places(x, x.shape, -1)
        return select(keeps(columns - rows, k), x, filled(x, 0))

    return triangle


tril, triu = _triangle(operator.le), _triangle(operator.ge)


def diagonal(x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = x.shape[-2:]
    at = places(x, (larger(0, smaller(rows + min(offset, 0), columns - max(offset, 0))),), 0)
    return indexed(x, (Ellipsis, at + max(-offset, 0) if offset < 0 else at, at + offset if offset > 0 else at))


def diag(x: Array, k: int = 0) -> Array:
    """The diagonal of a matrix, or the matrix of a diagonal."""
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError(f"diag takes a vector or a matrix, got {x.type}")
    n = x.size + abs(k)
    return _triangle(operator.eq)((pad(x, (max(k, 0), max(-k, 0))) if k else x).broadcast((n, n)), k)


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


def matmul(x: Operand, y: Operand, **options: Any) -> Array:
    a, b = lifted_weak(x, y)
    if not (a.ndim and b.ndim):
        raise ValueError(f"@ takes arrays with axes, got {a.type} and {b.type}; write * for scalars")
    if b.ndim <= 2:
        return product(a, b, ((a.ndim - 1,), (max(b.ndim - 2, 0),)))
    if a.ndim == 1:
        return product(b, a, ((b.ndim - 2,), (0,)))
    batch = common_shape(a.shape[:-2], b.shape[:-2])
    a, b = a.broadcast((*batch, *a.shape[-2:])), b.broadcast((*batch, *b.shape[-2:]))
    axes = tuple(range(len(batch)))
    return product(a, b, ((a.ndim - 1,), (b.ndim - 2,)), (axes, axes))


def dot(x: Operand, y: Operand, out: object = None) -> Array:
    a, b = lifted_as_arrays(x, y)
    return product(a, b, ((a.ndim - 1,), (max(b.ndim - 2, 0),))) if a.ndim and b.ndim else a * b


def inner(x: Operand, y: Operand) -> Array:
    a, b = lifted_as_arrays(x, y)
    return product(a, b, ((a.ndim - 1,), (b.ndim - 1,))) if a.ndim and b.ndim else a * b


def outer(x: Operand, y: Operand, out: object = None) -> Array:
    a, b = lifted_as_arrays(x, y)
    return a.reshaped((a.size, 1)) * b.reshaped((1, b.size))


def vdot(x: Operand, y: Operand) -> Array:
    a, b = lifted_as_arrays(x, y)
    return product(a.reshaped((a.size,)).conj(), b.reshaped((b.size,)), ((0,), (0,)))


def vecdot(x: Operand, y: Operand, axis: int = -1, **options: Any) -> Array:
    """Products summed over an axis, of the first operand's conjugate."""
    a, b = lifted_weak(x, y)
    a, b = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    shape = common_shape(a.shape, b.shape)
    axes = tuple(range(len(shape) - 1))
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"vecdot takes axes of one size, got {a.type} and {b.type}")
    return product(a.broadcast(shape).conj(), b.broadcast(shape), ((len(axes),), (len(axes),)), (axes, axes))


def matvec(x: Operand, y: Operand, **options: Any) -> Array:
    a, b = lifted_weak(x, y)
    return squeeze(matmul(a, b.reshaped((*b.shape, 1))), -1)


def vecmat(x: Operand, y: Operand, **options: Any) -> Array:
    a, b = lifted_weak(x, y)
    return squeeze(matmul(a.conj().reshaped((*a.shape[:-1], 1, a.shape[-1])), b), -2)


def tensordot(x: Operand, y: Operand, axes: Any = 2) -> Array:
    a, b = lifted_as_arrays(x, y)
    if isinstance(axes, int | np.integer):
        n = int(axes)
        if not 0 <= n <= min(a.ndim, b.ndim):
            raise ValueError(f"{n} axes of {a.type} and {b.type}")
        return product(a, b, (range(a.ndim - n, a.ndim), range(n)))
    left, right = axes
    mine, others = normal_axes(left, a.ndim), normal_axes(right, b.ndim)
    if len(mine) != len(others):
        raise ValueError("axes must name as many axes of both operands")
    return product(a, b, (mine, others))


def _trace(x: Array, offset: int, axis1: int, axis2: int, dtype: Any) -> Array:
    return diagonal(x, offset, axis1, axis2).sum(axis=-1, dtype=dtype)


def cross(x: Operand, y: Operand, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    """Of vectors of three elements. `axis` stands for the three other options."""
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = lifted_as_arrays(x, y)
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise BuildError(f"cross takes vectors of 3 elements, got {a.type} and {b.type}")
    after, before = [1, 2, 0], [2, 0, 1]
    vectors = a.take(after, axis=-1) * b.take(before, axis=-1) - a.take(before, axis=-1) * b.take(after, axis=-1)
    return moveaxis(vectors, -1, axisc)


def kron(x: Operand, y: Operand) -> Array:
    a, b = lifted_as_arrays(x, y)
    rank = max(a.ndim, b.ndim)
    one, other = (1,) * (rank - a.ndim) + a.shape, (1,) * (rank - b.ndim) + b.shape
    paired = a.reshaped(tuple(k for n in one for k in (n, 1))) * b.reshaped(tuple(k for n in other for k in (1, n)))
    return paired.reshaped(tuple(n * m for n, m in zip(one, other, strict=True)))


COMPOSED: Mapping[str, Callable[..., Any]] = {
    "diagflat": lambda x, k=0: diag(ravel(an_array(x)), k),
    "linalg.matrix_transpose": matrix_transpose,
    "linalg.diagonal": lambda x, /, *, offset=0: diagonal(an_array(x), offset, -2, -1),
    "trace": lambda x, offset=0, axis1=0, axis2=1, dtype=None, out=None: _trace(an_array(x), offset, axis1, axis2, dtype),
    "linalg.trace": lambda x, /, *, offset=0, dtype=None: _trace(an_array(x), offset, -2, -1, dtype),
    "linalg.multi_dot": lambda arrays, *, out=None: reduce(dot, lifted_as_arrays(*arrays)),
    "linalg.matmul": matmul,
    "linalg.outer": outer,
    "linalg.tensordot": lambda x1, x2, /, *, axes=2: tensordot(x1, x2, axes),
    "linalg.vecdot": lambda x1, x2, /, *, axis=-1: vecdot(x1, x2, axis),
    "linalg.cross": lambda x1, x2, /, *, axis=-1: cross(x1, x2, axis=axis),
}


def einsum(subscripts: Operand, *operands: Operand, optimize: Any = False, out: object = None, **options: Any) -> Array:
    """Pair by pair, from the left. Subscripts are text, or lists of integers, one after each operand and one for the result."""
    if not isinstance(subscripts, str):
        given = (subscripts, *operands)
        operands, lists = given[: len(given) & ~1 : 2], given[1::2]
        result = f"->{_labels(given[-1])}" if len(given) % 2 and operands else ""
        subscripts = ",".join(map(_labels, lists)) + result
    if not operands:
        raise ValueError("einsum takes at least one operand")
    arrays = lifted_as_arrays(*operands)
    terms, result = _subscripts(subscripts, arrays)
    sizes: dict[str, int] = {}
    for term, x in zip(terms, arrays, strict=True):
        for label, n in zip(term, x.shape, strict=True):
            if sizes.get(label, 1) != 1 and n not in (1, sizes[label]):
                raise unlike(f"einsum: {label!r} has {sizes[label]} and {n} elements", n, sizes[label])
            sizes[label] = sizes.get(label, 1) if n == 1 else n
    current, labels = _single(arrays[0], terms[0], set(result).union(*terms[1:]), sizes)
    for k in range(1, len(arrays)):
        later = set(result).union(*terms[k + 1 :])
        other, others = _single(arrays[k], terms[k], later | set(labels), sizes)
        current, labels = _pair(current, labels, other, others, later, result)
        current, labels = _single(current, labels, later, sizes)
    return current.permuted([labels.index(c) for c in result])


def _labels(numbers: Any) -> str:
    """Letters for the integers of a list, in their order."""
    try:
        return "".join("..." if k is Ellipsis else _LETTERS[operator.index(k)] for k in numbers)
    except (TypeError, IndexError):
        raise ValueError(
            f"einsum takes text, or after each operand a list of integers below 52 and of ..., got {numbers!r}"
        ) from None


_LETTERS = string.ascii_uppercase + string.ascii_lowercase


def _subscripts(text: str, arrays: Sequence[Array]) -> tuple[list[str], str]:
    """The labels of each operand and of the result; an ellipsis becomes labels of its own."""
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(arrays):
        raise ValueError(f"einsum '{text}' has {len(terms)} operands, got {len(arrays)}")
    spare = [c for c in _LETTERS if c not in text]
    widths = [x.ndim - len(t.replace("...", "")) for t, x in zip(terms, arrays, strict=True)]
    if any(w < 0 or (w and "..." not in t) for w, t in zip(widths, terms, strict=True)):
        raise ValueError(f"einsum '{text}' does not fit {', '.join(str(x.type) for x in arrays)}")
    width = max([w for w, t in zip(widths, terms, strict=True) if "..." in t], default=0)
    if width > len(spare):
        raise ValueError("einsum: too many axes")
    dots = "".join(spare[:width])
    terms = [t.replace("...", dots[width - w :], 1) for t, w in zip(terms, widths, strict=True)]
    if not arrow:
        once = [c for c in sorted(set("".join(terms)) - set(dots)) if "".join(terms).count(c) == 1]
        right = "..." * bool(dots) + "".join(once)
    result = right.replace("...", dots, 1)
    every = set("".join(terms))
    letters = all(c.isascii() and c.isalpha() for c in every)
    if not letters or not set(result) <= every or len(set(result)) < len(result):
        raise ValueError(f"einsum: malformed subscripts '{text}'")
    return terms, result


def _single(x: Array, labels: str, needed: set[str], sizes: dict[str, int]) -> tuple[Array, str]:
    """Diagonals of labels that repeat; sums over labels that nobody else needs; axes of size 1 that stand for more go."""
    while len(set(labels)) < len(labels):
        label = next(c for c in labels if labels.count(c) > 1)
        first, second = [k for k, c in enumerate(labels) if c == label][:2]
        x = diagonal(x, 0, first, second)
        labels = "".join(c for k, c in enumerate(labels) if k not in (first, second)) + label
    gone = tuple(k for k, c in enumerate(labels) if c not in needed or (x.shape[k] == 1 and sizes[c] != 1))
    if gone:
        x = x.any(axis=gone) if x.type.dtype == "bool" else x.emit("reduce_sum", axes=gone)
        labels = "".join(c for k, c in enumerate(labels) if k not in gone)
    return x, labels


def _pair(x: Array, left: str, y: Array, right: str, later: set[str], result: str) -> tuple[Array, str]:
    """The product of two operands, whose labels come in the order of the result where an order of the operands has it."""
    shared = [c for c in left if c in right]
    contract, batch = [c for c in shared if c not in later], [c for c in shared if c in later]
    first = next((c for c in result if c not in shared and (c in left or c in right)), "")
    if first in right and first not in left and (len(shared) < len(left) or not batch):
        (x, left), (y, right) = (y, right), (x, left)
    axes = (([left.index(c) for c in labels], [right.index(c) for c in labels]) for labels in (contract, batch))
    contracted = product(x, y, *axes)
    labels = "".join(batch) + "".join(c for c in left if c not in shared) + "".join(c for c in right if c not in shared)
    return contracted, labels
