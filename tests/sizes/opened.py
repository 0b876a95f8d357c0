"""Examples of primitives with an open size in the place of one of their sizes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from typing import Any

from tidu_cli.errors import TiduError
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Case, CaseTable, Document, column
from tidu_cli.graph.open_sizes import has_open_size, open_names
from tidu_cli.graph.sizes.names import substituted
from tidu_cli.graph.sizes.reading import parse_size
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN, vocabulary
from tidu_cli.runtime.sizing import specialized

COMBINATIONS = 200
"""As many readings of the numbers of attrs are tried."""


def opened(case: Case) -> Iterator[tuple[Case, int]]:
    """Cases that are this one where N is a number, with that number: for each size of operands and the result."""
    sizes = {n for t in (*case.operands, *case.results) if isinstance(t, TensorType) for n in t.shape if n > 0}
    for number in sorted(sizes):
        found = next(filter(None, (_case(case, number, attrs) for attrs in _readings(case, number))), None)
        if found is not None:
            yield found, number


def opened_document(document: Document, number: int) -> Document | None:
    """A document of one graph, with N for this number in the types of its inputs and whatever follows from them.

    None where some node takes no such sizes: it may be that its attrs can be read in several ways, and only the first is tried.
    """
    graph = document.head
    inputs = [replace(i, type=_opened_type(i.type, number)) for i in graph.inputs]
    table = CaseTable(document.cases.vocabulary)
    types = [i.type for i in inputs]
    codes = []
    for case, args in graph.nodes():
        operands = [types[a] for a in args]
        attempts = (_made(case, operands, attrs) for attrs in _readings(case, number))
        made = next((c for c in attempts if c is not None and _fixed(c.results, number) == case.results), None)
        if made is None:
            return None
        codes.append(table.intern(made))
        types += made.results
    outputs = [replace(o, type=types[o.value]) for o in graph.outputs]
    changed = replace(graph, inputs=tuple(inputs), outputs=tuple(outputs), cases=table, code=column(codes))
    return Document((changed,), table)


def _opened_type(type_: Any, number: int) -> Any:
    if not isinstance(type_, TensorType):
        return type_
    return type_.with_shape(tuple([parse_size("N") if n == number else n for n in type_.shape]))


def _fixed(types: Any, number: int) -> Any:
    return tuple([t.with_shape(tuple([substituted(n, {"N": number}) for n in t.shape])) for t in types])


def _readings(case: Case, number: int) -> Iterator[Any]:
    """Attrs in which some numbers are expressions of N: those first that have the most."""
    data = case.attrs.to_data(binary=False)
    places = list(_numbers(data, ()))
    choices = [_expressions(value, number) for _, value in places]
    for chosen in islice(product(*choices), COMBINATIONS):
        yield _put(data, dict(zip([place for place, _ in places], chosen, strict=True)), ())


def _expressions(value: int, number: int) -> list[Any]:
    least = [] if value < number - 1 or value > number + 3 else [f"N{value - number:+d}" if value != number else "N"]
    multiple = [f"{value // number}*N"] if value > number > 1 and value % number == 0 else []
    return [*multiple, *least, value]


def _numbers(data: Any, place: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], int]]:
    if type(data) is int:
        yield place, data
    elif isinstance(data, list | dict) and not (isinstance(data, dict) and "nodes" in data):
        for key, part in enumerate(data) if isinstance(data, list) else data.items():
            yield from _numbers(part, (*place, key))


def _put(data: Any, values: dict[tuple[Any, ...], Any], place: tuple[Any, ...]) -> Any:
    if place in values:
        return values[place]
    if isinstance(data, list):
        return [_put(part, values, (*place, k)) for k, part in enumerate(data)]
    if isinstance(data, dict) and "nodes" not in data:
        return {key: _put(part, values, (*place, key)) for key, part in data.items()}
    return data


def _case(case: Case, number: int, attrs: Any) -> Case | None:
    made = _made(case, [_opened_type(t, number) for t in case.operands], attrs)
    return made if made is not None and has_open_size((*made.operands, *made.results)) else None


def _made(case: Case, operands: Any, attrs: Any) -> Case | None:
    try:
        return BUILTIN.case(case.op, BUILTIN.parse_attrs(case.op, attrs), case.mask, operands)
    except TiduError:
        return None


def of_fixed_sizes(document: Document) -> Document:
    """A document with 4 for each open size."""
    sizes = dict.fromkeys(open_names(document), 4)
    return specialized(document, sizes, vocabulary(document.cases)) if sizes else document


def opened_documents(document: Document) -> list[tuple[Document, int]]:
    """A document with N for each number in the shapes of its inputs, and the number; those whose nodes all take N."""
    sizes = {n for i in document.free_inputs if isinstance(i.type, TensorType) for n in i.type.shape}
    made = [(opened_document(document, n), n) for n in sorted(sizes)]
    return [(one, n) for one, n in made if one is not None and open_names(one)]
