"""Elements at computed places, taken and put: ONNX's operators against other evaluators."""

import numpy as np
import pytest

from tests.onnx.operators.one_node import NEWEST, One, by_reference, by_runtime, by_tidu, draw, require_agreement, require_equal
from tidu_cli import api
from tidu_cli.adapters.onnx.contents import Choices
from tidu_cli.adapters.onnx.reading.importer import import_model
from tidu_cli.errors import TiduError

REDUCTIONS = ("none", "add", "mul", "max", "min")
DTYPES = ("f4", "f8", "f2", "i4", "i8")


def numbers(rng, dtype, *shape):
    return draw(rng, dtype, shape, special=False)


def places(rng, n, shape, dtype="i8"):
    return rng.integers(-n, n, shape).astype(dtype)


@pytest.mark.check
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gathers(axis):
    rng = np.random.default_rng(0)
    for dtype in ("f4", "?", "u1", "i8"):
        x = numbers(rng, dtype, 3, 4, 5)
        for shape in ((), (2,), (2, 3), (0,), (1, 1)):
            for version in (7, 11, NEWEST):
                at = places(rng, x.shape[axis], shape, "i4" if version == 11 else "i8")
                require_agreement(One("Gather", [x, at if version > 7 else np.abs(at) % 3], {"axis": axis}, version))
        for shape in ((3, 4, 5), (2, 4, 5), (3, 1, 5), (1, 2, 1), (0, 4, 5)):
            if all(n <= m or k == axis % 3 for k, (n, m) in enumerate(zip(shape, x.shape, strict=True))):
                require_agreement(One("GatherElements", [x, places(rng, x.shape[axis], shape)], {"axis": axis}))
    longer = [4 if k == axis % 3 else n for k, n in enumerate((2, 2, 2))]
    require_agreement(One("GatherElements", [x[:2, :2, :2], places(rng, 2, longer)], {"axis": axis}))


@pytest.mark.parametrize("batch", [0, 1, 2])
def test_gathers_of_several_axes(batch):
    rng = np.random.default_rng(1)
    x = numbers(rng, "f4", 2, 3, 4, 2)
    for rank in range(1, 4 - batch + 1):
        for between in ((), (5,), (2, 2)):
            if batch == 2 and not between:
                between = (3,)
            shape = (*x.shape[:batch], *between, rank)
            at = places(rng, 2, shape)
            require_agreement(One("GatherND", [x, at], {"batch_dims": batch}))
            if not batch:
                require_agreement(One("GatherND", [x, at], {}, 11))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_scatters(reduction, dtype):
    rng = np.random.default_rng(2)
    x = numbers(rng, dtype, 3, 4, 5)
    for axis, shape in ((0, (3, 4, 5)), (1, (2, 4, 5)), (-1, (3, 1, 4)), (2, (1, 1, 1)), (0, (0, 4, 5))):
        n = x.shape[axis]
        at = places(rng, n, shape)
        if reduction == "none":  # whose order is not said where places repeat
            first = np.argsort(rng.random(np.moveaxis(np.empty(x.shape), axis, -1).shape), axis=-1)
            at = np.moveaxis(first, -1, axis)[tuple(map(slice, shape))]
        updates = numbers(rng, dtype, *shape)
        require_agreement(One("ScatterElements", [x, at, updates], {"axis": axis, "reduction": reduction}), 4e-3 * (dtype == "f2"))
    for rank, between in ((1, (2,)), (2, (3,)), (3, (2, 2)), (1, (0,))):
        at = places(rng, 3, (*between, rank))
        if reduction == "none":
            at = np.stack(np.unravel_index(rng.permutation(3**rank)[: int(np.prod(between))], (3,) * rank), -1).reshape(at.shape)
        updates = numbers(rng, dtype, *between, *x.shape[rank:])
        require_agreement(One("ScatterND", [x, at, updates], {"reduction": reduction}), 4e-3 * (dtype == "f2"))


def test_scatters_of_old_versions():
    rng = np.random.default_rng(3)
    x, at, updates = numbers(rng, "f4", 3, 4), np.array([[2, 0, 1, 2]]), numbers(rng, "f4", 1, 4)
    for op, version in (("Scatter", 9), ("Scatter", 10), ("ScatterElements", 11), ("ScatterElements", 13)):
        require_agreement(One(op, [x, at, updates], {"axis": 0}, version))
    require_agreement(One("ScatterND", [x, at.T, numbers(rng, "f4", 4, 4)], {}, 11), others=[by_runtime])


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_caches_are_updated(mode):
    rng = np.random.default_rng(4)
    for shape, axis in (((2, 6, 3), -2), ((2, 3, 6), 2), ((3, 2, 6, 2), 2), ((2, 6), 1)):
        n = [3 if k == axis % len(shape) else m for k, m in enumerate(shape)]
        past, update = numbers(rng, "f4", *shape), numbers(rng, "f4", *n)
        starts = rng.integers(0, 4 if mode == "linear" else 6, shape[0])
        require_agreement(One("TensorScatter", [past, update, starts], {"axis": axis, "mode": mode}))
        require_agreement(One("TensorScatter", [past, update], {"axis": axis, "mode": mode}))


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_places_of_extremes(op):
    rng = np.random.default_rng(5)
    for dtype in ("f4", "f8", "f2", "i4", "u1", "i8"):
        x = draw(rng, dtype, (3, 4, 2), special=False) // np.asarray(2, dtype)  # with ties
        for axis in (0, 1, -1):
            for last in (0, 1):
                require_agreement(One(op, [x], {"axis": axis, "select_last_index": last}))
            require_agreement(One(op, [x], {"axis": abs(axis), "keepdims": 0}, 7))


def test_hardmax():
    rng = np.random.default_rng(6)
    x = np.round(numbers(rng, "f4", 2, 3, 4))
    for axis in (0, 1, -1):
        require_agreement(One("Hardmax", [x], {"axis": axis}))
    for axis in (1, 2):
        require_agreement(One("Hardmax", [x], {"axis": axis}, 11), others=[by_runtime])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_hot(axis):
    for values in (np.array([2, 5], "f4"), np.array([0, 1], "i8")):
        at = np.array([[0, 3, -1], [-4, 7, -9]])
        require_agreement(One("OneHot", [at, np.array(4), values], {"axis": axis}), others=[by_runtime])
    floats = [np.array([[0, 3, 2], [1, 0, 3]], "f4"), np.float32(4), np.array([2, 5], "f4")]
    require_agreement(One("OneHot", floats, {"axis": axis}), others=[by_runtime])
    require_agreement(One("OneHot", [np.array([1, 2]), np.array([4]), values], {"axis": axis}, 9), others=[by_runtime])
    require_agreement(One("OneHot", [np.array([1, 200], "u1"), np.array(300), values]), others=[by_reference])


@pytest.mark.parametrize("largest", [0, 1])
def test_the_greatest_and_the_least(largest):
    rng = np.random.default_rng(7)
    for dtype in ("f4", "f8", "f2", "i4", "i8", "u1"):
        x = draw(rng, dtype, (4, 5), special=False) // np.asarray(2, dtype)  # with ties
        for axis in (0, -1):
            for k in (0, 1, 3):
                one = One("TopK", [x, np.array([k])], {"axis": axis, "largest": largest}, NEWEST, 2)
                require_agreement(one, others=[by_runtime])
    distinct = rng.permutation(20).reshape(4, 5).astype("f4")
    require_agreement(One("TopK", [distinct, np.array([2])], {"largest": largest}, 11, 2))
    require_agreement(One("TopK", [distinct, np.array([2])], {}, 10, 2))
    require_agreement(One("TopK", [distinct], {"k": 2, "axis": 0}, 7, 2))


def test_reversed_sequences():
    rng = np.random.default_rng(8)
    for dtype in ("f4", "i8", "?"):
        x = numbers(rng, dtype, 4, 3, 2)
        require_agreement(One("ReverseSequence", [x, np.array([1, 4, 2])]))
        require_agreement(One("ReverseSequence", [x, np.array([1, 3, 2, 3])], {"time_axis": 1, "batch_axis": 0}))


def test_what_is_known_has_places():
    x = np.array([[0, 2, 0], [3, 0, -1]], "f4")
    require_agreement(One("NonZero", [x]))
    require_agreement(One("NonZero", [x > 0]))
    y = np.array([[2, 1, 1], [3, 4, 3], [2, 1, 1]], "f4")
    for attrs in ({}, {"sorted": 0}, {"axis": 0}, {"axis": -1, "sorted": 0}, {"axis": 0, "sorted": 0}):
        require_agreement(One("Unique", [y], attrs, 11, 4))


@pytest.mark.parametrize("dtype", ["f4", "i8"])
def test_known_places_of_a_box_are_a_slice(dtype):
    box = np.moveaxis(np.indices((3, 4, 2)), 0, -1) + np.array([1, 0, 2])
    x, updates = np.zeros((5, 4, 6, 2), dtype), np.arange(48).reshape(3, 4, 2, 2).astype(dtype)
    for at, is_slice in ((box, True), (box - np.array([5, 4, 6]), True), (box[::-1], False), (box % 3, False)):
        one = One("ScatterND", [x, at, updates])
        document = import_model(one.model, Choices(values={"x1": at})).document
        require_equal([api.evaluate(document, {"x0": x, "x2": updates})["y0"]], by_runtime(one), str(at[0, 0, 0]))
        assert ("dynamic_update_slice" in [node.op for node, *_ in document.head.nodes()]) is is_slice


def test_traced_places_out_of_range_are_clipped_and_updates_at_them_left_out():
    x, at = np.arange(5.0), np.array([7, -9])
    require_equal(by_tidu(One("Gather", [x, at])), [np.array([4.0, 0.0])], "clipped")
    (scattered,) = by_tidu(One("ScatterElements", [x, np.array([7, 1]), np.array([8.0, 9.0])]))
    require_equal([scattered], [np.array([0, 9.0, 2, 3, 4])], "left out")


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (One("Gather", [np.ones(3), np.array([1, 3])]), r"index 3 is out of range for axes of \[3\] elements"),
        (One("GatherElements", [np.ones((3, 2)), np.array([[-4, 0]])]), "index -4 is out of range"),
        (One("GatherND", [np.ones((3, 2)), np.array([[1, 2]])]), r"index 2 is out of range for axes of \[3, 2\]"),
        (One("ScatterND", [np.ones(3), np.array([[3]]), np.ones(1)]), "index 3 is out of range"),
        (One("OneHot", [np.array([1]), np.array(-2), np.ones(2)]), "its depth is -2"),
        (One("ArgMax", [np.ones((0, 2))]), "axis 0 has no elements"),
        (One("TopK", [np.ones(3), np.array([4])], {}, NEWEST, 2), "takes 4 of 3 elements"),
        (One("GatherND", [np.ones((3, 2)), np.array([[1, 1, 1]])]), "with batch_dims 0 do not fit an array of shape"),
        (One("GatherND", [np.ones((3, 2)), np.array([[1]])], {"batch_dims": 1}), "with batch_dims 1 do not fit"),
        (One("GatherElements", [np.ones((3, 2)), np.ones((1, 3), int)]), "do not fit an array of shape"),
        (One("ScatterElements", [np.ones(3), np.array([0]), np.ones(2)]), "has updates of shape"),
        (One("ScatterElements", [np.ones(3), np.array([0]), np.ones(1)], {"reduction": "sub"}), "joins by 'sub'"),
        (One("ScatterND", [np.ones(3), np.array([[0]]), np.ones(2)]), r"updates of shape \[2\] do not fit"),
        (One("ReverseSequence", [np.ones((2, 3)), np.array([1, 2])]), "do not fit an array of shape"),
        (One("ReverseSequence", [np.ones((2, 3)), np.array([1, 2, 5])]), "does not fit an axis of 2"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(one, reason):
    with pytest.raises(TiduError, match=reason):
        by_tidu(one, fold=True)
    if "index" not in reason and "an axis of" not in reason:
        with pytest.raises(TiduError, match=reason):
            by_tidu(one)
