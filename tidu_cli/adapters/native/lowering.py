"""From a graph to the machine's instructions: those of scalars by whole columns, all others step by step."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidu_cli.adapters.native.layout import MOST_ELEMENTS, Entry, Escape, Layout, Place, Rows, elementwise, is_native, rows, width
from tidu_cli.adapters.native.loops import FOLDS, LOOPS, MOST_INSTRUCTIONS, MOVES, NotWordsError, expanded, moved
from tidu_cli.adapters.native.machine import ESCAPE, FIELDS
from tidu_cli.graph.closed import closed_graphs
from tidu_cli.graph.dataflow import blocks, counts
from tidu_cli.graph.graph import Case, Graph
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import literal_array
from tidu_cli.lax.recipes.special_function import Recipe
from tidu_cli.rules.recording import trace
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.plans.steps import Steps, needed_steps

_IRREGULAR, _CONSTANT = -1, -2
"""What stands for the opcode of a case whose steps are looked at one by one, and of one that is a constant number."""


@lru_cache(maxsize=2**12)
def is_own(case: Case) -> bool:
    """Whether a case takes instructions of the machine alone; of loops and branches, whether their graphs do."""
    types = (*case.operands, *case.results)
    if not all(map(is_native, types)):
        return False
    largest = max([t.size for t in types if isinstance(t, TensorType)], default=0)
    if largest > MOST_ELEMENTS:
        return False
    if case.op in LOOPS:
        return all(is_own(inner) for graph in closed_graphs(case.attrs) for inner in graph.graph.cases.cases)
    if case.op in MOVES or case.op == "constant":
        return True
    return largest <= MOST_INSTRUCTIONS and (case.op in FOLDS or elementwise(case) is not None)


def written_out(case: Case, primitives: PrimitiveSet) -> Graph | None:
    """What a case is defined as, if that takes instructions of the machine alone; of what has a recipe, SciPy is quicker."""
    definition = primitives[case.op].evaluation.definition
    if definition is None or isinstance(definition, Recipe):
        return None
    graph = trace.expanded(primitives, case)
    return graph if all(map(is_own, graph.cases.cases)) else None


class Lowering:
    """What makes instructions of graphs, of which all share one layout."""

    def __init__(self, primitives: PrimitiveSet) -> None:
        self.primitives = primitives
        self.layout = Layout()

    def graph(self, graph: Graph, given: Sequence[Place]) -> tuple[Rows, list[Place]]:
        """The instructions of a closed graph, for inputs at these places, and where its outputs are."""
        steps = needed_steps(graph, graph.outputs)
        made = _Columns(self, steps, [given[k] for k in steps.inputs])
        places = [self._zero(o.type) if v is None else made.place(v) for o, v in zip(graph.outputs, steps.outputs, strict=True)]
        return made.rows(), places

    def _zero(self, type_: Any) -> Place:
        return self.layout.constant(type_, np.zeros(type_.shape))

    def steps(self, steps: Steps, given: Sequence[Place]) -> tuple[Rows, list[Place | None], NDArray[Any]]:
        """Likewise of the steps of a graph; None for structural zeros. And whose instructions they are, as `irregular` says."""
        made = _Columns(self, steps, given)
        return made.rows(), [None if v is None else made.place(v) for v in steps.outputs], made.irregular()

    def escape(self, case: Case, reads: Sequence[Place], results: Sequence[Place]) -> Rows:
        """The instruction that leaves a step to Python."""
        evaluation = self.primitives[case.op].evaluation
        kernel = partial(evaluation.kernel, np, case.attrs, case.operands, case.results)  # type: ignore[arg-type]
        read, written = zip(case.operands, reads, strict=True), zip(case.results, results, strict=True)
        self.layout.escapes.append(Escape(kernel, tuple(read), tuple(written)))  # type: ignore[arg-type]
        return rows(ESCAPE, len(self.layout.escapes) - 1)


class _Columns:
    """The steps of one graph: `word[v]` is the word of a value that is a number, `places` has all others."""

    def __init__(self, lowering: Lowering, steps: Steps, given: Sequence[Place]) -> None:
        self.lowering, self.steps, self.layout = lowering, steps, lowering.layout
        cases = steps.graph.cases
        self.opcode = np.full(len(cases), _IRREGULAR, np.int32)
        self.last = np.zeros(len(cases), np.int32)  # the word of an operand that attrs hold
        self.word = np.full(steps.n_values, -1, np.int32)
        self.places: dict[int, Place] = {}
        for k, place in enumerate(given):
            self._put(k, place)
        self.arity = np.array(cases.arity, np.int32)
        sizes, n_rows = np.zeros(len(cases), np.int32), np.zeros(len(cases), np.int32)
        self._choose(sizes, n_rows)
        self._assign(sizes)
        self._constants()
        self._lower_others(n_rows)

    def _choose(self, sizes: NDArray[Any], n_rows: NDArray[Any]) -> None:
        """The opcodes of the cases in use, how many words a result has, and how many instructions a step."""
        cases = self.steps.graph.cases
        for number in np.flatnonzero(counts(self.steps.code, len(cases))).tolist():
            case = cases[number]
            result = case.results[0] if case.results else None
            if not isinstance(result, TensorType) or result.shape or not is_native(result):
                continue
            if case.op == "constant":
                self.opcode[number], sizes[number] = _CONSTANT, width(result.dtype)
            elif (choice := elementwise(case)) is not None and not any(t.shape for t in case.operands if isinstance(t, TensorType)):
                self.opcode[number], sizes[number] = choice.opcode, width(result.dtype)
                n_rows[number] = 2 if len(case.operands) == 3 else 1
                if choice.last is not None:
                    self.last[number] = self.layout.number("f64", choice.last)

    def _assign(self, sizes: NDArray[Any]) -> None:
        """Words for the results of all regular steps, in their order."""
        for block in blocks(0, self.steps.n_steps):
            taken = sizes[self.steps.code[block]]
            begin = self.layout.take(int(taken.sum()))
            self.word[self.steps.first[block]] = np.where(taken > 0, begin + np.cumsum(taken) - taken, -1)

    def _constants(self) -> None:
        cases, code = self.steps.graph.cases, self.steps.code
        steps = np.flatnonzero(self.opcode[code] == _CONSTANT)
        for step, number in zip(steps.tolist(), code[steps].tolist(), strict=True):
            literal: Any = cases[number].attrs
            place = np.asarray(self.word[self.steps.first[step]], np.int64)
            (type_,) = cases[number].results
            assert isinstance(type_, TensorType)
            self.layout.constants.append((type_, place, literal_array(np, literal.value)))

    def _lower_others(self, n_rows: NDArray[Any]) -> None:
        """The instructions of the steps that are looked at one by one, and where those of each step begin."""
        code = self.steps.code
        others = np.flatnonzero(self.opcode[code] == _IRREGULAR).tolist()
        self.others = {step: self._lowered(step) for step in others}
        if (n_rows[code] == 1).all():
            self.start = None
            return
        size = n_rows[code]
        size[others] = [len(r) for r in self.others.values()]
        self.start = np.concatenate([[0], np.cumsum(size)])

    def _lowered(self, step: int) -> Rows:
        case = self.steps.graph.cases[int(self.steps.code[step])]
        reads = [self.place(v) for v in self.steps.reads(step)]
        lowered = moved(self.layout, self.lowering.primitives, case, reads) or expanded(self.layout, case, reads)
        if lowered is None and case.op in LOOPS:
            with suppress(NotWordsError):
                lowered = LOOPS[case.op](self.layout, self.lowering.graph, case, reads)
        if lowered is None and (graph := written_out(case, self.lowering.primitives)) is not None:
            lowered = self.lowering.graph(graph, reads)
        if lowered is None:
            results = [self.layout.new(t) for t in case.results]
            lowered = self.lowering.escape(case, reads, results), results
        made, places = lowered
        for k, place in enumerate(places):
            self._put(int(self.steps.first[step]) + k, place)
        return made

    def _put(self, value: int, place: Place) -> None:
        if isinstance(place, Entry) or place.ndim:
            self.places[value] = place
        else:
            self.word[value] = int(place)

    def place(self, value: int) -> Place:
        """Where a value is."""
        return self.places[value] if value in self.places else np.asarray(self.word[value], np.int64)

    def irregular(self) -> NDArray[Any]:
        """Of each step that is looked at by itself the number of its first instruction, its node and its case, in rows."""
        others = np.fromiter(self.others, np.int64, len(self.others))
        start = others if self.start is None else self.start[others]
        return np.stack([start, np.asarray(self.steps.node)[others], self.steps.code[others]])

    def rows(self) -> Rows:
        """All instructions, in the order of the steps."""
        steps, start = self.steps, self.start
        instructions = np.zeros((steps.n_steps if start is None else int(start[-1]), FIELDS), np.int32)
        for block in blocks(0, steps.n_steps):
            code = steps.code[block]
            own: Any = slice(None)
            at: Any = block
            if start is not None:
                own = np.flatnonzero(self.opcode[code] >= 0)
                code, at = code[own], start[block][own]
            opcode, arity, begin = self.opcode[code], self.arity[code], steps.start[block][own]
            last = len(steps.args) - 1
            instructions[at, 0] = opcode
            instructions[at, 1] = self.word[steps.args[begin]] if last >= 0 else 0
            second = self.word[steps.args[np.minimum(begin + 1, last)]] if last >= 0 else 0
            instructions[at, 2] = np.where(arity > 1, second, self.last[code])
            instructions[at, 3] = self.word[steps.first[block][own]]
            ternary = np.flatnonzero(arity == 3)
            if len(ternary):
                assert start is not None
                instructions[at[ternary] + 1, 1] = self.word[steps.args[begin[ternary] + 2]]
        for step, made in self.others.items():
            assert start is not None
            instructions[start[step] : start[step] + len(made)] = made
        return instructions
