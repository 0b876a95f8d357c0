"""Support vector machines of ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, computed, number
from tidu_cli.adapters.onnx.reading.operators.machine_learning.machine_learning import (
    array,
    best,
    floats,
    labelled,
    labels_of,
    matrix,
    pairs,
    transformed,
)


def _kernel(node: Node, x: Value, vectors: Value) -> Value:
    """The kernel of each sample and support vector."""
    gamma, coef0, degree = [*(node["kernel_params"] or ()), 0.0, 0.0, 0.0][:3]
    kind, products = node["kernel_type"], x @ vectors.T
    if kind == "LINEAR":
        return products
    if kind == "RBF":  # of differences, which do not cancel
        apart = np.expand_dims(x, 1) - vectors
        return np.exp(np.sum(apart * apart, -1) * number(x, -gamma))
    inner = products * number(x, gamma) + number(x, coef0)
    if kind == "SIGMOID":
        return np.tanh(inner)
    if kind != "POLY":
        raise RefusedError(f"its kernel is '{kind}', and none of LINEAR, POLY, RBF and SIGMOID")
    return inner ** int(degree) if float(degree).is_integer() else inner ** number(x, degree)


def _regressor(node: Node, x: Value) -> Value:
    x, n = matrix(floats(node, x)), node["n_supports"]
    rho = array(x, node["rho"], 1)
    if n:
        found = _kernel(node, x, array(x, node["support_vectors"], n, x.shape[1])) @ array(x, node["coefficients"], n, 1) + rho
    else:
        found = x @ array(x, node["coefficients"], x.shape[1], 1) + rho
    if node["one_class"]:
        return np.where(found > number(x, 0), number(x, 1), number(x, -1))
    return transformed(node, found, node["post_transform"])


def _classifier(node: Node, x: Value) -> list[Value]:
    x, labels = matrix(floats(node, x)), labels_of(node, "classlabels_ints")
    sizes, kind = node["vectors_per_class"] or [], node["post_transform"]
    if not sizes:
        n = max(len(labels), 1)
        scores = _kernel(node, x, array(x, node["coefficients"], n, x.shape[1])) + array(x, node["rho"])[:1]
        return [labelled(node, labels, best(node, scores)), transformed(node, scores, kind)]
    n, total = len(sizes), sum(sizes)
    kernels = _kernel(node, x, array(x, node["support_vectors"], total, x.shape[1]))
    decisions = kernels @ _pairwise(sizes, array(x, node["coefficients"], n - 1, total)) + array(x, node["rho"], n * (n - 1) // 2)
    votes = [np.where(decisions[:, k] > number(x, 0), i, j) for k, (i, j) in enumerate(pairs(n))]
    counts = np.stack([sum((vote == c).astype(np.int64) for vote in votes) for c in range(n)], -1)
    # The greatest score may be another's than that of most votes.
    scores = _coupled(node, decisions, n) if node["prob_a"] else _both(decisions)
    return [labelled(node, labels, best(node, counts)), transformed(node, scores, kind)]


def _both(decisions: Value) -> Value:
    """The scores of pairs, or of each of two classes, as onnxruntime has them."""
    return np.concatenate([-decisions, decisions], 1) if decisions.shape[1] == 1 else decisions


def _pairwise(sizes: Any, coefficients: Any) -> Any:
    """The weights of support vectors in the decision between each pair of classes: those of one row for each other class."""
    ends = np.cumsum(sizes)
    columns = []
    for i, j in pairs(len(sizes)):
        column = np.zeros(coefficients.shape[1], coefficients.dtype)
        for own, row in ((i, j - 1), (j, i)):
            part = slice(ends[own] - sizes[own], ends[own])
            column[part] = coefficients[row, part]
        columns.append(column)
    return np.stack(columns, -1)


def _coupled(node: Node, decisions: Value, n: int) -> Value:
    """Probabilities of classes from those of pairs (Platt, 1999; Wu, Lin and Weng, 2004, second approach).

    Others iterate until they are near the solution of a linear system; here it is solved, so that derivatives are its own.
    """
    a, b = array(decisions, node["prob_a"]), array(decisions, node["prob_b"])
    tiny = number(decisions, 1e-7)
    one = computed(node, "logistic", -(decisions * a + b))
    one = computed(node, "clamp", tiny, one, number(decisions, 1) - tiny)
    if n == 2:
        return np.concatenate([one, number(one, 1) - one], 1)
    r = {}
    for k, (i, j) in enumerate(pairs(n)):
        r[i, j], r[j, i] = one[:, k], number(one, 1) - one[:, k]
    rows = [
        [sum(r[j, i] * r[j, i] for j in range(n) if j != i) if i == k else -r[k, i] * r[i, k] for k in range(n)] for i in range(n)
    ]
    ones, zeros = np.ones(decisions.shape[0], decisions.dtype), np.zeros(decisions.shape[0], decisions.dtype)
    system = np.stack([np.stack([*row, ones], -1) for row in rows] + [np.stack([*[ones] * n, zeros], -1)], -2)
    due = np.stack([*[zeros] * n, ones], -1)
    return np.linalg.solve(system, np.expand_dims(due, -1))[:, :n, 0]


OPERATORS: Mapping[str, Operator] = {"SVMClassifier": _classifier, "SVMRegressor": _regressor}
