"""Operators of the domain com.microsoft against onnxruntime, which has their kernels."""

import numpy as np
import pytest

from tests.onnx.operators.derivatives import require_right
from tests.onnx.operators.one_node import One, by_runtime, by_tidu, require_equal
from tidu_cli.errors import TiduError

B, S, H, N, T = 2, 4, 8, 2, 6
"""Batches, queries, width, heads, keys."""
RNG = np.random.default_rng(0)


def f(*shape):
    return RNG.standard_normal(shape).astype("f4")


def i(most, *shape):
    return RNG.integers(0, most, shape).astype("i4")


PRODUCTS = [
    ("FusedMatMul", [f(2, 3, 4), f(2, 4, 5)], {"alpha": 0.5}),
    ("FusedMatMul", [f(2, 4, 3), f(2, 5, 4)], {"transA": 1, "transB": 1}),
    ("FusedMatMul", [f(3, 2, 4), f(4, 2, 5)], {"transBatchA": 1, "transBatchB": 1}),
    ("FusedMatMul", [f(4, 2, 3), f(5, 2, 4)], {"transBatchA": 1, "transBatchB": 1, "transA": 1, "transB": 1}),
    ("FusedMatMul", [f(4, 2, 7, 3), f(5, 2, 7, 4)], {"transBatchA": 1, "transBatchB": 1, "transA": 1, "transB": 1}),
    ("TransposeMatMul", [f(4, 3), f(4, 5)], {"transA": 1}),
    ("FusedGemm", [f(3, 4), f(4, 5), f(5)], {"activation": "Relu"}),
    ("FusedGemm", [f(3, 4), f(4, 5), f(5)], {"activation": "Tanh"}),
    ("FusedGemm", [f(3, 4), f(4, 5), f(5)], {"activation": "Sigmoid", "beta": 0.5}),
    ("FusedGemm", [f(4, 3), f(5, 4), f(5)], {"activation": "LeakyRelu", "activation_alpha": 0.2, "transA": 1, "transB": 1}),
    ("FusedGemm", [f(3, 4), f(4, 5), f(5)], {"activation": "Relu", "alpha": 2.0}),
]  # fmt: skip
CONVOLUTIONS = [
    ("FusedConv", [f(2, 3, 5, 5), f(4, 3, 3, 3), f(4)], {"activation": "Relu"}),
    ("FusedConv", [f(2, 4, 5), f(4, 2, 3)], {"activation": "LeakyRelu", "activation_params": [0.2], "group": 2, "strides": [2]}),
    ("FusedConv", [f(2, 3, 5, 5), f(4, 3, 3, 3), f(4), f(2, 4, 5, 5)], {"activation": "Relu", "pads": [1, 1, 1, 1]}),
    ("FusedConv", [f(2, 3, 5), f(4, 3, 3), f(4)], {"activation": "Clip", "activation_params": [-0.5, 0.5]}),
    ("FusedConv", [f(2, 3, 5), f(4, 3, 3), f(4)], {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]}),
]
ACTIVATIONS = [
    ("Gelu", [f(3, 4)], {}), ("FastGelu", [f(3, 4)], {}), ("FastGelu", [f(3, 4), f(4)], {}), ("BiasGelu", [f(2, 3, 4), f(4)], {}),
    ("QuickGelu", [f(3, 4)], {}), ("QuickGelu", [f(3, 4)], {"alpha": 1.5}),
]  # fmt: skip
ROTATIONS = [
    ("RotaryEmbedding", [f(B, S, H), np.array([2]), f(10, 2), f(10, 2)], {}),
    ("RotaryEmbedding", [f(B, N, S, 6), i(10, B, S).astype("i8"), f(10, 3), f(10, 3)], {"interleaved": 1}),
    ("RotaryEmbedding", [f(B, S, 12), i(10, B, S).astype("i8"), f(10, 2), f(10, 2)], {"num_heads": 2, "rotary_embedding_dim": 4}),
]
NORMALIZATIONS = [
    ("SkipLayerNormalization", [f(B, S, H), f(B, S, H), f(H)], {}),
    ("SkipLayerNormalization", [f(B, S, H), f(B, S, H), f(H), f(H), f(H)], {"epsilon": 1e-3}),
    ("SkipLayerNormalization", [f(B, S, H), f(1, S, H), f(H), f(H)], {}),
    ("SkipLayerNormalization", [f(B, S, H), f(S, H), f(H), f(H)], {}),
    ("SkipSimplifiedLayerNormalization", [f(B, S, H), f(B, S, H), f(H)], {}),
    ("SkipSimplifiedLayerNormalization", [f(B, S, H), f(B, S, H), f(H), f(H)], {"epsilon": 0.1}),
]  # fmt: skip
ATTENTIONS = [
    ("MultiHeadAttention", [f(B, S, H), f(B, T, H), f(B, T, 12)], {}),
    ("MultiHeadAttention", [f(B, S, H), f(B, T, H), f(B, T, 12), f(28)], {"scale": 0.3}),
    ("MultiHeadAttention", [f(B, S, H), f(B, T, H), f(B, T, H), None, np.array([3, 5], "i4")], {}),
    ("MultiHeadAttention", [f(B, S, H), f(B, T, H), f(B, T, H), None, i(2, B, T)], {}),
    ("MultiHeadAttention", [f(B, S, H), f(B, T, H), f(B, T, H), None, i(2, B, S, T)], {"mask_filter_value": -3.0}),
    ("MultiHeadAttention", [f(B, S, H), f(B, T, H), f(B, T, H), None, i(2, B, T), f(B, N, S, T)], {}),
    ("MultiHeadAttention", [f(B, S, H), f(B, S, H), f(B, S, H), None, None, f(1, 1, S, S)], {"unidirectional": 1}),
    ("MultiHeadAttention", [f(B, S, H), f(B, N, T, 4), f(B, N, T, 4)], {}),
    ("Attention", [f(B, S, 5), f(5, 24), f(24)], {}),
    ("Attention", [f(B, S, 5), f(5, 24), f(24)], {"unidirectional": 1}),
    ("Attention", [f(B, S, 5), f(5, 24), f(24), np.array([2, 4], "i4")], {}),
    ("Attention", [f(B, S, 5), f(5, 24), f(24), i(2, B, S)], {"mask_filter_value": -5.0}),
    ("Attention", [f(B, S, 5), f(5, 28), f(28)], {"qkv_hidden_sizes": [8, 8, 12]}),
    ("Attention", [f(B, S, 5), f(5, 24), f(24), None, None, f(B, N, S, S)], {}),
]  # fmt: skip
SEVERAL = [
    ("SkipLayerNormalization", [f(B, S, H), f(B, S, H), f(H), f(H), f(H)], {}, 4),
    ("MultiHeadAttention", [f(B, S, H)] * 3 + [f(24), None, f(1, N, S, S + 3), f(B, N, 3, 4), f(B, N, 3, 4)], {"num_heads": N}, 3),
    ("MultiHeadAttention", [f(B, S, H)] * 3 + [None] * 3 + [f(B, N, 3, 4)] * 2, {"num_heads": N, "unidirectional": 1}, 3),
    ("Attention", [f(B, S, 5), f(5, 24), f(24), None, f(2, B, N, 3, 4)], {"num_heads": N, "unidirectional": 1}, 2),
    ("EmbedLayerNormalization", [i(9, B, S), i(2, B, S), f(9, H), f(7, H), f(2, H), f(H), f(H)], {}, 2),
    ("EmbedLayerNormalization", [i(9, B, S), None, f(9, H), f(7, H), None, f(H), f(H), np.array([[1, 1, 1, 0], [1, 1, 0, 0]], "i4"),
     i(7, B, S)], {"epsilon": 1e-3}, 3),
]  # fmt: skip


def require_runtime(one):
    outputs = by_tidu(one)
    require_equal(outputs, by_runtime(one), f"{one}", 1e-5, 1e-5)
    require_equal(by_tidu(one, fold=True), outputs, f"{one}, folded", 1e-6, 1e-6)


@pytest.mark.parametrize(
    ("op", "operands", "attrs"), PRODUCTS + CONVOLUTIONS + ACTIVATIONS + NORMALIZATIONS + ROTATIONS + ATTENTIONS
)
def test_operators_of_one_output(op, operands, attrs):
    attrs = attrs | ({"num_heads": N} if "Attention" in op else {})
    one = One(op, operands, attrs, 17, domain="com.microsoft")
    require_runtime(one)
    given = {k: v.astype("f8") if v.dtype.kind == "f" else v for k, v in one.given.items()}
    require_right(one.model, given)


@pytest.mark.parametrize(("op", "operands", "attrs", "outputs"), SEVERAL)
def test_operators_of_several_outputs(op, operands, attrs, outputs):
    require_runtime(One(op, operands, attrs, 17, outputs, "com.microsoft"))


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2"])
def test_quantization(dtype):
    for axis, size in ((None, ()), (0, (3,)), (1, (4,))):
        scale, zero = np.asarray(np.abs(f(*size)) + np.float32(0.1)), np.asarray(i(9, *size), dtype)
        attrs = {} if axis is None else {"axis": axis}
        require_runtime(One("QuantizeLinear", [f(3, 4) * 20, scale, zero], attrs, 17, 1, "com.microsoft"))
        require_runtime(One("DequantizeLinear", [i(99, 3, 4).astype(dtype), scale, zero], attrs, 17, 1, "com.microsoft"))


GROUPED = [
    (4, 0, 0, {}), (4, None, 0, {}), (1, 5, 5, {}), (1, 8, 5, {}), (3, 5, 5, {}), (4, 0, 0, {"scale": 0.2, "softcap": 3.0}),
    (4, 0, 0, {"local_window_size": 2}), (1, 5, 5, {"local_window_size": 3}), (4, 0, 0, {"do_rotary": 1}),
    (1, 5, 5, {"do_rotary": 1, "rotary_interleaved": 1}), (4, 0, 0, {"packed": 1}), (1, 5, 5, {"packed": 1}),
    (3, 5, 5, {"bias": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("queries", "places", "past", "attrs"), GROUPED)
def test_attention_of_groups(queries, places, past, attrs):
    """Presents are compared as far as there are keys: what is after them onnxruntime does not say."""
    heads, groups, size, total = 4, 2, 16, past + queries
    attrs = dict(attrs)
    operands = [f(1, queries, n * size) for n in (heads, groups, groups)]
    operands = [np.concatenate(operands, -1), None, None] if attrs.pop("packed", 0) else operands
    operands += [None, None] if places is None else [f(1, groups, places, size), f(1, groups, places, size)]
    operands += [np.array([total - 1], "i4"), np.array([total], "i4")]
    operands += [f(20, size // 2), f(20, size // 2)] if "do_rotary" in attrs else []
    operands += [None, None, None, f(1, heads, queries, total)] if attrs.pop("bias", 0) else []
    one = One("GroupQueryAttention", operands, {"num_heads": heads, "kv_num_heads": groups, **attrs}, 17, 3, "com.microsoft")
    (y, *present), (expected, *others) = by_tidu(one), by_runtime(one)
    require_equal([y], [expected], f"{one}", 1e-5, 1e-5)
    assert [x.shape for x in present] == [x.shape for x in others]
    require_equal([x[:, :, :total] for x in present], [x[:, :, :total] for x in others], f"{one}", 1e-5, 1e-5)
    given = {k: v.astype("f8") if v.dtype.kind == "f" else v for k, v in one.given.items()}
    require_right(one.model, given, wrt=["x0"])


def test_sequences_of_other_lengths_are_refused():
    operands = [f(2, 3, 8), f(2, 3, 8), f(2, 3, 8), None, None, np.array([2, 1], "i4"), np.int32(3)]
    with pytest.raises(TiduError, match="sequences of other lengths than the total one, 3"):
        by_tidu(One("GroupQueryAttention", operands, {"num_heads": 2, "kv_num_heads": 2}, 17, 3, "com.microsoft"))


def test_what_is_packed_is_taken_apart():
    """onnxruntime has kernels for it on other devices alone."""
    q, k, v = f(B, S, N, 4), f(B, S, N, 4), f(B, S, N, 4)
    flat = [x.reshape(B, S, H) for x in (q, k, v)]
    expected = by_tidu(One("MultiHeadAttention", flat, {"num_heads": N}, 17, 1, "com.microsoft"))
    for operands in ([np.stack([q, k, v], 3)], [flat[0], np.stack([k, v], 3)]):
        outputs = by_tidu(One("MultiHeadAttention", operands, {"num_heads": N}, 17, 1, "com.microsoft"))
        require_equal(outputs, expected, "packed", 1e-6, 1e-6)


def test_the_simplified_normalization_stands_in_the_default_domain_too():
    operands = [f(B, S, H), f(H)]
    for attrs in ({}, {"epsilon": 1e-2, "axis": -1, "stash_type": 1}):
        one = One("SimplifiedLayerNormalization", operands, attrs, 17, 2)
        require_equal(by_tidu(one), by_runtime(one), f"{one}", 1e-5, 1e-5)
        other = One("SimplifiedLayerNormalization", operands, attrs, 17, 2, "com.microsoft")
        require_equal(by_tidu(other), by_tidu(one), f"{other}")


@pytest.mark.parametrize(("op", "operands", "attrs", "text"), [
    ("FusedGemm", [f(3, 4), f(4, 5)], {"activation": "Cosine"}, "is fused with the activation 'Cosine'"),
    ("MultiHeadAttention", [f(B, S, H)], {"num_heads": N}, r"has no key or no value beside a query of shape \[2, 4, 8\]"),
    ("MultiHeadAttention", [f(B, S, H)] * 3, {}, r"its query of shape \[2, 4, 8\] does not consist of 0 heads"),
    ("MultiHeadAttention", [f(B, S, H)] * 3 + [f(23)], {"num_heads": N}, r"its bias of shape \[23\]"),
    ("MultiHeadAttention", [f(B, S, H)] * 3 + [None, i(2, 7)], {"num_heads": N}, r"a mask of shape \[7\] for 2 batches"),
    ("Attention", [f(B, S, 5), f(5, 24)], {"num_heads": N, "do_rotary": 1}, "with do_rotary is not read"),
    ("Attention", [f(B, S, 5), f(5, 24)], {"num_heads": N, "qkv_hidden_sizes": [1, 2]}, "weights of 24 columns do not consist"),
    ("RotaryEmbedding", [f(B, S, H), np.array([2]), f(1, 10, 2), f(1, 10, 2)], {}, "its angles are of shape"),
    ("Gelu", [f(2), f(2)], {}, "takes 1 inputs, and has 2"),
    ("BiasGelu", [f(2)], {}, "takes 2 inputs, and has 1"),
    ("SkipLayerNormalization", [f(2, 3), None, f(3)], {}, "its input 1 is left out"),
    ("Gelu", [np.arange(3)], {}, "its first input is of i64, and not of floats"),
    ("Gelo", [f(2)], {}, "is not an operator of 'com.microsoft' that is read"),
])  # fmt: skip
def test_what_is_refused(op, operands, attrs, text):
    with pytest.raises(TiduError, match=rf"node 0 \({op}\): {text}"):
        by_tidu(One(op, operands, attrs, 17, 1, "com.microsoft"))
