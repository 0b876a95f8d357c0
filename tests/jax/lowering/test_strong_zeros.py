"""Strong zeros where JAX computes: its functions of the primitives, and what modules write out as branches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tidu_cli as td
from tests.graphs.templates import apply, make_case, type_of
from tidu_cli.graph.types import INEXACT
from tidu_cli.lax.arrays.structural import numpy_dtype

pytestmark = pytest.mark.jax

NUMBERS = (0.0, -0.0, 2.0, -3.0, np.inf, -np.inf, np.nan)


@pytest.mark.parametrize("op", ["strong_mul", "strong_div"])
def test_values_are_those_of_kernels(jax: Any, op: str) -> None:
    from tidu_cli.adapters.jax.lowering.functions import jax_function

    pairs = np.array([(x, y) for x in NUMBERS for y in NUMBERS])
    for dtype in sorted(INEXACT):
        operands = [np.asarray(v).astype(numpy_dtype(np, dtype)) for v in pairs.T]
        case = make_case(op, {}, map(type_of, operands))
        with np.errstate(all="ignore"):
            due = np.asarray(apply(case, operands)[0])
        with jax.enable_x64(True):
            values = np.asarray(jax.jit(jax_function(case))(*operands)[0])
        if dtype[0] != "c":  # there is no agreement on which part of a complex number is NaN
            np.testing.assert_array_equal(values.astype("f8"), due.astype("f8"), err_msg=dtype)
        strong = operands[1 if op == "strong_mul" else 0] == 0
        assert (values[strong & (due == 0)] == 0).all(), dtype


@pytest.mark.parametrize("name", ["erfinv", "log_ndtr"])
def test_modules_that_write_out_branches_have_the_gradient_of_jax(jax: Any, tmp_path: Any, name: str) -> None:
    from jax import export
    from jax.scipy import special

    function, path = getattr(special, name), tmp_path / "f.mlir"
    path.write_text(export.export(jax.jit(function))(jax.ShapeDtypeStruct((), np.float32)).mlir_module())
    document = td.load(path)
    ((key, _),) = document.inputs.items()
    for strong in (False, True):  # modules are read with guards, so that neither is NaN
        (gradient,) = td.evaluate(td.grad(document, key, strong_zeros=strong), {str(key): np.float32(0)}, engine="numpy").values()
        np.testing.assert_allclose(gradient, jax.grad(function)(np.float32(0)), 1e-6)
