"""What other systems call an operation is that operation."""

from __future__ import annotations

import math
from importlib import import_module

import numpy as np
import pytest

from tidu_cli.checking.numeric.trials import draw, example_cases, of_operand
from tidu_cli.lax.names import names_of, ops_of
from tidu_cli.lax.vocabulary import BUILTIN

IN_PYTHON = ("numpy", "scipy.special", "math")


@pytest.mark.every
@pytest.mark.parametrize(("system", "name"), [(system, name) for system in IN_PYTHON for name in ops_of(system)])
def test_functions_of_python(system, name):
    primitive = BUILTIN[ops_of(system)[name]]
    function = getattr(import_module(system), name)
    cases = [
        (e, c) for e, c in example_cases(BUILTIN, primitive) if str(c.operands[0]).startswith(("f64[2,3]", "i64[2,3]", "bool[2,3]"))
    ]
    for example, case in cases:
        rng = np.random.default_rng(1)
        operands = [draw(rng, t, of_operand(example.within, k)) for k, t in enumerate(case.operands)]
        ours = primitive.evaluation.kernel(np, case.attrs, case.operands, case.results)(*operands)
        theirs = np.vectorize(function)(*operands) if system == "math" else function(*operands)
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)
    assert cases


def test_a_name_is_of_one_op():
    systems = {name.rpartition(".")[0] for op in BUILTIN.primitives for name in names_of(op)}
    assert systems == {*IN_PYTHON, "stablehlo", "chlo", "onnx"}
    names = [name for op in BUILTIN.primitives for name in names_of(op)]
    assert len(names) == len({*names}) == sum(len(ops_of(system)) for system in systems)
    assert math.asin is getattr(math, next(n for n, op in ops_of("math").items() if op == "asin"))
