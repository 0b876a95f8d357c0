"""RNN, GRU and LSTM as onnxruntime has them over all attributes, and their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.onnx.operators.derivatives import require_right
from tests.onnx.operators.node_tests import imported
from tests.onnx.operators.one_node import One, by_runtime, by_tidu, require_equal
from tests.tiers import examples

GATES = {"RNN": (1, 1), "GRU": (3, 2), "LSTM": (4, 3)}
"""Numbers of gates and of activations."""

SMOOTH = ["Tanh", "Sigmoid", "Affine", "ScaledTanh", "Softsign", "Softplus"]
ACTIVATIONS = [*SMOOTH, "Relu", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Elu"]


@st.composite
def networks(draw: Any, activations: Any = tuple(ACTIVATIONS)) -> One:
    op = draw(st.sampled_from(list(GATES)))
    gates, functions = GATES[op]
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    steps, batch, size, hidden, n = *(draw(st.integers(1, 4)) for _ in range(4)), 1 + (direction == "bidirectional")
    rng = np.random.default_rng(draw(st.integers(0, 99)))

    def array(*shape: int) -> Any:
        return (rng.standard_normal(shape) * 0.7).astype(np.float32)

    optional = st.booleans()
    lengths = rng.integers(1, steps + 1, batch).astype(np.int32) if draw(optional) else None
    operands: list[Any] = [array(steps, batch, size), array(n, gates * hidden, size), array(n, gates * hidden, hidden)]
    operands += [array(n, 2 * gates * hidden) if draw(optional) else None, lengths]
    operands += [array(n, batch, hidden) if draw(optional) else None for _ in range(2 if op == "LSTM" else 1)]
    if op == "LSTM":
        operands.append(array(n, 3 * hidden) if draw(optional) else None)
    attrs: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if draw(optional):
        names = [draw(st.sampled_from(activations)) for _ in range(functions * n)]
        attrs["activations"] = names
        # onnxruntime has no other defaults for these, and takes them in the order of the functions that have them
        attrs["activation_alpha"] = [0.3 + 0.1 * k for k, a in enumerate(a for a in names if a in WITH_ALPHA)]
        attrs["activation_beta"] = [0.4 + 0.1 * k for k, a in enumerate(a for a in names if a in WITH_BETA)]
        attrs = {name: x for name, x in attrs.items() if x != []}
    if op == "GRU":
        attrs["linear_before_reset"] = draw(st.integers(0, 1))
    if op == "LSTM":
        attrs["input_forget"] = draw(st.integers(0, 1))
    if draw(optional):
        attrs["clip"] = 0.8
    return One(op, operands, attrs, draw(st.sampled_from([7, 14, 22])), 3 if op == "LSTM" else 2)


WITH_ALPHA = ("Affine", "ScaledTanh", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Elu")
WITH_BETA = ("Affine", "ScaledTanh", "HardSigmoid")


@settings(max_examples=examples(120, check=55))
@given(networks())
def test_as_onnxruntime(one: One) -> None:
    require_equal(by_tidu(one), by_runtime(one), str(one), 1e-4, 1e-5)


@settings(max_examples=examples(20, check=10))
@given(networks(tuple(SMOOTH)))
def test_derivatives(one: One) -> None:
    attrs = {name: x for name, x in one.attrs.items() if name != "clip"}  # which has kinks
    require_right(One(one.op, one.operands, attrs, one.version, one.outputs).model, one.given)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_the_batch_may_be_the_first_axis(op: str, direction: str) -> None:
    """onnxruntime has no such layout."""
    rng, gates, n = np.random.default_rng(0), GATES[op][0], 2 if direction == "bidirectional" else 1
    x, w, r = (rng.standard_normal(shape).astype("f4") for shape in ((5, 3, 2), (n, gates * 4, 2), (n, gates * 4, 4)))
    h = rng.standard_normal((n, 3, 4)).astype("f4")
    attrs = {"hidden_size": 4, "direction": direction}
    n_outputs = 3 if op == "LSTM" else 2
    y, *last = by_tidu(One(op, [x, w, r, None, None, h], attrs, 22, n_outputs))
    swapped = [x.swapaxes(0, 1), w, r, None, None, h.swapaxes(0, 1)]
    outputs = by_tidu(One(op, swapped, {**attrs, "layout": 1}, 22, n_outputs))
    require_equal(outputs, [y.transpose(2, 0, 1, 3), *[s.swapaxes(0, 1) for s in last]], op)


def test_inputs_are_multiplied_before_the_scan() -> None:
    x, w, r = (np.ones(shape, "f4") for shape in ((5, 3, 2), (1, 16, 2), (1, 16, 4)))
    model = One("LSTM", [x, w, r], {"hidden_size": 4}, 22, 3).model
    model.graph.node[0].output[:] = ["", "y1", ""]
    del model.graph.output[2], model.graph.output[0]
    (scan,) = [case for case, _ in imported(model, {"x0": x, "x1": w, "x2": r}).document.head.nodes() if case.op == "scan"]
    assert [case.op for case, _ in scan.attrs.body.graph.nodes()].count("dot_general") == 1
    assert len(scan.results) == 2
