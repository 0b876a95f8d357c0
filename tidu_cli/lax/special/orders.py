"""Derivatives by orders: of incomplete gamma and beta functions by their parameters, and of zeta by its exponent.

They are to any order functions of this family again; so igamma, igammac, regularized_incomplete_beta and zeta have derivatives in
all of their operands, and so have the inverses of the first three.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

from tidu_cli.lax.elementwise.special import beta_density, gamma_density
from tidu_cli.lax.recipes import order_integrals
from tidu_cli.lax.recipes.order_integrals import bell
from tidu_cli.lax.recipes.special_function import of_floats
from tidu_cli.rules.contract import JVP, Attrs
from tidu_cli.rules.families import by_partials, weighted
from tidu_cli.rules.fields import Bounded
from tidu_cli.rules.terms import Term, op

and_, digamma, gt, log, log1p, lt, polygamma, select_n, zeta = map(
    op, ("and", "digamma", "gt", "log", "log1p", "lt", "polygamma", "select_n", "zeta")
)
beta_grad, igamma_grad_a, zeta_grad = map(op, ("regularized_incomplete_beta_grad", "igamma_grad_a", "zeta_grad"))

_HIGHEST = 64


class OrderAttrs(Attrs):
    """`order`: which derivative, the first by default."""

    order: Annotated[int, Bounded(ge=1, lt=_HIGHEST)] = 1


class OrdersAttrs(Attrs):
    """`order_x`, `order_y`: how many times by x, and by y; once by x by default. One of them is not 0."""

    order_x: Annotated[int, Bounded(ge=0, lt=_HIGHEST)] = 1
    order_y: Annotated[int, Bounded(ge=0, lt=_HIGHEST)] = 0


def _inside(x: Term, high: float = math.inf) -> Term:
    """x between 0 and `high`, else a half, so that no logarithm is infinite where densities are 0."""
    return select_n(and_(gt(x, 0.0), lt(x, high)), 0.5, x)


def _gamma_grad_jvp(node: JVP) -> Sequence[Term | None]:
    n = node.attrs.order

    def by_x(a: Term, x: Term, result: Term) -> Term:
        def exponent(i: int, j: int) -> Term:
            return log(_inside(x)) - digamma(a) if i == 1 else -polygamma(i - 1, a)

        derivative: Term = gamma_density(a, x, result) * bell(n, 0, exponent)
        return derivative

    return by_partials(weighted(lambda a, x, result: igamma_grad_a(a, x, order=n + 1)), weighted(by_x))(node)


def _beta_grad_jvp(node: JVP) -> Sequence[Term | None]:
    m, n = node.attrs.order_x, node.attrs.order_y

    def by_z(a: Term, b: Term, x: Term, result: Term) -> Term:
        within = _inside(x, 1.0)

        def psi(k: int, x: Term) -> Term:
            return digamma(x) if k == 0 else polygamma(k, x)

        def exponent(i: int, j: int) -> Term:
            k = i + j - 1
            slope = psi(k, a + b)
            slope = slope if j else slope - psi(k, a)
            slope = slope if i else slope - psi(k, b)
            return slope + log(within) if (i, j) == (1, 0) else slope + log1p(-within) if (i, j) == (0, 1) else slope

        derivative: Term = beta_density(a, b, x, result) * bell(m, n, exponent)
        return derivative

    def by(more: int, also: int) -> Callable[..., Term]:
        return lambda a, b, x, result: beta_grad(a, b, x, order_x=m + more, order_y=n + also)

    return by_partials(weighted(by(1, 0)), weighted(by(0, 1)), weighted(by_z))(node)


def _inverse_jvp(density: Callable[..., Term], grads: Sequence[Callable[..., Term]], sign: float) -> Callable[[JVP], Any]:
    """The rule of an inverse in the last operand: dy = (± dp - Σ ∂f/∂a da) / density, where f(a, y) = ± p."""

    def by_order(grad: Callable[..., Term]) -> Callable[..., Term]:
        return lambda *seen: -grad(*seen[:-2], seen[-1]) / density(*seen[:-2], seen[-1], seen[-1])

    def by_level(*seen: Term) -> Term:
        return sign / density(*seen[:-2], seen[-1], seen[-1])

    return by_partials(*[weighted(by_order(grad)) for grad in grads], weighted(by_level))


def _zeta_grad_jvp(node: JVP) -> Sequence[Term | None]:
    n = node.attrs.order

    def by_y(s: Term, q: Term, result: Term) -> Term:
        # ∂ⁿ/∂sⁿ of -s ζ(s + 1, q)
        lower = zeta(s + 1, q) if n == 1 else zeta_grad(s + 1, q, order=n - 1)
        return -(s * zeta_grad(s + 1, q, order=n) + lower * float(n))

    return by_partials(weighted(lambda s, q, result: zeta_grad(s, q, order=n + 1)), weighted(by_y))(node)


PRIMITIVES = (
    of_floats(
        "igamma_grad_a",
        2,
        _gamma_grad_jvp,
        lambda np, special, attrs, a, x: order_integrals.gamma_by_order(np, special, attrs.order, a, x),
        attrs=OrderAttrs,
        within=((0.5, 3.0),),
        formula="∂ⁿ/∂xⁿ P(x, y), n = order",
        summary="derivative of igamma by its order",
    ),
    of_floats(
        "regularized_incomplete_beta_grad",
        3,
        _beta_grad_jvp,
        lambda np, special, attrs, a, b, x: order_integrals.beta_by_orders(np, special, attrs.order_x, attrs.order_y, a, b, x),
        attrs=OrdersAttrs,
        within=((0.5, 3.0), (0.5, 3.0), (0.2, 0.8)),
        formula="∂ᵐ⁺ⁿ/∂xᵐ∂yⁿ of the regularized incomplete beta function at z, m = order_x, n = order_y",
        summary="derivative of regularized_incomplete_beta by its parameters",
    ),
    of_floats(
        "zeta_grad",
        2,
        _zeta_grad_jvp,
        lambda np, special, attrs, s, q: order_integrals.zeta_by_exponent(np, special, attrs.order, s, q),
        attrs=OrderAttrs,
        within=((2.0, 4.0), (0.5, 3.0)),
        formula="∂ⁿ/∂xⁿ Σ (y + k)^-x, n = order",
        summary="derivative of zeta by its exponent, for x > 1 and y > 0",
    ),
    of_floats(
        "igamma_inv",
        2,
        _inverse_jvp(gamma_density, [igamma_grad_a], 1.0),
        lambda np, special, attrs, a, p: special.gammaincinv(a, p),
        within=((0.5, 3.0), (0.1, 0.9)),
        formula="the z with P(x, z) = y",
        summary="inverse of igamma in its second operand",
    ),
    of_floats(
        "igammac_inv",
        2,
        _inverse_jvp(gamma_density, [igamma_grad_a], -1.0),
        lambda np, special, attrs, a, p: special.gammainccinv(a, p),
        within=((0.5, 3.0), (0.1, 0.9)),
        formula="the z with 1 - P(x, z) = y",
        summary="inverse of igammac in its second operand",
    ),
    of_floats(
        "regularized_incomplete_beta_inv",
        3,
        _inverse_jvp(beta_density, [beta_grad, partial(beta_grad, order_x=0, order_y=1)], 1.0),
        lambda np, special, attrs, a, b, p: special.betaincinv(a, b, p),
        within=((0.5, 3.0), (0.5, 3.0), (0.1, 0.9)),
        formula="the u with regularized_incomplete_beta(x, y, u) = z",
        summary="inverse of regularized_incomplete_beta in its last operand",
    ),
)
