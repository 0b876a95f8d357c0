"""The cotangents of the values of a linear graph while it is transposed: dense ones, and contributions to parts, which wait.

A node that reads few elements of an array (`tidu_cli.rules.scattered`) contributes no array of zeros with a few cotangents
in it: its contribution waits until the cotangent of the array is needed, until a dense contribution comes, or until as many
elements wait as the array has. Then all that wait are added at once. So each element that is read costs a constant, and
contributions are still added in the order in which they arose.

Likewise a node that takes a field of a record contributes to that field alone. What comes to a field is added up, and when the
cotangent of the record is needed, one record is made of the fields that there are: the others are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from tidu_cli.graph.graph import Case, column
from tidu_cli.graph.types import RecordType, TensorType, Type
from tidu_cli.rules.contract import Types
from tidu_cli.rules.recording import Template
from tidu_cli.rules.scattered import merging_template, operand_type, positions_template
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.stamp import Stamper


@dataclass(frozen=True, slots=True)
class Read:
    """A node of the linear graph that reads few elements: its number, its case's, its operands' handles and its cotangent's."""

    node: int
    code: int
    operands: Sequence[int]
    cotangent: int


@dataclass(slots=True)
class _Waiting:
    """Reads of one array, and the number of elements that they read together."""

    reads: list[Read] = field(default_factory=list)
    n_elements: int = 0


@dataclass(slots=True)
class _Fields:
    """The cotangents of fields of a record of this type, by name."""

    type: RecordType
    cotangents: dict[str, int] = field(default_factory=dict)


class Cotangents:
    """The cotangent of each of a graph's local values, accumulated with the set's `add`.

    `dense` holds their handles, 0 for zero, without what waits. `contribution` gives the dense contribution of a single read.
    `some_are_dead` says that records were made of whose fields others have been made since.
    """

    def __init__(
        self, n_values: int, stamper: Stamper, primitives: PrimitiveSet, contribution: Callable[[Read], int | None]
    ) -> None:
        self.dense = column([0]) * n_values
        self.stamper = stamper
        self.primitives = primitives
        self.contribution = contribution
        self.waiting: dict[int, _Waiting | _Fields] = {}
        self.some_are_dead = False
        self._add_of_type: dict[Type | None, int] = {}
        self._positions: dict[int, Template] = {}
        self._merging: dict[tuple[TensorType, Types, bool], Template] = {}

    def add(self, value: int, contribution: int, type_: Type | None) -> None:
        """Add a dense contribution to the cotangent of a value of this type."""
        if value in self.waiting:
            self.settle(value)
        self.dense[value] = self._sum(self.dense[value], contribution, type_)

    def add_read(self, value: int, read: Read) -> None:
        """Add the contribution of a node that reads few elements of a value."""
        waiting = self.waiting.setdefault(value, _Waiting())
        assert isinstance(waiting, _Waiting)
        waiting.reads.append(read)
        case = self._case(read)
        waiting.n_elements += case.results[0].size
        if waiting.n_elements >= operand_type(case).size:
            self.settle(value)

    def add_field(self, value: int, name: str, contribution: int, type_: RecordType) -> None:
        """Add a contribution to a field of a value of this type."""
        waiting = self.waiting.setdefault(value, _Fields(type_))
        assert isinstance(waiting, _Fields)
        waiting.cotangents[name] = self._sum(waiting.cotangents.get(name, 0), contribution, type_.get(name))

    def settle(self, value: int) -> None:
        """Add what waits for a value to its dense cotangent."""
        waiting = self.waiting.pop(value)
        if isinstance(waiting, _Fields):
            self.dense[value] = self._sum(self.dense[value], self._record(waiting), waiting.type)
        else:
            self._settle_reads(value, waiting.reads)

    def _record(self, waiting: _Fields) -> int:
        linear, primitives, type_ = self.stamper.linear, self.primitives, waiting.type
        names = tuple(name for name in type_.names if name in waiting.cotangents)
        fields = [(waiting.cotangents[name], type_.get(name)) for name in names]
        attrs = primitives.parse_attrs(primitives.record, {"type": type_, "fields": None if names == type_.names else names})
        case = primitives.case(primitives.record, attrs, (True,) * len(names), [t for _, t in fields])
        made = -1 - linear.append(linear.cases.intern(case), [-1 - handle for handle, _ in fields])
        self.stamper.fields[made] = waiting.cotangents
        return made

    def _settle_reads(self, value: int, reads: Sequence[Read]) -> None:
        type_ = operand_type(self._case(reads[0]))
        if len(reads) == 1:
            alone = self.contribution(reads[0])
            if alone is not None:
                self.dense[value] = self._sum(self.dense[value], alone, type_)
            return
        dense = self.dense[value]
        values, positions = [read.cotangent for read in reads], [self._positions_of(read) for read in reads]
        parts = cast(Types, tuple(self._case(read).results[0] for read in reads))
        template = self._merging_template(type_, parts, onto=dense != 0)
        environment = self.stamper.stamp(template, [*([dense] if dense else ()), *values, *positions])
        (slot,) = template.results
        assert slot is not None
        self.dense[value] = environment[slot]

    def _case(self, read: Read) -> Case:
        return self.stamper.linear.cases[read.code]

    def _positions_of(self, read: Read) -> int:
        template = self._positions.get(read.code)
        if template is None:
            template = self._positions[read.code] = positions_template(self.primitives, self.stamper.linear.cases, read.code)
        (slot,) = template.results
        assert slot is not None
        return self.stamper.stamp(template, read.operands)[slot]

    def _merging_template(self, type_: TensorType, parts: Types, *, onto: bool) -> Template:
        key = (type_, parts, onto)
        if key not in self._merging:
            self._merging[key] = merging_template(self.primitives, self.stamper.linear.cases, type_, parts, onto=onto)
        return self._merging[key]

    def _sum(self, one: int, other: int, type_: Type | None) -> int:
        """The handle of the sum of two cotangents of this type, of which the first may be zero."""
        if one == 0:
            return other
        fields = self.stamper.fields
        if isinstance(type_, RecordType) and one in fields and other in fields:
            merged = dict(fields[one])
            for name, contribution in fields[other].items():
                merged[name] = self._sum(merged.get(name, 0), contribution, type_.get(name))
            self.some_are_dead = True
            return self._record(_Fields(type_, merged))
        linear, primitives = self.stamper.linear, self.primitives
        code = self._add_of_type.get(type_)
        if code is None:
            attrs = primitives.parse_attrs(primitives.add, {})
            case = primitives.case(primitives.add, attrs, (True, True), [type_, type_])
            code = self._add_of_type[type_] = linear.cases.intern(case)
        return -1 - linear.append(code, (-1 - one, -1 - other))
