"""Programs: graphs made ready to be run by the engine that was chosen.

For NumPy a graph is compiled: what has to be computed, and in which of the two ways that suits its shape, in groups or step by
step. In the program of steps, the slot of a value that dies serves the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidu_cli import installed
from tidu_cli.errors import TiduError, TransformError
from tidu_cli.graph.dataflow import array_of, blocks, column_of, counts, spans
from tidu_cli.graph.graph import Column, Graph, Output, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.choosing import NUMPY, PLAIN, Choice, engine_named
from tidu_cli.runtime.memory import fits
from tidu_cli.runtime.plans import interpreter
from tidu_cli.runtime.plans.grouping import grouped
from tidu_cli.runtime.plans.groups import GroupedProgram
from tidu_cli.runtime.plans.steps import Steps, constant_steps, needed_steps
from tidu_cli.watching import watch


def prepared(
    graph: Graph, choice: Choice = PLAIN, outputs: Sequence[int] | None = None, max_memory: int | None = None
) -> tuple[interpreter.Runnable, Choice]:
    """A self-contained graph made ready to compute these outputs (indices; None for all), and by which engine it is.

    That is NumPy where `auto` chose one that fails. NumPy runs groups of scalars step by step where they would not fit into
    `max_memory` bytes. Raises EvaluationError, TransformError if the graph reads values of others, and LimitError.
    """
    if choice.name != NUMPY:
        primitives = vocabulary(graph.cases)
        primitives.require_written_out([graph])
        try:
            with installed.blaming(choice.name, port="engines"):
                program = engine_named(choice.name).program(graph, primitives, outputs, choice.device)
            return _Brought(program, choice.name) if choice.name in installed.brought_engines() else program, choice
        except (TiduError, ImportError, OSError, RuntimeError) as error:
            if not choice.automatic:
                raise
            choice = Choice(NUMPY, f"as the engine {choice.name} failed: {error}")
    program = compile_graph(graph, outputs=outputs)
    if isinstance(program, GroupedProgram) and not fits(program, max_memory):
        return plain_program(graph, outputs=outputs), choice  # which lets go of what it has used
    return program, choice


class _Brought(interpreter.Runnable):
    """A program of another package's engine: errors of a run name that package."""

    def __init__(self, program: interpreter.Runnable, engine: str) -> None:
        self._program, self._engine = program, engine
        self.graph, self.primitives, self.inputs, self.outputs = program.graph, program.primitives, program.inputs, program.outputs

    def run_in_order(self, values: Sequence[Any], *, once: bool = False) -> list[Any]:
        with installed.blaming(self._engine, port="engines"):
            return self._program.run_in_order(values, once=once)

    def nbytes(self) -> int:
        with installed.blaming(self._engine, port="engines"):
            return self._program.nbytes()


def compile_graph(
    graph: Graph, primitives: PrimitiveSet | None = None, outputs: Sequence[int] | None = None
) -> interpreter.Program | GroupedProgram:
    """The program that computes these outputs (indices into `graph.outputs`; by default all) of a self-contained graph.

    Scalars run in groups where many of them do not wait for one another, and everything else step by step; results are the same,
    bit for bit. Linear in the graph's size. Raises TransformError if the graph reads values of other graphs, and LimitError if its
    custom operations stand for too much.
    """
    primitives = primitives or vocabulary(graph.cases)
    primitives.require_written_out([graph])
    chosen = _chosen(graph, outputs)
    steps = needed_steps(graph, chosen)
    return grouped(steps, primitives, chosen) or allocated(steps, primitives, chosen)


def plain_program(graph: Graph, outputs: Sequence[int] | None = None) -> interpreter.Program:
    """The program that runs node after node, whatever the graph. Raises as `compile_graph`."""
    chosen = _chosen(graph, outputs)
    return allocated(needed_steps(graph, chosen), vocabulary(graph.cases), chosen)


def grouped_program(graph: Graph) -> GroupedProgram | None:
    """The program that runs in groups whatever can be, however small they are; None if most cannot. Raises as `compile_graph`."""
    chosen = _chosen(graph, None)
    return grouped(needed_steps(graph, chosen), vocabulary(graph.cases), chosen, always=True)


def needed_inputs(graph: Graph) -> set[Key]:
    """The inputs of a self-contained graph that its outputs depend on. Raises as `compile_graph`."""
    return {graph.inputs[k].key for k in needed_steps(graph, _chosen(graph, None)).inputs}


def _chosen(graph: Graph, outputs: Sequence[int] | None) -> tuple[Output, ...]:
    if len(graph.external):
        raise TransformError(f"graph '{graph.name}' reads values of other graphs; run tidu materialize first")
    return tuple(graph.outputs if outputs is None else (graph.outputs[k] for k in outputs))


LEFT, RIGHT = 1, 2
"""Which operands of a step die in it; both are the sum."""

KEPT = 4
"""What stands there for a step whose result is kept for later runs, whose operands are kept, too."""


def allocated(steps: Steps, primitives: PrimitiveSet, outputs: Sequence[Output]) -> interpreter.Program:
    """The program of these steps. Linear in their number."""
    graph, n = steps.graph, steps.n_steps
    last = steps.last_uses()
    constant = constant_steps(steps)
    kept = constant.nonzero()[0]
    last[spans(steps.first[kept], steps.first[kept + 1])] = n  # for the next run
    code = graph.code if steps.kept is None else column_of(steps.code)
    kernel = _reuses(steps, primitives, last)
    left, right, target, cleared = (column([0]) * n for _ in range(4))
    slot, n_slots, wide = _slots(steps, constant, last, tuple(map(array_of, (left, right, target, cleared))))
    del last
    return interpreter.Program(
        graph=Graph(graph.name, graph.inputs, graph.outputs, graph.cases),
        primitives=primitives,
        inputs=tuple(graph.inputs[k] for k in steps.inputs),
        input_slots=tuple(slot[: len(steps.inputs)]),
        outputs=tuple(outputs),
        output_slots=tuple(None if v is None else slot[v] for v in steps.outputs),
        n_slots=n_slots,
        node=steps.node,
        code=code,
        kernel=code if kernel is None else column_of(kernel),
        left=left,
        right=right,
        target=target,
        cleared=cleared,
        wide=tuple(wide),
        constant=constant.tobytes(),
    )


def _slots(
    steps: Steps, constant: NDArray[Any], last: NDArray[Any], columns: tuple[NDArray[Any], ...]
) -> tuple[Column[int], int, list[interpreter.Wide]]:
    """The slot of each value, how many there are, and the slots of the steps that are not regular. Fills in a program's columns."""
    n_inputs = len(steps.inputs)
    slot = column(range(interpreter.SCRATCH + 1, interpreter.SCRATCH + 1 + n_inputs))
    fresh = count(interpreter.SCRATCH + 1 + n_inputs)
    free = column()
    wide: list[interpreter.Wide] = []
    append = slot.append
    watched = watch("allocating", steps.n_steps)
    for block in blocks(0, steps.n_steps):
        arity, number = steps.arity(block), np.arange(block.start, block.stop)
        left, right = steps.operand(0, block, arity), steps.operand(1, block, arity)
        dying = LEFT * ((arity > 0) & (last[left] == number)) + RIGHT * ((arity > 1) & (last[right] == number) & (right != left))
        dying[constant[block]] = KEPT
        irregular = ((arity < 1) | (arity > 2) | (steps.n_results(block) != 1)).nonzero()[0]
        n_wide, rows = len(wide), (dying.tolist(), left.tolist(), right.tolist())
        # Stretches of regular steps, which most are, between others.
        for before, end in pairwise([-1, *irregular.tolist(), len(arity)]):
            if before >= 0:
                step = block.start + before
                reusable = column() if constant[step] else free
                wide.append(_irregular(steps, step, last, slot, reusable, fresh))
            for d, a, b in watched(zip(*[values[before + 1 : end] for values in rows], strict=True)):
                if d == LEFT:
                    append(slot[a])
                elif d == RIGHT:
                    append(slot[b])
                elif d == LEFT | RIGHT:
                    append(slot[b])
                    free.append(slot[a])
                elif free and not d:
                    append(free.pop())
                else:
                    append(next(fresh))
        array = array_of(slot)
        lefts, rights, target, cleared = (column[block] for column in columns)
        lefts[:], rights[:], target[:] = array[left], array[right], array[steps.first[block]]
        # The result takes the place of the last operand to die; where two do, the other one's is cleared.
        cleared[:] = np.where(dying == LEFT | RIGHT, lefts, interpreter.SCRATCH)
        rights[arity == 1] = interpreter.UNARY
        lefts[irregular] = np.arange(n_wide, len(wide))
        rights[irregular] = interpreter.WIDE
        cleared[irregular] = interpreter.SCRATCH
        del array  # while it exists, `slot` cannot grow
    return slot, next(fresh), wide


def _irregular(
    steps: Steps, step: int, last: NDArray[Any], slot: Column[int], free: Column[int], fresh: Iterator[int]
) -> interpreter.Wide:
    """The slots of one step of any number of operands and results, which get `free` or `fresh` ones."""
    reads, results = steps.reads(step), range(int(steps.first[step]), int(steps.first[step + 1]))
    dying = [slot[a] for a in dict.fromkeys(reads) if last[a] == step]
    writes = []
    for _ in results:
        if dying and len(results) == 1:
            writes.append(dying.pop())
        else:
            writes.append(free.pop() if free else next(fresh))
    slot.extend(writes)
    dying += [slot[v] for v in results if last[v] < 0]
    free.extend(dying)
    return interpreter.Wide(tuple(slot[a] for a in reads), tuple(writes), tuple(dying))


def _reuses(steps: Steps, primitives: PrimitiveSet, last: NDArray[Any]) -> NDArray[Any] | None:
    """The number of each step's kernel: one that makes its result in the memory of an operand, where it may. None if none may.

    The operand must die there, and have memory of its own: it was made by a step whose results are new arrays, and read only by
    such steps. Any other kernel may give a view of what it reads, or an array that it keeps.
    """
    cases = steps.graph.cases
    fresh, into = np.zeros(len(cases), bool), np.zeros((2, len(cases)), bool)
    for code in np.flatnonzero(counts(steps.code, len(cases))).tolist():
        case = cases[code]
        primitive, result = primitives[case.op], case.results[0]
        # A record may pass on arrays that others see, also where its fields are sums: x + 0 is x. One number is not worth it, and
        # NumPy rounds the product of two complex numbers otherwise where it goes into the memory of a factor.
        if len(case.results) == 1 and isinstance(result, TensorType) and result.size > 1:
            fresh[code] = primitive.evaluation.fresh or interpreter.is_ufunc(np, primitive, case)
            into[:, code] = [fresh[code] and interpreter.reusing_kernel(np, primitive, case, k) is not None for k in (0, 1)]
    reusing = into[0] | into[1]
    if not reusing.any():
        return None
    own = np.zeros(steps.n_values, bool)
    for block in blocks(0, steps.n_steps):
        own[steps.first[block][fresh[steps.code[block]]]] = True
    for block in blocks(0, steps.n_steps):
        args = steps.args[steps.start[block.start] : steps.start[block.stop]]
        own[args[np.repeat(~fresh[steps.code[block]], steps.arity(block))]] = False
    kernels = steps.code.copy()
    for block in blocks(0, steps.n_steps):
        for step in (np.flatnonzero(reusing[steps.code[block]]) + block.start).tolist():
            reads = steps.reads(step)
            code = int(steps.code[step])
            for k, a in enumerate(reads[:2]):
                if into[k, code] and own[a] and last[a] == step and reads.count(a) == 1:
                    kernels[step] = interpreter.reusing_number(code, k)
                    break
    return kernels
