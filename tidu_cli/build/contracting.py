"""Linear algebra: all products onto dot_general."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from tidu_cli.build.array import Array, Operand, real_of
from tidu_cli.build.elementwise import common_shape
from tidu_cli.build.recorder import arrays_in
from tidu_cli.build.shaping import diagonal, lifted, moveaxis, normal_axes, reshape, squeeze
from tidu_cli.build.trouble import BuildError, UntraceableError

Axes = Sequence[int]


def _product(x: Array, y: Array, contract: tuple[Axes, Axes], batch: tuple[Axes, Axes] = ((), ())) -> Array:
    """dot_general: axes of the result are batch, then those left of x, then of y. Products of bools are "and", sums "or"."""
    for a, b in (*zip(*contract, strict=True), *zip(*batch, strict=True)):
        if x.shape[a] != y.shape[b]:
            raise ValueError(f"axis {a} of {x.type} has {x.shape[a]} elements, axis {b} of {y.type} has {y.shape[b]}")
    if x.type.dtype == "bool":
        return _product(x.convert("i32"), y.convert("i32"), contract, batch) != 0
    numbers = tuple((tuple(a), tuple(b)) for a, b in (contract, batch))
    return x.emit("dot_general", y, dimension_numbers=numbers)


def matmul(x: Operand, y: Operand, **options: Any) -> Array:
    """np.matmul."""
    a, b = lifted(x, y)
    if not (a.ndim and b.ndim):
        raise ValueError(f"@ takes arrays with axes, got {a.type} and {b.type}; write * for scalars")
    if b.ndim <= 2:
        return _product(a, b, ((a.ndim - 1,), (max(b.ndim - 2, 0),)))
    if a.ndim == 1:
        return _product(b, a, ((b.ndim - 2,), (0,)))
    batch = common_shape(a.shape[:-2], b.shape[:-2])
    a, b = a.broadcast((*batch, *a.shape[-2:])), b.broadcast((*batch, *b.shape[-2:]))
    axes = tuple(range(len(batch)))
    return _product(a, b, ((a.ndim - 1,), (b.ndim - 2,)), (axes, axes))


def dot(x: Operand, y: Operand, out: object = None) -> Array:
    """np.dot."""
    a, b = lifted(x, y)
    if not (a.ndim and b.ndim):
        return a * b
    return _product(a, b, ((a.ndim - 1,), (max(b.ndim - 2, 0),)))


def inner(x: Operand, y: Operand) -> Array:
    """np.inner."""
    a, b = lifted(x, y)
    return _product(a, b, ((a.ndim - 1,), (b.ndim - 1,))) if a.ndim and b.ndim else a * b


def outer(x: Operand, y: Operand, out: object = None) -> Array:
    """np.outer."""
    a, b = lifted(x, y)
    return a.reshaped((a.size, 1)) * b.reshaped((1, b.size))


def vdot(x: Operand, y: Operand) -> Array:
    """np.vdot."""
    a, b = lifted(x, y)
    return _product(a.reshaped((a.size,)).conj(), b.reshaped((b.size,)), ((0,), (0,)))


def vecdot(x: Operand, y: Operand, axis: int = -1, **options: Any) -> Array:
    """np.vecdot: products summed over an axis, of the first operand's conjugate."""
    a, b = lifted(x, y)
    a, b = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    shape = common_shape(a.shape, b.shape)
    axes = tuple(range(len(shape) - 1))
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"vecdot takes axes of one size, got {a.type} and {b.type}")
    return _product(a.broadcast(shape).conj(), b.broadcast(shape), ((len(axes),), (len(axes),)), (axes, axes))


def matvec(x: Operand, y: Operand, **options: Any) -> Array:
    """np.matvec."""
    a, b = lifted(x, y)
    return squeeze(matmul(a, b.reshaped((*b.shape, 1))), -1)


def vecmat(x: Operand, y: Operand, **options: Any) -> Array:
    """np.vecmat."""
    a, b = lifted(x, y)
    return squeeze(matmul(a.conj().reshaped((*a.shape[:-1], 1, a.shape[-1])), b), -2)


def tensordot(x: Operand, y: Operand, axes: Any = 2) -> Array:
    """np.tensordot."""
    a, b = lifted(x, y)
    if isinstance(axes, int | np.integer):
        n = int(axes)
        if not 0 <= n <= min(a.ndim, b.ndim):
            raise ValueError(f"{n} axes of {a.type} and {b.type}")
        return _product(a, b, (range(a.ndim - n, a.ndim), range(n)))
    left, right = axes
    mine, others = normal_axes(left, a.ndim), normal_axes(right, b.ndim)
    if len(mine) != len(others):
        raise ValueError("axes must name as many axes of both operands")
    return _product(a, b, (mine, others))


def multi_dot(arrays: Sequence[Operand], *, out: object = None) -> Array:
    """np.linalg.multi_dot, from the left."""
    first, *others = arrays
    for other in others:
        first = dot(first, other)
    return first  # type: ignore[no-any-return]


def matrix_power(x: Array, n: int) -> Array:
    """np.linalg.matrix_power for exponents from 1 up."""
    if not 1 <= n <= 10_000:
        raise BuildError("matrix_power takes exponents from 1 to 10,000 (there is no inverse among the primitives)")
    found: Array | None = None
    while n:
        if n & 1:
            found = x if found is None else matmul(found, x)
        n >>= 1
        x = matmul(x, x) if n else x
    assert found is not None
    return found


def trace(x: Operand, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Array:
    """np.trace."""
    return diagonal(x, offset, axis1, axis2).sum(axis=-1, dtype=dtype)


def cross(x: Operand, y: Operand, axis: int = -1) -> Array:
    """np.cross of vectors of three elements."""
    a, b = lifted(x, y)
    a, b = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise BuildError(f"cross takes vectors of 3 elements, got {a.type} and {b.type}")
    after, before = [1, 2, 0], [2, 0, 1]
    found = a.take(after, axis=-1) * b.take(before, axis=-1) - a.take(before, axis=-1) * b.take(after, axis=-1)
    return moveaxis(found, -1, axis)


def kron(x: Operand, y: Operand) -> Array:
    """np.kron."""
    a, b = lifted(x, y)
    rank = max(a.ndim, b.ndim)
    one, other = (1,) * (rank - a.ndim) + a.shape, (1,) * (rank - b.ndim) + b.shape
    paired = a.reshaped(tuple(k for n in one for k in (n, 1))) * b.reshaped(tuple(k for n in other for k in (1, n)))
    return paired.reshaped(tuple(n * m for n, m in zip(one, other, strict=True)))


def norm(x: Operand, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """np.linalg.norm: of vectors for 1, 2, inf, -inf and other powers, of matrices the Frobenius norm."""
    (x,) = lifted(x)
    axes = normal_axes(axis, x.ndim)
    x = x if x.type.inexact else x.convert("f64")
    if ord in (None, "fro") or (ord == 2 and len(axes) == 1):
        squares = (x.real * x.real + x.imag * x.imag) if x.type.complex else x * x
        return squares.sum(axis=axes, keepdims=keepdims).emit("sqrt")  # type: ignore[no-any-return]
    if len(axes) != 1 or isinstance(ord, str):
        raise UntraceableError(f"the norm of order {ord} of {x.type} over axes {list(axes)} has no counterpart in graphs")
    size = abs(x)
    if ord == math.inf:
        return size.max(axis=axes, keepdims=keepdims)  # type: ignore[no-any-return]
    if ord == -math.inf:
        return size.min(axis=axes, keepdims=keepdims)  # type: ignore[no-any-return]
    if ord == 0:
        return (x != 0).astype(real_of(x)).sum(axis=axes, keepdims=keepdims)  # type: ignore[no-any-return]
    return size.sum(axis=axes, keepdims=keepdims) if ord == 1 else (size**ord).sum(axis=axes, keepdims=keepdims) ** (1 / ord)  # type: ignore[no-any-return]


def vector_norm(x: Operand, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """np.linalg.vector_norm."""
    (x,) = lifted(x)
    if axis is None:
        found = norm(x.reshaped((x.size,)), ord, 0)
        return reshape(found, (1,) * x.ndim) if keepdims else found
    axes = normal_axes(axis, x.ndim)
    if len(axes) == 1:
        return norm(x, ord, axes, keepdims)
    if ord != 2:
        raise UntraceableError("vector_norm over several axes is traced for order 2")
    return norm(x, None, axes, keepdims)


def einsum(subscripts: str, *operands: Operand, optimize: Any = False, out: object = None, **options: Any) -> Array:
    """np.einsum with subscripts as text: pair by pair, from the left."""
    if not isinstance(subscripts, str):
        raise UntraceableError("np.einsum is traced with subscripts as text, such as np.einsum('ij,j->i', a, x)")
    arrays = lifted(*operands) if operands else []
    if not arrays:
        raise ValueError("einsum takes at least one operand")
    terms, result = _subscripts(subscripts, arrays)
    sizes: dict[str, int] = {}
    for term, x in zip(terms, arrays, strict=True):
        for label, n in zip(term, x.shape, strict=True):
            if sizes.get(label, 1) != 1 and n not in (1, sizes[label]):
                raise ValueError(f"einsum: {label!r} has {sizes[label]} and {n} elements")
            sizes[label] = max(n, sizes.get(label, 1)) if n else 0
    current, labels = _single(arrays[0], terms[0], _needed(terms[1:], result), sizes)
    for k in range(1, len(arrays)):
        later = _needed(terms[k + 1 :], result)
        other, others = _single(arrays[k], terms[k], later | set(labels), sizes)
        current, labels = _pair(current, labels, other, others, later)
        current, labels = _single(current, labels, later, sizes)
    current, labels = _spread(current, labels, result, sizes)
    return current.permuted([labels.index(c) for c in result])


def _needed(terms: Sequence[str], result: str) -> set[str]:
    return set(result).union(*terms)


def _subscripts(text: str, arrays: Sequence[Array]) -> tuple[list[str], str]:
    """The labels of each operand and of the result; an ellipsis becomes labels of its own."""
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(arrays):
        raise ValueError(f"einsum '{text}' has {len(terms)} operands, got {len(arrays)}")
    spare = [c for c in string.ascii_uppercase + string.ascii_lowercase if c not in text]
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
    if (
        not all(c.isascii() and c.isalpha() for c in every | set(result))
        or not set(result) <= every
        or len(set(result)) < len(result)
    ):
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


def _pair(x: Array, left: str, y: Array, right: str, later: set[str]) -> tuple[Array, str]:
    shared = [c for c in left if c in right]
    contract, batch = [c for c in shared if c not in later], [c for c in shared if c in later]
    found = _product(
        x,
        y,
        ([left.index(c) for c in contract], [right.index(c) for c in contract]),
        ([left.index(c) for c in batch], [right.index(c) for c in batch]),
    )
    labels = "".join(batch) + "".join(c for c in left if c not in shared) + "".join(c for c in right if c not in shared)
    return found, labels


def _spread(x: Array, labels: str, result: str, sizes: dict[str, int]) -> tuple[Array, str]:
    # Labels of the result whose axes have all been of size 1 and were dropped: they cannot be, as sizes then is 1.
    missing = "".join(c for c in result if c not in labels)
    if missing:
        x = x.reshaped((1,) * len(missing) + x.shape).broadcast((*(sizes[c] for c in missing), *x.shape))
    return x, missing + labels


def like_of(*values: Operand) -> Array:
    """The first traced array among operands."""
    return arrays_in(values)[0]
