"""Small models with open sizes, as exporters write them: a convolutional network, a block of a transformer, an LSTM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from tests.onnx.models import model, network


class Nodes:
    """Nodes that are added one after the other, and the initializers that they read."""

    def __init__(self, seed: int) -> None:
        self.nodes: list[Any] = []
        self.initializer: list[Any] = []
        self._rng = np.random.default_rng(seed)

    def __call__(self, op: str, *inputs: str, n: int = 1, **attrs: Any) -> Any:
        outputs = [f"{op.lower()}{len(self.nodes)}.{k}" for k in range(n)]
        self.nodes.append(helper.make_node(op, list(inputs), outputs, **attrs))
        return outputs[0] if n == 1 else outputs

    def weight(self, *shape: int) -> str:
        """A parameter."""
        return self.constant(self._rng.standard_normal(shape).astype("f4") / 2)

    def constant(self, value: Any) -> str:
        """An initializer."""
        name = f"c{len(self.initializer)}"
        self.initializer.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def ints(self, *numbers: int) -> str:
        """A vector of i64."""
        return self.constant(np.array(numbers, np.int64))

    def dim(self, x: str, axis: int) -> str:
        """A size as a vector of one, as exporters take it apart."""
        return str(self("Unsqueeze", self("Gather", self("Shape", x), self.constant(np.int64(axis))), self.ints(0)))

    def result(self, x: str, name: str) -> None:
        """An output."""
        self.nodes.append(helper.make_node("Identity", [x], [name]))


def convolutional(height: Any = 8, width: Any = 8) -> ModelProto:
    """Two convolutions with pooling between, the mean of images, and a layer: `score` of x, f32[batch,2,height,width]."""
    f = Nodes(1)
    h = f("Conv", "x", f.weight(4, 2, 3, 3), f.weight(4), pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    h = f("MaxPool", f("Relu", h), kernel_shape=[2, 2], strides=[2, 2])
    h = f("Relu", f("Conv", h, f.weight(5, 4, 3, 3), f.weight(5), pads=[1, 1, 1, 1], strides=[2, 2], kernel_shape=[3, 3]))
    h = f("Flatten", f("GlobalAveragePool", h), axis=1)
    h = f("Gemm", h, f.weight(5, 3), f.weight(3))
    f.result(f("ReduceSum", f("Mul", h, h), keepdims=0), "score")
    return model(f.nodes, [("x", ["batch", 2, height, width])], [("score", [])], initializer=f.initializer, name="cnn")


def transformer(heads: int = 2, size: int = 8) -> ModelProto:
    """Causal attention with residuals, layer norms and a feed-forward part: `score` and `y` of x, f32[batch,length,size]."""
    f = Nodes(2)
    batch, length = f.dim("x", 0), f.dim("x", 1)
    scale, bias = f.weight(size), f.weight(size)
    h = f("LayerNormalization", "x", scale, bias, axis=-1)

    def apart(w: str) -> str:
        shape = f("Concat", batch, length, f.ints(heads), f.ints(size // heads), axis=0)
        return str(f("Transpose", f("Reshape", f("MatMul", h, w), shape), perm=[0, 2, 1, 3]))

    q, k, v = (apart(f.weight(size, size)) for _ in range(3))
    scores = f("Div", f("MatMul", q, f("Transpose", k, perm=[0, 1, 3, 2])), f.constant(np.float32((size // heads) ** 0.5)))
    ones = f("ConstantOfShape", f("Concat", length, length, axis=0), value=numpy_helper.from_array(np.ones(1, np.float32)))
    keep = f("Cast", f("Trilu", ones, upper=0), to=9)
    scores = f("Where", keep, scores, f.constant(np.float32(-1e9)))
    mixed = f("Transpose", f("MatMul", f("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    together = f("Reshape", mixed, f("Concat", batch, length, f.ints(-1), axis=0))
    h1 = f("Add", "x", f("MatMul", together, f.weight(size, size)))
    h = f("LayerNormalization", h1, scale, bias, axis=-1)
    h = f("Add", h1, f("MatMul", f("Tanh", f("MatMul", h, f.weight(size, 12))), f.weight(12, size)))
    f.result(h, "y")
    f.result(f("ReduceMean", f("Mul", h, h), keepdims=0), "score")
    outputs = [("y", ["batch", "length", size]), ("score", [])]
    return model(f.nodes, [("x", ["batch", "length", size])], outputs, initializer=f.initializer, name="block", opset=18)


def recurrent(op: str = "LSTM", direction: str = "forward", hidden: int = 3) -> ModelProto:
    """A recurrent network of sequences of any length, whose states start at 0: `score` of x, f32[length,batch,2]."""
    f = Nodes(3)
    gates, n = {"LSTM": 4, "GRU": 3, "RNN": 1}[op], 2 if direction == "bidirectional" else 1
    start = f("ConstantOfShape", f("Concat", f.ints(n), f.dim("x", 1), f.ints(hidden), axis=0))
    weights = [f.weight(n, gates * hidden, 2), f.weight(n, gates * hidden, hidden), f.weight(n, 2 * gates * hidden)]
    every, *_ = f(
        op, "x", *weights, "", start, *[start] * (op == "LSTM"), n=3 if op == "LSTM" else 2, hidden_size=hidden, direction=direction
    )
    f.result(f("ReduceSum", f("Mul", every, every), keepdims=0), "score")
    return model(f.nodes, [("x", ["length", "batch", 2])], [("score", [])], initializer=f.initializer, name="recurrent")


BATCHES, LENGTHS = (1, 2, 3, 7, 32), (1, 5, 16)

MODELS: dict[str, tuple[Callable[[], ModelProto], Sequence[tuple[int, ...]]]] = {
    "mlp": (network, [(n, 3) for n in BATCHES]),
    "images": (convolutional, [(n, 2, 8, 8) for n in BATCHES]),
    "images of any size": (lambda: convolutional("h", "w"), [(n, 2, h, w) for n in BATCHES for h, w in ((2, 4), (8, 9), (13, 6))]),
    "transformer": (transformer, [(n, t, 8) for n in BATCHES for t in LENGTHS]),
    "lstm": (recurrent, [(t, n, 2) for n in BATCHES for t in LENGTHS]),
    "gru": (lambda: recurrent("GRU", "reverse"), [(t, n, 2) for n in BATCHES for t in LENGTHS]),
    "rnn": (lambda: recurrent("RNN", "bidirectional"), [(t, n, 2) for n in BATCHES for t in LENGTHS]),
}
"""Models by name, whose input is x and whose output is `score`; and shapes of x."""
