"""How much memory a program will take, told from types and liveness before anything runs, and how much there is.

A run that would not fit is refused at the start with a reason, and not killed by the system after an hour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tidu_cli.errors import EvaluationError
from tidu_cli.graph.graph import Output
from tidu_cli.graph.types import Path, RecordType, Type, leaves
from tidu_cli.limits import format_size, limits, more_than
from tidu_cli.runtime.plans.aliasing import Sharing, shared_by
from tidu_cli.runtime.plans.groups import GroupedProgram
from tidu_cli.runtime.plans.interpreter import Program

_SHOWN = 3  # how many of the largest values a refusal names


@dataclass(frozen=True, slots=True)
class Estimate:
    """The peak of a program's memory in bytes, and the largest values alive then, as (bytes, description), largest first."""

    peak: int
    largest: tuple[tuple[int, str], ...]


def estimate_memory(program: Program) -> Estimate:
    """The estimated peak memory of a run, with inputs and results; work space within kernels is not counted.

    A view counts as much as the array it shows, since what follows mostly makes it one. What depends on no input counts up to its
    last use, though it is kept: it is little (`tidu_cli.runtime.plans.steps.MOST_KEPT`), and mostly views of single numbers.
    """
    peak, at, _ = _walk(program, program.n_steps)
    _, _, held = _walk(program, at)
    values = [(i.type.nbytes, f"input {i.key} {i.type}") for i in program.inputs]
    values += [(o.type.nbytes, f"output {o.key} {o.type}") for o in _zeros(program)]
    for array in dict.fromkeys(array for value in held.values() for array in value if array is not None):
        case = program.graph.cases[program.code[array.step]]
        type_: Type | None = case.results[array.result]
        for name in array.path:
            assert isinstance(type_, RecordType)
            type_ = type_.get(name)
        node = f"graph '{program.graph.name}', node {program.node[array.step]} ({case.op})"
        values.append((array.nbytes, f"{node}{''.join(f'.{name}' for name in array.path)} {type_}"))
    return Estimate(peak, tuple(sorted(values, key=lambda value: -value[0])))


def check_memory(program: Program | GroupedProgram, limit: int | None) -> None:
    """Raise EvaluationError if a run would take more than `limit` bytes; None means what `limits` say."""
    allowed = limits().bytes() if limit is None else limit
    if isinstance(program, GroupedProgram):
        if (needed := program.nbytes()) > allowed:
            raise _too_much(needed, f"{program.n_steps} values, most of them scalars", allowed)
    elif _bound(program) > allowed:
        estimate = estimate_memory(program)
        if estimate.peak > allowed:
            values = ", ".join(f"{what} {format_size(size)}" for size, what in estimate.largest[:_SHOWN])
            raise _too_much(estimate.peak, f"largest values: {values}", allowed)


def _too_much(needed: int, what: str, allowed: int) -> EvaluationError:
    return EvaluationError(
        f"evaluation would take about {format_size(needed)}, {more_than('memory', allowed, f'{what}; evaluate fewer outputs, or ')}"
    )


def fits(program: GroupedProgram, limit: int | None) -> bool:
    """Whether a run takes no more than `limit` bytes; None means what `limits` say."""
    return program.nbytes() <= (limits().bytes() if limit is None else limit)


def _bound(program: Program) -> int:
    """More than any run takes: spares small programs of many steps the walk through them."""
    types = [t for code in set(program.code) for t in program.graph.cases[code].results]
    largest = max([t.nbytes for t in types], default=0)
    return program.n_slots * largest + _given_bytes(program) + sum(o.type.nbytes for o in program.outputs)


def _given_bytes(program: Program) -> int:
    return sum(i.type.nbytes for i in program.inputs)  # the caller holds on to them


def _zeros(program: Program) -> list[Output]:
    return [o for o, slot in zip(program.outputs, program.output_slots, strict=True) if slot is None]


@dataclass(frozen=True, slots=True)
class _Held:
    """An array that a step made: its bytes, the step, the number of the result, and where in that it is."""

    nbytes: int
    step: int
    result: int
    path: Path


def _walk(program: Program, last: int) -> tuple[int, int, dict[int, tuple[_Held | None, ...]]]:
    """Follow what is alive up to step `last`, whose operands and results are both alive; past all steps, to the end.

    Gives the peak in bytes, the step of the peak, and by slot what is alive at `last`, array by array; None where the caller
    holds it, and for zeros.
    """
    cases = {code: program.graph.cases[code] for code in set(program.code)}
    tensors = {code: [[(t.nbytes, path) for path, t in leaves(type_)] for type_ in case.results] for code, case in cases.items()}
    sharing: dict[int, Sharing[_Held] | None] = {code: shared_by(program.primitives[case.op], case) for code, case in cases.items()}
    held: dict[int, tuple[_Held | None, ...]] = {
        slot: (None,) * sum(1 for _ in leaves(i.type)) for i, slot in zip(program.inputs, program.input_slots, strict=True)
    }
    shared: Counter[_Held] = Counter()  # by how many more places each is held
    ending = _ends_of_constants(program)
    live = _given_bytes(program) + sum(o.type.nbytes for o in _zeros(program))
    peak, at = live, program.n_steps

    def released(slot: int) -> int:
        size = 0
        for array in held.pop(slot, ()):
            if array is None:
                continue
            if shared and shared[array]:
                shared[array] -= 1
            else:
                size += array.nbytes
        return size

    for step, code in enumerate(program.code):
        slots, passed = program.slots(step), sharing[code]
        made: Sequence[tuple[_Held | None, ...]]
        if passed is not None:  # of arrays that are there
            made = passed([held[slot] for slot in slots.reads])
            shared.update(array for value in made for array in value if array is not None)
        else:
            made = [tuple(_Held(size, step, k, path) for size, path in value) for k, value in enumerate(tensors[code])]
            live += sum(size for value in tensors[code] for size, _ in value)
        if live > peak:
            peak, at = live, step
        if step == last:
            # Not yet in their slots, where they might take the place of an operand.
            held.update({-1 - k: value for k, value in enumerate(made)})
            return peak, at, held
        for slot, value in zip(slots.writes, made, strict=True):
            live -= released(slot)
            held[slot] = value
        for slot in (*slots.clears, *ending.get(step, ())):
            live -= released(slot)
    # Results are handed over one by one, the greatest perhaps as a copy.
    live += max([o.type.nbytes for o in program.outputs], default=0)
    return (live, program.n_steps, held) if live > peak else (peak, at, held)


def _ends_of_constants(program: Program) -> dict[int, list[int]]:
    """The slots of constants by the step that uses them last; those of outputs are not there."""
    if 1 not in program.constant:
        return {}
    last: dict[int, int] = {}
    for step, constant in enumerate(program.constant):
        slots = program.slots(step)
        last.update({slot: step for slot in slots.reads if slot in last})
        if constant:
            last.update(dict.fromkeys(slots.writes, step))
    ending: dict[int, list[int]] = {}
    for slot in last.keys() - set(program.output_slots):
        ending.setdefault(last[slot], []).append(slot)
    return ending
