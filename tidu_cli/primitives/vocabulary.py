"""The primitives of a document: the built-in ones, and its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tidu_cli.graph.graph import CaseTable
from tidu_cli.primitives.builtin import BUILTIN
from tidu_cli.primitives.contract import PrimitiveSet

if TYPE_CHECKING:
    from tidu_cli.primitives.definitions import OpDefinition


def vocabulary(cases: CaseTable) -> PrimitiveSet:
    """The set of primitives that a table's cases are of."""
    return cases.vocabulary if isinstance(cases.vocabulary, PrimitiveSet) else BUILTIN


def joint_vocabulary(tables: Iterable[CaseTable]) -> PrimitiveSet:
    """The primitives of several tables together. Raises TypeRuleError for two different ones of one name."""
    joint = BUILTIN
    for table in tables:
        if definitions := vocabulary(table).definitions:
            from tidu_cli.primitives.own_set import extended

            joint = extended(joint, definitions)
    return joint


def used_definitions(cases: CaseTable, codes: Iterable[int]) -> Iterator[OpDefinition]:
    """The definitions of own primitives in these cases, and in the graphs of those; and all that are the document's own."""
    primitives = vocabulary(cases)
    if not primitives.definitions:
        return
    yield from primitives.reached_from(
        [cases[code].op for code in codes] + [d.name for d in primitives.definitions if not d.origin]
    )
