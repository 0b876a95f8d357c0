"""Writes potential.onnx: the energy of atoms by their positions, as a small network computes it.

The number of atoms is left open, as exporters do. What an atom sees of the others are sums of Gaussians of their distances, after
Behler and Parrinello, "Generalized Neural-Network Representation of High-Dimensional Potential-Energy Surfaces", 2007. The weights
are drawn at random: they stand for those of a fit. Use: python potential.py OUT
"""

from __future__ import annotations

import sys

import numpy as np
import onnx
from onnx.parser import parse_model

WIDTH = 16
TEXT = """
<ir_version: 10, opset_import: ["": 18]>
potential (float[atoms,3] positions) => (float energy) {
    zero = Constant <value_ints = [0]> ()
    one = Constant <value_ints = [1]> ()
    last = Constant <value_ints = [-1]> ()
    from = Unsqueeze (positions, one)
    to = Unsqueeze (positions, zero)
    apart = Sub (from, to)
    square = ReduceSumSquare <keepdims = 0> (apart, last)
    range = Unsqueeze (square, last)
    decay = Mul (range, "symmetry.decay")
    near = Exp (decay)
    seen = ReduceSum <keepdims = 0> (near, one)
    input = Gemm (seen, "hidden.weight", "hidden.bias")
    hidden = Tanh (input)
    energies = MatMul (hidden, "last.weight")
    energy = ReduceSum <keepdims = 0> (energies)
}
"""


def model() -> onnx.ModelProto:
    """The model, with its weights."""
    draw = np.random.default_rng(0)
    weights = {
        "symmetry.decay": -np.array([0.25, 0.5, 1, 2]),
        "hidden.weight": draw.normal(size=(4, WIDTH)) / 2,
        "hidden.bias": draw.normal(size=WIDTH),
        "last.weight": draw.normal(size=(WIDTH, 1)),
    }
    found = parse_model(TEXT)
    found.graph.initializer.extend(onnx.numpy_helper.from_array(w.astype("f4"), name) for name, w in weights.items())
    return found


if __name__ == "__main__":
    onnx.save(model(), sys.argv[1])
