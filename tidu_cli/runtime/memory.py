"""How much memory a program will take, told from types and liveness before anything runs, and how much there is.

A run that would not fit is refused at the start with a reason, and not killed by the system after an hour. The other costs of a
document are counted here, too, and values that nest are taken apart by the names of inputs.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any

from tidu_cli.errors import EvaluationError
from tidu_cli.frozen import Frozen, field, replace
from tidu_cli.graph.graph import Case, Column, Document, Graph, column
from tidu_cli.graph.link import LogicalGraph, link
from tidu_cli.graph.sizes.open import number_of
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.limits import format_size, limits, more_than
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.liveness import Liveness
from tidu_cli.runtime.plans.groups import GroupedProgram
from tidu_cli.runtime.plans.interpreter import Program, Runnable

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
    program = program.current
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


# What a document costs: operations, depth and memory, told from types before anything runs. Linear in its size, without NumPy.


class Flops(Frozen):
    """Operations of some nodes. `unknown` of the nodes are left out: their sizes are open, or hidden by detached references."""

    known: int
    unknown: int = 0


class Evaluation(Frozen):
    """What evaluating the head's outputs takes.

    `nodes` counts those that some output needs, `depth` those on the longest path among them. `peak` is the greatest number of
    bytes alive at once, inputs and results included (see `tidu_cli.runtime.liveness`); None where sizes are open, or hidden by a
    detached reference. `depths` counts, for each graph, the nodes on the longest path that ends in it, needed or not; it may begin
    in another.
    """

    nodes: int
    depth: int
    flops: Flops
    peak: int | None
    depths: tuple[int, ...] = field(default=(), compare=False)


def flops(graph: Graph, primitives: PrimitiveSet | None = None) -> Flops:
    """The operations of all nodes of a graph."""
    return _flops(graph.cases.cases, Counter(graph.code), primitives or vocabulary(graph.cases))


def evaluation(document: Document) -> Evaluation:
    """What evaluating the head's outputs takes, nodes being run in order, and each value let go of after its last use.

    The estimate is that of `estimate_memory` for the materialized document, except that nodes that compute the same count each.
    """
    primitives, cases = vocabulary(document.cases), document.cases.cases
    logical, head = link(document), len(document.graphs) - 1
    depth, alive = _depth(logical), Liveness(logical, primitives)
    made = zip(logical.base, logical.base[1:], strict=False)
    used = {code: n for code, n in enumerate(alive.count) if n}
    return Evaluation(
        nodes=sum(used.values()),
        depth=max((depth[logical.flat_id(head, o.value)] for o in document.head.outputs if o.value is not None), default=0),
        flops=_flops(cases, used, primitives),
        peak=None if alive.open or any(None in cases[code].operands for code in used) else alive.given + alive.peak,
        depths=tuple(max(depth[first:end], default=0) for first, end in made),
    )


def lesser(before: Document, after: Document) -> tuple[Document, Evaluation, Evaluation]:
    """The document whose evaluation peaks lower, `before` where `after` does not; and what evaluating each of them takes."""
    old, new = evaluation(before), evaluation(after)
    is_lower = old.peak is None or new.peak is None or new.peak < old.peak  # None where sizes are open
    return (after if is_lower else before), old, new


def _flops(cases: list[Case], counts: Mapping[int, int], primitives: PrimitiveSet) -> Flops:
    known = unknown = 0
    for code, n in counts.items():
        case = cases[code]
        of_each = primitives[case.op].evaluation.flops
        each = None if None in case.operands else number_of(partial(of_each, case.attrs, case.operands, case.results))  # type: ignore[arg-type]
        if each is None:
            unknown += n
        else:
            known += n * each
    return Flops(known, unknown)


def _depth(logical: LogicalGraph) -> Column[int]:
    """For each value the number of nodes on the longest path that ends in it; inputs stand for what they are bound to."""
    depth = column([0]) * logical.n_values
    for graph, args, base in zip(logical.document.graphs, logical.args, logical.base, strict=False):
        arity, n_results, end, value = graph.cases.arity, graph.cases.n_results, 0, base + len(graph.inputs)
        for code in graph.code:  # which is twice as fast as a walk that serves all
            start, end = end, end + arity[code]
            deepest = 0
            for a in args[start:end]:
                if depth[a] > deepest:
                    deepest = depth[a]
            for _ in range(n_results[code]):
                depth[value] = deepest + 1
                value += 1
    return depth


# Values that nest as the arguments of a function do, by the dotted names of inputs: `params.w` of a dict or a dataclass.


def by_inputs(values: Mapping[str, Any], declared: Collection[str]) -> Mapping[str, Any]:
    """Values by name, with those taken apart of which only parts are among the inputs. All else is as it stands.

    Raises EvaluationError where a part is given by itself, too.
    """
    if all(name in declared for name in values):
        return values
    owners = {name[:at] for name in declared for at, character in enumerate(name) if character == "."}
    parts: dict[str, Any] = {}
    for name, value in values.items():
        for part, inner in _parts(name, value, owners, declared):
            if part in parts:
                raise EvaluationError(f"the key '{part}' occurs twice: by itself and within '{name}'")
            parts[part] = inner
    return parts


def _parts(name: str, value: Any, owners: Collection[str], declared: Collection[str]) -> Iterator[tuple[str, Any]]:
    members = _members(value) if name in owners and name not in declared else None
    if members is None:
        yield name, value
    else:
        for k, inner in members:
            yield from _parts(f"{name}.{k}", inner, owners, declared)  # no deeper than names of inputs nest


def _members(value: Any) -> list[tuple[object, Any]] | None:
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, list | tuple):
        return list(zip(getattr(value, "_fields", range(len(value))), value, strict=True))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
    return None
