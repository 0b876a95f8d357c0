"""Derivatives of compiled graphs, compared with extrapolated difference quotients, and with one another.

Maps are compiled graphs as functions of arrays. Of some, quotients are taken of a twin instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidu_cli.checking.kinks import around, of_node
from tidu_cli.checking.numeric.trials import Arrays, Leaf, apart, leaf_types, together
from tidu_cli.checking.numeric.twins import FloatTwin, float_twin, holds, unrolled
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Document, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.types import DATETIMES, DURATIONS, INEXACT, INTEGERS, TensorType
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.plans.groups import GroupedProgram
from tidu_cli.runtime.plans.interpreter import Program
from tidu_cli.runtime.plans.program import compile_graph
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.rename import inline
from tidu_cli.transforms.materialize import materialize

TOLERANCE = {"f64": 1e-8, "f32": 2e-2}
"""By the real dtype of the least precise value: what a difference quotient can resolve, relative to the result."""

NAN_VJP = (
    "the VJP is NaN where the value and the JVP are finite, as by a branch not taken whose slope is infinite: "
    "transpose, grad and vjp take --strong-zeros"
)
"""Why the adjoint law fails there."""

_CONVERGED = 1e-4
"""Of the tolerance, how well estimates of a derivative must agree for no more of them to be made."""

_SEQUENCES = 3
"""By so many sequences of steps a derivative must be wrong, and by each as much, to be called so."""

_AGREEMENT = 1e-2
"""How much less or more wrong it may be by another, of what it is."""

_ROUNDINGS = 16
"""Errors up to so many roundings of the values that are subtracted say nothing."""


def cast(x: NDArray[Any], like: NDArray[Any]) -> NDArray[Any]:
    """An array in the dtype of another."""
    return np.asarray(x, like.dtype)


def difference(f: Callable[[Arrays], Arrays], x: Arrays, v: Arrays, derivative: Arrays, images: Container[Leaf]) -> float | None:
    """The relative error of the derivative along v; None if the difference quotients do not converge, as near a kink."""
    due = [p for p in derivative if p in images]
    greatest = 0.0

    def quotient(h: float) -> NDArray[Any]:
        nonlocal greatest
        ahead = f(x | {k: cast(x[k] + h * t, x[k]) for k, t in v.items()})
        behind = f(x | {k: cast(x[k] - h * t, x[k]) for k, t in v.items()})
        greatest = max([greatest, *(float(np.abs(ahead[p]).max(initial=0)) for p in due)])
        return _flat([(ahead[p].astype(_wide(ahead[p])) - behind[p]) / (2 * h) for p in due])

    exact = _flat([derivative[p] for p in due])
    if not exact.size:
        return 0.0
    single = any(a.dtype.itemsize < (16 if a.dtype.kind == "c" else 8) for a in (*(derivative[p] for p in due), *v.values()))
    step, tolerance = (0.25, TOLERANCE["f32"]) if single else (0.05, TOLERANCE["f64"])
    if _lost(x, v, step) > tolerance / 4:
        return None
    errors = []
    for number in range(_SEQUENCES):
        # What is wrong is so by other steps, too, and by more than rounding explains; which may show in no estimate of the error.
        best, uncertainty, h = _extrapolated(quotient, step / (1 + 0.3 * number), tolerance)
        if best is None or not np.isfinite(best).all():
            return None
        scale = max(float(np.abs(exact).max()), float(np.abs(best).max()))
        if scale == 0:
            return 0.0
        if not single and uncertainty > TOLERANCE["f64"] / 4 * scale:
            return None
        errors.append(float(np.abs(exact - best).max() / scale))
        if errors[-1] <= tolerance:
            return errors[-1] if number == 0 else None
        if errors[-1] * scale <= _ROUNDINGS * np.finfo(np.float32 if single else float).eps * greatest / h:
            return None
    return errors[-1] if max(errors) - min(errors) <= max(tolerance, _AGREEMENT * errors[-1]) else None


def _extrapolated(quotient: Any, step: float, tolerance: float) -> tuple[NDArray[Any] | None, float, float]:
    """The best estimate of a derivative by steps from this one on, how uncertain it is, and its smallest step."""
    best, uncertainty, smallest = None, np.inf, step
    for estimate, error, h in _ridders(quotient, step):
        if error < uncertainty:
            best, uncertainty, smallest = estimate, error, h
            if error <= _CONVERGED * tolerance * float(np.abs(estimate).max()):
                break
    return best, uncertainty, smallest


def _lost(x: Arrays, v: Arrays, step: float) -> float:
    """The greatest part of a step along v that is lost in rounding, as where datetimes are far from 1970."""
    lost = 0.0
    for place, t in v.items():
        greatest = float(np.abs(t).max(initial=0))
        if greatest:
            lost = max(lost, float(np.spacing(np.abs(x[place]).max().astype(t.real.dtype))) / (step * greatest))
    return lost


def _ridders(quotient: Any, h: float) -> Iterator[tuple[NDArray[Any], float, float]]:
    """Estimates of a derivative from ever smaller steps, extrapolated to step 0, each with its estimated error and last step.

    Source: C. J. F. Ridders, "Accurate computation of F'(x) and F'(x)F''(x)", Advances in Engineering Software 4 (1982) 75-76.
    """
    shrink, row = 1.6, [quotient(h)]
    moves = row[0].any()
    for _ in range(14):
        h /= shrink
        new = [quotient(h)]
        if moves and not new[0].any():
            return  # such steps are lost in rounding
        factor = shrink**2
        for previous in row:
            new.append((new[-1] * factor - previous) / (factor - 1))
            factor *= shrink**2
            error = max(float(np.abs(new[-1] - new[-2]).max()), float(np.abs(new[-1] - previous).max()))
            yield new[-1], error, h
        row = new


def adjoint_error(u: Arrays, jv: Arrays, pulled: Arrays, v: Arrays) -> float | None:
    """How far <u, J v> is from <J* u, v>, relative to the sum of their parts; None where something is not finite.

    Infinitely far where the VJP is NaN and the JVP finite, as where 0 times the slope of a branch not taken is NaN.
    """

    def inner(a: NDArray[Any], b: NDArray[Any]) -> float:
        return float(np.vdot(a.astype(_wide(a)), b.astype(_wide(b))).real)

    forward = [inner(c, jv[p]) for p, c in u.items()]
    backward = [inner(pulled[p], t) for p, t in v.items()]
    if np.isfinite(forward).all() and np.isnan(backward).any():
        return math.inf
    if not np.isfinite([*forward, *backward]).all():
        return None
    scale = sum(inner(np.abs(c), np.abs(jv[p])) for p, c in u.items())
    return abs(sum(forward) - sum(backward)) / scale if scale else abs(sum(backward))


def relative(one: Arrays, other: Arrays) -> float | None:
    """The greatest difference, relative to the greatest part; None where something is not finite."""
    left, right = _flat(list(one.values())), _flat([other[p] for p in one])
    if not left.size:
        return 0.0
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return None
    scale = max(float(np.abs(left).max()), float(np.abs(right).max()))
    return float(np.abs(left - right).max() / scale) if scale else 0.0


def _flat(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate([np.asarray(a, _wide(a)).ravel() for a in arrays]) if arrays else np.zeros(0)


def _wide(a: NDArray[Any]) -> Any:
    return complex if a.dtype.kind == "c" else float


# Why a derivative does not exist at a point: what primitives say of the values that they take and give there.


def reasons(whole: Document, primitives: PrimitiveSet, x: Arrays, rule_name: str = "singular") -> list[str]:
    """What nodes of a document of one graph say of its values at x by that rule: each with the node, as messages name it."""
    graph = inline(whole, primitives=primitives).head
    asked = [node for node, (case, _) in enumerate(graph.nodes()) if getattr(primitives[case.op].rules, rule_name)]
    if not asked:
        return []
    values = around(graph, asked)
    program = compile_graph(replace(graph, outputs=tuple(values.values())), primitives)
    arrays = map(np.asarray, program.run({i.key: together(x, i.key, i.type) for i in program.inputs}))
    given = dict(zip(values, arrays, strict=True))
    lines = []
    for node in asked:
        case = graph.case(node)
        rule = getattr(primitives[case.op].rules, rule_name)
        with np.errstate(all="ignore"):
            text = rule(np, case.attrs, *of_node(graph, node, given))
        if text:
            lines.append(f"{graph.describe(node)}: {text}")
    return lines


CONTINUOUS = INEXACT | DURATIONS | DATETIMES
"""Dtypes of arrays that are moved for difference quotients: datetimes as durations, by their twins."""


@dataclass
class Map:
    """A compiled graph as a function of arrays. Outputs are called by their keys less the last `drop` passes: y of y@1."""

    program: Program | GroupedProgram
    drop: int = 0

    def __call__(self, arrays: Arrays) -> Arrays:
        """The outputs' arrays; inputs that `arrays` lacks are zeros."""
        values = self.program.run({i.key: together(arrays, i.key, i.type) for i in self.program.inputs})
        return apart(self.outputs, values)

    @cached_property
    def outputs(self) -> list[Output]:
        """The outputs, as they are called."""
        return [replace(o, key=Key(o.key.name, o.key.path[: len(o.key.path) - self.drop])) for o in self.program.outputs]


class Twin(Frozen, slots=False):
    """What difference quotients are taken of, and its derivative; by the keys of inputs, those that move in their place.

    `types` are those of its inputs, and `live` the outputs that it computes. A graph may be its own twin, with neither.
    `stopped` gives what more inputs have: the values that `stop_gradient` passes on, which stay as they are at a point.
    """

    f: Map
    jvp: Map
    twin_of: Mapping[Key, Key]
    types: Mapping[Leaf, TensorType]
    live: frozenset[Key] = frozenset()
    stopped: Map | None = None

    def at(self, x: Arrays) -> Arrays:
        """The point x, with the twins where their inputs are."""
        if self.stopped is not None:
            return x | self.stopped(x)
        if not self.twin_of:
            return x
        return x | {p: a.astype(numpy_dtype(np, self.types[p].dtype)) for p, a in self.of(x).items() if p in self.types}

    def of(self, arrays: Arrays) -> Arrays:
        """Arrays of inputs, or of directions, as those of their twins."""
        return {Leaf(self.twin_of.get(p.key, p.key), p.path): a for p, a in arrays.items()}

    def agrees(self, y: Arrays, x: Arrays, bound: float) -> bool:
        """Whether the twin has the same values at x: integers may wrap, as floats do not."""
        of_twin = self.f(self.at(x))
        both = [p for p in of_twin if p.key in self.live]
        wraps = relative({p: y[p] for p in both}, {p: of_twin[p] for p in both})
        return wraps is not None and wraps <= bound


def compiled_twin(twin: FloatTwin, wrt: Iterable[Key], outputs: Sequence[Output], first: int, primitives: PrimitiveSet) -> Twin:
    """These outputs of a twin, and their derivative, of pass `first`, by the twins of these inputs."""
    document, twin_of = twin
    keys = [o.key for o in outputs]
    derived = linearize(document, [twin_of[key] for key in wrt], outputs=keys, pass_number=first, primitives=primitives)
    chosen = [k for k, o in enumerate(document.head.outputs) if o.key in keys]
    f = Map(compile_graph(document.head, primitives, chosen))
    types = {p: t for i in document.head.inputs for p, t in leaf_types(i.key, i.type).items()}
    live = frozenset(o.key for o in document.head.outputs if o.value is not None)
    return Twin(f, compiled(derived, primitives, drop=1), twin_of, types, live)


def held_twin(
    whole: Document, wrt: Sequence[Key], outputs: Sequence[Output], primitives: PrimitiveSet
) -> tuple[Twin, Graph] | None:
    """These outputs of a document of one graph where what its `stop_gradient` nodes pass on is held, by inputs; and that graph.

    Loops that hold such nodes are written out before.

    By its definition the derivative of a function with `stop_gradient` is that of this one. None without such nodes.
    """
    whole = unrolled(whole, primitives)
    (graph,) = whole.graphs
    stops = [first for code, _, first, _ in forwards(graph, graph.args) if graph.cases[code].op == "stop_gradient"]
    if not stops:
        return None
    held = [Output(Key(f"\0{k}"), value, graph.type_of(value)) for k, value in enumerate(stops)]
    builder = GraphBuilder(graph.cases, [*graph.inputs, *(Input(o.key, o.type) for o in held)])
    new, number = [*range(len(graph.inputs))], {value: k for k, value in enumerate(stops, len(graph.inputs))}
    for code, args, first, after in forwards(graph, graph.args):
        if graph.cases[code].op == "stop_gradient":
            new.append(number[first])
        else:
            made = builder.append(code, [new[a] for a in args])
            new += range(made, made + after - first)
    ends = [replace(o, value=None if o.value is None else new[o.value]) for o in graph.outputs]
    document = replace(whole, graphs=(builder.build(graph.name, ends),))
    keys = [o.key for o in outputs]
    derived = linearize(document, wrt, outputs=keys, pass_number=whole.next_pass(), primitives=primitives)
    f = Map(compile_graph(document.head, primitives, [k for k, o in enumerate(ends) if o.key in keys]))
    values = Map(compile_graph(replace(graph, outputs=tuple(held)), primitives))
    return Twin(f, compiled(derived, primitives, drop=1), {}, {}, stopped=values), document.head


def moved_twin(whole: Document, primitives: PrimitiveSet, moving: Sequence[Input]) -> FloatTwin | None:
    """The twin in which datetimes, and integers that floats move, are moved as real numbers; all inputs that move are doubled.

    None where difference quotients can be taken of the graph itself.
    """
    inlined = inline(whole, primitives=primitives)
    graph = inlined.head
    cases = [graph.cases[code] for code in set(graph.code)]
    if not any(holds(i.type, DATETIMES) for i in moving) and not any(
        primitives[c.op].rules.integers == "moved" and any(holds(t, DATETIMES | INTEGERS) for t in c.results) for c in cases
    ):
        return None
    return float_twin(inlined, primitives, CONTINUOUS)


def compiled(document: Document, primitives: PrimitiveSet, drop: int = 0) -> Map:
    """The head of a document, materialized, as a function of arrays."""
    return Map(compile_graph(materialize(document).head, primitives), drop)
