"""An elementwise operation gives an element the same bits alone and among others, so that plans and batches change no result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.tiers import few
from tidu_cli.checking.numeric.trials import example_cases
from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.plans.groups import vector_kernel

SPECIAL = [0.0, -0.0, 1, -1, 2, -2, 0.5, 3, np.inf, -np.inf, np.nan, 1e308, 1e-308, 5e-324, 700, -745, 0.1, 1e-5, 30]
COUNT = 1200


def cases() -> Iterator[Case]:
    """Every example of operands of one shape, made one of scalars."""
    seen = set()
    for primitive in BUILTIN:
        for _, case in example_cases(BUILTIN, primitive):
            if not all(isinstance(t, TensorType) and t.shape == case.operands[0].shape for t in case.operands):
                continue
            try:
                scalars = BUILTIN.case(case.op, case.attrs, None, [t.with_shape(()) for t in case.operands])
            except TypeRuleError:
                continue
            if scalars not in seen and vector_kernel(np, BUILTIN, scalars) is not None:
                seen.add(scalars)
                yield scalars


def numbers(type_: TensorType, rng: np.random.Generator) -> Any:
    dtype = numpy_dtype(np, type_.dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, COUNT).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -100, 100, COUNT).astype(dtype)
    if dtype.kind == "c":
        return (reals(rng) + 1j * reals(rng)).astype(dtype)
    return reals(rng).astype(dtype)


def reals(rng: np.random.Generator) -> Any:
    wide = rng.normal(size=COUNT) * np.exp(3 * rng.normal(size=COUNT))
    wide[: COUNT // 4] = rng.choice(SPECIAL, COUNT // 4)  # such as exponents for which NumPy has shortcuts
    return rng.permutation(wide)


def bits(x: Any, result: TensorType) -> Any:
    x = np.ascontiguousarray(x, numpy_dtype(np, result.dtype))
    x = x.view(x.real.dtype) if x.dtype.kind == "c" else x
    if x.dtype.kind == "f":
        x = np.where(np.isnan(x), np.nan, x).astype(x.dtype)  # which NaN it is, is no number's business
    return x.view(np.uint8).reshape(len(x), -1) if x.dtype != bool else x


@pytest.mark.parametrize("case", few(cases(), 100), ids=lambda c: f"{c.op}-{c.attrs!r}-{c.operands[0]}")
def test_one_among_many(case: Case) -> None:
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        operands = [numbers(t, rng) for t in case.operands]
    alone = BUILTIN[case.op].evaluation.kernel(np, case.attrs, case.operands, case.results)
    many = vector_kernel(np, BUILTIN, case)
    with np.errstate(all="ignore"):
        whole = bits(many(*operands), case.results[0])
        one_by_one = [alone(*[x[k] for x in operands]) for k in range(COUNT)]
        in_threes = [many(*[x[k : k + 3] for x in operands]) for k in range(0, COUNT, 3)]
        apart = [many(*[np.repeat(x, 2)[::2] for x in operands])]
        in_place = [
            _into(many, operands, k) for k, t in enumerate(case.operands) if isinstance(many, np.ufunc) and t == case.results[0]
        ]
    assert (bits(one_by_one, case.results[0]) == whole).all()
    assert (bits(np.concatenate(in_threes), case.results[0]) == whole).all()
    assert (bits(np.concatenate(apart), case.results[0]) == whole).all()
    assert all((bits(array, case.results[0]) == whole).all() for array in in_place)


def _into(function: Any, operands: list[Any], k: int) -> Any:
    operands = [np.copy(x) for x in operands]
    return function(*operands, out=operands[k])


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_powers_of_one_exponent_are_those_of_many(dtype: str) -> None:
    """NumPy has shortcuts for exponents that are one number in memory."""
    power = BUILTIN["pow"].evaluation.kernel(np, None, *[(TensorType(dtype, (9,)),) * n for n in (2, 1)])
    rng = np.random.default_rng(0)
    for exponent in (2.0, -1.0, 0.5, 1.0, 3.0):
        x = np.exp(rng.normal(size=999)).astype(dtype.replace("f", "float"))
        y = np.array(exponent, x.dtype)
        assert (power(x, np.full(999, y)) == power(x, np.broadcast_to(y, 999))).all()
