"""Loops as long as a condition holds: while, as JAX's.

The derivative runs tangents beside values, in one loop. As that gives values, too, which depend on no tangent, it stands in the one
branch of a cond, which gives the tangents alone and is linear in them. How often a while runs is not known before, so that what
reverse mode would have to remember has no bound: it has no transpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any, ClassVar

from tidu_cli.control_flow import graphs
from tidu_cli.control_flow.along import while_along, while_kernel, while_step
from tidu_cli.control_flow.dependence import narrowed_while, while_pattern
from tidu_cli.control_flow.graphs import (
    Flags,
    Terms,
    as_batch,
    batched_inputs,
    batched_outputs,
    fixed_point,
    flops,
    made,
    named,
    outputs_of,
    require_types,
)
from tidu_cli.errors import NoReverseError, Remedy, TypeRuleError
from tidu_cli.graph.closed import ClosedGraph, forwards, named_graphs
from tidu_cli.graph.types import INEXACT, INTEGERS, ITEMSIZE, SIGNED, TensorType, Type
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.attrs import Axis, ClosedGraphData
from tidu_cli.rules.batching import spread
from tidu_cli.rules.catalogue import Dependence, DependenceOf, Dependences, Part, stable
from tidu_cli.rules.contract import JVP, Attrs, Batching, Example, RunInner, ValueTypes
from tidu_cli.rules.families import primitive
from tidu_cli.rules.terms import Recorder, Term, field, fieldwise, op, trace_of

select_n, reduce_or, gt, exp = op("select_n"), op("reduce_or"), op("gt"), op("exp")

NO_REVERSE = (
    "has no transpose: how often it runs is not known before, so that what reverse mode would have to remember has no bound"
)


def _ways_out() -> str:
    bounded = Remedy("bound_loops", "N", command="convert", python="bound_loops(document, steps)")
    return f"; bound its steps ({bounded}), use scan, whose number of steps is fixed, or root, where it solves an equation"


class WhileAttrs(Attrs):
    """Of the operands the first `cond_consts` are for `condition` and the next `body_consts` for `body`, the same in all steps; the
    others are what is carried from step to step, which both graphs take after theirs. The one output of `condition` is bool[].
    """

    graphs: ClassVar[tuple[str, ...]] = ("condition", "body")
    cond_consts: Axis
    body_consts: Axis
    condition: ClosedGraphData
    body: ClosedGraphData

    def split(self, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Constants of the condition, those of the body, and what is carried."""
        n, end = self.cond_consts, self.cond_consts + self.body_consts
        return list(values[:n]), list(values[n:end]), list(values[end:])


def _types(attrs: WhileAttrs, operands: ValueTypes) -> ValueTypes:
    n, m = attrs.cond_consts, attrs.body_consts
    if len(operands) < n + m:
        raise TypeRuleError(f"takes cond_consts + body_consts = {n + m} inputs before what it carries, got {len(operands)}")
    cond_consts, body_consts, carry = attrs.split(operands)
    first = range(n + m, len(operands))
    for what, graph, given, numbers in (
        ("condition", attrs.condition, [*cond_consts, *carry], [*range(n), *first]),
        ("body", attrs.body, [*body_consts, *carry], [*range(n, n + m), *first]),
    ):
        if len(graph.graph.inputs) != len(given):
            raise TypeRuleError(f"its {what} has {len(graph.graph.inputs)} inputs, but {len(given)} operands are for it")
        require_types(what, graph, given, graph.input_types, numbers)
    if attrs.condition.output_types != (TensorType("bool"),):
        given_types = ", ".join(map(str, attrs.condition.output_types))
        raise TypeRuleError(f"its condition gives {given_types or 'nothing'}, where one bool[] is due")
    if attrs.body.output_types != tuple(carry):
        given_types, due = (", ".join(map(str, some)) for some in (attrs.body.output_types, carry))
        raise TypeRuleError(f"its body gives {given_types or 'nothing'}, where it carries {due or 'nothing'} over")
    return tuple(carry)


def _hidden(attrs: WhileAttrs, operands: Sequence[Type | None], declared: ValueTypes | None) -> Sequence[Type | None]:
    types = [*attrs.condition.input_types[: attrs.cond_consts], *attrs.body.input_types]
    return types if len(types) == len(operands) else operands


def _jvp(node: JVP) -> Terms:
    attrs: WhileAttrs = node.attrs
    trace = trace_of(node.tangents)
    active = [k for k, t in enumerate(node.tangents) if t is not None and k >= attrs.cond_consts]
    tangents = [t for k in active if (t := node.tangents[k]) is not None]
    n = len(node.operands)
    # Before the graph of the loop is begun: rules of what is in it recurse here, as deep as graphs nest, and then know theirs.
    step = while_step(attrs, node.tangents, trace.primitives)
    moves = step.active[attrs.body_consts :]
    if not any(moves):
        return [None] * len(node.results)

    def emit(inner: Recorder, terms: list[Term]) -> list[Term]:
        given = dict(zip(active, terms[n:], strict=True))
        _, derivatives = while_along(JVP(attrs, terms[:n], node.results, [given.get(k) for k in range(n)]), step)
        return [t for t in derivatives if t is not None]

    operands, of_tangents = named("x", [t.value_type for t in node.operands]), zip(active, tangents, strict=True)
    loop = made(trace.primitives, [*operands, *[(f"dx{k}", t.value_type) for k, t in of_tangents]], emit)
    results = iter(trace.emit_all("cond", trace.full(0, TensorType("i32")), *node.operands, *tangents, branches=(loop,)))
    return [next(results) if m else None for m in moves]


def refuse_reverse(place: str, graph: ClosedGraph, active: Sequence[bool]) -> list[bool]:
    """Raises MissingRuleError where a while in a graph, at any depth, depends on these inputs: its derivatives would have no end.

    Gives of each output whether it depends on them.
    """
    depends, primitives = list(active), vocabulary(graph.graph.cases)
    for node, (code, args, first, end) in enumerate(forwards(graph.graph, graph.graph.args)):
        reads, case = [depends[a] for a in args], graph.graph.cases[code]
        here = f"{place}, node {node} ({case.op})"
        if any(reads) and primitives[case.op].rules.irreversible:
            raise NoReverseError(f"{here}: {NO_REVERSE}{_ways_out()}")
        tell, solvers = primitives[case.op].catalogue.parts, getattr(case.attrs, "solvers", ())
        for (name, inner), part in zip(named_graphs(case.attrs), tell(case.attrs), strict=True) if tell and any(reads) else ():
            if name in solvers:
                continue
            fixed_point(tuple([reads[k] for k, _ in part.inputs]), partial(_after_step, f"{here}, {name}", inner, part))
        depends += [any(reads)] * (end - first)
    return [o.value is not None and depends[o.value] for o in graph.graph.outputs]


def _after_step(place: str, graph: ClosedGraph, part: Part, active: Flags) -> Sequence[bool]:
    """Which inputs of a loop's body depend on something in the next step, if these do in this one."""
    after, outputs = list(active), refuse_reverse(place, graph, active)
    for k, i in part.around:
        after[i] = outputs[k]
    return after


def _batch(node: Batching) -> Sequence[Term]:
    """All items run until the last is done; those that are done are held. One that is not batched has one condition for all."""
    attrs: WhileAttrs = node.attrs
    trace, size = node.operands[0].trace, node.size
    cond_batched, const_batched, init_batched = attrs.split(node.batched)
    condition_depends: list[bool] = [False]

    def after(carry: Flags) -> Sequence[bool]:
        probe = trace.primitives
        outputs: list[bool] = []
        made(probe, batched_inputs(attrs.body, [*const_batched, *carry], size), lambda inner, terms: _noted(
            outputs, batched_outputs(inner, attrs.body, terms, [*const_batched, *carry], size)))  # fmt: skip
        made(probe, batched_inputs(attrs.condition, [*cond_batched, *carry], size), lambda inner, terms: _noted(
            condition_depends, batched_outputs(inner, attrs.condition, terms, [*cond_batched, *carry], size)))  # fmt: skip
        return [True] * len(carry) if condition_depends[0] else outputs

    carry_batched = fixed_point(tuple(init_batched), after)
    each = condition_depends[0]
    cond_consts, body_consts, init = attrs.split(node.operands)
    init = [as_batch(t, b, size) if c else t for t, b, c in zip(init, init_batched, carry_batched, strict=True)]
    of_condition, of_body = [*cond_batched, *carry_batched], [*const_batched, *carry_batched]
    tests = cond_consts if each else []  # which a step takes, too, where it asks each item

    def go_on(inner: Recorder, terms: Sequence[Term]) -> Term:
        ((holds, depends),) = batched_outputs(inner, attrs.condition, terms, of_condition, size)
        return as_batch(holds, depends, size) if each else holds

    def condition(inner: Recorder, terms: list[Term]) -> list[Term]:
        running = go_on(inner, terms)
        return [reduce_or(running, axes=(0,)) if each else running]

    def step(inner: Recorder, terms: list[Term]) -> list[Term]:
        carry = terms[len(tests) + len(body_consts) :]
        outputs = batched_outputs(inner, attrs.body, terms[len(tests) :], of_body, size)
        new = [as_batch(t, b, size) if c else t for (t, b), c in zip(outputs, carry_batched, strict=True)]
        if not each:
            return new
        running = go_on(inner, [*terms[: len(tests)], *carry])
        return [_held(running, old, t) for old, t in zip(carry, new, strict=True)]

    of_test, of_step = batched_inputs(attrs.condition, of_condition, size), batched_inputs(attrs.body, of_body, size)
    inputs = [*named("c", [t for _, t in of_test[: len(tests)]]), *named("x", [t for _, t in of_step])]
    carried = trace.emit_all(
        "while",
        *(*cond_consts, *tests, *body_consts, *init),
        cond_consts=len(cond_consts),
        body_consts=len(tests) + len(body_consts),
        condition=made(trace.primitives, of_test, condition),
        body=made(trace.primitives, inputs, step),
    )
    return [as_batch(t, b, size) for t, b in zip(carried, carry_batched, strict=True)]


def _noted(flags: list[bool], outputs: Sequence[tuple[Term, bool]]) -> list[Term]:
    flags[:] = [b for _, b in outputs]
    return []


def _held(running: Term, old: Term, new: Term) -> Term:
    """The new value of items that are running, and the old one of others."""
    type_ = old.value_type
    if isinstance(type_, TensorType):
        return select_n(spread(running, type_.shape), old, new)
    return fieldwise(type_, lambda name, _: _held(running, field(old, name), field(new, name)))


def _dependence(of_graph: DependenceOf, attrs: WhileAttrs, operands: Dependences) -> Dependences:
    """How often the loop runs must not depend on tangents, or nothing is linear in them."""
    cond_consts, body_consts, first = attrs.split(operands)
    carry = stable(tuple(first), lambda carry: of_graph(attrs.body, (*body_consts, *carry)))
    (goes_on,) = of_graph(attrs.condition, (*cond_consts, *carry))
    return (Dependence.OTHER,) * len(carry) if goes_on.moves else carry


def _inner(attrs: WhileAttrs, operands: Sequence[Any], results: Sequence[Any], run: RunInner) -> None:
    cond_consts, body_consts, carry = attrs.split(operands)
    for step in count():
        if not run(0, step, [*cond_consts, *carry])[0]:
            break
        carry = list(run(1, step, [*body_consts, *carry]))


# A while as a scan of a known number of steps, which has a reverse mode.
#
# A step whose condition does not hold does nothing: a branch, so that what is not computed has no slope either. Where the condition
# still holds after the last step, all that the loop carries becomes what no result is: NaN, with derivatives that are NaN, and of
# integers the least number of their type, or the greatest if that is 0. Bools cannot tell.


def _bounded(attrs: WhileAttrs, operands: Sequence[Term], steps: int, linear: bool) -> Sequence[Term]:
    """The results of a while by a scan of this number of steps. `linear`: what it carries may be tangents."""
    trace, n, m = operands[0].trace, attrs.cond_consts, attrs.body_consts
    cond_consts, _, carry = attrs.split(operands)
    types = attrs.body.output_types
    kept = made(trace.primitives, named("s", [*attrs.body.input_types]), lambda _, terms: terms[m:])
    inputs = named("x", [x.value_type for x in operands])

    def step(inner: Recorder, terms: list[Term]) -> Sequence[Term]:
        of_condition, of_body, state = attrs.split(terms)
        (goes_on,) = outputs_of(inner, attrs.condition, [*of_condition, *state])
        return inner.emit_all("cond", goes_on, *of_body, *state, branches=(kept, attrs.body))

    body = made(trace.primitives, inputs, step)
    after = trace.emit_all("scan", *operands, length=steps, num_consts=n + m, num_carry=len(carry), body=body)
    (too_few,) = outputs_of(trace, attrs.condition, [*cond_consts, *after])
    whole = made(trace.primitives, named("s", types), lambda _, terms: terms)
    spoilt = made(trace.primitives, named("s", types), lambda _, terms: [_spoilt(x, linear) for x in terms])
    return trace.emit_all("cond", too_few, *after, branches=(whole, spoilt))


def _spoilt(x: Term, linear: bool) -> Term:
    """What no result is, and no derivative of one: of any order, unless x may be a tangent."""
    type_ = x.value_type
    if not isinstance(type_, TensorType):
        return fieldwise(type_, lambda name, _: _spoilt(field(x, name), linear))
    if type_.dtype in INEXACT:
        return (x if linear else exp(x)) * float("nan")
    if type_.dtype in INTEGERS:
        bits = 8 * ITEMSIZE[type_.dtype]
        return x.trace.full(-(2 ** (bits - 1)) if type_.dtype in SIGNED else 2**bits - 1, type_)
    return x


PRIMITIVES = (
    primitive(
        "while",
        None,
        _types,  # type: ignore[arg-type]  # of records, too
        while_kernel,
        inner=_inner,
        attrs=WhileAttrs,
        **graphs.OF_ALL_TYPES,
        n_results=lambda attrs, n_operands: len(attrs.body.graph.outputs),
        hidden=_hidden,
        jvp=_jvp,
        along=while_along,
        batch=_batch,
        irreversible=NO_REVERSE,
        dependence=_dependence,
        pattern=while_pattern,
        narrowed=narrowed_while,
        bounded=_bounded,
        carried=lambda attrs: range(attrs.cond_consts + attrs.body_consts, attrs.cond_consts + len(attrs.body.graph.inputs)),
        flops=lambda attrs, operands, results: flops(attrs.condition) + flops(attrs.body),  # of one step, as none knows how many
        caption=graphs.while_caption,
        parts=graphs.while_parts,
        formula="carry = body(consts, carry) while condition(consts, carry)",
        examples=(Example(("f64[]", "i32[]", "f64[]"), graphs.counted, ((-2.0, 2.0), (0.0, 2.0), (-2.0, 2.0))),),
        summary="a loop as long as a condition holds; no reverse mode, since how often it runs is not known before",
    ),
)
