"""Polynomials with integer coefficients, in normal form, and their bounds.

They are what sizes are: polynomials over names, and over what is not a polynomial of names. Bounds are the least and the greatest
value of a size, as far as they can be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache
from math import gcd, inf
from typing import Any

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.sizes.open import OpenSize

MAX_DEGREE = 8
"""As high a power, all names together, as a term may have."""

MAX_TERMS = 64
"""As many terms as a size may have."""

MAX_PARTS, MAX_COMPUTED_PARTS = 8, 64
"""As many quotients, remainders, maxima and minima as a size may have, within or beside one another; and one that is computed."""

MAX_TEXT, MAX_COMPUTED = 200, 4000
"""As many characters as the text of a size may have that is an axis; and of one that is computed, such as a number of elements."""

SPELLING: ContextVar[Callable[[Any], str] | None] = ContextVar("how sizes are written", default=None)
"""What f-strings write of a size: its text, or what this gives while another language is written."""

Monomial = tuple[tuple[Any, int], ...]
"""Powers of atoms, in the order of their texts. An atom is a name or a part, as `algebra` has them: it compares and hashes."""

Terms = tuple[tuple[Monomial, int], ...]
"""Coefficients of monomials, those of higher degree first; of the monomial () that of 1."""


def scaled(terms: Iterable[tuple[Monomial, int]], by: int) -> list[tuple[Monomial, int]]:
    """The terms times an integer."""
    return [(monomial, by * coefficient) for monomial, coefficient in terms]


def added(a: Iterable[tuple[Monomial, int]], b: Iterable[tuple[Monomial, int]]) -> dict[Monomial, int]:
    """The sum, in which terms may be zero."""
    total = dict(a)
    for monomial, coefficient in b:
        total[monomial] = total.get(monomial, 0) + coefficient
    return total


def multiplied(a: Iterable[tuple[Monomial, int]], b: Iterable[tuple[Monomial, int]]) -> dict[Monomial, int]:
    """The product, in which terms may be zero. Raises TypeRuleError for one of far more terms than a size may have."""
    total: dict[Monomial, int] = {}
    b = list(b)
    for m, c in a:
        for n, d in b:
            powers = dict(m)
            for atom, power in n:
                powers[atom] = powers.get(atom, 0) + power
            product = tuple(sorted(powers.items(), key=lambda factor: factor[0].text))
            total[product] = total.get(product, 0) + c * d
            if len(total) > 4 * MAX_TERMS:
                raise TypeRuleError(f"a size may have {MAX_TERMS} terms, and this one has more")
    return total


def ordered(terms: Mapping[Monomial, int]) -> Terms:
    """The terms that are not zero, in their order. Raises TypeRuleError for more, or of a higher degree, than sizes may have."""
    kept = sorted(((m, c) for m, c in terms.items() if c), key=_order)
    if len(kept) > MAX_TERMS:
        raise TypeRuleError(f"a size may have {MAX_TERMS} terms, and this one has {len(kept)}")
    if any(degree(m) > MAX_DEGREE for m, _ in kept):
        raise TypeRuleError(f"a term of a size may have {MAX_DEGREE} factors, and this one has more")
    if any(abs(c) >= 2**63 for _, c in kept):
        raise TypeRuleError("a size has a coefficient of more than 64 bits")
    return tuple(kept)


def degree(monomial: Monomial) -> int:
    """The number of factors."""
    return sum(power for _, power in monomial)


def _order(term: tuple[Monomial, int]) -> tuple[int, list[tuple[str, int]]]:
    monomial, _ = term
    return -degree(monomial), [(atom.text, -power) for atom, power in monomial]


def quotient(term: tuple[Monomial, int], by: tuple[Monomial, int]) -> tuple[Monomial, int] | None:
    """The quotient of two terms; None if it is not a term."""
    (monomial, coefficient), (divisor, factor) = term, by
    powers = dict(monomial)
    for atom, power in divisor:
        powers[atom] = powers.get(atom, 0) - power
    if coefficient % factor or any(power < 0 for power in powers.values()):
        return None
    return tuple((atom, power) for atom, power in powers.items() if power), coefficient // factor


def in_remainders(terms: Terms) -> Terms:
    """The same polynomial with a % b in the place of a - b * (a // b), where that is there: shorter, and easier to bound."""
    total = dict(terms)
    while True:
        changed = next((found for m, c in total.items() if (found := _in_remainder(total, m, c)) is not None), None)
        if changed is None:
            return ordered(total) if total != dict(terms) else terms
        total = changed


def _in_remainder(total: Mapping[Monomial, int], monomial: Monomial, coefficient: int) -> dict[Monomial, int] | None:
    """The same with one quotient less, that of this term, where b divides the term, and a times it is there but for constants."""
    for atom, a, b in (division for factor, _ in monomial for division in _divisions(factor, total)):
        if coefficient % b:
            continue
        others = quotient((monomial, -coefficient // b), (((atom, 1),), 1))
        assert others is not None
        part = multiplied(a.terms, [others])
        if all(total.get(m, 0) // c > 0 for m, c in part.items() if m):
            rest = added({**total, monomial: 0}.items(), scaled(part.items(), -1))
            remainder = multiplied([(((type(atom)("%", a, b), 1),), 1)], [others])
            return {m: c for m, c in added(rest.items(), remainder.items()).items() if c}
    return None


def _divisions(atom: Any, terms: Iterable[Monomial]) -> Iterator[tuple[Any, Any, int]]:
    """The atom, a and b, if it is a // b: N // 6 is also (N // 2) // 3, where these terms have N // 2."""
    if getattr(atom, "op", "") != "//" or not isinstance(atom.b, int):
        return
    yield atom, atom.a, atom.b
    for other in dict.fromkeys(other for monomial in terms for other, _ in monomial):
        is_quotient = getattr(other, "op", "") == "//" and other.a == atom.a and isinstance(other.b, int)
        if is_quotient and other.b < atom.b and atom.b % other.b == 0:
            yield atom, type(atom.a)(((((other, 1),), 1),)), atom.b // other.b


def text_of(terms: Terms) -> str:
    """The text of a polynomial, by which it is read: 2*M*N-N+1."""
    text = ""
    for monomial, coefficient in terms:
        factors, count = [], abs(coefficient)
        for atom, power in monomial:
            for _ in range(power):
                factor, count = atom.factor(count)
                factors.append(factor)
        alone = len(terms) == len(factors) == coefficient == count == 1  # of one term, which is an atom
        bracketed = alone and factors[0].startswith("(")
        body = factors[0][1:-1] if bracketed else "*".join(([str(count)] if count != 1 or not factors else []) + factors)
        text += ("-" if coefficient < 0 else "+" if text else "") + body
    return text


# Bounds: integers, as floats, or infinite.


def times(a: float, b: float) -> float:
    """The product, where 0 times infinity is 0."""
    return 0.0 if a == 0 or b == 0 else a * b


def floor(a: float, b: float) -> float:
    """a // b, for b of at least 1."""
    if abs(a) == inf:
        return a
    return (0.0 if a >= 0 else -1.0) if b == inf else a // b


def require_short(terms: Terms, text: str, most: int = MAX_TEXT, parts: int = MAX_PARTS) -> None:
    """Raises TypeRuleError for a size that is too long as written, in these terms and this text: by default for an axis or attr."""
    if _n_parts(terms) > parts:
        raise TypeRuleError(f"a size may have {parts} quotients, remainders, maxima and minima, and this one has more")
    if len(text) > most:
        raise TypeRuleError(f"a size may have {most} characters, and {text[:40]}... has {len(text)}")


def _n_parts(terms: Terms) -> int:
    atoms = [atom for monomial, _ in terms for atom, _ in monomial if hasattr(atom, "op")]
    return sum(1 + sum(_n_parts(getattr(size, "terms", ())) for size in (atom.a, atom.b)) for atom in atoms)


def halved(terms: Terms) -> tuple[str, dict[Monomial, int], dict[Monomial, int]] | None:
    """(op, a, b) of polynomials whose sum, difference or product this is, without terms below 0; None of a name, or an atom."""
    above, below = ({m: abs(c) for m, c in terms if (c > 0) == positive} for positive in (True, False))
    if above and below:
        return "sub", above, below
    half = len(terms) // 2
    if half:
        return "add", dict(terms[:half]), dict(terms[half:])
    ((monomial, coefficient),) = terms
    first, *others = (((atom, 1),) for atom, power in monomial for _ in range(power))
    if coefficient == 1 and not others:
        return None
    return "mul", {first: 1}, multiplied([((), coefficient)], [(sum(others, ()), 1)])


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
