"""Special functions in XLA: some have more digits than in lax, to 4 units in the last place of mpmath's; others beside SciPy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import tidu_cli as tidu
from tests.graphs.sketch import function, op
from tests.runtime.engines.local import ULPS
from tests.tiers import campaign, few
from tidu_cli.checking.numeric.trials import draw, example_cases, of_operand, one_node_document
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.choosing import engine_named
from tidu_cli.runtime.plans.program import plain_program

pytestmark = [pytest.mark.jax, pytest.mark.usefixtures("jax")]

FUNCTIONS: dict[str, tuple[Callable[..., Any], Sequence[tuple[float, float]]]] = {
    "erfc": (mpmath.erfc, [(-6, 0.25), (0.25, 1), (1, 3), (3, 26)]),
    "erf_inv": (mpmath.erfinv, [(-0.5, 0.5), (0.5, 0.9), (-1, -0.9)]),
    "lgamma": (lambda x: mpmath.log(abs(mpmath.gamma(x))), [(-1, 0.5), (0.5, 1.5), (1.5, 2.5), (2.5, 15), (15, 170)]),
    "digamma": (mpmath.digamma, [(-1, -0.2), (-0.2, 1), (1, 1.5), (1.5, 2.5), (2.5, 10), (10, 1e5)]),
}
"""Where each is compared. Further down, near the zeros of `lgamma` and `digamma`, no library has digits of their values."""

SPECIAL = [
    *("erf", "gamma", "polygamma", "zeta", "igamma", "igammac", "regularized_incomplete_beta", "bessel_i0e", "bessel_i1e"),
    *("igamma_grad_a", "regularized_incomplete_beta_grad", "zeta_grad", "igamma_inv", "igammac_inv"),
    *("regularized_incomplete_beta_inv", "bessel_j", "bessel_y", "bessel_ie", "bessel_ke", "spherical_bessel_j"),
    *("erfcx", "erfc_inv", "dawsn", "expi", "expn", "spence", "owens_t", "fresnel_s", "fresnel_c", "sin_integral", "cos_integral"),
    *("hyp0f1", "hyp1f1", "hyp2f1"),
]

EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 28.0, 30.0, 1e300, -1e300, 1e-300, np.inf, -np.inf, np.nan]


POINTS = 1500 if campaign() else 200
"""In each interval: mpmath takes most of the time."""


def by_xla(name: str, x: Any) -> Any:
    document = function("f", {"x": f"f64[{len(x)}]"}, op(name))
    return tidu.evaluate(document, {"x": x}, engine="xla")["y"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name: str) -> None:
    exact, intervals = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(low, high, POINTS) for low, high in intervals])
    with mpmath.workdps(40):
        due = np.array([float(exact(mpmath.mpf(float(p)))) for p in x])
    off = np.abs(by_xla(name, x) - due) / np.spacing(np.abs(due))
    assert off.max() <= ULPS, f"{off.max()} units at {x[off.argmax()]}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_edges(name: str) -> None:
    x = np.array(EDGES)
    document = function("f", {"x": f"f64[{len(x)}]"}, op(name))
    due = tidu.evaluate(document, {"x": x}, engine="numpy")["y"]
    values = by_xla(name, x)
    np.testing.assert_array_max_ulp(values[np.isfinite(due)], due[np.isfinite(due)], 2 * ULPS)  # either may be off
    np.testing.assert_array_equal(np.where(np.isfinite(due), 0, values), np.where(np.isfinite(due), 0, due))
    assert np.signbit(values[due == 0]).tolist() == np.signbit(due[due == 0]).tolist()


TWELVE = ("igamma", "beta")
"""What is in the names of functions that have 12 digits, of series that converge; others have 13."""


@pytest.mark.parametrize("name", few([name for name in SPECIAL if name not in FUNCTIONS], 4))
def test_digits(name: str) -> None:
    """Of values near zeros of a function, of the size of others around them."""
    example, case = next((e, c) for e, c in example_cases(BUILTIN, BUILTIN[name]) if c.results[0].dtype == "f64")
    operands, results = ([t.with_shape((1000,)) for t in types] for types in (case.operands, case.results))
    head = one_node_document(replace(case, operands=tuple(operands), results=tuple(results))).head
    rng = np.random.default_rng(0)
    at = {i.key: draw(rng, i.type, of_operand(example.within, k)) for k, i in enumerate(head.inputs)}
    (values,), (due,) = (engine_named("xla").program(head, BUILTIN, None, None).run(at), plain_program(head).run(at))
    digits = 12 if any(part in name for part in TWELVE) else 13
    assert np.abs(values - due).max() <= 10.0**-digits * np.abs(due).max()


def test_in_loops() -> None:
    """The graphs of loops are run with the same functions."""
    document = tidu.trace(lambda x: tidu.scan(lambda c, p: (c, scipy.special.erfinv(p)), 0.0, x)[1], "f64[500]")
    x = np.random.default_rng(0).uniform(0.5, 0.6, 500)  # where lax's is off by some 15
    (values,) = tidu.evaluate(document, {"x": x}, engine="xla").values()
    np.testing.assert_array_max_ulp(values, by_xla("erf_inv", x), 2)
