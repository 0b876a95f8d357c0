"""Nodes of a linear graph that read a part of a value: what they contribute to its cotangent waits, and is added all at once.

A node that reads few elements of an array (`tidu_cli.rules.recording.scattered`) contributes no array of zeros with a few
cotangents in it: its contribution waits until the cotangent of the array is needed, until a contribution to the whole comes, or
until as many elements wait as the array has. So each element that is read costs a constant, and contributions are still added in
the order in which they arose.

Likewise a node that takes a field of a record contributes to that field alone. What comes to a field is added up, and when the
cotangent of the record is needed, one record is made of the fields that there are: the others are zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from tidu_cli.graph.graph import Case, Graph
from tidu_cli.graph.types import RecordType, TensorType
from tidu_cli.rules.contract import Types
from tidu_cli.rules.recording.scattered import merging_template, operand_type, positions_template, reads_few
from tidu_cli.rules.recording.templates import Templates
from tidu_cli.rules.recording.trace import Template
from tidu_cli.transforms.cotangents import Cotangents


@dataclass(frozen=True, slots=True)
class _Read:
    """A node that reads few elements: its number, its case's, its operands' handles and its cotangent's."""

    node: int
    code: int
    operands: Sequence[int]
    cotangent: int


@dataclass(slots=True)
class _Elements:
    """Reads of elements of one array, and how many they are of together."""

    through: PartialReads
    reads: list[_Read] = field(default_factory=list)
    n_elements: int = 0

    def __call__(self, so_far: int) -> int:
        return self.through.added(so_far, self.reads)


@dataclass(slots=True)
class _Fields:
    """The cotangents of fields of a record of this type, by name."""

    through: PartialReads
    type: RecordType
    cotangents: dict[str, int] = field(default_factory=dict)

    def __call__(self, so_far: int) -> int:
        cotangents = self.through.cotangents
        return cotangents.sum(so_far, cotangents.record(self.type, self.cotangents), self.type)


class PartialReads:
    """Of a graph under transposition. `templates` are those of its nodes' transpose rules, for reads that are alone."""

    def __init__(self, cotangents: Cotangents, head: Graph, templates: Templates) -> None:
        self.cotangents = cotangents
        self.stamper, self.primitives = cotangents.stamper, cotangents.primitives
        self.head = head
        self.templates = templates
        self._kinds: dict[int, type[_Elements | _Fields] | None] = {}
        self._positions: dict[int, Template] = {}
        self._merging: dict[tuple[TensorType, Types, bool], Template] = {}

    def wait(self, node: int, arguments: Sequence[int], operands: Sequence[int], incoming: Sequence[int]) -> bool:
        """Whether the node, of which these are the arguments, their handles and its cotangents, reads a part; then that waits."""
        code = self.head.code[node]
        if code not in self._kinds:
            self._kinds[code] = self._kind(self.head.cases[code])
        kind = self._kinds[code]
        if kind is None:
            return False
        whole, cotangent = arguments[0], incoming[0]
        if kind is _Fields:
            self._add_field(whole, self.head.cases[code], cotangent)
        else:
            self._add_elements(whole, _Read(node, code, operands, cotangent))
        return True

    def _kind(self, case: Case) -> type[_Elements | _Fields] | None:
        if reads_few(self.primitives, case):
            return _Elements
        return None if self.primitives[case.op].domain.takes is None else _Fields

    def _add_field(self, whole: int, case: Case, cotangent: int) -> None:
        takes, type_ = self.primitives[case.op].domain.takes, case.operands[0]
        assert takes is not None and isinstance(type_, RecordType)
        name, fields = takes(case.attrs), self.cotangents.waiting.setdefault(whole, _Fields(self, type_))
        assert isinstance(fields, _Fields)
        fields.cotangents[name] = self.cotangents.sum(fields.cotangents.get(name, 0), cotangent, type_.get(name))

    def _add_elements(self, whole: int, read: _Read) -> None:
        waiting, case = self.cotangents.waiting.setdefault(whole, _Elements(self)), self.head.cases[read.code]
        assert isinstance(waiting, _Elements)
        waiting.reads.append(read)
        waiting.n_elements += case.results[0].size
        if waiting.n_elements >= operand_type(case).size:
            self.cotangents.settle(whole)

    def added(self, so_far: int, reads: Sequence[_Read]) -> int:
        """The handle of the sum of an array's cotangent so far and of what these reads contribute."""
        cases, (first, *others) = self.head.cases, reads
        type_ = operand_type(cases[first.code])
        if not others:
            key = first.code, True
            template = self.templates.get(key) or self.templates.record(self.head, first.node, key, (True,))
            alone = self.stamper.stamp(template, [*first.operands, first.cotangent])[0]
            return self.cotangents.sum(so_far, alone, type_) if alone else so_far
        values, positions = [read.cotangent for read in reads], [self._positions_of(read) for read in reads]
        parts = cast(Types, tuple(cases[read.code].results[0] for read in reads))
        kind = type_, parts, so_far != 0
        if kind not in self._merging:
            self._merging[kind] = merging_template(self.primitives, cases, type_, parts, onto=so_far != 0)
        return self.stamper.stamp(self._merging[kind], [*([so_far] if so_far else ()), *values, *positions])[0]

    def _positions_of(self, read: _Read) -> int:
        if read.code not in self._positions:
            self._positions[read.code] = positions_template(self.primitives, self.head.cases, read.code)
        return self.stamper.stamp(self._positions[read.code], read.operands)[0]
