"""Windows as many as steps fit into axes of open size, whose padding is a size: read, derived and written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tidu_cli as api
from tests.onnx.operators.evaluators import by_runtime
from tests.onnx.sizes.test_open_sizes import read, shaped, to_plain
from tidu_cli.adapters.onnx.writing.model import onnx_bytes

SHORT, LONG = {"kernel_shape": [2, 3], "strides": [3, 4]}, {"kernel_shape": [3, 5], "strides": [2, 3]}


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("windows", [SHORT, LONG], ids=["short", "long"])
@pytest.mark.parametrize("op", ["AveragePool", "AveragePool with padding", "MaxPool", "LpPool"])
def test_windows_have_the_padding_of_each_size(op: str, windows: Any, mode: str) -> None:
    """Those shorter than steps, too; onnxruntime computes a padding below 0 for these, and refuses it."""
    more = {"count_include_pad": 1} if op.endswith("padding") else {}
    proto = shaped(lambda f: f(op.split()[0], "x", auto_pad=mode, **windows, **more), (1, 2, "N", "M"))
    document = read(proto)
    assert "sizes" not in to_plain(document)
    steps = windows["strides"]
    for made in (document, api.vjp(document, "x", "y"), api.jvp(document, "x", "y")):
        data = onnx_bytes(made)
        for sizes in ((1, 1), (4, 3), (5, 9)):
            rng = np.random.default_rng(sizes[0])
            x, t = rng.standard_normal((2, 1, 2, *sizes)).astype("f4")
            seed = rng.standard_normal((1, 2, *(-(-n // s) for n, s in zip(sizes, steps, strict=True)))).astype("f4")
            given = {k: v for k, v in {"x": x, "x@1": t, "y@-1": seed}.items() if k in map(str, made.inputs)}
            due = api.evaluate(api.specialize(made, size=dict(zip("NM", sizes, strict=True))), given)
            for found in (api.evaluate(made, given), by_runtime(data, given)):
                for key, value in due.items():
                    np.testing.assert_allclose(found[key], value, 1e-4, 1e-6)
            if made is document and windows is LONG:
                np.testing.assert_allclose(due["y"], by_runtime(proto.SerializeToString(), given)["y"], 1e-5)


def test_windows_that_are_too_large_by_numbers_are_not_a_matter_of_other_sizes() -> None:
    proto = shaped(lambda f: f("Conv", "x", f.weight(2, 1, 16)), ("batch", 1, "samples"))
    with pytest.raises(api.TiduError, match=r"has windows of 16 elements along an axis of 13, padded to 13$"):
        read(proto, dims={"samples": 13})
