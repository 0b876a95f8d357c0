"""What the graphs of a document share while it is read: types, rows and cases by number, and detached values.

Most nodes of a large graph are alike, so everything that is costly is found once and looked up after: the *row* of a node
(op, attrs, role, declared types) by what the file says, and its case by its row and its operands' types, as small integers.
"""

from __future__ import annotations

import marshal
import re
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from tidu_cli.custom.packages import refuse_clash
from tidu_cli.errors import DocumentError, Remedy, TiduError, UnknownNameError
from tidu_cli.formats.files import shown
from tidu_cli.formats.shape import TypeReader
from tidu_cli.frozen import Frozen
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import CaseTable, Column, Detached, column
from tidu_cli.graph.keys import DIGEST
from tidu_cli.graph.types import Type
from tidu_cli.rules.contract import Attrs
from tidu_cli.rules.recording.linearity import zeros_due
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.watching import Watched

Node = Mapping[str, Any]
"""A listed node, or a row of a table, as the file has it."""

UNKNOWN = -1
"""The type number of a detached value whose type is not known yet."""

GraphReader = Callable[[object, str, "Numbering"], ClosedGraph]
"""Reads a graph within a node from plain data, its place for messages, and the numbering of the graph around it."""


class Row(Frozen):
    """What the file says of a node, but for its inputs."""

    op: str
    attrs: Attrs
    mask: tuple[bool, ...] | None
    declared: tuple[Type, ...] | None


class Numbering:
    """What the graphs of a document share while it is read: types, rows and cases by number, and detached values."""

    def __init__(
        self, primitives: PrimitiveSet, read_type: TypeReader, watched: Watched, read_closed: GraphReader, depth: int = 0
    ) -> None:
        self.primitives = primitives
        self.read_type = read_type
        self.read_closed = read_closed
        self.depth = depth  # how many nodes its graphs stand within
        self.watched = watched  # by those who want to know how many of the listed nodes are read
        self.cases = CaseTable(primitives)
        self.detached: list[Detached] = []
        self.types: list[Type] = []
        self.rows: list[Row] = []
        self.results: list[tuple[int, ...]] = []  # of each case, the type numbers of its results
        self.value_types: list[Column[int]] = []  # of each graph that was read, the type numbers of its values
        self.case_of: dict[tuple[int, ...], int] = {}  # from a row and operand types, all known
        self.zeros_due: dict[int, tuple[int, ...]] = {}  # of each case that has such, the operands that must be structural zeros
        self._type_number: dict[Type, int] = {}
        self._row_number: dict[object, int] = {}
        self._refused: dict[object, TiduError] = {}  # rows: graphs in them are read once, though what is wrong is read twice
        self._detached_number: dict[str, int] = {}

    def type_number(self, type_: Type) -> int:
        """The number of a type, a new one if it is new."""
        number = self._type_number.setdefault(type_, len(self.types))
        if number == len(self.types):
            self.types.append(type_)
        return number

    def detached_number(self, digest: str) -> int:
        """The number of a detached value. Raises DocumentError if the digest is malformed."""
        if not re.fullmatch(DIGEST, digest):
            raise DocumentError(f"malformed reference {shown(digest)}: a digest is 'sha256:' and 64 digits of 0-9a-f")
        number = self._detached_number.setdefault(digest, len(self.detached))
        if number == len(self.detached):
            self.detached.append(Detached(digest, None))
        return number

    def row(self, node: Node) -> int:
        """The number of a node's row. Raises UnknownNameError, TypeRuleError and PluginError."""
        op, attrs, role, declared = node["op"], node.get("attrs"), node.get("role"), node.get("types")
        mask = tuple(role["linearized"]["active_mask"]) if role else None
        types = tuple(declared) if declared is not None else None
        # marshal is the fastest way to a hashable form that tells 1 from 1.0 and true. Version 2 depends on values only.
        try:
            key = op, marshal.dumps(attrs, 2) if attrs else None, mask, types
        except ValueError:
            raise DocumentError("attrs nest too deeply, or hold a value that JSON does not have") from None
        number = self._row_number.get(key)
        if number is None:
            if key in self._refused:
                raise self._refused[key]
            try:
                row = Row(op, self.attrs(op, attrs or {}), mask, None if types is None else tuple(map(self.read_type, types)))
            except TiduError as error:
                self._refused[key] = error
                raise
            number = self._row_number[key] = len(self.rows)
            self.rows.append(row)
        return number

    def attrs(self, op: str, attrs: Mapping[str, Any]) -> Attrs:
        """Attrs from their file form, with the graphs in them. Raises TiduError."""
        refuse_clash(op, self.primitives.plugins)
        try:
            return self.primitives.parse_attrs(op, self._with_closed(op, attrs))
        except UnknownNameError as error:
            way = Remedy("ops", "FILE", command="convert", python="load(file, ops=FILE)")
            raise UnknownNameError(f"{str(error)[:-1]}; ", way, " brings those of a library)") from None

    def _with_closed(self, op: str, attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Attrs with the graphs in them read."""
        graphs = dict[str, Any]()
        for name in self.primitives[op].domain.attrs.graphs:
            value = attrs.get(name)
            if isinstance(value, list):
                graphs[name] = tuple([self.read_closed(g, f", {name}[{k}]", self) for k, g in enumerate(value)])
            elif value is not None:
                graphs[name] = self.read_closed(value, f", {name}", self)
        return {**attrs, **graphs} if graphs else attrs

    def case(self, row: int, operands: Sequence[int]) -> int:
        """The number of the case of a row with operands of these type numbers, found and remembered."""
        says = self.rows[row]
        types = [None if t == UNKNOWN else self.types[t] for t in operands]
        case = self.primitives.case(says.op, says.attrs, says.mask, types, says.declared)
        due = zeros_due(self.primitives, case) if says.mask is not None else ()  # before it is known: what is refused is read again
        number = self.cases.intern(case)
        if number == len(self.results):
            self.results.append(tuple(map(self.type_number, case.results)))
            if due:
                self.zeros_due[number] = due
        if UNKNOWN not in operands:  # else the detached operands of each such node have yet to learn their types
            self.case_of[row, *operands] = number
        return number


# The columns of packed nodes in plain data: as files have them, or compact, as they are read from msgpack.
#
# A compact column of integers is an `array` in the place of the bytes of its `data`; compact externals are `Pairs` in the place
# of a list of lists. There may be millions of either, for which Python objects would take ten times the memory.


TYPECODES = {"i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I"}
"""The typecodes of arrays for the dtypes of columns in msgpack."""


class Pairs(Sequence[list[int]]):
    """A list of pairs of integers, as two columns."""

    def __init__(self) -> None:
        self.first = column()
        self.second = column()

    @classmethod
    def of(cls, entries: Sequence[object]) -> Pairs | None:
        """The same entries; None if they are not all pairs of integers of 32 bits."""
        if isinstance(entries, Pairs):
            return entries
        pairs = cls()
        return pairs if pairs.take(entries) else None

    def take(self, entries: Sequence[object]) -> bool:
        """Append these if they are all pairs of integers of 32 bits. Whether they are."""
        if not {list}.issuperset(map(type, entries)) or not {2}.issuperset(map(len, entries)):  # type: ignore[arg-type]
            return False
        flat: list[Any] = list(chain.from_iterable(entries))  # type: ignore[arg-type]
        if not {int}.issuperset(map(type, flat)):
            return False
        try:
            values = column(flat)
        except OverflowError:
            return False
        self.first.extend(values[::2])
        self.second.extend(values[1::2])
        return True

    def __len__(self) -> int:
        return len(self.first)

    def __iter__(self) -> Iterator[list[int]]:
        return map(list, zip(self.first, self.second, strict=True))

    def __getitem__(self, index: Any) -> Any:
        """The pair at an index."""
        return [self.first[index], self.second[index]]


def integers(field: list[object] | dict[str, Any], name: str) -> Column[int]:
    """A column of integers from either file form. Raises DocumentError if an entry is no integer or takes more than 32 bits."""
    if isinstance(field, list):
        if not {int}.issuperset(map(type, field)):
            wrong = next(i for i, x in enumerate(field) if type(x) is not int)
            raise DocumentError(f"{name}: entry {wrong} is not an integer")
        values: array[int] | list[int] = field  # type: ignore[assignment]
    else:
        values = _array(field, name)
        if values.typecode == "i":
            return values
    try:
        return column(values)
    except OverflowError:
        raise DocumentError(f"{name}: an entry is out of range; each takes 32 bits") from None


def _array(field: dict[str, Any], name: str) -> array[int]:
    data = field["data"]
    if isinstance(data, array):
        values = data
    else:
        values = array(TYPECODES[field["dtype"]])
        if len(data) % values.itemsize:
            raise DocumentError(f"{name}: {len(data)} bytes are not a whole number of {field['dtype']}")
        values.frombytes(data)
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values
