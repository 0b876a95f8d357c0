"""What the names in sizes stand for: numbers, and bounds that decide a question.

Numbers come from documents and from the shapes of arrays, and sizes come to numbers by them. Where it is open whether a size is at
least 0, or whether two are the same, there may be bounds of a name by which it is decided: these are the way out in messages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import lcm
from typing import Any

from tidu_cli.errors import EvaluationError, TypeRuleError
from tidu_cli.graph.sizes.algebra import EXTREMES, Name, Part, Size, divided, names_of, of_part, size_named, terms_of, way_to_fix
from tidu_cli.graph.sizes.open import NUMBERS, WayOut, surely
from tidu_cli.graph.sizes.polynomials import bounds


def substituted(size: Any, values: Mapping[str, Any]) -> Any:
    """A size with other sizes, or numbers, for names of it. Raises TypeRuleError."""
    if not isinstance(size, Size):
        return size
    total: Any = 0
    for monomial, coefficient in size.terms:
        product: Any = coefficient
        for atom, power in monomial:
            part = _of_atom(atom, values)
            for _ in range(power):
                product = product * part
        total = total + product
    return total


def _of_atom(atom: Name | Part, values: Mapping[str, Any]) -> Any:
    if isinstance(atom, Name):
        size = values.get(atom.text)
        return divided(size_named(atom) if size is None else size, atom.multiple)[0]
    return of_part(atom.op, substituted(atom.a, values), substituted(atom.b, values))


def require_admitted(name: Name, size: Any) -> None:
    """Raises TypeRuleError for a size that the bounds of a name do not admit, or may not."""
    low, high = bounds(size)
    if low < name.least:
        raise TypeRuleError(f"the size {name.text} is at least {name.least}, and {size} {_is(size)} less")
    if name.most is not None and high > name.most:
        raise TypeRuleError(f"the size {name.text} is at most {name.most}, and {size} {_is(size)} more")
    if name.multiple > 1 and divided(size, name.multiple)[1] != 0:
        raise TypeRuleError(
            f"the size {name.text} is a multiple of {name.multiple}, and {size} {_is(size, 'is not', 'may not be')}"
        )


def _is(size: Any, known: str = "is", else_: str = "may be") -> str:
    return known if isinstance(size, int) else else_


def in_one_name(size: Any) -> tuple[Name, int, int] | None:
    """The name, the factor of its units and the constant of a size such as 2*N+1; None of all others."""
    terms = dict(terms_of(size))
    constant = terms.pop((), 0)
    if len(terms) != 1:
        return None
    ((monomial, coefficient),) = terms.items()
    if len(monomial) != 1 or monomial[0][1] != 1 or not isinstance(monomial[0][0], Name):
        return None
    return monomial[0][0], coefficient, constant


def solved(size: Any, number: int, known: Mapping[str, int]) -> tuple[str, int] | None:
    """The one name that is not known of a size that comes to a number, and what it is; None where that is not one, or not linear.

    Raises TypeRuleError where there is no such integer.
    """
    rest = substituted(size, known)
    if (line := in_one_name(rest)) is None:
        return None
    name, coefficient, constant = line
    units, remainder = divmod(number - constant, coefficient)
    low, high = bounds(size)
    if not low <= number <= high:
        raise TypeRuleError(f"the size {size} is {f'at least {low:.0f}' if number < low else f'at most {high:.0f}'}")
    if remainder and isinstance(size, Size) and size == rest and name.text == str(size):
        raise TypeRuleError(f"the size {size} is a multiple of {name.multiple}")
    if remainder:
        raise TypeRuleError(f"the size {size} is never {number}")
    return name.text, units * name.multiple


def numbers_of(shapes: Iterable[tuple[str, Sequence[Any], Sequence[int]]], given: Mapping[str, int]) -> dict[str, int]:
    """What names stand for where arrays of these declared shapes have these shapes; each comes with its place, `input x`.

    Shapes of another number of axes say nothing, nor do sizes of two names that are not known; `given` are known before. Raises
    EvaluationError where two disagree, or where bounds do not admit what was found.
    """
    numbers, places = dict(given), dict.fromkeys(given, "what was given")  # and where each was seen first
    pairs = [(place, zip(declared, shape, strict=True)) for place, declared, shape in shapes if len(declared) == len(shape)]
    pending = [(place, size, n) for place, sizes in pairs for size, n in sizes if isinstance(size, Size)]
    while True:
        later = [(place, size, n) for place, size, n in pending if not _is_settled(numbers, places, place, size, n)]
        if len(later) == len(pending):
            return numbers
        pending = later


def _is_settled(numbers: dict[str, int], places: dict[str, str], place: str, size: Size, number: int) -> bool:
    try:
        rest = substituted(size, numbers)
        if isinstance(rest, int):
            if rest != number:
                names = dict.fromkeys(name.text for name in names_of(size))
                seen = ", ".join(f"{name}={numbers[name]} by {places[name]}" for name in names)
                raise EvaluationError(f"{place}: the size {size} is {rest} ({seen}), got {number}")
            return True
        solution = solved(size, number, numbers)
        if solution is None:
            return False
        name = next(n for n in names_of(size) if n.text == solution[0])
        require_admitted(name, solution[1])
    except TypeRuleError as error:
        raise EvaluationError(f"{place}: got {number} for {size}, but {error}") from None
    numbers[name.text], places[name.text] = solution[1], place
    return True


def require_known(names: Iterable[str], known: Mapping[str, int]) -> None:
    """Raises EvaluationError for names that nothing says."""
    missing = sorted(set(names) - set(known))
    if missing:
        raise EvaluationError(f"no input says what the size {missing[0]} is; give it a number with ", way_to_fix(missing[0]))


def name_to_file(name: Name) -> dict[str, int]:
    """The bounds of a name as files have them; none that are taken anyway."""
    bounds = {"min": name.least, "max": name.most, "multiple_of": name.multiple}
    return {field: value for field, value in bounds.items() if value is not None and value != 1}


def bounds_in_words(name: Name) -> str:
    """The bounds of a name: `at least 1`, or `from 8 to 64 and a multiple of 8`."""
    words = f"at least {name.least}" if name.most is None else f"from {name.least} to {name.most}"
    return words if name.multiple == 1 else f"{words} and a multiple of {name.multiple}"


MOST_BOUND = 2**20
"""Bounds of names are looked for up to this."""


def bounds_by_which(due: Any, same: tuple[Any, Any] | None) -> Name | None:
    """A name with the widest bounds by which a size is at least 0, or two are the same; None where those of one name do not do."""
    found = None if due is None else _bound_by(due)
    if found is None and same is not None:
        found = _multiple_by(*same) or _extreme_by(*same) or _range_by(*same)
    return found


def _extreme_by(a: Any, b: Any) -> Name | None:
    """Of sizes that differ by a maximum or minimum of their names, as min(N,16) and N do: where one of these is all there is."""
    if not any(atom.text.startswith(EXTREMES) for monomial, _ in terms_of(a - b) for atom, _ in monomial):
        return None
    low, high = bounds(a - b)
    return _bound_by(b - a) if low >= 0 else _bound_by(a - b) if high <= 0 else None


MULTIPLES = frozenset(2**k for k in range(1, 9))
"""What sizes are multiples of where networks halve them several times, and double them again. Divisors are tried, too."""


def _multiple_by(a: Any, b: Any) -> Name | None:
    names = names_in((a, b))
    for multiple in sorted(MULTIPLES.union(_divisors(a), _divisors(b))):
        for name in names:
            bounded = Name(name.text, name.least, name.most, lcm(name.multiple, multiple))
            if bounded.multiple != name.multiple and _are_same(a, b, name, size_named(bounded)):
                return bounded
    return None


def _divisors(size: Any) -> set[int]:
    """The numbers by which names of a size are divided in it."""
    parts = [atom for monomial, _ in terms_of(size) for atom, _ in monomial if isinstance(atom, Part)]
    return {part.b for part in parts if part.op not in EXTREMES and isinstance(part.b, int) and part.b <= MOST_OF_RANGE}


MOST_OF_RANGE = 512
"""Ranges of names are looked for from 1 up to this: heights of images that are cut to one row of features."""


def _range_by(a: Any, b: Any) -> Name | None:
    """Of sizes that are the same for some numbers alone, as (N+15)//48 and 1 are: the first of these that follow one another."""
    for name in names_in((a, b)):
        first = first_by(name, (a, b))
        if first is not None:
            last = first
            while last < MOST_OF_RANGE and _are_same(a, b, name, last + 1):
                last += 1
            bounded = Name(name.text, first, last, name.multiple)
            if _are_same(a, b, name, size_named(bounded)):
                return bounded
    return None


def first_by(name: Name, same: tuple[Any, Any] | None) -> int | None:
    """The first number for a name by which two sizes are the same, if it is not a large one."""
    numbers = range(name.least, MOST_OF_RANGE + 1)
    return None if same is None else next((n for n in numbers if n % name.multiple == 0 and _are_same(*same, name, n)), None)


def names_in(sizes: Sequence[Any]) -> list[Name]:
    """The names in several sizes, each once."""
    return list(dict.fromkeys(name for size in sizes for name in names_of(size)))


def _are_same(a: Any, b: Any, name: Name, size: Any) -> bool:
    given = {name.text: size}
    return surely(lambda: bool(substituted(a, given) == substituted(b, given)))


def _bound_by(due: Any) -> Name | None:
    for name in dict.fromkeys(names_of(due)):

        def fits(least: int, most: int | None, name: Name = name) -> bool:
            bounded = Name(name.text, max(name.least, least), most, name.multiple)
            return bounds(substituted(due, {name.text: size_named(bounded)}))[0] >= 0

        if fits(MOST_BOUND, None):
            return Name(name.text, _least(lambda n: fits(n, name.most)), name.most, name.multiple)  # noqa: B023 - called here
        if fits(name.least, name.least):
            most = MOST_BOUND - _least(lambda n: fits(name.least, MOST_BOUND - n))  # noqa: B023 - likewise
            return Name(name.text, name.least, most, name.multiple)
    return None


def _least(holds: Callable[[int], bool]) -> int:
    """The least number of which something holds that holds of all greater ones up to the limit, too."""
    low, high = 0, MOST_BOUND
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def way_out(asked: WayOut) -> str:
    """The way out of a question, as `WayOut` says: the end of a message, or the middle of one that ends in how a size is fixed."""
    name, dues, same, in_types = asked
    found = [bounds_by_which(a - b - n, None) for a, b, n in dues] + [None if same is None else bounds_by_which(None, same)]
    known = [bound for bound in found if bound is not None]
    bound = next((b for b in known if b.most is None), known[0] if known else None)
    if in_types:
        old = {n.text: n for n in names_in([*(size for a, b, _ in dues for size in (a, b)), *(same or ())])}
        size = None if bound is None else _in_place_of(old[bound.text], bound)
        return _in_types(name if size is None or bound is None else bound.text, size)
    if bound is None:
        return "; give it a number: "
    return f"; give {bound.text} bounds, {_as_file(bound)}, or {name} a number: "


def way_in_types(a: Any, b: Any) -> str:
    """How two sizes are made one in the types of arguments, as the end of a message; empty where nothing does."""
    names = names_in((a, b))
    if not names:
        return ""
    low, high = bounds(a - b)
    if low > 0 or high < 0:
        return ""
    bound = bounds_by_which(None, (a, b))
    if bound is None and len(names) > 1:
        return f"; if they are the same, write one name for {names[0].text} and {names[1].text} in the types of the arguments"
    name = names[0] if bound is None else next(name for name in names if name.text == bound.text)
    return _in_types(name.text, first_by(name, (a, b)) if bound is None else _in_place_of(name, bound))


def way_to_be_at_least(size: Any, least: int) -> str:
    """By what an open size is no less than a number, as the end of a message."""
    bound = bounds_by_which(size - least, None)
    if bound is None:
        return "; write it as a name of its own"
    name = next(name for name in names_in([size]) if name.text == bound.text)
    other = _in_place_of(name, bound)
    if NUMBERS.get() is not None:
        return _in_types(name.text, other)
    said = f"say in a document what {name.text} is: {_as_file(bound)}"
    return f"; {said}" if other is None else f"; write {other} in place of {name.text}, or {said}"


def _in_types(name: str, size: Any) -> str:
    told = "a number" if size is None else str(size) if isinstance(size, int) else f"{size}, or a number,"
    return f"; write {told} in place of {name} in the types of the arguments"


def _in_place_of(name: Name, bound: Name) -> Any:
    """A size that is within a bound for all numbers of another name, to write in the place of that; None where there is none."""
    if bound.most != name.most:
        return None
    times = bound.multiple // name.multiple
    least = -(-bound.least // bound.multiple) * bound.multiple  # in the bound
    more = max(least - name.least * times, 0)
    return size_named(name) * times + more if more <= MOST_MORE else None


MOST_MORE = 64
"""Messages propose N+64 at most: a greater bound, such as 10,000, is a limit of a function and no size that users have."""


def _as_file(bound: Name) -> str:
    return f'"sizes": {json.dumps({bound.text: name_to_file(bound)})}'
