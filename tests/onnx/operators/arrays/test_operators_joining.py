"""Parts of arrays, and arrays joined, repeated and padded: ONNX's operators against other evaluators."""

import numpy as np
import pytest

from tests.onnx.operators.one_node import NEWEST, One, by_runtime, by_tidu, draw, require_agreement, require_equal
from tidu_cli.errors import TiduError

I64 = np.int64


def some(rng, dtype="f4", least=0, rank=3):
    return draw(rng, dtype, rng.integers(least, 5, rank))


@pytest.mark.parametrize("seed", range(30))
def test_slices(seed):
    rng = np.random.default_rng(seed)
    x = some(rng, ("f4", "i8", "?", "f2")[seed % 4])
    axes = rng.permutation(3)[: rng.integers(0, 4)]
    far = [np.iinfo(I64).min, -(2**31), -7, -3, -2, -1, 0, 1, 2, 3, 7, 2**31 - 1, np.iinfo(I64).max]
    starts, ends = rng.choice(far, (2, len(axes)))
    steps = rng.choice([-3, -2, -1, 1, 2, 3, 2**31 - 1, -(2**31)], len(axes))
    signed = np.where(rng.random(len(axes)) < 0.5, axes, axes - 3)
    ends = np.where((steps < 0) & (ends > 2**30), 3, ends)  # which onnxruntime takes for the first element
    one = One("Slice", [x, starts, ends, signed.astype(I64), steps.astype(I64)])
    require_agreement(one, others=[by_runtime])  # the reference evaluator starts before the first element, and takes nothing
    if len(axes):
        require_agreement(One("Slice", [x, starts, ends, axes.astype(I64)], {}, 10))
        require_agreement(One("Slice", [x], {"starts": starts, "ends": ends, "axes": axes}, 7))


def test_slices_of_the_first_axes_with_indices_of_32_bits():
    x = np.arange(24, dtype="f4").reshape(4, 6)
    least, most = np.iinfo("i4").min, np.iinfo("i4").max
    require_agreement(One("Slice", [x, np.array([1, 0], "i4"), np.array([most, 3], "i4")]))
    require_agreement(One("Slice", [x, np.array([most], "i4"), np.array([least], "i4"), np.array([1], "i4"), np.array([-2], "i4")]))


@pytest.mark.parametrize("version", [11, 13, 18, NEWEST])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_splits(version, axis):
    x = np.arange(48, dtype="f4").reshape(4, 6, 2)
    n = x.shape[axis]
    equal = {"num_outputs": 2} if version >= 18 else {}
    require_agreement(One("Split", [x], {"axis": axis, **equal}, version, 2))
    sizes = np.array([1, 0, n - 1])
    given = One("Split", [x, sizes], {"axis": axis}, version, 3)
    require_agreement(given if version >= 13 else One("Split", [x], {"axis": axis, "split": sizes}, version, 3))


def test_the_last_part_of_a_split_is_less():
    for n, parts in ((7, 3), (7, 4), (6, 4)):
        require_agreement(One("Split", [np.arange(n, dtype="f4")], {"num_outputs": parts}, NEWEST, parts))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("seed", range(8))
def test_pads(mode, seed):
    rng = np.random.default_rng(seed)
    x = some(rng, ("f4", "f8", "i4", "i8", "f2")[seed % 5], least=3)
    low = 0 if mode != "constant" else -1
    pads = rng.integers(low, 3, 6)
    value = None if seed % 2 or mode != "constant" else np.asarray(3, x.dtype)
    require_agreement(One("Pad", [x, pads, value], {"mode": mode}, NEWEST))
    if mode != "wrap":
        require_agreement(One("Pad", [x, pads, value], {"mode": mode}, 11))
    axes = rng.permutation(3)[:2] - (3 if seed % 2 else 0)
    require_agreement(One("Pad", [x, pads[:4], value, axes], {"mode": mode}, 18 if mode != "wrap" else 19))


def test_pads_that_were_attributes():
    x = np.arange(6, dtype="f4").reshape(2, 3)
    require_agreement(One("Pad", [x], {"pads": [1, 0, 2, -1], "value": 0.5}, 7))
    require_agreement(One("Pad", [x], {"pads": [0, 1, 1, 2], "mode": "reflect"}, 7))


def test_negative_pads_take_elements_away_before_others_come():
    x = np.arange(12, dtype="f4").reshape(2, 6)
    for mode, expected in (("edge", [[2, 3, 4, 5, 5]]), ("reflect", [[2, 3, 4, 5, 4]]), ("constant", [[2, 3, 4, 5, 0]])):
        (padded,) = by_tidu(One("Pad", [x, np.array([0, -2, -1, 1])], {"mode": mode}))
        np.testing.assert_array_equal(padded, expected)
    with pytest.raises(TiduError, match="take more than the 2 elements of axis 0"):
        by_tidu(One("Pad", [x, np.array([-2, 0, -1, 0])]))


def test_joined_and_repeated():
    rng = np.random.default_rng(0)
    for dtype in ("f4", "i8", "?", "u1", "f2"):
        parts = [draw(rng, dtype, (2, n, 3)) for n in (1, 0, 4)]
        for axis in (1, -2):
            require_agreement(One("Concat", parts, {"axis": axis}))
        require_agreement(One("Concat", parts[:1], {"axis": 0}, 7))
        require_agreement(One("Tile", [parts[2], np.array([2, 1, 3])]))
        require_agreement(One("Tile", [parts[2], np.array([2, 0, 3])], {}, 7))


def test_the_middle():
    x = np.arange(60, dtype="f4").reshape(3, 4, 5)
    for sizes in ([2, 7, 5], [3, 3, 4], [6, 1, 8], [0, 4, 5]):
        require_agreement(One("CenterCropPad", [x, np.array(sizes)], {}, 18))
        require_agreement(One("CenterCropPad", [x, np.array(sizes[:2])], {"axes": [-1, 0]}))


def test_what_a_condition_keeps():
    x = np.arange(12, dtype="f4").reshape(3, 4)
    for condition in ([True, False, True], [False, True], [False]):
        require_agreement(One("Compress", [x, np.array(condition)], {"axis": 0}))
        require_agreement(One("Compress", [x, np.array(condition)], {"axis": -1}, 11))
        require_agreement(One("Compress", [x, np.array(condition)]))


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (One("Slice", [np.ones(3), np.array([0]), np.array([1]), np.array([0]), np.array([0])]), "has a step of 0"),
        (One("Slice", [np.ones(3), np.array([0, 1]), np.array([1])]), "has 2 starts, 1 ends, 2 axes and 2 steps"),
        (One("Slice", [np.ones(3), np.array([0]), np.array([1]), np.array([1])]), "axis 1 is out of range"),
        (One("Split", [np.ones(5)], {}, 13, 2), "5 elements do not split into 2 equal parts"),
        (One("Split", [np.ones(5), np.array([2, 2])], {}, 13, 2), r"parts of \[2, 2\] elements do not make up axis 0"),
        (One("Pad", [np.ones(5), np.array([1])]), "has 1 pads for 1 axes"),
        (One("Pad", [np.ones(5), np.array([1, 1])], {"mode": "symmetric"}), "pads by 'symmetric'"),
        (One("Tile", [np.ones(5), np.array([-1])]), r"repeats \[-1\] are not a number for each of 1 axes"),
        (One("Tile", [np.ones(5), np.array([2, 2])]), r"repeats \[2, 2\] are not a number for each of 1 axes"),
        (One("Compress", [np.ones(2), np.array([False, False, True])]), "is true at 2, and axis 0 has 2 elements"),
        (One("Concat", [np.ones((2, 2)), np.ones(2)], {"axis": 0}), "node 0"),
        (One("Concat", [np.ones(2), np.ones(2, "f4")], {"axis": 0}), "are of f64 and f32, and take one type"),
        (One("CenterCropPad", [np.ones(2), np.array([3, 3])]), "is not a size for each of 1 axes"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(one, reason):
    for fold in (False, True):
        with pytest.raises(TiduError, match=reason):
            by_tidu(one, fold)


def test_an_axis_of_no_elements_has_no_edge():
    with pytest.raises(TiduError):
        by_tidu(One("Pad", [np.ones((0, 2)), np.array([1, 0, 1, 0])], {"mode": "edge"}))
    one = One("Pad", [np.ones((0, 2)), np.array([1, 0, 1, 0])])
    require_equal(by_tidu(one), [np.zeros((2, 2))], "zeros")
