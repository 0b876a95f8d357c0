"""Derivatives of ONNX's elementwise operators and of those that move elements, also where differences say nothing."""

import numpy as np
import pytest
from scipy import special

import tidu_cli as api
from tests.onnx.operators.derivatives import require_right
from tests.onnx.operators.node_tests import imported
from tests.onnx.operators.one_node import One, draw
from tidu_cli.adapters.onnx.contents import Choices
from tidu_cli.adapters.onnx.reading.importer import import_model

RNG = np.random.default_rng(0)


def normal(*shape):
    return draw(RNG, "f8", shape, special=False)


def positive(*shape):
    return np.abs(normal(*shape)) + 0.3


def inside(*shape):
    return np.tanh(normal(*shape)) * 0.9


UNARY = {
    **dict.fromkeys(("Acos", "Asin", "Atanh"), inside),
    **dict.fromkeys(("Log", "Sqrt", "Reciprocal"), positive),
    "Acosh": lambda *shape: positive(*shape) + 1,
    **dict.fromkeys(
        (
            "Abs", "Asinh", "Atan", "Ceil", "Celu", "Cos", "Cosh", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid",
            "HardSwish", "Hardmax", "Identity", "LeakyRelu", "Mish", "Neg", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign",
            "Sin", "Sinh", "Softplus", "Softsign", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Squeeze", "Flatten", "Transpose",
            "Trilu", "Max",
        ),
        normal,
    ),
}  # fmt: skip


@pytest.mark.parametrize("op", sorted(UNARY))
def test_functions_of_one_array(op):
    one = One(op, [UNARY[op](3, 4)])
    require_right(one.model, one.given)


INDICES = np.array([[1, 0, 2, 1], [0, 0, 1, -1], [2, 2, 1, 0]])

OTHERS = [
    One("Add", [normal(3, 1), normal(4)]),
    One("Clip", [normal(3, 4), np.float64(-0.7), np.float64(0.8)]),
    One("Clip", [normal(3, 4), np.float64(-0.7)]),
    One("Div", [normal(3, 4), positive(4)]),
    One("Gelu", [normal(3, 4)], {"approximate": "tanh"}),
    One("Max", [normal(3, 1), normal(4), normal(3, 4)]),
    One("Mean", [normal(3, 1), normal(4)]),
    One("Min", [normal(3, 1), normal(4), normal(3, 4)]),
    One("Mod", [normal(3, 4), positive(4)], {"fmod": 1}),
    One("Mod", [normal(3, 4), -positive(4)]),
    One("Mul", [normal(3, 1), normal(4)]),
    One("PRelu", [normal(2, 3, 4), normal(3, 1)]),
    One("Pow", [positive(3, 4), normal(4)]),
    One("Pow", [normal(3, 4), np.array([0, 1, 2, 3])]),
    One("Sub", [normal(3, 1), normal(4)]),
    One("Sum", [normal(3, 1), normal(4), normal(1, 1)]),
    One("SwiGLU", [normal(3, 4), normal(3, 4)], {"alpha": 1.5}),
    One("Where", [INDICES > 0, normal(3, 4), normal(4)]),
    One("Cast", [normal(3, 4)], {"to": 11}),
    One("CenterCropPad", [normal(3, 4), np.array([5, 2])]),
    One("Compress", [normal(3, 4), np.array([True, False, True])], {"axis": 0}),
    One("Concat", [normal(3, 4), normal(3, 2)], {"axis": 1}),
    One("DepthToSpace", [normal(1, 8, 2, 3)], {"blocksize": 2}),
    One("SpaceToDepth", [normal(1, 2, 4, 6)], {"blocksize": 2}),
    One("Expand", [normal(3, 1), np.array([2, 1, 4])]),
    One("Pad", [normal(3, 4), np.array([1, -1, 0, 2]), normal()]),
    One("Pad", [normal(3, 4), np.array([1, 2, 0, 3])], {"mode": "reflect"}),
    One("Pad", [normal(3, 4), np.array([1, 2, 0, 3])], {"mode": "edge"}),
    One("Pad", [normal(3, 4), np.array([1, 2, 0, 3])], {"mode": "wrap"}),
    One("Reshape", [normal(3, 4), np.array([2, -1])]),
    One("Slice", [normal(3, 4), np.array([2, 0]), np.array([-9, 9]), np.array([0, 1]), np.array([-1, 2])]),
    One("Split", [normal(3, 4), np.array([1, 3])], {"axis": 1}, outputs=2),
    One("Tile", [normal(3, 4), np.array([2, 3])]),
    One("Gather", [normal(3, 4), INDICES], {"axis": 0}),
    One("GatherElements", [normal(3, 4), INDICES], {"axis": 0}),
    One("GatherND", [normal(3, 4), INDICES[:, :2]]),
    One("GatherND", [normal(3, 4), INDICES[:, :1]], {"batch_dims": 1}),
    One("ReverseSequence", [normal(3, 4), np.array([1, 3, 2, 2])]),
    One("TopK", [normal(3, 4), np.array([2])], outputs=2),
    One("TopK", [normal(3, 4), np.array([2])], {"largest": 0, "axis": 0}, outputs=2),
    One("OneHot", [np.array([1, 0]), np.array(3), normal(2)]),
    One("TensorScatter", [normal(2, 4, 3), normal(2, 2, 3), np.array([1, 2])]),
    One("DequantizeLinear", [INDICES.astype("i1"), positive(4)]),
    *[
        One("ScatterElements", [normal(3, 4), INDICES[:2], normal(2, 4)], {"axis": 0, "reduction": how})
        for how in ("none", "add", "max", "min")
    ],
    *[One("ScatterND", [normal(3, 4), INDICES[:, :1], normal(3, 4)], {"reduction": how}) for how in ("none", "add", "max", "min")],
]


@pytest.mark.parametrize("one", OTHERS, ids=str)
def test_functions_of_several_arrays(one):
    require_right(one.model, one.given)


@pytest.mark.parametrize("op", ["ScatterElements", "ScatterND"])
def test_products_at_known_places_that_differ_have_derivatives_in_the_updates(op):
    at = np.array([[2, 0, 1, 2]]) if op == "ScatterElements" else np.array([[2], [0]])
    given = {"x0": normal(3, 4), "x1": at, "x2": normal(1 if op == "ScatterElements" else 2, 4)}
    document = import_model(One(op, list(given.values()), {"reduction": "mul"}).model, Choices(values={"x1": at})).document
    assert api.vjp(document, ["x0", "x2"], ["y0"])


def derivative(one, x, order=1):
    """The derivative of an elementwise function of one operand at x, by JVPs of JVPs."""
    document, names = imported(one.model, one.given).document, ["y0"]
    for _ in range(order):
        document = api.jvp(document, ["x0"], names[-1:])
        names += [str(o.key) for o in document.head.outputs if str(o.key) not in names]
    values = {str(i): np.ones_like(x) for i in document.inputs} | {"x0": x}
    return np.asarray(api.evaluate(document, values)[names[-1]])


AT_ZERO = {
    "Relu": 0, "LeakyRelu": 1, "Elu": 1, "Abs": 0, "Sigmoid": 0.25, "Softplus": 0.5, "Gelu": 0.5, "Swish": 0.5, "Mish": 0.6,
    "Tanh": 1, "Softsign": 1, "HardSwish": 0.5, "ThresholdedRelu": 0,
}  # fmt: skip


@pytest.mark.parametrize("op", sorted(AT_ZERO))
def test_at_zero(op):
    x = np.zeros(1)
    np.testing.assert_allclose(derivative(One(op, [x]), x), [AT_ZERO[op]], rtol=1e-12)


@pytest.mark.parametrize(
    "op", ["Celu", "Elu", "Gelu", "Mish", "Selu", "Sigmoid", "Softplus", "Softsign", "Swish", "SwiGLU", "Tanh"]
)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
def test_derivatives_far_out_are_finite(op, dtype):
    x = np.array([-6e4, -700, -100, -20, 20, 100, 700, 6e4], dtype)
    one = One(op, [x, np.ones_like(x)] if op == "SwiGLU" else [x])
    gradient = api.vjp(imported(one.model, one.given).document, ["x0"], ["y0"])
    slopes = api.evaluate(gradient, {**one.given, "y0@-1": np.ones_like(x)})["x0@-1"]
    assert np.isfinite(slopes).all(), slopes


def test_the_curvature_of_softplus():
    x = np.array([-30.0, -1.0, 0.0, 1.0, 30.0])
    s = 1 / (1 + np.exp(-x))
    np.testing.assert_allclose(derivative(One("Softplus", [x]), x, 2), s * (1 - s), rtol=1e-12)


def test_tails_keep_their_precision():
    x = np.array([-30.0, -12.0, -6.0])
    with np.errstate(under="ignore"):
        expected = x * special.ndtr(x)
    values = api.evaluate(imported(One("Gelu", [x]).model, {"x0": x}).document, {"x0": x})["y0"]
    np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_a_bound_has_the_derivative_0():
    x = np.array([-1.0, 0.5, 2.0])
    one = One("Clip", [x, np.float64(-1), np.float64(2)])
    document = imported(one.model, one.given).document
    tangents = api.evaluate(api.jvp(document, ["x0"], ["y0"]), one.given | {"x0@1": np.ones(3)})["y0@1"]
    assert tangents.tolist() == [0, 1, 0]


@pytest.mark.parametrize(("exponent", "expected"), [(2.0, 0), (3.0, 0), (1.0, 1), (0.0, 0)])
def test_known_powers_have_derivatives_at_zero(exponent, expected):
    x, y = np.zeros(1), np.float64(exponent)
    document = import_model(One("Pow", [x, y]).model, Choices(values={"x1": y})).document
    assert api.evaluate(api.jvp(document, ["x0"], ["y0"]), {"x0": x, "x0@1": np.ones(1)})["y0@1"].tolist() == [expected]
