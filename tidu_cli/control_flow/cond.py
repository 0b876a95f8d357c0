"""Branches: cond, as JAX's, runs one of several graphs, chosen by an index.

The derivative is a cond of the branches' derivatives. What those need of values is computed by a first cond, each branch its own
residuals; where branches have residuals of one type, these share a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, ClassVar, cast

from tidu_cli.control_flow import graphs
from tidu_cli.control_flow.along import cond_along, cond_kernel
from tidu_cli.control_flow.dependence import cond_pattern, merged_conds, narrowed_cond
from tidu_cli.control_flow.graphs import Linearized, Terms, as_batch, batched_outputs, flops, inputs_of, made, named, require_types
from tidu_cli.control_flow.while_loop import refuse_reverse
from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Place
from tidu_cli.graph.types import INTEGERS, TensorType, Type, of_batch, tangent_type
from tidu_cli.rules.attrs import ClosedGraphData
from tidu_cli.rules.batching import spread
from tidu_cli.rules.catalogue import Dependence, DependenceOf, Dependences
from tidu_cli.rules.contract import JVP, Attrs, Batching, Example, Narrowing, RunInner, Transposition, ValueTypes
from tidu_cli.rules.families import primitive
from tidu_cli.rules.terms import Recorder, Term, field, fieldwise, op, trace_of, zeros
from tidu_cli.transforms import nested

clamp, convert, select_n = op("clamp"), op("convert_element_type"), op("select_n")


class CondAttrs(Attrs):
    """`branches`: graphs of the same inputs, the operands after the index, and of outputs of the same types."""

    graphs: ClassVar[tuple[str, ...]] = ("branches",)
    branches: tuple[ClosedGraphData, ...]


def _types(attrs: CondAttrs, operands: ValueTypes) -> ValueTypes:
    index, rest, branches = operands[0], operands[1:], attrs.branches
    if not isinstance(index, TensorType) or index.shape or index.dtype not in INTEGERS | {"bool"}:
        raise TypeRuleError(f"input 0 has type {index}, but it chooses a branch: an integer or a bool, of rank 0")
    if not branches:
        raise TypeRuleError("has no branches")
    for k, branch in enumerate(branches):
        if len(branch.graph.inputs) != len(rest):
            raise TypeRuleError(f"branches[{k}] has {len(branch.graph.inputs)} inputs, but {len(rest)} operands follow the index")
        require_types(f"graph branches[{k}]", branch, rest, branch.input_types, range(1, len(operands)))
        if branch.output_types != branches[0].output_types:
            first, given = (", ".join(map(str, b.output_types)) for b in (branches[0], branch))
            raise TypeRuleError(f"branches[{k}] gives {given or 'nothing'}, but branches[0] gives {first or 'nothing'}")
    return branches[0].output_types


def _hidden(attrs: CondAttrs, operands: Sequence[Type | None], declared: ValueTypes | None) -> Sequence[Type | None]:
    if not attrs.branches or len(attrs.branches[0].graph.inputs) != len(operands) - 1:
        return operands
    return [operands[0], *attrs.branches[0].input_types]


def emit_cond(trace: Recorder, index: Term, branches: Sequence[ClosedGraph], operands: Sequence[Term]) -> Sequence[Term]:
    """A cond of these branches."""
    return trace.apply("cond", CondAttrs(branches=tuple(branches)), [index, *operands]) if branches[0].graph.outputs else ()


def _jvp(node: JVP) -> Terms:
    attrs: CondAttrs = node.attrs
    trace = trace_of(node.tangents)
    active = [t is not None for t in node.tangents[1:]]
    each = [Linearized(b, active, trace.primitives, f"branches[{k}]") for k, b in enumerate(attrs.branches)]
    live = [any(flags) for flags in zip(*[b.live for b in each], strict=True)]
    if not any(live):
        return [None] * len(node.results)
    places, shared = _shared_residuals(each, len(active))
    residuals = _emit_residuals(trace, node, each, places, shared)
    return _emit_linear(trace, node, each, places, residuals, live)


def _shared_residuals(each: Sequence[Linearized], n_operands: int) -> tuple[list[dict[Place, int]], list[Type]]:
    """Where each branch finds its residuals among the results of a cond of residuals, and the types of these.

    What is an operand of the branch comes after those results.
    """
    types: list[Type] = []
    places: list[dict[Place, int]] = []
    for branch in each:
        taken, number_of = set[int](), dict[Place, int]()
        for place in getattr(branch, "residuals", ()):
            if place[0] == 0 and place[1] < n_operands:
                continue
            due = branch.type_of(place)
            number = next((k for k, t in enumerate(types) if t == due and k not in taken), len(types))
            if number == len(types):
                types.append(due)
            taken.add(number)
            number_of[place] = number
        places.append(number_of)
    for branch, number_of in zip(each, places, strict=True):
        number_of.update(((g, v), len(types) + v) for g, v in getattr(branch, "residuals", ()) if (g, v) not in number_of)
    return places, types


def _emit_residuals(
    trace: Recorder, node: JVP, each: Sequence[Linearized], places: Sequence[dict[Place, int]], types: Sequence[Type]
) -> Sequence[Term]:
    def branch(linearized: Linearized, number_of: dict[Place, int], graph: ClosedGraph) -> ClosedGraph:
        def emit(inner: Recorder, terms: list[Term]) -> list[Term]:
            own = {number: place for place, number in number_of.items() if number < len(types)}
            values = dict(zip(own, linearized.emit_residuals(inner, list(own.values()), terms), strict=True)) if own else {}
            return [values[k] if k in values else _filler(inner, t) for k, t in enumerate(types)]

        return made(trace.primitives, inputs_of(graph), emit)

    if not types:
        return ()
    branches = tuple([branch(*some) for some in zip(each, places, node.attrs.branches, strict=True)])
    # It reads nothing but what residuals need: within a rule what is linear has no value there (`nested.pull_back`).
    narrowing = Narrowing(CondAttrs(branches=branches), node.operands, (True,) * len(types), [None] * len(node.operands))
    return cast(Sequence[Term] | None, narrowed_cond(narrowing)) or emit_cond(trace, node.operands[0], branches, node.operands[1:])


def _filler(trace: Recorder, type_: Type) -> Term:
    """What stands for a residual of another branch, which nobody reads."""
    if isinstance(type_, TensorType):
        return trace.full(0, type_)
    return fieldwise(type_, lambda name, t: _filler(trace, t))


def _emit_linear(
    trace: Recorder,
    node: JVP,
    each: Sequence[Linearized],
    places: Sequence[dict[Place, int]],
    residuals: Sequence[Term],
    live: Sequence[bool],
) -> Terms:
    index, *operands = node.operands
    values = [*residuals, *operands]
    used = sorted({k for number_of in places for k in number_of.values()})
    types = [tangent_type(t) for t in node.attrs.branches[0].output_types]
    given = [cast(Term, t) for t, moves in zip(node.tangents[1:], each[0].active, strict=True) if moves]
    inputs = [*named("r", [values[k].value_type for k in used]), *named("dx", [t.value_type for t in given])]

    def branch(linearized: Linearized, number_of: dict[Place, int]) -> ClosedGraph:
        def emit(inner: Recorder, terms: list[Term]) -> list[Term]:
            at = dict(zip(used, terms, strict=False))
            out = linearized.emit_linear(inner, {place: at[k] for place, k in number_of.items()}, terms[len(used) :])
            due = [(t, type_) for t, type_, lives in zip(out, types, live, strict=True) if lives]
            return [zeros(inner, type_) if t is None else t for t, type_ in due]

        return made(trace.primitives, inputs, emit)

    branches = [branch(*some) for some in zip(each, places, strict=True)]
    results = iter(emit_cond(trace, index, branches, [*[values[k] for k in used], *given]))
    return [next(results) if lives else None for lives in live]


def _transpose(node: Transposition) -> Terms:
    attrs: CondAttrs = node.attrs
    trace = trace_of(node.cotangents)
    index, operands, active = cast(Term, node.operands[0]), node.operands[1:], node.active[1:]
    for k, branch in enumerate(attrs.branches):
        refuse_reverse(f", branches[{k}]", branch, active)
    types = attrs.branches[0].input_types
    fixed = [k for k, a in enumerate(active) if not a]
    given = [k for k, ct in enumerate(node.cotangents) if ct is not None]
    inputs = [*named("x", [types[k] for k in fixed]), *named("ct", [attrs.branches[0].output_types[k] for k in given])]
    flowing: list[bool] = [False] * len(types)

    def pulled(inner: Recorder, branch: ClosedGraph, terms: Sequence[Term]) -> Terms:
        values = dict(zip(fixed, terms, strict=False))
        cts = dict(zip(given, terms[len(fixed) :], strict=True))
        operands = [values.get(k) for k in range(len(types))]
        return nested.pull_back(inner, branch.graph, operands, active, [cts.get(k) for k in range(len(node.cotangents))])

    for b in attrs.branches:
        made(trace.primitives, inputs, lambda inner, terms, b=b: _noted(flowing, pulled(inner, b, terms)))  # type: ignore[misc]

    def dense(branch: ClosedGraph) -> ClosedGraph:
        def emit(inner: Recorder, terms: list[Term]) -> list[Term]:
            back = pulled(inner, branch, terms)
            return [zeros(inner, types[k]) if (t := back[k]) is None else t for k, f in enumerate(flowing) if f]

        return made(trace.primitives, inputs, emit)

    values = [*[operands[k] for k in fixed], *[node.cotangents[k] for k in given]]
    results = iter(emit_cond(trace, index, list(map(dense, attrs.branches)), cast(list[Term], values)))
    return [None, *[next(results) if f else None for f in flowing]]


def _noted(flags: list[bool], terms: Terms) -> list[Term]:
    flags[:] = [f or t is not None for f, t in zip(flags, terms, strict=True)]
    return []


def _batch(node: Batching) -> Sequence[Term]:
    attrs: CondAttrs = node.attrs
    index, operands, size = node.operands[0], node.operands[1:], node.size
    trace, batched = index.trace, node.batched[1:]
    if not node.batched[0]:
        types = [of_batch(t, size) if b else t for t, b in zip(attrs.branches[0].input_types, batched, strict=True)]

        def emit(branch: ClosedGraph) -> ClosedGraph:
            return made(
                trace.primitives,
                named("x", types),
                lambda inner, terms: [as_batch(*output, size) for output in batched_outputs(inner, branch, terms, batched, size)],
            )

        return emit_cond(trace, index, list(map(emit, attrs.branches)), operands)
    each = [[as_batch(*output, size) for output in batched_outputs(trace, b, operands, batched, size)] for b in attrs.branches]
    which = clamp(trace.full(0, TensorType("i32")), convert(index, new_dtype="i32"), trace.full(len(each) - 1, TensorType("i32")))
    return [_selected(which, some) for some in zip(*each, strict=True)]


def _selected(which: Term, cases: Sequence[Term]) -> Term:
    """Of each item of a batch the case that it chooses."""
    type_ = cases[0].value_type
    if isinstance(type_, TensorType):
        return select_n(spread(which, type_.shape), *cases) if len(cases) > 1 else cases[0]
    return fieldwise(type_, lambda name, _: _selected(which, [field(c, name) for c in cases]))


def _dependence(of_graph: DependenceOf, attrs: CondAttrs, operands: Dependences) -> Dependences:
    index, *rest = operands
    each = zip(*[of_graph(branch, tuple(rest)) for branch in attrs.branches], strict=True)
    return tuple([Dependence.OTHER if index.moves else reduce(Dependence.joined, some) for some in each])


def _inner(attrs: CondAttrs, operands: Sequence[Any], results: Sequence[Any], run: RunInner) -> None:
    run(min(max(int(operands[0]), 0), len(attrs.branches) - 1), None, operands[1:])


PRIMITIVES = (
    primitive(
        "cond",
        None,
        _types,  # type: ignore[arg-type]  # of records, too
        cond_kernel,
        inner=_inner,
        attrs=CondAttrs,
        **graphs.OF_ALL_TYPES,
        n_results=lambda attrs, n_operands: len(attrs.branches[0].graph.outputs) if attrs.branches else 0,
        hidden=_hidden,
        indices=(0, 1),
        jvp=_jvp,
        along=cond_along,
        transpose=_transpose,
        batch=_batch,
        dependence=_dependence,
        pattern=cond_pattern,
        narrowed=narrowed_cond,
        merged=merged_conds,
        flops=lambda attrs, operands, results: max(map(flops, attrs.branches)),
        caption=graphs.cond_caption,
        parts=graphs.cond_parts,
        formula="branch number index, of operands",
        examples=(Example(("i32[]", "f64[3]"), graphs.two_branches, ((0, 2), (-2.0, 2.0))),),
        summary="the branch of that number, clamped to those there are; false is 0, true 1",
    ),
)
