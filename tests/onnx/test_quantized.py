"""Models as onnxruntime's quantization tools write them: values as onnxruntime has them, and derivatives straight through."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

import tidu_cli as api
from tests.onnx.operators.node_tests import imported
from tests.onnx.operators.one_node import One, by_runtime, by_tidu, draw, require_equal
from tidu_cli.adapters.onnx.contents import Choices
from tidu_cli.adapters.onnx.loading import loaded
from tidu_cli.adapters.onnx.reading.importer import import_model
from tidu_cli.adapters.onnx.writing.model import onnx_bytes
from tidu_cli.errors import TiduError

NET = """<ir_version: 8, opset_import: ["": 17]>
net (float[1, 3, 6, 6] x) => (float[1, 4] y) {
    a = Conv<pads = [1, 1, 1, 1]>(x, w1, b1) r = Relu(a) p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(r)
    c = Conv<pads = [1, 1, 1, 1], group = 2>(p, w2) l = LeakyRelu<alpha = 0.1>(c) s = Add(l, p) t = Sigmoid(s) m = Mul(s, t)
    k = Concat<axis = 1>(m, s) g = GlobalAveragePool(k) f = Flatten(g) h = Gemm<transB = 1>(f, w3, b3) q = MatMul(h, w4)
    y = Softmax(q)
}"""
SIZES = {"w1": (4, 3, 3, 3), "b1": (4,), "w2": (4, 2, 3, 3), "w3": (6, 8), "b3": (6,), "w4": (6, 4)}
LSTM = """<ir_version: 8, opset_import: ["": 17]>
net (float[4, 2, 5] x) => (float[4, 2, 2, 3] y, float[2, 2, 3] h) {
    y, h = LSTM<hidden_size = 3, direction = "bidirectional">(x, W, R, B)
}"""
LSTM_SIZES = {"W": (2, 12, 5), "R": (2, 12, 3), "B": (2, 24)}
SEED = np.arange(4, dtype="f4")[np.newaxis]


def model_of(text: str, sizes: dict[str, tuple[int, ...]]) -> Any:
    rng, model = np.random.default_rng(0), onnx.parser.parse_model(text)
    arrays = ((0.3 * rng.standard_normal(shape)).astype("f4") for shape in sizes.values())
    model.graph.initializer.extend(map(onnx.numpy_helper.from_array, arrays, sizes))
    return model


class Images(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self.rest = [{"x": rng.standard_normal((1, 3, 6, 6)).astype("f4")} for _ in range(4)]

    def get_next(self) -> Any:
        return self.rest.pop() if self.rest else None


def run(data: bytes, given: dict[str, Any]) -> list[Any]:
    """What onnxruntime computes, node by node."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    return list(onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, given))


def read(data: bytes, straight: bool) -> Any:
    return import_model(loaded(data), Choices(straight_through=straight)).document


def slopes(document: Any, given: dict[str, Any]) -> Any:
    """The gradient by x, which onnxruntime computes from the file, too."""
    gradient, given = api.vjp(document, ["x"], ["y"]), given | {"y@-1": SEED}
    found = api.evaluate(gradient, given)["x@-1"]
    np.testing.assert_allclose(run(onnx_bytes(gradient), given)[0], found, 1e-4, 1e-6)
    return found


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    logging.getLogger().setLevel(logging.ERROR)
    path = tmp_path_factory.mktemp("net") / "net.onnx"
    onnx.save(model_of(NET, SIZES), path)
    return path


def quantized(net: Path, kind: str) -> bytes:
    out = net.with_name("quantized.onnx")
    if kind == "dynamic":
        quantize_dynamic(net, out, weight_type=QuantType.QUInt8)
    else:
        format, of_weights = kind.split()
        types = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
        quantize_static(net, out, Images(), quant_format=QuantFormat[format], per_channel=of_weights == "channels", **types)
    return out.read_bytes()


@pytest.mark.check
@pytest.mark.parametrize("kind", ["QDQ all", "QDQ channels", "QOperator all", "QOperator channels", "dynamic"])
def test_quantized_networks(net: Path, kind: str) -> None:
    data, given = quantized(net, kind), {"x": np.random.default_rng(5).standard_normal((1, 3, 6, 6)).astype("f4")}
    due = run(data, given)[0]
    assert len(import_model(loaded(data), Choices()).notes) == (2 if "QOperator" in kind else 1)  # one of each way of rounding
    flat, straight = (read(data, is_straight) for is_straight in (False, True))
    for document in (flat, straight):
        np.testing.assert_allclose(api.evaluate(document, given)["y"], due, 1e-6, 1e-7)
    assert kind == "dynamic" or not slopes(flat, given).any()
    exact = slopes(read(net.read_bytes(), False), given)
    assert 0 < np.linalg.norm(slopes(straight, given) - exact) < 0.1 * np.linalg.norm(exact)


@pytest.mark.check
def test_recurrent_networks_of_quantized_weights(tmp_path: Path) -> None:
    source, out = tmp_path / "lstm.onnx", tmp_path / "quantized.onnx"
    onnx.save(model_of(LSTM, LSTM_SIZES), source)
    x = np.random.default_rng(2).standard_normal((4, 2, 5)).astype("f4")
    for per_channel in (False, True):
        quantize_dynamic(source, out, weight_type=QuantType.QInt8, per_channel=per_channel)
        reading = import_model(loaded(out.read_bytes()), Choices())
        assert "stay floats" in reading.notes[0]
        values = api.evaluate(reading.document, {"x": x})
        for name, due in zip(("y", "h"), run(out.read_bytes(), {"x": x}), strict=True):
            np.testing.assert_allclose(values[name], due, atol=0.01)


RNG = np.random.default_rng(3)


def some(dtype: str, *shape: int) -> tuple[Any, Any, Any]:
    """Integers, their scale and zero point."""
    low = -100 if dtype[0] == "i" else 0
    return RNG.integers(low, 100, shape).astype(dtype), np.float32(RNG.uniform(0.02, 0.1)), np.array(7, dtype)


def result(dtype: str) -> tuple[Any, Any]:
    return np.float32(0.05), np.array(9, dtype)


def one(op: str, *operands: Any, **attrs: Any) -> One:
    return One(op, operands, attrs, 17, 1, "com.microsoft")


def packed(bits: int, n: int, k: int, block: int) -> tuple[Any, Any, Any]:
    """Weights of few bits, in bytes, their scales, and zero points."""
    blocks = -(-k // block)
    bytes_ = RNG.integers(0, 256, (n, blocks, block * bits // 8)).astype("u1")
    zeros = RNG.integers(0, 256, (n, -(-blocks * bits // 8))).astype("u1")
    return bytes_, RNG.uniform(0.01, 0.1, (n, blocks)).astype("f4"), zeros


def cases(t: str) -> list[One]:
    x, out = some(t, 2, 3, 4, 4), result(t)
    return [
        one("QLinearAdd", *x, *some(t, 3, 1, 4), *out),
        one("QLinearMul", *x, *some(t, 4, 4), *out),
        one("QLinearSigmoid", *x, np.float32(1 / 256), out[1]),
        one("QLinearLeakyRelu", *x, *out, alpha=0.3),
        one("QLinearGlobalAveragePool", *x, *out),
        one("QLinearGlobalAveragePool", *x, *out, channels_last=1),
        one("QLinearAveragePool", *x, *out, kernel_shape=[2, 2], strides=[2, 1]),
        one("QLinearConcat", *out, *some(t, 2, 3), *some(t, 2, 2), axis=1),
        one("QLinearSoftmax", *some(t, 3, 5), np.float32(1 / 256), np.array(0, t), axis=-1, opset=13),
        one("QLinearSoftmax", *some(t, 3, 2, 2), np.float32(1 / 256), np.array(0, t), axis=1, opset=11),
        one("QGemm", *some(t, 3, 4), *some("i1", 4, 5), RNG.integers(-99, 99, 5).astype("i4"), *out),
        one("QGemm", *some(t, 4, 3), *some("i1", 5, 4), None, transA=1, transB=1, alpha=0.5),
        one("QLinearWhere", RNG.random((2, 3)) < 0.5, *some(t, 2, 3), *some(t, 2, 3), *out),
    ]


WEIGHTS = [
    one("MatMulIntegerToFloat", some("u1", 3, 4)[0], some("u1", 4, 5)[0], np.float32(0.1), np.float32(0.2), np.uint8(3), None,
        np.ones(5, "f4")),
    one("DynamicQuantizeMatMul", draw(RNG, "f4", (3, 4), special=False), *some("u1", 4, 5), np.ones(5, "f4")),
    *[
        one("MatMulNBits", draw(RNG, "f4", (2, 3, 40), special=False), *packed(bits, 6, 40, 16)[: 2 + has_zeros],
            K=40, N=6, bits=bits, block_size=16)
        for bits in (2, 4, 8) for has_zeros in (0, 1)
    ],
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["u1", "i1"])
def test_operators_on_integers(dtype: str) -> None:
    """A place in a thousand may differ by one, where a quotient is halfway between two integers."""
    for each in cases(dtype):
        (value,), (due,) = by_tidu(each), by_runtime(each)
        assert (value.dtype, value.shape) == (due.dtype, due.shape), str(each)
        if value.dtype.kind == "f":
            np.testing.assert_allclose(value, due, 1e-5, err_msg=str(each))
        else:
            assert np.abs(value.astype(int) - due).max() <= 1, str(each)
            assert np.mean(value != due) < 0.05, str(each)


def test_operators_on_quantized_weights() -> None:
    for each in WEIGHTS:
        require_equal(by_tidu(each), by_runtime(each), str(each), 1e-5, 1e-5)


def test_rows_of_groups() -> None:
    """With g_idx row j has the scale of block g_idx[j]; no kernel for it is everywhere, so the definition is the reference."""
    weights, scales, _ = packed(4, 3, 32, 16)
    groups, a = RNG.permutation(np.arange(32) % 2).astype("i4"), draw(RNG, "f4", (2, 32), special=False)
    whole = np.stack([weights & 15, weights >> 4], -1).reshape(3, 32).astype("f4") - 8
    each = one("MatMulNBits", a, weights, scales, None, groups, K=32, N=3, bits=4, block_size=16)
    require_equal(by_tidu(each), [a @ (whole * scales[:, groups]).T], str(each), 1e-5, 1e-5)


@pytest.mark.parametrize(
    ("each", "told"),
    [
        (one("MatMulNBits", np.ones((2, 8), "f4"), np.ones((3, 1, 8), "u1"), np.ones(3, "f4"), K=8, N=3, bits=3, block_size=16),
         "weights of 3 bits in blocks of 16, 8 by 3"),
        (one("MatMulNBits", np.ones((2, 8), "f4"), np.ones((3, 1, 7), "u1"), np.ones(3, "f4"), K=8, N=3, bits=4, block_size=16),
         r"weights of shape \[3, 1, 7\] and 3 scales for 8 by 3"),
        (one("QLinearConcat", np.float32(1), np.uint8(0), np.ones(2, "u1"), np.float32(1)), "takes three for each"),
        (one("QGemm", *some("u1", 2, 3, 4), *some("u1", 4, 5)), "arrays of 3 and 2 axes"),
    ],
    ids=str,
)  # fmt: skip
def test_what_does_not_fit_is_refused(each: One, told: str) -> None:
    with pytest.raises(TiduError, match=told):
        imported(each.model, each.given)
