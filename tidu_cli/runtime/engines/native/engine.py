"""The native engine: graphs of scalars on a machine that interprets them in machine code.

What it has no opcode for runs as the plain interpreter runs it, in between. No graph is compiled.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.errors import EvaluationError
from tidu_cli.graph.graph import Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import Type
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.engines.contract import Run
from tidu_cli.runtime.engines.native.lowering import Instructions
from tidu_cli.runtime.engines.native.machine import ESCAPE
from tidu_cli.runtime.engines.native.operations import dtype_of, operation_of
from tidu_cli.runtime.plans.interpreter import Program, Wide, entering, owned
from tidu_cli.runtime.plans.slots import allocated
from tidu_cli.runtime.plans.steps import needed_steps


def refusal(graph: Graph, primitives: PrimitiveSet) -> str | None:
    """As `EngineModule` says: it refuses graphs of which it would run nothing itself."""
    codes = dict.fromkeys(graph.code)
    if not codes or any(operation_of(graph.cases[code]).opcode != ESCAPE for code in codes):
        return None
    return f"graph '{graph.name}' computes nothing of single numbers, {graph.describe(0)} neither; take the engine numpy or xla"


def program(graph: Graph, primitives: PrimitiveSet, outputs: Sequence[int] | None, device: str | None) -> NativeProgram:
    """As `EngineModule` says."""
    reason = refusal(graph, primitives)
    if reason is not None:
        raise EvaluationError(f"the engine native cannot run this: {reason}")
    if device not in (None, "cpu"):
        raise EvaluationError(f"the engine native runs on the cpu, not on '{device}'; leave the device out, or take the engine xla")
    chosen = tuple(graph.outputs if outputs is None else (graph.outputs[k] for k in outputs))
    return NativeProgram(allocated(needed_steps(graph, chosen), primitives, chosen))


def batch(graph: Graph, keys: Collection[Key], size: int) -> Run | None:
    """As `EngineModule` says."""
    return None


class NativeProgram:
    """A program whose steps are instructions of the machine; arrays and records lie in entries, by slot, as in the interpreter."""

    def __init__(self, plan: Program) -> None:
        from tidu_cli.runtime.engines.native.compiling import function

        self.plan = plan
        self.instructions = Instructions(plan)
        self._machine = function("run")
        self._registers = np.zeros(self.instructions.n_words, np.int64)
        self._entries: list[Any] = [None] * plan.n_slots
        space = Space(self)
        with np.errstate(all="ignore"):
            for step in np.flatnonzero(np.frombuffer(plan.constant, np.uint8)).tolist():
                space.step(step)
            for word, (dtype, number) in self.instructions.numbers.items():
                space.views[dtype][_index(word, dtype)] = number
        self._registers, self._entries = space.registers, space.entries

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Those that a run needs."""
        return self.plan.inputs

    @property
    def outputs(self) -> tuple[Output, ...]:
        """What it computes."""
        return self.plan.outputs

    @property
    def primitives(self) -> PrimitiveSet:
        """Those of the graph."""
        return self.plan.primitives

    def nbytes(self) -> int:
        """More than a run takes."""
        return self.plan.nbytes() + self._registers.nbytes + self.instructions.rows.nbytes

    def run(self, inputs: Mapping[Key, Any], *, once: bool = False) -> list[Any]:
        """As `Runnable` says."""
        plan, rows = self.plan, self.instructions.rows
        try:
            with np.errstate(all="ignore"):
                space = Space(self)
                for declared, slot in zip(plan.inputs, plan.input_slots, strict=True):
                    space.put(slot, declared.type, entering(np, inputs[declared.key]))
                end, at = len(rows) - 1, 0
                code, registers = rows.ctypes.data, space.registers.ctypes.data
                while (at := self._machine(code, at, registers, 1)) < end:
                    while rows[at, 0] == ESCAPE:
                        space.step(int(self.instructions.step[at]))
                        at += 1
                ends = zip(plan.outputs, plan.output_slots, strict=True)
                found = [None if slot is None else space.get(slot, o.type) for o, slot in ends]
                del space
                return owned(np, found, plan.outputs)
        except MemoryError:
            raise EvaluationError(f"graph '{plan.graph.name}': evaluation ran out of memory") from None


class Space:
    """The registers and the entries of a run."""

    def __init__(self, program: NativeProgram) -> None:
        self.plan, self.scale = program.plan, program.instructions.scale
        self.registers = program._registers.copy()
        self.entries = program._entries.copy()
        self.views = {dtype: self.registers.view(np.dtype(name)) for dtype, name in _NUMPYS.items() if dtype != "c128"}
        if self.scale == 2:
            self.views["c128"] = self.registers.view(np.complex128)

    def get(self, slot: int, type_: Type | None) -> Any:
        """The value in a slot."""
        dtype = dtype_of(type_)
        return self.views[dtype][_index(slot * self.scale, dtype)] if dtype else self.entries[slot]

    def put(self, slot: int, type_: Type | None, value: Any) -> None:
        """Have a slot hold a value."""
        dtype = dtype_of(type_)
        if not dtype:
            self.entries[slot] = value
        elif dtype == "bool":
            self.registers[slot * self.scale] = bool(value)
        else:
            self.views[dtype][_index(slot * self.scale, dtype)] = value

    def step(self, step: int) -> None:
        """A step as the interpreter makes it."""
        plan = self.plan
        case, slots = plan.graph.cases[plan.code[step]], plan.slots(step)
        kernel = plan.kernels[plan.kernel[step]]
        results = kernel(*[self.get(k, t) for k, t in zip(slots.reads, case.operands, strict=True)])
        for k, t, value in zip(slots.writes, case.results, results if len(slots.writes) > 1 else (results,), strict=True):
            self.put(k, t, value)
        self._clear(slots)

    def _clear(self, slots: Wide) -> None:
        for k in slots.clears:
            self.entries[k] = None


_NUMPYS = {
    "f64": "f8", "f32": "f4", "c64": "c8", "c128": "c16", "bool": "?",
    **{f"{sign}{8 * n}": f"{sign}{n}" for sign in "iu" for n in (1, 2, 4, 8)},
}  # fmt: skip
_SIZES = {dtype: np.dtype(name).itemsize for dtype, name in _NUMPYS.items()}


def _index(word: int, dtype: str) -> int:
    """The number of the element of a view of that dtype that begins a word."""
    return word * 8 // _SIZES[dtype]
