"""Loops with a known number of steps: scan, as JAX's.

Each step takes the constants, what the one before carried over, and its slices of the arrays scanned; it gives what it carries on
and slices of results. The derivative of a scan is a scan of the derivative of a step: what that needs of values is stored by
another scan, one array a residual, but for what is the same in all steps. In reverse it runs from the last step to the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, cast

from tidu_cli.control_flow import graphs
from tidu_cli.control_flow.along import along_loop, scan_along, scan_inner, scan_kernel
from tidu_cli.control_flow.checkpoints import segmented
from tidu_cli.control_flow.dependence import merged, narrowed, scan_pattern
from tidu_cli.control_flow.graphs import (
    Flags,
    Linearized,
    Terms,
    as_batch,
    batched_inputs,
    batched_outputs,
    fixed_point,
    flops,
    inputs_of,
    made,
    named,
    require_types,
)
from tidu_cli.control_flow.while_loop import refuse_reverse
from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Place
from tidu_cli.graph.types import RecordType, Type, map_leaves, of_batch, tangent_type
from tidu_cli.rules.attrs import Axis, ClosedGraphData, Extent
from tidu_cli.rules.catalogue import DependenceOf, Dependences, stable
from tidu_cli.rules.contract import JVP, Attrs, Batching, Example, Narrowing, Transposition, ValueTypes
from tidu_cli.rules.families import primitive
from tidu_cli.rules.terms import Recorder, Term, field, fieldwise, op, trace_of, zeros
from tidu_cli.transforms import nested

transpose_axes = op("transpose")


class ScanAttrs(Attrs):
    """`length` steps, from the last to the first if `reverse`. Of the operands, and of the inputs of `body`, `num_consts` are the
    same in all steps, and `num_carry` are carried from step to step; the others are scanned along axis 0. The outputs of `body` are
    what it carries over, and slices of results.
    """

    graphs: ClassVar[tuple[str, ...]] = ("body",)
    length: Extent
    num_consts: Axis
    num_carry: Axis
    reverse: bool = False
    body: ClosedGraphData

    @property
    def n_xs(self) -> int:
        """How many arrays are scanned."""
        return len(self.body.graph.inputs) - self.num_consts - self.num_carry

    @property
    def carried(self) -> range:
        """The operands that the first step takes as what was carried over."""
        return range(self.num_consts, self.num_consts + self.num_carry)

    def split(self, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Constants, what is carried, and what is scanned."""
        first, end = self.num_consts, self.num_consts + self.num_carry
        return list(values[:first]), list(values[first:end]), list(values[end:])


def _types(attrs: ScanAttrs, operands: ValueTypes) -> ValueTypes:
    body, n_carry = attrs.body, attrs.num_carry
    due, given = list(body.input_types), body.output_types
    if attrs.n_xs < 0:
        raise TypeRuleError(f"num_consts and num_carry are {attrs.num_consts} and {n_carry}, but its body has {len(due)} inputs")
    if len(operands) != len(due):
        raise TypeRuleError(f"takes {len(due)} inputs, as its body does, got {len(operands)}")
    due[attrs.num_consts + n_carry :] = [of_batch(t, attrs.length) for t in due[attrs.num_consts + n_carry :]]
    require_types("body", body, operands, due, range(len(due)))
    carry = [body.input_types[k] for k in attrs.carried]
    if len(given) < n_carry:
        raise TypeRuleError(f"carries {n_carry} values, but its body has {len(given)} outputs")
    for k, (t, d) in enumerate(zip(given[:n_carry], carry, strict=True)):
        if t != d:
            raise TypeRuleError(f"its body gives {t} as '{body.graph.outputs[k].key}', where it carries {d} over")
    return (*carry, *[of_batch(t, attrs.length) for t in given[n_carry:]])


def _hidden(attrs: ScanAttrs, operands: Sequence[Type | None], declared: ValueTypes | None) -> Sequence[Type | None]:
    types, first = attrs.body.input_types, attrs.num_consts + attrs.num_carry
    return [t if k < first else of_batch(t, attrs.length) for k, t in enumerate(types)] if len(types) == len(operands) else operands


def _emit(trace: Recorder, attrs: ScanAttrs, body: ClosedGraph, consts: Sequence[Term], carry: Sequence[Term], xs: Sequence[Term],
          *, turned: bool = False) -> tuple[Sequence[Term], Sequence[Term]]:  # fmt: skip
    """A scan like this one of another body; `turned` runs the other way. Gives what is carried out, and results."""
    changed = ScanAttrs(
        length=attrs.length, num_consts=len(consts), num_carry=len(carry), reverse=attrs.reverse is not turned, body=body
    )
    if not body.graph.outputs:
        return (), ()
    results = trace.apply("scan", changed, [*consts, *carry, *xs])
    return results[: len(carry)], results[len(carry) :]


def _jvp(node: JVP) -> Terms:
    attrs: ScanAttrs = node.attrs
    trace = trace_of(node.tangents)
    step = along_loop(attrs.body, attrs.carried, [t is not None for t in node.tangents], trace.primitives)
    if not any(step.active):
        return [None] * len(node.results)
    return _linear_scan(trace, attrs, step, *_residuals(trace, attrs, step, node.operands), node.tangents)


Residuals = dict[Place, Term]


def _residuals(trace: Recorder, attrs: ScanAttrs, step: Linearized, operands: Sequence[Term]) -> tuple[Residuals, Residuals]:
    """Emit the scan that stores residuals, and outside of it those that are the same in all steps.

    Gives them as they reach the steps of a linear scan: those that are the same for all, and those with a slice for each.
    """
    n, end = attrs.num_consts, attrs.num_consts + attrs.num_carry
    depends = step.depending_on(range(n, len(operands)))
    invariant = [(g, v) for g, v in step.residuals if not depends[g][v]]
    consts = [*operands[:n], *[None] * (len(operands) - n)]
    shared = dict(zip(invariant, step.emit_residuals(trace, invariant, consts), strict=True))
    scanned = {(g, v): operands[v] for g, v in step.residuals if g == 0 and end <= v < len(operands)}
    stored = [place for place in step.residuals if place not in shared and place not in scanned]
    if stored:
        carried = [(0, o.value) for o in attrs.body.graph.outputs[: attrs.num_carry]]
        body = made(
            trace.primitives,
            inputs_of(attrs.body),
            lambda inner, terms: step.emit_residuals(inner, [*cast(list[Place], carried), *stored], terms),
        )
        changed = attrs.with_graphs(lambda _: body)
        # It reads nothing but what residuals need: within a rule what is linear has no value there (`nested.pull_back`).
        needed = (*[False] * attrs.num_carry, *[True] * len(stored))
        results = narrowed(Narrowing(changed, operands, needed, [None] * len(operands))) or trace.apply("scan", changed, operands)
        scanned |= dict(zip(stored, cast(Sequence[Term], results[attrs.num_carry :]), strict=True))
    return shared, scanned


def _linear_scan(
    trace: Recorder, attrs: ScanAttrs, step: Linearized, shared: Residuals, scanned: Residuals, tangents: Terms
) -> Terms:
    """Emit the scan of the linear graph of a step. Gives the tangents of the results."""
    types = [tangent_type(t) for t in attrs.body.input_types]
    consts, carry, xs = attrs.split(list(enumerate(step.active)))
    of_consts, of_carry, of_xs = ([k for k, a in some if a] for some in (consts, carry, xs))
    carried = [k - attrs.num_consts for k in of_carry]
    results = [k for k, live in enumerate(step.live) if live and k >= attrs.num_carry]
    inputs = [
        *named("r", [step.type_of(r) for r in shared]),
        *named("dc", [types[k] for k in of_consts]),
        *named("ds", [types[k] for k in of_carry]),
        *named("s", [step.type_of(r) for r in scanned]),
        *named("dx", [types[k] for k in of_xs]),
    ]

    def emit(inner: Recorder, terms: list[Term]) -> list[Term]:
        values: Iterator[Term] = iter(terms)
        of_shared = {r: next(values) for r in shared}
        first = [next(values) for _ in (*of_consts, *of_carry)]
        of_scanned = {r: next(values) for r in scanned}
        outputs = step.emit_linear(inner, of_shared | of_scanned, [*first, *values])
        out = [t if (t := outputs[k]) is not None else zeros(inner, types[attrs.num_consts + k]) for k in carried]
        return [*out, *[cast(Term, outputs[k]) for k in results]]

    body = made(trace.primitives, inputs, emit)
    given = cast(dict[int, Term], {k: t for k, t in enumerate(tangents) if t is not None})
    carry_out, arrays = _emit(
        trace,
        attrs,
        body,
        [*shared.values(), *[given[k] for k in of_consts]],
        [given[k] if k in given else zeros(trace, types[k]) for k in of_carry],
        [*scanned.values(), *[given[k] for k in of_xs]],
    )
    tangent_of = dict(zip([*carried, *results], [*carry_out, *arrays], strict=True))
    return [t if (t := tangent_of.get(k)) is not None and t.linear else None for k in range(len(step.live))]


def _transpose(node: Transposition) -> Terms:
    """The scan of the transposed step, the other way. It carries cotangents of what was carried, and sums those of constants."""
    attrs: ScanAttrs = node.attrs
    trace = trace_of(node.cotangents)
    body, n_carry = attrs.body, attrs.num_carry
    active, types = attrs.split(node.active), attrs.split(body.input_types)

    def moved_after(carry: Flags) -> Flags:
        return Linearized(body, [*active[0], *carry, *active[2]], trace.primitives).live[:n_carry]

    moving = fixed_point(tuple(active[1]), moved_after)
    for k, (m, t) in enumerate(zip(moving, types[1], strict=True)):
        if not m and _is_needed(attrs, k):
            key = body.graph.inputs[attrs.num_consts + k].key
            raise MissingRuleError(
                f"cannot transpose: it carries '{key}' ({t}), which does not depend on tangents; compute it in a scan before,"
                " and scan its values here"
            )
    linear = [*active[0], *moving, *active[2]]
    refuse_reverse(", body", body, linear)
    ct_carry, ct_ys = list(node.cotangents[:n_carry]), list(node.cotangents[n_carry:])

    def pulled(inner: Recorder, operands: Terms, carry: Terms, ys: Terms) -> Terms:
        return nested.pull_back(inner, body.graph, operands, linear, [*carry, *ys])

    def live_after(carry: Flags) -> Sequence[bool]:
        live: list[bool] = []
        flags = (*carry, *[t is not None for t in ct_ys])

        def emit(inner: Recorder, terms: list[Term]) -> list[Term]:
            values = iter(terms)
            operands = [None if a else next(values) for a in linear]
            cts = [next(values) if c else None for c in flags]
            back = pulled(inner, operands, cts[:n_carry], cts[n_carry:])
            live.extend(t is not None for t in back)
            return [t for t in back if t is not None]

        outputs = [t for t, c in zip(body.output_types, flags, strict=True) if c]
        made(trace.primitives, named("x", [*[t for t, a in zip(body.input_types, linear, strict=True) if not a], *outputs]), emit)
        return live[attrs.num_consts : attrs.num_consts + n_carry]

    flowing = fixed_point(tuple([t is not None for t in ct_carry]), live_after)
    return _transposed_scan(trace, node, linear, flowing, pulled)


def _is_needed(attrs: ScanAttrs, k: int) -> bool:
    """Whether a step reads what it is carried under this number, but to carry it on unchanged."""
    graph, value = attrs.body.graph, attrs.num_consts + k
    return value in graph.args or any(o.value == value for j, o in enumerate(graph.outputs) if j != k)


def _transposed_scan(
    trace: Recorder, node: Transposition, linear: Sequence[bool], flowing: Flags, pulled: Callable[..., Terms]
) -> Terms:
    attrs: ScanAttrs = node.attrs
    n, n_carry, types = attrs.num_consts, attrs.num_carry, attrs.body.input_types
    ct_carry, ct_ys = node.cotangents[:n_carry], node.cotangents[n_carry:]
    outer = n + n_carry
    fixed = [k for k in range(n) if not linear[k]]
    sums = [k for k in range(n) if linear[k]]
    carried = [k for k in range(n_carry) if flowing[k]]
    slices = [k for k in range(outer, len(types)) if not linear[k]]
    given = [k for k, t in enumerate(ct_ys) if t is not None]
    wanted = [k for k in range(outer, len(types)) if linear[k]]
    inputs = [
        *named("c", [types[k] for k in fixed]),
        *named("ct_c", [types[k] for k in sums]),
        *named("ct_s", [types[n + k] for k in carried]),
        *named("x", [types[k] for k in slices]),
        *named("ct_y", [attrs.body.output_types[n_carry + k] for k in given]),
    ]
    flows: dict[int, bool] = {}

    def emit(inner: Recorder, terms: list[Term]) -> list[Term]:
        values = iter(terms)
        operands: dict[int, Term] = {k: next(values) for k in fixed}
        totals = [next(values) for _ in sums]
        carry: dict[int, Term] = {k: next(values) for k in carried}
        operands |= {k: next(values) for k in slices}
        ys: dict[int, Term] = {k: next(values) for k in given}
        back = pulled(
            inner,
            [operands.get(k) for k in range(len(types))],
            [carry.get(k) for k in range(n_carry)],
            [ys.get(k) for k in range(len(ct_ys))],
        )
        flows.update((k, t is not None) for k, t in enumerate(back))
        add = inner.primitives.add
        totals = [total if (t := back[k]) is None else inner.emit(add, total, t) for k, total in zip(sums, totals, strict=True)]
        out = [t if (t := back[n + k]) is not None else zeros(inner, types[n + k]) for k in carried]
        return [*totals, *out, *[t if (t := back[k]) is not None else zeros(inner, types[k]) for k in wanted]]

    body = made(trace.primitives, inputs, emit)
    init = [ct if (ct := ct_carry[k]) is not None else zeros(trace, types[n + k]) for k in carried]
    finals, arrays = _emit(
        trace,
        attrs,
        body,
        [cast(Term, node.operands[k]) for k in fixed],
        [*[zeros(trace, types[k]) for k in sums], *init],
        [*[cast(Term, node.operands[k]) for k in slices], *[cast(Term, ct_ys[k]) for k in given]],
        turned=True,
    )
    results: dict[int, Term] = dict(zip([*sums, *[n + k for k in carried], *wanted], [*finals, *arrays], strict=True))
    is_live = {k: flows[k] or (n <= k < outer and ct_carry[k - n] is not None) for k in results}
    return [results[k] if a and k in results and is_live[k] else None for k, a in enumerate(node.active)]


def _batch(node: Batching) -> Sequence[Term]:
    attrs: ScanAttrs = node.attrs
    trace, body, size, n_carry = node.operands[0].trace, attrs.body, node.size, attrs.num_carry
    const_batched, init_batched, x_batched = attrs.split(node.batched)
    depends: list[bool] = []

    def step(carry: Flags) -> ClosedGraph:
        flags = (*const_batched, *carry, *x_batched)

        def emit(inner: Recorder, terms: list[Term]) -> list[Term]:
            pairs = batched_outputs(inner, body, terms, flags, size)
            depends[:] = [b for _, b in pairs]
            kept = [as_batch(t, b, size) if c else t for (t, b), c in zip(pairs[:n_carry], carry, strict=True)]
            return [*kept, *[t for t, _ in pairs[n_carry:]]]

        return made(trace.primitives, batched_inputs(body, flags, size), emit)

    def after(carry: Flags) -> Sequence[bool]:
        step(carry)
        return depends[:n_carry]

    carry_batched = fixed_point(tuple(init_batched), after)
    batched_body = step(carry_batched)
    consts, init, xs = attrs.split(node.operands)
    init = [as_batch(t, b, size) if c else t for t, b, c in zip(init, init_batched, carry_batched, strict=True)]
    xs = [_swapped(x) if b else x for x, b in zip(xs, x_batched, strict=True)]
    carry_out, ys = _emit(trace, attrs, batched_body, consts, init, xs)
    out = [as_batch(t, b, size) for t, b in zip(carry_out, carry_batched, strict=True)]
    return [*out, *[_swapped(y) if b else as_batch(y, False, size) for y, b in zip(ys, depends[n_carry:], strict=True)]]


def _swapped(x: Term) -> Term:
    """Axes 0 and 1 the other way: the batch and the steps. Of a record, of each of its arrays."""
    if isinstance(x.value_type, RecordType):
        swapped = map_leaves(x.value_type, lambda t: t.with_shape((t.shape[1], t.shape[0], *t.shape[2:])))
        return fieldwise(swapped, lambda name, _: _swapped(field(x, name)))
    return transpose_axes(x, permutation=(1, 0, *range(2, x.type.rank)))


def _dependence(of_graph: DependenceOf, attrs: ScanAttrs, operands: Dependences) -> Dependences:
    consts, carry, xs = map(tuple, attrs.split(operands))
    carry = stable(carry, lambda carry: of_graph(attrs.body, (*consts, *carry, *xs))[: attrs.num_carry])
    return (*carry, *of_graph(attrs.body, (*consts, *carry, *xs))[attrs.num_carry :])


PRIMITIVES = (
    primitive(
        "scan",
        None,
        _types,  # type: ignore[arg-type]  # of records, too
        scan_kernel,
        inner=scan_inner,
        attrs=ScanAttrs,
        **graphs.OF_ALL_TYPES,
        n_results=lambda attrs, n_operands: len(attrs.body.graph.outputs),
        hidden=_hidden,
        jvp=_jvp,
        along=scan_along,
        transpose=_transpose,
        batch=_batch,
        dependence=_dependence,
        pattern=scan_pattern,
        narrowed=narrowed,
        merged=merged,
        segmented=segmented,
        carried=lambda attrs: attrs.carried,
        flops=lambda attrs, operands, results: attrs.length * flops(attrs.body),
        caption=graphs.scan_caption,
        parts=graphs.scan_parts,
        formula="carry, slices = body(consts, carry, slices), step by step",
        examples=(Example(("f64[]", "f64[]", "f64[4]"), graphs.recurrence), Example(("f64[2,2]", "f64[2]"), graphs.powers)),
        summary="a loop with a known number of steps; the values carried over, and the slices that results are stacked from",
    ),
)
