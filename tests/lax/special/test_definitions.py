"""Special functions by their recipes, as backends without kernels compute them: the kernels' values on the whole line."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.graphs.templates import make_case
from tests.tiers import campaign, few
from tidu_cli.errors import MissingRuleError
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.recipes.special_function import Recipe
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.recording.trace import expanded
from tidu_cli.runtime.evaluate import evaluate

EPSILON = {"f32": 2.0**-23, "f64": 2.0**-52}
POINTS = 5000 if campaign() else 300
OPS = [p.name for p in BUILTIN if isinstance(p.evaluation.definition, Recipe)]
ONE = [op for op in OPS if BUILTIN[op].domain.arity == 1]
EVERYWHERE = np.array([0.0, -0.0, 1e-9, -1e-9, 0.3, -0.3, 1, -1, 1.7, -1.7, 5, -5, 30, -30, 400, -400, np.nan])


@cache
def _recorded(case: Any) -> Any:
    return expanded(BUILTIN, case)


def both(op: str, attrs: dict[str, Any], *operands: Any, dtype: str = "f64") -> tuple[Any, Any]:
    """By the kernel, and by the recipe."""
    case = make_case(op, attrs, [TensorType(dtype, x.shape) for x in operands])
    given = [np.asarray(x, numpy_dtype(np, dtype)) for x in operands]
    with np.errstate(all="ignore"):
        due = BUILTIN[op].evaluation.kernel(np, case.attrs, case.operands, case.results)(*given)
        graph = _recorded(case)
        (by_recipe,) = evaluate(graph, {i.key: x for i, x in zip(graph.inputs, given, strict=True)}).values()
    assert (by_recipe.dtype, by_recipe.shape) == (due.dtype, due.shape)
    return due, by_recipe


@pytest.mark.parametrize("op", ONE)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_whole_line(op: str, dtype: str) -> None:
    x = EVERYWHERE[~(EVERYWHERE > 1)] if op == "hyp2f1" else EVERYWHERE
    examples = {repr(e.attrs): e.attrs for e in BUILTIN[op].catalogue.examples}
    for attrs in [*examples.values(), *([{"order": -0.5}, {"order": 7.0}] if op.startswith("bessel_") else [])]:
        if op in ("bessel_i0e", "bessel_i1e") and attrs:
            continue
        due, by_recipe = both(op, dict(attrs), x, dtype=dtype)
        near = (4000 if dtype == "f64" else 8) * EPSILON[dtype]
        np.testing.assert_allclose(by_recipe, due, rtol=near, atol=near / 10)


RANGES: list[tuple[str, dict[str, Any], float, float]] = [
    ("erf", {}, -7.0, 7.0), ("erfc", {}, -5.0, 25.0), ("erf_inv", {}, -1.0, 1.0), ("erfc_inv", {}, 0.0, 2.0),
    ("erfcx", {}, -20.0, 700.0), ("dawsn", {}, -30.0, 300.0), ("expi", {}, -40.0, 300.0), ("expn", {"n": 3}, 1e-6, 300.0),
    ("fresnel_s", {}, -30.0, 30.0), ("fresnel_c", {}, -30.0, 30.0), ("sin_integral", {}, -300.0, 300.0),
    ("cos_integral", {}, 1e-6, 300.0), ("spence", {}, 1e-6, 300.0), ("hyp0f1", {"b": 1.3}, -30.0, 300.0),
    ("hyp1f1", {"a": 0.7, "b": 1.9}, -50.0, 50.0), ("hyp2f1", {"a": 0.7, "b": 1.9, "c": 2.3}, -90.0, 0.95),
    ("gamma", {}, -100.0, 150.0), ("lgamma", {}, -100.0, 300.0), ("digamma", {}, -100.0, 300.0),
    ("bessel_j", {"order": 2}, -40.0, 300.0), ("bessel_y", {"order": 1}, 1e-6, 300.0), ("bessel_ie", {"order": 3.5}, 1e-6, 300.0),
    ("bessel_ke", {"order": 1}, 1e-6, 300.0), ("bessel_i0e", {}, -300.0, 300.0), ("bessel_i1e", {}, -300.0, 300.0),
    ("spherical_bessel_j", {"order": 2}, 1e-6, 300.0),
]  # fmt: skip


def test_ranges_are_of_all() -> None:
    assert {op for op, *_ in RANGES} == set(ONE)


@pytest.mark.parametrize(("op", "attrs", "low", "high"), RANGES)
def test_many_points(op: str, attrs: dict[str, Any], low: float, high: float) -> None:
    """Near zeros numbers are held to a part of the middle one, as their digits are those of the argument."""
    due, by_recipe = both(op, attrs, np.random.default_rng(3).uniform(low, high, POINTS))
    near = np.isfinite(due)
    np.testing.assert_allclose(by_recipe[near], due[near], rtol=1e-11, atol=1e-12 * np.median(abs(due[near])))


def _levels(rng: Any) -> Any:
    return rng.uniform(0.001, 0.999, POINTS)


def _shapes(rng: Any) -> Any:
    return np.exp(rng.uniform(-3, 4.1, POINTS))


SEVERAL: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "igamma": (_shapes, _shapes), "igammac": (_shapes, _shapes), "igamma_grad_a": (_shapes, _shapes),
    "igamma_inv": (_shapes, _levels), "igammac_inv": (_shapes, _levels),
    "regularized_incomplete_beta": (_shapes, _shapes, _levels), "regularized_incomplete_beta_grad": (_shapes, _shapes, _levels),
    "regularized_incomplete_beta_inv": (_shapes, _shapes, _levels),
    "polygamma": (lambda rng: rng.integers(0, 6, POINTS), _shapes),
    "zeta": (lambda rng: 1 + _shapes(rng), _shapes), "zeta_grad": (lambda rng: 1 + _shapes(rng), _shapes),
    "owens_t": (lambda rng: rng.uniform(-6, 6, POINTS), lambda rng: rng.uniform(-6, 6, POINTS)),
}  # fmt: skip


def test_those_of_several_operands_are_all() -> None:
    assert set(SEVERAL) == {*OPS} - {*ONE}


@pytest.mark.parametrize("op", few(SEVERAL, 12))
def test_several_operands(op: str) -> None:
    rng = np.random.default_rng(1)
    due, by_recipe = both(op, {}, *[np.asarray(draw(rng), float) for draw in SEVERAL[op]])
    np.testing.assert_allclose(by_recipe, due, rtol=4000 * EPSILON["f64"], atol=400 * EPSILON["f64"])


@pytest.mark.parametrize(
    ("op", "attrs", "most"),
    [("bessel_j", {"order": 128.5}, 128), ("hyp1f1", {"a": -17.0}, 16), ("hyp2f1", {"c": 9.0}, 8), ("hyp0f1", {"b": 200.0}, 128)],
)
def test_parameters_that_recipes_are_not_for_are_refused(op: str, attrs: dict[str, Any], most: int) -> None:
    case = make_case(op, attrs, [TensorType("f64", (3,))])
    with pytest.raises(MissingRuleError, match=f"its recipe is for parameters up to {most}, not "):
        expanded(BUILTIN, case)


@pytest.mark.parametrize(
    ("op", "attrs", "low", "high"),
    [
        ("bessel_j", {"order": 127.5}, 50.0, 500.0),
        ("bessel_y", {"order": 60}, 40.0, 500.0),
        ("bessel_ie", {"order": 100}, 1.0, 500.0),
        ("bessel_ke", {"order": 127.5}, 50.0, 500.0),
        ("hyp0f1", {"b": -100.5}, -30.0, 50.0),
        ("hyp1f1", {"a": 15.5, "b": -6.25}, -30.0, 50.0),
        ("hyp2f1", {"a": 7.75, "b": -1.25, "c": -6.25}, -20.0, 0.9),
    ],
)
def test_large_parameters(op: str, attrs: dict[str, Any], low: float, high: float) -> None:
    due, actual = both(op, attrs, np.random.default_rng(3).uniform(low, high, POINTS))
    np.testing.assert_allclose(actual, due, rtol=2e-10, atol=1e-12 * np.median(abs(due)))
