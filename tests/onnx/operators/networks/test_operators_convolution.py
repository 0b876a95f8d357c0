"""Convolutions of ONNX, their transposes, and blocks of images, over random attributes, against other evaluators."""

import math

import numpy as np
import pytest

from tests.onnx.operators.families import require_derivatives, require_dtypes, require_values
from tests.onnx.operators.one_node import One, by_reference, by_runtime, by_tidu
from tidu_cli.errors import TiduError


def ints(rng, low, high, n):
    return [int(v) for v in rng.integers(low, high, n)]


def windows(rng, rank, automatic=True):
    """Attributes of windows, some of them left out."""
    attrs = {"strides": ints(rng, 1, 4, rank), "dilations": ints(rng, 1, 3, rank)}
    if automatic and rng.random() < 0.5:
        attrs["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"]))
    else:
        attrs["pads"] = ints(rng, 0, 3, 2 * rank)
    return {name: value for name, value in attrs.items() if rng.random() < 0.6}


def counts(sizes, kernel, attrs):
    """How many windows there are, at least one; None if an axis has no place for one."""
    rank = len(sizes)
    strides, dilations, pads = (
        attrs.get(k, [v] * n) for k, v, n in (("strides", 1, rank), ("dilations", 1, rank), ("pads", 0, 2 * rank))
    )
    rooms = [n + pads[k] + pads[k + rank] - (kernel[k] - 1) * dilations[k] - 1 for k, n in enumerate(sizes)]
    return None if min(rooms) < 0 else [room // s + 1 for room, s in zip(rooms, strides, strict=True)]


def conv(rng):
    rank, groups, inner = int(rng.integers(1, 4)), int(rng.choice([1, 1, 2, 3])), int(rng.integers(1, 3))
    kernel, features = ints(rng, 1, 4, rank), groups * int(rng.integers(1, 3))
    x = rng.standard_normal((int(rng.integers(1, 3)), groups * inner, *ints(rng, 5, 8, rank)))
    operands = [x, rng.standard_normal((features, inner, *kernel)), rng.standard_normal(features)]
    attrs = (
        windows(rng, rank) | ({"group": groups} if groups > 1 else {}) | ({"kernel_shape": kernel} if rng.random() < 0.5 else {})
    )
    return One("Conv", [v.astype("f4") for v in operands[: int(rng.integers(2, 4))]], attrs, int(rng.choice([7, 11, 22])))


def conv_transpose(rng):
    one = conv(rng)
    x, attrs = one.operands[0], dict(one.attrs)
    rank, groups = x.ndim - 2, attrs.get("group", 1)
    w = rng.standard_normal((x.shape[1], int(rng.integers(1, 3)), *one.operands[1].shape[2:])).astype("f4")
    bias = [rng.standard_normal(groups * w.shape[1]).astype("f4")] * (len(one.operands) - 2)
    strides = attrs.get("strides", [1] * rank)
    if rng.random() < 0.3:
        attrs["output_padding"] = [int(rng.integers(0, s)) for s in strides]
    if rng.random() < 0.5:
        attrs.pop("pads", None)
        attrs["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER"]))
    if rng.random() < 0.3 and "pads" not in attrs:
        attrs["output_shape"] = [int(n * s + rng.integers(-1, 3)) for n, s in zip(x.shape[2:], strides, strict=True)]
    return One("ConvTranspose", [x, w, *bias], attrs, int(rng.choice([7, 11, 22])))


def deform_conv(rng):
    groups, shifted = int(rng.choice([1, 2])), int(rng.choice([1, 1, 2]))
    n, inner, features, kernel = int(rng.integers(1, 3)), shifted * int(rng.choice([1, 2])), groups * 2, ints(rng, 1, 4, 2)
    sizes, attrs = ints(rng, 5, 8, 2), windows(rng, 2, automatic=False)
    due = counts(sizes, kernel, attrs)
    shapes = [(n, groups * inner, *sizes), (features, inner, *kernel), (n, shifted * math.prod(kernel) * 2, *due)]
    more = [(features,), (n, shifted * math.prod(kernel), *due)]
    operands = [rng.standard_normal(s).astype("f4") for s in shapes]
    operands += [rng.standard_normal(s).astype("f4") if rng.random() < 0.5 else None for s in more]
    return One("DeformConv", operands, attrs | {"group": groups, "offset_group": shifted}, int(rng.choice([19, 22])))


def col2im(rng):
    rank = int(rng.choice([1, 2, 2, 3]))
    sizes, kernel, attrs = ints(rng, 5, 7, rank), ints(rng, 1, 4, rank), windows(rng, rank, automatic=False)
    shape = (*ints(rng, 1, 3, 1), 2 * math.prod(kernel), math.prod(counts(sizes, kernel, attrs)))
    return One("Col2Im", [rng.standard_normal(shape).astype("f4"), np.array(sizes), np.array(kernel)], attrs, 18)


KINDS = {"Conv": conv, "ConvTranspose": conv_transpose, "DeformConv": deform_conv, "Col2Im": col2im}


def others(one):
    """Who is right: the reference puts groups of transposes with a bias, onnxruntime blocks with dilations, in wrong places.

    onnxruntime makes a transpose with automatic padding smaller than specified, where windows are smaller than strides.
    """
    if one.op == "ConvTranspose":
        attrs, kernel = one.attrs, one.operands[1].shape[2:]
        dilations, strides = (attrs.get(name, [1] * len(kernel)) for name in ("dilations", "strides"))
        small = any((k - 1) * d + 1 < s for k, d, s in zip(kernel, dilations, strides, strict=True))
        automatic = str(attrs.get("auto_pad")).startswith("SAME") and "output_shape" not in attrs
        return [] if automatic and small else [by_runtime]
    return [by_reference] if one.op == "Col2Im" else [by_reference, by_runtime]


@pytest.mark.parametrize("op", KINDS)
def test_they_agree_with_other_evaluators(op):
    require_values(KINDS[op], others)


@pytest.mark.parametrize("op", KINDS)
def test_results_have_the_dtype_of_operands(op):
    require_dtypes(KINDS[op])


@pytest.mark.check
@pytest.mark.parametrize("op", KINDS)
def test_derivatives(op):
    require_derivatives(KINDS[op])


def test_transposes_are_as_large_as_specified_where_windows_are_small():
    x, w = np.ones((1, 1, 2), np.float32), np.ones((1, 1, 1), np.float32)
    for padding in ("SAME_UPPER", "SAME_LOWER"):
        assert by_tidu(One("ConvTranspose", [x, w], {"strides": [3], "auto_pad": padding}))[0].tolist() == [[[1, 0, 0, 1, 0, 0]]]


X, W = np.ones((1, 4, 5, 5), np.float32), np.ones((2, 4, 3, 3), np.float32)


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (One("Conv", [X, W], {"kernel_shape": [2, 3]}), "weights of shape"),
        (One("Conv", [X, W[0]]), "weights of shape"),
        (One("Conv", [X, W, np.ones(3, np.float32)]), "a bias of shape"),
        (One("Conv", [X, W], {"strides": [0, 1]}), "strides"),
        (One("Conv", [X, W], {"pads": [1, 1]}), "pads"),
        (One("Conv", [X, W], {"auto_pad": "SAME"}), "auto_pad"),
        (One("Conv", [X, W], {"dilations": [3, 1]}), "windows of 7 elements along an axis of 5"),
        (One("Conv", [X, W], {"group": 2}), "features"),
        (One("ConvTranspose", [X, W]), "weights of shape"),
        (One("ConvTranspose", [X, np.ones((4, 2, 3, 3), np.float32)], {"output_shape": [7]}), "output_shape"),
        (One("Col2Im", [np.ones((1, 9, 4), np.float32), np.array([5, 5]), np.array([3, 3])]), "4 blocks, where 9"),
        (One("Col2Im", [np.ones((1, 9, 9), np.float32), np.array([5, 5]), np.array([0, 3])]), "blocks"),
        (One("DeformConv", [X, W, np.ones((1, 18, 2, 3), np.float32)]), "offsets"),
    ],
)
def test_what_does_not_fit_is_refused(one, told):
    with pytest.raises(TiduError, match=told):
        by_tidu(one)
