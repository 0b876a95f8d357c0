"""numeric: derivatives against difference quotients, and the laws that tie them together, at random inputs.

For a graph f at a point x, with tangents v, w and a cotangent u (<a, b> = Re(conj(a) b)):

- *jvp*: J v against Ridders' extrapolated difference quotient of f along v;
- *adjoint*: <u, J v> = <Jᵀ u, v>;
- *linear*: J (a v + b w) = a J v + b J w;
- *second*: the derivative of J v along w against the difference quotient of J v;
- *symmetry*: D²f(v, w) = D²f(w, v).
- *integers*: by integers that are computed with as numbers, J v is that of the same graph of floats, and J* its adjoint; likewise
  by datetimes, which are such, where difference quotients fail.

Records are moved and compared array by array; inner products are sums over them. Where a graph computes with datetimes, or moves
integers, difference quotients are taken of its twin (`twins.float_twin`), which moves them as real numbers from the same point.

What `stop_gradient` passes on is held still in difference quotients, as the derivative has it, for which scans are written
out. In half precision, where another primitive has by intention not the derivative of its values, and where stop_gradient stands
within a while, a branch or a custom operation, difference quotients say nothing, and the laws that need them get no verdict.

A VJP that is NaN where f and J v are finite breaks the adjoint law: a branch not taken has let NaN through.

Each gives the error relative to the greatest part of what it compares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidu_cli.checking.numeric import quotients, trials
from tidu_cli.checking.numeric.twins import float_twin, holds, not_held
from tidu_cli.errors import StepsError
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.graph import Document, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import (
    DATETIMES,
    INTEGERS,
    TensorType,
    leaves,
    moves,
    real_dtype,
    storage_dtype,
    tangent_type,
    tensor_tangent_type,
)
from tidu_cli.limits import limited_steps, require
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.memory import estimate_memory
from tidu_cli.runtime.plans.groups import GroupedProgram
from tidu_cli.runtime.plans.program import compile_graph
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.rename import inline
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

EXACT = {"f64": 1e-11, "f32": 1e-4, "f16": 5e-2, "bf16": 0.3}
"""Likewise for the laws that compare derivatives with one another: rounding alone."""

LAWS = ("jvp", "adjoint", "linear", "second", "symmetry")
"""The laws of a graph's derivatives, in the order of reports."""

_BY_QUOTIENTS = ("jvp", "second")
"""The laws that need difference quotients."""

_POINTS_HELD, _IMAGES_HELD = 6, 12
"""How many points and directions are held at once, and how many images of them, difference quotients included."""

_POINTS = 6
"""How many points are tried before a difference quotient that does not converge, as near a kink, is given up on."""


class Verdict(Frozen, slots=False):
    """What a check reached: the relative error, or None where no point allowed a verdict; and what it must stay below.

    Where it does not, `at` are the arrays at which the law fails, and `by` those whose tangents show it, if one by one they do.
    There, and where there is no verdict, `why` is what nodes say of their values, if they know why there is no derivative.
    """

    law: str
    error: float | None
    tolerance: float
    at: Mapping[trials.Leaf, NDArray[Any]] | None = None
    by: tuple[trials.Leaf, ...] = ()
    why: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the law holds, as far as could be seen."""
        return self.error is None or self.error <= self.tolerance

    @property
    def strain(self) -> float:
        """The error as a part of the tolerance, infinite where nothing is tolerated; -1 without a verdict."""
        if self.error is None:
            return -1.0
        return self.error / self.tolerance if self.tolerance else math.inf if self.error else 0.0


def _in_pass(arrays: trials.Arrays, step: int) -> trials.Arrays:
    """Tangents of a pass, or for its negative cotangents, by the places of what they belong to, by their own."""
    return {trials.Leaf(Key(p.key.name, (*p.key.path, step)), p.path): a for p, a in arrays.items()}


def _tangents(port: Input | Output, dtypes: Container[str] | None) -> dict[trials.Leaf, TensorType]:
    """The arrays of a tangent, of its natural type; those of arrays of these dtypes."""
    primal = trials.leaf_types(port.key, port.type)
    return {
        p: t for p, t in trials.leaf_types(port.key, tangent_type(port.type)).items() if dtypes is None or primal[p].dtype in dtypes
    }


def least_precision(types: Iterable[TensorType]) -> str:
    """The least precise real dtype of some arrays."""
    dtypes = {real_dtype(storage_dtype(t.dtype)) for t in types}
    return next(dtype for dtype in ("bf16", "f16", "f32", "f64") if dtype in dtypes)


@limited_steps(None, drawn=True)
def check_numerically(
    document: Document,
    primitives: PrimitiveSet,
    *,
    given: Mapping[Key, Any] | None = None,
    intervals: trials.Intervals | None = None,
    diagonals: Mapping[Key, float] | None = None,
    fixed: Container[Key] = (),
    seed: int = 0,
) -> list[Verdict]:
    """The verdicts on the head of a document; none if nothing in it can be differentiated.

    Inputs are as `given` (records as tuples), or drawn from `intervals`, or from one in which the outputs are finite; to the
    diagonals of matrices `diagonals` are added. No tangent goes to those `fixed`.
    Laws for which loops run more steps in one evaluation than `limits` allow, by default `DRAWN_STEPS`, get no verdict, and say so.
    Raises what the transforms raise.
    """
    graph = materialize(document).head
    whole = Document((graph,), document.cases)
    drawing = trials.Drawing(graph.inputs, given or {}, intervals or {}, diagonals or {}, seed)
    laws = _laws(whole, primitives, fixed)
    if laws is None:
        return _integers_verdict(whole, primitives, drawing, fixed)
    errors: dict[str, float] = {}
    points: dict[str, tuple[trials.Arrays, trials.Arrays]] = {}
    ran_on: dict[str, str] = {}
    x: trials.Arrays | None = None
    try:
        for x, rng in _points(drawing, laws.f, laws.smooth, EXACT[laws.precision]):
            v, w, v2 = (trials.draw_all(rng, laws.directions) for _ in range(3))
            for law, error in laws.errors(x, v, w, v2, trials.draw_all(rng, laws.images)).items():
                if isinstance(error, StepsError):
                    ran_on.setdefault(law, str(error))
                elif error is not None and law not in errors:
                    errors[law], points[law] = error, (x, v)
            if errors.keys() >= {
                law for law in LAWS if (laws.resolved or law not in _BY_QUOTIENTS) and (laws.vjp or law != "adjoint")
            }:
                break
    except StepsError as error:  # at a point: no law can be tried there
        ran_on = dict.fromkeys(LAWS, str(error)) | ran_on
    bounds = {law: (quotients.TOLERANCE if law in _BY_QUOTIENTS else EXACT).get(laws.precision, 0.0) for law in LAWS}
    verdicts = [Verdict(law, errors.get(law), bounds[law]) for law in LAWS if law != "adjoint" or laws.vjp]
    judged = [v if v.ok else laws.blamed(v, *points[v.law], graph.inputs) for v in verdicts]
    if not all(v.ok and v.error is not None for v in verdicts):
        why = (*not_held(whole, primitives), *(() if x is None else quotients.reasons(whole, primitives, x)))
        known = {law: (text,) for law, text in ran_on.items() if law not in errors}
        if errors.get("adjoint") == math.inf:
            known["adjoint"] = (quotients.NAN_VJP,)
        judged = [v if v.ok and v.error is not None else replace(v, why=(*known.get(v.law, ()), *why)) for v in judged]
    if x is not None and (unsolved := tuple(quotients.reasons(whole, primitives, x, "unsolved"))):
        judged = [replace(v, why=(*v.why, *unsolved)) if k == 0 else v for k, v in enumerate(judged)]
    # Datetimes far from 1970 have too many digits for difference quotients.
    if "jvp" not in errors or any(holds(i.type, INTEGERS) for i in graph.inputs):
        judged += _integers_verdict(whole, primitives, drawing, fixed)
    return judged


class _Laws(Frozen, slots=False):
    """A graph f and its derivatives, compiled, of which the laws are tried.

    `smooth` is what difference quotients are taken of, where they say something (`resolved`). There is no `vjp` where mathematics
    has none. Derivatives are of pass `first`; `directions` and `images` are the arrays of tangents of inputs and outputs,
    `precision` the least of theirs.
    """

    f: quotients.Map
    jvp: quotients.Map
    vjp: quotients.Map | None
    second: quotients.Map
    smooth: quotients.Twin
    first: int
    directions: Mapping[trials.Leaf, TensorType]
    images: Mapping[trials.Leaf, TensorType]
    precision: str
    resolved: bool

    def errors(
        self, x: trials.Arrays, v: trials.Arrays, w: trials.Arrays, v2: trials.Arrays, u: trials.Arrays
    ) -> dict[str, float | StepsError | None]:
        """The error of each law at a point, for these tangents and this cotangent; or how its loops ran on."""

        def along(*passes: trials.Arrays) -> trials.Arrays:
            return x | {p: t for k, direction in enumerate(passes) for p, t in _in_pass(direction, self.first + k).items()}

        pushed, smooth, at = cache(lambda: self.jvp(along(v))), self.smooth, self.smooth.at(x)
        curved = cache(lambda: self.second(along(v, v2)))

        def linear() -> float | None:
            jv, jw = pushed(), self.jvp(along(w))
            mixed = self.jvp(along({k: quotients.cast(2 * v[k] - 3 * w[k], v[k]) for k in v}))
            return quotients.relative(mixed, {p: 2 * jv[p] - 3 * jw[p] for p in jv})

        def second() -> float | None:
            moved = at | _in_pass(smooth.of(v), self.first)
            return quotients.difference(smooth.jvp, moved, smooth.of(v2), curved(), self.images)

        laws: dict[str, Callable[[], float | None]] = {
            "linear": linear,
            "symmetry": lambda: quotients.relative(curved(), self.second(along(v2, v))),
        }
        if (vjp := self.vjp) is not None:
            laws["adjoint"] = lambda: quotients.adjoint_error(u, pushed(), vjp(x | _in_pass(u, -self.first)), v)
        if self.resolved:
            laws["jvp"] = lambda: quotients.difference(smooth.f, at, smooth.of(v), pushed(), self.images)
            laws["second"] = second
        errors: dict[str, float | StepsError | None] = {}
        for law, error in laws.items():
            try:
                with np.errstate(invalid="ignore"):  # of derivatives that are infinite
                    errors[law] = error()
            except StepsError as ran_on:
                errors[law] = ran_on
        return errors

    def blamed(self, verdict: Verdict, x: trials.Arrays, v: trials.Arrays, inputs: Sequence[Input]) -> Verdict:
        """The verdict with the point where it was reached, and of the derivative the arrays by which it is wrong."""
        by = []
        for leaf in v if verdict.law == "jvp" else ():
            alone = {p: t if p == leaf else np.zeros_like(t) for p, t in v.items()}
            try:
                image = self.jvp(x | _in_pass(alone, self.first))
                error = quotients.difference(self.smooth.f, self.smooth.at(x), self.smooth.of(alone), image, self.images)
            except StepsError:
                continue
            if error is not None and error > verdict.tolerance:
                by.append(leaf)
        return replace(verdict, at=trials.shown(x, inputs), by=tuple(by))


def _laws(whole: Document, primitives: PrimitiveSet, fixed: Container[Key]) -> _Laws | None:
    """What the laws are tried of; None if nothing can be moved, or nothing moves."""
    graph = whole.head
    moving = [i for i in graph.inputs if i.key not in fixed and holds(i.type, quotients.CONTINUOUS)]
    twin = quotients.moved_twin(whole, primitives, moving)
    kept = [
        k
        for k, o in enumerate(graph.outputs)
        if holds(o.type, quotients.CONTINUOUS) or (twin and twin[0].head.outputs[k].value is not None)
    ]
    if not moving or not kept:
        return None
    outputs, wrt = [graph.outputs[k] for k in kept], [i.key for i in moving]
    f = quotients.Map(compile_graph(graph, primitives, kept))
    tangents = linearize(whole, wrt, outputs=[o.key for o in outputs], primitives=primitives)
    first = whole.next_pass()
    jvp = quotients.compiled(tangents, primitives, drop=1)
    vjp = _vjp(tangents, primitives)
    second = quotients.compiled(linearize(tangents, wrt, primitives=primitives), primitives, drop=2)
    smooth = quotients.Twin(f, jvp, {}, {}) if twin is None else quotients.compiled_twin(twin, wrt, outputs, first, primitives)
    differenced = graph
    if twin is None and (held := quotients.held_twin(whole, wrt, outputs, primitives)):
        smooth, differenced = held
    # By integers there are no difference quotients, and so no tangents here but where they are moved.
    dtypes = quotients.CONTINUOUS if twin is None else quotients.CONTINUOUS | INTEGERS
    directions = {p: t for i in moving for p, t in _tangents(i, quotients.CONTINUOUS).items()}
    images = {p: t for o in outputs for p, t in _tangents(o, dtypes).items()}
    _require_memory((f, jvp, vjp or jvp, second, smooth.stopped or f), directions, images)
    precision = least_precision([*directions.values(), *images.values()])
    resolved = precision in quotients.TOLERANCE and _faithful(differenced, primitives)
    return _Laws(f, jvp, vjp, second, smooth, first, directions, images, precision, resolved)


def _vjp(tangents: Document, primitives: PrimitiveSet) -> quotients.Map | None:
    head = tangents.head
    if primitives.is_irreversible(map(head.cases.__getitem__, set(head.code))):
        return None
    return quotients.compiled(transpose(tangents, primitives=primitives), primitives, drop=1)


def _integers_verdict(whole: Document, primitives: PrimitiveSet, drawing: trials.Drawing, fixed: Container[Key]) -> list[Verdict]:
    """The verdict on derivatives by integers and datetimes, if outputs depend on some as numbers: that they are those by floats."""
    twin = float_twin(inline(whole, primitives=primitives), primitives)
    if twin is None:
        return []
    graph, wrt = whole.head, [key for key in twin[1] if key not in fixed]
    if not wrt:
        return []
    first = whole.next_pass()
    chosen = [k for k, o in enumerate(graph.outputs) if moves(o.type)]
    outputs = [graph.outputs[k] for k in chosen]
    f = quotients.Map(compile_graph(graph, primitives, chosen))
    linear = linearize(whole, wrt, outputs=[o.key for o in outputs], primitives=primitives)
    jvp = quotients.compiled(linear, primitives, drop=1)
    vjp = _vjp(linear, primitives)
    of_twin = quotients.compiled_twin(twin, wrt, outputs, first, primitives)
    directions = {p: t for i in graph.inputs if i.key in wrt for p, t in _tangents(i, None).items()}
    images = {p: t for o in outputs for p, t in _tangents(o, None).items()}
    _require_memory((f, jvp, vjp or jvp, of_twin.jvp), directions, images)
    bound = EXACT[least_precision([*directions.values(), *images.values()])]
    try:
        for x, rng in _points(drawing, f, of_twin, bound):
            v, u = trials.draw_all(rng, directions), trials.draw_all(rng, images)
            jv = jvp(x | _in_pass(v, first))
            expected = of_twin.jvp(of_twin.at(x) | _in_pass(of_twin.of(v), first))
            errors = [
                quotients.relative(jv, expected),
                None if vjp is None else quotients.adjoint_error(u, jv, vjp(x | _in_pass(u, -first)), v),
            ]
            worst = max((e for e in errors if e is not None), default=None)
            if worst is not None:
                return [Verdict("integers", worst, bound, at=None if worst <= bound else trials.shown(x, graph.inputs))]
    except StepsError as error:
        return [Verdict("integers", None, bound, why=(str(error),))]
    return [Verdict("integers", None, bound)]


def _points(drawing: trials.Drawing, f: quotients.Map, twin: quotients.Twin, bound: float) -> Iterator[tuple[trials.Arrays, Any]]:
    """Points at which f is finite and its twin has the same values, each with a source of random directions."""
    for point in range(_POINTS):
        rng = np.random.default_rng([drawing.seed, point])
        x = drawing.finite_point(f, rng)
        if x is not None and (not twin.twin_of or twin.agrees(f(x), x, bound)):
            yield x, rng


def _require_memory(
    maps: Iterable[quotients.Map], directions: Mapping[trials.Leaf, TensorType], images: Mapping[trials.Leaf, TensorType]
) -> None:
    """Raises LimitError if comparing these maps would take more memory than there is: a run, and what is compared."""
    run = max(m.program.nbytes() if isinstance(m.program, GroupedProgram) else estimate_memory(m.program).peak for m in maps)
    held = _POINTS_HELD * sum(t.nbytes for t in directions.values()) + _IMAGES_HELD * sum(t.nbytes for t in images.values())
    require("memory", run + held, "trying derivatives at random inputs")


def _faithful(graph: Graph, primitives: PrimitiveSet) -> bool:
    """Whether the derivatives of all primitives in a graph, and in those that custom ones stand for, are those of their values."""
    ops = {case.op for case in cases_within(map(graph.cases.__getitem__, set(graph.code)))}
    ops.update(node.op for d in primitives.reached_from(ops) for node in d.graphs["forward"].nodes)
    return all(primitives[op].rules.faithful for op in ops)


def check_primitive_numerically(primitive: Primitive, primitives: PrimitiveSet, dtypes: Container[str]) -> list[Verdict]:
    """The worst verdict on each law over a primitive's examples, in those of its dtypes. Durations count as f64, which they are."""
    worst: dict[str, Verdict] = {}
    for example, case in trials.example_cases(primitives, primitive):
        arrays = [leaf for t in (*case.operands, *case.results) if t is not None for _, leaf in leaves(t)]
        if not all(not t.inexact or storage_dtype(t.dtype) in dtypes for t in arrays):
            continue
        document = trials.one_node_document(case)
        inputs = document.head.inputs
        intervals = {i.key: trials.of_operand(example.within, k) for k, i in enumerate(inputs)}
        diagonals = {i.key: trials.of_operand(example.diagonals, k) for k, i in enumerate(inputs)}
        fixed = {Key(f"x{k}") for k in primitive.rules.inert}
        # Integers are differentiated by, and moved, in the dtypes of their tangents.
        exact = [t for t in arrays if t.dtype in INTEGERS | DATETIMES]
        if any(storage_dtype(tensor_tangent_type(t).dtype) not in dtypes for t in exact):
            if primitive.rules.integers == "moved":
                continue
            fixed |= {i.key for i in inputs if holds(i.type, INTEGERS | DATETIMES)}
        for verdict in check_numerically(document, primitives, intervals=intervals, diagonals=diagonals, fixed=fixed):
            worst[verdict.law] = max(worst.get(verdict.law, verdict), verdict, key=lambda v: v.strain)
    return sorted(worst.values(), key=lambda verdict: verdict.law == "integers")
