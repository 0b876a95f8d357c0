"""Functions that JAX does not have, by recipes and of matrices: values as NumPy's evaluation has them, no callbacks in modules."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.graphs.templates import make_case
from tests.jax.lowering.compiled import compiled
from tests.tiers import campaign, few
from tidu_cli.checking.numeric.trials import example_cases, of_operand, with_diagonal
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.recipes.special_function import Recipe
from tidu_cli.lax.vocabulary import BUILTIN

pytestmark = [pytest.mark.jax, pytest.mark.usefixtures("jax")]

MATRICES = ("cofactors", "det", "logm", "logm_frechet", "polar", "solve_sylvester", "sqrtm")
OF_LAX = ("bessel_i0e", "bessel_i1e", "erf", "igamma", "igammac", "polygamma", "regularized_incomplete_beta", "zeta")
"""Functions with recipes that the engine takes from lax."""

PRECISE = ("digamma", "erf_inv", "erfc", "lgamma")
"""Those of which it takes lax's where they are not to be precise."""

TABLE = [*MATRICES, *(p.name for p in BUILTIN if isinstance(p.evaluation.definition, Recipe) and p.name not in OF_LAX)]
EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52, "c64": 2.0**-23, "c128": 2.0**-52}


SOME = 1
"""So many examples of each are tried in `make check`."""

POINTS = 5000 if campaign() else 300

EAGER = {"erfcx", "gamma", "polar"}
"""Whose example `make check` runs operation by operation: XLA compiles each of these by itself."""

WIDE = {"f32", "f64", "c128"}
"""Dtypes that examples are tried in: what is narrower is computed in these, and rounded."""


def by_jax(case: Any) -> Any:
    """The function of a case, as the engine runs it."""
    from tidu_cli.adapters.jax.lowering.functions import jax_function

    return jax_function(case, precise=True)


def compare(op: str, case: Any, operands: list[Any], ulps: float, jit: bool = True) -> None:
    """Raises AssertionError where JAX's results are not NumPy's, of numbers near 0 relative to a tenth."""
    import jax

    with np.errstate(all="ignore"):
        ours = BUILTIN[op].evaluation.kernel(np, case.attrs, case.operands, case.results)(*operands)

    function = by_jax(case)
    theirs = (compiled(function) if jit else function)(*map(jax.numpy.asarray, operands))
    ours = ours if isinstance(ours, tuple | list) else (ours,)
    for x, y in zip(ours, theirs, strict=True):
        assert (y.shape, y.dtype) == (np.shape(x), x.dtype)
        wide = complex if y.dtype.kind == "c" else float
        near = ulps * EPSILON[case.operands[0].dtype]
        np.testing.assert_allclose(np.asarray(y).astype(wide), np.asarray(x).astype(wide), rtol=near, atol=near / 10)


@pytest.mark.parametrize("op", sorted(TABLE))
def test_examples(op: str) -> None:
    rng = np.random.default_rng(5)
    cases = [(e, c) for e, c in example_cases(BUILTIN, BUILTIN[op]) if getattr(c.operands[0], "dtype", "") in WIDE]
    if not campaign():  # each takes XLA a second
        cases = [cases[k] for k in sorted(rng.permutation(len(cases))[:SOME])]
    for k, (example, case) in enumerate(cases):
        operands = []
        for j, t in enumerate(case.operands):
            assert isinstance(t, TensorType)
            low, high = of_operand(example.within, j)
            x = rng.uniform(low, high, t.shape) + (1j * rng.uniform(low, high, t.shape) if t.complex else 0)
            added = of_operand(example.diagonals, j)
            x = np.asarray(x).astype(numpy_dtype(np, t.dtype))
            operands.append(with_diagonal(x, added) if added else x)
        compare(op, case, operands, 4000, jit=k % 4 > 0 or not (campaign() or op in EAGER))


EVERYWHERE = np.array([0.0, -0.0, 1e-9, -1e-9, 0.3, -0.3, 1, -1, 1.7, -1.7, 5, -5, 30, -30, 400, -400, np.nan])
ONE = [op for op in TABLE if op not in MATRICES and BUILTIN[op].domain.arity == 1]


TYPED = [(op, t) for op, t in product(sorted(ONE), ("f32", "f64")) if t == "f64" or op not in PRECISE]


@pytest.mark.parametrize(("op", "dtype"), few(TYPED, 6))
def test_the_whole_line(op: str, dtype: str) -> None:
    x = EVERYWHERE.astype(numpy_dtype(np, dtype))
    if op == "hyp2f1":
        x = x[~(x > 1)]
    examples = {repr(e.attrs): e.attrs for e in BUILTIN[op].catalogue.examples}
    for attrs in few([*examples.values(), *([{"order": -0.5}, {"order": 7.0}] if op.startswith("bessel") else [])], 1):
        case = make_case(op, dict(attrs), [TensorType(dtype, x.shape)])
        compare(op, case, [x], 4000 if dtype == "f64" else 8)


@pytest.mark.parametrize("op", few(sorted(TABLE), 16))
def test_modules_call_nothing_but_lapack(op: str, jax: Any) -> None:
    _, case = next(pair for pair in example_cases(BUILTIN, BUILTIN[op]) if pair[1].operands[0].dtype == "f64")  # type: ignore[union-attr]
    operands = [jax.ShapeDtypeStruct(t.shape, np.float64) for t in case.operands]  # type: ignore[union-attr]
    text = jax.jit(by_jax(case)).lower(*operands).as_text()
    called = set(re.findall(r"custom_call @(\w+)", text))
    assert all(name.startswith("lapack_") for name in called), called


@pytest.mark.parametrize("op", few(("igamma_inv", "igammac_inv", "regularized_incomplete_beta_inv"), 1))
def test_inverses_at_many_points(op: str) -> None:
    """Steps that start far away see values that have vanished, and infinite slopes."""
    rng = np.random.default_rng(1)
    n = POINTS
    level = rng.uniform(0.001, 0.999, n)
    shapes = [rng.uniform(0.05, 60, n) for _ in range(2 if "beta" in op else 1)]
    operands = [*shapes, level]
    compare(op, make_case(op, {}, [TensorType("f64", (n,))] * len(operands)), operands, 4000)


@pytest.mark.parametrize(
    ("op", "attrs", "low", "high"),
    few([("erfcx", {}, -20.0, 700.0), ("dawsn", {}, -30.0, 300.0), ("expi", {}, -40.0, 300.0), ("expn", {"n": 3}, 1e-6, 300.0),
     ("fresnel_s", {}, -30.0, 30.0), ("cos_integral", {}, 1e-6, 300.0), ("spence", {}, 1e-6, 300.0),
     ("hyp0f1", {"b": 1.3}, -30.0, 300.0),
     ("hyp1f1", {"a": 0.7, "b": 1.9}, -50.0, 50.0), ("hyp2f1", {"a": 0.7, "b": 1.9, "c": 2.3}, -90.0, 0.95),
     ("gamma", {}, -100.0, 150.0), ("bessel_j", {"order": 2}, -40.0, 300.0), ("bessel_y", {"order": 1}, 1e-6, 300.0),
     ("bessel_ke", {"order": 1}, 1e-6, 300.0), ("spherical_bessel_j", {"order": 2}, 1e-6, 300.0)], 7),
)  # fmt: skip
def test_many_points(op: str, attrs: dict[str, Any], low: float, high: float) -> None:
    """Near zeros numbers are held to a part of the middle one, as their digits are those of the argument."""
    x = np.random.default_rng(3).uniform(low, high, POINTS)
    case = make_case(op, attrs, [TensorType("f64", x.shape)])
    (values,) = map(np.asarray, compiled(by_jax(case))(x))
    with np.errstate(all="ignore"):
        due = BUILTIN[op].evaluation.kernel(np, case.attrs, case.operands, case.results)(x)
    near = np.isfinite(due)
    np.testing.assert_allclose(values[near], due[near], rtol=1e-11, atol=1e-12 * np.median(abs(due[near])))
