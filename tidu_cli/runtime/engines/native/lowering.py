"""From the plain interpreter's programs to instructions of the machine."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidu_cli.graph.columns.blocks import array_of
from tidu_cli.runtime.engines.native.machine import ESCAPE, FIELDS, STOP
from tidu_cli.runtime.engines.native.operations import Operation, operation_of
from tidu_cli.runtime.plans.interpreter import UNARY, WIDE, Program


class Instructions:
    """The instructions of a program: rows of `FIELDS` numbers, and the step that each row belongs to.

    The word of a slot is its number times `scale`, 2 where complex numbers of 128 bits occur. `numbers` are those that instructions
    read though no step makes them, with their dtypes: they have words of their own after those of the slots.
    """

    def __init__(self, program: Program) -> None:
        cases = program.graph.cases
        used = sorted(set(program.code))
        self.operations: dict[int, Operation] = {code: operation_of(cases[code]) for code in used}
        self.scale = 2 if any(t is not None and getattr(t, "dtype", "") == "c128" for c in used for t in _types(cases[c])) else 1
        self.n_words = program.n_slots * self.scale
        self.numbers: dict[int, tuple[str, Any]] = {}
        size = max(used, default=-1) + 1
        opcode, last, three = np.full(size, ESCAPE, np.int32), np.full(size, -1, np.int32), np.zeros(size, bool)
        for code, operation in self.operations.items():
            opcode[code], three[code] = operation.opcode, operation.arity == 3 and operation.opcode != ESCAPE
            if operation.number is not None:
                last[code] = self._number(cases[code].operands[0].dtype, operation.number)  # type: ignore[union-attr]
        self._write(program, opcode, last, three)

    def _number(self, dtype: str, number: Any) -> int:
        word, self.n_words = self.n_words, self.n_words + self.scale
        self.numbers[word] = dtype, number
        return word

    def _write(self, program: Program, opcode: NDArray[Any], last: NDArray[Any], three: NDArray[Any]) -> None:
        once = np.frombuffer(program.constant, np.uint8) != 0
        steps = np.flatnonzero(~once).astype(np.int32)
        code = array_of(program.code)[steps] if len(steps) < program.n_steps else array_of(program.code)
        left, right, target = (array_of(c)[steps] for c in (program.left, program.right, program.target))
        double = three[code] if three.any() else np.zeros(len(code), bool)
        place = np.cumsum(double) - double + np.arange(len(code)) if double.any() else np.arange(len(code))
        n = len(code) + int(double.sum())
        self.rows = np.zeros((n + 1, FIELDS), np.int32)
        self.step = np.full(n + 1, -1, np.int32)
        self.step[place] = steps
        wide = np.flatnonzero(right == WIDE)
        wide = wide[opcode[code[wide]] != ESCAPE]
        right = np.where(right == UNARY, left, right)
        for k in wide.tolist():  # operands of three, which is what the machine has of them
            slots = program.wide[left[k]]
            left[k], right[k], target[k] = slots.reads[0], slots.reads[1], slots.writes[0]
            self.rows[place[k] + 1, 1] = slots.reads[2] * self.scale
        self.rows[place, 0] = opcode[code]
        for field, slots_ in ((1, left), (2, right), (3, target)):
            self.rows[place, field] = slots_ * self.scale
        given = last[code]
        with_number = given >= 0
        self.rows[place[with_number], 2] = given[with_number]
        self.rows[n, 0] = STOP

    @property
    def native(self) -> int:
        """How many steps the machine runs itself."""
        return int((self.rows[:, 0] >= 0).sum())


def _types(case: Any) -> tuple[Any, ...]:
    return (*case.operands, *case.results)
