"""The nodes of a scan's body by when they are computed: once before the loop, in each step, or behind it for all steps at once.

A derivative's scan stores much that is elementwise in what it stores besides. One operation on the stacked arrays takes less
than one in each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tidu_cli.adapters.onnx.writing.elementwise import LOWERINGS
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import TensorType, Type, of_batch

Node = tuple[Case, Sequence[int], Sequence[int]]
"""Its case, the values that it reads and those that it gives."""


class Stages:
    """The three kinds of nodes, and what reaches the last of them. Values have the numbers of the body's graph."""

    def __init__(self, attrs: Any) -> None:
        """`attrs` are a scan's."""
        graph, self.types = attrs.body.graph, list(attrs.body.input_types)
        self.nodes: list[Node] = []
        for code, operands, first, end in forwards(graph, graph.args):
            self.nodes.append((graph.cases[code], operands, range(first, end)))
            self.types += graph.cases[code].results
        outputs = [o.value for o in graph.outputs]
        self.carried, self.rows = outputs[: attrs.num_carry], outputs[attrs.num_carry :]
        self.slices = range(attrs.num_consts + attrs.num_carry, len(graph.inputs))
        self.fixed = set(range(attrs.num_consts))
        """The values that are the same in all steps."""
        for _, args, results in self.nodes:
            if self.fixed.issuperset(args):
                self.fixed.update(results)
        self.behind: set[int] = set()
        """The nodes that are computed behind the loop."""
        self.stacked: dict[int, None] = {}
        """The values of which steps give slices."""
        self._divide()
        needed = {*self.carried, *self.stacked}
        within = []
        for node in reversed(self.nodes):
            _, args, results = node
            if not self.fixed.issuperset(results) and not needed.isdisjoint(results):
                within.append(node)
                needed.update(args)
        self.within = within[::-1]
        self.scanned = [v for v in self.slices if v in needed]

    @property
    def before(self) -> Iterator[Node]:
        """The nodes that are computed before the loop."""
        return (node for node in self.nodes if self.fixed.issuperset(node[2]))

    def _divide(self) -> None:
        """Results go behind the loop if what they are computed of takes no more memory than they do."""
        movable, needed, maker = set[int](), set(self.carried), dict[int, int]()
        for k in reversed(range(len(self.nodes))):
            case, args, results = self.nodes[k]
            if needed.isdisjoint(results) and self._is_movable(case, args):
                movable.add(k)
            else:
                needed.update(args)
            maker.update(dict.fromkeys(results, k))
        there = {v for v in self.rows if maker.get(v) not in movable}
        self._stack(there)
        for row in self.rows:
            if row in there or maker[row] in self.behind:
                continue
            nodes, leaves, due = set[int](), dict[int, None](), [row]
            while due:
                v = due.pop()
                k = maker.get(v, -1)
                if k in movable and v not in there:
                    if k not in nodes and k not in self.behind:
                        nodes.add(k)
                        due += reversed(self.nodes[k][1])
                elif v not in there and v not in self.fixed and v not in self.slices:
                    leaves[v] = None
            if sum(map(self._size, leaves)) <= self._size(row):
                self.behind |= nodes
            else:
                movable -= nodes
                leaves = {row: None}
            self._stack(leaves)
            there.update(leaves)

    def _stack(self, values: Iterable[int]) -> None:
        self.stacked.update((v, None) for v in values if v not in self.fixed and v not in self.slices)

    def _size(self, value: int) -> int:
        return int(self.types[value].nbytes)

    def _is_movable(self, case: Case, args: Sequence[int]) -> bool:
        """Whether a node is elementwise, which is written likewise for arrays of which some have an axis of steps in front."""
        if case.op not in LOWERINGS or len(case.results) != 1 or self.fixed.issuperset(args):
            return False
        return len({t.shape if isinstance(t, TensorType) else None for t in (*case.operands, *case.results)}) == 1

    def of_all_steps(self, length: int) -> Iterator[Node]:
        """The nodes behind the loop, in order, for arrays of all steps."""
        for k in sorted(self.behind):
            case, args, results = self.nodes[k]
            operands = [t if v in self.fixed else _stacked(t, length) for t, v in zip(case.operands, args, strict=True)]
            wide = replace(case, operands=tuple(operands), results=tuple(_stacked(t, length) for t in case.results))
            yield wide, args, results


def _stacked(type_: Type | None, length: int) -> Type | None:
    return type_ and of_batch(type_, length)
