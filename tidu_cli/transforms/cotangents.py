"""The cotangents of a linear graph's values while it is transposed: contributions are added up in the order in which they arise.

A node that reads few elements of an array (`rules/recording/functions.py`) contributes no array of zeros with a few cotangents
in it: its contribution waits until the cotangent of the array is needed, until a contribution to the whole comes, or until as many
elements wait as the array has. So each element that is read costs a constant, and contributions are still added in order.

Likewise a node that takes a field of a record contributes to that field alone. What comes to a field is added up, and when the
cotangent of the record is needed, one record is made of the fields that there are: the others are zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import cast

from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import CaseTable, Graph
from tidu_cli.graph.types import RecordType, Type
from tidu_cli.rules.recording.functions import merging_template, operand_type, positions_template, reads_few
from tidu_cli.rules.recording.templates import Templates
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.stamp import Stamper


def addition(primitives: PrimitiveSet, cases: CaseTable, type_: Type | None) -> int:
    """The case that adds two cotangents of this type."""
    attrs = primitives.parse_attrs(primitives.add, {})
    return cases.intern(primitives.case(primitives.add, attrs, (True, True), [type_, type_]))


_ELEMENTS = ""  # no field has this name


class _Read(Frozen):
    """A node that reads few elements: its number, its case's, its operands' handles and its cotangent's."""

    node: int
    code: int
    operands: Sequence[int]
    cotangent: int


@dataclass(slots=True)
class _Parts:
    """What waits for a value: of an array reads of elements, and how many elements they read; of a record cotangents of fields."""

    reads: list[_Read] = field(default_factory=list)
    n_elements: int = 0
    fields: dict[str, int] = field(default_factory=dict)


class Cotangents:
    """The cotangent of each local value of a linear graph, accumulated with the set's `add`. Handle 0 is zero.

    `templates` are those of the nodes' transpose rules, for reads of elements that are alone.
    """

    def __init__(self, head: Graph, stamper: Stamper, templates: Templates, primitives: PrimitiveSet) -> None:
        self.head = head
        self.stamper = stamper
        self.templates = templates
        self.primitives = primitives
        self.so_far = [0] * head.n_values
        self.waiting: dict[int, _Parts] = {}
        self._add_of_type: dict[int, tuple[Type | None, int]] = {}  # by id, as to hash a type takes long; it stays alive here
        self._positions = cache(partial(positions_template, primitives, head.cases))
        self._merging = cache(partial(merging_template, primitives, head.cases))

    def of(self, first: int, end: int) -> Sequence[int]:
        """The handles of the cotangents of the values from `first` to before `end`."""
        for value in range(first, end):
            self._settle(value)
        return self.so_far[first:end]

    def add(self, value: int, contribution: int, type_: Type | None) -> None:
        """Add a contribution to the cotangent of a value of this type."""
        if self.waiting:
            self._settle(value)
        so_far = self.so_far[value]
        self.so_far[value] = self._sum(so_far, contribution, type_) if so_far else contribution

    def wait(self, node: int, part: str, operands: Sequence[int], cotangent: int) -> None:
        """A node that reads this part of the value `operands[0]` contributes later."""
        code, whole, case = self.head.code[node], operands[0], self.head.case(node)
        parts = self.waiting.setdefault(whole, _Parts())
        if part == _ELEMENTS:
            parts.reads.append(_Read(node, code, operands, cotangent))
            parts.n_elements += case.results[0].size
            if parts.n_elements >= operand_type(case).size:
                self._settle(whole)
        else:
            parts.fields[part] = self._sum(parts.fields.get(part, 0), cotangent, case.results[0])

    def part_read(self, code: int) -> str | None:
        """What a node of this case reads of its operand: the field of this name, `_ELEMENTS`, or None for the whole."""
        case = self.head.cases[code]
        if reads_few(self.primitives, case):
            return _ELEMENTS
        takes = self.primitives[case.op].domain.takes
        return takes(case.attrs) if takes else None

    def _settle(self, value: int) -> None:
        """Add what waits for a value."""
        if value in self.waiting:
            parts, so_far = self.waiting.pop(value), self.so_far[value]
            if parts.reads:
                self.so_far[value] = self._with_elements(so_far, parts.reads)
            else:
                type_ = cast(RecordType, self.head.type_of(value))
                self.so_far[value] = self._sum(so_far, self._record(type_, parts.fields), type_)

    def _sum(self, one: int, other: int, type_: Type | None) -> int:
        """The handle of the sum of two cotangents of this type, of which the first may be zero."""
        if one == 0:
            return other
        fields = self.stamper.fields
        if fields and isinstance(type_, RecordType) and one in fields and other in fields:
            merged = dict(fields[one])
            for name, contribution in fields[other].items():
                merged[name] = self._sum(merged.get(name, 0), contribution, type_.get(name))
            return self._record(type_, merged)
        known = self._add_of_type.get(id(type_))
        if known is None:
            known = self._add_of_type[id(type_)] = type_, addition(self.primitives, self.head.cases, type_)
        target = self.stamper.linear
        return target.first + target.step * target.graph.append(known[1], (one, other))

    def _record(self, type_: RecordType, fields: Mapping[str, int]) -> int:
        """The handle of the record of this type with these cotangents; the other fields are zero."""
        linear, primitives = self.stamper.linear, self.primitives
        names = tuple(name for name in type_.names if name in fields)
        attrs = primitives.parse_attrs(primitives.record, {"type": type_, "fields": None if names == type_.names else names})
        case = primitives.case(primitives.record, attrs, (True,) * len(names), [type_.get(name) for name in names])
        made = linear.append(self.head.cases.intern(case), [fields[name] for name in names]).start
        self.stamper.fields[made] = dict(fields)
        return made

    def _with_elements(self, so_far: int, reads: Sequence[_Read]) -> int:
        """The handle of the sum of an array's cotangent so far and of what these reads contribute."""
        cases, (first, *others) = self.head.cases, reads
        type_ = operand_type(cases[first.code])
        if not others:
            key = first.code, True
            template = self.templates.get(key) or self.templates.record(self.head, first.node, key, (True,))
            alone = self.stamper.stamp(template, [*first.operands, first.cotangent])[0]
            return self._sum(so_far, alone, type_) if alone else so_far
        values = [read.cotangent for read in reads]
        positions = [self.stamper.stamp(self._positions(read.code), read.operands)[0] for read in reads]
        template = self._merging(type_, tuple(cases[read.code].results[0] for read in reads), onto=so_far != 0)
        return self.stamper.stamp(template, [*([so_far] if so_far else ()), *values, *positions])[0]
