"""Operators of the domain com.microsoft, in which onnxruntime's optimizer puts what it fuses. Its documentation defines them.

They are activations, products, normalizations and attention.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import name_of
from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, at, counted, number
from tidu_cli.adapters.onnx.reading.operators.elementwise import converted, gelu, relu, sigmoid
from tidu_cli.adapters.onnx.reading.operators.joining import part, parted
from tidu_cli.adapters.onnx.reading.operators.networks import attention
from tidu_cli.adapters.onnx.reading.operators.networks.signal import OPERATORS as CONVOLUTIONS
from tidu_cli.adapters.onnx.reading.operators.normalization import by_deviation, by_root_mean_square, rms_normalization
from tidu_cli.adapters.onnx.reading.operators.quantization import OPERATORS as QUANTIZATION
from tidu_cli.adapters.onnx.reading.operators.reductions import gemm, matmul, times
from tidu_cli.graph.types import FLOATS


def given(node: Node, name: str, default: float) -> float:
    """An attribute, or what the documentation says it is where it is left out: the domain has no schemas here."""
    value = node[name]
    return default if value is None else value


def checked(function: Operator, whole: bool = False) -> Operator:
    """The operator, which refuses other operands than it takes, and, but where `whole`, a first one that is not of floats."""
    declared = list(inspect.signature(function).parameters.values())[1:]
    least = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in declared)
    most = math.inf if declared[-1].kind is declared[-1].VAR_POSITIONAL else len(declared)

    def apply(node: Node, *operands: Value | None) -> Any:
        if not least <= len(operands) <= most:
            raise RefusedError(f"takes {least} inputs{'' if most == least else ' or more'}, and has {len(operands)}")
        missing = [k for k, p in enumerate(declared[: len(operands)]) if operands[k] is None and "None" not in str(p.annotation)]
        if missing:
            raise RefusedError(f"its input {missing[0]} is left out")
        first = operands[0]
        if first is not None and not whole and name_of(first.dtype) not in FLOATS:
            raise RefusedError(f"its first input is of {name_of(first.dtype)}, and not of floats")
        return function(node, *operands)

    return apply


def _plus(x: Value, *others: Value | None) -> Value:
    """The sum of those that there are."""
    for other in others:
        x = x if other is None else x + other
    return x


# Activations.


def _fast_gelu(node: Node, x: Value, bias: Value | None = None) -> Value:
    return gelu(node, _plus(x, bias), "tanh")


# Products.


def _fused_matmul(node: Node, x: Value, y: Value) -> Value:
    """alpha x y, of which each may be transposed, and before that have the axis of its rows ahead of those of the batch."""
    operands = []
    for value, letter in ((x, "A"), (y, "B")):
        turned = np.moveaxis(value, 0, -2) if node[f"transBatch{letter}"] and value.ndim > 2 else value
        operands.append(np.swapaxes(turned, -1, -2) if node[f"trans{letter}"] and value.ndim > 1 else turned)
    return times(matmul(node, *operands), given(node, "alpha", 1.0))


def _clip(x: Value, low: float, high: float) -> Value:
    return np.minimum(np.maximum(x, number(x, low)), number(x, high))


ACTIVATIONS: Mapping[str, Callable[..., Value]] = {
    "": lambda node, x: x,
    "Clip": lambda node, x, low, high: _clip(x, low, high),
    "HardSigmoid": lambda node, x, alpha=0.2, beta=0.5: _clip(x * number(x, alpha) + number(x, beta), 0, 1),
    "LeakyRelu": lambda node, x, alpha=0.01: np.where(x < number(x, 0), x * number(x, alpha), x),
    "Relu": lambda node, x: relu(x),
    "Sigmoid": sigmoid,
    "Tanh": lambda node, x: np.tanh(x),
}
"""What may follow a fused product, by its attribute `activation`, with its parameters."""


def activated(node: Node, x: Value) -> Value:
    """x after the activation that the node is fused with. Raises RefusedError for one that is not known."""
    name = node["activation"] or ""
    if name not in ACTIVATIONS:
        raise RefusedError(f"is fused with the activation '{name}' (known: {', '.join(filter(None, ACTIVATIONS))})")
    given = node["activation_params"] or [node[f"activation_{k}"] for k in ("alpha", "beta") if node.has(f"activation_{k}")]
    return ACTIVATIONS[name](node, x, *given)


def _fused_gemm(node: Node, a: Value, b: Value, c: Value | None = None) -> Value:
    return activated(node, gemm(node, a, b, c))


def _fused_conv(node: Node, x: Value, w: Value, bias: Value | None = None, z: Value | None = None) -> Value:
    return activated(node, _plus(CONVOLUTIONS["Conv"](node, x, w, bias), z))


# Normalizations.


def _skip_layer_normalization(
    node: Node, x: Value, skip: Value, gamma: Value, beta: Value | None = None, bias: Value | None = None
) -> list[Value]:
    added = _plus(x, skip, bias)
    return [*by_deviation(node, added, gamma, beta, (x.ndim - 1,), given(node, "epsilon", 1e-12)), added]


def _skip_simplified_layer_normalization(node: Node, x: Value, skip: Value, gamma: Value, bias: Value | None = None) -> list[Value]:
    added = _plus(x, skip, bias)
    y, inverse = by_root_mean_square(node, added, gamma, (x.ndim - 1,), given(node, "epsilon", 1e-12))
    return [y, None, inverse, added]


def _embed_layer_normalization(
    node: Node, input_ids: Value, segment_ids: Value | None, words: Value, positions: Value, segments: Value | None,
    gamma: Value, beta: Value, mask: Value | None = None, position_ids: Value | None = None,
) -> list[Value]:  # fmt: skip
    """The sum of embeddings of words, positions and segments, normalized; how many places the mask has; and that sum."""
    if input_ids.ndim != 2 or words.ndim != 2 or positions.ndim != 2:
        raise RefusedError(f"its input_ids have {input_ids.ndim} axes, its embeddings {words.ndim} and {positions.ndim}, and not 2")
    batch, sequence = input_ids.shape
    place = positions[:sequence] if position_ids is None else at(node, positions, position_ids)
    added = at(node, words, input_ids) + place
    if segment_ids is not None and segments is not None:
        added = added + at(node, segments, segment_ids)
    y = by_deviation(node, added, gamma, beta, (2,), given(node, "epsilon", 1e-12))[0]
    counted = np.zeros(batch, np.int32) if mask is None else np.sum(mask, 1, dtype=np.int32)
    return [y, counted, added]


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


def _attended(
    node: Node, q: Value, k: Value, v: Value, kept: Value | None, attention_bias: Value | None, past: int
) -> attention.Attended:
    shape = (q.shape[0], q.shape[2], k.shape[2])
    causal = attention.window(node, *shape[1:], past, None, 0) if node["unidirectional"] else None
    mask = attention.Mask(causal, _bias_of(node, q, kept, attention_bias, shape))
    return attention.attend(node, q, k, v, mask, node["scale"] or None)


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
    k, v = attention.with_past(past_key, k), attention.with_past(past_value, v)
    attended = _attended(node, q, k, v, key_padding_mask, attention_bias, past)
    return [attention.heads_together(attended.output), k, v, attended.raw]


def _projections(node: Node, query: Value, key: Value | None, value: Value | None, bias: Value | None) -> list[Value]:
    """Queries, keys and values, [batch, heads, sequence, size], with their biases, which stand one after the other."""
    heads = node["num_heads"] or 0
    if query.ndim == 5:  # [batch, sequence, heads, 3, size]
        projected = [np.moveaxis(query[:, :, :, k], 1, 2) for k in range(3)]
    elif key is not None and key.ndim == 5:  # [batch, sequence, heads, 2, size]
        projected = [attention.heads_apart(query, heads, "query"), *(np.moveaxis(key[:, :, :, k], 1, 2) for k in range(2))]
    elif key is None or value is None:
        raise RefusedError(f"has no key or no value beside a query of shape {list(query.shape)}")
    else:
        named = ((query, "query"), (key, "key"), (value, "value"))
        projected = [x if x.ndim == 4 else attention.heads_apart(x, heads, what) for x, what in named]
    if bias is None:
        return projected
    sizes = [x.shape[1] * x.shape[3] for x in projected]
    if bias.shape != (sum(sizes),):
        raise RefusedError(f"its bias of shape {list(bias.shape)} does not consist of {sizes} elements")
    biases = parted(bias, 0, sizes)
    return [x + np.reshape(b, (1, x.shape[1], 1, x.shape[3])) for x, b in zip(projected, biases, strict=True)]


def _attention(
    node: Node, x: Value, weights: Value, bias: Value | None = None, mask_index: Value | None = None, past: Value | None = None,
    attention_bias: Value | None = None, *others: Value | None,
) -> list[Value]:  # fmt: skip
    """Of projections of one operand, whose weights stand side by side, to queries, keys and values."""
    _require_none(others, "its inputs after 'attention_bias'")
    if node["do_rotary"]:
        raise RefusedError("with do_rotary is not read")
    projected = _plus(matmul(node, x, weights), bias)
    width = projected.shape[-1]
    sizes = node["qkv_hidden_sizes"] or [width // 3] * 3
    if len(sizes) != 3 or sum(sizes) != width or min(sizes) < 1:
        raise RefusedError(f"weights of {width} columns do not consist of {sizes}")
    named = zip(parted(projected, projected.ndim - 1, sizes), ("query", "key", "value"), strict=True)
    q, k, v = (attention.heads_apart(x, node["num_heads"] or 0, what) for x, what in named)
    if past is not None:
        k, v = attention.with_past(past[0], k), attention.with_past(past[1], v)
    attended = _attended(node, q, k, v, mask_index, attention_bias, 0 if past is None else past.shape[3])
    return [attention.heads_together(attended.output), np.stack([k, v]) if node.wants(1) else None]


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
        query, key, value = parted(query, query.ndim - 1, [heads * size, groups * size, groups * size])
    named = ((query, heads, "query"), (key, groups, "key"), (value, groups, "value"))
    q, k, v = (attention.heads_apart(x, n, what) for x, n, what in named)
    queries, total = q.shape[2], node.ints(total_sequence_length, "total_sequence_length")[0]
    past = total - queries
    if any(n != total - 1 for n in node.ints(seqlens_k, "seqlens_k")) or past < 0:
        raise RefusedError(f"sequences of other lengths than the total one, {total}, of at least {queries}, are not read")
    if node["do_rotary"]:
        if cos is None or sin is None:
            raise RefusedError("has do_rotary, and no angles")
        places = np.reshape(np.arange(past, total), (1, queries))
        angles = attention.angles_at(node, cos, sin, places)
        q, k = (attention.rotated(x, *angles, bool(node["rotary_interleaved"])) for x in (q, k))
    present = [_written(old, new, past) for old, new in ((past_key, k), (past_value, v))]
    k, v = (part(x, 2, slice(0, total)) for x in present)
    left = node["local_window_size"]
    seen = attention.window(node, queries, total, past, left - 1 if left is not None and left > 0 else None, 0)
    attended = attention.attend(node, q, k, v, attention.Mask(seen, attention_bias), node["scale"] or None, node["softcap"] or 0.0)
    return [attention.heads_together(attended.output), *present]


def _written(old: Value | None, new: Value, past: int) -> Value:
    """Keys or values: the first `past` of the old ones, then the new ones."""
    end, n = past + new.shape[2], 0 if old is None else old.shape[2]
    if n < past:
        raise RefusedError(f"{past} places are past, and its past has {n}")
    parts = [] if old is None or not n else [part(old, 2, slice(0, past)), new, part(old, 2, slice(end, n))]
    parts = [x for x in parts if x.shape[2]] or [new]
    return np.concatenate(parts, 2) if len(parts) > 1 else parts[0]


def _rotary_embedding(node: Node, x: Value, position_ids: Value, cos: Value, sin: Value) -> Value:
    heads = node["num_heads"] or (x.shape[2] // max(2 * cos.shape[-1], 1) if x.ndim == 3 and cos.ndim else 0)
    apart = x if x.ndim == 4 else attention.heads_apart(x, heads, "input")
    if position_ids.size == 1 and position_ids.ndim == 1:  # where sequences begin
        position_ids = np.reshape(position_ids, (1, 1)) + counted(node, apart.shape[2])
    cos, sin = attention.angles_at(node, cos, sin, position_ids)
    turned = attention.rotated(apart, cos, sin, bool(node["interleaved"]))
    return attention.heads_together(turned) if x.ndim == 3 else turned


OPERATORS: Mapping[str, Operator] = {
    "Attention": checked(_attention),
    "BiasGelu": checked(lambda node, x, bias: gelu(node, x + bias)),
    "EmbedLayerNormalization": checked(_embed_layer_normalization, whole=True),
    "FastGelu": checked(_fast_gelu),
    "FusedConv": checked(_fused_conv),
    "FusedGemm": checked(_fused_gemm, whole=True),
    "FusedMatMul": checked(_fused_matmul, whole=True),
    "Gelu": checked(lambda node, x: gelu(node, x)),
    "GroupQueryAttention": checked(_group_query_attention),
    "MultiHeadAttention": checked(_multi_head_attention),
    "QuickGelu": checked(lambda node, x: x * sigmoid(node, times(x, given(node, "alpha", 1.702)))),
    "RotaryEmbedding": checked(_rotary_embedding),
    "SimplifiedLayerNormalization": checked(rms_normalization),
    "SkipLayerNormalization": checked(_skip_layer_normalization),
    "SkipSimplifiedLayerNormalization": checked(_skip_simplified_layer_normalization),
    "TransposeMatMul": checked(_fused_matmul, whole=True),
    **{name: checked(QUANTIZATION[name], whole=True) for name in ("DequantizeLinear", "QuantizeLinear")},
}
