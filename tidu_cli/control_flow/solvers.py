"""How linear systems and equations are solved where their node does not say: graphs of other operations.

Unknowns are one vector of real numbers here, complex ones as two each, so that a map that is linear over the reals alone, such as
one with conj in it, is solved, too. What has not converged gives NaN, and never a number that looks like a solution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import cast

from tidu_cli.control_flow.dependence import output_values, over, values_read
from tidu_cli.control_flow.graphs import Terms, inputs_of, made, named, outputs_of
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.literals import filled
from tidu_cli.graph.types import TensorType, Type, real_dtype
from tidu_cli.lax.linear_algebra.matrices import solved, turned, with_diagonal
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.families import as_dtype
from tidu_cli.rules.recording.trace import Trace
from tidu_cli.rules.terms import Recorder, Term, op, zeros
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms import nested

abs_, concatenate, div, dot_general, imag, join, real, reduce_max, reshape, select_n, slice_, spread = map(
    op,
    ("abs", "concatenate", "div", "dot_general", "imag", "complex", "real", "reduce_max", "reshape", "select_n", "slice",
     "broadcast_in_dim"),
)  # fmt: skip
and_, ge, gt, le, lt, not_ = map(op, ("and", "ge", "gt", "le", "lt", "not"))

DENSE = 2048
"""The most real unknowns for which a system is solved by its matrix; larger ones are solved by conjugate gradients."""

NEWTON_STEPS = 100
"""An equation is solved by no more steps than this."""

FIXED_POINT_STEPS = 10_000
"""A function is applied no more often than this, for a fixed point of it."""

TRUE = filled(TensorType("bool"), True)

Vector = Callable[[Term], Term]


def made_of(graph: ClosedGraph) -> PrimitiveSet:
    """The primitives that a graph is made of."""
    return vocabulary(graph.graph.cases)


def transposed(primitives: PrimitiveSet, matvec: ClosedGraph, n_consts: int) -> ClosedGraph:
    """The transpose of a linear map: of the same constants, and of cotangents. Raises MissingRuleError."""
    types, n = matvec.input_types[n_consts:], len(matvec.graph.inputs)
    active = [k >= n_consts for k in range(n)]

    def emit(inner: Trace, terms: list[Term]) -> list[Term]:
        operands = [*terms[:n_consts], *[None] * (n - n_consts)]
        back = nested.pull_back(inner, matvec.graph, operands, active, terms[n_consts:])[n_consts:]
        return dense(inner, back, types)

    return made(primitives, inputs_of(matvec), emit)


def dense(trace: Recorder, terms: Terms, types: Sequence[Type]) -> list[Term]:
    """Terms with zeros of these types for None."""
    return [zeros(trace, type_) if t is None else t for t, type_ in zip(terms, types, strict=True)]


@lru_cache(maxsize=256)
def linear_solver(matvec: ClosedGraph, n_consts: int) -> ClosedGraph:
    """The graph of the constants of a linear map and a right side that gives the solution. Raises MissingRuleError."""
    flat = Flat(matvec.input_types[n_consts:])

    def emit(inner: Trace, terms: list[Term]) -> list[Term]:
        consts, right = terms[:n_consts], terms[n_consts:]
        if not flat.size:
            return right
        b = flat.pack(right)
        if flat.size == 1:
            slope = flat.map_of(matvec, consts)(inner.full(1, flat.type))
            return flat.unpack(div(b, slope))
        if flat.size <= DENSE:
            return flat.unpack(_by_matrix(inner, matvec, consts, flat, b))
        return flat.unpack(_by_gradients(inner, matvec, consts, flat, b))

    return made(made_of(matvec), inputs_of(matvec), emit)


EPSILON = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}
"""The rounding of 1, relative to it, in each dtype of floats."""


class Flat:
    """Arrays as one vector of real numbers: each its real parts, and, if it is complex, its imaginary ones.

    `epsilon` is how far the coarsest of them may round.
    """

    def __init__(self, types: Sequence[Type]) -> None:
        self.types = cast(Sequence[TensorType], types)
        wide = any(real_dtype(t.dtype) == "f64" for t in self.types)
        self.dtype = "f64" if wide else "f32"
        self.size = sum(t.size * (2 if t.complex else 1) for t in self.types)
        self.type = TensorType(self.dtype, (self.size,))
        self.epsilon = max((EPSILON[real_dtype(t.dtype)] for t in self.types), default=0.0)

    def pack(self, arrays: Sequence[Term]) -> Term:
        """The vector of arrays."""
        parts = [part for x in arrays for part in ([real(x), imag(x)] if x.type.complex else [x])]
        rows = [as_dtype(reshape(x, new_sizes=(x.type.size,)), self.dtype) for x in parts]
        return concatenate(*rows, dimension=0) if len(rows) > 1 else rows[0]

    def unpack(self, vector: Term) -> list[Term]:
        """The arrays of a vector."""
        arrays, start = [], 0
        for type_ in self.types:
            parts = []
            for _ in range(2 if type_.complex else 1):
                end = start + type_.size
                whole = vector if type_.size == self.size else slice_(vector, start_indices=(start,), limit_indices=(end,))
                parts.append(as_dtype(reshape(whole, new_sizes=type_.shape), real_dtype(type_.dtype)))
                start = end
            arrays.append(join(*parts) if type_.complex else parts[0])
        return arrays

    def map_of(self, graph: ClosedGraph, consts: Sequence[Term]) -> Vector:
        """A graph of these constants and arrays as a function of their vector."""
        return lambda v: self.pack(outputs_of(v.trace, graph, [*consts, *self.unpack(v)]))


def _by_matrix(trace: Trace, matvec: ClosedGraph, consts: Sequence[Term], flat: Flat, b: Term) -> Term:
    """By LU factors of the matrix whose columns are what the map makes of unit vectors."""
    n = flat.size
    columns = made(
        trace.primitives,
        [*inputs_of(matvec)[: len(consts)], ("v", flat.type)],
        lambda inner, terms: [flat.map_of(matvec, terms[:-1])(terms[-1])],
    )
    units = with_diagonal(trace.full(0, TensorType(flat.dtype, (n, n))), 1.0)
    (rows,) = nested.batch(trace, columns.graph, [*consts, units], [*[False] * len(consts), True], n)
    return reshape(solved(turned(cast(Term, rows)), reshape(b, new_sizes=(n, 1))), new_sizes=(n,))


def _dot(x: Term, y: Term) -> Term:
    return dot_general(x, y, dimension_numbers=(((0,), (0,)), ((), ())))


def _times(factor: Term, x: Term) -> Term:
    return spread(factor, shape=x.type.shape, broadcast_dimensions=()) * x


def _nan_unless(good: Term, x: Term) -> Term:
    everywhere = spread(good, shape=x.type.shape, broadcast_dimensions=()) if x.type.shape else good
    return select_n(everywhere, x.trace.full(float("nan"), x.type), x)


def _by_gradients(trace: Trace, matvec: ClosedGraph, consts: Sequence[Term], flat: Flat, b: Term) -> Term:
    """By conjugate gradients of the least squares ‖A x − b‖², which need no symmetry: two maps a step, at most 2 n steps (CGLS)."""
    backward, scalar = transposed(made_of(matvec), matvec, len(consts)), TensorType(flat.dtype)
    n, zero = len(consts), trace.full(0, scalar)
    scale = _largest(b)
    scale = select_n(gt(scale, zero), trace.full(1, scalar), scale)
    b = _times(div(trace.full(1, scalar), scale), b)  # so that squares neither vanish nor overflow
    enough = trace.full((64 * EPSILON[flat.dtype]) ** 2, scalar) * _dot(b, b)
    types = [("x", flat.type), ("r", flat.type), ("p", flat.type), ("g", scalar), ("k", TensorType("i32"))]

    def goes_on(inner: Trace, terms: list[Term]) -> list[Term]:
        enough, (_, r, _, g, k) = terms[0], terms[1:]
        goes_on = and_(gt(_dot(r, r), enough), gt(g, inner.full(0, scalar)))
        return [and_(goes_on, lt(k, inner.full(2 * flat.size, k.type)))]

    def step(inner: Trace, terms: list[Term]) -> list[Term]:
        held, (x, r, p, g, k) = terms[:n], terms[n:]
        q = flat.map_of(matvec, held)(p)
        along = div(g, _dot(q, q))
        r = r - _times(along, q)
        s = flat.map_of(backward, held)(r)
        after = _dot(s, s)
        return [x + _times(along, p), r, s + _times(div(after, g), p), after, k + inner.full(1, k.type)]

    condition = made(trace.primitives, [("enough", scalar), *types], goes_on)
    body = made(trace.primitives, [*inputs_of(matvec)[:n], *types], step)
    s = flat.map_of(backward, consts)(b)
    init = [trace.full(0, flat.type), b, s, _dot(s, s), trace.full(0, TensorType("i32"))]
    x, r, *_ = trace.emit_all("while", enough, *consts, *init, cond_consts=1, body_consts=n, condition=condition, body=body)
    return _nan_unless(le(_dot(r, r), trace.full(flat.epsilon, scalar) * _dot(b, b)), _times(scale, x))


# Equations: Newton's method, each step of which solves a linear system.


@lru_cache(maxsize=256)
def slope_of(f: ClosedGraph, n_consts: int) -> ClosedGraph:
    """The derivative of f by its unknowns as a linear map: of the constants, of the unknowns, and of a tangent of these."""
    types, n = f.input_types[n_consts:], len(f.graph.inputs)

    def emit(inner: Trace, terms: list[Term]) -> list[Term]:
        tangents = [*[None] * n_consts, *terms[n:]]
        return dense(inner, nested.push_forward(inner, f.graph, terms[:n], tangents), types)

    return made(made_of(f), [*inputs_of(f), *named("t", types)], emit)


@lru_cache(maxsize=256)
def tangent_solver(f: ClosedGraph, n_consts: int) -> ClosedGraph:
    """The graph of constants, of unknowns and a right side b that solves ∂f/∂x t = b: one linear_solve."""
    slope = slope_of(f, n_consts)
    n, inputs = len(f.graph.inputs), inputs_of(slope)
    return made(made_of(f), inputs, lambda inner, terms: emit_solve(inner, terms[:n], terms[n:], {"matvec": slope}))


def emit_solve(trace: Recorder, consts: Sequence[Term], right: Sequence[Term], graphs: dict[str, ClosedGraph]) -> list[Term]:
    """A linear_solve without the constants that none of its graphs reads."""
    n = len(consts)
    kept = sorted({v for g in graphs.values() for v in values_read(g.graph, output_values(g)) if v < n})
    if len(kept) < n:
        graphs = {
            name: over(trace.primitives, g, [*kept, *range(n, len(g.graph.inputs))], output_values(g)) for name, g in graphs.items()
        }
    return list(trace.emit_all("linear_solve", *[consts[k] for k in kept], *right, num_consts=len(kept), **graphs))


@lru_cache(maxsize=256)
def newton(f: ClosedGraph, n_consts: int) -> ClosedGraph:
    """The graph of constants and of a first guess that gives a root of f by Newton's method.

    It ends where a step is as small as rounding, or is small and no smaller than the one before, as is the residual; after
    NEWTON_STEPS, or where the last step is not small, the result is NaN.
    """
    flat, correct = Flat(f.input_types[n_consts:]), tangent_solver(f, n_consts)
    scalar, tiny, small = TensorType(flat.dtype), 4 * flat.epsilon, flat.epsilon**0.5

    def step(inner: Trace, terms: list[Term]) -> list[Term]:
        consts, x, (_, before, highest, _, k) = terms[:n_consts], terms[n_consts:-5], terms[-5:]
        residual = outputs_of(inner, f, [*consts, *x])
        change = outputs_of(inner, correct, [*consts, *x, *residual])
        after = [a - b for a, b in zip(x, change, strict=True)]
        size, moved, rest = (_largest(flat.pack(some)) for some in (after, change, residual))
        stalls = and_(and_(_is_small(moved, size, small), ge(moved, before)), ge(rest, highest))
        goes_on = and_(gt(moved, inner.full(tiny, scalar) * size), not_(stalls))
        k = k + inner.full(1, k.type)
        return [*after, size, moved, rest, and_(goes_on, lt(k, inner.full(NEWTON_STEPS, k.type))), k]

    return _repeated(f, n_consts, flat, ("size", "step", "residual"), step)


def _repeated(
    f: ClosedGraph, n_consts: int, flat: Flat, numbers: Sequence[str], step: Callable[[Trace, list[Term]], Sequence[Term]]
) -> ClosedGraph:
    """The graph of constants and of a first guess of the unknowns of f that repeats a step; NaN if the last one is not small.

    A step takes and gives, after the unknowns, these numbers, of which the first are the size of the unknowns and how far it has
    moved them, and then whether it goes on and how many steps there have been.
    """
    scalar, n = TensorType(flat.dtype), len(flat.types)
    counts = [("goes_on", TensorType("bool")), ("k", TensorType("i32"))]
    types = [*named("x", flat.types), *[(name, scalar) for name in numbers], *counts]

    def emit(inner: Trace, terms: list[Term]) -> list[Term]:
        if not flat.size:
            return terms[n_consts:]
        condition = made(inner.primitives, types, lambda _, carried: [carried[-2]])
        body = made(inner.primitives, [*inputs_of(f)[:n_consts], *types], step)
        first = [inner.full(0, scalar), *[inner.full(float("inf"), scalar)] * (len(numbers) - 1)]
        first += [inner.emit("constant", value=TRUE), inner.full(0, TensorType("i32"))]
        lengths = {"cond_consts": 0, "body_consts": n_consts}
        carried = inner.emit_all("while", *terms, *first, **lengths, condition=condition, body=body)
        is_small = _is_small(carried[n + 1], carried[n], flat.epsilon**0.5)
        return [_nan_unless(is_small, x) for x in carried[:n]]

    return made(made_of(f), inputs_of(f), emit)


# Fixed points: the function, applied to what it gave.


@lru_cache(maxsize=256)
def difference(f: ClosedGraph, n_consts: int) -> ClosedGraph:
    """x − f(x), which is zero at a fixed point of f: a graph of constants and of x."""

    def emit(inner: Trace, terms: list[Term]) -> list[Term]:
        return [x - y for x, y in zip(terms[n_consts:], outputs_of(inner, f, terms), strict=True)]

    return made(made_of(f), inputs_of(f), emit)


@lru_cache(maxsize=256)
def iteration(f: ClosedGraph, n_consts: int) -> ClosedGraph:
    """The graph of constants and of a first guess that gives a fixed point of f, by applying it.

    It ends where a step is as small as rounding, or nearly so and no smaller than the one before; after FIXED_POINT_STEPS, where
    the last step is not small, the result is NaN.
    """
    flat = Flat(f.input_types[n_consts:])
    scalar, epsilon = TensorType(flat.dtype), flat.epsilon

    def step(inner: Trace, terms: list[Term]) -> list[Term]:
        x, (_, before, _, k) = terms[n_consts:-4], terms[-4:]
        after = outputs_of(inner, f, terms[:-4])
        size, moved = _largest(flat.pack(after)), _largest(flat.pack([a - b for a, b in zip(after, x, strict=True)]))
        stalls = and_(_is_small(moved, size, 16 * epsilon), ge(moved, before))
        goes_on = and_(gt(moved, inner.full(epsilon, scalar) * size), not_(stalls))
        k = k + inner.full(1, k.type)
        return [*after, size, moved, and_(goes_on, lt(k, inner.full(FIXED_POINT_STEPS, k.type))), k]

    return _repeated(f, n_consts, flat, ("size", "step"), step)


def _is_small(moved: Term, size: Term, tolerance: float) -> Term:
    """Whether a step is small beside 1 and what it leads to."""
    return lt(moved, moved.trace.full(tolerance, moved.type) * (size + moved.trace.full(1, moved.type)))


def _largest(x: Term) -> Term:
    return reduce_max(abs_(x), axes=(0,))
