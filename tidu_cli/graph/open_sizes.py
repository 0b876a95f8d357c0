"""The open sizes of a document: which names there are. Documents without any pay a look at each of their cases, once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tidu_cli.errors import TransformError, TypeRuleError
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Case, CaseTable, Document, Graph
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import RecordType, TensorType, Type

if TYPE_CHECKING:
    from tidu_cli.graph.sizes.algebra import Name


def open_names(document: Document) -> dict[str, Name]:
    """The names of sizes in a document, by their texts. Raises TransformError for one with two bounds."""
    return _names(_parts(document.graphs, document.cases), lambda: f"graph '{document.head.name}'")


def bounds_to_file(document: Document) -> dict[str, object]:
    """The field `sizes` of a document, if there is one: the bounds of names that have others than all names."""
    from tidu_cli.graph.sizes.names import name_to_file

    sizes = {text: bounds for text, name in sorted(open_names(document).items()) if (bounds := name_to_file(name))}
    return {"sizes": sizes} if sizes else {}


def require_fixed(document: Document, what: str) -> None:
    """Raises TransformError for a document with open sizes, where `what` needs numbers."""
    names = sorted(open_names(document))
    if names:
        from tidu_cli.graph.sizes.algebra import way_to_fix

        raise TransformError(
            f"{what} have fixed sizes, and the size {names[0]} is open; give it a number first: ", way_to_fix(names[0])
        )


def names_in(graph: Graph) -> dict[str, Name]:
    """Likewise, of a graph without references to others."""
    return _names(_parts([graph], graph.cases), lambda: f"graph '{graph.name}'")


def names_in_case(case: Case) -> dict[str, Name]:
    """Likewise, of a case."""
    return _names([case], lambda: case.op)


def _parts(graphs: Sequence[Graph], cases: CaseTable) -> Iterator[object]:
    """What may have open sizes: nothing where no case of the table and no input has."""
    for graph in graphs:
        yield from (i.type for i in graph.inputs if has_open_size(i.type))
        yield from (o.type for o in graph.outputs if has_open_size(o.type))
    if any(_open_codes(cases)):
        used = set().union(*(graph.code for graph in graphs))
        yield from (cases[code] for code in sorted(used) if cases.open_codes[code])


def _open_codes(cases: CaseTable) -> Sequence[bool]:
    """Which cases of a table have open sizes: looked up once a case."""
    known = cases.open_codes
    known.extend(is_open_case(case) for case in cases.cases[len(known) :])
    return known


def is_open_case(case: Case) -> bool:
    """Whether the types or attrs of a case have open sizes."""
    return any(map(has_open_size, (*case.operands, *case.results))) or any(map(has_open_size, vars(case.attrs).values()))


def has_open_size(value: Any) -> bool:
    """Whether there is an open size in a type, in an attr or in a graph within one."""
    if isinstance(value, int | str | float | None):
        return False
    return next(_sizes(value), None) is not None


def _sizes(value: Any) -> Iterator[Any]:
    if isinstance(value, OpenSize):
        yield value
    elif isinstance(value, TensorType):
        yield from (n for n in value.shape if isinstance(n, OpenSize))
    elif isinstance(value, RecordType):
        for _, field in value.fields:
            yield from _sizes(field)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _sizes(part)
    elif isinstance(value, ClosedGraph):
        for part in _parts([value.graph], value.graph.cases):
            yield from _sizes(part)
    elif isinstance(value, Case):
        yield from _sizes((value.operands, value.results, tuple(vars(value.attrs).values())))
    elif hasattr(value, "_layout"):  # attrs within attrs
        yield from _sizes(tuple(vars(value).values()))


def _names(parts: Iterable[object], place: Any) -> dict[str, Name]:
    names: dict[str, Name] = {}
    for part in parts:
        for size in _sizes(part):
            from tidu_cli.graph.sizes.algebra import names_of
            from tidu_cli.graph.sizes.reading import MAX_NAMES

            for name in names_of(size):
                if len(names) > MAX_NAMES:
                    raise TransformError(f"{place()}: more than {MAX_NAMES} names of sizes; the most are {MAX_NAMES}")
                if names.setdefault(name.text, name) != name:
                    raise TransformError(f"{place()}: the size {name.text} has two different bounds; give one of them another name")
    return names


def told_apart(a: Type, b: Type) -> tuple[str, str]:
    """The texts of two types that differ; where these are the same, with the bounds of the names in them."""
    return (str(a), str(b)) if str(a) != str(b) else (_with_bounds(a), _with_bounds(b))


def _with_bounds(type_: Type) -> str:
    from tidu_cli.graph.sizes.algebra import names_of
    from tidu_cli.graph.sizes.names import bounds_in_words

    names = dict.fromkeys(name for size in _sizes(type_) for name in names_of(size))
    return f"{type_} ({', '.join(f'{name.text} {bounds_in_words(name)}' for name in names)})"


def mismatch(first: TensorType, k: int, other: TensorType, way_out: str) -> str:
    """What is wrong with operands 0 and k of these types, and what to use, where it is not that open sizes have two names."""
    if (first.dtype, first.rank) == (other.dtype, other.rank) and has_open_size((first, other)):
        way_out = "one name for sizes that are the same"
    one, two = told_apart(first, other)
    return f"type mismatch: input 0 is {one}, input {k} is {two}; use {way_out}"


def ways_to_agree(a: Type, b: Type) -> list[object]:
    """By what the first sizes that differ of two types become one, as parts of the end of a message; none of types without any."""
    if not (isinstance(a, TensorType) and isinstance(b, TensorType) and a.dtype == b.dtype and a.rank == b.rank):
        return []
    first = next((pair for pair in zip(a.shape, b.shape, strict=True) if pair[0] != pair[1]), None)
    if first is None or not has_open_size(first):
        return []
    from tidu_cli.graph.sizes.algebra import names_of, way_to_fix

    one, other = map(str, first)
    if one == other:
        return ["; give the names in it the same bounds in both, or a number: ", way_to_fix(next(names_of(first[0])).text)]
    name, size = (other, first[0]) if isinstance(first[1], OpenSize) and other.isidentifier() else (one, first[1])
    return [" (", way_to_fix(name, size), " makes them one)"] if name.isidentifier() else []


def without_use(document: Document, names: Collection[str]) -> tuple[str, ...]:
    """The note on bounds of names that the document does not have: perhaps another name was meant."""
    if not names:
        return ()
    from tidu_cli.graph.select import listed

    known = listed(sorted(open_names(document)))
    return (f"sizes: no type or attr has the size {listed(sorted(names))} (open sizes: {known})",)


def unequal(problem: str, a: TensorType, b: TensorType) -> TypeRuleError:
    """The error of two types that have different numbers of elements, with the ways to make these equal where sizes are open."""
    if not has_open_size((a, b)):
        return TypeRuleError(problem)
    from tidu_cli.graph.sizes.algebra import undecided, way_to_fix
    from tidu_cli.graph.sizes.names import bounds_by_which, first_by, names_in
    from tidu_cli.graph.sizes.polynomials import bounds

    low, high = bounds(a.size - b.size)
    if low > 0 or high < 0:
        return TypeRuleError(problem)
    same = a.size, b.size
    names, pairs = names_in(same), [pair for pair in zip(a.shape, b.shape, strict=False) if pair[0] != pair[1]]
    if len(names) == 1 and bounds_by_which(None, same) is None and (number := first_by(names[0], same)) is not None:
        return TypeRuleError(problem, " (", way_to_fix(names[0].text, number), " makes them one)")
    if len(names) > 1 and len(pairs) == 1 and not {*names_in(pairs[0][:1])} & {*names_in(pairs[0][1:])}:
        return TypeRuleError(problem, *ways_to_agree(a, b))
    return undecided(problem, *same, same=same)
