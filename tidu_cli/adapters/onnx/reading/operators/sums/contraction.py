"""Products of matrices and what is contracted."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, number
from tidu_cli.adapters.onnx.reading.operators.elementwise.elementwise import converted

_NARROW = ("float16", "bfloat16")


def matmul(node: Node, x: Value, y: Value) -> Value:
    """Matrices x times matrices y, with NumPy's broadcasting of the axes before them."""
    if x.dtype != y.dtype:
        raise RefusedError(f"multiplies arrays of {x.dtype} and {y.dtype}")
    return converted(node, np.matmul(x, y), x.dtype)  # NumPy's products of bf16 are f32


def times(x: Value, factor: float) -> Value:
    """x times a number of an attribute. Raises RefusedError for integers and a fraction."""
    if factor == 1:
        return x
    if np.dtype(x.dtype).kind in "iu" and not float(factor).is_integer():
        raise RefusedError(f"multiplies integers by {factor:g}")
    return x * number(x, factor)


def gemm(node: Node, a: Value, b: Value, c: Value | None = None) -> Value:
    """alpha A B + beta C, A and B transposed if need be."""
    if a.ndim != 2 or b.ndim != 2:
        raise RefusedError(f"multiplies matrices, and is given arrays of {a.ndim} and {b.ndim} axes")
    if a.dtype != b.dtype:
        raise RefusedError(f"multiplies arrays of {a.dtype} and {b.dtype}")
    axes = (0 if node["transA"] else 1, 1 if node["transB"] else 0)
    if a.shape[axes[0]] != b.shape[axes[1]]:
        raise RefusedError(f"axis {axes[0]} of A has {a.shape[axes[0]]} elements, axis {axes[1]} of B {b.shape[axes[1]]}")
    alpha, beta = (1.0 if node[name] is None else node[name] for name in ("alpha", "beta"))
    found = times(converted(node, np.tensordot(a, b, axes), a.dtype), alpha)
    if c is None or not beta:
        return found
    if c.ndim > 2 or any(n not in (1, m) for n, m in zip(c.shape[::-1], found.shape[::-1], strict=False)):
        raise RefusedError(f"C of shape {list(c.shape)} does not broadcast to the product's, {list(found.shape)}")
    return found + times(c, beta)


def _einsum(node: Node, *operands: Value) -> Value:
    if not operands or any(x is None for x in operands):
        raise RefusedError("has an input that is left out")
    dtype = operands[0].dtype
    if any(x.dtype != dtype for x in operands):
        raise RefusedError(f"multiplies arrays of {' and '.join(dict.fromkeys(str(x.dtype) for x in operands))}")
    if dtype.name == "bfloat16":  # which np.einsum does not know
        operands = tuple(node.traced(x) for x in operands)
    return np.einsum(node["equation"], *operands)


def _det(node: Node, x: Value) -> Value:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise RefusedError(f"is of square matrices, and is given an array of shape {list(x.shape)}")
    wide = converted(node, x, np.dtype(np.float32)) if x.dtype.name in _NARROW else x
    return converted(node, np.linalg.det(wide), x.dtype)


OPERATORS: Mapping[str, Operator] = {
    "Det": _det,
    "Einsum": _einsum,
    "Gemm": gemm,
    "MatMul": matmul,
}
