"""The recording of a block: nodes as they are emitted, and what of it is known while a file is read."""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.closed import ClosedGraph, closed_graphs, forwards
from tidu_cli.graph.graph import Case, CaseTable, Graph, Input, Output, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.open_sizes import is_open_case
from tidu_cli.graph.sizes.open import larger, smaller
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.rules.contract import Types
from tidu_cli.rules.recording.trace import Emitted, Trace
from tidu_cli.rules.terms import Term
from tidu_cli.rules.vocabulary import PrimitiveSet

if TYPE_CHECKING:
    from numpy.typing import NDArray


MOST_KNOWN = 1024
"""How many elements a value may have that is computed while a module is read: counts of steps and starts of sums are scalars."""

MOST_STEPS = 64
"""How many operations a size is followed through."""

_OF_SIZES: Mapping[str, Callable[..., Any]] = {
    "convert_element_type": lambda n: n,
    "reshape": lambda n: n,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "max": larger,
    "min": smaller,
}

_SIZE_TYPES = (TensorType("i32"), TensorType("i64"))
"""The types of sizes in modules."""


class Recording(Trace):
    """A recording whose sources, the arguments of a block and what it reads from around, come before all nodes."""

    def __init__(self, primitives: PrimitiveSet, types: Sequence[Type]) -> None:
        super().__init__(primitives, CaseTable(primitives))
        self.sources = [self.source(t, linear=False) for t in types]
        self.origins: dict[int, tuple[Term, Term, bool]] = {}
        """Of the factors of Householder's vectors, by slots: the matrix, its thin Q, and whether columns are exchanged."""
        self.looked = 0
        """How many steps looking for special functions has taken."""
        self._starts, self._after = list[int](), len(self.sources)
        self._known: dict[int, NDArray[Any] | None] = {}
        self._sizes: dict[int, Any] = {}

    def constant(self, array: Any, type_: TensorType) -> Term:
        """A constant array."""
        import numpy as np

        return self.emit("constant", value=Literal(type_, np.ascontiguousarray(array).tobytes()))

    def graph(self, name: str, inputs: Sequence[Input], outputs: Sequence[tuple[Key, Term]]) -> Graph:
        """The graph from the sources, which are these inputs, to these outputs, without nodes that none of them needs."""
        live = self.live([term for _, term in outputs])
        number = {s: s for s in range(len(self.sources))}
        first, code, args = len(self.sources), list[int](), list[int]()
        for node in self.nodes:
            slots = range(first, first + node.n_results)
            first = slots.stop
            if not live.isdisjoint(slots):
                number.update((s, len(number)) for s in slots)
                code.append(node.code)
                args += [number[s] for s in node.reads]
        ends = [Output(key, number[t.slot], t.value_type) for key, t in outputs]
        return Graph(name, tuple(inputs), tuple(ends), self.cases, column(code), column(args))

    def closed(self, results: Sequence[Term]) -> ClosedGraph:
        """The graph from the sources to these results, as it stands within a node."""
        inputs = [Input(Key(f"x{k}"), t.value_type) for k, t in enumerate(self.sources)]
        return ClosedGraph.of(self.graph("", inputs, [(Key(f"y{k}"), t) for k, t in enumerate(results)]))

    def made_by(self, term: Term) -> Case | None:
        """The case of the node that makes a value, None of a source."""
        node = self.maker(term.slot)
        return None if node is None else self.cases[node.code]

    def read_by(self, term: Term) -> Sequence[int]:
        """The slots that the node reads that makes a value; none of a source."""
        node = self.maker(term.slot)
        return () if node is None else node.reads

    def maker(self, slot: int) -> Emitted | None:
        """The node that makes a value, None of a source."""
        node = self._node(slot)
        return None if node is None else self.nodes[node]

    def known(self, term: Term) -> NDArray[Any] | None:
        """The value of what depends on constants alone, if it and all that it depends on is small."""
        todo = [term.slot]
        while todo:
            slot = todo[-1]
            if slot in self._known:
                todo.pop()
                continue
            due = self._operands(slot)
            missing = [s for s in due or () if s not in self._known]
            todo += missing
            if not missing:
                self._known[slot] = None if due is None or any(self._known[s] is None for s in due) else self._computed(slot)
        return self._known[term.slot]

    def size(self, term: Term) -> Any:
        """The open size that a scalar of i32 or i64 is, or a number within one; None of all others."""
        return self._size(term.slot, term.type, 0)

    def _size(self, slot: int, type_: Type, depth: int) -> Any:
        if slot not in self._sizes and depth <= MOST_STEPS and type_ in _SIZE_TYPES:
            self._sizes[slot] = self._followed(Term(self, slot, type_, False), depth)
        return self._sizes.get(slot)

    def _followed(self, term: Term, depth: int) -> Any:
        case = self.made_by(term)
        if case is None:
            return None
        if case.op == "size":
            return case.attrs.expression  # type: ignore[attr-defined]
        if case.op not in _OF_SIZES:
            return None if (number := self.known(term)) is None else int(number)
        reads = zip(self.read_by(term), cast(Types, case.operands), strict=True)
        sizes = [self._size(slot, type_, depth + 1) for slot, type_ in reads]
        try:
            return None if None in sizes else _OF_SIZES[case.op](*sizes)
        except TypeRuleError:  # of sizes beyond their limits
            return None

    def _node(self, slot: int) -> int | None:
        """The number of the node that makes a value, None of a source."""
        if len(self._starts) < len(self.nodes):
            for node in self.nodes[len(self._starts) :]:
                self._starts.append(self._after)
                self._after += node.n_results
        return bisect_right(self._starts, slot) - 1 if slot >= len(self.sources) else None

    def _operands(self, slot: int) -> Sequence[int] | None:
        """What is read to compute a value, None if it is not to be computed here."""
        node = self._node(slot)
        if node is None or self.nodes[node].n_results != 1:
            return None
        case = self.cases[self.nodes[node].code]
        small = not is_open_case(case) and all(isinstance(t, TensorType) and t.size <= MOST_KNOWN for t in case.results)
        return self.nodes[node].reads if small and not closed_graphs(case.attrs) else None  # a loop may have no end

    def _computed(self, slot: int) -> Any:
        import numpy as np

        node = self.nodes[cast(int, self._node(slot))]
        case = self.cases[node.code]
        rule = self.primitives[case.op].evaluation.kernel
        kernel = rule(np, case.attrs, cast(Types, case.operands), cast(Types, case.results))
        with np.errstate(all="ignore"):
            return np.asarray(kernel(*[self._known[s] for s in node.reads]))


def inlined(recording: Recording, graph: ClosedGraph, operands: Sequence[Term]) -> list[Term]:
    """The results of a closed graph whose nodes are emitted for these operands."""
    inner, values = graph.graph, list(operands)
    for code, args, _, _ in forwards(inner, inner.args):
        case = inner.cases[code]
        values += recording.apply(case.op, case.attrs, [values[a] for a in args])
    return [values[cast(int, o.value)] for o in inner.outputs]
