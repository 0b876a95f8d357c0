"""Identities of what goes by elements: arithmetic, conversions, choices and logic.

Negation only turns a sign, and rounding to nearest does not look at signs: so it moves through products and into sums. A dtype that
has all values of another loses none. What has other derivatives than the node that it would stand for is not an identity here, such
as n / 1 = n of integers, which steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import copysign, frexp, isinf, isnan, ldexp, prod

from tidu_cli.frozen import Frozen
from tidu_cli.graph.literals import NONFINITE, Literal, literal_to_numbers
from tidu_cli.graph.types import COMPLEXES, FLOATS, INEXACT, INTEGERS, NUMERIC, REALS, real_dtype
from tidu_cli.rules.terms import Assumption, Identity, Operand, Rewriting, Site, Term, op

abs_, add, convert, imag, neg, real = map(op, ("abs", "add", "convert_element_type", "imag", "neg", "real"))
reduce_sum, select_n, sub = map(op, ("reduce_sum", "select_n", "sub"))

NO_SIGNED_ZEROS: frozenset[Assumption] = frozenset({"no-signed-zeros"})
FINITE: frozenset[Assumption] = frozenset({"finite"})


def _neutral(number: float, dtypes: frozenset[str], *, first: bool = True) -> Rewriting:
    """A binary operation with a number on the right, or on either side, that leaves the other operand as it is."""

    def rewrite(site: Site) -> Term | None:
        x, y = site.operands
        for other, number_there in ((x, y), (y, x)) if first else ((x, y),):
            if other.dtype in dtypes and other.type == site.type and number_there.equals(number):
                return other.term
        return None

    return rewrite


def _of_number(k: int, number: float, dtypes: frozenset[str], made: Callable[[Term], Term], site: Site) -> Term | None:
    """A binary operation of which operand k is a number: what it makes of the other."""
    other = site.operands[1 - k]
    return made(other.term) if other.dtype in dtypes and site.operands[k].equals(number) else None


def only(site: Site) -> Term:
    """The first operand."""
    return site.operands[0].term


def unchanged(site: Site) -> Term | None:
    """The first operand, of an operation that changes nothing but the type, where that stays the same."""
    return only(site) if site.operands[0].type == site.type else None


def same(result: Callable[[Site], Term], dtypes: frozenset[str], site: Site) -> Term | None:
    """A binary operation of a value and itself."""
    x, y = site.operands
    return result(site) if x.number == y.number and x.dtype in dtypes else None


def _full(number: float, site: Site) -> Term:
    term: Term = site.trace.full(number, site.type)
    return term


class Of(Frozen):
    """A rewriting of what one of the ops `inner` made as the first operand, which `result` is given with the site."""

    inner: tuple[str, ...]
    result: Callable[[Site, Operand], Sequence[Term] | Term | None]

    def __call__(self, site: Site) -> Sequence[Term] | Term | None:
        """What the site becomes."""
        y = site.operands[0]
        return self.result(site, y) if y.op in self.inner else None


def of_own(inner: str, result: Callable[[Term], Term]) -> Of:
    """A unary operation of what `inner` made: the result of that one's operand."""
    return Of((inner,), lambda site, y: result(y.operands[0].term))


def _negated(x: Operand) -> Term | None:
    """What x is the negative of."""
    return x.operands[0].term if x.op == "neg" and x.operands[0].dtype in NUMERIC else None


def _sum_with_negative(site: Site) -> Term | None:
    x, y = site.operands
    if x.type != y.type:
        return None
    of_x, of_y = _negated(x), _negated(y)
    return sub(x.term, of_y) if of_y else sub(y.term, of_x) if of_x else None


def _difference_with_negative(site: Site) -> Term | None:
    x, y = site.operands
    of_y = _negated(y)
    return add(x.term, of_y) if of_y and x.type == y.type == site.type else None


def _of_negatives(site: Site) -> Term | None:
    x, y = site.operands
    of_x, of_y = _negated(x), _negated(y)
    if of_x is None or of_y is None or x.dtype not in FLOATS or x.type != y.type:
        return None
    return op(site.op)(of_x, of_y)


def _element(x: Operand) -> Literal | None:
    """What all elements are, if that is known."""
    return x.known.element if x.known is not None and x.known.kind == "uniform" else None


def whole_number(x: Operand) -> int | None:
    """The integer that all elements are, if that is known."""
    element = _element(x)
    return None if element is None else int.from_bytes(element.data, "little", signed=element.type.dtype[0] == "i")


def _constant(x: Operand, sign: int = -1) -> float | None:
    """The number that all elements of a float are, times the sign; None for NaN."""
    element = _element(x)
    if element is None or x.dtype not in FLOATS:
        return None
    (text,) = literal_to_numbers(element)
    number = NONFINITE.get(text) if isinstance(text, str) else text
    return sign * number if isinstance(number, float) and not isnan(number) else None


def _scaled_negative(site: Site) -> Term | None:
    """(-x) c is x (-c), for a number c."""
    x, y = site.operands
    if x.type != y.type:
        return None
    for one, other, swapped in ((x, y, False), (y, x, True)):
        negated, number = _negated(one) if one.alone else None, _constant(other)
        if negated is not None and number is not None and not (site.op == "div" and swapped):
            c = site.trace.full(number, other.type)
            return op(site.op)(*((c, negated) if swapped else (negated, c)))
    return None


def _negative_of_scaled(site: Site, y: Operand) -> Term | None:
    """-(x c) is x (-c), for a number c."""
    for k, other in enumerate(y.operands if y.alone else ()):
        number = _constant(other)
        if number is not None and other.type == y.operands[1 - k].type:
            operands = [site.trace.full(number, other.type) if j == k else x.term for j, x in enumerate(y.operands)]
            return op(y.op)(*operands)
    return None


def _swapped_difference(site: Site, d: Operand) -> Term | None:
    return sub(d.operands[1].term, d.operands[0].term) if d.operands[0].dtype in INEXACT else None


def _negative_of_sum(site: Site, x: Operand) -> Term | None:
    return neg(reduce_sum(x.operands[0].term, axes=site.attrs.axes)) if x.alone and x.dtype in INEXACT else None


def _sum_of_equals(site: Site) -> Term | None:
    """Where all partial sums are multiples of a last digit, and not too large, whatever the order, none of them rounds."""
    (x,) = site.operands
    number, n = _constant(x, 1), prod(x.type.shape[axis] for axis in site.attrs.axes)
    if number is None or not n or isinf(number) or copysign(1, number) < 0 == number:  # NumPy's sum of -0 is 0
        return None
    digits, exponent_bits = _DIGITS[x.dtype]
    mantissa, exponent = frexp(abs(number))
    whole = int(ldexp(mantissa, digits))
    while whole and not whole % 2:
        whole //= 2
    if whole * n >= 2**digits or exponent + n.bit_length() >= 2 ** (exponent_bits - 1):
        return None
    return _full(number * n, site)


def _zero_product(site: Site) -> Term | None:
    return _full(0, site) if any(x.equals(0) for x in site.operands) and site.operands[0].type == site.operands[1].type else None


def _of_parts(site: Site) -> Term | None:
    re, im = site.operands
    if re.op != "real" or im.op != "imag" or re.operands[0].number != im.operands[0].number:
        return None
    z = re.operands[0]
    return z.term if z.type == site.type else None


def _real_of_real(site: Site, z: Operand) -> Term | None:
    return z.operands[0].term if z.operands[0].type == site.type else None


IDENTITIES = (
    Identity("add", "x + (-0) = x", _neutral(-0.0, INEXACT)),
    Identity("add", "n + 0 = n", _neutral(0, INTEGERS)),
    Identity("add", "x + 0 = x", _neutral(0.0, INEXACT), NO_SIGNED_ZEROS),
    Identity("add", "x + (-y) = x - y", _sum_with_negative),
    Identity("sub", "x - 0 = x", _neutral(0.0, NUMERIC, first=False)),
    Identity("sub", "x - (-0) = x", _neutral(-0.0, INEXACT, first=False), NO_SIGNED_ZEROS),
    Identity("sub", "(-0) - x = -x", partial(_of_number, 0, -0.0, INEXACT, neg)),
    Identity("sub", "0 - n = -n", partial(_of_number, 0, 0, INTEGERS, neg)),
    Identity("sub", "0 - x = -x", partial(_of_number, 0, 0.0, INEXACT, neg), NO_SIGNED_ZEROS),
    Identity("sub", "n - n = 0", partial(same, partial(_full, 0), INTEGERS)),
    Identity("sub", "x - x = 0", partial(same, partial(_full, 0), INEXACT), FINITE),
    Identity("sub", "x - (-y) = x + y", _difference_with_negative),
    Identity("mul", "1 x = x, of reals", _neutral(1, REALS)),
    Identity("mul", "1 z = z", _neutral(1, COMPLEXES), NO_SIGNED_ZEROS | FINITE),
    Identity("mul", "(-1) x = -x", partial(_of_number, 0, -1.0, FLOATS, neg)),
    Identity("mul", "x (-1) = -x", partial(_of_number, 1, -1.0, FLOATS, neg)),
    Identity("mul", "0 n = 0", lambda site: _zero_product(site) if site.type.dtype in INTEGERS else None),
    Identity("mul", "0 x = 0", _zero_product, NO_SIGNED_ZEROS | FINITE),
    Identity("mul", "(-x) (-y) = x y", _of_negatives),
    Identity("mul", "(-x) c = x (-c)", _scaled_negative),
    Identity("div", "x / 1 = x", _neutral(1, FLOATS, first=False)),
    Identity("div", "(-x) / (-y) = x / y", _of_negatives),
    Identity("div", "(-x) / c = x / (-c)", _scaled_negative),
    Identity("neg", "-(-x) = x", of_own("neg", lambda x: x)),
    Identity("neg", "-(x c) = x (-c), -(x / c) = x / (-c)", Of(("mul", "div"), _negative_of_scaled)),
    Identity("neg", "-(x - y) = y - x", Of(("sub",), _swapped_difference), NO_SIGNED_ZEROS),
    Identity("integer_pow", "x¹ = x", lambda site: only(site) if site.attrs.y == 1 else None),
    Identity("integer_pow", "x⁰ = 1", lambda site: _full(1, site) if site.attrs.y == 0 else None),
    Identity("abs", "|-x| = |x|", of_own("neg", abs_)),
    Identity("abs", "||x|| = |x|", Of(("abs",), lambda site, y: y.term)),
    Identity("max", "max(x, x) = x", partial(same, only, FLOATS)),
    Identity("min", "min(x, x) = x", partial(same, only, FLOATS)),
    Identity("conj", "conj conj z = z", of_own("conj", lambda z: z)),
    Identity("real", "Re (x + iy) = x", Of(("complex",), lambda site, z: z.operands[0].term)),
    Identity("imag", "Im (x + iy) = y", Of(("complex",), lambda site, z: z.operands[1].term)),
    Identity("real", "Re conj z = Re z", of_own("conj", real)),
    Identity("imag", "Im conj z = -Im z", of_own("conj", lambda z: neg(imag(z)))),
    Identity("real", "Re (x + 0i) = x", Of(("convert_element_type",), _real_of_real)),
    Identity("complex", "Re z + i Im z = z", _of_parts),
    Identity("reduce_sum", "Σ -x = -Σ x", Of(("neg",), _negative_of_sum), NO_SIGNED_ZEROS),
    Identity("reduce_sum", "Σ c = n c, where no partial sum rounds", _sum_of_equals),
)

_DIGITS = {"f16": (11, 5), "bf16": (8, 8), "f32": (24, 8), "f64": (53, 11)}
"""The digits and the bits of the exponent of floats."""


def _holds(wide: str, narrow: str) -> bool:
    """Whether a dtype has all values of another, so that a conversion there and back changes none."""
    if narrow in FLOATS and wide in FLOATS:
        return all(a >= b for a, b in zip(_DIGITS[wide], _DIGITS[narrow], strict=True))
    if narrow in INTEGERS and wide in INTEGERS:
        more = int(wide[1:]) - int(narrow[1:])
        return more > 0 if (wide[0], narrow[0]) == ("i", "u") else more >= 0 and wide[0] == narrow[0]
    if wide in COMPLEXES:
        return narrow in INEXACT and _holds(real_dtype(wide), real_dtype(narrow))
    return narrow == "bool" and (wide in INTEGERS or wide in FLOATS)


def _there_and_back(site: Site, y: Operand) -> Term | None:
    return y.operands[0].term if y.operands[0].type == site.type and _holds(y.dtype, site.type.dtype) else None


def _by_way_of_wider(site: Site, y: Operand) -> Term | None:
    if not {y.operands[0].dtype, y.dtype, site.type.dtype} <= FLOATS:
        return None
    x = y.operands[0]
    return convert(x.term, new_dtype=site.type.dtype) if _holds(y.dtype, x.dtype) and x.type != site.type else None


CONVERSIONS = (
    Identity("convert_element_type", "to the same dtype: x", unchanged),
    Identity("convert_element_type", "to a wider dtype and back: x", Of(("convert_element_type",), _there_and_back)),
    Identity("convert_element_type", "by way of a wider float: at once", Of(("convert_element_type",), _by_way_of_wider)),
)


def _equal_cases(site: Site) -> Term | None:
    """Of one case, or of equal ones."""
    _, first, *rest = site.operands
    return first.term if all(x.number == first.number for x in rest) else None


def _known_choice(site: Site) -> Term | None:
    which, *cases = site.operands
    number = whole_number(which)
    return None if number is None else cases[min(max(number, 0), len(cases) - 1)].term


def _swapped_choice(site: Site, which: Operand) -> Term | None:
    cases = [x.term for x in site.operands[1:]]
    return select_n(which.operands[0].term, *reversed(cases)) if which.dtype == "bool" and len(cases) == 2 else None


def _twice_not(site: Site, y: Operand) -> Term | None:
    return y.operands[0].term if y.dtype == "bool" else None


def _with_known(number: int, site: Site) -> Term | None:
    x, y = site.operands
    if x.dtype != "bool":
        return None
    return x.term if y.equals(number) else y.term if x.equals(number) else None


_BOOL = frozenset({"bool"})

CHOICES = (
    Identity("select_n", "of equal cases: one", _equal_cases),
    Identity("select_n", "by a constant: that case", _known_choice),
    Identity("select_n", "not p ? x : y = p ? y : x", Of(("not",), _swapped_choice)),
    Identity("not", "not not p = p", Of(("not",), _twice_not)),
    Identity("and", "p and p = p", partial(same, only, _BOOL)),
    Identity("or", "p or p = p", partial(same, only, _BOOL)),
    Identity("and", "p and true = p", partial(_with_known, 1)),
    Identity("or", "p or false = p", partial(_with_known, 0)),
)
