"""The vocabulary of documents: that of several together, and record types, which are part of it by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from importlib import import_module
from itertools import chain
from types import ModuleType

from tidu_cli.errors import TypeRuleError
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.graph import CaseTable, Document
from tidu_cli.graph.types import RecordType, Type
from tidu_cli.lax.index import FAMILIES as FAMILIES
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.recording.conversion import view_data
from tidu_cli.rules.vocabulary import Definition, PrimitiveSet

# The built-in set of primitives: JAX lax's vocabulary, StableHLO's semantics.
#
# A document uses few families, and so a command imports few: which one has an op is written down in `index`, by `make generated`.


class _OnDemand(Mapping[str, Primitive]):
    """Primitives by name; a family is imported when one of its ops is asked for."""

    def __init__(self) -> None:
        self._family = {op: family for family, ops in FAMILIES.items() for op in ops.split()}
        self._loaded: dict[str, Primitive] = {}

    def __getitem__(self, op: str) -> Primitive:
        primitive = self._loaded.get(op)
        if primitive is None:
            self._loaded |= {p.name: p for p in family(self._family[op]).PRIMITIVES}
            primitive = self._loaded[op]
        return primitive

    def __contains__(self, op: object) -> bool:
        return op in self._family

    def __iter__(self) -> Iterator[str]:
        return iter(self._family)

    def __len__(self) -> int:
        return len(self._family)


def family(name: str) -> ModuleType:
    """The module of a family: one of this package, or of loops and branches, which the transforms derive, above it."""
    return import_module(f"tidu_cli.{name}" if name.startswith("control_flow.") else f"tidu_cli.lax.{name}")


BUILTIN = PrimitiveSet(_OnDemand())
"""Every primitive that tidu comes with. Cotangents accumulate with `add`."""


def vocabulary(cases: CaseTable) -> PrimitiveSet:
    """The set of primitives that a table's cases are of."""
    return cases.vocabulary if isinstance(cases.vocabulary, PrimitiveSet) else BUILTIN


def used_definitions(cases: CaseTable, codes: Iterable[int]) -> list[Definition]:
    """The definitions of custom operations in these cases, and in the graphs of those; and all that are the document's own."""
    primitives = vocabulary(cases)
    if not primitives.definitions:
        return []
    own = [d.name for d in primitives.definitions if not d.origin]
    return primitives.reached_from([case.op for case in cases_within(map(cases.cases.__getitem__, set(codes)))] + own)


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
    libraries = {name: library for name, library in {**origins, **base.origins}.items() if name not in owned}
    return replace(base, records={**base.records, **records}, origins=libraries)


def spelled_out(type_: RecordType) -> str:
    """A record type by its fields, and not by its name."""
    return str(replace(type_, name="", tangent=False))


def _needed_names(document: Document, primitives: PrimitiveSet) -> set[str]:
    """The names of the record types that a document declares or uses, in types and attrs, and of those that these are made of."""
    from tidu_cli.graph.text import names_in  # here, as most documents have none

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
