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
integers, difference quotients are taken of its twin (`float_twins`), which moves them as real numbers from the same point.

In half precision, and where f uses a primitive whose derivative is by intention not that of its values, such as stop_gradient,
difference quotients say nothing, and the laws that need them get no verdict.

Each gives the error relative to the greatest part of what it compares.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tidu_cli.checking.numeric.arrays import Arrays, Place, apart, places, together
from tidu_cli.checking.numeric.examples import diagonal_of, example_cases, interval_of, one_node_document
from tidu_cli.checking.numeric.float_twins import float_twin
from tidu_cli.checking.numeric.quotients import TOLERANCE, adjoint_error, cast, difference, relative
from tidu_cli.checking.numeric.sampling import Drawing, Intervals, draw_all, shown
from tidu_cli.graph.graph import Document, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import (
    DATETIMES,
    DURATIONS,
    INEXACT,
    INTEGERS,
    TensorType,
    Type,
    leaves,
    moves,
    real_dtype,
    storage_dtype,
    tangent_type,
    tensor_tangent_type,
)
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.limits import require
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.memory import estimate_memory
from tidu_cli.runtime.plans.groups import GroupedProgram
from tidu_cli.runtime.plans.program import Program, compile_graph
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.inline import inline
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXACT = {"f64": 1e-11, "f32": 1e-4, "f16": 5e-2, "bf16": 0.3}
"""Likewise for the laws that compare derivatives with one another: rounding alone."""

_CONTINUOUS = INEXACT | DURATIONS | DATETIMES
"""Dtypes of arrays that are moved for difference quotients: datetimes as durations, by their twins."""

_POINTS_HELD, _IMAGES_HELD = 6, 12
"""How many points and directions are held at once, and how many images of them, difference quotients included."""

_POINTS = 6
"""How many points are tried before a difference quotient that does not converge, as near a kink, is given up on."""


@dataclass(frozen=True)
class Verdict:
    """What a check reached: the relative error, or None where no point allowed a verdict; and what it must stay below.

    Where it does not, `at` are the arrays at which the law fails, and `by` those whose tangents show it, if one by one they do.
    """

    law: str
    error: float | None
    tolerance: float
    at: Mapping[Place, NDArray[Any]] | None = None
    by: tuple[Place, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the law holds, as far as could be seen."""
        return self.error is None or self.error <= self.tolerance

    @property
    def strain(self) -> float:
        """The error as a part of the tolerance; -1 without a verdict."""
        return -1.0 if self.error is None else self.error / self.tolerance


@dataclass
class _Map:
    """A compiled graph as a function of arrays. Outputs are called by their keys less the last `drop` passes: y of y@1."""

    program: Program | GroupedProgram
    drop: int = 0

    def __call__(self, arrays: Arrays) -> Arrays:
        found = self.program.run({i.key: together(arrays, i.key, i.type) for i in self.program.inputs})
        return apart(self.outputs, found)

    @cached_property
    def outputs(self) -> list[Output]:
        """The outputs, as they are called."""
        return [replace(o, key=Key(o.key.name, o.key.path[: len(o.key.path) - self.drop])) for o in self.program.outputs]


@dataclass(frozen=True)
class _Twin:
    """What difference quotients are taken of, and its derivative; by the keys of inputs, those that move in their place.

    `types` are those of its inputs, and `live` the outputs that it computes. A graph may be its own twin, with neither.
    """

    f: _Map
    jvp: _Map
    twin_of: Mapping[Key, Key]
    types: Mapping[Place, TensorType]
    live: frozenset[Key] = frozenset()

    def at(self, x: Arrays) -> Arrays:
        """The point x, with the twins where their inputs are."""
        return x | {p: _as_type(a, self.types[p]) for p, a in self.of(x).items() if p in self.types} if self.twin_of else x

    def of(self, arrays: Arrays) -> Arrays:
        """Arrays of inputs, or of directions, as those of their twins."""
        return {Place(self.twin_of.get(p.key, p.key), p.path): a for p, a in arrays.items()}

    def agrees(self, y: Arrays, x: Arrays, bound: float) -> bool:
        """Whether the twin has the same values at x: integers may wrap, as floats do not."""
        of_twin = self.f(self.at(x))
        both = [p for p in of_twin if p.key in self.live]
        wraps = relative({p: y[p] for p in both}, {p: of_twin[p] for p in both})
        return wraps is not None and wraps <= bound


@dataclass(frozen=True)
class _MovedTwin:
    """The twin in which datetimes, and integers that floats move, are moved as real numbers; all inputs that move are doubled."""

    document: Document
    twin_of: Mapping[Key, Key]

    def moves_output(self, k: int) -> bool:
        """Whether output number k moves."""
        return self.document.head.outputs[k].value is not None

    def compiled(self, moving: Sequence[Input], outputs: Sequence[Output], first: int, primitives: PrimitiveSet) -> _Twin:
        """These outputs of the twin, and their derivative, of pass `first`, by the twins of these inputs."""
        keys = [o.key for o in outputs]
        wrt = [self.twin_of[i.key] for i in moving]
        derived = linearize(self.document, wrt, outputs=keys, pass_number=first, primitives=primitives)
        chosen = [k for k, o in enumerate(self.document.head.outputs) if o.key in keys]
        f = _Map(compile_graph(self.document.head, primitives, chosen))
        return _twin(f, compiled(derived, primitives, drop=1), self.twin_of, self.document)


def _twin(f: _Map, jvp: _Map, twin_of: Mapping[Key, Key], document: Document) -> _Twin:
    types = {p: t for i in document.head.inputs for p, t in places(i.key, i.type).items()}
    return _Twin(f, jvp, twin_of, types, frozenset(o.key for o in document.head.outputs if o.value is not None))


def _moved_twin(whole: Document, primitives: PrimitiveSet, moving: Sequence[Input]) -> _MovedTwin | None:
    """The twin, where difference quotients cannot be taken of the graph itself: None where they can."""
    inlined = inline(whole, primitives=primitives)
    graph = inlined.head
    cases = [graph.cases[code] for code in set(graph.code)]
    if not any(_holds(i.type, DATETIMES) for i in moving) and not any(
        primitives[c.op].rules.integers == "moved" and any(_holds(t, DATETIMES | INTEGERS) for t in c.results) for c in cases
    ):
        return None
    found = float_twin(inlined, primitives, _CONTINUOUS)
    return None if found is None else _MovedTwin(*found)


def _in_pass(arrays: Arrays, step: int) -> Arrays:
    """Tangents of a pass, or for its negative cotangents, by the places of what they belong to, by their own."""
    return {Place(Key(p.key.name, (*p.key.path, step)), p.path): a for p, a in arrays.items()}


def _holds(type_: Type | None, dtypes: Container[str]) -> bool:
    return type_ is not None and any(leaf.dtype in dtypes for _, leaf in leaves(type_))


def _tangents(port: Input | Output, dtypes: Container[str] | None) -> dict[Place, TensorType]:
    """The arrays of a tangent, of its natural type; those of arrays of these dtypes."""
    primal = places(port.key, port.type)
    return {p: t for p, t in places(port.key, tangent_type(port.type)).items() if dtypes is None or primal[p].dtype in dtypes}


def least_precision(types: Iterable[TensorType]) -> str:
    """The least precise real dtype of some arrays."""
    dtypes = {real_dtype(storage_dtype(t.dtype)) for t in types}
    return next(dtype for dtype in ("bf16", "f16", "f32", "f64") if dtype in dtypes)


def check_numerically(
    document: Document,
    primitives: PrimitiveSet,
    *,
    given: Mapping[Key, Any] | None = None,
    intervals: Intervals | None = None,
    diagonals: Mapping[Key, float] | None = None,
    fixed: Container[Key] = (),
    seed: int = 0,
) -> list[Verdict]:
    """The verdicts on the head of a document; none if nothing in it can be differentiated.

    Inputs are as `given` (records as tuples), or drawn from `intervals`, or from one in which the outputs are finite; to the
    diagonals of matrices `diagonals` are added. No tangent goes to those `fixed`.
    Raises what the transforms raise.
    """
    import numpy as np

    graph = materialize(document).head
    whole = Document((graph,), document.cases)
    drawing = Drawing(graph.inputs, given or {}, intervals or {}, diagonals or {}, seed)
    moving = [i for i in graph.inputs if i.key not in fixed and _holds(i.type, _CONTINUOUS)]
    twin = _moved_twin(whole, primitives, moving)
    kept = [k for k, o in enumerate(graph.outputs) if _holds(o.type, _CONTINUOUS) or (twin and twin.moves_output(k))]
    if not moving or not kept:
        return _integers_verdict(whole, primitives, drawing, fixed)
    outputs = [graph.outputs[k] for k in kept]
    f = _Map(compile_graph(graph, primitives, kept))
    tangents = linearize(whole, [i.key for i in moving], outputs=[o.key for o in outputs], primitives=primitives)
    first = whole.next_pass()
    jvp = compiled(tangents, primitives, drop=1)
    vjp = compiled(transpose(tangents, primitives=primitives), primitives, drop=1)
    second = compiled(linearize(tangents, [i.key for i in moving], primitives=primitives), primitives, drop=2)
    smooth = _Twin(f, jvp, {}, {}) if twin is None else twin.compiled(moving, outputs, first, primitives)

    # By integers there are no difference quotients, and so no tangents here but where they are moved.
    dtypes = _CONTINUOUS if twin is None else _CONTINUOUS | INTEGERS
    directions = {p: t for i in moving for p, t in _tangents(i, _CONTINUOUS).items()}
    images = {p: t for o in outputs for p, t in _tangents(o, dtypes).items()}
    _require_memory((f, jvp, vjp, second), directions, images)
    precision = least_precision([*directions.values(), *images.values()])
    resolved = precision in TOLERANCE and _faithful(graph, primitives)
    found: dict[str, float | None] = dict.fromkeys(("jvp", "adjoint", "linear", "second", "symmetry"))
    points: dict[str, tuple[Arrays, Arrays]] = {}
    for point in range(_POINTS):
        rng = np.random.default_rng([seed, point])
        x = drawing.finite_point(f, rng)
        if x is None or (twin is not None and not smooth.agrees(f(x), x, EXACT[precision])):
            continue
        v, w, v2 = (draw_all(rng, directions) for _ in range(3))
        u = draw_all(rng, images)

        def along(*passes: Arrays, x: Arrays = x) -> Arrays:
            return x | {p: t for k, direction in enumerate(passes) for p, t in _in_pass(direction, first + k).items()}

        jv = jvp(along(v))
        _record(found, "jvp", difference(smooth.f, smooth.at(x), smooth.of(v), jv, images) if resolved else None)
        _record(found, "adjoint", adjoint_error(u, jv, vjp(x | _in_pass(u, -first)), v))
        mixed = {k: cast(2 * v[k] - 3 * w[k], v[k]) for k in v}
        jw = jvp(along(w))
        _record(found, "linear", relative(jvp(along(mixed)), {p: 2 * jv[p] - 3 * jw[p] for p in jv}))
        ddv = second(along(v, v2))
        if resolved:
            at = smooth.at(x) | _in_pass(smooth.of(v), first)
            _record(found, "second", difference(smooth.jvp, at, smooth.of(v2), ddv, images))
        _record(found, "symmetry", relative(ddv, second(along(v2, v))))
        points |= {law: (x, v) for law, error in found.items() if error is not None and law not in points}
        if all(error is not None for law, error in found.items() if resolved or law not in ("jvp", "second")):
            break
    bounds = {law: (TOLERANCE if law in ("jvp", "second") else EXACT).get(precision, 0.0) for law in found}
    verdicts = [Verdict(law, error, bounds[law]) for law, error in found.items()]

    def blamed(verdict: Verdict) -> Verdict:
        """The verdict with the point where it was reached, and of the derivative the arrays by which it is wrong."""
        x, direction = points[verdict.law]
        by = []
        for place in direction if verdict.law == "jvp" else ():
            alone = {p: t if p == place else np.zeros_like(t) for p, t in direction.items()}
            error = difference(smooth.f, smooth.at(x), smooth.of(alone), jvp(x | _in_pass(alone, first)), images)
            if error is not None and error > verdict.tolerance:
                by.append(place)
        return replace(verdict, at=shown(x, graph.inputs), by=tuple(by))

    judged = [v if v.ok else blamed(v) for v in verdicts]
    # Datetimes far from 1970 have too many digits for difference quotients.
    if found["jvp"] is None or any(_holds(i.type, INTEGERS) for i in graph.inputs):
        judged += _integers_verdict(whole, primitives, drawing, fixed)
    return judged


def _integers_verdict(whole: Document, primitives: PrimitiveSet, drawing: Drawing, fixed: Container[Key]) -> list[Verdict]:
    """The verdict on derivatives by integers and datetimes, if outputs depend on some as numbers: that they are those by floats."""
    import numpy as np

    found = float_twin(inline(whole, primitives=primitives), primitives)
    if found is None:
        return []
    twin, graph = found[0], whole.head
    twin_of = {k: t for k, t in found[1].items() if k not in fixed}
    if not twin_of:
        return []
    first = whole.next_pass()
    chosen = [k for k, o in enumerate(graph.outputs) if moves(o.type)]
    keys = [graph.outputs[k].key for k in chosen]
    f = _Map(compile_graph(graph, primitives, chosen))
    linear = linearize(whole, list(twin_of), outputs=keys, primitives=primitives)
    jvp = compiled(linear, primitives, drop=1)
    vjp = compiled(transpose(linear, primitives=primitives), primitives, drop=1)
    derived = linearize(twin, list(twin_of.values()), outputs=keys, pass_number=first, primitives=primitives)
    of_twin = _twin(compiled(twin, primitives), compiled(derived, primitives, drop=1), found[1], twin)
    directions = {p: t for i in graph.inputs if i.key in twin_of for p, t in _tangents(i, None).items()}
    images = {p: t for k in chosen for p, t in _tangents(graph.outputs[k], None).items()}
    _require_memory((f, jvp, vjp, of_twin.jvp), directions, images)
    bound = EXACT[least_precision([*directions.values(), *images.values()])]
    for point in range(_POINTS):
        rng = np.random.default_rng([drawing.seed, point])
        x = drawing.finite_point(f, rng)
        if x is None or not of_twin.agrees(f(x), x, bound):
            continue  # integers wrap there, as floats do not
        v, u = draw_all(rng, directions), draw_all(rng, images)
        jv = jvp(x | _in_pass(v, first))
        expected = of_twin.jvp(of_twin.at(x) | _in_pass(of_twin.of(v), first))
        errors = [relative(jv, expected), adjoint_error(u, jv, vjp(x | _in_pass(u, -first)), v)]
        error = max((e for e in errors if e is not None), default=None)
        if error is not None:
            return [Verdict("integers", error, bound, at=None if error <= bound else shown(x, graph.inputs))]
    return [Verdict("integers", None, bound)]


def _require_memory(maps: Iterable[_Map], directions: Mapping[Place, TensorType], images: Mapping[Place, TensorType]) -> None:
    """Raises LimitError if comparing these maps would take more memory than there is: a run, and what is compared."""
    run = max(m.program.nbytes() if isinstance(m.program, GroupedProgram) else estimate_memory(m.program).peak for m in maps)
    held = _POINTS_HELD * sum(t.nbytes for t in directions.values()) + _IMAGES_HELD * sum(t.nbytes for t in images.values())
    require("memory", run + held, "trying derivatives at random inputs")


def _faithful(graph: Graph, primitives: PrimitiveSet) -> bool:
    """Whether the derivatives of all primitives in a graph, and in those that custom ones stand for, are those of their values."""
    ops = {graph.cases[code].op for code in set(graph.code)}
    ops.update(node.op for d in primitives.reached_from(ops) for node in d.graphs["forward"].nodes)
    return all(primitives[op].rules.faithful for op in ops)


def compiled(document: Document, primitives: PrimitiveSet, drop: int = 0) -> _Map:
    """The head of a document, materialized, as a function of arrays."""
    return _Map(compile_graph(materialize(document).head, primitives), drop)


def _record(found: dict[str, float | None], law: str, error: float | None) -> None:
    if found[law] is None:
        found[law] = error


def drawn_inputs(document: Document, primitives: PrimitiveSet, seed: int) -> dict[Key, Any] | None:
    """Random inputs of a document of one graph at which its outputs are finite; None where none have been found."""
    import numpy as np

    graph = document.head
    drawing = Drawing(graph.inputs, {}, {}, {}, seed)
    x = drawing.finite_point(_Map(compile_graph(graph, primitives)), np.random.default_rng([seed, 0]))
    return None if x is None else {i.key: together(x, i.key, i.type) for i in graph.inputs}


def _as_type(x: NDArray[Any], type_: TensorType) -> NDArray[Any]:
    import numpy as np

    return np.asarray(x, numpy_dtype(np, type_.dtype))


def check_primitive_numerically(primitive: Primitive, primitives: PrimitiveSet, dtypes: Container[str]) -> list[Verdict]:
    """The worst verdict on each law over a primitive's examples, in those of its dtypes. Durations count as f64, which they are."""
    worst: dict[str, Verdict] = {}
    for example, case in example_cases(primitives, primitive):
        arrays = [leaf for t in (*case.operands, *case.results) if t is not None for _, leaf in leaves(t)]
        if not all(not t.inexact or storage_dtype(t.dtype) in dtypes for t in arrays):
            continue
        document = one_node_document(case)
        inputs = document.head.inputs
        intervals = {i.key: interval_of(example, k) for k, i in enumerate(inputs)}
        diagonals = {i.key: diagonal_of(example, k) for k, i in enumerate(inputs)}
        fixed = {Key(f"x{k}") for k in primitive.rules.inert}
        # Integers are differentiated by, and moved, in the dtypes of their tangents.
        exact = [t for t in arrays if t.dtype in INTEGERS | DATETIMES]
        if any(storage_dtype(tensor_tangent_type(t).dtype) not in dtypes for t in exact):
            if primitive.rules.integers == "moved":
                continue
            fixed |= {i.key for i in inputs if _holds(i.type, INTEGERS | DATETIMES)}
        for verdict in check_numerically(document, primitives, intervals=intervals, diagonals=diagonals, fixed=fixed):
            known = worst.setdefault(verdict.law, verdict)
            if verdict.strain > known.strain:
                worst[verdict.law] = verdict
    return sorted(worst.values(), key=lambda verdict: verdict.law == "integers")
