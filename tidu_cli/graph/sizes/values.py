"""What names of sizes stand for: which are there, what sizes come to, and names from the shapes of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tidu_cli.errors import EvaluationError, TypeRuleError
from tidu_cli.graph.sizes.algebra import Name, Part, Size, divided, names_of, of_part, size_named, terms_of, way_to_fix
from tidu_cli.graph.sizes.bounds import bounds


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
    line = in_one_name(rest)
    if line is None:
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


class Found:
    """Numbers for names, and where each was seen first."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.places: dict[str, str] = {}


def numbers_of(shapes: Iterable[tuple[str, Sequence[Any], Sequence[int]]], given: Mapping[str, int]) -> dict[str, int]:
    """What names stand for where arrays of these declared shapes have these shapes; each comes with its place, `input x`.

    Shapes of another number of axes say nothing, nor do sizes of two names that are not known; `given` are known before. Raises
    EvaluationError where two disagree, or where bounds do not admit what was found.
    """
    found = Found()
    found.numbers.update(given)
    found.places.update(dict.fromkeys(given, "what was given"))
    pairs = [(place, zip(declared, shape, strict=True)) for place, declared, shape in shapes if len(declared) == len(shape)]
    pending = [(place, size, n) for place, sizes in pairs for size, n in sizes if isinstance(size, Size)]
    while True:
        later = [(place, size, n) for place, size, n in pending if not _is_settled(found, place, size, n)]
        if len(later) == len(pending):
            return found.numbers
        pending = later


def _is_settled(found: Found, place: str, size: Size, number: int) -> bool:
    try:
        rest = substituted(size, found.numbers)
        if isinstance(rest, int):
            if rest != number:
                names = dict.fromkeys(name.text for name in names_of(size))
                seen = ", ".join(f"{name}={found.numbers[name]} by {found.places[name]}" for name in names)
                raise EvaluationError(f"{place}: the size {size} is {rest} ({seen}), got {number}")
            return True
        solution = solved(size, number, found.numbers)
        if solution is None:
            return False
        name = next(n for n in names_of(size) if n.text == solution[0])
        require_admitted(name, solution[1])
    except TypeRuleError as error:
        raise EvaluationError(f"{place}: got {number} for {size}, but {error}") from None
    found.numbers[name.text], found.places[name.text] = solution[1], place
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
