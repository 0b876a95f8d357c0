"""Selects before operations whose slopes may be infinite, so that reverse mode is right where their branch is not taken.

A module computes both branches of a select. Reverse mode gives the one that is not taken a cotangent of 0, and an infinite slope
makes NaN of it: where(x > 0, log(x), 0) at 0. JAX's own functions are full of such branches, and a module has lost their rules. So
where its branch is not taken, such an operation gets a harmless operand, log(where(x > 0, x, 0.5)): its slope is finite there, and
the select lets no cotangent through. Elements that are taken keep their bits, and nobody reads the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, cast

from tidu_cli.formats.stablehlo.reading.recording import Recording
from tidu_cli.graph.closed import ClosedGraph, cases_within, closed_graphs
from tidu_cli.graph.graph import Case, Graph
from tidu_cli.graph.types import COMPLEXES, INEXACT, TensorType, Type
from tidu_cli.graph.walk import forwards
from tidu_cli.lax.arrays.structural import literal_array
from tidu_cli.lax.index import FAMILIES
from tidu_cli.limits import require
from tidu_cli.rules.terms import Term
from tidu_cli.rules.vocabulary import PrimitiveSet

MOST_NESTED = 32
"""How deep in selects operations are guarded, so that work stays linear in nodes."""

HARMLESS = {"acosh": 2.0, "polygamma": 2.0, "zeta": 2.0}
"""Operands for which an operation and its slopes are finite: for all others 0.5."""


def _ops(*families: str) -> frozenset[str]:
    return frozenset(op for family, ops in FAMILIES.items() if family.startswith(families) for op in ops.split())


_ELEMENTWISE = _ops("elementwise.") - {"bitcast_convert_type"} | {"convert_element_type"}
_LINEAR = _ops("arrays.", "reductions.", "signal.", "elementwise.rounding", "elementwise.precision", "elementwise.complex_numbers")
_LINEAR = _LINEAR - {"rem"} | {"add", "sub", "neg", "max", "min", "clamp", "select_n", "dot_general"}
_LINEAR_IF_REAL = frozenset({"abs", "sign"})
_SMOOTH = frozenset({"mul", "square", "integer_pow"})
_SMOOTH_IF_REAL = frozenset(["sin", "cos", "tanh", "logistic", "atan", "asinh", "erf", "erfc", "bessel_i0e", "bessel_i1e"])


class Slopes(Enum):
    """Where the slopes of an operation are finite. Where they and the operands are, its result is, too."""

    EVERYWHERE = 0
    AT_FINITE_OPERANDS = 1
    SOMEWHERE = 2


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """That a selector selects case `number` of `n_cases`, within the condition `around`; `depth` counts the conditions."""

    selector: int
    number: int
    n_cases: int
    around: Condition | None
    depth: int


Node = tuple[int, tuple[int, ...], int]
"""The number of a node's case, the values that it reads, and its first result."""

Guards = Mapping[int, tuple[Sequence[Condition], Sequence[int]]]
"""By nodes: the conditions that a node stands under, the outmost first; and how many of them each operand needs no guard for."""


def guarded(graph: Graph, primitives: PrimitiveSet) -> Graph:
    """The same values with such selects, in graphs within nodes, too; the graph itself where it needs none. Raises LimitError.

    A branch is what is elementwise and read by nothing but that branch. Inputs count as finite, as do products of finite numbers.
    """
    cases = {code: graph.cases[code] for code in set(graph.code)}
    if all(case.op != "select_n" for case in cases_within(cases.values())):
        return graph
    nodes = [(code, args, first) for code, args, first, _ in forwards(graph, graph.args)]
    guards = _guards(graph, nodes, {code: _slopes(case) for code, case in cases.items()}, _conditions(graph, nodes))
    inner = {code: _guarded_within(case, primitives) for code, case in cases.items()}
    return _rebuilt(graph, nodes, inner, guards, primitives) if guards or inner != cases else graph


def _guarded_within(case: Case, primitives: PrimitiveSet) -> Case:
    """A case whose graphs are guarded."""
    if not closed_graphs(case.attrs):
        return case
    attrs = cast(Any, case.attrs).with_graphs(lambda inner: ClosedGraph.of(guarded(inner.graph, primitives)))
    return replace(case, attrs=attrs)


def _slopes(case: Case) -> Slopes:
    real = not any(isinstance(t, TensorType) and t.dtype in COMPLEXES for t in (*case.operands, *case.results))
    if case.op == "constant" and not _is_finite(case):
        return Slopes.SOMEWHERE
    if not any(map(_is_inexact, case.results)) or case.op in _LINEAR or (real and case.op in _LINEAR_IF_REAL):
        return Slopes.EVERYWHERE
    if (case.op in _SMOOTH or (real and case.op in _SMOOTH_IF_REAL)) and getattr(case.attrs, "y", 0) >= 0:
        return Slopes.AT_FINITE_OPERANDS
    return Slopes.SOMEWHERE


def _is_finite(constant: Case) -> bool:
    import numpy as np

    array = literal_array(np, cast(Any, constant.attrs).value)
    return not any(map(_is_inexact, constant.results)) or bool(np.isfinite(array).all())


def _conditions(graph: Graph, nodes: Sequence[Node]) -> list[Condition | None]:
    """The condition that each node stands under: the inmost one around all that reads it."""
    elementwise = {code: _is_elementwise(graph.cases[code]) for code in set(graph.code)}
    under: dict[int, Condition | None] = {cast(int, output.value): None for output in graph.outputs}
    conditions: dict[tuple[Condition | None, int, int], Condition] = {}
    found: list[Condition | None] = []
    for code, args, first in reversed(nodes):
        here = under.get(first) if elementwise[code] else None
        depth = here.depth if here else 0
        chooses = elementwise[code] and graph.cases[code].op == "select_n" and depth < MOST_NESTED
        for k, a in enumerate(args):
            there = here
            if chooses and k:
                condition = Condition(args[0], k - 1, len(args) - 1, here, depth + 1)
                there = conditions.setdefault((here, args[0], k - 1), condition)
            under[a] = _common(under[a], there) if a in under else there
        found.append(here)
    return found[::-1]


def _is_elementwise(case: Case) -> bool:
    shapes = {t.shape if isinstance(t, TensorType) else None for t in (*case.operands, *case.results)}
    return case.op in _ELEMENTWISE and len(shapes) == 1


def _common(x: Condition | None, y: Condition | None) -> Condition | None:
    """The inmost condition that is, or is around, both."""
    while x is not y:
        if x is None or y is None:
            return None
        deeper, other = (x, y) if x.depth >= y.depth else (y, x)
        x, y = deeper.around, other
    return x


def _path(condition: Condition | None) -> list[Condition]:
    """The conditions from the outmost one to this."""
    found = []
    while condition:
        found.append(condition)
        condition = condition.around
    return found[::-1]


def _guards(graph: Graph, nodes: Sequence[Node], slopes: Mapping[int, Slopes], places: Sequence[Condition | None]) -> Guards:
    always = MOST_NESTED + 1
    finite = [always] * len(graph.inputs)
    """For each value: it is finite wherever one of so many outmost conditions around it does not hold."""
    constant = [False] * len(graph.inputs)
    guards = {}
    for n, ((code, args, _), here) in enumerate(zip(nodes, places, strict=True)):
        case, slope, depth = graph.cases[code], slopes[code], here.depth if here else 0
        fixed = all(constant[a] for a in args)
        if case.op == "div" and constant[args[1]]:
            slope = Slopes.EVERYWHERE
        least = min((finite[a] for a in args), default=always)
        if slope is Slopes.SOMEWHERE or (slope is Slopes.AT_FINITE_OPERANDS and least < always):
            singular = slope is Slopes.SOMEWHERE
            free = [0 if singular and not constant[a] else finite[a] for a in args]
            free = [f if _is_inexact(t) else always for f, t in zip(free, case.operands, strict=True)]
            if min(free, default=always) < depth:
                guards[n] = _path(here), free
            least = 0 if fixed else depth
        finite += [min(least, depth) if least < always and _is_inexact(t) else always for t in case.results]
        constant += [fixed] * len(case.results)
    return guards


def _is_inexact(type_: Type | None) -> bool:
    return isinstance(type_, TensorType) and type_.dtype in INEXACT


def _rebuilt(graph: Graph, nodes: Sequence[Node], cases: Mapping[int, Case], guards: Guards, primitives: PrimitiveSet) -> Graph:
    """The graph of these cases with guards.

    A node comes after the selectors of its guards. None of these depends on it, since it is read by their selects alone.
    """
    recording = Recording(primitives, [i.type for i in graph.inputs])
    codes = {code: recording.cases.intern(case) for code, case in cases.items()}
    terms: list[Term | None] = [*recording.sources, *[None] * (graph.n_values - len(graph.inputs))]
    producers = [-1] * len(graph.inputs) + [n for n, (code, _, _) in enumerate(nodes) for _ in cases[code].results]
    chosen: dict[tuple[int, Condition, float], Term] = {}

    def guard(term: Term, conditions: Sequence[Condition], harmless: float) -> Term:
        for c in conditions:
            place = term.slot, c, harmless
            if place not in chosen:
                operands: list[Term | float] = [harmless] * c.n_cases
                operands[c.number] = term
                chosen[place] = recording.emit("select_n", cast(Term, terms[c.selector]), *operands)
            term = chosen[place]
        return term

    for last in range(len(nodes)):
        pending = [last]
        while pending:
            code, args, first = nodes[n := pending[-1]]
            conditions, free = guards.get(n, ((), (0,) * len(args)))
            missing = [producers[a] for a in (*args, *(c.selector for c in conditions)) if terms[a] is None]
            pending += missing
            if missing:
                continue
            pending.pop()
            if terms[first] is None:
                harmless = HARMLESS.get(cases[code].op, 0.5)
                operands = [guard(cast(Term, terms[a]), conditions[f:], harmless) for a, f in zip(args, free, strict=True)]
                terms[first : first + len(cases[code].results)] = recording.append(codes[code], operands)
    require("nodes", len(recording.nodes), "the module, with selects around branches that are not taken")
    return recording.graph(graph.name, graph.inputs, [(o.key, cast(Term, terms[cast(int, o.value)])) for o in graph.outputs])
