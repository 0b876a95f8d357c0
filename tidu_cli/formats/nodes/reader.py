"""The nodes of a graph, from their file form to columns: the loops that see every node, and infer its types.

Most nodes of a large graph are alike, so everything that is costly is found once and looked up after: the *row* of a node
(op, attrs, role, declared types) by what the file says, and its case by its row and its operands' types, as small integers.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import MutableSequence, Sequence
from itertools import accumulate, chain, repeat
from operator import lt
from typing import NamedTuple

from tidu_cli.custom.packages import refuse_clash
from tidu_cli.errors import DocumentError, TiduError, UnknownNameError
from tidu_cli.formats.json.listed import Listed
from tidu_cli.formats.nodes.columns import Pairs, integers
from tidu_cli.formats.shape.shapes import Node, Packed, TypeReader
from tidu_cli.formats.syntax import shown
from tidu_cli.graph.columns.large import is_large
from tidu_cli.graph.graph import CaseTable, Column, Detached, Externals, Graph, column
from tidu_cli.graph.types import Type
from tidu_cli.lax.builtin import BUILTIN
from tidu_cli.rules.contract import Attrs
from tidu_cli.rules.summands import zeros_due
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.watching import Watched

UNKNOWN = -1
"""The type number of a detached value whose type is not known yet."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Row(NamedTuple):
    """What the file says of a node, but for its inputs."""

    op: str
    attrs: Attrs
    mask: tuple[bool, ...] | None
    declared: tuple[Type, ...] | None


class Numbering:
    """What the graphs of a document share while it is read: types, rows and cases by number, and detached values."""

    def __init__(self, primitives: PrimitiveSet, read_type: TypeReader, watched: Watched) -> None:
        self.primitives = primitives
        self.read_type = read_type
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
        self._detached_number: dict[str, int] = {}

    def type_number(self, type_: Type) -> int:
        """The number of a type, a new one if it is new."""
        number = self._type_number.setdefault(type_, len(self.types))
        if number == len(self.types):
            self.types.append(type_)
        return number

    def detached_number(self, digest: str) -> int:
        """The number of a detached value. Raises DocumentError if the digest is malformed."""
        if not _DIGEST.fullmatch(digest):
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
            raise DocumentError("attrs nest too deeply, or hold what is no JSON value") from None
        number = self._row_number.get(key)
        if number is None:
            if op in BUILTIN.primitives:
                refuse_clash(op, self.primitives.plugins)
            try:
                parsed = self.primitives.parse_attrs(op, attrs or {})
            except UnknownNameError as error:
                raise UnknownNameError(f"{str(error)[:-1]}; tidu convert --ops FILE brings those of a library)") from None
            number = self._row_number[key] = len(self.rows)
            self.rows.append(Row(op, parsed, mask, None if types is None else tuple(map(self.read_type, types))))
        return number

    def case(self, row: int, operands: Sequence[int]) -> int:
        """The number of the case of a row with operands of these type numbers, found and remembered."""
        op, attrs, mask, declared = self.rows[row]
        types = [None if t == UNKNOWN else self.types[t] for t in operands]
        case = self.primitives.case(op, attrs, mask, types, declared)
        due = zeros_due(self.primitives, case) if mask is not None else ()  # before it is known: what is refused is read again
        number = self.cases.intern(case)
        if number == len(self.results):
            self.results.append(tuple(map(self.type_number, case.results)))
            if due:
                self.zeros_due[number] = due
        if UNKNOWN not in operands:  # else the detached operands of each such node have yet to learn their types
            self.case_of[row, *operands] = number
        return number


class NodeReader:
    """Reads the nodes of one graph. `types` has the type number of every value so far, `external_types` of every external."""

    def __init__(self, numbering: Numbering, earlier: Sequence[Graph], input_types: Sequence[Type]) -> None:
        self.numbering = numbering
        self.earlier = earlier
        self.types: MutableSequence[int] = [numbering.type_number(t) for t in input_types]
        self.code: Column[int] = column()
        self.args: Column[int] = column()
        self.external = Externals()
        self.external_types: MutableSequence[int] = []
        self._argument: dict[tuple[int, int], int] = {}

    def argument(self, reference: object) -> int:
        """The argument that a reference stands for. Raises DocumentError if it is malformed or names nothing."""
        if type(reference) is int:
            if 0 <= reference < len(self.types):
                return reference
            if reference < 0:
                raise DocumentError(f"malformed reference {shown(reference)}: local ids start at 0")
            raise DocumentError(f"refers to value {shown(reference)}, but only {len(self.types)} values come before it")
        return self.external_argument(reference)

    def external_argument(self, reference: object) -> int:
        """As `argument`, for the references of other graphs and detached ones only."""
        if isinstance(reference, str):
            return self._refer(Externals.DETACHED, self.numbering.detached_number(reference))
        if not isinstance(reference, list) or len(reference) != 2 or not all(type(part) is int for part in reference):
            raise DocumentError(f"malformed reference {shown(reference)}: it is a local id, [graph, value] or 'sha256:HEX'")
        g, v = reference
        check_value(g, v, self.earlier)
        return self._refer(g, v)

    def _refer(self, graph: int, value: int) -> int:
        if not self._argument and len(self.external):  # they were read all at once
            self._argument = {reference: -1 - k for k, reference in enumerate(self.external)}
        argument = self._argument.get((graph, value))
        if argument is None:
            argument = self._argument[graph, value] = -1 - len(self.external)
            self.external.graph.append(graph)
            self.external.value.append(value)
            known = self.numbering.detached[value].type if graph == Externals.DETACHED else self.earlier[graph].type_of(value)
            self.external_types.append(UNKNOWN if known is None else self.numbering.type_number(known))
        return argument

    def type_of(self, argument: int) -> Type | None:
        """The type of an argument; None for a detached value of unknown type."""
        number = self.types[argument] if argument >= 0 else self.external_types[~argument]
        return None if number == UNKNOWN else self.numbering.types[number]

    def adopt(self, argument: int, type_: Type) -> None:
        """Note the type of a detached value that was unknown."""
        k = self.external.value[~argument]
        self.external_types[~argument] = self.numbering.type_number(type_)
        self.numbering.detached[k] = Detached(self.numbering.detached[k].digest, type_)

    def read_listed(self, nodes: Sequence[Node]) -> None:
        """Read a list of nodes. Raises DocumentError that names the node."""
        types, external_types, append = self.types, self.external_types, self.args.append
        case_of, results, row_of, code = self.numbering.case_of, self.numbering.results, self.numbering.row, self.code
        plain: dict[str, int] = {}  # rows of nodes that say nothing but their op
        try:
            for node in self.numbering.watched(nodes):
                if len(node) == 2:
                    row = plain.get(node["op"])
                    if row is None:
                        row = plain[node["op"]] = row_of(node)
                else:
                    row = row_of(node)
                key, defined, start = [row], len(types), len(self.args)
                for k, reference in enumerate(node["inputs"]):
                    if type(reference) is int and 0 <= reference < defined:
                        key.append(types[reference])
                        append(reference)
                        continue
                    try:
                        argument = self.argument(reference)
                    except DocumentError as error:
                        raise DocumentError(f"input {k}: {error}") from None
                    key.append(external_types[~argument])
                    append(argument)
                number = case_of.get(tuple(key))
                if number is None:
                    number = self._new_case(row, self.args[start:])
                code.append(number)
                types += results[number]
        except TiduError as error:
            i = len(code)
            raise DocumentError(f"node {i} ({nodes[i]['op']}): {error}") from None

    def read_columns(self, nodes: Listed) -> bool:
        """Read listed nodes that are columns. Whether nothing is wrong with them: `read_listed` says of a list what is."""
        code, args = nodes.code, nodes.args
        try:
            rows = [self.numbering.row(row) for row in nodes.table]
            self.args = self._with_externals(args, nodes.external)
            # In most graphs all nodes have one result. What is right is right in others, too, whose arguments may be greater.
            table = [{**row, "outputs": 1} for row in nodes.table]
            if not (self._are_in_range(table, code, args, len(nodes.external)) and self._read_uniform(table, rows, code)):
                self._read_columns(nodes.table, rows, code)
        except (TiduError, IndexError):  # no value of this number comes before the node
            return False
        return True

    def _with_externals(self, args: Column[int], external: Pairs) -> Column[int]:
        if not external:
            return args
        if is_large(len(external)):
            from tidu_cli.formats.nodes.bulk import externals_as_read, types_of, with_externals

            found = externals_as_read(external, [graph.n_values for graph in self.earlier])
            if found is not None:
                self.external, self.external_types = found[0], types_of(found[0], self.numbering.value_types)
                return with_externals(args, found[1])
        argument = map(self.external_argument, external)
        return column(a if a >= 0 else next(argument) for a in args)

    def read_packed(self, nodes: Packed) -> None:
        """Read nodes that are columns. Raises DocumentError that names the node or the row of the table."""
        table = nodes.table
        rows = [self._table_row(r, row) for r, row in enumerate(table)]
        code, args = integers(nodes.code, "code"), integers(nodes.args, "args")
        if code and not (min(code) >= 0 and max(code) < len(rows)):
            wrong = next(i for i, r in enumerate(code) if not 0 <= r < len(rows))
            raise DocumentError(f"node {wrong}: code {code[wrong]} is out of range; the table has {len(rows)} rows")
        arity = [row["inputs"] for row in table]
        taken = sum(map(arity.__getitem__, code))
        if taken != len(args):
            raise DocumentError(f"args: has {len(args)} entries, but the nodes take {taken}")
        self._check_args(table, code, args, len(nodes.external))
        self.args = args if self._adopted_externals(args, nodes.external) else self._renumbered(args, nodes.external)
        if not self._read_uniform(table, rows, code):
            self._read_columns(table, rows, code)

    def _table_row(self, r: int, row: Node) -> int:
        try:
            arity = self.numbering.primitives[row["op"]].domain.arity
            if arity is not None and row["inputs"] != arity:
                raise DocumentError(f"takes {arity} input{'s' if arity != 1 else ''}, got {row['inputs']}")
            return self.numbering.row(row)
        except TiduError as error:
            raise DocumentError(f"table row {r} ({row['op']}): {error}") from None

    def _are_in_range(self, table: Sequence[Node], code: Column[int], args: Column[int], n_external: int) -> bool:
        if is_large(len(code)):
            from tidu_cli.formats.nodes.bulk import args_in_range

            arity, n_results = [row["inputs"] for row in table], [row["outputs"] for row in table]
            if args_in_range(code, args, arity, n_results, len(self.types), n_external):
                return True
        # For each argument, how many values come before its node: iterators only, as this sees every argument.
        n_values = accumulate((table[r]["outputs"] for r in code), initial=len(self.types))
        before = chain.from_iterable(map(repeat, n_values, (table[r]["inputs"] for r in code)))
        return all(map(lt, args, before)) and (not args or min(args) >= -n_external)

    def _check_args(self, table: Sequence[Node], code: Column[int], args: Column[int], n_external: int) -> None:
        if self._are_in_range(table, code, args, n_external):
            return
        position, defined = 0, len(self.types)
        for i, r in enumerate(code):
            for k in range(table[r]["inputs"]):
                argument, place = args[position + k], f"node {i} ({table[r]['op']}): input {k}"
                if argument >= defined:
                    raise DocumentError(f"{place}: refers to value {argument}, but only {defined} values come before it")
                if argument < -n_external:
                    raise DocumentError(f"{place}: {argument} is out of range: external has {n_external} entries")
            position, defined = position + table[r]["inputs"], defined + table[r]["outputs"]

    def _adopted_externals(self, args: Column[int], external: Sequence[object]) -> bool:
        """Take the externals of a large graph as they are, where they stand as in memory. Whether they do."""
        if not is_large(len(external)):
            return False
        from tidu_cli.formats.nodes.bulk import externals_in_order, types_of

        found = externals_in_order(external, args, [graph.n_values for graph in self.earlier])
        if found is None:
            return False
        self.external, self.external_types = found, types_of(found, self.numbering.value_types)
        return True

    def _renumbered(self, args: Column[int], external: Sequence[object]) -> Column[int]:
        # In memory externals stand once each and in order of first use, which in most files they do already.
        argument: dict[int, int] = {}
        for a in dict.fromkeys(a for a in args if a < 0):
            try:
                argument[a] = self.external_argument(external[~a])
            except DocumentError as error:
                raise DocumentError(f"external {~a}: {error}") from None
        if len(argument) < len(external):
            unused = next(k for k in range(len(external)) if ~k not in argument)
            raise DocumentError(f"external {unused}: no node reads it; leave it out")
        return args if all(old == new for old, new in argument.items()) else column(argument.get(a, a) for a in args)

    def _read_uniform(self, table: Sequence[Node], rows: Sequence[int], code: Column[int]) -> bool:
        # Where all values have one type, as in graphs of scalars, a node's case follows from its row alone.
        seen = {*self.types, *self.external_types}
        if len(seen) != 1 or UNKNOWN in seen:
            return False
        case_of_row: dict[int, int] = {}
        for r in dict.fromkeys(code):
            operands = [*seen] * table[r]["inputs"]
            try:
                case_of_row[r] = self.numbering.case(rows[r], operands)
            except TiduError:
                return False  # for the other loop to name the node
            if self.numbering.results[case_of_row[r]] != (*seen,) or table[r]["outputs"] != 1:
                return False
        if is_large(len(code)):
            from tidu_cli.formats.nodes.bulk import renamed

            self.code = renamed(code, case_of_row)
        else:
            self.code = column(map(case_of_row.__getitem__, code))
        self.types = column(seen) * (len(self.types) + len(code))
        return True

    def _read_columns(self, table: Sequence[Node], rows: Sequence[int], code: Column[int]) -> None:
        types, external_types, args, append = self.types, self.external_types, self.args, self.code.append
        case_of, results = self.numbering.case_of, self.numbering.results
        arity, n_results = [row["inputs"] for row in table], [row.get("outputs") for row in table]
        position = 0
        try:
            for r in code:
                read = args[position : position + arity[r]]
                key = (rows[r], *[types[a] if a >= 0 else external_types[~a] for a in read])
                number = case_of.get(key)
                if number is None:
                    number = self._new_case(rows[r], read)
                if n_results[r] not in (len(results[number]), None):
                    raise DocumentError(f"table row {r} has outputs {n_results[r]}; it must be {len(results[number])}")
                append(number)
                types += results[number]
                position += arity[r]
        except TiduError as error:
            i = len(self.code)
            raise DocumentError(f"node {i} ({table[code[i]]['op']}): {error}") from None

    def _new_case(self, row: int, args: Sequence[int]) -> int:
        operands = [self.types[a] if a >= 0 else self.external_types[~a] for a in args]
        number = self.numbering.case(row, operands)
        for argument, operand, type_ in zip(args, operands, self.numbering.cases[number].operands, strict=True):
            if operand == UNKNOWN and type_ is not None:
                self.adopt(argument, type_)
        return number


def check_value(g: int, v: int, graphs: Sequence[Graph]) -> None:
    """Raises DocumentError unless value v of graph g exists among these graphs."""
    if not 0 <= g < len(graphs):
        among = f"only graphs 0 to {len(graphs) - 1} come before" if graphs else "no graph comes before"
        raise DocumentError(f"refers to graph {shown(g)}, but {among}")
    if not 0 <= v < graphs[g].n_values:
        raise DocumentError(f"refers to value {shown(v)} of graph {g} ('{graphs[g].name}'), which has {graphs[g].n_values} values")
