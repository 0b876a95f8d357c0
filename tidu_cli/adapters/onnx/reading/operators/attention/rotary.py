"""Rotary embeddings: pairs of elements turned by angles that say where in a sequence they are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tidu_cli.adapters.onnx.reading.folding import at
from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value
from tidu_cli.adapters.onnx.reading.operators.arrays.joining import part
from tidu_cli.adapters.onnx.reading.operators.attention.attention import heads_apart, heads_together


def rotated(node: Node, x: Value, cos: Value, sin: Value, interleaved: bool) -> Value:
    """x of [batch, heads, sequence, size] turned by angles of [batch, sequence, pairs].

    Pairs stand side by side, or one in each of two halves. What is past them stays as it is.
    (Su and others, RoFormer: Enhanced Transformer with Rotary Position Embedding, 2021.)
    """
    pairs, size = cos.shape[-1], x.shape[3]
    if cos.ndim != 3 or cos.shape != sin.shape or 2 * pairs > size:
        raise RefusedError(f"angles of shapes {list(cos.shape)} and {list(sin.shape)} do not fit heads of {size} elements")
    cos, sin = np.expand_dims(cos, 1), np.expand_dims(sin, 1)
    even, odd = (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)) if interleaved else (slice(0, pairs), slice(pairs, 2 * pairs))
    a, b = part(x, 3, even), part(x, 3, odd)
    turned = [a * cos - b * sin, a * sin + b * cos]
    if interleaved:
        turned = [np.reshape(np.stack(turned, -1), (*x.shape[:3], 2 * pairs))]
    rest = [part(x, 3, slice(2 * pairs, size))] if 2 * pairs < size else []
    return np.concatenate([*turned, *rest], 3) if len(turned) + len(rest) > 1 else turned[0]


def angles_at(node: Node, cos: Value, sin: Value, places: Value) -> tuple[Value, Value]:
    """The rows for places, [batch, sequence], of tables of angles."""
    if cos.ndim != 2 or sin.ndim != 2:
        raise RefusedError(f"its angles are of shapes {list(cos.shape)} and {list(sin.shape)}, and not a row for each place")
    return at(node, cos, places), at(node, sin, places)


def _rotary_embedding(node: Node, x: Value, cos: Value, sin: Value, position_ids: Value | None = None) -> Value:
    if position_ids is not None:
        cos, sin = angles_at(node, cos, sin, position_ids)
    size = node["rotary_embedding_dim"]
    if cos.ndim != 3:
        raise RefusedError(f"its angles are of shape {list(cos.shape)}, and not [batch, sequence, pairs]")
    if size and cos.shape[-1] != size // 2:
        raise RefusedError(f"its rotary_embedding_dim is {size}, and there are {cos.shape[-1]} angles")
    apart = x if x.ndim == 4 else heads_apart(x, node["num_heads"] or 0, "X")
    if not size and 2 * cos.shape[-1] != apart.shape[3]:
        raise RefusedError(f"there are {cos.shape[-1]} angles for heads of {apart.shape[3]} elements")
    found = rotated(node, apart, cos, sin, bool(node["interleaved"]))
    return heads_together(found) if x.ndim == 3 else found


OPERATORS: Mapping[str, Operator] = {
    "RotaryEmbedding": _rotary_embedding,
}
