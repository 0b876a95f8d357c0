"""Fourier transforms, windows and mel filters of ONNX, against other evaluators, and the derivatives of transforms."""

import numpy as np
import pytest

from tests.onnx.operators.families import require_derivatives, require_dtypes, require_values
from tests.onnx.operators.networks.test_operators_convolution import ints
from tests.onnx.operators.one_node import One, by_reference, by_runtime, by_tidu
from tidu_cli.errors import TiduError


def dft(rng):
    version, rank = int(rng.choice([17, 20])), int(rng.integers(2, 4))
    inverse, one_sided = (int(v) for v in rng.integers(0, 2, 2))
    parts = 1 if one_sided and not inverse else 2 if one_sided else int(rng.integers(1, 3))
    x = rng.standard_normal((*ints(rng, 2, 7, rank), parts)).astype("f4")
    axis = int(rng.integers(0, rank)) - (rank + 1) * int(rng.integers(0, 2))
    length = np.array(int(rng.integers(2, 9))) if rng.random() < 0.4 else None
    attrs = {"inverse": inverse, "onesided": one_sided}
    if version == 17:
        return One("DFT", [x, length], attrs | {"axis": axis}, 17)
    return One("DFT", [x, length, np.array(axis)] if rng.random() < 0.7 else [x, length], attrs, 20)


def stft(rng):
    n, parts = int(rng.integers(4, 20)), int(rng.integers(1, 3))
    size = int(rng.integers(1, n + 1))
    x = rng.standard_normal((int(rng.integers(1, 3)), n, parts)).astype("f4")
    window = rng.random(size).astype("f4") if rng.random() < 0.6 else None
    length = np.array(size) if window is None or rng.random() < 0.5 else None
    attrs = {"onesided": 0 if parts == 2 else int(rng.integers(0, 2))}
    return One("STFT", [x, np.array(int(rng.integers(1, 5))), window, length], attrs, 17)


def window(op):
    def draw(rng):
        attrs = {"periodic": int(rng.integers(0, 2)), "output_datatype": int(rng.choice([1, 11]))}
        return One(op, [np.array(rng.integers(1, 12), rng.choice(["i4", "i8"]))], attrs, 17)

    return draw


def mel(rng):
    low, high = np.array(rng.choice([0, 20, 100]), "f4"), np.array(rng.choice([2000, 3800]), "f4")
    sizes = [np.array(v) for v in (int(rng.integers(1, 12)), int(rng.integers(8, 40)), int(rng.choice([8192, 16000])))]
    return One("MelWeightMatrix", [*sizes, low, high], {"output_datatype": int(rng.choice([1, 11]))}, 17)


WINDOWS = {op: window(op) for op in ("HannWindow", "HammingWindow", "BlackmanWindow")}
TRANSFORMS = {"DFT": dft, "STFT": stft}
KINDS = TRANSFORMS | WINDOWS | {"MelWeightMatrix": mel}


@pytest.mark.check
@pytest.mark.parametrize("op", KINDS)
def test_they_agree_with_other_evaluators(op):
    """onnxruntime's inverse of half a spectrum is another one, and some lengths end its process.

    Its powers of a root of unity are products of one another, each with a rounding.
    """
    others = [by_reference] if op == "DFT" else [by_reference, by_runtime]
    require_values(KINDS[op], lambda one: others, 60, 1e-4 if op == "STFT" else 2e-5)


@pytest.mark.parametrize("op", TRANSFORMS)
def test_results_have_the_dtype_of_operands(op):
    require_dtypes(KINDS[op])


@pytest.mark.check
@pytest.mark.parametrize("op", TRANSFORMS)
def test_derivatives(op):
    require_derivatives(KINDS[op], n=16)


X = np.ones((2, 6, 1), np.float32)


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (One("DFT", [X, np.array(0)]), "length 0"),
        (One("DFT", [X, np.array([1, 2])]), "2 numbers"),
        (One("DFT", [X, None, np.array(7)]), "axis 7"),
        (One("DFT", [X[..., [0, 0, 0]]]), "neither one nor two"),
        (One("DFT", [X, np.array(10**13)]), "limit"),
        (One("STFT", [X, np.array(1)], {}, 17), "neither a window nor"),
        (One("STFT", [X, np.array(0), None, np.array(3)], {}, 17), "steps of 0"),
        (One("STFT", [X, np.array(1), np.ones(3, "f4"), np.array(2)], {}, 17), "frames of 2"),
        (One("STFT", [X, np.array(1), None, np.array(7)], {}, 17), "frames of 7"),
        (One("HannWindow", [np.array(10**13)]), "limit"),
    ],
)
def test_what_does_not_fit_is_refused(one, told):
    with pytest.raises(TiduError, match=told):
        by_tidu(one)
