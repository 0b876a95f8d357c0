"""Values and tangents at once: a while along tangents, and the scans and branches in it that hold a while themselves.

A derivative that computes tangents apart from values computes values twice, to be turned round one day. Around a while nothing is:
and of loops in loops, each level of which computes twice what is within it, a derivative would hold as many as there are pairs of
levels, a second one triples. So within its graphs each node that holds a while is one node of values and tangents.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, compress
from typing import Any

from tidu_cli.control_flow.graphs import Linearized, Terms, made, named, naming_place, outputs_of
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.types import RecordType, Type, storage_dtype, tangent_type
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.limits import each_step, refuse_steps, take_steps
from tidu_cli.rules.contract import JVP, Kernel, RunInner, ValueTypes
from tidu_cli.rules.recording.functions import Lines, Writer, returned
from tidu_cli.rules.recording.trace import Trace
from tidu_cli.rules.terms import Recorder, Term, zeros
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms import nested

Parts = tuple[range, range, range]
"""The inputs of a loop's body: constants, what is carried, and what is scanned."""


def along_loop(body: ClosedGraph, carried: range, active: Sequence[bool], primitives: PrimitiveSet) -> Linearized:
    """The derivative of a step along these inputs, and those that in later steps carry a tangent because of them."""

    moving = [*active[carried.start : carried.stop]]
    while True:  # here, as rules recurse through this as deep as loops nest: each function between would be a frame a level
        step = Linearized(body, [*active[: carried.start], *moving, *active[carried.stop :]], primitives)
        after = [before or live for before, live in zip(moving, step.live, strict=False)]
        if after == moving:
            return step
        moving = after


def while_step(attrs: Any, tangents: Terms, primitives: PrimitiveSet) -> Linearized:
    """The derivative of a step of a while, along what carries a tangent in some step."""
    carried = range(attrs.body_consts, len(attrs.body.graph.inputs))
    return along_loop(attrs.body, carried, [t is not None for t in tangents[attrs.cond_consts :]], primitives)


def while_along(node: JVP, step: Linearized | None = None) -> tuple[Sequence[Term], Terms]:
    """The while that carries tangents, too. Gives its results and their tangents. `step` is `while_step`, if that is known."""
    attrs, trace, n_tests = node.attrs, node.operands[0].trace, node.attrs.cond_consts
    parts = range(attrs.body_consts), range(attrs.body_consts, len(attrs.body.graph.inputs)), range(0)
    step = step or while_step(attrs, node.tangents, trace.primitives)
    moves = [step.active[k] for k in parts[1]]
    body = _body(trace.primitives, attrs.body, parts, step)
    given = _with_tangents(node.operands[n_tests:], node.tangents[n_tests:], parts, step)
    carry, tests = attrs.body.input_types[attrs.body_consts :], attrs.condition.input_types[:n_tests]
    condition = made(
        trace.primitives,
        [*named("c", tests), *named("s", carry), *named("ds", [tangent_type(t) for t in compress(carry, moves)])],
        lambda inner, terms: outputs_of(inner, attrs.condition, terms[: n_tests + len(carry)]),
    )
    numbers = {"cond_consts": n_tests, "body_consts": len(given[0])}
    results = trace.emit_all("while", *node.operands[:n_tests], *chain(*given), **numbers, condition=condition, body=body)
    return results[: len(carry)], _placed(results[len(carry) :], moves)


def scan_along(node: JVP) -> tuple[Sequence[Term], Terms]:
    """Likewise of a scan."""
    attrs, trace, n = node.attrs, node.operands[0].trace, node.attrs.num_consts
    parts = range(n), attrs.carried, range(attrs.carried.stop, len(node.operands))
    step = along_loop(attrs.body, parts[1], [t is not None for t in node.tangents], trace.primitives)
    given = _with_tangents(node.operands, node.tangents, parts, step)
    numbers = {"length": attrs.length, "num_consts": len(given[0]), "num_carry": len(given[1]), "reverse": attrs.reverse}
    results = trace.emit_all("scan", *chain(*given), **numbers, body=_body(trace.primitives, attrs.body, parts, step))
    n_carry, n_ys, moves = attrs.num_carry, len(node.results) - attrs.num_carry, [step.active[k] for k in attrs.carried]
    carry, ys = results[: len(given[1])], results[len(given[1]) :]
    tangents = [*_placed(carry[n_carry:], moves), *_placed(ys[n_ys:], step.live[n_carry:])]
    return [*carry[:n_carry], *ys[:n_ys]], tangents


def cond_along(node: JVP) -> tuple[Sequence[Term], Terms]:
    """Likewise of a cond."""
    index, *operands = node.operands
    primitives, n, tangents = index.trace.primitives, len(operands), node.tangents[1:]
    active = [t is not None for t in tangents]
    each = [Linearized(b, active, primitives, f"branches[{k}]") for k, b in enumerate(node.attrs.branches)]
    moves, live = each[0].active, [any(flags) for flags in zip(*[b.live for b in each], strict=True)]
    types = node.attrs.branches[0].input_types
    inputs = [*named("x", types), *named("dx", [tangent_type(t) for t in compress(types, moves)])]

    def branch(number: int, graph: ClosedGraph) -> ClosedGraph:
        def emit(inner: Trace, terms: list[Term]) -> list[Term]:
            with naming_place(f"branches[{number}]", graph):
                values, dvalues = nested.along(inner, graph.graph, terms[:n], _placed(terms[n:], moves))
            return [*values, *_not_null(inner, values, dvalues, live)]

        return made(primitives, inputs, emit)

    branches = tuple([branch(k, b) for k, b in enumerate(node.attrs.branches)])
    results = index.trace.emit_all("cond", index, *operands, *_moving(tangents, operands, moves), branches=branches)
    return results[: len(live)], _placed(results[len(live) :], live)


def _body(primitives: PrimitiveSet, body: ClosedGraph, parts: Parts, step: Linearized) -> ClosedGraph:
    """A step on values and tangents: of each part the values, then the tangents of those that move."""
    types, n_carry = body.input_types, len(parts[1])
    live = [*[step.active[k] for k in parts[1]], *step.live[n_carry:]]
    inputs = []
    for name, part in zip("csx", parts, strict=True):
        inputs += named(name, [types[k] for k in part])
        inputs += named(f"d{name}", [tangent_type(types[k]) for k in part if step.active[k]])

    def emit(inner: Trace, terms: list[Term]) -> list[Term]:
        left = iter(terms)
        operands: list[Term] = []
        tangents: list[Term | None] = []
        for part in parts:
            operands += [next(left) for _ in part]
            tangents += [next(left) if step.active[k] else None for k in part]
        with naming_place("body", body):
            values, dvalues = nested.along(inner, body.graph, operands, tangents)
        carried, ys = slice(n_carry), slice(n_carry, None)
        return [
            term for some in (carried, ys) for term in (*values[some], *_not_null(inner, values[some], dvalues[some], live[some]))
        ]

    return made(primitives, inputs, emit)


def _with_tangents(operands: Sequence[Term], tangents: Terms, parts: Parts, step: Linearized) -> list[list[Term]]:
    """The operands of each part, and after them the tangents of those that move."""
    return [
        [
            *[operands[k] for k in part],
            *_moving([tangents[k] for k in part], [operands[k] for k in part], [step.active[k] for k in part]),
        ]
        for part in parts
    ]


def _moving(tangents: Terms, values: Sequence[Term], moves: Sequence[bool]) -> list[Term]:
    return _not_null(values[0].trace, values, tangents, moves) if values else []


def _not_null(trace: Recorder, values: Sequence[Term], tangents: Terms, live: Sequence[bool]) -> list[Term]:
    """The tangents of these values that are live, as terms."""
    some: Any = compress(zip(values, tangents, strict=True), live)
    return [zeros(trace, tangent_type(v.value_type)) if t is None else t for v, t in some]


def _placed(tangents: Sequence[Term], live: Sequence[bool]) -> list[Term | None]:
    left = iter(tangents)
    return [next(left) if m else None for m in live]


# Loops and branches on NumPy: functions of Python, in which a step is written out, so that a loop runs as one written by hand.


def scan_inner(attrs: Any, operands: Sequence[Any], results: Sequence[Any], run: RunInner) -> None:
    """Run the body step by step."""
    consts, carry, xs = attrs.split(operands)
    for step in reversed(range(attrs.length)) if attrs.reverse else range(attrs.length):
        carry = run(0, step, [*consts, *carry, *[_slice(x, step) for x in xs]])[: attrs.num_carry]


def scan_kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    """A function of constants, what is carried and what is scanned that gives what is carried and results."""
    writer, n, n_carry = _writer(np, attrs.body), attrs.num_consts, attrs.num_carry
    parameters = [writer.variable() for _ in operands]
    carry, slices = parameters[n : n + n_carry], [writer.variable() for _ in operands[n + n_carry :]]
    lines, names = writer.statements(attrs.body.graph, [*parameters[: n + n_carry], *slices])
    stacks = [writer.variable() for _ in results[n_carry:]]
    make = writer.constant(lambda k: _empty(np, results[n_carry + k]))
    cut, put = writer.constant(_slice), writer.constant(_put)
    steps = f"range({attrs.length - 1}, -1, -1)" if attrs.reverse else f"range({attrs.length})"
    taken = [
        f"{x} = {cut}({xs}, i)" if isinstance(t, RecordType) else f"{x} = {xs}[i]"
        for x, xs, t in zip(slices, parameters[n + n_carry :], operands[n + n_carry :], strict=True)
    ]
    given = [
        f"{put}({ys}, i, {y})" if isinstance(t, RecordType) else f"{ys}[i] = {y}"
        for ys, y, t in zip(stacks, names[n_carry:], results[n_carry:], strict=True)
    ]
    body = [*taken, *lines, *given, *_assigned(carry, names[:n_carry])]
    return writer.function(
        parameters,
        [
            *_as_scalars(carry, results[:n_carry]),
            f"{writer.constant(take_steps)}({attrs.length})",
            *[f"{ys} = {make}({k})" for k, ys in enumerate(stacks)],
            f"for i in {steps}:",
            *[f" {line}" for line in body or ["pass"]],
            f"return {returned([*carry, *stacks])}",
        ],
    )


def while_kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    """A function of constants and what is carried that gives what is carried in the end."""
    writer = _writer(np, attrs.body)
    parameters = [writer.variable() for _ in operands]
    of_condition, of_body, carry = attrs.split(parameters)
    tests, (go_on,) = writer.statements(attrs.condition.graph, [*of_condition, *carry])
    lines, names = writer.statements(attrs.body.graph, [*of_body, *carry])
    body = [*tests, f"if not {go_on}: break", *lines, *_assigned(carry, names)]
    end = ["else:", f" {writer.constant(refuse_steps)}()"]
    loop = [f"for _ in {writer.constant(each_step)}():", *[f" {line}" for line in body], *end]
    return writer.function(parameters, [*_as_scalars(carry, results), *loop, f"return {returned(carry)}"])


def cond_kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    """A function of an index and operands that gives what the branch of that number gives."""
    writer = _writer(np, attrs.branches[0])
    index, *parameters = [writer.variable() for _ in operands]
    lines: Lines = []
    last = len(attrs.branches) - 1
    for k, branch in enumerate(attrs.branches):
        statements, names = writer.statements(branch.graph, parameters)
        test = "if True:" if not last else f"if {index} <= 0:" if k == 0 else "else:" if k == last else f"elif {index} <= {k}:"
        lines += [test, *[f" {line}" for line in [*statements, f"return {returned(names)}"]]]
    return writer.function([index, *parameters], lines)


def _writer(np: Any, graph: ClosedGraph) -> Writer:
    return Writer(np, vocabulary(graph.graph.cases))


def _assigned(names: Sequence[str], values: Sequence[str]) -> Lines:
    """What is carried to the next step, all at once."""
    changed = [(name, value) for name, value in zip(names, values, strict=True) if name != value]
    return [f"{', '.join(n for n, _ in changed)} = {', '.join(v for _, v in changed)}"] if changed else []


def _as_scalars(names: Sequence[str], types: Sequence[Type]) -> Lines:
    """Arrays of rank 0 as scalars of NumPy's, whose arithmetic is the faster."""
    return [f"{x} = {x}[()]" for x, t in zip(names, types, strict=True) if not isinstance(t, RecordType) and not t.shape]


def _slice(x: Any, i: int) -> Any:
    """Slice i of an array, or of each array of a record; None, a zero, stays."""
    return tuple([_slice(part, i) for part in x]) if isinstance(x, tuple) else None if x is None else x[i]


def _put(y: Any, i: int, value: Any) -> None:
    """Make slice i of an array, or of each array of a record, this value; None is zero."""
    if isinstance(y, tuple):
        for k, part in enumerate(y):
            _put(part, i, None if value is None else value[k])
    else:
        y[i] = 0 if value is None else value


def _empty(np: Any, type_: Type) -> Any:
    """An array of a type, or a record of such, with any values."""
    if isinstance(type_, RecordType):
        return tuple([_empty(np, t) for _, t in type_.fields])
    return np.empty(type_.shape, numpy_dtype(np, storage_dtype(type_.dtype)))
