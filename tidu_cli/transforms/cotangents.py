"""The cotangents of the values of a linear graph while it is transposed: dense ones, and reads of few elements that wait.

A node that reads few elements of an array (`tidu_cli.primitives.scattered`) contributes no array of zeros with a few cotangents
in it: its contribution waits until the cotangent of the array is needed, until a dense contribution comes, or until as many
elements wait as the array has. Then all that wait are added at once. So each element that is read costs a constant, and
contributions are still added in the order in which they arose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tidu_cli.graph.graph import Case, column
from tidu_cli.graph.types import TensorType
from tidu_cli.primitives.contract import PrimitiveSet, Types
from tidu_cli.primitives.scattered import merging_template, operand_type, positions_template
from tidu_cli.primitives.trace import Template
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


class Cotangents:
    """The cotangent of each of a graph's local values, accumulated with the set's `add`.

    `dense` holds their handles, 0 for zero, without what waits. `contribution` gives the dense contribution of a single read.
    """

    def __init__(
        self, n_values: int, stamper: Stamper, primitives: PrimitiveSet, contribution: Callable[[Read], int | None]
    ) -> None:
        self.dense = column([0]) * n_values
        self.stamper = stamper
        self.primitives = primitives
        self.contribution = contribution
        self.waiting: dict[int, _Waiting] = {}
        self._add_of_type: dict[TensorType | None, int] = {}
        self._positions: dict[int, Template] = {}
        self._merging: dict[tuple[TensorType, Types, bool], Template] = {}

    def add(self, value: int, contribution: int, type_: TensorType | None) -> None:
        """Add a dense contribution to the cotangent of a value of this type."""
        if value in self.waiting:
            self.settle(value)
        self._accumulate(value, contribution, type_)

    def add_read(self, value: int, read: Read) -> None:
        """Add the contribution of a node that reads few elements of a value."""
        waiting = self.waiting.setdefault(value, _Waiting())
        waiting.reads.append(read)
        case = self._case(read)
        waiting.n_elements += case.results[0].size
        if waiting.n_elements >= operand_type(case).size:
            self.settle(value)

    def settle(self, value: int) -> None:
        """Add what waits for a value to its dense cotangent."""
        reads = self.waiting.pop(value).reads
        type_ = operand_type(self._case(reads[0]))
        if len(reads) == 1:
            alone = self.contribution(reads[0])
            if alone is not None:
                self._accumulate(value, alone, type_)
            return
        dense = self.dense[value]
        values, positions = [read.cotangent for read in reads], [self._positions_of(read) for read in reads]
        template = self._merging_template(type_, tuple(self._case(read).results[0] for read in reads), onto=dense != 0)
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

    def _accumulate(self, value: int, contribution: int, type_: TensorType | None) -> None:
        dense = self.dense
        if dense[value] == 0:
            dense[value] = contribution
            return
        linear, primitives = self.stamper.linear, self.primitives
        code = self._add_of_type.get(type_)
        if code is None:
            attrs = primitives.parse_attrs(primitives.add, {})
            case = primitives.case(primitives.add, attrs, (True, True), [type_, type_])
            code = self._add_of_type[type_] = linear.cases.intern(case)
        dense[value] = -1 - linear.append(code, (-1 - dense[value], -1 - contribution))
