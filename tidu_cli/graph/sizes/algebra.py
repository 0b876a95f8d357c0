"""Sizes of axes that a document leaves open: integer expressions of names, such as `N`, `2*N+1` or `max(M,N)//2`.

A `Size` stands where an int would, in shapes and attrs, and computes as ints do. It is a polynomial over names and over what is not
a polynomial of them: quotients, remainders, maxima and minima. Each has one normal form, so that equal sizes are equal as values,
hash, and have one text; what comes to a number is an int. `==` holds of sizes that are equal whatever the names stand for. `<` and
its kin are decided by bounds where they can be, and raise UndecidedSizeError where they cannot.

Names stand for integers of at least 1, unless the document says otherwise under `sizes`; a name carries its bounds with it.
"""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf, prod
from typing import Any

from tidu_cli.errors import Remedy, TypeRuleError, UndecidedSizeError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.sizes.open import NUMBERS, Dues, OpenSize, WayOut
from tidu_cli.graph.sizes.polynomials import (
    MAX_COMPUTED,
    MAX_COMPUTED_PARTS,
    MAX_TERMS,
    SPELLING,
    Monomial,
    Terms,
    added,
    bounds,
    floor,
    halved,
    in_remainders,
    multiplied,
    ordered,
    quotient,
    require_short,
    scaled,
    text_of,
)

NAME = "[A-Za-z_][A-Za-z0-9_]*"
EXTREMES = ("max", "min")
"""What no name may be called, as it is a function."""

_ALONE = re.compile(rf"{NAME}|[0-9]+|(?:max|min)\([^()]*\)", re.ASCII)


class Name(Frozen):
    """A name, with the least and greatest integer that it stands for, and what divides all of them.

    As a factor it counts in units of `multiple`, so that quotients by divisors of that are exact.
    """

    text: str
    least: int = 1
    most: int | None = None
    multiple: int = 1

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and greatest value as a factor."""
        return -(-self.least // self.multiple), inf if self.most is None else self.most // self.multiple

    def factor(self, count: int) -> tuple[str, int]:
        """The text as a factor beside so many, and how many are left: of a unit of 8, N beside 8, and (N//8) beside 3."""
        whole = count % self.multiple == 0
        return (self.text, count // self.multiple) if whole else (f"({self.text}//{self.multiple})", count)


class Part(Frozen):
    """What is not a polynomial: `//`, `%`, `max` or `min` of two sizes, of which one may be a number."""

    op: str
    a: Any
    b: Any

    @property
    def text(self) -> str:
        """The text, of operators in need of brackets."""
        return f"{self.op}({self.a!s},{self.b!s})" if self.op in EXTREMES else f"{_grouped(self.a)}{self.op}{_grouped(self.b)}"

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and greatest value, as far as they follow from those of the operands. Divisors are positive."""
        (a, most_a), (b, most_b) = bounds(self.a), bounds(self.b)
        if self.op == "max":
            return max(a, b), max(most_a, most_b)
        if self.op == "min":
            return min(a, b), min(most_a, most_b)
        if self.op == "%":
            return 0, min(most_b - 1, most_a) if a >= 0 else most_b - 1
        quotients = [floor(x, y) for x in (a, most_a) for y in (max(b, 1), max(most_b, 1))]
        return min(quotients), max(quotients)

    def factor(self, count: int) -> tuple[str, int]:
        """The text as a factor beside so many, and how many are left."""
        return self.text if self.op in EXTREMES else f"({self.text})", count


def _relation(sign: str) -> Callable[[Any, Any], Any]:
    return lambda size, other: _compared(size, other, sign)


class Size(OpenSize):
    """An integer expression of names that is not a number. See above."""

    __slots__ = ("_hash", "_text", "terms", "written")
    terms: Terms
    written: Terms  # with remainders, where they are
    _hash: int
    _text: str

    def __init__(self, terms: Terms) -> None:
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "_hash", hash(terms))
        object.__setattr__(self, "written", in_remainders(terms))
        object.__setattr__(self, "_text", text_of(self.written))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("sizes are frozen")

    def __reduce__(self) -> tuple[Any, ...]:
        return Size, (self.terms,)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not is_size(other):
            return NotImplemented
        same = isinstance(other, Size) and self.terms == other.terms
        if not same and (numbers := NUMBERS.get()) is not None:
            numbers.require_decided(self, other, sys._getframe(1))
        return same

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def __format__(self, form: str) -> str:
        spelling = SPELLING.get()
        return self._text if spelling is None else spelling(self)

    def __bool__(self) -> bool:
        low, high = bounds(self)
        if low > 0 or high < 0:
            return True
        raise undecided(f"cannot decide whether the size {self!s} is 0", self, dues=[(self, 0, 1), (0, self, 1)], same=(self, 0))

    def __index__(self) -> int:
        if (numbers := NUMBERS.get()) is not None:
            numbers.require_number(self, sys._getframe(1))
        raise undecided(f"needs a number, and the size {self!s} is open", self)

    __int__ = __float__ = bit_length = __index__

    def _number(self) -> Any:
        numbers = NUMBERS.get()
        return self.__index__() if numbers is None else numbers.number(self)

    def __truediv__(self, other: Any) -> Any:
        return self._number() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self._number()

    def __rpow__(self, other: Any) -> Any:
        return other ** self._number()

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        numbers = NUMBERS.get()
        return self.__index__() if numbers is None else numbers.ufunc(ufunc, method, operands, options)

    __lt__, __le__, __gt__, __ge__ = map(_relation, ("<", "<=", ">", ">="))

    def require_text(self) -> None:
        """Raises TypeRuleError for a text that is too long to be that of an axis."""
        require_short(self.written, str(self))

    def least(self) -> int:  # noqa: D102 - as the base class says
        self.require_text()
        low, _ = bounds(self)
        if low < 0:
            raise undecided(f"the size {self!s} may be less than 0", self, dues=[(self, 0, 0)])
        return int(low)

    def halves(self) -> tuple[str, Any, Any] | None:
        """(op, a, b) such that a size that no file has is their sum, difference or product: too long, or perhaps below 0."""
        if bounds(self)[0] < 0:
            below = _made({monomial: -n for monomial, n in self.terms if n < 0})
            return ("sub", self + below, below) if bounds(self + below)[0] >= 0 and bounds(below)[0] > 0 else None
        try:
            self.require_text()
        except TypeRuleError:
            halves = halved(self.terms)
            return halves and (halves[0], _made(halves[1]), _made(halves[2]))
        return None

    def larger(self, other: Any) -> Any:  # noqa: D102
        return _extreme("max", self, other)

    def smaller(self, other: Any) -> Any:  # noqa: D102
        return _extreme("min", self, other)

    def __add__(self, other: Any) -> Any:
        return _made(added(self.terms, terms_of(other))) if is_size(other) else self._with(operator.add, other)

    def __sub__(self, other: Any) -> Any:
        return _made(added(self.terms, scaled(terms_of(other), -1))) if is_size(other) else self._with(operator.sub, other)

    def __mul__(self, other: Any) -> Any:
        return _made(multiplied(self.terms, terms_of(other))) if is_size(other) else self._with(operator.mul, other)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __neg__(self) -> Any:
        return _made(dict(scaled(self.terms, -1)))

    def __pow__(self, power: int) -> Any:
        return prod([self] * power) if isinstance(power, int) and power >= 0 else self._with(operator.pow, power)

    def _with(self, operation: Callable[[Any, Any], Any], other: Any) -> Any:
        return operation(self._number(), other) if isinstance(other, int | float | complex | Size) else NotImplemented

    def __floordiv__(self, other: Any) -> Any:
        return divided(self, other)[0] if is_size(other) else self._with(operator.floordiv, other)

    def __mod__(self, other: Any) -> Any:
        return divided(self, other)[1] if is_size(other) else self._with(operator.mod, other)

    def __divmod__(self, other: Any) -> Any:
        return divided(self, other) if is_size(other) else self._with(divmod, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return divided(other, self)[0] if is_size(other) else other // self._number()

    def __rmod__(self, other: Any) -> Any:
        return divided(other, self)[1] if is_size(other) else other % self._number()

    def __rdivmod__(self, other: Any) -> Any:
        return divided(other, self) if is_size(other) else divmod(other, self._number())


def undecided(problem: str, *sizes: Any, dues: Dues = (), same: tuple[Any, Any] | None = None) -> UndecidedSizeError:
    """The error of what cannot be said of sizes, with the ways out, as `WayOut` takes them."""
    name = next((name.text for size in sizes for name in names_of(size)), "")
    if not name:
        return UndecidedSizeError(problem)
    if NUMBERS.get() is not None:
        return UndecidedSizeError(problem, WayOut(name, dues, same, in_types=True))
    return UndecidedSizeError(problem, WayOut(name, dues, same), way_to_fix(name))


def way_to_fix(name: str, size: Any = 32) -> Remedy:
    """How a name is given a number, or another size."""
    value = size if isinstance(size, int) else repr(str(size))
    return Remedy("size", f"{name}={size}", command="convert", python=f"size={{{name!r}: {value}}} in load or specialize")


def names_of(size: Any) -> Iterator[Name]:
    """The names in a size; none of an int. A name may come more than once."""
    for monomial, _ in size.terms if isinstance(size, Size) else ():
        for atom, _ in monomial:
            if isinstance(atom, Name):
                yield atom
            else:
                yield from names_of(atom.a)
                yield from names_of(atom.b)


def is_size(value: object) -> bool:
    """Whether a value is a size, open or a number."""
    return isinstance(value, int | Size)


def terms_of(size: Any) -> Iterable[tuple[Monomial, int]]:
    """The terms of a size, also of an int."""
    return size.terms if isinstance(size, Size) else (((), int(size)),)


def size_named(name: Name) -> Any:
    """The size that a name is."""
    return _of_atom(name, name.multiple)


def of_part(op: str, a: Any, b: Any) -> Any:
    """`a op b`, for an operator or "max" or "min". Raises UndecidedSizeError for a divisor that may be 0 or less."""
    if op in EXTREMES:
        return _extreme(op, a, b)
    return divided(a, b)[op == "%"]


def _extreme(op: str, a: Any, b: Any) -> Any:
    low, high = bounds(a - b)
    if low >= 0 or high <= 0:
        return a if (low >= 0) == (op == "max") else b
    first, second = sorted((a, b), key=lambda n: (isinstance(n, int), str(n)))
    return _of_atom(Part(op, first, second))


def divided(a: Any, b: Any) -> tuple[Any, Any]:
    """The quotient, rounded down, and the remainder. Raises UndecidedSizeError for a divisor that may be 0 or less."""
    if not bounds(b)[0] > 0:
        verb = "is" if isinstance(b, int) else "may be"
        raise undecided(f"cannot divide the size {a!s} by {b!s}, which {verb} 0 or less", b, dues=[(b, 0, 1)])
    if isinstance(a, int) and isinstance(b, int):
        return divmod(a, b)
    whole, rest = _exact(a, b)
    low, high = bounds(rest)
    if low >= 0 and bounds(rest - b)[1] < 0:
        return whole, rest
    if isinstance(b, int) and abs(low) != inf and high != inf and low // b == high // b:
        return whole + int(low // b), rest - int(low // b) * b
    if not isinstance(b, int):
        return whole + _of_atom(Part("//", rest, b)), _of_atom(Part("%", rest, b))
    inner = _inner_quotient(rest)
    part, shift = inner or (None, 0)
    part_of_rest = _of_atom(Part("//", rest, b)) if part is None else divided(part.a + part.b * shift, part.b * b)[0]
    return whole + part_of_rest, rest - b * part_of_rest


def _inner_quotient(size: Any) -> tuple[Part, int] | None:
    """(p, n) of p + n, where p is a quotient by a number; None of others. (a // k + n) // m is (a + k * n) // (k * m)."""
    (monomial, coefficient), *rest = terms_of(size)
    shift = sum(c for m, c in rest if not m)
    if coefficient != 1 or len(monomial) != 1 or monomial[0][1] != 1 or any(m for m, _ in rest):
        return None
    part = monomial[0][0]
    return (part, shift) if isinstance(part, Part) and part.op == "//" and isinstance(part.b, int) else None


def _exact(a: Any, b: Any) -> tuple[Any, Any]:
    """(q, r) with a = q * b + r, by the terms that b's first term divides; of a divisor that is a number, 0 <= coefficients < b."""
    if isinstance(b, int):
        quotients, rests = {}, {}
        for monomial, coefficient in terms_of(a):
            quotients[monomial], rests[monomial] = divmod(coefficient, b)
        return _made(quotients), _made(rests)
    whole, rest = 0, a
    for _ in range(MAX_TERMS):
        step = next((s for term in terms_of(rest) if (s := quotient(term, b.terms[0])) is not None), None)
        if step is None:
            return whole, rest
        part = _made(dict([step]))
        whole, rest = whole + part, rest - part * b
    return 0, a


def _of_atom(atom: Name | Part, times: int = 1) -> Any:
    return _made({((atom, 1),): times})


def _made(terms: Mapping[Monomial, int]) -> Any:
    """The size of these terms: an int if it is a number. Raises TypeRuleError for one beyond the limits."""
    kept = ordered(terms)
    if not kept or (len(kept) == 1 and not kept[0][0]):
        return kept[0][1] if kept else 0
    size = Size(kept)
    require_short(size.written, str(size), MAX_COMPUTED, MAX_COMPUTED_PARTS)
    return size


def _compared(a: Size, b: Any, relation: str) -> Any:
    """What a relation of sizes is. Raises UndecidedSizeError."""
    if not isinstance(b, int | float | Size):
        return NotImplemented
    greater, other = (b, a) if relation in ("<=", ">") else (a, b)
    if isinstance(b, Size):
        low, high = bounds(greater - other)
    else:
        (low, high), (other_low, other_high) = bounds(greater), bounds(other)
        low, high = low - other_high, high - other_low
    if low < 0 <= high:
        dues = [(greater, other, 0), (other, greater, 1)] if is_size(b) else []
        raise undecided(f"cannot decide whether {a!s} {relation} {b!s}", a, b, dues=dues)
    return (low >= 0) == (relation in ("<=", ">="))


def _grouped(size: Any) -> str:
    text = str(size)
    return text if _ALONE.fullmatch(text) else f"({text})"
