"""The vocabulary of documents: that of several together, and record types, which are part of it by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from itertools import chain

from tidu_cli.errors import TypeRuleError
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import CaseTable, Document
from tidu_cli.graph.types import RecordType, Type
from tidu_cli.lax.builtin import used_definitions, vocabulary
from tidu_cli.rules.tangents.views import view_data
from tidu_cli.rules.vocabulary import PrimitiveSet


def joint_vocabulary(tables: Iterable[CaseTable]) -> PrimitiveSet:
    """The primitives and record types of several tables together. Raises TypeRuleError for two different ones of one name."""
    return reduce(_joined, map(vocabulary, tables))


def _joined(one: PrimitiveSet, other: PrimitiveSet) -> PrimitiveSet:
    if other.plugins:
        plugins = one.plugins | other.plugins
        one = replace(one, plugins=plugins, announced=other.announced, installed=other.installed)
    if other.records:
        one = with_records(one, other.records, other.origins)
    return other.extended(one, other.definitions)


def used_records(document: Document) -> list[RecordType]:
    """The record types of a document, in the order of declaration: those that it uses, and all that are its own."""
    primitives = vocabulary(document.cases)
    if not primitives.records:
        return []
    needed = _needed_names(document, primitives) if primitives.origins else primitives.records.keys()
    return [type_ for name, type_ in primitives.records.items() if name in needed]


def with_records(base: PrimitiveSet, records: Mapping[str, RecordType], origins: Mapping[str, str]) -> PrimitiveSet:
    """`base` with record types by name; `origins` names the libraries of those that are not a document's own.

    One that it has already, with the same fields, is no second one. Raises TypeRuleError for another of its name.
    """
    for name, type_ in records.items():
        known = base.records.get(name, type_)
        if known != type_:
            here, there = (of.get(name) for of in (origins, base.origins))
            here, there = (here or "the document", there or "the document") if here or there else ("one document", "another")
            if known.fields == type_.fields:
                raise TypeRuleError(f"type '{name}': {here} declares other views of it than {there}; rename one of them")
            raise TypeRuleError(
                f"type '{name}': {here} declares it as {spelled_out(type_)}, {there} as {spelled_out(known)}; rename one of them"
            )
    owned = {name for name in records if name not in origins}
    found = {name: library for name, library in {**origins, **base.origins}.items() if name not in owned}
    return replace(base, records={**base.records, **records}, origins=found)


def spelled_out(type_: RecordType) -> str:
    """A record type by its fields, and not by its name."""
    return str(replace(type_, name="", tangent=False))


def _needed_names(document: Document, primitives: PrimitiveSet) -> set[str]:
    """The names of the record types that a document declares or uses, in types and attrs, and of those that these are made of."""
    from tidu_cli.graph.text.types import names_in  # here, as most documents have none

    own = [name for name in primitives.records if name not in primitives.origins]
    waiting = [*own, *(name for text in _texts(document) for name in names_in(text))]
    needed: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in primitives.records and name not in needed:
            needed.add(name)
            record = primitives.records[name]
            texts = [*(str(field) for _, field in record.fields), *_strings([view_data(view) for view in record.views])]
            waiting += (inner for text in texts for inner in names_in(text))
    return needed


def _texts(document: Document) -> Iterator[str]:
    """What may name a type: types, and all text in attrs, of the document and of its own ops."""
    types: dict[Type, None] = {}
    used = {code for graph in document.graphs for code in graph.code}
    for graph in document.graphs:
        types |= dict.fromkeys(i.type for i in graph.inputs) | dict.fromkeys(o.type for o in graph.outputs)
    for code in used:
        case = document.cases[code]
        types |= dict.fromkeys(t for t in (*case.operands, *case.results) if t is not None)
        yield from _strings(case.attrs.to_data(binary=False))
    for definition in used_definitions(document.cases, used):
        yield from _strings(definition.to_data())
    yield from map(str, types)


def _strings(data: object) -> Iterable[str]:
    if isinstance(data, str):
        return [data]
    inner = data.values() if isinstance(data, Mapping) else data if isinstance(data, list | tuple) else ()
    return chain.from_iterable(map(_strings, inner))
