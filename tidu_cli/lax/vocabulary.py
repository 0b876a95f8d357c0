"""The vocabulary of documents: that of several together, and the record types that one needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

from tidu_cli.graph.graph import CaseTable, Document
from tidu_cli.graph.types import RecordType
from tidu_cli.lax.builtin import vocabulary
from tidu_cli.rules.vocabulary import PrimitiveSet


def joint_vocabulary(tables: Iterable[CaseTable]) -> PrimitiveSet:
    """The primitives and record types of several tables together. Raises TypeRuleError for two different ones of one name."""
    return reduce(_joined, map(vocabulary, tables))


def _joined(one: PrimitiveSet, other: PrimitiveSet) -> PrimitiveSet:
    if other.plugins:
        plugins = one.plugins | other.plugins
        one = replace(one, plugins=plugins, announced=other.announced, installed=other.installed)
    if other.records:
        from tidu_cli.lax.records.record_types import with_records

        one = with_records(one, other.records, other.origins)
    return other.extended(one, other.definitions)


def used_records(document: Document) -> list[RecordType]:
    """The record types of a document, in the order of declaration: those that it uses, and all that are its own."""
    primitives = vocabulary(document.cases)
    if not primitives.records:
        return []
    from tidu_cli.lax.records.record_types import needed_names

    needed = needed_names(document, primitives) if primitives.origins else primitives.records.keys()
    return [type_ for name, type_ in primitives.records.items() if name in needed]
