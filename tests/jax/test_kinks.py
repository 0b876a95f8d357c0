"""The derivatives at kinks that `tidu eval --kinks` says JAX has are those of the JAX that is installed."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from tests.runtime.test_kinks import POINTS  # noqa: E402


@pytest.mark.jax
@pytest.mark.parametrize("op", POINTS)
def test_jax_has_the_recorded_derivatives(op):
    point, recorded, _ = POINTS[op]
    function = (lambda x: jax.lax.round(x, jax.lax.RoundingMethod.TO_NEAREST_EVEN)) if op == "round" else getattr(jax.lax, op)
    slopes = [float(jax.grad(function, k)(*point)) for k in range(len(point))]
    np.testing.assert_equal(slopes, recorded)
