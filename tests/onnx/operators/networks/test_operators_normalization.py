"""Normalizations of ONNX against other evaluators, and formulas in f64."""

import numpy as np
import pytest

from tests.onnx.operators.derivatives import require_right
from tests.onnx.operators.one_node import (
    NEWEST,
    One,
    by_runtime,
    by_tidu,
    draw,
    dtypes,
    eps,
    require_agreement,
    require_equal,
    versions,
)
from tidu_cli.errors import TiduError


def numbers(dtype, *shape, seed=0):
    return draw(np.random.default_rng(seed), dtype, shape, special=False)


def positive(dtype, *shape, seed=0):
    return (np.abs(numbers("f4", *shape, seed=seed)) + 0.5).astype(dtype)


EPSILON, COARSE = float(np.float32(1e-5)), float(np.float32(1e-3))
"""Attributes are f32."""


def wide(x):
    return x.astype("f8")


def require_formula(one, formula, tolerance=None):
    """The first output is that of a formula in f64, recorded and folded."""
    x = one.operands[0]
    expected = formula(*map(wide, one.operands)).astype(x.dtype)
    tolerance = 32 * eps(x.dtype) if tolerance is None else tolerance
    for fold in (False, True):
        require_equal(by_tidu(one, fold)[:1], [expected], f"{one}", tolerance, tolerance)


def normalized(x, axes, epsilon):
    off = x - x.mean(axes, keepdims=True)
    return off / np.sqrt((off * off).mean(axes, keepdims=True) + epsilon)


def along(v, x, axis=1):
    return v.reshape([-1 if k == axis else 1 for k in range(x.ndim)])


def batch(x, scale, b, mean, var):
    scale, b, mean, var = (along(v, x) if x.ndim > 1 else v for v in (scale, b, mean, var))
    return (x - mean) / np.sqrt(var + EPSILON) * scale + b


def statistics(dtype, c):
    return [numbers(dtype, c, seed=1), numbers(dtype, c, seed=2), numbers(dtype, c, seed=3), positive(dtype, c, seed=4)]


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3), (4, 3, 2), (0, 3, 2)], ids=str)
def test_batch_normalization_by_given_statistics(shape):
    for version in versions("BatchNormalization"):
        for dtype in dtypes("BatchNormalization", version):
            one = One("BatchNormalization", [numbers(dtype, *shape), *statistics(dtype, 3)], {}, version)
            require_formula(one, batch)
            if dtype == np.float32 and shape[0]:
                require_equal(by_tidu(one), by_runtime(one), f"{one}", 1e-4, 1e-5)  # the reference's version 9 trains
    if shape[0]:
        require_right(one.model, one.given)


def test_batch_normalization_of_one_axis_and_mixed_dtypes():
    require_formula(One("BatchNormalization", [numbers("f4", 5), *statistics("f4", 1)]), batch)
    x = numbers("f2", 2, 3, 4)
    require_formula(One("BatchNormalization", [x, *statistics("f4", 3)]), batch)
    scale, b, mean, var = statistics("f4", 3)
    require_formula(One("BatchNormalization", [x, scale.astype("f2"), b.astype("f2"), mean, var]), batch)


def test_batch_normalization_for_each_place():
    x = numbers("f4", 2, 3, 4)
    each = [numbers("f4", 3, 4, seed=k) for k in (1, 2, 3)] + [positive("f4", 3, 4, seed=4)]
    one = One("BatchNormalization", [x, *each], {"spatial": 0}, 7)
    require_formula(one, lambda x, scale, b, mean, var: (x - mean) / np.sqrt(var + EPSILON) * scale + b)


def test_batch_normalization_for_training():
    """What is running comes nearer to the statistics of the batch."""
    x, (scale, b, mean, var) = numbers("f4", 4, 3, 5), statistics("f4", 3)
    for version in (14, 15, NEWEST):
        one = One("BatchNormalization", [x, scale, b, mean, var], {"training_mode": 1, "momentum": 0.75}, version, 3)
        require_agreement(one, 1e-5, 1e-5)
    require_right(one.model, one.given)
    outputs = by_tidu(One("BatchNormalization", [x, scale, b, mean, var], {"momentum": 0.75}, 9, 5))
    require_equal(outputs[:3], by_tidu(one), "version 9", 1e-6, 1e-6)
    require_equal(outputs[3:], [x.mean((0, 2)), x.var((0, 2))], "saved", 1e-5, 1e-6)


def test_instance_normalization():
    def formula(x, scale, b):
        return normalized(x, tuple(range(2, x.ndim)), COARSE) * along(scale, x) + along(b, x)

    for version in versions("InstanceNormalization"):
        for dtype in dtypes("InstanceNormalization", version):
            for shape in ((2, 3, 4), (2, 3, 4, 5)):
                operands = [numbers(dtype, *shape), numbers(dtype, 3, seed=1), numbers(dtype, 3, seed=2)]
                one = One("InstanceNormalization", operands, {"epsilon": 1e-3}, version)
                require_formula(one, formula)
                if dtype == np.float32:
                    require_agreement(one, 1e-4, 1e-5)
    require_right(one.model, one.given)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_normalization(groups):
    def formula(x, scale, bias):
        standard = normalized(x.reshape(2, groups, -1), (2,), EPSILON).reshape(x.shape)
        scale, bias = (v if v.size == 6 else v.repeat(6 // groups) for v in (scale, bias))
        return standard * along(scale, x) + along(bias, x)

    for version in (18, 21, NEWEST):
        n = 6 if version >= 21 else groups
        for dtype in dtypes("GroupNormalization", version):
            operands = [numbers(dtype, 2, 6, 3, 2), numbers(dtype, n, seed=1), numbers(dtype, n, seed=2)]
            one = One("GroupNormalization", operands, {"num_groups": groups}, version)
            require_formula(one, formula)
    require_agreement(One("GroupNormalization", [v.astype("f4") for v in operands], {"num_groups": groups}), 1e-4, 1e-5)
    require_right(one.model, one.given)
    with pytest.raises(TiduError, match=r"has 4 groups of the channels, axis 1, of an array of shape \[2, 6, 3, 2\]"):
        by_tidu(One("GroupNormalization", operands, {"num_groups": 4}))


@pytest.mark.parametrize("axis", [-1, 1, 0])
@pytest.mark.parametrize("biased", [True, False])
def test_layer_normalization(axis, biased):
    def formula(x, scale, b=0.0):
        return normalized(x, tuple(range(axis % 3, 3)), EPSILON) * scale + b

    for dtype in dtypes("LayerNormalization", NEWEST):
        shape = (2, 3, 4)[axis % 3 :]
        operands = [numbers(dtype, 2, 3, 4), numbers(dtype, *shape, seed=1), numbers(dtype, *shape, seed=2)]
        one = One("LayerNormalization", operands[: 2 + biased], {"axis": axis}, 17, 3)
        require_formula(one, formula)
        statistics = by_tidu(one)[1:]
        assert [(v.dtype, v.shape) for v in statistics] == [(np.dtype("f4"), (2, 3, 4)[: axis % 3] + (1,) * (3 - axis % 3))] * 2
        if dtype == np.float32:
            require_agreement(one, 1e-5, 1e-5)
    one = One("LayerNormalization", [wide(x) for x in operands[: 2 + biased]], {"axis": axis}, 17, 3)
    require_right(one.model, one.given)


def test_statistics_are_as_exact_as_what_they_are_of():
    """The specification would have those of f64 computed in f32, which onnxruntime does not, either."""
    x, scale = numbers("f8", 3, 64), np.ones(64)
    (standard,) = by_tidu(One("LayerNormalization", [x, scale], {"epsilon": 0.0}))
    np.testing.assert_allclose(standard, normalized(x, (1,), 0.0), rtol=1e-13, atol=1e-13)
    x = x.astype("f2")  # in which the sum of squares overflows
    (standard,) = by_tidu(One("LayerNormalization", [x * np.float16(100), scale.astype("f2")]))
    require_equal([standard], [normalized(wide(x), (1,), 0.0).astype("f2")], "f2", 0.002, 0.002)


def test_normalization_by_the_root_mean_square():
    for axis in (-1, 1):
        for dtype in dtypes("RMSNormalization", NEWEST):
            operands = [numbers(dtype, 2, 3, 4), numbers(dtype, *(2, 3, 4)[axis % 3 :], seed=1)]
            one = One("RMSNormalization", operands, {"axis": axis, "epsilon": 1e-3})
            axes = tuple(range(axis % 3, 3))
            require_formula(one, lambda x, scale, axes=axes: x / np.sqrt((x * x).mean(axes, keepdims=True) + COARSE) * scale)
        require_agreement(One("RMSNormalization", [v.astype("f4") for v in operands], {"axis": axis}), 1e-4, 1e-5)
        require_right(one.model, one.given)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9, 1000000])
def test_local_response_normalization(size):
    attrs = {"size": size, "alpha": 0.3, "beta": 0.6, "bias": 1.5}

    def formula(x):
        n = x.shape[1]
        spans = [slice(max(0, c - (size - 1) // 2), min(n - 1, c + -(-(size - 1) // 2)) + 1) for c in range(n)]
        squares = np.stack([(x[:, s] ** 2).sum(1) for s in spans], 1)
        return x / (1.5 + float(np.float32(0.3)) / size * squares) ** float(np.float32(0.6))

    for version in versions("LRN"):
        for dtype in dtypes("LRN", version):
            one = One("LRN", [numbers(dtype, 2, 5, 3, 2)], attrs, version)
            require_formula(one, formula, 1e-6 if dtype == np.float64 else None)
    require_formula(One("LRN", [numbers("f4", 2, 5)], attrs), formula)
    require_right(one.model, one.given)
    if size % 2:
        one = One("LRN", [numbers("f4", 2, 5, 3, 2)], attrs)
        require_equal(by_tidu(one), by_runtime(one), f"{one}", 1e-5, 1e-5)  # the reference leaves out channels


@pytest.mark.parametrize("p", [1, 2])
def test_norms_are_divided_out_and_0_stays(p):
    for axis in (-1, 0, 1):
        for version in versions("LpNormalization"):
            for dtype in dtypes("LpNormalization", version):
                one = One("LpNormalization", [numbers(dtype, 2, 3, 4)], {"axis": axis, "p": p}, version)
                require_formula(one, lambda x, axis=axis: x / np.linalg.norm(x, p, axis, keepdims=True))
        require_right(one.model, one.given)
    x = np.array([[0.0, 0.0], [3.0, 4.0]], "f4")
    one = One("LpNormalization", [x], {"p": p}, 22)
    require_agreement(one, 1e-6)
    assert not by_tidu(one)[0][0].any()
    with pytest.raises(TiduError, match="has the norm of p = 3"):
        by_tidu(One("LpNormalization", [x], {"p": 3}))


def test_mean_variance_normalization():
    x = numbers("f4", 2, 3, 4, 5)
    for version in versions("MeanVarianceNormalization"):
        require_agreement(One("MeanVarianceNormalization", [x], {}, version), 1e-4, 1e-5)
    for axes in ([1], [-1, 0]):
        one = One("MeanVarianceNormalization", [wide(x)], {"axes": axes})
        require_formula(one, lambda x, axes=tuple(axes): normalized(x, axes, 0.0), 1e-8)
        require_right(one.model, one.given)


@pytest.mark.parametrize(("op", "shapes", "attrs", "text"), [
    ("BatchNormalization", [(2, 3, 4), (3,), (4,), (3,), (3,)], {}, r"its B is of shape \[4\], and there are 3 channels"),
    ("InstanceNormalization", [(2, 3, 4), (1,), (3,)], {}, r"its scale is of shape \[1\]"),
    ("GroupNormalization", [(2, 4, 4), (2,), (4,)], {"num_groups": 2}, r"its scale is of shape \[2\]"),
    ("LayerNormalization", [(2, 3), (3,)], {"axis": 2}, "axis 2 is out of range"),
    ("LRN", [(3,)], {"size": 3}, "goes over 3 channels of an array of 1 axes"),
    ("LRN", [(2, 3)], {"size": 0}, "goes over 0 channels"),
])  # fmt: skip
def test_what_does_not_fit(op, shapes, attrs, text):
    with pytest.raises(TiduError, match=rf"node 0 \({op}\): {text}"):
        by_tidu(One(op, [numbers("f4", *shape) for shape in shapes], attrs))
