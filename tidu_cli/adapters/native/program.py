"""Programs of the machine: a graph's instructions, and runs of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidu_cli.adapters.native.compiling import machine
from tidu_cli.adapters.native.layout import Entry, Escape, Layout, Place, Rows, Words, index_of, joined, rows
from tidu_cli.adapters.native.lowering import Lowering
from tidu_cli.adapters.native.machine import FUEL, JUMP_BACK, STOP
from tidu_cli.errors import EvaluationError, StepsError, placed
from tidu_cli.graph.graph import Graph, Input, Output
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.limits import StepCounting, Steps, steps
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.plans.interpreter import Runnable, entering, owned
from tidu_cli.runtime.plans.steps import needed_steps

FUEL_EACH = 10**6
"""How many jumps back until Python may look for signals."""


@dataclass(frozen=True, eq=False)
class NativeProgram(Runnable):
    """A graph as instructions, where its inputs and outputs are, and how many words and entries it takes."""

    graph: Graph
    primitives: PrimitiveSet
    inputs: tuple[Input, ...]
    input_places: tuple[Place, ...]
    outputs: tuple[Output, ...]
    output_places: tuple[Place | None, ...]
    code: Rows
    irregular: NDArray[Any]
    layout: Layout
    _idle: list[Registers] = field(default_factory=list)

    def run_in_order(self, values: Sequence[Any], *, once: bool = False) -> list[Any]:
        """The values of `outputs`, as `Program` gives them, but for roundings."""
        try:
            registers = self._idle.pop() if self._idle else Registers(self)
            for value, put in zip(values, registers.inputs, strict=True):
                put(value)
            with StepCounting():
                registers.execute(self.code)
            outputs = owned(np, [get() for get in registers.outputs], self.outputs)
            if not once:
                self._idle.append(registers)
            return outputs
        except MemoryError:
            raise EvaluationError(f"graph '{self.graph.name}': evaluation ran out of memory") from None

    def running_on(self, at: int, error: StepsError) -> StepsError:
        """The error of a loop that takes more steps than there are, at an instruction of it, with graph and node."""
        start, nodes, codes = self.irregular
        step = np.searchsorted(start, at, "right") - 1
        return StepsError(placed(f"graph '{self.graph.name}', node {nodes[step]} ({self.graph.cases[codes[step]].op})", error))

    def nbytes(self) -> int:
        """About how many bytes a run takes, with inputs and results."""
        ends = sum(t.nbytes for t in (*[i.type for i in self.inputs], *[o.type for o in self.outputs]))
        entries = sum(t.nbytes for e in self.layout.escapes for t, place in e.writes if isinstance(place, Entry))
        return 8 * self.layout.n_words + ends + entries


class Registers:
    """The words and entries of one run at a time."""

    def __init__(self, program: NativeProgram) -> None:
        layout = program.layout
        self.words = np.empty(layout.n_words, np.int64)
        self.entries: list[Any] = [None] * layout.n_entries
        self.escapes = layout.escapes
        self.kernels: dict[int, Callable[[], None]] = {}
        self.machine = machine("run", program.code)
        self.running_on = program.running_on
        for type_, place, value in layout.constants:
            self._putting(type_, place)(value)
        self.inputs = [self._putting(i.type, p) for i, p in zip(program.inputs, program.input_places, strict=True)]
        ends = zip(program.outputs, program.output_places, strict=True)
        self.outputs = [_nothing if p is None else self._getting(o.type, p) for o, p in ends]

    def execute(self, code: Rows) -> None:
        """Run the instructions from the first to the end."""
        run, at, words, first = self.machine, 0, self.words.ctypes.data, code.ctypes.data
        left = steps()
        try:
            while True:
                fuel = self.words[FUEL] = fuel_of(left)
                at = run(first, at, words, 1)
                stopped = code[at, 0]
                if left is not None:
                    left.take(fuel + (stopped == JUMP_BACK and fuel == left.left) - max(int(self.words[FUEL]), 0))
                if stopped == STOP:
                    return
                if stopped == JUMP_BACK:
                    continue
                number = int(code[at, 1])
                if number not in self.kernels:
                    self.kernels[number] = self._escaping(self.escapes[number])
                self.kernels[number]()
                at += 1
        except StepsError as error:
            raise self.running_on(at, error) from None

    def _escaping(self, escape: Escape) -> Callable[[], None]:
        kernel, single = escape.kernel(), len(escape.writes) == 1
        reads, writes = [self._getting(*read) for read in escape.reads], [self._putting(*write) for write in escape.writes]

        def compute() -> None:
            with np.errstate(all="ignore"):
                results = kernel(*[get() for get in reads])
            for put, value in zip(writes, (results,) if single else results, strict=True):
                put(value)

        return compute

    def _putting(self, type_: Type, place: Place) -> Callable[[Any], None]:
        """What puts a value to its place."""
        if isinstance(place, Entry):
            entries, number = self.entries, place.number
            return lambda value: entries.__setitem__(number, entering(np, value))
        assert isinstance(type_, TensorType)
        view, at = _cells(self.words, type_.dtype, place)
        if type_.dtype != "c128":
            return lambda value: view.__setitem__(at, value)
        imaginary, after = _cells(self.words, type_.dtype, place + 1)

        def put(value: Any) -> None:
            view[at], imaginary[after] = np.real(value), np.imag(value)

        return put

    def _getting(self, type_: Type, place: Place) -> Callable[[], Any]:
        """What gives the value at a place, in memory of its own if it is an array of numbers."""
        if isinstance(place, Entry):
            entries, number = self.entries, place.number
            return lambda: entries[number]
        assert isinstance(type_, TensorType)
        view, at = _cells(self.words, type_.dtype, place)
        if type_.dtype == "bool":
            return lambda: view[at] & 1 != 0
        if type_.dtype != "c128":
            return (lambda: view[at]) if isinstance(at, int) else (lambda: view[at].copy())
        imaginary, after = _cells(self.words, type_.dtype, place + 1)

        def get() -> Any:
            numbers = np.empty(place.shape, np.complex128)
            numbers.real, numbers.imag = view[at], imaginary[after]
            return numbers[()]

        return get


def fuel_of(left: Steps | None) -> int:
    """How many jumps back there may be until Python looks for signals, and counts steps where they are limited."""
    return FUEL_EACH if left is None else min(FUEL_EACH, left.left)


def _nothing() -> None:
    """A structural zero."""


def _cells(words: Any, dtype: str, place: Words) -> tuple[Any, Any]:
    """The registers as numbers of a dtype, and which of these are at a place: a number, or an array of them."""
    view = words if dtype == "bool" else words.view("f8" if dtype == "c128" else numpy_dtype(np, dtype))
    at = index_of(place * (len(view) // len(words)))
    if isinstance(at, int):
        return view, at
    return (view[at].reshape(place.shape), ...) if isinstance(at, slice) else (view, at.reshape(place.shape))


def native_program(graph: Graph, primitives: PrimitiveSet, outputs: Sequence[Output]) -> NativeProgram:
    """The program that computes these outputs of a self-contained graph. Linear in its size. Raises LimitError."""
    steps, lowering = needed_steps(graph, outputs), Lowering(primitives)
    inputs = tuple([graph.inputs[k] for k in steps.inputs])
    given = tuple([lowering.layout.new(i.type) for i in inputs])
    code, places, irregular = lowering.steps(steps, given)
    return NativeProgram(
        graph=Graph(graph.name, graph.inputs, graph.outputs, graph.cases),
        primitives=primitives,
        inputs=inputs,
        input_places=given,
        outputs=tuple(outputs),
        output_places=tuple(places),
        code=joined([code, rows(STOP)]),
        irregular=irregular,
        layout=lowering.layout,
    )
