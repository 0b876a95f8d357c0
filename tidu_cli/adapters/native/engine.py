"""Graphs of scalars, and loops of such, as instructions of one machine-code function: what the port of engines describes.

Of a batch, blocks of many items go through the instructions together, or one after the other, on all cores. Each thread has
registers of its own. What is computed of an item does not depend on the others, nor on how items fall into blocks.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidu_cli.adapters.native.compiling import machine
from tidu_cli.adapters.native.layout import Entry, Place, Words, index_of, width
from tidu_cli.adapters.native.loops import LOOPS
from tidu_cli.adapters.native.lowering import is_own, written_out
from tidu_cli.adapters.native.machine import FUEL, JUMP_BACK, LANES, TABLE, for_many
from tidu_cli.adapters.native.program import NativeProgram, fuel_of, native_program
from tidu_cli.errors import EvaluationError, TransformError
from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.dataflow import array_of, counts
from tidu_cli.graph.graph import Case, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.limits import Steps, limits
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.memory import allowed_bytes, check_memory
from tidu_cli.runtime.plans.interpreter import Run

CACHE_BYTES = 2**21
"""What registers should take, where they can."""

FEWEST_LANES, MOST_LANES = 32, 4096
"""With fewer items in a block, what Python does for each block counts; more gain nothing."""

MOST_BYTES = 2**27
"""What the registers of all threads should take at most. Where the words of an item leave room for few, each item goes alone."""


def batched(program: NativeProgram, keys: Collection[Key], size: int, room: int) -> Run | None:
    """The run of a program over up to `size` items of the inputs `keys`, whose registers take at most `room` bytes.

    None if it needs more than the machine.
    """
    ends = [(i.type, p) for i, p in zip(program.inputs, program.input_places, strict=True)]
    ends += [(o.type, p) for o, p in zip(program.outputs, program.output_places, strict=True) if p is not None]
    if program.layout.escapes or any(isinstance(p, Entry) for _, p in ends):
        return None
    return _Batch(program, keys, size, room).run


class _Batch:
    """The threads and registers that a batch runs on."""

    def __init__(self, program: NativeProgram, keys: Collection[Key], size: int, room: int) -> None:
        self.program = program
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        bytes_each = 8 * program.layout.n_words
        self.width = self._lanes(bytes_each, size, cores, min(room, MOST_BYTES) // cores)
        self.threads = max(min(cores, room // (bytes_each * self.width)), 1)
        self.idle: list[_Registers] = []
        cells = [(i.key, _cell(i.type, p)) for i, p in zip(program.inputs, program.input_places, strict=True)]
        self.given, self.shared = ([c for c in cells if (c[0] in keys) == each] for each in (True, False))
        made = zip(program.outputs, program.output_places, strict=True)
        self.made = [(k, _cell(o.type, p)) for k, (o, p) in enumerate(made) if p is not None]
        self.machine = machine("run_many" if self.width > 1 else "run", program.code)

    def _lanes(self, bytes_each: int, size: int, cores: int, room: int) -> int:
        """How many items go together in a thread's room; where they may part ways, each goes its own."""
        if not self.program.layout.uniform or not _all_for_many(self.program.code):
            return 1
        worthwhile = min(max(CACHE_BYTES // bytes_each, FEWEST_LANES), MOST_LANES)
        share = size if bytes_each < CACHE_BYTES else -(-size // cores)  # of a long program, whose runs take milliseconds
        lanes = min(worthwhile, room // bytes_each, share + LANES - 1) // LANES * LANES
        return max(lanes, 1)

    def run(self, inputs: Mapping[Key, Any]) -> list[Any]:
        """The values of the outputs for each item."""
        size = max([len(inputs[key]) for key, _ in self.given], default=1)
        outputs = [np.zeros((size, *o.type.shape), numpy_dtype(np, o.type.dtype)) for o in self.program.outputs]  # type: ignore[union-attr]
        per_task = self.width * max(1, -(-size // (self.width * self.threads * 4)))
        begins = range(0, size, per_task)
        stopped, allowed = Event(), limits().steps  # which other threads do not see

        def task(begin: int) -> None:
            registers = self.idle.pop() if self.idle else _Registers(self.program, self.width)
            for key, cell in self.shared:
                registers.put(cell, np.asarray(inputs[key])[None])
            for first in range(begin, min(begin + per_task, size), self.width):
                self._block(registers, inputs, outputs, slice(first, min(first + self.width, size)), stopped, allowed)
            self.idle.append(registers)

        if len(begins) == 1:
            task(0)
            return outputs
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                list(pool.map(task, begins))
            except BaseException:
                stopped.set()
                raise
        return outputs

    def _block(self, registers: _Registers, inputs: Mapping[Key, Any], outputs: list[Any], items: slice, stopped: Event,
               allowed: int | None) -> None:  # fmt: skip
        for key, cell in self.given:
            registers.put(cell, inputs[key][items])
        code, words, at = self.program.code, registers.words, 0
        left = None if allowed is None else Steps(allowed)
        while not stopped.is_set():
            words[FUEL] = fuel = fuel_of(left)
            at = self.machine(code.ctypes.data, at, words.ctypes.data, self.width)
            if code[at, 0] != JUMP_BACK:
                break
            if left is not None:
                if fuel == left.left:
                    raise self.program.running_on(at, left.refusal())
                left.take(fuel)
        for number, cell in self.made:
            registers.get(cell, outputs[number][items])


class _Cell(NamedTuple):
    """What picks the rows of registers where the numbers of a value are, for each part that those of the dtype have."""

    dtype: str
    parts: tuple[int | slice | Words, ...]


def _cell(type_: Type, place: Place) -> _Cell:
    assert isinstance(type_, TensorType) and not isinstance(place, Entry)
    return _Cell(type_.dtype, tuple([index_of(place + k) for k in range(width(type_.dtype))]))


class _Registers:
    """The registers of one thread: a row of items for each word, which holds the constants of a program."""

    def __init__(self, program: NativeProgram, lanes: int) -> None:
        self.words = np.zeros((program.layout.n_words, lanes), np.int64)
        self.views = {"bool": self.words}
        for type_, place, value in program.layout.constants:
            self.put(_cell(type_, place), np.asarray(value)[None])

    def _numbers(self, dtype: str) -> NDArray[Any]:
        """The registers as numbers of a dtype."""
        if dtype not in self.views:
            view = self.words.view("f8" if dtype == "c128" else numpy_dtype(np, dtype))
            self.views[dtype] = view[:, :: view.shape[1] // self.words.shape[1]]
        return self.views[dtype]

    def put(self, cell: _Cell, values: NDArray[Any]) -> None:
        """Set the value for each item; of one value for all."""
        numbers, n = self._numbers(cell.dtype), len(values) if len(values) > 1 else None
        columns = values if values.ndim == 1 else values.reshape(len(values), -1).T
        for at, part in zip(cell.parts, (columns.real, columns.imag) if len(cell.parts) > 1 else (columns,), strict=True):
            numbers[at, :n] = part

    def get(self, cell: _Cell, values: NDArray[Any]) -> None:
        """Fill in the value of each item."""
        numbers = self._numbers(cell.dtype)
        columns = values if values.ndim == 1 else values.reshape(len(values), -1).T
        for at, part in zip(cell.parts, (columns.real, columns.imag) if len(cell.parts) > 1 else (columns,), strict=True):
            part[...] = numbers[at, : len(values)] & 1 if cell.dtype == "bool" else numbers[at, : len(values)]


def _all_for_many(code: NDArray[Any]) -> bool:
    missing = [number for number, signature in enumerate(TABLE) if not for_many(signature)]
    return not np.isin(code[:, 0], missing).any()


def refusal(graph: Graph, primitives: PrimitiveSet) -> str | None:
    """Why native is not an engine for a graph: it leaves to NumPy what it has no instruction for, and that is most nodes."""
    cases = graph.cases
    n = counts(array_of(graph.code), len(cases))
    used = np.flatnonzero(n).tolist()
    others = [number for number in used if not is_own(cases[number]) and written_out(cases[number], primitives) is None]
    if 2 * sum(int(n[number]) for number in others) <= graph.n_nodes:
        return None
    node = int(np.flatnonzero(np.isin(array_of(graph.code), others))[0])
    case = cases[int(graph.code[node])]
    lacking = next((inner.op for inner in cases_within([case]) if inner.op not in LOOPS and not is_own(inner)), case.op)
    what = f"{graph.describe(node)} has no native instruction{f' for {lacking}' if lacking != case.op else ''}"
    return f"{what}, as most nodes of this graph: choose the engine numpy, or xla"


def takes(case: Case, primitives: PrimitiveSet) -> str:
    """By what a node of a case is computed."""
    if is_own(case):
        return "machine code"
    return "NumPy's kernel" if written_out(case, primitives) is None else "machine code of its definition"


def program(graph: Graph, primitives: PrimitiveSet, outputs: Sequence[int] | None, device: str | None) -> NativeProgram:
    """The graph made ready to run on one core of the processor."""
    if len(graph.external):
        raise TransformError(f"graph '{graph.name}' reads values of other graphs; run tidu materialize first")
    if device not in (None, "cpu"):
        raise EvaluationError(f"the engine native has no device '{device}', only cpu")
    told = refusal(graph, primitives)
    if told is not None:
        raise EvaluationError(f"the engine native cannot run it: {told}")
    chosen = tuple(graph.outputs if outputs is None else (graph.outputs[k] for k in outputs))
    return native_program(graph, primitives, chosen)


def batch(graph: Graph, keys: Collection[Key], size: int, max_memory: int | None = None) -> Run | None:
    """A run over items of the inputs `keys`, on all cores; None if NumPy is needed, which takes many items at once."""
    primitives = vocabulary(graph.cases)
    if refusal(graph, primitives) is not None:
        return None
    made = native_program(graph, primitives, graph.outputs)
    check_memory(made, max_memory)
    return batched(made, keys, size, allowed_bytes(max_memory))
