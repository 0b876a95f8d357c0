"""Attention: values weighted by the softmax of queries times keys."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, at, counted, number
from tidu_cli.adapters.onnx.reading.operators.elementwise import converted
from tidu_cli.adapters.onnx.reading.operators.joining import padded, part
from tidu_cli.adapters.onnx.reading.operators.reductions import greatest, softmax, times, total
from tidu_cli.frozen import Frozen


def rotated(x: Value, cos: Value, sin: Value, interleaved: bool) -> Value:
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
    turned = rotated(apart, cos, sin, bool(node["interleaved"]))
    return heads_together(turned) if x.ndim == 3 else turned


class Mask(Frozen, slots=False):
    """What a query sees of the keys: those that are `allowed`, and numbers that are added to scores; None for all and none.

    Both broadcast to scores, [batch, heads, queries, keys].
    """

    allowed: Value | None = None
    bias: Value | None = None

    def both(self, allowed: Value | None) -> Mask:
        """This, and those alone that another mask allows, too."""
        if self.allowed is None or allowed is None:
            return Mask(self.allowed if allowed is None else allowed, self.bias)
        return Mask(np.logical_and(self.allowed, allowed), self.bias)

    @property
    def may_hide_all(self) -> bool:
        """Whether there may be queries that see no key."""
        if self.bias is not None or isinstance(self.allowed, Array):
            return True
        return self.allowed is not None and not bool(np.all(np.any(self.allowed, axis=-1)))


class Attended(Frozen, slots=False):
    """What attention makes of queries: the output, [batch, heads, queries, size], and scores as they become probabilities."""

    output: Value
    raw: Value
    capped: Value
    masked: Value
    probabilities: Value


def heads_apart(x: Value, n: int, what: str) -> Value:
    """[batch, sequence, heads · size] as [batch, heads, sequence, size]."""
    if x.ndim != 3 or n < 1 or x.shape[2] % n:
        raise RefusedError(f"its {what} of shape {list(x.shape)} does not consist of {n} heads")
    return np.transpose(np.reshape(x, (*x.shape[:2], n, x.shape[2] // n)), (0, 2, 1, 3))


def heads_together(x: Value) -> Value:
    """What `heads_apart` is made of."""
    batch, heads, sequence, size = x.shape
    return np.reshape(np.transpose(x, (0, 2, 1, 3)), (batch, sequence, heads * size))


def attend(
    node: Node, q: Value, k: Value, v: Value, mask: Mask, scale: float | None = None, softcap: float = 0.0,
    precision: int | None = None,
) -> Attended:  # fmt: skip
    """Attention of queries, keys and values, [batch, heads, sequence, size], with a head of keys for each so many of queries.

    `precision` is the code of the dtype that the softmax is computed in.
    """
    batch, heads, queries, size = _require_fitting(q, k, v)
    grouped = (batch, k.shape[1], heads // k.shape[1] * queries)  # the queries of heads that share one of keys, in a row
    raw = _products(node, np.reshape(q, (*grouped, size)), k, 1 / math.sqrt(size or 1) if scale is None else scale)
    raw = np.reshape(raw, (batch, heads, queries, k.shape[2]))
    capped = np.tanh(times(raw, 1 / softcap)) * number(raw, softcap) if softcap else raw
    masked = capped if mask.bias is None else capped + mask.bias
    if mask.allowed is not None:
        masked = np.where(mask.allowed, masked, number(masked, -math.inf))
    scores = masked if precision is None else converted(node, masked, node.dtype(precision))
    weights = _softmax_of_some(node, scores) if mask.may_hide_all else softmax(node, scores, (3,))
    probabilities = converted(node, weights, q.dtype)
    output = np.einsum("bhqk,bhkd->bhqd", np.reshape(probabilities, (*grouped, k.shape[2])), v)
    return Attended(np.reshape(output, (batch, heads, queries, v.shape[3])), raw, capped, masked, probabilities)


def _products(node: Node, q: Value, k: Value, scale: float) -> Value:
    """Queries times keys, scaled: in narrow dtypes both before, as the specification says, since products could overflow."""
    if q.dtype.itemsize < 4 and scale > 0:
        q, k = times(q, math.sqrt(scale)), times(k, math.sqrt(scale))
    else:
        q = times(q, scale)
    return np.einsum("bhqd,bhkd->bhqk", node.traced(q), k)


def _require_fitting(q: Value, k: Value, v: Value) -> tuple[int, ...]:
    shapes = " and ".join(str(list(x.shape)) for x in (q, k, v))
    if {q.ndim, k.ndim, v.ndim} != {4} or q.shape[3] != k.shape[3] or k.shape[:3] != v.shape[:3] or q.shape[0] != k.shape[0]:
        raise RefusedError(f"queries, keys and values of shapes {shapes} do not fit each other")
    if not k.shape[1] or q.shape[1] % k.shape[1]:
        raise RefusedError(f"{q.shape[1]} heads of queries are not a multiple of {k.shape[1]} of keys")
    return tuple(q.shape)


def _softmax_of_some(node: Node, x: Value) -> Value:
    """The softmax along the last axis, and 0 for rows of -inf alone, with derivatives that are numbers."""
    zero, top = number(x, 0), greatest(node, x, (3,))
    powers = np.exp(x - np.where(top == number(x, -math.inf), zero, top))
    added = total(powers, (3,))
    return powers / np.where(added == zero, number(x, 1), added)


def window(node: Node, queries: int, keys: int, offset: Value | int, left: int | None, right: int | None) -> Value | None:
    """Which keys are no more than `left` places before a query and `right` after it. Queries begin at `offset` among the keys."""
    if left is None and right is None:
        return None
    rows = np.reshape(counted(node, queries), (queries, 1))
    rows = node.sized(rows, (queries, keys)) + offset
    columns = counted(node, keys)
    bounds = [columns >= rows - left] if left is not None else []
    bounds += [columns <= rows + right] if right is not None else []
    return bounds[0] if len(bounds) == 1 else np.logical_and(*bounds)


def with_past(past: Value | None, x: Value) -> Value:
    """Keys or values of [batch, heads, sequence, size], after those of the past."""
    return x if past is None else np.concatenate([past, x], 2)


def _attention(
    node: Node, q: Value, k: Value, v: Value, attn_mask: Value | None = None, past_key: Value | None = None,
    past_value: Value | None = None, nonpad_kv_seqlen: Value | None = None,
) -> list[Value]:  # fmt: skip
    if (past_key is None) != (past_value is None) or (past_key is not None and nonpad_kv_seqlen is not None):
        raise RefusedError("takes past_key and past_value together, and then no nonpad_kv_seqlen")
    if q.ndim not in (3, 4) or {q.ndim, k.ndim, v.ndim} != {q.ndim}:
        raise RefusedError(f"its Q, K and V have {q.ndim}, {k.ndim} and {v.ndim} axes, and not 3 or 4")
    flat = q.ndim == 3
    if flat:
        n_queries, n_keys = node["q_num_heads"] or 0, node["kv_num_heads"] or 0
        q, k, v = heads_apart(q, n_queries, "Q"), heads_apart(k, n_keys, "K"), heads_apart(v, n_keys, "V")
    past = 0 if past_key is None else past_key.shape[2]
    k, v = with_past(past_key, k), with_past(past_value, v)
    queries, keys = q.shape[2], k.shape[2]
    offset: Value | int = past
    mask = _given_mask(node, attn_mask, keys)
    if nonpad_kv_seqlen is not None:
        lengths = np.reshape(converted(node, nonpad_kv_seqlen, np.dtype(np.int64)), (-1, 1, 1, 1))
        mask, offset = mask.both(counted(node, keys) < lengths), lengths - number(lengths, queries)
    left, right = (None if node[n] is None or node[n] < 0 else node[n] for n in ("left_window_size", "right_window_size"))
    mask = mask.both(window(node, queries, keys, offset, left, 0 if node["is_causal"] else right))
    attended = attend(node, q, k, v, mask, node["scale"], node["softcap"], node["softmax_precision"])
    modes = (attended.raw, attended.capped, attended.masked, attended.probabilities)
    if not 0 <= node["qk_matmul_output_mode"] < len(modes):
        raise RefusedError(f"its qk_matmul_output_mode is {node['qk_matmul_output_mode']}, which is none of 0 to 3")
    return [heads_together(attended.output) if flat else attended.output, k, v, modes[node["qk_matmul_output_mode"]]]


def _given_mask(node: Node, x: Value | None, keys: int) -> Mask:
    """A mask of fewer keys than there are hides those after them."""
    if x is None:
        return Mask()
    hidden = np.array(False) if x.dtype == bool else number(x, -math.inf)
    if x.ndim and x.shape[-1] < keys:
        x = padded(node, x, [(0, 0)] * (x.ndim - 1) + [(0, keys - x.shape[-1])], value=hidden)
    return Mask(allowed=x) if x.dtype == bool else Mask(bias=x)


OPERATORS: Mapping[str, Operator] = {
    "Attention": _attention,
    "RotaryEmbedding": _rotary_embedding,
}
