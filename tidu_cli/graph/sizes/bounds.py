"""The least and the greatest value of a size, as far as they can be seen."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from math import gcd, inf
from typing import Any

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.sizes.polynomials import Monomial, Terms, added, multiplied, ordered, quotient, times

MOST_PARTS = 2
"""The most parts of a sum whose bounds are looked for one by one: each doubles the work."""


def bounds(size: Any) -> tuple[float, float]:
    """The least and the greatest value of a size: infinities where there is no bound."""
    return _bounds(size) if isinstance(size, OpenSize) else (size, size)


@lru_cache(maxsize=4096)
def _bounds(size: Any) -> tuple[float, float]:
    low, high = _of_terms(size.terms)
    if size.written != size.terms:
        below, above = _of_terms(size.written)
        low, high = max(low, below), min(high, above)
    parts = [(m, c) for m, c in size.terms if len(m) == 1 and m[0][1] == 1 and hasattr(m[0][0], "op")]
    for monomial, coefficient in parts if len(parts) <= MOST_PARTS and len(size.terms) > 1 else ():
        below, above = _between(size, monomial, coefficient)
        low, high = max(low, below), min(high, above)
    if low == -inf or high == inf:
        below, above = _of_factor(size)
        low, high = max(low, below), min(high, above)
    if (factor := gcd(*(c for _, c in size.terms))) > 1:  # bounds of what it is times are integers
        below, above = _bounds(type(size)(tuple((m, c // factor) for m, c in size.terms)))
        low, high = max(low, times(below, factor)), min(high, times(above, factor))
    return low, high


def _of_terms(terms: Terms) -> tuple[float, float]:
    """Bounds by those of each term, and by how far atoms are from their least values."""
    low = high = 0.0
    for monomial, coefficient in terms:
        a = b = float(1)
        for atom, power in monomial:
            for _ in range(power):
                products = [times(x, y) for x in (a, b) for y in atom.bounds]
                a, b = min(products), max(products)
        ends = sorted((times(a, coefficient), times(b, coefficient)))
        low, high = low + ends[0], high + ends[1]
    # Terms of one name may undo one another, as in N*N-N: counted from its least value all have one sign.
    with suppress(TypeRuleError):  # of too many terms to tell
        moved = _from_least(terms)
        constant = next((c for m, c in moved if not m), 0)
        low = max(low, constant) if all(c >= 0 for m, c in moved if m) else low
        high = min(high, constant) if all(c <= 0 for m, c in moved if m) else high
    return low, high


def _of_factor(size: Any) -> tuple[float, float]:
    """Bounds of a factor that all terms have, times those of what is left."""
    shared = set.intersection(*[{atom for atom, _ in monomial} for monomial, _ in size.terms])
    if len(size.terms) == 1 or not shared:
        return -inf, inf
    atom = min(shared, key=lambda factor: str(factor.text))
    rest = type(size)(ordered(dict(quotient(term, (((atom, 1),), 1)) for term in size.terms)))  # type: ignore[misc]
    products = [times(x, y) for x in atom.bounds for y in bounds(rest)]
    return min(products), max(products)


def _between(size: Any, monomial: Monomial, count: int) -> tuple[float, float]:
    """The bounds of a sum, by what one of its terms, a multiple of a part, is between: as `max(N-2,0)` is one of these two."""
    part: Any = monomial[0][0]
    rest = size - type(size)(((monomial, count),))
    if part.op == "//":
        if isinstance(part.b, OpenSize):
            return -inf, inf
        low, high = bounds(part.b * rest + count * part.a)
        lost = count * (part.b - 1)  # a // b is (a - r) / b, of a remainder r
        return -((max(lost, 0) - low) // part.b), (high - min(lost, 0)) // part.b
    if part.op == "%":
        low, high = bounds(rest)
        most = [part.b - 1, *([part.a] if isinstance(part.b, OpenSize) and bounds(part.a)[0] >= 0 else [])]
        others = [bounds(rest + count * end) for end in most]
        return max(min(low, below) for below, _ in others), min(max(high, above) for _, above in others)
    (low, high), (other_low, other_high) = (bounds(rest + count * end) for end in (part.a, part.b))
    if (part.op == "max") == (count > 0):
        return max(low, other_low), max(high, other_high)
    return min(low, other_low), min(high, other_high)


def _from_least(terms: Terms) -> Iterable[tuple[Monomial, int]]:
    """The terms as a polynomial of how far their atoms are above their least values."""
    total: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        product: Iterable[tuple[Monomial, int]] = (((), coefficient),)
        for atom, power in monomial:
            least = atom.bounds[0]
            if least == -inf:
                return [(monomial, 1), (monomial[:1] * 2, -1)]  # of either sign
            for _ in range(power):
                product = multiplied(product, ((((atom, 1),), 1), ((), int(least)))).items()
        total = added(total.items(), product)
    return total.items()
