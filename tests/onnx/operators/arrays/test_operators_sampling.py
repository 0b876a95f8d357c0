"""Sampling of ONNX at places of a grid and in regions, against other evaluators, and its derivatives by places, too."""

import numpy as np
import pytest

from tests.onnx.operators.arrays.test_operators_resizing import choice
from tests.onnx.operators.families import require_derivatives, require_dtypes, require_values
from tests.onnx.operators.networks.test_operators_convolution import ints
from tests.onnx.operators.one_node import One, by_reference, by_runtime, by_tidu, require_equal
from tidu_cli.errors import TiduError


def grid_sample(rng):
    version = int(rng.choice([16, 20, 22]))
    rank = 2 if version == 16 else int(rng.choice([2, 2, 3]))
    modes = ("bilinear", "nearest", "bicubic") if version == 16 else ("linear", "nearest", "cubic")
    attrs = {"mode": choice(rng, modes[: 4 - rank + (rank == 2)]), "padding_mode": choice(rng, ("zeros", "border", "reflection"))}
    n = int(rng.integers(1, 3))
    x = rng.standard_normal((n, *ints(rng, 1, 3, 1), *ints(rng, 2, 6, rank))).astype("f4")
    grid = (rng.random((n, *ints(rng, 1, 5, rank), rank)) * 3 - 1.5).astype("f4")
    return One("GridSample", [x, grid], attrs | {"align_corners": int(rng.integers(0, 2))}, version)


def affine_grid(rng):
    rank, n = int(rng.choice([2, 3])), int(rng.integers(1, 3))
    size = np.array([n, 3, *rng.integers(2, 5, rank)])
    return One(
        "AffineGrid", [rng.standard_normal((n, rank, rank + 1)).astype("f4"), size], {"align_corners": int(rng.integers(0, 2))}, 20
    )


def regions(rng, n, low=-2.0):
    boxes = rng.random((int(rng.integers(1, 4)), 4)) * 12 + low
    boxes[:, 2:] = boxes[:, :2] + rng.random((len(boxes), 2)) * 6
    return boxes.astype("f4"), rng.integers(0, n, len(boxes))


def roi_align(rng):
    version, n = int(rng.choice([10, 16, 22])), int(rng.integers(1, 3))
    boxes, batch = regions(rng, n)
    attrs = {"output_height": int(rng.integers(1, 4)), "output_width": int(rng.integers(1, 4)), "mode": choice(rng, ("avg", "max"))}
    attrs |= {"sampling_ratio": int(rng.integers(1, 4)), "spatial_scale": float(rng.choice([0.25, 0.5, 1, 2]))}
    if version >= 16:
        attrs["coordinate_transformation_mode"] = choice(rng, ("half_pixel", "output_half_pixel"))
    x = rng.standard_normal((n, 2, *ints(rng, 2, 9, 2))).astype("f4")
    return One("RoiAlign", [x, boxes, batch], attrs, version)


def max_roi_pool(rng):
    n = int(rng.integers(1, 3))
    boxes, batch = regions(rng, n, 0.0)
    x = rng.standard_normal((n, 2, *ints(rng, 4, 9, 2))).astype("f4")
    rois = np.concatenate([batch[:, np.newaxis].astype("f4"), boxes], 1)
    attrs = {"pooled_shape": ints(rng, 1, 4, 2), "spatial_scale": float(rng.choice([0.25, 0.5, 1]))}
    return One("MaxRoiPool", [x, rois], attrs, int(rng.choice([7, 22])))


KINDS = {"GridSample": grid_sample, "AffineGrid": affine_grid, "RoiAlign": roi_align, "MaxRoiPool": max_roi_pool}


def others(one):
    """Who is right: PyTorch and onnxruntime read borders under a cubic, which the reference moves to the border.

    The reference has the regions of version 16 in version 10.
    """
    cubic = one.attrs.get("mode") in ("cubic", "bicubic") and one.attrs["padding_mode"] == "border"
    return [by_runtime] if cubic or one.version == 10 else [by_reference, by_runtime]


@pytest.mark.parametrize("op", KINDS)
def test_they_agree_with_other_evaluators(op):
    require_values(KINDS[op], others, 100, 1e-4)


@pytest.mark.parametrize(("op", "apart"), [("GridSample", (1,)), ("AffineGrid", ()), ("RoiAlign", (1,)), ("MaxRoiPool", (1,))])
def test_results_have_the_dtype_of_operands(op, apart):
    """Of places in half precision the results are others: they are apart."""
    if op in ("GridSample", "AffineGrid"):
        require_dtypes(KINDS[op], apart)
    one = KINDS[op](np.random.default_rng(0))
    for dtype in (np.float16, np.float64):
        half = [x.astype(dtype) if x.dtype.kind == "f" else x for x in one.operands]
        assert by_tidu(One(op, half, one.attrs))[0].dtype == dtype


@pytest.mark.check
@pytest.mark.parametrize("op", KINDS)
def test_derivatives(op):
    """Those by bounds of MaxRoiPool are 0: they are rounded."""
    require_derivatives(KINDS[op], (1,) if op == "MaxRoiPool" else (), 12)


@pytest.mark.parametrize("mode", ["zeros", "border", "reflection"])
def test_the_nearest_of_integers(mode):
    x = np.arange(6).reshape(1, 1, 2, 3)
    grid = np.linspace(-2, 2, 24, dtype="f4").reshape(1, 3, 4, 2)
    attrs = {"mode": "nearest", "padding_mode": mode}
    nearest, expected = by_tidu(One("GridSample", [x, grid], attrs)), by_tidu(One("GridSample", [x.astype("f4"), grid], attrs))
    require_equal(nearest, [expected[0].astype("i8")], mode)


def test_cells_of_known_regions_may_have_as_many_points_as_they_need():
    x = np.random.default_rng(0).standard_normal((1, 2, 8, 8)).astype("f4")
    rois, batch = np.array([[1, 1, 6, 7], [0, 1, 5, 7]], "f4"), np.zeros(2, "i8")
    one = One("RoiAlign", [x, rois, batch], {"output_height": 2, "output_width": 3}, 16)
    require_equal(by_tidu(one), by_runtime(one), str(one), 1e-5, 1e-5)


X, GRID, ROIS = np.ones((1, 1, 4, 4), np.float32), np.zeros((1, 2, 2, 2), np.float32), np.float32([[0, 0, 2, 2], [0, 0, 4, 4]])


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (One("GridSample", [X, GRID[..., :1]]), "places of shape"),
        (One("GridSample", [X, GRID], {"mode": "area"}), "mode 'area'"),
        (One("GridSample", [X, GRID], {"padding_mode": "wrap"}), "padding_mode 'wrap'"),
        (One("GridSample", [X.astype("i4"), GRID]), "an array of int32"),
        (One("GridSample", [X[:, :, :0], GRID]), "samples an array"),
        (One("AffineGrid", [np.ones((1, 2, 3), "f4"), np.array([1, 1, 2, 2, 2])], {}, 20), "maps images"),
        (One("RoiAlign", [X, ROIS, np.zeros(1, "i8")]), "regions"),
        (One("RoiAlign", [X, ROIS, np.zeros(2, "i8")], {"output_height": 4}), "regions of several sizes"),
        (One("RoiAlign", [X, ROIS, np.zeros(2, "i8")], {"mode": "sum", "sampling_ratio": 1}), "mode 'sum'"),
        (One("RoiAlign", [X, ROIS, np.zeros(2, "i8")], {"output_height": 10**12, "sampling_ratio": 1}), "limit"),
        (One("MaxRoiPool", [X, ROIS], {"pooled_shape": [2, 2]}), "regions"),
        (One("MaxRoiPool", [X, np.zeros((1, 5), "f4")], {"pooled_shape": [10**12, 1]}), "limit"),
    ],
)
def test_what_does_not_fit_is_refused(one, told):
    with pytest.raises(TiduError, match=told):
        by_tidu(one)
