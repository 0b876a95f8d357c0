"""Shapes, constants and arrays in other shapes: ONNX's operators against other evaluators."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.onnx.operators.one_node import NEWEST, NUMBERS, One, by_tidu, draw, require_agreement, require_equal, versions
from tidu_cli.errors import TiduError


def numbers(dtype, *shape, seed=0):
    return draw(np.random.default_rng(seed), dtype, shape, special=False)


def test_reshapes():
    x = numbers("f4", 2, 0, 3)
    for sizes in ([0, 0, 3], [3, 0, 2], [0, -1, 3], [6, 0]):
        require_agreement(One("Reshape", [x, np.array(sizes)]))
    require_agreement(One("Reshape", [x, np.array([3, 0])], {"allowzero": 1}))
    y = numbers("i8", 2, 3, 4)
    for sizes in ([-1], [0, -1], [4, 0, 2], [3, 8], [2, 3, 1, 4, 1]):
        for version in (7, 13, NEWEST):
            require_agreement(One("Reshape", [y, np.array(sizes)], {}, version))
    require_agreement(One("Reshape", [numbers("f4", 1), np.array([], "i8")]))


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -3])
def test_flattened(axis):
    require_agreement(One("Flatten", [numbers("f4", 2, 3, 4)], {"axis": axis}, 11))
    require_agreement(One("Flatten", [numbers("f4", 2, 0, 4)], {"axis": axis}))


def test_axes_of_one_element():
    x = numbers("f2", 1, 3, 1, 2, 1)
    for axes in ([0], [2, -1], [-3, 0, 4]):
        require_agreement(One("Squeeze", [x, np.array(axes)]))
        require_agreement(One("Squeeze", [x], {"axes": axes}, 11))
        require_agreement(One("Unsqueeze", [x, np.array(axes)]))
        require_agreement(One("Unsqueeze", [x], {"axes": axes}, 11))
    require_agreement(One("Squeeze", [x]))
    require_agreement(One("Squeeze", [x], {}, 7))
    require_agreement(One("Unsqueeze", [np.float32(2), np.array([0])]))


def test_broadcast_and_transposed():
    for sizes in ([2, 3, 4], [3, 1], [1], [], [2, 1, 1, 1]):
        require_agreement(One("Expand", [numbers("i4", 3, 1), np.array(sizes, "i8")], {}, 8))
    require_agreement(One("Expand", [numbers("f4", 3, 1), np.array([0])]))
    for attrs in ({}, {"perm": [2, 0, 1]}, {"perm": [0, 1, 2]}):
        require_agreement(One("Transpose", [numbers("?", 2, 3, 4)], attrs))


def test_what_shapes_are():
    x = numbers("f4", 2, 0, 3, 5)
    for attrs in ({}, {"start": 1}, {"end": -1}, {"start": -3, "end": 9}, {"start": 3, "end": 1}, {"start": -9}):
        require_agreement(One("Shape", [x], attrs))
    for version in versions("Shape"):
        require_agreement(One("Shape", [x], {}, version))
        require_agreement(One("Size", [x], {}, version))


def test_constants():
    x = numbers("f4", 2, 3)
    for attrs in (
        {"value": numpy_helper.from_array(x)}, {"value_float": 0.1}, {"value_floats": [0.1, 2.0]}, {"value_int": -3},
        {"value_ints": [1, 2]},
    ):  # fmt: skip
        require_agreement(One("Constant", [], attrs))


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]])
def test_a_sparse_constant(indices):
    values = numpy_helper.from_array(np.array([1.5, 2.5], "f4"), "v")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array(indices), "i"), [2, 3])
    (dense,) = by_tidu(One("Constant", [], {"sparse_value": sparse}))
    require_equal([dense], [np.array([[0, 1.5, 0], [0, 0, 2.5]], "f4")], "dense")


def test_arrays_of_one_value():
    for dtype in NUMBERS:
        value = numpy_helper.from_array(np.ones(1, dtype))
        require_agreement(One("ConstantOfShape", [np.array([2, 0, 3])], {"value": value}))
    for shape in ([2, 3], [], [0]):
        require_agreement(One("ConstantOfShape", [np.array(shape, "i8")], {}, 9))
    large = by_tidu(One("ConstantOfShape", [np.array([300, 300])]))
    require_equal(large, [np.zeros((300, 300), "f4")], "zeros")


def test_ranges():
    for dtype in ("i4", "i8", "i2", "f4", "f8"):
        for start, limit, delta in ((0, 5, 1), (5, 0, -2), (1, 1, 3), (0, 7, 3), (3, 0, 1), (-1, 2, 1)):
            require_agreement(One("Range", [np.array(v, dtype) for v in (start, limit, delta)]))
    require_agreement(One("Range", [np.array(v, "f4") for v in (0.5, 3.1, 0.3)]), 1e-6)
    require_agreement(One("Range", [np.array(v, "i8") for v in (0, 200_001, 2)]))


@pytest.mark.parametrize("k", [-5, -1, 0, 2, 6])
def test_diagonals(k):
    for dtype in ("f4", "i8", "?", "u1"):
        require_agreement(One("EyeLike", [numbers(dtype, 3, 5)], {"k": k}))
        for upper in (0, 1):
            require_agreement(One("Trilu", [numbers(dtype, 2, 4, 3), np.array(k)], {"upper": upper}))
    require_agreement(One("EyeLike", [numbers("i4", 4, 3)], {"k": k, "dtype": onnx.TensorProto.DOUBLE}))
    require_agreement(One("Trilu", [numbers("f4", 3, 4)]))
    require_agreement(One("Trilu", [numbers("f4", 3, 0)]))


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_of_images(mode):
    require_agreement(One("DepthToSpace", [numbers("f4", 2, 12, 2, 3)], {"blocksize": 2, "mode": mode}))
    x = numbers("f4", 2, 3, 4, 6)
    require_agreement(One("SpaceToDepth", [x], {"blocksize": 2}, 7))
    deep = by_tidu(One("SpaceToDepth", [x], {"blocksize": 2, "mode": mode}))
    require_equal(by_tidu(One("DepthToSpace", deep, {"blocksize": 2, "mode": mode})), [x], "back")


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (One("Reshape", [np.ones(6), np.array([4])]), "does not reshape|cannot reshape"),
        (One("Reshape", [np.ones(6), np.array([6, 0])]), "keeps the size of axis 1"),
        (One("Reshape", [np.ones(6), np.array([-1, -1])]), "node 0"),
        (One("Reshape", [np.ones((0, 2)), np.array([0, -1])]), "-1 may be any number"),
        (One("Reshape", [np.ones((0, 2)), np.array([0, -1])], {"allowzero": 1}), "-1 may be any number"),
        (One("Squeeze", [np.ones(6), np.array([0])]), "has more than one element"),
        (One("Squeeze", [np.ones(6), np.array([1])]), "axis 1 is out of range"),
        (One("Unsqueeze", [np.ones(6), np.array([0, 0])]), "axes repeat"),
        (One("Expand", [np.ones(6), np.array([5])]), r"\[6\] and \[5\] do not broadcast together"),
        (One("Transpose", [np.ones((2, 3))], {"perm": [0, 0]}), r"perm \[0, 0\] is not a permutation of 2 axes"),
        (One("ConstantOfShape", [np.array([2, -1])]), r"would make an array of shape \[2, -1\]"),
        (One("Range", [np.array(0), np.array(3), np.array(0)]), "from 0 to 3 by 0 has no number of elements"),
        (One("Range", [np.array(0.0), np.array(np.inf), np.array(1.0)]), "has no number of elements"),
        (One("EyeLike", [np.ones(3)]), "which is not a matrix"),
        (One("DepthToSpace", [np.ones((1, 3, 2, 2))], {"blocksize": 2}), "3 channels are not a multiple of 2 times 2"),
        (One("SpaceToDepth", [np.ones((1, 3, 2, 3))], {"blocksize": 2}), "do not divide into blocks of 2"),
        (One("SpaceToDepth", [np.ones((1, 3, 2))], {"blocksize": 2}), "takes images"),
        (One("Constant", [], {"value_string": "a"}), "has a value of text"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(one, reason):
    for fold in (False, True):
        with pytest.raises(TiduError, match=reason):
            by_tidu(one, fold)
