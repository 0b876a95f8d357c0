"""Building graphs: columns grow node by node, and values of other graphs become externals, each listed once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidu_cli.graph.graph import CaseTable, Column, Externals, Graph, Input, Meta, Output, column


class GraphBuilder:
    """A graph under construction. Its columns are lists, which grow faster, unless they are set as a whole."""

    def __init__(self, cases: CaseTable, inputs: Iterable[Input] = ()) -> None:
        self.cases = cases
        self.inputs = list(inputs)
        self.code: list[int] | Column[int] = []
        self.args: list[int] | Column[int] = []
        self.external = Externals()
        self.n_values = len(self.inputs)
        self._external_number: dict[tuple[int, int], int] = {}

    def refer(self, graph: int, value: int) -> int:
        """The argument that stands for a value of another graph (or, for graph DETACHED, for a detached value)."""
        reference = graph, value
        number = self._external_number.get(reference)
        if number is None:
            number = self._external_number[reference] = -1 - len(self.external)
            self.external.graph.append(graph)
            self.external.value.append(value)
        return number

    def append(self, code: int, args: Iterable[int]) -> int:
        """Append a node of case number `code`. Returns the local id of its first result."""
        first = self.n_values
        self.code.append(code)
        self.args.extend(args)
        self.n_values = first + self.cases.n_results[code]
        return first

    def columns(self) -> tuple[Column[int], Column[int]]:
        """The columns `code` and `args` as they are now."""
        code, args = (part if isinstance(part, Column) else column(part) for part in (self.code, self.args))
        return code, args

    def build(
        self,
        name: str,
        outputs: Iterable[Output],
        *,
        linear: int | None = None,
        meta: Meta = None,
        node_meta: Mapping[int, Meta] | None = None,
    ) -> Graph:
        """The finished graph. The builder must not be used after."""
        code, args = (part if isinstance(part, Column) else column(part) for part in (self.code, self.args))
        return Graph(name, tuple(self.inputs), tuple(outputs), self.cases, code, args, self.external, linear, meta, node_meta or {})
