"""The built-in set of primitives: JAX lax's vocabulary, StableHLO's semantics.

A document uses few families, and so a command imports few: which one has an op is written down in `index`, by `make generated`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from types import ModuleType

from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.graph import CaseTable
from tidu_cli.lax.index import FAMILIES as FAMILIES
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.vocabulary import Definition, PrimitiveSet


class _OnDemand(Mapping[str, Primitive]):
    """Primitives by name; a family is imported when one of its ops is asked for."""

    def __init__(self) -> None:
        self._family = {op: family for family, ops in FAMILIES.items() for op in ops.split()}
        self._found: dict[str, Primitive] = {}

    def __getitem__(self, op: str) -> Primitive:
        found = self._found.get(op)
        if found is None:
            self._found |= {p.name: p for p in family(self._family[op]).PRIMITIVES}
            found = self._found[op]
        return found

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
