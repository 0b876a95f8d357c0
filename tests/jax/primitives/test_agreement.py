"""Every primitive against JAX: values, JVP, VJP and forward over reverse, at its examples and at its edges.

What differs on purpose is in `tests.jax.differences`; any other difference fails, and so does a row of that table that explains
nothing. Zeros of different sign differ in the values of real elementwise primitives only. Complex numbers with an infinite or
NaN part are all alike: there is no agreement on which part is what.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

from tests import tiers
from tests.jax.differences import COMPARED_WITH, DIFFERENCES, Difference
from tests.jax.primitives.derivatives import KINDS, Problem, all_of_jax, of_jax, of_tidu, problem
from tests.jax.primitives.edges import edges, elementwise
from tests.tiers import few
from tidu_cli.checking.numeric.trials import example_cases, of_operand, with_diagonal
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import INTEGERS, ITEMSIZE, TensorType
from tidu_cli.lax.arrays.structural import dtype_name, numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import Example

pytestmark = [pytest.mark.jax, pytest.mark.usefixtures("jax")]

OURS = (
    "det", "cofactors", "logm", "logm_frechet", "sqrtm", "solve_sylvester", "polar",
    "record", "field", "difference", "retract", "add_cotangents", "bessel_j", "bessel_y", "bessel_ie", "bessel_ke",
    "spherical_bessel_j", "erfcx",
    "erfc_inv", "dawsn", "expi", "expn", "fresnel_s", "fresnel_c", "hyp0f1", "hyp1f1", "hyp2f1", "igamma_inv", "igammac_inv",
    "regularized_incomplete_beta_inv", "regularized_incomplete_beta_grad", "zeta_grad", "gamma", "spence",
    "sin_integral", "cos_integral", "owens_t", "strong_mul", "strong_div",
)  # fmt: skip
"""The primitives that JAX does not have, or has no derivatives of."""

# Loops and branches are compared as jaxprs (test_control_flow).
OPS = sorted(p.name for p in BUILTIN if p.name not in OURS and not p.domain.attrs.graphs)
NARROW = ("f16", "bf16")
ONCE = NARROW if tiers.campaign() else (*NARROW, "f32", "c64")
"""Dtypes of which values alone are compared: rules of derivatives name no dtype, and XLA compiles each by itself."""

TOLERANCE = {"f16": 2e-2, "bf16": 1e-1, "f32": 3e-5, "f64": 1e-10, "c64": 3e-5, "c128": 1e-10}
"""By dtype, relative to an element but at least to a tenth: JAX's special functions are not more accurate than that."""

AT_ONCE = 16
"""Problems that are one program of JAX's: many small programs take XLA longer than one, and a large one does, too."""


def drawn(example: Example, case: Case) -> list[Any]:
    """Operands of an example, from its intervals."""
    rng = np.random.default_rng(len(case.operands))
    types = [t for t in case.operands if t is not None]
    return [
        with_diagonal(_draw(rng, t, *of_operand(example.within, k)), of_operand(example.diagonals, k)) for k, t in enumerate(types)
    ]


def _draw(rng: Any, type_: TensorType, low: float, high: float) -> Any:
    dtype = numpy_dtype(np, type_.dtype)
    if type_.dtype == "bool":
        return rng.integers(0, 2, type_.shape).astype(bool)
    if type_.dtype in INTEGERS:
        least = max(int(low), 0) if type_.dtype.startswith("u") else int(low)
        return np.asarray(rng.integers(least, max(int(high), least + 1), type_.shape), dtype)
    x = rng.uniform(low, high, type_.shape)
    return np.asarray(x + 1j * rng.uniform(low, high, type_.shape) if type_.complex else x).astype(dtype)


def problems(op: str) -> Iterator[Problem]:
    """The examples in all dtypes that JAX has; then the edges."""
    for example, case in example_cases(BUILTIN, BUILTIN[op]):
        if not all(isinstance(t, TensorType) and t.dtype in ITEMSIZE for t in (*case.operands, *case.results)):
            continue  # times and records
        wide = not any(t is None or t.dtype in ONCE for t in (*case.operands, *case.results))
        yield problem(case, drawn(example, case), np.random.default_rng(1), derivatives=wide)
    for case, operands in edges(op):
        wide = not any(t.dtype in ONCE for t in case.results)
        yield problem(case, operands, np.random.default_rng(2), derivatives=wide)


def differs(value: Any, expected: Any, *, signs: bool) -> Any:
    """Where two arrays differ by more than rounding. `signs`: whether 0 and -0 do."""
    if value.dtype.kind in "iub":
        return value != expected
    tolerance, wide = TOLERANCE[dtype_name(value.dtype)], complex if value.dtype.kind == "c" else float
    x, y = value.astype(wide), expected.astype(wide)
    with np.errstate(all="ignore"):
        close = np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= tolerance * np.maximum(np.abs(y), 0.1))
    if wide is complex:
        return ~(close | (~np.isfinite(x) & ~np.isfinite(y)))
    unequal = ~(close | (x == y) | (np.isnan(x) & np.isnan(y)))
    return unequal | ((x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))) if signs else unequal


def masks(p: Problem, kind: str, index: int, rows: list[Difference], shape: tuple[int, ...]) -> Iterator[tuple[Difference, Any]]:
    """Of each row that is about this kind, the elements that may differ."""
    for row in rows:
        if kind in row.kinds and not row.refusal:
            where = np.asarray(row.where(p))
            yield row, np.broadcast_to(where if where.shape in ((), shape) else where.any(), shape)


def kinds_of_jax(p: Problem, rows: list[Difference], used: set[Difference]) -> list[str]:
    """What JAX gives at a problem. Raises AssertionError unless it refuses what rows say that it refuses."""
    asked = KINDS if p.tangents else ("value",)
    refusals = [row for row in rows if row.refusal and set(row.kinds) & set(asked) and row.where(p)]
    used.update(refusals)
    for row in refusals:
        with pytest.raises(Exception) as caught:  # noqa: PT011
            of_jax(p, [kind for kind in row.kinds if kind in asked])
        assert type(caught.value).__name__ == row.refusal
    refused = {kind for row in refusals for kind in row.kinds}
    return [kind for kind in KINDS if kind not in refused]


@pytest.mark.parametrize("op", few(OPS, 4))
def test_agrees_with_jax(op: str, jax: Any) -> None:
    rows = [row for row in DIFFERENCES if op in row.ops]
    used: set[Difference] = set()
    wrong = []
    rest = iter(few(problems(op), AT_ONCE // 2))
    while some := list(islice(rest, AT_ONCE)):
        for p, theirs in zip(some, all_of_jax([(p, kinds_of_jax(p, rows, used)) for p in some]), strict=True):
            wrong += disagreements(p, theirs, rows, used)
    assert not wrong, "\n".join(wrong)
    if jax.__version__ == COMPARED_WITH and tiers.campaign():  # which takes all points
        assert [(row.ops, row.at) for row in rows if row not in used] == [], "rows of the table explain nothing"


def disagreements(
    p: Problem, expected_by_kind: dict[str, list[Any]], rows: list[Difference], used: set[Difference]
) -> Iterator[str]:
    """What is not as JAX has it and in no row."""
    ours, op = of_tidu(p), p.case.op
    for kind, theirs in expected_by_kind.items():
        for index, (value, expected) in enumerate(zip(ours[kind], theirs, strict=True)):
            where = f"{op}({', '.join(map(str, p.case.operands))}) {dict(p.case.attrs)} {kind} {index}"
            assert (value.dtype, value.shape) == (expected.dtype, expected.shape), where
            differing = differs(value, expected, signs=kind == "value" and elementwise(op))
            for row, mask in masks(p, kind, index, rows, value.shape):
                used |= {row} if (differing & mask).any() else set()
                differing = differing & ~mask
            if differing.any():
                yield f"{where}:\n{_shown(p, value, expected, differing)}"


def _shown(p: Problem, value: Any, expected: Any, differing: Any) -> str:
    lines = []
    for at in list(zip(*np.nonzero(differing), strict=True))[:8] if differing.ndim else [()]:
        operands = [x[at] for x in p.operands if x.shape == value.shape]
        lines.append(f"  at {list(map(int, at))} {operands}: tidu {value[at]}, JAX {expected[at]}")
    return "\n".join(lines)


def test_the_comparison_sees_differences() -> None:
    x = np.array([1.0, 0.0, np.inf, np.nan, 2.0])
    assert differs(x, x + np.array([1e-9, 0, 0, 0, 0]), signs=True).tolist() == [True, False, False, False, False]
    assert differs(x, np.array([1.0, -0.0, -np.inf, 0.0, np.nan]), signs=True).tolist() == [False, True, True, True, True]
    assert not differs(np.array([0.0]), np.array([-0.0]), signs=False).any()
    assert differs(np.array([1 + 1j]), np.array([1 - 1j]), signs=False).all()
    assert differs(np.array([3]), np.array([4]), signs=False).all()
