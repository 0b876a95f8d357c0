"""numeric: derivatives against difference quotients, and the laws that tie them together, at random inputs.

For a graph f at a point x, with tangents v, w and a cotangent u (<a, b> = Re(conj(a) b)):

- *jvp*: J v against Ridders' extrapolated difference quotient of f along v;
- *adjoint*: <u, J v> = <Jᵀ u, v>;
- *linear*: J (a v + b w) = a J v + b J w;
- *second*: the derivative of J v along w against the difference quotient of J v;
- *symmetry*: D²f(v, w) = D²f(w, v).
- *integers*: by integers that are computed with as numbers, J v is that of the same graph of floats, and J* its adjoint.

In half precision, and where f uses a primitive whose derivative is by intention not that of its values, such as stop_gradient,
difference quotients say nothing, and the laws that need them get no verdict.

Each gives the error relative to the greatest part of what it compares. Reference: C. J. F. Ridders, "Accurate computation of F'(x)
and F'(x)F''(x)", Advances in Engineering Software 4 (1982) 75-76.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidu_cli.checking.examples import diagonal_of, example_cases, interval_of, one_node_document, with_diagonal
from tidu_cli.checking.integers import float_twin
from tidu_cli.graph.graph import Document, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import INTEGERS, TensorType, real_dtype, tangent_type
from tidu_cli.primitives.contract import Primitive, PrimitiveSet
from tidu_cli.primitives.structural import numpy_dtype
from tidu_cli.runtime.program import Program, compile_graph
from tidu_cli.transforms.inline import inline
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

if TYPE_CHECKING:
    from numpy.typing import NDArray

Values = dict[Key, "NDArray[Any]"]
Intervals = Mapping[Key, tuple[float, float]]

TOLERANCE = {"f64": 1e-8, "f32": 2e-2}
"""By the real dtype of the least precise value: what a difference quotient can resolve, relative to the result."""

EXACT = {"f64": 1e-11, "f32": 1e-4, "f16": 5e-2, "bf16": 0.3}
"""Likewise for the laws that compare derivatives with one another: rounding alone."""

_INTERVALS = ((-2.0, 2.0), (0.5, 2.0), (0.1, 0.9))
"""Where inputs are drawn from by default: the first interval in which all outputs are finite."""

_POINTS = 6
"""How many points are tried before a difference quotient that does not converge, as near a kink, is given up on."""


@dataclass(frozen=True)
class Verdict:
    """What a check reached: the relative error, or None where no point allowed a verdict; and what it must stay below.

    Where it does not, `at` are the inputs at which the law fails, and `by` those whose tangents show it, if one by one they do.
    """

    law: str
    error: float | None
    tolerance: float
    at: Mapping[Key, NDArray[Any]] | None = None
    by: tuple[Key, ...] = ()

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
    """A function of inputs that carry tangents (`moving`), others held fixed, compiled."""

    program: Program
    moving: list[Input]
    outputs: list[Output]

    def __call__(self, values: Values) -> list[NDArray[Any]]:
        given = {i.key: values[i.key] for i in self.program.inputs}
        return self.program.run(given)


def check_numerically(
    document: Document,
    primitives: PrimitiveSet,
    *,
    given: Values | None = None,
    intervals: Intervals | None = None,
    diagonals: Mapping[Key, float] | None = None,
    fixed: Container[Key] = (),
    seed: int = 0,
) -> list[Verdict]:
    """The verdicts on the head of a document; none if nothing in it can be differentiated.

    Inputs are as `given`, or drawn from `intervals`, or from one in which the outputs are finite; to the diagonals of matrices
    `diagonals` are added. No tangent goes to those `fixed`.
    Raises what the transforms raise.
    """
    import numpy as np

    graph = materialize(document).head
    whole = Document((graph,), document.cases)
    moving = [i for i in graph.inputs if i.type.inexact and i.key not in fixed]
    smooth = [k for k, o in enumerate(graph.outputs) if o.type.inexact]
    of_integers = _integers_verdict(whole, primitives, given or {}, intervals or {}, fixed, seed)
    if not moving or not smooth:
        return of_integers
    f = _Map(compile_graph(graph, primitives, smooth), moving, [graph.outputs[k] for k in smooth])
    tangents = linearize(whole, [i.key for i in moving], outputs=[o.key for o in f.outputs], primitives=primitives)
    first = whole.next_pass()
    jvp = _compiled(tangents, primitives)
    vjp = _compiled(transpose(tangents, primitives=primitives), primitives)
    second = _compiled(linearize(tangents, [i.key for i in moving], primitives=primitives), primitives)

    dtypes = {real_dtype(t.dtype) for t in [*(i.type for i in moving), *(o.type for o in f.outputs)]}
    precision = next(dtype for dtype in ("bf16", "f16", "f32", "f64") if dtype in dtypes)
    resolved = precision in TOLERANCE and _faithful(graph, primitives)
    found: dict[str, float | None] = dict.fromkeys(("jvp", "adjoint", "linear", "second", "symmetry"))
    points: dict[str, tuple[Values, Values]] = {}
    for point in range(_POINTS):
        rng = np.random.default_rng([seed, point])
        x = _finite_point(f, graph.inputs, given or {}, intervals or {}, diagonals or {}, rng)
        if x is None:
            continue
        v, w, v2 = (_draw_all(rng, moving) for _ in range(3))
        u = {o.key: _draw(rng, o.type, (-1.0, 1.0)) for o in f.outputs}

        def along(direction: Values, x: Values = x, pass_number: int = first) -> Values:
            return x | {key.tangent(pass_number): t for key, t in direction.items()}

        jv = jvp(along(v))
        _record(found, "jvp", _difference(f, x, v, jv) if resolved else None)
        _record(found, "adjoint", _adjoint_error(u, jv, vjp(x | {k.cotangent(first): c for k, c in u.items()}), v, f))
        mixed = {k: _cast(2 * v[k] - 3 * w[k], v[k]) for k in v}
        _record(found, "linear", _relative(jvp(along(mixed)), [2 * a - 3 * b for a, b in zip(jv, jvp(along(w)), strict=True)]))
        ddv = second(along(v) | {key.tangent(first + 1): t for key, t in v2.items()})
        _record(found, "second", _difference(jvp, along(v), v2, ddv) if resolved else None)
        swapped = second(along(v2) | {key.tangent(first + 1): t for key, t in v.items()})
        _record(found, "symmetry", _relative(ddv, swapped))
        points |= {law: (x, v) for law, error in found.items() if error is not None and law not in points}
        if all(error is not None for law, error in found.items() if resolved or law not in ("jvp", "second")):
            break
    bounds = {law: (TOLERANCE if law in ("jvp", "second") else EXACT).get(precision, 0.0) for law in found}
    verdicts = [Verdict(law, error, bounds[law]) for law, error in found.items()]
    return [v if v.ok else _placed(v, *points[v.law], f, jvp, first) for v in verdicts] + of_integers


def _integers_verdict(
    whole: Document, primitives: PrimitiveSet, given: Values, intervals: Intervals, fixed: Container[Key], seed: int
) -> list[Verdict]:
    """The verdict on derivatives by integers, where outputs depend on some as numbers: that they are those by floats."""
    import numpy as np

    found = float_twin(inline(whole, primitives=primitives), primitives)
    if found is None:
        return []
    twin, twin_of = found[0], {k: t for k, t in found[1].items() if k not in fixed}
    if not twin_of:
        return []
    first, graph = whole.next_pass(), whole.head
    chosen = [k for k, o in enumerate(graph.outputs) if o.type.dtype != "bool"]
    numbers = [graph.outputs[k] for k in chosen]
    keys = [o.key for o in numbers]
    moving = [Input(i.key, tangent_type(i.type)) for i in graph.inputs if i.key in twin_of]
    outputs = [Output(o.key, o.value, tangent_type(o.type)) for o in numbers]
    f = _Map(compile_graph(graph, primitives, chosen), moving, outputs)
    f_twin = _compiled(twin, primitives)
    linear = linearize(whole, list(twin_of), outputs=keys, primitives=primitives)
    jvp, vjp = _compiled(linear, primitives), _compiled(transpose(linear, primitives=primitives), primitives)
    expected = _compiled(
        linearize(twin, list(twin_of.values()), outputs=keys, pass_number=first, primitives=primitives), primitives
    )
    dtypes = {real_dtype(t.dtype) for t in [*(i.type for i in moving), *(o.type for o in outputs)]}
    bound = EXACT[next(dtype for dtype in ("bf16", "f16", "f32", "f64") if dtype in dtypes)]
    types = {i.key: i.type for i in graph.inputs}
    for point in range(_POINTS):
        rng = np.random.default_rng([seed, point])
        x = _finite_point(f, graph.inputs, given, intervals, {}, rng)
        if x is None:
            continue
        v, u = _draw_all(rng, moving), _draw_all(rng, outputs)
        at = x | {t: np.asarray(x[k], numpy_dtype(np, tangent_type(types[k]).dtype)) for k, t in found[1].items()}
        values = {o.key: y for o, y in zip(f_twin.outputs, f_twin(at), strict=True) if o.value is not None}
        both = [(y, values[o.key]) for o, y in zip(outputs, f(x), strict=True) if o.key in values]
        wraps = _relative([a for a, _ in both], [b for _, b in both])
        if wraps is None or wraps > bound:
            continue  # integers wrap there, as floats do not
        jv = jvp(x | {k.tangent(first): t for k, t in v.items()})
        of_twin = expected(at | {twin_of[k].tangent(first): t for k, t in v.items()})
        pulled = vjp(x | {k.cotangent(first): c for k, c in u.items()})
        errors = [_relative(jv, of_twin), _adjoint_error(u, jv, pulled, v, f)]
        error = max((e for e in errors if e is not None), default=None)
        if error is not None:
            return [Verdict("integers", error, bound, at=None if error <= bound else x)]
    return [Verdict("integers", None, bound)]


def _placed(verdict: Verdict, x: Values, direction: Values, f: _Map, jvp: _Map, pass_number: int) -> Verdict:
    """A verdict with the point where it was reached, and of the derivative the inputs by which it is wrong."""
    import numpy as np

    by = []
    for key in direction if verdict.law == "jvp" else ():
        alone = {k: t if k == key else np.zeros_like(t) for k, t in direction.items()}
        error = _difference(f, x, alone, jvp(x | {k.tangent(pass_number): t for k, t in alone.items()}))
        if error is not None and error > verdict.tolerance:
            by.append(key)
    return replace(verdict, at=x, by=tuple(by))


def _faithful(graph: Graph, primitives: PrimitiveSet) -> bool:
    """Whether the derivatives of all primitives in a graph, and in those that own ones stand for, are those of their values."""
    ops = {graph.cases[code].op for code in set(graph.code)}
    ops.update(node.op for d in primitives.reached_from(ops) for node in d.graphs["forward"].nodes)
    return all(primitives[op].faithful for op in ops)


def _compiled(document: Document, primitives: PrimitiveSet) -> _Map:
    graph = materialize(document).head
    return _Map(compile_graph(graph, primitives), list(graph.inputs), list(graph.outputs))


def _record(found: dict[str, float | None], law: str, error: float | None) -> None:
    if found[law] is None:
        found[law] = error


def drawn_inputs(document: Document, primitives: PrimitiveSet, seed: int) -> Values | None:
    """Random inputs of a document of one graph at which its outputs are finite; None where none have been found."""
    import numpy as np

    graph = document.head
    f = _Map(compile_graph(graph, primitives), list(graph.inputs), list(graph.outputs))
    return _finite_point(f, graph.inputs, {}, {}, {}, np.random.default_rng([seed, 0]))


def _finite_point(
    f: _Map, inputs: Sequence[Input], given: Values, intervals: Intervals, diagonals: Mapping[Key, float], rng: Any
) -> Values | None:
    import numpy as np

    for interval in _INTERVALS:
        drawn = {i.key: given.get(i.key, _draw(rng, i.type, intervals.get(i.key, interval))) for i in inputs}
        x = {key: with_diagonal(value, diagonals.get(key, 0.0)) for key, value in drawn.items()}
        if all(np.isfinite(y).all() for y in f(x)):
            return x
    return None


def _draw_all(rng: Any, inputs: Sequence[Input | Output]) -> Values:
    return {i.key: _draw(rng, i.type, (-1.0, 1.0)) for i in inputs}


def _draw(rng: Any, type_: TensorType, interval: tuple[float, float]) -> NDArray[Any]:
    import numpy as np

    low, high = interval
    dtype = numpy_dtype(np, type_.dtype)
    if type_.dtype == "bool":
        return np.asarray(rng.integers(0, 2, type_.shape), dtype)
    if type_.dtype in INTEGERS:
        least = max(0, math.ceil(low))
        return np.asarray(rng.integers(least, max(least + 1, int(high)), type_.shape), dtype)
    drawn = rng.uniform(low, high, type_.shape)
    return np.asarray(drawn + 1j * rng.uniform(low, high, type_.shape) if type_.complex else drawn).astype(dtype)


def _cast(x: NDArray[Any], like: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    return np.asarray(x, like.dtype)


def _difference(f: _Map, x: Values, v: Values, derivative: Sequence[NDArray[Any]]) -> float | None:
    """The relative error of the derivative along v; None if the difference quotients do not converge, as near a kink."""
    import numpy as np

    def quotient(h: float) -> NDArray[Any]:
        ahead = f(x | {k: _cast(x[k] + h * t, x[k]) for k, t in v.items()})
        behind = f(x | {k: _cast(x[k] - h * t, x[k]) for k, t in v.items()})
        return _flat([(a.astype(_wide(a)) - b) / (2 * h) for a, b in zip(ahead, behind, strict=True)])

    exact = _flat(derivative)
    if not exact.size:
        return 0.0
    single = any(a.dtype.itemsize < (16 if a.dtype.kind == "c" else 8) for a in (*derivative, *v.values()))
    best, uncertainty = None, np.inf
    for estimate, error in _ridders(quotient, 0.25 if single else 0.05):
        if error < uncertainty:
            best, uncertainty = estimate, error
    if best is None or not np.isfinite(best).all():
        return None
    scale = max(float(np.abs(exact).max()), float(np.abs(best).max()))
    if scale == 0:
        return 0.0
    if not single and uncertainty > TOLERANCE["f64"] / 4 * scale:
        return None
    return float(np.abs(exact - best).max() / scale)


def _ridders(quotient: Any, h: float) -> Iterator[tuple[NDArray[Any], float]]:
    """Estimates of a derivative from ever smaller steps, extrapolated to step 0, each with its estimated error."""
    import numpy as np

    shrink, row = 1.6, [quotient(h)]
    for _ in range(14):
        h /= shrink
        new = [quotient(h)]
        factor = shrink**2
        for previous in row:
            new.append((new[-1] * factor - previous) / (factor - 1))
            factor *= shrink**2
            error = max(float(np.abs(new[-1] - new[-2]).max()), float(np.abs(new[-1] - previous).max()))
            yield new[-1], error
        row = new


def _adjoint_error(u: Values, jv: Sequence[NDArray[Any]], pulled: Sequence[NDArray[Any]], v: Values, f: _Map) -> float | None:
    import numpy as np

    def inner(a: NDArray[Any], b: NDArray[Any]) -> float:
        return float(np.vdot(a.astype(_wide(a)), b.astype(_wide(b))).real)

    forward = [inner(u[o.key], y) for o, y in zip(f.outputs, jv, strict=True)]
    backward = [inner(p, v[i.key]) for i, p in zip(f.moving, pulled, strict=True)]
    if not np.isfinite([*forward, *backward]).all():
        return None
    scale = sum(inner(np.abs(u[o.key]), np.abs(y)) for o, y in zip(f.outputs, jv, strict=True))
    return abs(sum(forward) - sum(backward)) / scale if scale else abs(sum(backward))


def _relative(a: Sequence[NDArray[Any]], b: Sequence[NDArray[Any]]) -> float | None:
    import numpy as np

    left, right = _flat(a), _flat(b)
    if not left.size:
        return 0.0
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return None
    scale = max(float(np.abs(left).max()), float(np.abs(right).max()))
    return float(np.abs(left - right).max() / scale) if scale else 0.0


def _flat(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    import numpy as np

    return np.concatenate([np.asarray(a, _wide(a)).ravel() for a in arrays]) if arrays else np.zeros(0)


def _wide(a: NDArray[Any]) -> Any:
    return complex if a.dtype.kind == "c" else float


def check_primitive_numerically(primitive: Primitive, primitives: PrimitiveSet, dtypes: Container[str]) -> list[Verdict]:
    """The worst verdict on each law over a primitive's examples, in those of its dtypes."""
    worst: dict[str, Verdict] = {}
    for example, case in example_cases(primitives, primitive):
        if not all(t is None or not t.inexact or t.dtype in dtypes for t in (*case.operands, *case.results)):
            continue
        document = one_node_document(case)
        intervals = {i.key: interval_of(example, k) for k, i in enumerate(document.head.inputs)}
        diagonals = {i.key: diagonal_of(example, k) for k, i in enumerate(document.head.inputs)}
        fixed = {Key(f"x{k}") for k in primitive.inert}
        # Integers are differentiated by in the dtypes of their tangents.
        integers = [t for t in (*case.operands, *case.results) if t is not None and t.dtype in INTEGERS]
        if any(tangent_type(t).dtype not in dtypes for t in integers):
            fixed |= {i.key for i in document.head.inputs if i.type.dtype in INTEGERS}
        for verdict in check_numerically(document, primitives, intervals=intervals, diagonals=diagonals, fixed=fixed):
            known = worst.setdefault(verdict.law, verdict)
            if verdict.strain > known.strain:
                worst[verdict.law] = verdict
    return sorted(worst.values(), key=lambda verdict: verdict.law == "integers")
