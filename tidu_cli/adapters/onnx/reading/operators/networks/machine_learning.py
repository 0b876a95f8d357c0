"""Operators of ai.onnx.ml: what prepares features, linear models, support vectors, and what models make of their scores.

Labels that are strings become their numbers: a graph computes with numbers only.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, at, computed, number

POST_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""What becomes of scores, by the codes of TreeEnsemble."""


def floats(node: Node, x: Value) -> Value:
    """x in the float type of results: f32, or what floats are read as."""
    dtype = node.dtype(1)
    return x if x.dtype == dtype else x.astype(dtype)


def array(x: Value, values: Any, *shape: int) -> Value:
    """Numbers of an attribute in the dtype of x. Raises RefusedError if they do not fit a shape."""
    numbers = np.asarray(values if values is not None else [], x.dtype)
    try:
        return numbers.reshape(shape) if shape else numbers
    except ValueError:
        raise RefusedError(f"an attribute has {numbers.size} numbers, which do not fit the shape {list(shape)}") from None


def transformed(node: Node, scores: Value, kind: str) -> Value:
    """Scores as a post_transform gives them, along the last axis."""
    if kind == "NONE":
        return scores
    if kind == "LOGISTIC":
        return computed(node, "logistic", scores)
    if kind == "PROBIT":
        return computed(node, "erf_inv", scores * number(scores, 2) - number(scores, 1)) * number(scores, np.sqrt(2))
    if kind not in ("SOFTMAX", "SOFTMAX_ZERO"):
        raise RefusedError(f"its post_transform is '{kind}', and none of {', '.join(POST_TRANSFORMS)}")
    powers = np.exp(scores - np.max(scores, -1, keepdims=True))
    if kind == "SOFTMAX_ZERO":  # scores of 0 are probabilities of 0
        powers = np.where(np.abs(scores) > number(scores, 1e-7), powers, number(scores, 0))
    return powers / np.sum(powers, -1, keepdims=True)


def labels_of(node: Node, integers: str) -> Any:
    """The labels of classes as integers. The numbers of those that are strings stand for them."""
    if node[integers]:
        return np.asarray(node[integers], np.int64)
    texts = node["classlabels_strings"] or []
    if texts:
        told = ", ".join(f"{k} is '{text}'" for k, text in enumerate(texts[:8])) + (", ..." if len(texts) > 8 else "")
        node.note(f"labels that are strings become numbers: {told}")
    return np.arange(len(texts), dtype=np.int64)


def best(node: Node, scores: Value) -> Value:
    """The number of the first of the highest scores along the last axis."""
    return computed(node, "argmax", scores, axes=(scores.ndim - 1,), index_dtype="i64")


def matrix(x: Value) -> Value:
    """Samples as rows: one sample may come without its axis."""
    return x.reshape(1, -1) if x.ndim < 2 else x.reshape(x.shape[0], -1)


def _linear(node: Node, x: Value, n: int) -> Value:
    scores = x @ array(x, node["coefficients"], n, x.shape[1]).T
    return scores + array(x, node["intercepts"], n) if node["intercepts"] else scores


def _linear_regressor(node: Node, x: Value) -> Value:
    x = matrix(floats(node, x))
    return transformed(node, _linear(node, x, node["targets"]), node["post_transform"])


def _linear_classifier(node: Node, x: Value) -> list[Value]:
    x, labels = matrix(floats(node, x)), labels_of(node, "classlabels_ints")
    n = len(node["coefficients"] or ()) // max(x.shape[1], 1)
    scores = _linear(node, x, n)
    if n == 1 and len(labels) == 2:
        chosen = (scores[:, 0] > number(x, 0)).astype(np.int64)
        ones = computed(node, "logistic", scores) if node["post_transform"] == "LOGISTIC" else scores
        return [at(node, labels, chosen), np.concatenate([number(x, 1) - ones, ones], 1)]
    return [at(node, labels, best(node, scores)), transformed(node, scores, node["post_transform"])]


def _normalizer(node: Node, x: Value) -> Value:
    x = floats(node, x)
    kind, zero, one = node["norm"], number(x, 0), number(x, 1)
    if kind == "MAX":
        norm = np.max(x, -1, keepdims=True)
    elif kind == "L1":
        norm = np.sum(np.abs(x), -1, keepdims=True)
    elif kind == "L2":
        squares = np.sum(x * x, -1, keepdims=True)
        norm = np.sqrt(np.where(squares == zero, one, squares))  # no rows of zeros, where roots have no derivative
    else:
        raise RefusedError(f"its norm is '{kind}', and none of MAX, L1 and L2")
    return x / np.where(norm == zero, one, norm)


def _scaler(node: Node, x: Value) -> Value:
    x = floats(node, x)
    return (x - array(x, node["offset"])) * array(x, node["scale"])


def _imputer(node: Node, x: Value) -> Value:
    if np.dtype(x.dtype).kind in "iu":
        values, missing = array(x, node["imputed_value_int64s"]), x == number(x, node["replaced_value_int64"])
    else:
        values, replaced = array(x, node["imputed_value_floats"]), node["replaced_value_float"]
        missing = np.isnan(x) if np.isnan(replaced) else x == number(x, replaced)
    if not values.size:
        raise RefusedError(f"has no value for missing elements of {x.dtype}")
    return np.where(missing, values, x)


def _feature_extractor(node: Node, x: Value, places: Value) -> Value:
    features = at(node, x, Ellipsis, places.reshape(-1))
    return features.reshape(1, -1) if x.ndim == 1 else features


def _feature_vectorizer(node: Node, *parts: Value) -> Value:
    due = node["inputdimensions"] or [matrix(x).shape[1] for x in parts]
    if len(due) != len(parts):
        raise RefusedError(f"has {len(due)} inputdimensions for {len(parts)} inputs")
    rows = [matrix(floats(node, x)) for x in parts]
    padded = [np.pad(x[:, :n], ((0, 0), (0, max(n - x.shape[1], 0)))) for x, n in zip(rows, due, strict=True)]
    return np.concatenate(padded, 1)


def _one_hot_encoder(node: Node, x: Value) -> Value:
    if not node["cats_int64s"]:
        raise RefusedError("encodes strings, of which tidu has no arrays; encode the numbers of categories")
    kinds = np.asarray(node["cats_int64s"], np.int64)
    return (np.expand_dims(x.astype(np.int64), -1) == kinds).astype(node.dtype(1))


def _label_encoder(node: Node, x: Value) -> Value:
    """Values of keys, looked up by comparing with each."""
    kinds = ("int64s", "floats", "tensor", "strings")
    given = {side: next((kind for kind in kinds if node.has(f"{side}_{kind}")), None) for side in ("keys", "values")}
    if not all(given.values()) or "strings" in given.values():
        raise RefusedError("encodes strings, of which tidu has no arrays")
    keys, values = (np.ravel(np.asarray(node[f"{side}_{kind}"])) for side, kind in given.items())
    if keys.size != values.size:
        raise RefusedError(f"has {keys.size} keys and {values.size} values")
    is_float = values.dtype.kind == "f"
    default = node["default_tensor"] if node.has("default_tensor") else node["default_float" if is_float else "default_int64"]
    dtype = values.dtype if given["values"] == "tensor" else np.dtype(node.dtype(1) if is_float else np.int64)
    table = np.append(values.astype(dtype), np.ravel(np.asarray(default)).astype(dtype))
    wide = np.expand_dims(x, -1)
    same = wide == keys.astype(x.dtype)
    if keys.dtype.kind == "f":
        same = np.logical_or(same, np.logical_and(np.isnan(wide), np.isnan(keys)))
    same = np.concatenate([same, np.broadcast_to(np.True_, (*x.shape, 1))], -1)
    return at(node, table, computed(node, "argmax", same.astype(np.int32), axes=(x.ndim,), index_dtype="i64"))


def _zip_map(node: Node, x: Value) -> Value:
    labels_of(node, "classlabels_int64s")
    node.note("its output is the array of numbers in place of maps from labels to them")
    return x


_MACHINE_LEARNING: Mapping[str, Operator] = {
    "ArrayFeatureExtractor": _feature_extractor,
    "Binarizer": lambda node, x: np.where(x > number(x, node["threshold"]), number(x, 1), number(x, 0)),
    "FeatureVectorizer": _feature_vectorizer,
    "Imputer": _imputer,
    "LabelEncoder": _label_encoder,
    "LinearClassifier": _linear_classifier,
    "LinearRegressor": _linear_regressor,
    "Normalizer": _normalizer,
    "OneHotEncoder": _one_hot_encoder,
    "Scaler": _scaler,
    "ZipMap": _zip_map,
}

REFUSED: Mapping[str, str] = {
    "CastMap": "takes a map, and tidu computes with arrays only; give the array of its numbers",
    "CategoryMapper": "maps strings, of which tidu has no arrays; give the numbers of categories",
    "DictVectorizer": "takes a map, and tidu computes with arrays only; give the array of its numbers",
}
"""Why other operators are not read."""


# Support vector machines of ai.onnx.ml.


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
        values = _kernel(node, x, array(x, node["support_vectors"], n, x.shape[1])) @ array(x, node["coefficients"], n, 1) + rho
    else:
        values = x @ array(x, node["coefficients"], x.shape[1], 1) + rho
    if node["one_class"]:
        return np.where(values > number(x, 0), number(x, 1), number(x, -1))
    return transformed(node, values, node["post_transform"])


def _classifier(node: Node, x: Value) -> list[Value]:
    x, labels = matrix(floats(node, x)), labels_of(node, "classlabels_ints")
    sizes, kind = node["vectors_per_class"] or [], node["post_transform"]
    if not sizes:
        n = max(len(labels), 1)
        scores = _kernel(node, x, array(x, node["coefficients"], n, x.shape[1])) + array(x, node["rho"])[:1]
        return [at(node, labels, best(node, scores)), transformed(node, scores, kind)]
    n, total = len(sizes), sum(sizes)
    kernels = _kernel(node, x, array(x, node["support_vectors"], total, x.shape[1]))
    decisions = kernels @ _pairwise(sizes, array(x, node["coefficients"], n - 1, total)) + array(x, node["rho"], n * (n - 1) // 2)
    votes = [np.where(decisions[:, k] > number(x, 0), i, j) for k, (i, j) in enumerate(combinations(range(n), 2))]
    counts = np.stack([sum((vote == c).astype(np.int64) for vote in votes) for c in range(n)], -1)
    # The greatest score may be another's than that of most votes.
    scores = _coupled(node, decisions, n) if node["prob_a"] else _both(decisions)
    return [at(node, labels, best(node, counts)), transformed(node, scores, kind)]


def _both(decisions: Value) -> Value:
    """The scores of pairs, or of each of two classes, as onnxruntime has them."""
    return np.concatenate([-decisions, decisions], 1) if decisions.shape[1] == 1 else decisions


def _pairwise(sizes: Any, coefficients: Any) -> Any:
    """The weights of support vectors in the decision between each pair of classes: those of one row for each other class."""
    ends = np.cumsum(sizes)
    columns = []
    for i, j in combinations(range(len(sizes)), 2):
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
    for k, (i, j) in enumerate(combinations(range(n), 2)):
        r[i, j], r[j, i] = one[:, k], number(one, 1) - one[:, k]
    rows = [
        [sum(r[j, i] * r[j, i] for j in range(n) if j != i) if i == k else -r[k, i] * r[i, k] for k in range(n)] for i in range(n)
    ]
    ones, zeros = np.ones(decisions.shape[0], decisions.dtype), np.zeros(decisions.shape[0], decisions.dtype)
    system = np.stack([np.stack([*row, ones], -1) for row in rows] + [np.stack([*[ones] * n, zeros], -1)], -2)
    due = np.stack([*[zeros] * n, ones], -1)
    return np.linalg.solve(system, np.expand_dims(due, -1))[:, :n, 0]


_SUPPORT_VECTORS: Mapping[str, Operator] = {"SVMClassifier": _classifier, "SVMRegressor": _regressor}

OPERATORS: Mapping[str, Operator] = {**_MACHINE_LEARNING, **_SUPPORT_VECTORS}
