"""Resize and Upsample of ONNX over random attributes, against other evaluators, and their derivatives."""

import numpy as np
import pytest

from tests.onnx.operators.families import require_derivatives, require_dtypes, require_values
from tests.onnx.operators.networks.test_operators_convolution import ints
from tests.onnx.operators.one_node import One, by_reference, by_runtime, by_tidu
from tidu_cli.errors import TiduError

SCALES = (0.5, 0.6, 1, 1.5, 2, 3, 0.8, 1.25, 0.3)
PLACES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize")


def choice(rng, options):
    return str(rng.choice(list(options)))


def attributes(rng, version):
    """Attributes of Resize."""
    mode = choice(rng, ("nearest", "linear", "cubic") if version > 10 else ("nearest", "linear"))
    if version == 10:
        return {"mode": mode}
    later = ("half_pixel_symmetric",) if version >= 19 else ("tf_half_pixel_for_nn",) if version == 11 else ()
    attrs = {
        "coordinate_transformation_mode": choice(rng, (*PLACES, *later)),
        "nearest_mode": choice(rng, ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")),
        "extrapolation_value": 2.5,
    }
    if mode == "cubic":
        attrs["cubic_coeff_a"] = float(rng.choice([-0.5, -0.75]))
    if mode != "nearest":
        attrs["exclude_outside"] = int(rng.integers(0, 2))
        attrs |= {"antialias": int(rng.integers(0, 2))} if version >= 18 else {}
    return {name: value for name, value in attrs.items() if rng.random() < 0.7} | {"mode": mode}


def resize(rng):
    version, rank = int(rng.choice([10, 11, 13, 18, 19])), int(rng.integers(1, 5))
    shape, attrs = ints(rng, 2, 7, rank), attributes(rng, version)
    axes = list(range(2 if rank > 2 and rng.random() < 0.7 else 0, rank))
    scales = np.array([rng.choice(SCALES) if k in axes else 1 for k in range(rank)], "f4")
    sizes = np.maximum(np.floor(np.float32(shape) * scales), 1).astype("i8")
    whole = bool((sizes == np.float32(shape) * scales).all())
    roi = np.concatenate([rng.random(rank) * 0.4, 1.2 - rng.random(rank) * 0.4]).astype("f4")
    by_sizes = version > 10 and (rng.random() < 0.5 or not whole)
    if version >= 18 and rng.random() < 0.5:
        attrs["axes"] = [k - rank if rng.random() < 0.5 else k for k in axes]
        scales, sizes, roi = scales[axes], sizes[axes], np.concatenate([roi[axes], roi[rank:][axes]])
        if by_sizes and rng.random() < 0.5:
            attrs["keep_aspect_ratio_policy"] = choice(rng, ("stretch", "not_larger", "not_smaller"))
    x = rng.standard_normal(shape).astype("f4")
    if version == 10:
        return One("Resize", [x, scales], attrs, 10)
    blank = np.zeros(0, "f4") if version == 11 else None
    region = roi if attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize" else blank
    return One("Resize", [x, region, *([blank, sizes] if by_sizes else [scales])], attrs, version)


def upsample(rng):
    shape, version = ints(rng, 1, 5, 4), int(rng.choice([7, 9]))
    scales, mode = np.array([1, 1, *rng.choice([1, 2, 3, 1.5], 2)], "f4"), choice(rng, ("nearest", "linear"))
    x = rng.standard_normal(shape).astype("f4")
    if version == 7:
        return One("Upsample", [x], {"mode": mode, "scales": scales}, 7)
    return One("Upsample", [x, scales], {"mode": mode}, 9)


def others(one):
    """Who is right: the reference puts a single element of pytorch_half_pixel before the array.

    onnxruntime reads regions, antialiasing and negative axes of kept ratios otherwise, and copies what keeps its shape.
    """
    kept = one.attrs.get("keep_aspect_ratio_policy") and min(one.attrs["axes"]) < 0
    places, x, y = one.attrs.get("coordinate_transformation_mode"), one.operands[0], by_tidu(one)[0]
    first = [] if places == "pytorch_half_pixel" else [by_reference]
    apart = places == "tf_crop_and_resize" or one.attrs.get("antialias") or kept or x.shape == y.shape
    return first + ([] if apart else [by_runtime])


@pytest.mark.parametrize("draw", [resize, upsample])
def test_they_agree_with_other_evaluators(draw):
    require_values(draw, others, 150)


@pytest.mark.check
@pytest.mark.parametrize("matrices", [0, 10**6])
def test_sums_are_gathered_or_products(monkeypatch, matrices):
    monkeypatch.setattr("tidu_cli.adapters.onnx.reading.operators.networks.resampling.SMALL_MATRIX", matrices)
    require_values(resize, others, 60)
    require_derivatives(resize, apart=(1, 2))


def test_results_have_the_dtype_of_operands():
    require_dtypes(resize, apart=(1, 2))


def test_integers_stay_integers():
    x = np.arange(12, dtype="u1").reshape(1, 1, 3, 4) * 20
    for mode in ("nearest", "linear"):
        one = One("Resize", [x, None, np.array([1, 1, 2, 2], "f4")], {"mode": mode})
        assert by_tidu(one)[0].tolist() == by_runtime(one)[0].tolist()


def test_scales_are_of_single_precision():
    x = np.arange(10, dtype="f4")
    assert by_tidu(One("Resize", [x, None, np.array([0.7], "f4")]))[0].shape == (7,)


@pytest.mark.parametrize("draw", [resize, upsample])
def test_derivatives(draw):
    require_derivatives(draw, apart=(1, 2), n=16)


X, TWICE = np.ones((1, 1, 4, 4), np.float32), np.array([1, 1, 2, 2], "f4")


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (One("Resize", [X, None, TWICE[:3]]), "3 scales for 4 axes"),
        (One("Resize", [X, None, None, np.array([1, 4])]), "2 sizes for 4 axes"),
        (One("Resize", [X]), "neither scales nor sizes"),
        (One("Resize", [X, None, -TWICE]), "sizes"),
        (One("Resize", [X, None, TWICE], {"mode": "area"}), "mode 'area'"),
        (One("Resize", [X, None, TWICE], {"nearest_mode": "round"}), "nearest_mode 'round'"),
        (One("Resize", [X, None, TWICE], {"coordinate_transformation_mode": "x"}), "coordinate_transformation_mode 'x'"),
        (One("Resize", [X, None, TWICE], {"coordinate_transformation_mode": "tf_crop_and_resize"}), "no roi"),
        (One("Resize", [X, None, TWICE * np.float32(0.6)], {"coordinate_transformation_mode": "align_corners"}), "give it sizes"),
        (One("Resize", [X[:, :0], None, None, np.array([1, 2, 4, 4])]), "resizes an array of shape"),
        (One("Resize", [X, None, None, np.array([1, 1, 4, 10**12])], {"mode": "linear"}), "limit"),
    ],
)
def test_what_does_not_fit_is_refused(one, told):
    with pytest.raises(TiduError, match=told):
        by_tidu(one)
