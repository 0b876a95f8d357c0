"""Products of matrices and what is contracted."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tidu_cli.formats.onnx.reading.node import Node, Operator, Value


def gemm(node: Node, a: Value, b: Value, c: Value = None) -> Value:
    """alpha a b + beta c, of transposed matrices perhaps."""
    product = np.matmul(a.T if node["transA"] else a, b.T if node["transB"] else b)
    alpha, beta = (node[name] if node[name] is not None else 1.0 for name in ("alpha", "beta"))
    if alpha != 1:
        product = (product * product.dtype.type(alpha)).astype(a.dtype)
    if c is None or beta == 0:
        return product
    return product + (c if beta == 1 else (c * c.dtype.type(beta)).astype(c.dtype))


OPERATORS: Mapping[str, Operator] = {
    "Det": lambda node, x: np.linalg.det(x),
    "Einsum": lambda node, *operands: np.einsum(node["equation"].replace(" ", ""), *operands),
    "Gemm": gemm,
    "MatMul": lambda node, a, b: np.matmul(a, b),
}
