"""The cotangents of a linear graph's values while it is transposed: contributions are added up in the order in which they arise.

What contributes to a part of a value may wait (`tidu_cli.transforms.partial_reads`) until the whole is needed, or a contribution to
the whole comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tidu_cli.graph.graph import column
from tidu_cli.graph.types import RecordType, Type
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.stamp import Stamper


class Cotangents:
    """The cotangent of each of a graph's local values, accumulated with the set's `add`.

    `waiting` are functions, from the handle of a value's cotangent so far to that of its sum with what waits; 0 is zero.
    """

    def __init__(self, n_values: int, stamper: Stamper, primitives: PrimitiveSet) -> None:
        self.stamper = stamper
        self.primitives = primitives
        self.waiting: dict[int, Callable[[int], int]] = {}
        self._so_far = column([0]) * n_values
        self._add_of_type: dict[Type | None, int] = {}

    def of(self, first: int, end: int) -> Sequence[int]:
        """The handles of the cotangents of the values from `first` to before `end`."""
        if self.waiting:
            for value in range(first, end):
                self.settle(value)
        return self._so_far[first:end]

    def add(self, value: int, contribution: int, type_: Type | None) -> None:
        """Add a contribution to the cotangent of a value of this type."""
        if self.waiting:
            self.settle(value)
        so_far = self._so_far[value]
        self._so_far[value] = self.sum(so_far, contribution, type_) if so_far else contribution

    def settle(self, value: int) -> None:
        """Add what waits for a value."""
        if value in self.waiting:
            self._so_far[value] = self.waiting.pop(value)(self._so_far[value])

    def sum(self, one: int, other: int, type_: Type | None) -> int:
        """The handle of the sum of two cotangents of this type, of which the first may be zero."""
        if one == 0:
            return other
        fields = self.stamper.fields
        if isinstance(type_, RecordType) and one in fields and other in fields:
            merged = dict(fields[one])
            for name, contribution in fields[other].items():
                merged[name] = self.sum(merged.get(name, 0), contribution, type_.get(name))
            return self.record(type_, merged)
        code = self._add_of_type.get(type_)
        if code is None:
            primitives, cases = self.primitives, self.stamper.linear.graph.cases
            attrs = primitives.parse_attrs(primitives.add, {})
            code = self._add_of_type[type_] = cases.intern(primitives.case(primitives.add, attrs, (True, True), [type_, type_]))
        return self.stamper.linear.append(code, (one, other)).start

    def record(self, type_: RecordType, fields: Mapping[str, int]) -> int:
        """The handle of the record of this type with these cotangents; the other fields are zero."""
        linear, primitives = self.stamper.linear, self.primitives
        names = tuple(name for name in type_.names if name in fields)
        attrs = primitives.parse_attrs(primitives.record, {"type": type_, "fields": None if names == type_.names else names})
        case = primitives.case(primitives.record, attrs, (True,) * len(names), [type_.get(name) for name in names])
        made = linear.append(linear.graph.cases.intern(case), [fields[name] for name in names]).start
        self.stamper.fields[made] = dict(fields)
        return made
