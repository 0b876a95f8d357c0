"""By which bounds of a name a question about open sizes is decided: whether one is at least 0, or two are the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from math import lcm
from typing import Any

from tidu_cli.graph.sizes.algebra import EXTREMES, Name, Part, names_of, size_named, terms_of
from tidu_cli.graph.sizes.bounds import bounds
from tidu_cli.graph.sizes.open import surely
from tidu_cli.graph.sizes.traced import NUMBERS, WayOut
from tidu_cli.graph.sizes.values import name_to_file, substituted

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
