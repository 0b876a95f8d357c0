"""Elementwise operators and activation functions of ONNX, at all versions and dtypes, against other evaluators."""

import ml_dtypes
import numpy as np
import onnx
import pytest

from tests.onnx.operators.one_node import (
    NEWEST,
    One,
    by_reference,
    by_tidu,
    draw,
    dtypes,
    eps,
    require_agreement,
    require_equal,
    versions,
)  # fmt: skip
from tests.tiers import few
from tidu_cli.adapters.onnx.reading.operators import elementwise
from tidu_cli.errors import TiduError

APART = {"BitCast", "BitShift", "Cast", "CastLike", "Clip", "Dropout", "Mod", "PRelu", "Where"}
ELEMENTWISE = sorted({*elementwise.OPERATORS, *elementwise.OPERATORS, *elementwise.OPERATORS} - APART)
BINARY = {
    "Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual",
    "Mul", "Or", "Pow", "Sub", "SwiGLU", "Xor",
}  # fmt: skip
VARIADIC = {"Max", "Mean", "Min", "Sum"}
COARSE = {"Erf", "Gelu", "HardSwish", "Shrink"}
"""Of f64, other evaluators compute some of these with constants or formulas of single precision."""
SHAPES = ([(3, 4)] * 3, [(2, 1, 3), (4, 1), (3,)], [()] * 3, [(0, 2)] * 3)


def operands(op, version, dtype, shapes, rng):
    n = 3 if op in VARIADIC else 2 if op in BINARY else 1
    if op == "SwiGLU" or (op in VARIADIC and version < 8):
        shapes = shapes[:1] * 3
    if op == "Mean":
        shapes = [np.broadcast_shapes(*shapes), *shapes[1:]]  # others add in place
    arrays = [draw(rng, dtype, shape) for shape in shapes[:n]]
    if op == "Div" and np.dtype(dtype).kind in "iu":
        arrays[1] = np.where(arrays[1] == 0, 1, arrays[1]).astype(dtype)
    if op == "Pow" and np.dtype(dtype).kind in "iu":
        arrays = [x % dtype.type(4) for x in arrays]
    return arrays


def tolerance(op, dtype):
    return 1e-6 if op in COARSE and dtype == np.float64 else 4 * eps(dtype)


@pytest.mark.check
@pytest.mark.parametrize("op", ELEMENTWISE)
def test_they_agree_with_other_evaluators_at_all_versions_and_dtypes(op):
    rng = np.random.default_rng(0)
    for version in versions(op):
        for k, dtype in few(enumerate(dtypes(op, version)), 2):
            if op == "Erf" and dtype.kind in "iu":
                continue
            for shapes in SHAPES if k == 0 else SHAPES[1:2]:
                one = One(op, operands(op, version, dtype, shapes, rng), {}, version)
                require_agreement(one, tolerance(op, dtype), tolerance(op, dtype))


def floats(dtype, *shape, seed=0):
    return draw(np.random.default_rng(seed), dtype, shape)


def test_the_attributes_of_activations():
    x = floats("f4", 3, 5)
    for op, attrs in (
        ("Celu", {"alpha": 0.3}), ("Elu", {"alpha": 0.3}), ("Gelu", {"approximate": "tanh"}),
        ("HardSigmoid", {"alpha": 0.5, "beta": 0.1}), ("LeakyRelu", {"alpha": 0.3}), ("Selu", {"alpha": 0.7, "gamma": 1.5}),
        ("Shrink", {"lambd": 0.8, "bias": 0.5}), ("Swish", {"alpha": 1.5}), ("ThresholdedRelu", {"alpha": 0.3}),
        ("IsInf", {"detect_negative": 0}), ("IsInf", {"detect_positive": 0}),
        ("IsInf", {"detect_negative": 0, "detect_positive": 0}),
    ):  # fmt: skip
        require_agreement(One(op, [x], attrs), 1e-6, 1e-6)
    require_agreement(One("SwiGLU", [x, floats("f4", 3, 5, seed=1)], {"alpha": 1.5}), 1e-6, 1e-6)
    require_agreement(One("Shrink", [np.arange(-4, 5, dtype="i4")], {"lambd": 1.5, "bias": 1.5}))


@pytest.mark.parametrize("bounds", [(None, None), (0.5, None), (None, 0.5), (-0.5, 0.5), (0.5, -0.5)])
def test_clip(bounds):
    for dtype in ("f4", "f2", "f8", "i4", "u1"):
        x = draw(np.random.default_rng(0), dtype, (4, 5), special=False)  # onnxruntime: always bounds
        scale = 1 if dtype[0] == "f" else 6
        given = [b if b is None else np.asarray(b * scale if dtype[0] in "fi" else abs(b) * scale).astype(dtype) for b in bounds]
        for version in (12, NEWEST):
            require_agreement(One("Clip", [x, *given], {}, version))
    attrs = {name: b for name, b in zip(("min", "max"), bounds, strict=True) if b is not None}
    require_agreement(One("Clip", [floats("f4", 4, 5)], attrs, 7))


@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", "i1", "i4", "i8", "u1"])
def test_remainders(dtype):
    rng = np.random.default_rng(1)
    x, y = draw(rng, dtype, (6, 8)), draw(rng, dtype, (8,))
    whole = x.dtype.kind in "iu"
    y = np.where(y == 0, 1, y).astype(dtype) if whole else y
    for version in (10, 13, NEWEST):
        require_agreement(One("Mod", [x, y], {"fmod": 1}, version))
        if whole:
            require_agreement(One("Mod", [x, y], {}, version))


def test_a_remainder_of_floats_has_the_sign_of_the_divisor():
    x, y = np.meshgrid([0.0, -0.0, 2.5, -2.5, np.inf, np.nan], [1.0, -1.0, np.inf, -np.inf, 0.0, np.nan])
    (remainders,) = by_tidu(One("Mod", [x, y]))
    with np.errstate(all="ignore"):
        expected = np.mod(x, y)
    np.testing.assert_array_equal(remainders, expected)
    np.testing.assert_array_equal(np.signbit(remainders), np.signbit(expected))


@pytest.mark.parametrize("base", ["f4", "f8", "f2", "i4", "i8"])
@pytest.mark.parametrize("exponent", ["f4", "f8", "i4", "i8", "u1"])
def test_powers_of_other_dtypes(base, exponent):
    rng = np.random.default_rng(2)
    x, y = np.abs(draw(rng, base, (3, 4), special=False)), np.abs(draw(rng, exponent, (4,), special=False))
    x, y = (np.minimum(v, 5).astype(v.dtype) for v in (x, y))
    for version in (12, NEWEST):
        require_agreement(One("Pow", [x, y], {}, version), 8 * eps(base))


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, 3.0, -1.0, -2.0, 0.5, 1.5])
def test_powers_with_one_number(exponent):
    x = floats("f4", 3, 4)
    x = np.abs(x) if exponent == 0.5 else x  # which is the square root, NaN of -inf
    for y in (np.float32(exponent), np.array([exponent], "f4"), np.array([[[exponent]]], "f4")):
        require_agreement(One("Pow", [x, y]), 1e-6)


def test_choices_and_slopes():
    rng = np.random.default_rng(3)
    condition = draw(rng, "?", (2, 1, 3))
    for dtype in ("f4", "f2", "i8", "?", "u1"):
        require_agreement(One("Where", [condition, draw(rng, dtype, (4, 1)), draw(rng, dtype, (3,))]))
    for dtype in ("f4", "f2", "f8"):
        slopes = draw(rng, dtype, (4, 1), special=False)
        require_agreement(One("PRelu", [draw(rng, dtype, (2, 4, 3)), slopes]), eps(dtype))


def test_a_slope_is_of_numbers_below_zero_only():
    (values,) = by_tidu(One("PRelu", [np.array([-0.0, 0.0, -1.0, 1.0]), np.array([-2.0])]))
    np.testing.assert_array_equal(values, [0, 0, 2, 1])
    assert np.signbit(values).tolist() == [True, False, False, False]  # f(x) = x for x >= 0


def test_shifts():
    x, y = np.array([[1, 200, 255, 7]], "u1"), np.array([[0], [1], [3], [7]], "u1")
    for dtype in ("u1", "u4", "u8"):
        for direction in ("LEFT", "RIGHT"):
            require_agreement(One("BitShift", [x.astype(dtype), y.astype(dtype)], {"direction": direction}))


@pytest.mark.parametrize("version", [7, 10, 12, 13, 22, NEWEST])
def test_dropout_is_for_inference(version):
    x = floats("f4", 3, 4)
    mask = np.ones(x.shape, bool if version >= 10 else "f4")
    given = [x, np.float32(0.3), np.bool_(False)] if version >= 12 else [x]
    attrs = {"ratio": 0.3} if version < 12 else {}
    require_equal(by_tidu(One("Dropout", given, attrs, version, 2)), [x, mask], f"version {version}")
    if version >= 12:
        require_equal(by_tidu(One("Dropout", [x, np.float32(0), np.bool_(True)], {}, version, 2)), [x, mask], "of none")
        with pytest.raises(TiduError, match=r"leaves out 0\.5 of the elements by chance"):
            by_tidu(One("Dropout", [x, None, np.bool_(True)], {}, version))


NUMERIC = ("f4", "f8", "f2", "bf16", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?")


@pytest.mark.parametrize("to", NUMERIC)
def test_casts(to):
    rng = np.random.default_rng(4)
    for dtype in NUMERIC:
        x = draw(rng, dtype_named(dtype), (4, 5), special=to[0] == "f" and dtype[0] == "f")
        x = np.abs(x) if to[0] == "u" and x.dtype.kind in "fV" else x
        code = onnx.helper.np_dtype_to_tensor_dtype(dtype_named(to))
        for version in (13, NEWEST):
            require_agreement(One("Cast", [x], {"to": code}, version))
    require_agreement(One("CastLike", [x, np.ones((), dtype_named(to))], {}))


def dtype_named(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bf16" else name)


def test_a_cast_to_integers_goes_towards_zero_and_ends_where_they_end():
    x = np.array([1.9, -1.9, 300.0, -300.0, np.inf, -np.inf, np.nan], "f4")
    for fold in (False, True):
        (whole,) = by_tidu(One("Cast", [x], {"to": onnx.TensorProto.INT8}), fold)
        assert whole.tolist() == [1, -1, 127, -128, 127, -128, 0]


def test_a_cast_to_a_type_that_tidu_has_not_got_is_refused_by_its_name():
    with pytest.raises(TiduError, match=r"node 0 \(Cast\): elements of type float8e4m3fn, which tidu has not got"):
        by_tidu(One("Cast", [np.zeros(2, "f4")], {"to": onnx.TensorProto.FLOAT8E4M3FN}))


def test_bits_of_integers_are_integers_of_the_same_size():
    x = np.array([0, 1, 200, 255], "u1")
    require_agreement(One("BitCast", [x], {"to": onnx.TensorProto.INT8}))
    require_agreement(One("BitCast", [x.view("i1")], {"to": onnx.TensorProto.UINT8}))
    one = One("BitCast", [np.array([1.5, -0.0], "f4")], {"to": onnx.TensorProto.INT32})
    require_equal(by_tidu(one, fold=True), by_reference(one), "known bits")
    with pytest.raises(TiduError, match="the bits of f32 as i32 have no primitive"):
        by_tidu(one)
    with pytest.raises(TiduError, match="have not as many bits"):
        by_tidu(One("BitCast", [x], {"to": onnx.TensorProto.INT32}))
