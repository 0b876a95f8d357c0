"""What readers verify of linear graphs: that they are linear in their inputs.

Each case of a linearized node says what of its operands must be structural zeros (`tidu_cli.rules.recording.linearity`); what a
linear graph reads of its own depends on its inputs, and nothing else does. Only nodes whose case asks for zeros are looked at one
by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from operator import eq

from tidu_cli.errors import DocumentError
from tidu_cli.graph.columns.large import is_large
from tidu_cli.graph.graph import Binding, CaseTable, Column, Externals, Graph
from tidu_cli.rules.recording.linearity import makes_zeros, not_zero
from tidu_cli.rules.vocabulary import PrimitiveSet

Due = Mapping[int, tuple[int, ...]]
"""By the numbers of cases, which of their operands must be structural zeros, where some must."""


def check_linear(code: Column[int], args: Column[int], cases: CaseTable) -> None:
    """Raises DocumentError that names a node of a linear graph that is primary, or whose mask does not say what is local."""
    if not code:
        return
    large = is_large(len(code))
    if large:
        from tidu_cli.formats.nodes.bulk import are_local, numbers_in
    masks: dict[int, tuple[bool, ...]] = {}
    for number in numbers_in(code, len(cases)) if large else dict.fromkeys(code):
        case = cases[number]
        if case.mask is None or not any(case.mask):
            has = "role; every node of a linear graph is linearized"
            if case.mask is not None:
                has = "active input; every node of a linear graph depends on a tangent"
            raise DocumentError(f"node {code.index(number)} ({case.op}): has no {has}")
        masks[number] = case.mask
    if large:
        if are_local(code, args, masks):
            return
    elif all(map(eq, chain.from_iterable(map(masks.__getitem__, code)), map((-1).__lt__, args))):
        return
    starts = accumulate(map(cases.arity.__getitem__, code), initial=0)
    for node, (number, start) in enumerate(zip(code, starts, strict=False)):
        for k, active in enumerate(masks[number]):
            if active != (args[start + k] >= 0):
                what = "active, but no tangent reaches it" if active else "inactive, but it depends on the tangents"
                raise DocumentError(f"node {node} ({cases[number].op}): input {k} is {what}")


def check_zeros(graphs: Sequence[Graph], bindings: Iterable[Binding], due: Due, primitives: PrimitiveSet) -> None:
    """Raises DocumentError that names a node of which an inactive operand must be a structural zero, and is not."""
    if not due:
        return
    zeros = _Zeros(graphs, bindings, primitives)
    for g, graph in enumerate(graphs):
        for node, k, argument in _summands(graph, due):
            if not zeros.is_zero(g, argument):
                raise DocumentError(f"{graph.describe(node)}: {not_zero(k, graph.case(node))}")


def _summands(graph: Graph, due: Due) -> Iterator[tuple[int, int, int]]:
    """A node, the number of its operand, and the argument, for each argument of a graph that must be a structural zero."""
    if is_large(graph.n_nodes):
        from tidu_cli.formats.nodes.bulk import operands_of

        yield from operands_of(graph.code, graph.args, graph.cases.arity, due)
        return
    if due.keys().isdisjoint(graph.code):
        return
    starts = accumulate(map(graph.cases.arity.__getitem__, graph.code), initial=0)
    for node, (number, start) in enumerate(zip(graph.code, starts, strict=False)):
        for k in due.get(number, ()):
            yield node, k, graph.args[start + k]


class _Zeros:
    """Which values of a document are structural zeros, looked up as they are asked for: each once, at any depth."""

    def __init__(self, graphs: Sequence[Graph], bindings: Iterable[Binding], primitives: PrimitiveSet) -> None:
        self.graphs = graphs
        self.bound = {b.key: (b.graph, b.value) for b in bindings}
        self.primitives = primitives
        self._makes: dict[int, bool] = {}
        self._known: dict[tuple[int, int], bool] = {}

    def is_zero(self, g: int, argument: int) -> bool:
        """Whether an argument of graph number g is one. What is detached is not: nobody sees it."""
        known, first = self._known, self._value(g, argument)
        pending = [first]
        while pending:
            operands = () if pending[-1] in known else self._operands(pending[-1])
            unknown = [v for v in operands or () if v not in known]
            if unknown:
                pending += unknown
            else:
                known.setdefault(pending.pop(), operands is not None and all(map(known.__getitem__, operands)))
        return known[first]

    def _value(self, g: int, argument: int) -> tuple[int, int]:
        if argument >= 0:
            return g, argument
        external = self.graphs[g].external
        return external.graph[~argument], external.value[~argument]

    def _operands(self, value: tuple[int, int]) -> list[tuple[int, int]] | None:
        """What must be zeros for a value to be one; None if it is none in any case."""
        g, v = value
        if g == Externals.DETACHED:
            return None
        graph = self.graphs[g]
        if v < len(graph.inputs):
            bound = self.bound.get(graph.inputs[v].key)
            return None if bound is None else [bound]
        node, slot = graph.producer(v)
        number = graph.code[node]
        if self.primitives[graph.cases[number].op].evaluation.passes:  # a copy is delayed with what is no zero
            return [self._value(g, graph.operands(node)[slot])]
        if number not in self._makes:
            self._makes[number] = makes_zeros(self.primitives, graph.cases[number])
        return [self._value(g, a) for a in graph.operands(node)] if self._makes[number] else None
