"""The machine: one function that runs the instructions of any graph of scalars, written for LLVM.

An instruction is four numbers of 32 bits: an opcode, two operands and a target, which are numbers of words in the registers, each
of 64 bits. A third operand is the first one of the instruction that follows, which is passed over. A complex c128 has two words.
Jumps are by so many instructions, on or back. The machine runs until it meets an instruction that it has no opcode for, and says
where: there what is not its own is done. It also stops where it is to jump back and the word `FUEL`, counted down, is 0, so that
who runs it may look at the clock.

`run` has one number in each word. `run_many` has `width` numbers in a row for each word, a multiple of `LANES`, of as many items of
a batch: an instruction is fetched once for all of them. Doubles and bools are computed with in vectors of `LANES`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir

from tidu_cli.adapters.native import integers, opcodes
from tidu_cli.adapters.native.opcodes import PARTS, TYPES, WORD, Emit, Emitter, Signature, Value

TABLE: dict[Signature, Emit] = {**opcodes.TABLE, **integers.TABLE}

JUMP, JUMP_BACK, JUMP_UNLESS, COPY, LOAD, STORE = range(len(TABLE), len(TABLE) + 6)
"""Opcodes of control: a jump by `target` instructions, one back that takes fuel, and one unless the word `left` holds true; the
word `left` copied to `target`; the word `left` + i copied to `target`, and the word `left` copied to `target` + i, where i is the
number in the word `right`."""

FUEL = 0
"""The word that says how many jumps back there may be."""

SPECIAL = range(len(TABLE) - len(integers.SPECIAL), len(TABLE))
"""The opcodes that call functions of SciPy's."""

OPCODES = {signature: number for number, signature in enumerate(TABLE)}
"""The opcodes by what they compute."""

STOP, ESCAPE = STORE + 1, STORE + 2
"""What stands for an opcode in the end, and where the machine hands over."""

N_OPCODES = ESCAPE + 1

FIELDS = 4
"""The numbers of an instruction."""

LANES = 8
"""The numbers of a vector: 64 bytes, which LLVM halves for processors that have narrower ones."""

_SHORT = ir.IntType(32)
_INSTRUCTIONS = _SHORT.as_pointer()
_WHOLE = frozenset({"f64", "bool"})
"""The dtypes whose numbers are computed with in vectors; a bool is written as one of 64 bits."""

_CALLING = opcodes.CALLING | integers.OPERATIONS

_MANY = frozenset({"f64", "f32", "i64", "i32", "bool", "c128"})
"""The dtypes of `run_many`. With those that are rare it would take twice the time to compile."""


def for_many(signature: Signature) -> bool:
    """Whether `run_many` has the opcode, too."""
    return _MANY.issuperset((*signature.operands, signature.result))


def module_text(name: str) -> str:
    """The module of `run` or of `run_many` in LLVM's language."""
    module = ir.Module("tidu")
    _Machine(module, name).write()
    return str(module)


class _Machine:
    """One of the two functions while it is written: a function for each opcode, which calls the next one's as its last act.

    So each opcode jumps to the next by a jump of its own, which the processor learns to foresee better than one for all.
    """

    def __init__(self, module: Any, name: str) -> None:
        self.module, self.name, self.many = module, name, name == "run_many"
        self.functions: dict[str, Any] = {}
        self.step = ir.FunctionType(WORD, [_INSTRUCTIONS, WORD.as_pointer(), WORD])
        self.table = ir.GlobalVariable(module, ir.ArrayType(self.step.as_pointer(), N_OPCODES), f"{name}_table")
        self.function: Any = None
        self.registers: Any = None
        self.width: Any = None

    def write(self) -> None:
        """Write all of it."""
        steps = [self._stop()] * N_OPCODES
        for number, (signature, emit) in enumerate(TABLE.items()):
            if not self.many or for_many(signature):
                steps[number] = self._opcode(partial(self._compute, signature, emit))
        for number, rule in ((COPY, self._copy), (LOAD, partial(self._indexed, 0)), (STORE, partial(self._indexed, 2))):
            steps[number] = self._opcode(rule)
        for number, jump in ((JUMP, self._jump), (JUMP_BACK, self._jump_back), (JUMP_UNLESS, self._jump_unless)):
            b, place = self._begun()
            jump(b, place)
            steps[number] = self.function
        self.table.initializer = ir.Constant(self.table.type.pointee, steps)
        self.table.global_constant = True
        self._entry()

    def _entry(self) -> None:
        function = ir.Function(self.module, ir.FunctionType(WORD, [_INSTRUCTIONS, WORD, WORD.as_pointer(), WORD]), self.name)
        code, first, registers, width = function.args
        b = ir.IRBuilder(function.append_basic_block())
        place = self._moved(b, code, first)
        last = b.call(self._step_at(b, place), [place, registers, width])
        b.ret(b.sdiv(b.sub(last, b.ptrtoint(code, WORD)), ir.Constant(WORD, 4 * FIELDS)))

    def _begun(self) -> tuple[Any, Value]:
        """A new function of an opcode: its builder, and where the instruction is."""
        self.function = ir.Function(self.module, self.step, f"{self.name}_{len(self.module.functions)}")
        self.function.linkage = "internal"
        self.function.attributes.add("nounwind")
        place, self.registers, self.width = self.function.args
        return ir.IRBuilder(self.function.append_basic_block()), place

    def _stop(self) -> Value:
        b, place = self._begun()
        b.ret(b.ptrtoint(place, WORD))
        return self.function

    def _opcode(self, write: Callable[[Any, Value], int]) -> Value:
        """The function of an opcode that the next instruction follows, or the one after that."""
        b, place = self._begun()
        step = write(b, place)
        self._go(b, self._moved(b, place, ir.Constant(WORD, step)))
        return self.function

    def _moved(self, b: Any, place: Value, distance: Value) -> Value:
        return b.gep(place, [b.mul(distance, ir.Constant(WORD, FIELDS))])

    def _step_at(self, b: Any, place: Value) -> Value:
        return b.load(b.gep(self.table, [ir.Constant(WORD, 0), b.zext(b.load(place), WORD)]))

    def _go(self, b: Any, place: Value) -> None:
        """On with the instruction there."""
        b.ret(b.call(self._step_at(b, place), [place, self.registers, self.width], tail="musttail"))

    def _field(self, b: Any, place: Value, number: int) -> Value:
        return b.zext(b.load(b.gep(place, [ir.Constant(WORD, number)])), WORD)

    def _word(self, b: Any, number: Value, item: Value) -> Value:
        """The place of a word in the registers."""
        return b.gep(self.registers, [b.add(b.mul(number, self.width), item) if self.many else number])

    def _compute(self, signature: Signature, emit: Emit, b: Any, place: Value) -> int:
        reads = [self._field(b, place, k) for k in (1, 2, 5)[: len(signature.operands)]]
        target = self._field(b, place, 3)

        whole = self.many and _WHOLE.issuperset((*signature.operands, signature.result)) and signature.op not in _CALLING
        read, write = (self._read_vector, self._write_vector) if whole else (self._read, self._write)

        def body(b: Any, item: Value) -> None:
            values = [read(b, n, item, dtype) for n, dtype in zip(reads, signature.operands, strict=True)]
            write(b, target, item, emit(Emitter(b, self.functions), *values), signature.result)

        self._for_each_item(b, body, LANES if whole else 1)
        return 1 if len(reads) < 3 else 2

    def _vector(self, b: Any, number: Value, item: Value, element: Any) -> Value:
        return b.bitcast(self._word(b, number, item), ir.VectorType(element, LANES).as_pointer())

    def _read_vector(self, b: Any, number: Value, item: Value, dtype: str) -> Value:
        held = WORD if dtype == "bool" else TYPES[dtype]
        value = b.load(self._vector(b, number, item, held), align=8)
        return b.icmp_unsigned("!=", value, ir.Constant(value.type, [0] * LANES)) if dtype == "bool" else value

    def _write_vector(self, b: Any, number: Value, item: Value, value: Value, dtype: str) -> None:
        if dtype == "bool":
            value = b.zext(value, ir.VectorType(WORD, LANES))
        b.store(value, self._vector(b, number, item, value.type.element), align=8)

    def _read(self, b: Any, number: Value, item: Value, dtype: str) -> Value:
        if dtype == "c128":
            return tuple(self._read(b, b.add(number, ir.Constant(WORD, k)), item, "f64") for k in (0, 1))
        place = self._word(b, number, item)
        if dtype == "c64":
            halves = b.bitcast(place, TYPES["f32"].as_pointer())
            return tuple(b.load(b.gep(halves, [ir.Constant(WORD, k)])) for k in (0, 1))
        if dtype == "bool":
            return b.trunc(b.load(place), TYPES["bool"])
        return b.load(b.bitcast(place, TYPES[dtype].as_pointer()))

    def _write(self, b: Any, number: Value, item: Value, value: Value, dtype: str) -> None:
        if dtype == "c128":
            for k, part in enumerate(value):
                self._write(b, b.add(number, ir.Constant(WORD, k)), item, part, PARTS[dtype])
            return
        place = self._word(b, number, item)
        if dtype == "c64":
            halves = b.bitcast(place, TYPES["f32"].as_pointer())
            for k, part in enumerate(value):
                b.store(part, b.gep(halves, [ir.Constant(WORD, k)]))
            return
        if dtype == "bool":
            value = b.zext(value, WORD)
        b.store(value, b.bitcast(place, value.type.as_pointer()))

    def _for_each_item(self, b: Any, body: Callable[[Any, Value], None], step: int = 1) -> None:
        """The body for each item, or for each of every `step` items."""
        zero = ir.Constant(WORD, 0)
        if not self.many:
            body(b, zero)
            return
        before = b.block
        loop, after = self.function.append_basic_block(), self.function.append_basic_block()
        b.branch(loop)
        b.position_at_end(loop)
        item = b.phi(WORD)
        item.add_incoming(zero, before)
        body(b, item)
        following = b.add(item, ir.Constant(WORD, step))
        item.add_incoming(following, b.block)
        b.cbranch(b.icmp_unsigned("<", following, self.width), loop, after)
        b.position_at_end(after)

    # Control.

    def _target(self, b: Any, place: Value) -> Value:
        return self._moved(b, place, b.sext(b.load(b.gep(place, [ir.Constant(WORD, 3)])), WORD))

    def _jump(self, b: Any, place: Value) -> None:
        self._go(b, self._target(b, place))

    def _jump_back(self, b: Any, place: Value) -> None:
        zero = ir.Constant(WORD, 0)
        fuel = self._word(b, ir.Constant(WORD, FUEL), zero)
        left = b.load(fuel)
        b.store(b.sub(left, ir.Constant(WORD, 1)), fuel)
        with b.if_then(b.icmp_signed("<=", left, zero), likely=False):
            b.ret(b.ptrtoint(place, WORD))
        self._go(b, self._target(b, place))

    def _jump_unless(self, b: Any, place: Value) -> None:
        holds = self._read(b, self._field(b, place, 1), ir.Constant(WORD, 0), "bool")
        with b.if_then(holds):
            self._go(b, self._moved(b, place, ir.Constant(WORD, 1)))
        self._go(b, self._target(b, place))

    def _copy(self, b: Any, place: Value) -> int:
        source, target = self._field(b, place, 1), self._field(b, place, 3)
        self._for_each_item(b, lambda b, item: b.store(b.load(self._word(b, source, item)), self._word(b, target, item)))
        return 1

    def _indexed(self, indexed: int, b: Any, place: Value) -> int:
        """Copy a word, of which the field with this number is moved by an index: the first to load, the last to store."""
        fields = [self._field(b, place, k) for k in (1, 2, 3)]

        def body(b: Any, item: Value) -> None:
            moved = b.add(fields[indexed], b.load(self._word(b, fields[1], item)))
            source, target = (moved if k == indexed else fields[k] for k in (0, 2))
            b.store(b.load(self._word(b, source, item)), self._word(b, target, item))

        self._for_each_item(b, body)
        return 1
