"""Quantization: ONNX's operators against other evaluators, and that their derivatives are told to be 0."""

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest

import tidu_cli as api
from tests.onnx.operators.node_tests import imported
from tests.onnx.operators.one_node import (
    NEWEST,
    One,
    by_reference,
    by_runtime,
    by_tidu,
    draw,
    require_agreement,
    require_equal,
    versions,
)
from tidu_cli.adapters.onnx.contents import Choices
from tidu_cli.adapters.onnx.reading.importer import import_model
from tidu_cli.errors import TiduError

QUANTIZED = ("u1", "i1", "u2", "i2")


def scales(rng, *shape, dtype="f4"):
    return (rng.random(shape) * 0.1 + 0.05).astype(dtype)


def zeros(rng, dtype, *shape):
    return rng.integers(0, 20, shape).astype(dtype)


def whole(rng, dtype, *shape):
    info = np.iinfo(dtype)
    return rng.integers(max(info.min, -200), min(info.max, 200) + 1, shape).astype(dtype)


@pytest.mark.check
@pytest.mark.parametrize("dtype", QUANTIZED)
def test_for_all_elements_or_along_an_axis(dtype):
    rng = np.random.default_rng(0)
    x, q = draw(rng, "f4", (3, 4, 5), special=False) * 4, whole(rng, dtype, 3, 4, 5)
    for version in versions("QuantizeLinear"):
        if version < 21 and dtype[1] == "2":
            continue
        for shape, attrs in (((), {}), ((4,), {}), ((3,), {"axis": 0}), ((5,), {"axis": -1})):
            if version < 13 and shape:
                continue
            by, zero = scales(rng, *shape), zeros(rng, dtype, *shape)
            require_agreement(One("QuantizeLinear", [x, by, zero], attrs, version))
            require_agreement(One("DequantizeLinear", [q, by, zero], attrs, version), 1e-6)
            require_agreement(One("DequantizeLinear", [q, by], attrs, version), 1e-6)
    require_agreement(One("QuantizeLinear", [x, scales(rng)], {}))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("block", [2, 3])
def test_in_blocks(axis, block):
    rng = np.random.default_rng(1)
    shape = (6, 12, 6)
    blocks = [-(-n // block) if k == axis % 3 else n for k, n in enumerate(shape)]
    by, zero = scales(rng, *blocks), zeros(rng, "i1", *blocks)
    attrs = {"axis": axis, "block_size": block}
    x, q = draw(rng, "f4", shape, special=False), whole(rng, "i1", *shape)
    for version in (21, NEWEST):
        require_agreement(One("QuantizeLinear", [x, by, zero], attrs, version))
        require_agreement(One("DequantizeLinear", [q, by, zero], attrs, version), 1e-6)


def test_the_last_block_may_be_less():
    x, by = np.arange(10, dtype="f4").reshape(2, 5), np.array([[1, 2, 4], [1, 2, 4]], "f4")
    (quantized,) = by_tidu(One("QuantizeLinear", [x, by], {"axis": 1, "block_size": 2}))
    assert quantized.tolist() == [[0, 1, 1, 2, 1], [5, 6, 4, 4, 2]]


def test_dtypes_and_precisions():
    rng = np.random.default_rng(2)
    for dtype in ("f4", "f2"):
        x, by = draw(rng, dtype, (3, 4), special=False), scales(rng, dtype=dtype)
        for code in (2, 3, 4, 5):
            require_agreement(One("QuantizeLinear", [x, by], {"output_dtype": code}))
    q = whole(rng, "i1", 3, 4)
    require_agreement(One("DequantizeLinear", [q, scales(rng, dtype="f2"), zeros(rng, "i1")], {}), 1e-2)
    require_agreement(One("DequantizeLinear", [q, scales(rng)], {"output_dtype": 10}), 1e-2, others=[by_reference])
    one = One("QuantizeLinear", [np.array([7.0], "f2"), np.array(0.003, "f4")], {"precision": 1, "output_dtype": 4})
    require_equal(by_tidu(one), [np.array([2333], "u2")], "in single precision")


def test_what_is_out_of_range_ends_at_the_ends():
    x = np.array([1e9, -1e9, 254.5, 255.5, np.inf, -np.inf, 2.5, 3.5], "f4")
    (quantized,) = by_tidu(One("QuantizeLinear", [x, np.float32(1), np.uint8(1)]))
    assert quantized.tolist() == [255, 0, 255, 255, 255, 0, 3, 5]


def test_ranges_of_the_values():
    rng = np.random.default_rng(3)
    for shift in (-9, 0, 9):
        x = draw(rng, "f4", (3, 4), special=False) + np.float32(shift)
        require_agreement(One("DynamicQuantizeLinear", [x], {}, NEWEST, 3), 1e-6)
    require_agreement(One("DynamicQuantizeLinear", [np.zeros((2, 2), "f4")], {}, 11, 3), others=[by_reference])


def test_products_of_integers():
    rng = np.random.default_rng(4)
    for first, second in (("u1", "u1"), ("u1", "i1"), ("i1", "i1")):
        a, b = whole(rng, first, 3, 4), whole(rng, second, 4, 5)
        zero = [zeros(rng, first), zeros(rng, second)]
        for given in ([], zero, [None, zero[1]], [zero[0], zeros(rng, second, 5)]):
            require_agreement(One("MatMulInteger", [a, b, *given], {}, 10))
        rows = One("MatMulInteger", [a, b, zeros(rng, first, 3)])
        require_equal(by_tidu(rows), [(a.astype("i4") - rows.operands[2][:, None]) @ b.astype("i4")], "rows")
        require_agreement(One("MatMulInteger", [whole(rng, first, 2, 3, 4), whole(rng, second, 2, 4, 5), *zero]))


@pytest.mark.parametrize("result", ["u1", "i1"])
def test_quantized_products(result):
    rng = np.random.default_rng(5)
    a, b = whole(rng, result, 2, 3, 4), whole(rng, "i1", 4, 5)
    for columns in ((), (5,)):
        by = (scales(rng), scales(rng, *columns), np.float32(0.4))
        zero = (zeros(rng, result), np.zeros(columns, "i1"), zeros(rng, result))
        operands = [a, by[0], zero[0], b, by[1], zero[1], by[2], zero[2]]
        require_agreement(One("QLinearMatMul", operands, {}, 10), others=[by_runtime])


def test_quantized_convolutions():
    rng = np.random.default_rng(6)
    x, w = whole(rng, "u1", 2, 4, 6, 5), whole(rng, "u1", 6, 2, 3, 3)
    attrs = {"group": 2, "pads": [1, 0, 2, 1], "strides": [2, 1]}
    require_agreement(One("ConvInteger", [x, w], attrs), others=[by_runtime])
    require_agreement(One("ConvInteger", [x, w, zeros(rng, "u1"), zeros(rng, "u1")], attrs), others=[by_runtime])
    for channels in ((), (6,)):
        # Of 7 bits: on processors without VNNI onnxruntime adds pairs of products of u8 and i8 in 16 bits, saturated.
        w = whole(rng, "i1", 6, 2, 3, 3) // 2
        by = (scales(rng), scales(rng, *channels), np.float32(0.5))
        zero = (zeros(rng, "u1"), np.zeros(channels, "i1"), zeros(rng, "u1"))
        for bias in ([], [rng.integers(-500, 500, 6).astype("i4")]):
            operands = [x, by[0], zero[0], w, by[1], zero[1], by[2], zero[2], *bias]
            require_agreement(One("QLinearConv", operands, attrs, 10), others=[by_runtime])


def test_rounding_has_the_derivative_0_and_the_user_is_told():
    x = np.array([0.3, 1.7], "f4")
    reading = imported(One("QuantizeLinear", [x, np.float32(0.1)]).model, {"x0": x, "x1": np.float32(0.1)})
    assert reading.notes == (
        "QuantizeLinear: rounds to integers, so derivatives through it are 0; straight_through=True makes them 1 within "
        "the range of the integers",
    )


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "uint2"])
def test_fewer_bits_in_arrays_of_eight(dtype):
    """Integers of 2 and 4 bits are held in arrays of 8, end at the ends of their range, and are moved before they are used."""
    rng = np.random.default_rng(8)
    x = draw(rng, "f4", (2, 8), special=False) * 4
    text = f"""<ir_version: 10, opset_import: ["": 25]>
    g (float[2, 8] x, float s, {dtype} z) => (float[4, 4] y) {{
        q = QuantizeLinear(x, s, z) n = Constant<value_ints = [4, 4]>() t = Reshape(q, n) u = Transpose(t)
        y = DequantizeLinear(u, s, z)
    }}"""
    info = ml_dtypes.iinfo(dtype)
    whole = np.clip(np.rint(x / np.float32(0.7)) + 1, info.min, info.max)
    document = imported(onnx.parser.parse_model(text), {}).document
    values = api.evaluate(document, {"x": x, "s": np.float32(0.7), "z": np.array(1, "i1" if dtype[0] == "i" else "u1")})
    np.testing.assert_allclose(values["y"], (whole - 1).reshape(4, 4).T * np.float32(0.7), 1e-6)
    assert whole.min() == info.min and whole.max() == info.max


def test_fewer_bits_are_not_computed_with():
    for op, told in (
        ("y = Add(q, q)", "its input 'A' is of int4, and takes"),
        ("n = Constant<value_ints = [1, 0]>() y = Pad(q, n)", "takes an array of int4; these are quantized, cast, and moved"),
        ("y = If<then_branch = a () => (int4[2] u) { u = Identity(q) }, else_branch = b () => (int4[2] v) { v = Identity(q) }>(c)",
         "gives '[uv]', an array of int4, out of a graph within a node"),
    ):  # fmt: skip
        text = f"""<ir_version: 10, opset_import: ["": 25]> g (int4[2] q, bool c) => (int4[2] y) {{ {op} }}"""
        with pytest.raises(TiduError, match=told):
            imported(onnx.parser.parse_model(text), {})


def quantized(op, x, by, zero, *, straight=True):
    """A model of a quantization and back, and its document: y is x, rounded."""
    text = f"""<ir_version: 8, opset_import: ["": 21]>
    g (float[{len(x)}] x) => (float[{len(x)}] y) {{ {op} }}"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in (("s", by), ("z", zero)))
    return model, import_model(model, Choices(straight_through=straight)).document


def test_straight_through():
    x = np.array([-9.0, -0.2, 0.3, 2.4, 200.0, np.inf], "f4")
    for op, inside in (
        ("q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z)", [0, 1, 1, 1, 0, 0]),
        ("q, t, w = DynamicQuantizeLinear(x) y = Cast<to = 1>(q)", None),
        ("y = Round(x)", [1, 1, 1, 1, 1, 0]),
    ):
        given = x if inside else x[:4]
        model, document = quantized(op, given, np.float32(0.5), np.uint8(0))
        assert [k.op for k, _ in document.head.nodes()].count("stop_gradient")
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        np.testing.assert_array_equal(api.evaluate(document, {"x": given})["y"], session.run(None, {"x": given})[0])
        slopes = api.evaluate(api.vjp(document, ["x"], ["y"]), {"x": given, "y@-1": np.ones_like(given)})["x@-1"]
        if inside:
            np.testing.assert_array_equal(slopes, inside)
        else:  # of the integers by x: one over the scale, and what the scale and the zero point change
            assert np.all(slopes[1:3] > 0)
        _, flat = quantized(op, given, np.float32(0.5), np.uint8(0), straight=False)
        assert not api.evaluate(api.vjp(flat, ["x"], ["y"]), {"x": given, "y@-1": np.ones_like(given)})["x@-1"].any()


def test_a_scale_has_a_derivative():
    q, by = np.array([3, -4], "i1"), np.float32(0.5)
    document = imported(One("DequantizeLinear", [q, by]).model, {"x0": q, "x1": by}).document
    tangents = api.evaluate(api.jvp(document, ["x1"], ["y0"]), {"x0": q, "x1": by, "x1@1": np.float32(1)})
    np.testing.assert_array_equal(tangents["y0@1"], [3, -4])


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (One("QuantizeLinear", [np.ones((2, 3), "f4"), np.ones(4, "f4")]), r"a scale of shape \[4\] does not fit"),
        (One("QuantizeLinear", [np.ones((2, 3), "f4"), np.ones(3, "f4"), np.ones((), "u1")]), "and a zero point of shape"),
        (One("QuantizeLinear", [np.ones(2, "f4"), np.float32(1)], {"output_dtype": 1}), "is not a type of integers"),
        (
            One("QuantizeLinear", [np.ones(2, "f4"), np.float32(1)], {"output_dtype": 17}),
            "float8e4m3fn, which is not a type of integers",
        ),
        (One("DequantizeLinear", [np.ones(2, "u1"), np.float32(1), np.int8(1)]), "are of u8 and i8, and take one type"),
        (One("DequantizeLinear", [np.ones((2, 4), "u1"), np.ones((2, 3), "f4")], {"block_size": 2}), "in blocks of 2 along axis 1"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(one, reason):
    for fold in (False, True):
        with pytest.raises(TiduError, match=reason):
            by_tidu(one, fold)
