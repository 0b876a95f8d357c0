"""Bessel functions: of any fixed order, cylindrical, modified and spherical.

The derivatives are the sums of two neighbours, which are as good at 0 as elsewhere (Abramowitz and Stegun 9.1.27, 9.6.26, 10.1.20).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from tidu_cli.lax.elementwise.special import bessel_i_slope, bessel_k_slope
from tidu_cli.lax.recipes.special_function import special_function
from tidu_cli.rules.contract import Attrs
from tidu_cli.rules.fields import Bounded
from tidu_cli.rules.terms import Term, op

bessel_j, bessel_y, bessel_ie, bessel_ke, sign, spherical_j = map(
    op, ("bessel_j", "bessel_y", "bessel_ie", "bessel_ke", "sign", "spherical_bessel_j")
)

_ORDER = "its derivatives are of neighbouring orders"


class BesselAttrs(Attrs):
    """`order`: the order, any number; 0 by default."""

    order: float = 0.0


class SphericalAttrs(Attrs):
    """`order`: the order, from 0."""

    order: Annotated[int, Bounded(ge=0, lt=2**31)] = 0


def _mean(of: Callable[..., Term], attrs: BesselAttrs, x: Term) -> Term:
    """Half the sum of a modified function's neighbours, which are one for the order 0."""
    if attrs.order == 0:
        return of(x, order=1.0)
    return (of(x, order=attrs.order - 1) + of(x, order=attrs.order + 1)) * 0.5


def _half_step(of: Callable[..., Term], attrs: BesselAttrs, x: Term) -> Term:
    """Half the difference of a function's neighbours, which for the order 0 are each other's negative."""
    if attrs.order == 0:
        return -of(x, order=1.0)
    return (of(x, order=attrs.order - 1) - of(x, order=attrs.order + 1)) * 0.5


def _at_integers(of: str) -> Callable[..., Any]:
    """SciPy's function of that name; of orders 0 and 1 its own ones, which are more accurate."""

    def compute(np: Any, special: Any, attrs: BesselAttrs, x: Any) -> Any:
        if attrs.order in (0, 1):
            return getattr(special, of.replace("v", str(int(attrs.order))))(x)
        values = getattr(special, of)(attrs.order, x)
        if of not in _FAR:
            return values
        # SciPy's are NaN at great numbers, where two terms are all there is; Abramowitz and Stegun 9.7.1, 9.7.2.
        square = 4 * attrs.order**2
        far = np.isnan(values) & (x > 1e7 * (1 + square))
        great = np.where(far, x, 1.0)
        scale, sign = _FAR[of]
        return np.where(far, np.sqrt(scale / great) * (1 + sign * (square - 1) / 8 / great), values)

    return compute


_FAR = {"ive": (0.5 / math.pi, -1), "kve": (0.5 * math.pi, 1)}
"""Of scaled functions: what they are times √x at infinity, squared, and the sign of the next term."""


def _spherical_slope(attrs: SphericalAttrs, x: Term, result: Term) -> Term:
    n = attrs.order
    if n == 0:
        return -spherical_j(x, order=1)
    return (spherical_j(x, order=n - 1) * float(n) - spherical_j(x, order=n + 1) * float(n + 1)) * (1 / (2 * n + 1))


_bessel = partial(special_function, attrs=BesselAttrs, tried=({"order": 1.0}, {"order": 2.5}))

PRIMITIVES = (
    _bessel(
        "bessel_j",
        "J_order(x)",
        f"Bessel function of the first kind; {_ORDER}",
        _at_integers("jv"),
        lambda attrs, x, y: _half_step(bessel_j, attrs, x),
        within=((0.5, 9.0),),
    ),
    _bessel(
        "bessel_y",
        "Y_order(x)",
        f"Bessel function of the second kind, for x > 0; {_ORDER}",
        _at_integers("yv"),
        lambda attrs, x, y: _half_step(bessel_y, attrs, x),
        within=((0.5, 9.0),),
    ),
    _bessel(
        "bessel_ie",
        "e^-|x| I_order(x)",
        f"modified Bessel function of the first kind, scaled; {_ORDER}",
        _at_integers("ive"),
        lambda attrs, x, y: bessel_i_slope(attrs.order, x, y, _mean(bessel_ie, attrs, x) - sign(x) * y),
        within=((0.5, 3.0),),
    ),
    _bessel(
        "bessel_ke",
        "e^x K_order(x)",
        f"modified Bessel function of the second kind, scaled, for x > 0; {_ORDER}",
        _at_integers("kve"),
        lambda attrs, x, y: bessel_k_slope(attrs.order, x, y, y - _mean(bessel_ke, attrs, x)),
        within=((0.5, 3.0),),
    ),
    special_function(
        "spherical_bessel_j",
        "j_order(x) = √(π / 2x) J_(order + 1/2)(x)",
        f"spherical Bessel function of the first kind, of order 0 sin x / x; {_ORDER}",
        lambda np, special, attrs, x: special.spherical_jn(attrs.order, x),
        _spherical_slope,
        attrs=SphericalAttrs,
        tried=({"order": 2},),
        within=((-3.0, 3.0),),
    ),
)
