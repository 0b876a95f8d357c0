"""Derivatives of orders 0 to 4 at 0, at poles, at ends of domains and where branches join, against mpmath with 70 digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import special

from tests.build.scipy import special_functions, special_points
from tests.build.scipy.special_points import derivatives, faults
from tests.tiers import few


def test_orders_0_to_4() -> None:
    """A table of functions: each order at each point."""
    table = special_points.rows() | special_functions.rows()
    wrong = {name: points for name in few(table, 6) if (points := faults(table[name]))}
    assert not wrong, "\n".join(f"{name}: {fault}" for name, points in wrong.items() for fault in points)


@pytest.mark.parametrize("order", [0, 1, 2.5])
def test_scaled_bessel_functions_of_great_numbers(order: float) -> None:
    """Values are right; where SciPy's are NaN the first terms are all that there is."""
    x = np.array([1e8, 2e9, 1e30, 1e300])
    for name, scale in (("ive", 0.5 / mpmath.pi), ("kve", 0.5 * mpmath.pi)):
        sign = -1 if name == "ive" else 1
        exact = [float(mpmath.sqrt(scale / t) * (1 + sign * (4 * order**2 - 1) / (8 * mpmath.mpf(t)))) for t in x]
        np.testing.assert_allclose(derivatives(lambda x, name=name: getattr(special, name)(order, x), x)[0], exact, rtol=1e-14)
