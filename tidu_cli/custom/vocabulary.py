"""The primitives of a document: the built-in ones, and its own; and its record types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tidu_cli.custom.packages import named
from tidu_cli.graph.graph import CaseTable, Document
from tidu_cli.graph.types import RecordType
from tidu_cli.lax.builtin import BUILTIN, vocabulary
from tidu_cli.rules.vocabulary import PrimitiveSet

if TYPE_CHECKING:
    from tidu_cli.custom.definitions import OpDefinition


def known_with(plugins: Iterable[str] = ()) -> PrimitiveSet:
    """The built-in primitives, and those of these packages and of TIDU_PLUGINS. Raises UnknownNameError for one not installed."""
    found = named(plugins)
    return replace(BUILTIN, plugins=found) if found else BUILTIN


def joint_vocabulary(tables: Iterable[CaseTable]) -> PrimitiveSet:
    """The primitives and record types of several tables together. Raises TypeRuleError for two different ones of one name."""
    sets = [vocabulary(table) for table in tables]
    plugins = frozenset().union(*(primitives.plugins for primitives in sets))
    joint = replace(BUILTIN, plugins=plugins) if plugins else BUILTIN
    for primitives in sets:
        if primitives.records:
            from tidu_cli.lax.records.record_types import with_records

            joint = with_records(joint, primitives.records, primitives.origins)
    for primitives in sets:
        if primitives.definitions:
            from tidu_cli.custom.library import extended

            joint = extended(joint, primitives.definitions)
    return joint


def used_definitions(cases: CaseTable, codes: Iterable[int]) -> Iterator[OpDefinition]:
    """The definitions of own primitives in these cases, and in the graphs of those; and all that are the document's own."""
    primitives = vocabulary(cases)
    if not primitives.definitions:
        return
    yield from primitives.reached_from(
        [cases[code].op for code in codes] + [d.name for d in primitives.definitions if not d.origin]
    )


def used_records(document: Document) -> list[RecordType]:
    """The record types of a document, in the order of declaration: those that it uses, and all that are its own."""
    primitives = vocabulary(document.cases)
    if not primitives.records:
        return []
    from tidu_cli.lax.records.record_types import needed_names

    needed = needed_names(document, primitives) if primitives.origins else primitives.records.keys()
    return [type_ for name, type_ in primitives.records.items() if name in needed]
