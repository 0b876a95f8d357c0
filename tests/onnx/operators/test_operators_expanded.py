"""Operators of sequences that are read by the functions that the specification defines them by: values and derivatives."""

import numpy as np
import onnx
import pytest

from tests.onnx.operators.derivatives import require_right
from tests.onnx.operators.one_node import One, by_reference, by_tidu, draw, require_equal

BATCH, STEPS, SIZE = 2, 3, 4


def numbers(*shape, seed=0):
    return draw(np.random.default_rng(seed), "f4", shape, special=False) / np.float32(4)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("groups", [1, 2])
def test_linear_attention(rule, groups):
    heads = 2
    shapes = [(BATCH, STEPS, heads * SIZE), (BATCH, STEPS, groups * SIZE), (BATCH, STEPS, groups * 3), (BATCH, groups, SIZE, 3)]
    operands = [numbers(*shape, seed=k) for k, shape in enumerate(shapes)]
    operands += [-np.abs(numbers(BATCH, STEPS, groups, seed=5))] if "gated" in rule else [None]
    operands += [np.abs(numbers(BATCH, STEPS, groups, seed=6))] if "delta" in rule else [None]
    while operands[-1] is None:
        operands.pop()
    one = One("LinearAttention", operands, {"update_rule": rule, "q_num_heads": heads, "kv_num_heads": groups, "scale": 0.7}, 27, 2)
    require_equal(by_tidu(one), by_reference(one), f"{one}", 1e-5, 1e-5)
    require_right(one.model, one.given)


@pytest.mark.parametrize("activation", ["none", "silu"])
@pytest.mark.parametrize("past", [False, True])
def test_causal_convolutions_with_a_state(activation, past):
    operands = [numbers(BATCH, 3, STEPS), numbers(3, 1, 4, seed=1), numbers(3, seed=2)]
    operands += [numbers(BATCH, 3, 3, seed=3)] if past else []
    one = One("CausalConvWithState", operands, {"activation": activation}, 27, 2)
    require_equal(by_tidu(one), by_reference(one), f"{one}", 1e-5, 1e-5)
    require_right(one.model, one.given)


def scores_doubled(name):
    """A graph that doubles scores."""
    two = onnx.helper.make_node("Constant", [], ["two"], value_float=2.0)
    double = onnx.helper.make_node("Mul", ["scores", "two"], [name])
    declared = [onnx.helper.make_tensor_value_info(k, onnx.TensorProto.FLOAT, None) for k in ("scores", name)]
    return onnx.helper.make_graph([two, double], name, declared[:1], declared[1:])


@pytest.mark.parametrize("modified", [(), ("score_mod",), ("prob_mod",), ("score_mod", "prob_mod")])
def test_attention_with_graphs_of_its_own(modified):
    q, k, v = numbers(BATCH, 4, STEPS, SIZE), numbers(BATCH, 2, 5, SIZE, seed=1), numbers(BATCH, 2, 5, 3, seed=2)
    attrs = {name: scores_doubled(name) for name in modified}
    one = One("FlexAttention", [q, k, v], {"scale": 0.5, **attrs}, domain="ai.onnx.preview")
    require_equal(by_tidu(one), by_reference(one), "flex", 1e-5, 1e-5)
    if not modified:  # graphs of f32 alone
        require_right(one.model, one.given)
    factors = (2.0 if "score_mod" in modified else 1.0, 2.0 if "prob_mod" in modified else 1.0)
    plain = One("Attention", [q, k, v], {"scale": 0.5 * factors[0]})
    require_equal(by_tidu(one), [by_tidu(plain)[0] * np.float32(factors[1])], "attention", 1e-5, 1e-5)
