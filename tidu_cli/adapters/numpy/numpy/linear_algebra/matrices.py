"""Matrices as operands of linear algebra: their dtypes and shapes, and what several of its functions make of them."""

from __future__ import annotations

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import Operand, arrays_in, lift, lifted_as_arrays
from tidu_cli.lax.linear_algebra.matrices import DTYPES


def inexact(x: Operand, like: Array, name: str) -> Array:
    """An operand as an Array of a dtype that linear algebra takes: as NumPy has it, integers and bools become f64."""
    array = lift(x, like)
    if not array.type.inexact:
        return array.convert("f64") if isinstance(x, Array) else lift(np.asarray(x, np.float64), like)
    if array.type.dtype not in DTYPES:
        raise TypeError(f"{name} takes f32, f64, c64 and c128, got {array.type}; convert it first")
    return array


def matrices(x: Array, name: str) -> Array:
    """An operand that is of matrices. Raises ValueError if it has fewer than two axes."""
    array = inexact(x, x, name)
    if array.ndim < 2:
        raise ValueError(f"{name} takes matrices, got {array.type}")
    return array


def square(x: Array, name: str) -> Array:
    """An operand that is of square matrices. Raises ValueError if it is not."""
    array = inexact(x, x, name)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise ValueError(f"{name} takes square matrices, got {array.type}")
    return array


def system(a: Operand, b: Operand, name: str) -> list[Array]:
    """Square matrices and right-hand sides, of one dtype."""
    like = arrays_in([a, b])[0]
    return lifted_as_arrays(square(lift(a, like), name), inexact(b, like, name))


def singular_values(x: Array) -> Array:
    """From the greatest on."""
    return x.emit("svd", full_matrices=False, compute_uv=False)


def adjoint(x: Array) -> Array:
    """Conjugate transposes."""
    transposed: Array = x.mT.conj()
    return transposed
