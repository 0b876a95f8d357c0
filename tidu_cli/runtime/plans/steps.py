"""What of a graph has to be computed, as arrays: the nodes that outputs need, each once, and which values they read.

Programs are made from this (`slots`, `groups`). Graphs that come from materialize have neither
dead nor equal nodes, which takes a few passes over arrays to see; of others they are dropped one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidu_cli.frozen import Frozen
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.dataflow import FIRST, Flow, array_of, blocks, column_of, counting, hashes_of, spans, sums, taken
from tidu_cli.graph.graph import Case, Column, Document, Graph, Output, column
from tidu_cli.graph.link import link
from tidu_cli.runtime.plans.interpreter import MOST_KEPT, kept_bytes
from tidu_cli.watching import watch


class Steps(Frozen, eq=False):
    """The steps of a computation, in a valid order. Values are numbered: the inputs that are needed, then the steps' results.

    `inputs` are indices into the graph's; `outputs` are values, None for structural zeros. Step i computes node `kept[i]`, or i if
    that is None, and is of case `code[i]`; it reads the values `args[start[i]:start[i + 1]]` and makes `first[i]` up to before
    `first[i + 1]`. The columns may be those of the graph, in its memory.
    """

    graph: Graph
    inputs: tuple[int, ...]
    outputs: tuple[int | None, ...]
    kept: NDArray[Any] | None
    code: NDArray[Any]
    start: NDArray[Any]
    args: NDArray[Any]
    first: NDArray[Any]

    @property
    def n_steps(self) -> int:
        """The number of steps."""
        return len(self.code)

    @property
    def n_values(self) -> int:
        """The number of values: inputs and results."""
        return int(self.first[-1])

    @property
    def single(self) -> bool:
        """Whether each step makes one value."""
        return self.n_values == len(self.inputs) + self.n_steps

    @property
    def node(self) -> Column[int]:
        """The node that each step computes."""
        return counting(0, self.n_steps) if self.kept is None else column_of(self.kept)

    def arity(self, block: slice) -> NDArray[Any]:
        """How many values each of these steps reads."""
        return np.diff(self.start[block.start : block.stop + 1])

    def n_results(self, block: slice) -> NDArray[Any]:
        """How many values each of these steps makes."""
        return np.diff(self.first[block.start : block.stop + 1])

    def operand(self, k: int, block: slice, arity: NDArray[Any]) -> NDArray[Any]:
        """Operand k of each of these steps, or the last there is; 0 of steps that read nothing. `arity` is theirs."""
        if not len(self.args):
            return np.zeros(len(arity), np.int32)
        return np.where(arity > 0, self.args[self.start[block] + np.minimum(arity - 1, k)], 0)

    def reads(self, step: int) -> list[int]:
        """The values that one step reads."""
        values: list[int] = self.args[self.start[step] : self.start[step + 1]].tolist()
        return values

    def last_uses(self) -> NDArray[Any]:
        """For each value the last step that reads it: `n_steps` for outputs, -1 for what no step reads."""
        last = np.full(self.n_values, -1, np.int32)
        for block in blocks(0, self.n_steps):
            # The last one of several assignments to one place holds.
            readers = np.repeat(np.arange(block.start, block.stop, dtype=np.int32), self.arity(block))
            last[self.args[self.start[block.start] : self.start[block.stop]]] = readers
        last[[v for v in self.outputs if v is not None]] = self.n_steps
        return last


def needed_steps(graph: Graph, outputs: Sequence[Output]) -> Steps:
    """The steps that these outputs of a self-contained graph need. Nodes that differ in their masks alone compute the same."""
    code, args = array_of(graph.code), array_of(graph.args)
    arity = np.array(graph.cases.arity, np.int32)
    n_results = np.array(graph.cases.n_results, np.int32)
    n_inputs = len(graph.inputs)
    start, first = sums(arity, code), sums(n_results, code, n_inputs)
    results = [o.value for o in outputs]
    read = np.zeros(graph.n_values, bool)
    for block in blocks(0, len(args)):
        read[args[block]] = True
    read[[v for v in results if v is not None]] = True
    plain = _without_masks(graph)
    kept = None
    if _all_read(read, first) and not _any_equal(plain, code, args, start):
        if read[:n_inputs].all():
            return Steps(graph, tuple(range(n_inputs)), tuple(results), None, code, start, args, first)
        made = np.arange(n_inputs, graph.n_values, dtype=np.int32)
    else:
        needed = link(Document((graph,), graph.cases)).depends_on(v for v in results if v is not None)
        kept, args, same = _distinct(graph, plain, needed)
        read = np.frombuffer(needed, np.uint8)
        code = taken(code, kept)
        made = spans(begin := taken(first, kept), begin + taken(n_results, code))
        results = [None if v is None else int(same[v]) for v in results]
        start, first = sums(arity, code), sums(n_results, code, n_inputs)
    inputs = np.flatnonzero(read[:n_inputs])
    number = np.zeros(graph.n_values, np.int32)
    number[inputs] = np.arange(len(inputs))
    number[made] = np.arange(len(inputs), len(inputs) + len(made))
    renumbered = tuple(None if v is None else int(number[v]) for v in results)
    first -= n_inputs - len(inputs)
    return Steps(graph, tuple(inputs.tolist()), renumbered, kept, code, start, taken(number, args), first)


DEEPEST_KEPT = 8
"""How many steps after one another, at most, are looked through for what depends on no input."""


def constant_steps(steps: Steps) -> NDArray[Any]:
    """Of each step whether it depends on no input, and its results may be kept, which are of `MOST_KEPT` bytes together.

    A few are not found: see `DEEPEST_KEPT`. Linear in the number of steps.
    """
    cases = steps.graph.cases
    constant, known, room = np.zeros(steps.n_steps, bool), np.zeros(steps.n_values, bool), MOST_KEPT
    sizes = np.zeros(len(cases), np.int64)
    new = _that_read(steps, None).nonzero()[0]
    for _ in range(DEEPEST_KEPT):
        code = steps.code[new]
        for c in set(code.tolist()):
            sizes[c] = min(kept_bytes(cases[c]), MOST_KEPT + 1)  # of more no matter how many: there is no integer for any number
        new = new[sizes[code] <= room]  # what is too large by itself keeps out no other
        taking = np.cumsum(sizes[steps.code[new]])
        new = new[taking <= room]
        if not len(new):
            break
        room -= int(taking[len(new) - 1])
        constant[new] = True
        known[spans(steps.first[new], steps.first[new + 1])] = True
        new = (_that_read(steps, known) & ~constant).nonzero()[0]
    return constant


def _that_read(steps: Steps, known: NDArray[Any] | None) -> NDArray[Any]:
    """Of each step whether it reads values that are known, and no others; or, without `known`, whether it reads none at all."""
    reads_known = np.zeros(steps.n_steps, bool)
    for block in blocks(0, steps.n_steps):
        arity = steps.arity(block)
        if known is None:
            reads_known[block] = arity == 0
        elif len(reading := arity.nonzero()[0]):
            begin, end = steps.start[block.start], steps.start[block.stop]
            reads_known[block][reading] = np.logical_and.reduceat(known[steps.args[begin:end]], steps.start[block][reading] - begin)
    return reads_known


def _without_masks(graph: Graph) -> NDArray[Any]:
    """For each case the first one that computes the same: it may have another mask."""
    cases: dict[Case, int] = {}
    numbers = [cases.setdefault(Case(c.op, c.attrs, None, c.operands, c.results), k) for k, c in enumerate(graph.cases.cases)]
    return np.array(numbers, np.int32)


def _all_read(read: NDArray[Any], first: NDArray[Any]) -> bool:
    """Whether of each node some result is read or an output: then, as paths end in outputs, all are needed."""
    made = read[first[0] :]
    single = len(made) == len(first) - 1
    return not len(made) or bool((made if single else np.logical_or.reduceat(made, first[:-1] - first[0])).all())


def _any_equal(plain: NDArray[Any], code: NDArray[Any], args: NDArray[Any], start: NDArray[Any]) -> bool:
    """Whether two nodes might be of one case and read the same: True also, very rarely, where none are."""
    hashes = np.empty(len(code), np.uint64)
    for block in blocks(0, len(code)):
        nodes = Flow(plain[code[block]], start[block.start : block.stop + 1], args)
        hashes[block] = hashes_of(nodes, np.arange(nodes.n_values, dtype=np.int32), None, FIRST)
    hashes.sort()
    return bool((hashes[1:] == hashes[:-1]).any())


def _distinct(graph: Graph, plain: NDArray[Any], needed: bytearray) -> tuple[NDArray[Any], ...]:
    """The needed nodes without those that compute what an earlier one does: their numbers, and the values that they read.

    Then, of each value, the one that stands for it.
    """
    plain_code = plain.tolist()
    same: Column[int] = column(range(graph.n_values))
    kept, reads_of_kept = column(), column()
    known: dict[tuple[int, ...], int] = {}
    nodes = watch("compiling", graph.n_nodes)(forwards(graph, map(same.__getitem__, graph.args)))
    for node, (code, reads, first, end) in enumerate(nodes):
        if 1 in needed[first:end]:
            earlier = known.setdefault((plain_code[code], *reads), first)
            if earlier == first:
                kept.append(node)
                reads_of_kept.extend(reads)
            for value in range(first, end):
                same[value] = earlier + value - first
    return tuple(map(array_of, (kept, reads_of_kept, same)))
