"""Programs of the machine: a graph's instructions, and runs of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tidu_cli.errors import EvaluationError
from tidu_cli.graph.graph import Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.engines.native.compiling import function
from tidu_cli.runtime.engines.native.layout import Entry, Escape, Layout, Place, Rows, Words, joined, rows
from tidu_cli.runtime.engines.native.lowering import Lowering
from tidu_cli.runtime.engines.native.machine import ESCAPE, FUEL, JUMP_BACK, STOP
from tidu_cli.runtime.plans.interpreter import entering, owned
from tidu_cli.runtime.plans.steps import needed_steps

FUEL_EACH = 10**6
"""How many jumps back until Python may look for signals."""


@dataclass(frozen=True, eq=False)
class NativeProgram:
    """A graph as instructions, where its inputs and outputs are, and how many words and entries it takes."""

    graph: Graph
    primitives: PrimitiveSet
    inputs: tuple[Input, ...]
    input_places: tuple[Place, ...]
    outputs: tuple[Output, ...]
    output_places: tuple[Place | None, ...]
    code: Rows
    layout: Layout
    _idle: list[Registers] = field(default_factory=list)

    def run(self, inputs: Mapping[Key, Any], *, once: bool = False) -> list[Any]:
        """The values of `outputs`, as `Program.run` gives them, but for roundings. Raises EvaluationError when memory runs out."""
        try:
            with np.errstate(all="ignore"):
                registers = self._idle.pop() if self._idle else Registers(self.layout)
                for declared, place in zip(self.inputs, self.input_places, strict=True):
                    registers.put(declared.type, place, inputs[declared.key])
                registers.execute(self.code)
                ends = zip(self.outputs, self.output_places, strict=True)
                found = owned(np, [None if p is None else registers.get(o.type, p) for o, p in ends], self.outputs)
                if not once:
                    self._idle.append(registers)
                return found
        except MemoryError:
            raise EvaluationError(f"graph '{self.graph.name}': evaluation ran out of memory") from None

    def nbytes(self) -> int:
        """About how many bytes a run takes, with inputs and results."""
        ends = sum(t.nbytes for t in (*[i.type for i in self.inputs], *[o.type for o in self.outputs]))
        entries = sum(t.nbytes for e in self.layout.escapes for t, place in e.writes if isinstance(place, Entry))
        return 8 * self.layout.n_words + ends + entries


class Registers:
    """The words and entries of one run at a time."""

    def __init__(self, layout: Layout) -> None:
        self.words = np.empty(layout.n_words, np.int64)
        self.entries: list[Any] = [None] * layout.n_entries
        self.escapes = layout.escapes
        self.kernels: dict[int, Any] = {}
        for type_, place, value in layout.constants:
            self.put(type_, place, value)

    def put(self, type_: Type, place: Place, value: Any) -> None:
        """Put a value to its place."""
        if isinstance(place, Entry):
            self.entries[place.number] = entering(np, value)
            return
        assert isinstance(type_, TensorType)
        _elements(self.words, type_.dtype, place)(value)

    def get(self, type_: Type, place: Place) -> Any:
        """The value at a place, in memory of its own if it is an array of numbers."""
        if isinstance(place, Entry):
            return self.entries[place.number]
        assert isinstance(type_, TensorType)
        return _taken(self.words, type_.dtype, place)

    def execute(self, code: Rows) -> None:
        """Run the instructions from the first to the end."""
        run, at, words, first = function("run"), 0, self.words.ctypes.data, code.ctypes.data
        self.words[FUEL] = FUEL_EACH
        while True:
            at = run(first, at, words, 1)
            opcode, number = code[at, :2].tolist()
            if opcode == STOP:
                return
            if opcode == JUMP_BACK:
                self.words[FUEL] = FUEL_EACH
                continue
            assert opcode == ESCAPE
            self._escaped(number, self.escapes[number])
            at += 1

    def _escaped(self, number: int, escape: Escape) -> None:
        kernel = self.kernels.get(number)
        if kernel is None:
            kernel = self.kernels[number] = escape.kernel()
        results = kernel(*[self.get(t, place) for t, place in escape.reads])
        for (type_, place), value in zip(escape.writes, results if len(escape.writes) > 1 else (results,), strict=True):
            if isinstance(place, Entry):
                self.entries[place.number] = value
            else:
                self.put(type_, place, value)


def _view(words: Any, dtype: str) -> tuple[Any, int]:
    """The words as numbers of a dtype, and how many of these a word holds."""
    if dtype == "bool":
        return words, 1
    held = "f8" if dtype == "c128" else numpy_dtype(np, dtype)
    view = words.view(held)
    return view, len(view) // len(words)


def _elements(words: Any, dtype: str, place: Words) -> Any:
    def put(value: Any) -> None:
        view, step = _view(words, dtype)
        if dtype == "c128":
            view[place], view[place + 1] = np.real(value), np.imag(value)
        else:
            view[place * step] = value

    return put


def _taken(words: Any, dtype: str, place: Words) -> Any:
    view, step = _view(words, dtype)
    if dtype == "bool":
        return view[place] & 1 != 0
    if dtype != "c128":
        return view[place * step]
    found = np.empty(place.shape, np.complex128)
    found.real, found.imag = view[place], view[place + 1]
    return found[()]


def native_program(graph: Graph, primitives: PrimitiveSet, outputs: Sequence[Output]) -> NativeProgram:
    """The program that computes these outputs of a self-contained graph. Linear in its size."""
    steps, lowering = needed_steps(graph, outputs), Lowering(primitives)
    inputs = tuple([graph.inputs[k] for k in steps.inputs])
    given = tuple([lowering.layout.new(i.type) for i in inputs])
    code, found = lowering.steps(steps, given)
    return NativeProgram(
        graph=Graph(graph.name, graph.inputs, graph.outputs, graph.cases),
        primitives=primitives,
        inputs=inputs,
        input_places=given,
        outputs=tuple(outputs),
        output_places=tuple(found),
        code=joined([code, rows(STOP)]),
        layout=lowering.layout,
    )
