"""Bessel functions of any fixed order: powers, exponentials and waves times functions that are smooth, which are interpolated."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tidu_cli.adapters.jax.lowering.special.tables import Attrs, Function, in_double, table

_FAR, _HIGH = 2.0**26, 2.0**60


def _positive(function: Callable[[float, Any], Any], parity: bool, limits: tuple[float, float]) -> Function:
    """The function of attrs and arrays, by one of orders and numbers above 0, and its limits at 0, if not by a power, and at ∞.

    `parity`: whether those of integral orders are even or odd, and else NaN below 0; otherwise all are NaN there.
    """
    at_zero, at_infinity = limits

    def computed(attrs: Attrs, x: Any) -> Any:
        from jax import numpy as jnp

        order = float(attrs["order"])
        integral = order == int(order)
        size = jnp.abs(x)
        inside = (size > 0) & (size < jnp.inf)
        found = function(order, jnp.where(inside, size, 1.0))
        mirrored = -1 if at_zero < 0 and order < 0 and order % 2 == 1 else 1
        start = mirrored * at_zero if not parity or (order < 0 and not integral) else float(order == 0)
        found = jnp.where(inside, found, jnp.where(size == 0, start, at_infinity))
        below = (found if order % 2 == 0 else -found) if parity and integral else jnp.nan
        return jnp.where(jnp.isnan(x), x, jnp.where(x < 0, below, found))

    return in_double(computed)


def _mirrored(function: Callable[[float, Any], Any], sign: bool) -> Callable[[float, Any], Any]:
    """A function for all orders: those of negative integral ones are of positive ones, with a sign if they are odd."""

    def of_any(order: float, x: Any) -> Any:
        if order >= 0 or order != int(order):
            return function(order, x)
        return function(-order, x) * (-1 if sign and order % 2 else 1)

    return of_any


def _bound(order: float) -> float:
    """Where waves and exponentials take over from powers."""
    return max(16.0, 1.5 * abs(order))


def _least(order: float) -> float:
    """Where x^order is still not near underflow, for what is divided by it; but no less than what is nothing beside 1."""
    return max(2.0**-54, 2 * math.exp((math.lgamma(order + 1) - 640) / order) if order > 1 else 0.0)


@cache
def _entire(of: str, order: float) -> Function:
    """J or e^-x I by its power at 0, (x/2)^order / Γ(order + 1)."""
    from scipy import special  # type: ignore[import-untyped]  # slow to import

    def scaled(x: Any) -> Any:
        return getattr(special, of)(order, x) * special.gamma(order + 1) * (2 / x) ** order

    return table(scaled, _least(order), _bound(order), 6.0)


@cache
def _singular(of: str, order: float, high: float) -> Function:
    """Y or e^x K times x^order."""
    from scipy import special

    return table(lambda x: getattr(special, of)(order, x) * x**order, _least(order), high, 6.0)


@cache
def _amplitude(of: str, order: float, low: float, part: str = "real") -> Function:
    """√x e^(-ix) H⁽¹⁾, √x e^-x I or √x e^x K: the real or the imaginary part."""
    from scipy import special

    def scaled(x: Any) -> Any:
        def near(x: Any) -> Any:
            return getattr(np.sqrt(x) * getattr(special, of)(order, x), part)

        # SciPy's are NaN at great numbers; there they are linear in 1/x.
        limit = 2 * near(2 * _FAR) - near(_FAR)
        return np.where(x < _FAR, near(np.minimum(x, _FAR)), limit + (near(_FAR) - limit) * _FAR / x)

    return table(scaled, low, _HIGH, 3.0)


def _wave(order: float, x: Any) -> Any:
    """H⁽¹⁾ = J + iY of large arguments, as (J, Y)."""
    from jax import numpy as jnp

    x = jnp.maximum(x, _bound(order))
    real, imaginary = (_amplitude("hankel1e", order, _bound(order), part)(x) for part in ("real", "imag"))
    c, s, root = jnp.cos(x), jnp.sin(x), jnp.sqrt(x)
    return (real * c - imaginary * s) / root, (real * s + imaginary * c) / root


def _power(order: float, x: Any) -> Any:
    """(x/2)^order / Γ(order + 1)."""
    return (x / 2) ** order * (1 / math.gamma(order + 1))


def j(order: float, x: Any) -> Any:
    """J_order(x) for x > 0, of an order that is no negative integer."""
    from jax import numpy as jnp

    near = jnp.minimum(x, _bound(order))
    return jnp.where(x < _bound(order), _power(order, near) * _entire("jv", order)(near), _wave(order, x)[0])


def _y(order: float, x: Any) -> Any:
    from jax import numpy as jnp

    if order < 0:  # Abramowitz and Stegun 9.1.2
        first = j(-order, x) * math.sin(-order * math.pi)
        return first if order % 1 == 0.5 else first + _y(-order, x) * math.cos(order * math.pi)
    near = jnp.minimum(x, _bound(order))
    found = _singular("yv", order, _bound(order))(near) * near**-order
    if order == 0:  # Abramowitz and Stegun 9.1.13
        found = jnp.where(near < 2.0**-50, (jnp.log(near) + (np.euler_gamma - math.log(2))) * (2 / math.pi), found)
    return jnp.where(x < _bound(order), found, _wave(order, x)[1])


def scaled_i(order: float, x: Any) -> Any:
    """e^-x I_order(x) for x > 0, of an order that is no negative integer."""
    from jax import numpy as jnp

    near, far = jnp.minimum(x, _bound(order)), jnp.maximum(x, _bound(order))
    large = _amplitude("ive", order, _bound(order))(far) / jnp.sqrt(far)
    return jnp.where(x < _bound(order), _power(order, near) * _entire("ive", order)(near), large)


def _ke(order: float, x: Any) -> Any:
    from jax import numpy as jnp

    near, far = jnp.minimum(x, 1.0), jnp.maximum(x, 1.0)
    found = _singular("kve", order, 1.0)(near) * near**-order
    if order == 0:  # Abramowitz and Stegun 9.6.13
        found = jnp.where(near < 2.0**-50, (math.log(2) - np.euler_gamma) - jnp.log(near), found)
    return jnp.where(x < 1, found, _amplitude("kve", order, 1.0)(far) / jnp.sqrt(far))


def _spherical(order: float, x: Any) -> Any:
    from jax import numpy as jnp

    return jnp.sqrt(math.pi / 2) * (j(order + 0.5, x) / jnp.sqrt(x))


FUNCTIONS = {
    "bessel_j": _positive(_mirrored(j, sign=True), True, (math.inf, math.nan)),
    "bessel_y": _positive(_mirrored(_y, sign=True), False, (-math.inf, math.nan)),
    "bessel_ie": _positive(_mirrored(scaled_i, sign=False), True, (math.nan, 0.0)),
    "bessel_ke": _positive(lambda order, x: _ke(abs(order), x), False, (math.inf, 0.0)),
    "spherical_bessel_j": _positive(_spherical, True, (1.0, 0.0)),
}
"""By op, of attrs and arrays."""
