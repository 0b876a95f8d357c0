"""The nodes of a graph, from their file form to columns: packed nodes are columns, and so are the lists of nodes that are read.

What is right is read without a look at single nodes, as far as that goes. Where something is wrong, loops find out where.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableSequence, Sequence
from functools import cache
from itertools import accumulate
from typing import Any

from tidu_cli.errors import DocumentError, TiduError
from tidu_cli.formats.files import naming, shown
from tidu_cli.formats.nodes.listed import Listed, are_local, args_in_range, distinct_externals, operands_of, renamed
from tidu_cli.formats.nodes.numbering import UNKNOWN, Node, Numbering, integers
from tidu_cli.graph.closed import not_linear, own_tangent_read
from tidu_cli.graph.graph import CaseTable, Column, Detached, Document, Externals, Graph, Input, Place, column
from tidu_cli.graph.link import Application, Definitions
from tidu_cli.graph.passes import occurring
from tidu_cli.graph.types import Type
from tidu_cli.rules.recording.linearity import makes_zeros, not_zero
from tidu_cli.rules.vocabulary import PrimitiveSet


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
        if not isinstance(reference, list) or [*map(type, reference)] != [int, int]:
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

    def read_listed(self, nodes: Iterable[Node]) -> None:
        """Read a list of nodes one by one. Raises DocumentError that names the node."""
        for i, node in enumerate(nodes):
            with naming(f"node {i} ({node['op']}): "):
                row = self.numbering.row(node)
                args = []
                for k, reference in enumerate(node["inputs"]):
                    with naming(f"input {k}: "):
                        args.append(self.argument(reference))
                number = self._case(row, args)
            self.code.append(number)
            self.args.extend(args)
            self.types += self.numbering.results[number]

    def _case(self, row: int, args: Sequence[int]) -> int:
        types, external_types = self.types, self.external_types
        number = self.numbering.case_of.get((row, *[types[a] if a >= 0 else external_types[~a] for a in args]))
        return self._new_case(row, args) if number is None else number

    def read_columns(self, nodes: Listed) -> bool:
        """Read listed nodes as columns. Whether nothing is wrong with them: `read_listed` says what is, and where."""
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

    def _with_externals(self, args: Column[int], external: Sequence[object]) -> Column[int]:
        """The arguments, once the externals have been read that they refer to, each once and in order of first use."""
        distinct = distinct_externals(external, args, [graph.n_values for graph in self.earlier])
        if distinct is None:
            return self._renumbered(args, external)
        from tidu_cli.formats.nodes.bulk import types_of

        self.external, self.external_types = distinct[0], types_of(distinct[0], self.numbering.value_types)
        return distinct[1]

    def read_packed(self, nodes: Mapping[str, Any]) -> None:
        """Read nodes that are columns. Raises DocumentError that names the node or the row of the table."""
        table, external = nodes["table"], nodes.get("external", [])
        rows = [self._table_row(r, row) for r, row in enumerate(table)]
        code, args = integers(nodes["code"], "code"), integers(nodes["args"], "args")
        if code and not (min(code) >= 0 and max(code) < len(rows)):
            wrong = next(i for i, r in enumerate(code) if not 0 <= r < len(rows))
            raise DocumentError(f"node {wrong}: code {code[wrong]} is out of range; the table has {len(rows)} rows")
        arity = [row["inputs"] for row in table]
        taken = sum(map(arity.__getitem__, code))
        if taken != len(args):
            raise DocumentError(f"args: has {len(args)} entries, but the nodes take {taken}")
        self._check_args(table, code, args, len(external))
        self.args = self._with_externals(args, external)
        if not self._read_uniform(table, rows, code):
            self._read_columns(table, rows, code)

    def _table_row(self, r: int, row: Node) -> int:
        with naming(f"table row {r} ({row['op']}): "):
            arity = self.numbering.primitives[row["op"]].domain.arity
            if arity is not None and row["inputs"] != arity:
                raise DocumentError(f"takes {arity} input{'s' if arity != 1 else ''}, got {row['inputs']}")
            return self.numbering.row(row)

    def _are_in_range(self, table: Sequence[Node], code: Column[int], args: Column[int], n_external: int) -> bool:
        arity, n_results = [row["inputs"] for row in table], [row["outputs"] for row in table]
        return args_in_range(code, args, arity, n_results, len(self.types), n_external)

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

    def _renumbered(self, args: Column[int], external: Sequence[object]) -> Column[int]:
        argument: dict[int, int] = {}
        for a in dict.fromkeys(filter((0).__gt__, args)) if external else ():
            with naming(f"external {~a}: "):
                argument[a] = self.external_argument(external[~a])
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
        self.code = renamed(code, case_of_row)
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


# What readers verify of linear graphs: that they are linear in their inputs.
#
# Each case of a linearized node says what of its operands must be structural zeros (`tidu_cli.rules.recording.linearity`); what a
# linear graph reads of its own depends on its inputs, and nothing else does. Only nodes whose case asks for zeros are looked at one
# by one.


_PER_UNIT = "joins {} as tangents, and these are cotangents, which count per unit; write add_cotangents, of -y for x - y"

Due = Mapping[int, tuple[int, ...]]
"""By the numbers of cases, which of their operands must be structural zeros, where some must."""


def check_linear(inputs: Sequence[Input], code: Column[int], args: Column[int], cases: CaseTable) -> None:
    """Raises DocumentError that names a node of a linear graph that is primary, or whose mask does not say what is local.

    Also one that adds cotangents of different types as if they were tangents.
    """
    if not code:
        return
    masks = {number: cases[number].mask or () for number in occurring(code, len(cases))}
    if idle := {number for number, mask in masks.items() if not any(mask)}:
        node, case = next((node, cases[number]) for node, number in enumerate(code) if number in idle)
        has = "role; every node of a linear graph is linearized"
        if case.mask is not None:
            has = "active input; every node of a linear graph depends on a tangent"
        raise DocumentError(f"node {node} ({case.op}): has no {has}")
    if any(i.key.path and i.key.path[-1] < 0 for i in inputs):
        mixed = {number for number in masks if cases[number].op in ("add", "sub") and len({*cases[number].operands} - {None}) > 1}
        for node, number in enumerate(code if mixed else ()):
            if number in mixed:
                types = " and ".join(map(str, cases[number].operands))
                raise DocumentError(f"node {node} ({cases[number].op}): {_PER_UNIT.format(types)}")
    if are_local(code, args, masks):
        return
    starts = accumulate(map(cases.arity.__getitem__, code), initial=0)
    for node, (number, start) in enumerate(zip(code, starts, strict=False)):
        for k, active in enumerate(masks[number]):
            if active != (args[start + k] >= 0):
                what = "active, but no tangent reaches it" if active else "inactive, but it depends on the tangents"
                raise DocumentError(f"node {node} ({cases[number].op}): input {k} is {what}")


def check_own_tangents(document: Document) -> None:
    """Raises DocumentError that names a linear graph which other graphs or bindings make a nonlinear function of its inputs."""
    if wrong := own_tangent_read(document):
        raise DocumentError(f'{not_linear(*wrong)}; leave out "linear" and the roles of its nodes')


def check_zeros(document: Document, due: Due, primitives: PrimitiveSet) -> None:
    """Raises DocumentError that names a node of which an inactive operand must be a structural zero, and is not."""
    if not due:
        return
    zeros = _Zeros(document, primitives)
    for g, graph in enumerate(document.graphs):
        for node, k, argument in operands_of(graph.code, graph.args, graph.cases.arity, due):
            if graph.place(g, argument) not in zeros:
                raise DocumentError(f"{graph.describe(node)}: {not_zero(k, graph.case(node))}")


class _Zeros:
    """The values of a document that are structural zeros, looked up as they are asked for: each once, at any depth."""

    def __init__(self, document: Document, primitives: PrimitiveSet) -> None:
        self.graphs, self.definitions = document.graphs, Definitions(document)
        self.primitives = primitives
        self.makes_zeros = cache(lambda code: makes_zeros(primitives, document.cases[code]))
        self._known: dict[Place, bool] = {}

    def __contains__(self, place: Place) -> bool:
        known, pending = self._known, [place]
        while pending:
            operands = () if pending[-1] in known else self._operands(pending[-1])
            unknown = [v for v in operands or () if v not in known]
            if unknown:
                pending += unknown
            else:
                known.setdefault(pending.pop(), operands is not None and all(map(known.__getitem__, operands)))
        return known[place]

    def _operands(self, place: Place) -> Sequence[Place] | None:
        """What must be zeros for a value to be one; None if it is none in any case, as an input, and what nobody sees."""
        maker = self.definitions[place]
        if not isinstance(maker, Application):
            return None
        if self.primitives[maker.case.op].evaluation.passes:  # a copy of a value that is not zero waits as the value does
            return [maker.operands[maker.slot]]
        return maker.operands if self.makes_zeros(self.graphs[maker.graph].code[maker.node]) else None
