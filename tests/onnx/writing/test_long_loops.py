"""Loops of many steps as ONNX: what is written does not grow with the steps, and computes the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.formats.plain import read
from tests.onnx.writing.written import by_runtime, checked_model


def counted(length: int, *, reverse: bool = False):
    """The sine applied n times, by a scan that takes no slices."""
    body = {
        "inputs": [{"key": "c", "type": "f64[]"}],
        "nodes": [{"op": "sin", "inputs": [0]}],
        "outputs": [{"key": "d", "value": 1}],
    }
    attrs = {"body": body, "length": length, "num_consts": 0, "num_carry": 1, "reverse": reverse}
    nodes = [{"op": "scan", "attrs": attrs, "inputs": [0]}]
    outputs = [{"key": "y", "value": 1, "type": "f64[]"}]
    graph = {"name": "f", "inputs": [{"key": "x", "type": "f64[]"}], "nodes": nodes, "outputs": outputs}
    return read({"tidu": 1, "graphs": [graph]})


@pytest.mark.parametrize("reverse", [False, True])
def test_a_model_does_not_grow_with_the_steps_of_a_loop(reverse):
    assert checked_model(counted(10**6, reverse=reverse)).ByteSize() < 4096
    (y,) = by_runtime(checked_model(counted(3, reverse=reverse)), {"x": np.array(0.5)})
    assert y == pytest.approx(math.sin(math.sin(math.sin(0.5))))
