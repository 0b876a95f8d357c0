"""Selects before operations whose slopes may be infinite, so that reverse mode is right where their branch is not taken.

A module computes both branches of a select. Reverse mode gives the one that is not taken a cotangent of 0, and an infinite slope
makes NaN of it: where(x > 0, log(x), 0) at 0. JAX's own functions are full of such branches, and a module has lost their rules. So
where its branch is not taken, such an operation gets a harmless operand, log(where(x > 0, x, 0.5)): its slope is finite there, and
the select lets no cotangent through. Elements that are taken keep their bits, and nobody reads the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.closed import ClosedGraph, cases_within, closed_graphs, forwards
from tidu_cli.graph.graph import Case, Graph
from tidu_cli.graph.types import COMPLEXES, INEXACT, TensorType, Type
from tidu_cli.lax.arrays.structural import literal_array
from tidu_cli.lax.index import FAMILIES
from tidu_cli.limits import require
from tidu_cli.rules.recording.known import Recording
from tidu_cli.rules.terms import Term
from tidu_cli.rules.vocabulary import PrimitiveSet

MOST_NESTED = 32
"""How deep in selects operations are guarded, so that work stays linear in nodes."""

HARMLESS = {"acosh": 2.0, "polygamma": 2.0, "zeta": 2.0}
"""Operands for which an operation and its slopes are finite: for all others 0.5."""


def _ops(*families: str) -> frozenset[str]:
    return frozenset(op for family, ops in FAMILIES.items() if family.startswith(families) for op in ops.split())


_ELEMENTWISE = _ops("elementwise.") - {"bitcast_convert_type"} | {"convert_element_type"}
_COPIES = _ops("arrays.structural") - {"constant"}
_FLAT = _ops("elementwise.rounding", "elementwise.precision", "elementwise.complex_numbers") - {"rem"} | {"convert_element_type"}
_FLAT |= {"add", "sub", "mul", "neg", "square", "integer_pow", "max", "min", "clamp", "select_n"}
_FLAT_IF_REAL = {"abs", "sign", "sin", "cos", "tanh", "logistic", "atan", "asinh", "erf", "erfc", "bessel_i0e", "bessel_i1e"}
"""Operations whose slopes are finite wherever operands are, but for powers below 0."""


class Condition(Frozen, eq=False):
    """That a selector selects case `number` of `n_cases`, within the condition `around`; `depth` counts the conditions."""

    selector: int
    number: int
    n_cases: int
    around: Condition | None
    depth: int


Node = tuple[int, tuple[int, ...], int]
"""The number of a node's case, the values that it reads, and its first result."""

Guards = Mapping[int, tuple[Sequence[Condition], Sequence[bool]]]
"""By nodes: the conditions that a node stands under, the outmost first; and which operands it reads by way of selects."""


def guarded(graph: Graph, primitives: PrimitiveSet) -> Graph:
    """The same values with such selects, in graphs within nodes, too; the graph itself where it needs none. Raises LimitError.

    A branch is what is elementwise and read by nothing but that branch. Inputs count as finite.
    """
    cases = {code: graph.cases[code] for code in set(graph.code)}
    if all(case.op != "select_n" for case in cases_within(cases.values())):
        return graph
    nodes = [(code, args, first) for code, args, first, _ in forwards(graph, graph.args)]
    guards = _guards(nodes, cases, _conditions(graph, nodes))
    inner = {code: _guarded_within(case, primitives) for code, case in cases.items()}
    return _rebuilt(graph, nodes, inner, guards, primitives) if guards or inner != cases else graph


def _guarded_within(case: Case, primitives: PrimitiveSet) -> Case:
    """A case whose graphs are guarded."""
    if not closed_graphs(case.attrs):
        return case
    attrs = cast(Any, case.attrs).with_graphs(lambda inner: ClosedGraph.of(guarded(inner.graph, primitives)))
    return replace(case, attrs=attrs)


def _conditions(graph: Graph, nodes: Sequence[Node]) -> list[Condition | None]:
    """The condition that each node stands under: the inmost one around all that reads it."""
    elementwise = {code: is_elementwise(graph.cases[code]) for code in set(graph.code)}
    under: dict[int, Condition | None] = {cast(int, output.value): None for output in graph.outputs}
    conditions: dict[tuple[Condition | None, int, int], Condition] = {}
    inmost: list[Condition | None] = []
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
        inmost.append(here)
    return inmost[::-1]


def is_elementwise(case: Case) -> bool:
    """Whether each element of the result is one of the operands' elements in the same place."""
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
    path = []
    while condition:
        path.append(condition)
        condition = condition.around
    return path[::-1]


def _guards(nodes: Sequence[Node], cases: Mapping[int, Case], places: Sequence[Condition | None]) -> Guards:
    arrays = {code: literal_array(np, cast(Any, case.attrs).value) for code, case in cases.items() if case.op == "constant"}
    finite = {code for code, array in arrays.items() if np.isfinite(array).all()}
    nonzero = {code for code in finite if arrays[code].all()}
    copies = {code for code, case in cases.items() if case.op in _COPIES}
    steep = {code for code, case in cases.items() if is_steep(case)}
    safe, infinite, guards = set[int](), set[int](), {}
    """Values that are constants: without zeros, by which anything may be divided; and those by which nothing may be multiplied."""
    for n, ((code, args, first), here) in enumerate(zip(nodes, places, strict=True)):
        op = cases[code].op
        if code in nonzero or (code in copies and safe.issuperset(args)):
            safe.add(first)
        elif (code in arrays and code not in finite) or (code in copies and infinite.issuperset(args)):
            infinite.add(first)
        elif here and (not infinite.isdisjoint(args) if op == "mul" else code in steep and (op != "div" or args[1] not in safe)):
            guards[n] = _path(here), [a not in safe and _is_inexact(t) for a, t in zip(args, cases[code].operands, strict=True)]
    return guards


def is_steep(case: Case) -> bool:
    """Whether slopes of an elementwise operation may be infinite or NaN for finite operands."""
    if not any(map(_is_inexact, case.results)) or (case.op in _FLAT and getattr(case.attrs, "y", 0) >= 0):
        return False
    return case.op not in _FLAT_IF_REAL or any(t.dtype in COMPLEXES for t in case.operands if isinstance(t, TensorType))


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
            conditions, selected = guards.get(n, ((), (False,) * len(args)))
            missing = [producers[a] for a in (*args, *(c.selector for c in conditions)) if terms[a] is None]
            pending += missing
            if missing:
                continue
            pending.pop()
            if terms[first] is None:
                harmless = HARMLESS.get(cases[code].op, 0.5)
                read = [cast(Term, terms[a]) for a in args]
                operands = [guard(t, conditions, harmless) if g else t for t, g in zip(read, selected, strict=True)]
                terms[first : first + len(cases[code].results)] = recording.append(codes[code], operands)
    require("nodes", len(recording.nodes), "the module, with selects around branches that are not taken")
    return recording.graph(graph.name, graph.inputs, [(o.key, cast(Term, terms[cast(int, o.value)])) for o in graph.outputs])
