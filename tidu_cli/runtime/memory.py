"""How much memory a program will take, told from types and liveness before anything runs, and how much there is.

A run that would not fit is refused at the start with a reason, and not killed by the system after an hour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidu_cli.errors import EvaluationError
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.graph import Document, Graph, column
from tidu_cli.graph.link import link
from tidu_cli.limits import format_size, limits, more_than
from tidu_cli.runtime.liveness import Liveness
from tidu_cli.runtime.plans.groups import GroupedProgram
from tidu_cli.runtime.plans.interpreter import Program

if TYPE_CHECKING:
    from tidu_cli.runtime.plans.runnable import Runnable

_SHOWN = 3  # how many of the largest values a refusal names


class Estimate(Frozen):
    """The peak of a program's memory in bytes, and the largest values alive then, as (bytes, description), largest first."""

    peak: int
    largest: tuple[tuple[int, str], ...]


def estimate_memory(program: Program) -> Estimate:
    """The estimated peak memory of a run, with inputs and results.

    What depends on no input counts up to its last use, though it is kept: it is little (`plans.interpreter.MOST_KEPT`),
    and mostly views of single numbers.
    """
    graph = _written_out(program)
    alive = Liveness(link(Document((graph,), graph.cases)), program.primitives)
    values = [(i.type.nbytes, f"input {i.key} {i.type}") for i in program.inputs]
    values += [(o.type.nbytes, f"output {o.key} {o.type}") for o in graph.outputs if o.value is None]
    for array in alive.at_peak():
        step, _ = graph.producer(array.flat)
        node = f"graph '{graph.name}', node {program.node[step]} ({graph.case(step).op})"
        values.append((array.type.nbytes, f"{node}{''.join(f'.{name}' for name in array.path)} {array.type}"))
    return Estimate(alive.given + alive.peak, tuple(sorted(values, key=lambda value: -value[0])))


def _written_out(program: Program) -> Graph:
    """The graph of a program's steps: slots are told apart by what they hold."""
    held = {slot: value for value, slot in enumerate(program.input_slots)}
    n_values, args = len(held), column()
    for step in range(program.n_steps):
        slots = program.slots(step)
        args.extend(held[slot] for slot in slots.reads)
        for slot in slots.writes:
            held[slot], n_values = n_values, n_values + 1
    outputs = zip(program.outputs, program.output_slots, strict=True)
    return replace(
        program.graph,
        inputs=program.inputs,
        outputs=tuple(replace(o, value=None if slot is None else held[slot]) for o, slot in outputs),
        code=program.code,
        args=args,
    )


def check_memory(program: Runnable, limit: int | None) -> None:
    """Raise EvaluationError if a run would take more than `limit` bytes; None means what `limits` say."""
    allowed, needed = allowed_bytes(limit), program.nbytes()
    if needed > allowed and not isinstance(program, Program):
        what = f"{program.n_steps} values, most of them scalars" if isinstance(program, GroupedProgram) else "as its engine runs it"
        raise _too_much(needed, what, allowed)
    if needed > allowed and isinstance(program, Program):
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
    return program.nbytes() <= allowed_bytes(limit)


def allowed_bytes(limit: int | None) -> int:
    """The bytes that a limit allows; None means what `limits` say."""
    return limits().bytes() if limit is None else limit
