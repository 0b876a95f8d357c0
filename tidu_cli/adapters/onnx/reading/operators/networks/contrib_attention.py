"""Attention as onnxruntime's optimizer fuses it, of the domain com.microsoft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import numpy as np

from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, counted, number
from tidu_cli.adapters.onnx.reading.operators.elementwise import converted
from tidu_cli.adapters.onnx.reading.operators.joining import part
from tidu_cli.adapters.onnx.reading.operators.networks.attention import (
    Attended,
    Mask,
    angles_at,
    attend,
    heads_apart,
    heads_together,
    rotated,
    window,
    with_past,
)
from tidu_cli.adapters.onnx.reading.operators.networks.contrib import checked, given
from tidu_cli.adapters.onnx.reading.operators.reductions import matmul


def _bias_of(node: Node, x: Value, kept: Value | None, attention_bias: Value | None, shape: tuple[int, int, int]) -> Value | None:
    """What is added to scores of [batch, queries, keys]: a bias, and where a mask of integers is 0 a great negative number."""
    batch, queries, keys = shape
    if kept is None:
        return attention_bias
    if kept.shape == (batch,) and kept.shape != (batch, keys):  # how many keys of each sequence there are
        kept = counted(node, keys) < np.reshape(converted(node, kept, np.dtype(np.int64)), (batch, 1, 1, 1))
    elif kept.shape == (batch, keys):
        kept = np.reshape(kept, (batch, 1, 1, keys))
    elif kept.shape == (batch, queries, keys):
        kept = np.reshape(kept, (batch, 1, queries, keys))
    else:
        raise RefusedError(
            f"a mask of shape {list(kept.shape)} for {batch} batches of {queries} queries and {keys} keys is not read"
        )
    seen = kept if kept.dtype == bool else kept > number(kept, 0)
    hidden = np.where(seen, number(x, 0), number(x, given(node, "mask_filter_value", -10000.0)))
    return hidden if attention_bias is None else hidden + attention_bias


def _attended(node: Node, q: Value, k: Value, v: Value, kept: Value | None, attention_bias: Value | None, past: int) -> Attended:
    shape = (q.shape[0], q.shape[2], k.shape[2])
    causal = window(node, *shape[1:], past, None, 0) if node["unidirectional"] else None
    mask = Mask(causal, _bias_of(node, q, kept, attention_bias, shape))
    return attend(node, q, k, v, mask, node["scale"] or None)


def _require_none(operands: tuple[Value | None, ...], what: str) -> None:
    if any(x is not None for x in operands):
        raise RefusedError(f"{what} are not read")


def _multi_head_attention(
    node: Node, query: Value, key: Value | None = None, value: Value | None = None, bias: Value | None = None,
    key_padding_mask: Value | None = None, attention_bias: Value | None = None, past_key: Value | None = None,
    past_value: Value | None = None, *others: Value | None,
) -> list[Value]:  # fmt: skip
    _require_none(others, "its inputs after 'past_value'")
    q, k, v = _projections(node, query, key, value, bias)
    past = 0 if past_key is None else past_key.shape[2]
    k, v = with_past(past_key, k), with_past(past_value, v)
    attended = _attended(node, q, k, v, key_padding_mask, attention_bias, past)
    return [heads_together(attended.output), k, v, attended.raw]


def _projections(node: Node, query: Value, key: Value | None, value: Value | None, bias: Value | None) -> list[Value]:
    """Queries, keys and values, [batch, heads, sequence, size], with their biases, which stand one after the other."""
    heads = node["num_heads"] or 0
    if query.ndim == 5:  # [batch, sequence, heads, 3, size]
        projected = [np.moveaxis(query[:, :, :, k], 1, 2) for k in range(3)]
    elif key is not None and key.ndim == 5:  # [batch, sequence, heads, 2, size]
        projected = [heads_apart(query, heads, "query"), *(np.moveaxis(key[:, :, :, k], 1, 2) for k in range(2))]
    elif key is None or value is None:
        raise RefusedError(f"has no key or no value beside a query of shape {list(query.shape)}")
    else:
        named = ((query, "query"), (key, "key"), (value, "value"))
        projected = [x if x.ndim == 4 else heads_apart(x, heads, what) for x, what in named]
    if bias is None:
        return projected
    sizes = [x.shape[1] * x.shape[3] for x in projected]
    if bias.shape != (sum(sizes),):
        raise RefusedError(f"its bias of shape {list(bias.shape)} does not consist of {sizes} elements")
    biases = _parts(bias, sizes)
    return [x + np.reshape(b, (1, x.shape[1], 1, x.shape[3])) for x, b in zip(projected, biases, strict=True)]


def _parts(x: Value, sizes: Sequence[int]) -> list[Value]:
    """Parts along the last axis, one of each size."""
    return [part(x, x.ndim - 1, slice(a, b)) for a, b in pairwise([0, *accumulate(sizes)])]


def _attention(
    node: Node, x: Value, weights: Value, bias: Value | None = None, mask_index: Value | None = None, past: Value | None = None,
    attention_bias: Value | None = None, *others: Value | None,
) -> list[Value]:  # fmt: skip
    """Of projections of one operand, whose weights stand side by side, to queries, keys and values."""
    _require_none(others, "its inputs after 'attention_bias'")
    if node["do_rotary"]:
        raise RefusedError("with do_rotary is not read")
    projected = matmul(node, x, weights)
    projected = projected if bias is None else projected + bias
    width = projected.shape[-1]
    sizes = node["qkv_hidden_sizes"] or [width // 3] * 3
    if len(sizes) != 3 or sum(sizes) != width or min(sizes) < 1:
        raise RefusedError(f"weights of {width} columns do not consist of {sizes}")
    named = zip(_parts(projected, sizes), ("query", "key", "value"), strict=True)
    q, k, v = (heads_apart(x, node["num_heads"] or 0, what) for x, what in named)
    if past is not None:
        k, v = with_past(past[0], k), with_past(past[1], v)
    attended = _attended(node, q, k, v, mask_index, attention_bias, 0 if past is None else past.shape[3])
    return [heads_together(attended.output), np.stack([k, v]) if node.wants(1) else None]


def _group_query_attention(
    node: Node, query: Value, key: Value | None, value: Value | None, past_key: Value | None, past_value: Value | None,
    seqlens_k: Value, total_sequence_length: Value, cos: Value | None = None, sin: Value | None = None,
    position_ids: Value | None = None, attention_bias: Value | None = None, *others: Value | None,
) -> list[Value]:  # fmt: skip
    """Causal attention of heads that share keys; what is past are the first of the places that past_key has."""
    _require_none((position_ids, *others), "its position_ids, and inputs after 'attention_bias',")
    if node["smooth_softmax"] not in (None, 0, -1):
        raise RefusedError("with smooth_softmax is not read")
    heads, groups = node["num_heads"] or 0, node["kv_num_heads"] or 0
    if key is None or value is None:
        size = query.shape[-1] // max(heads + 2 * groups, 1)
        query, key, value = _parts(query, [heads * size, groups * size, groups * size])
    named = ((query, heads, "query"), (key, groups, "key"), (value, groups, "value"))
    q, k, v = (heads_apart(x, n, what) for x, n, what in named)
    queries, total = q.shape[2], node.ints(total_sequence_length, "total_sequence_length")[0]
    past = total - queries
    if any(n != total - 1 for n in node.ints(seqlens_k, "seqlens_k")) or past < 0:
        raise RefusedError(f"sequences of other lengths than the total one, {total}, of at least {queries}, are not read")
    if node["do_rotary"]:
        if cos is None or sin is None:
            raise RefusedError("has do_rotary, and no angles")
        places = np.reshape(np.arange(past, total), (1, queries))
        angles = angles_at(node, cos, sin, places)
        q, k = (rotated(node, x, *angles, bool(node["rotary_interleaved"])) for x in (q, k))
    present = [_written(old, new, past) for old, new in ((past_key, k), (past_value, v))]
    k, v = (part(x, 2, slice(0, total)) for x in present)
    left = node["local_window_size"]
    seen = window(node, queries, total, past, left - 1 if left is not None and left > 0 else None, 0)
    attended = attend(node, q, k, v, Mask(seen, attention_bias), node["scale"] or None, node["softcap"] or 0.0)
    return [heads_together(attended.output), *present]


def _written(old: Value | None, new: Value, past: int) -> Value:
    """Keys or values of the past, and new ones after so many of them."""
    end, n = past + new.shape[2], 0 if old is None else old.shape[2]
    if n < past:
        raise RefusedError(f"{past} places are past, and its past has {n}")
    parts = [] if old is None or not n else [part(old, 2, slice(0, past)), new, part(old, 2, slice(end, n))]
    parts = [x for x in parts if x.shape[2]] or [new]
    return np.concatenate(parts, 2) if len(parts) > 1 else parts[0]


def _rotary_embedding(node: Node, x: Value, position_ids: Value, cos: Value, sin: Value) -> Value:
    heads = node["num_heads"] or (x.shape[2] // max(2 * cos.shape[-1], 1) if x.ndim == 3 and cos.ndim else 0)
    apart = x if x.ndim == 4 else heads_apart(x, heads, "input")
    if position_ids.size == 1 and position_ids.ndim == 1:  # where sequences begin
        places = np.reshape(position_ids, (1, 1)) + counted(node, apart.shape[2])
    else:
        places = position_ids
    cos, sin = angles_at(node, cos, sin, places)
    turned = rotated(node, apart, cos, sin, bool(node["interleaved"]))
    return heads_together(turned) if x.ndim == 3 else turned


OPERATORS: Mapping[str, Operator] = {
    "Attention": checked(_attention),
    "GroupQueryAttention": checked(_group_query_attention),
    "MultiHeadAttention": checked(_multi_head_attention),
    "RotaryEmbedding": checked(_rotary_embedding),
}
