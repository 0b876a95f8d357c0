"""Values that an equation defines: linear_solve, root and fixed_point, as JAX's custom_linear_solve and custom_root.

How the solution is computed says nothing of its derivative. That of A x = b is the solution of A dx = db − dA x, and its transpose
that of the transposed system; that of f(x, θ) = 0 is the solution of ∂f/∂x dx = −∂f/∂θ dθ, by the implicit function theorem.
A fixed point x = f(x, θ) is the root of x − f(x, θ), and differs only in how it is solved: f is applied. So derivatives of any
order and both modes are solutions again, which remember nothing of a solver's steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, ClassVar, cast

from tidu_cli.control_flow import graphs
from tidu_cli.control_flow.dependence import solve_pattern
from tidu_cli.control_flow.graphs import Terms, as_batch, batched_inputs, batched_outputs, flops, made, outputs_of, require_types
from tidu_cli.control_flow.solvers import (
    DENSE,
    EPSILON,
    dense,
    difference,
    emit_solve,
    iteration,
    linear_solver,
    made_of,
    newton,
    tangent_solver,
    transposed,
)
from tidu_cli.control_flow.while_loop import refuse_reverse
from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.types import TensorType, Type, real_dtype
from tidu_cli.lax.arrays.dtypes import dtype_name
from tidu_cli.rules.attrs import Axis, ClosedGraphData
from tidu_cli.rules.catalogue import Dependence, DependenceOf, Dependences
from tidu_cli.rules.contract import JVP, Attrs, Batching, Example, RunInner, Transposition, ValueTypes
from tidu_cli.rules.families import minus, primitive
from tidu_cli.rules.recording.functions import kernel
from tidu_cli.rules.recording.linearity import require_linear
from tidu_cli.rules.terms import Recorder, Term, trace_of
from tidu_cli.transforms import nested


class LinearSolveAttrs(Attrs):
    """The first `num_consts` operands come first in all graphs; the others are b. `matvec` is linear in what follows them, x, and
    gives A x. `solve` of b gives x, and `transpose_solve` the solution of the transposed system; without them tidu solves it.
    """

    graphs: ClassVar[tuple[str, ...]] = ("matvec", "solve", "transpose_solve")
    solvers: ClassVar[tuple[str, ...]] = ("solve", "transpose_solve")
    num_consts: Axis
    matvec: ClosedGraphData
    solve: ClosedGraphData = None  # type: ignore[assignment]
    transpose_solve: ClosedGraphData = None  # type: ignore[assignment]

    @property
    def solver(self) -> ClosedGraph:
        """What computes the solution."""
        return self.solve or linear_solver(self.matvec, self.num_consts)


class RootAttrs(Attrs):
    """The first `num_consts` operands come first in all graphs; the others are a first guess of x. `f` is what is zero at x.
    `solve` of the guess gives x; `tangent_solve` of x and b gives the t of ∂f/∂x t = b; without them tidu solves both.
    """

    graphs: ClassVar[tuple[str, ...]] = ("f", "solve", "tangent_solve")
    solvers: ClassVar[tuple[str, ...]] = ("solve",)
    num_consts: Axis
    f: ClosedGraphData
    solve: ClosedGraphData = None  # type: ignore[assignment]
    tangent_solve: ClosedGraphData = None  # type: ignore[assignment]

    @property
    def residual(self) -> ClosedGraph:
        """What is zero at the solution."""
        return self.f

    @property
    def solver(self) -> ClosedGraph:
        """What computes the solution."""
        return self.solve or newton(self.f, self.num_consts)

    @property
    def corrector(self) -> ClosedGraph:
        """What computes tangents of the solution."""
        return self.tangent_solve or tangent_solver(self.residual, self.num_consts)


class FixedPointAttrs(RootAttrs):
    """The first `num_consts` operands come first in all graphs; the others are a first guess of x. `f` maps x to x. `solve` of the
    guess gives x; `tangent_solve` of x and b gives the t of t − ∂f/∂x t = b; without them tidu solves both.
    """

    @property
    def residual(self) -> ClosedGraph:
        """x − f(x)."""
        return difference(self.f, self.num_consts)

    @property
    def solver(self) -> ClosedGraph:
        """What computes the solution."""
        return self.solve or iteration(self.f, self.num_consts)


def _types(main: str, repeats: dict[str, int]) -> Any:
    """The type rule: `main` defines the unknowns, and the graphs of `repeats` take these as often."""

    def types(attrs: Any, operands: ValueTypes) -> ValueTypes:
        n, graph = attrs.num_consts, getattr(attrs, main)
        if len(operands) <= n:
            raise TypeRuleError(f"takes num_consts = {n} inputs before its unknowns, got {len(operands)}")
        unknowns = operands[n:]
        for k, type_ in enumerate(unknowns):
            if not isinstance(type_, TensorType) or not type_.inexact:
                raise TypeRuleError(f"input {n + k} has type {type_}, but unknowns are floats or complex numbers")
        for name, times in {main: 1, **repeats}.items():
            given = getattr(attrs, name)
            if given is None:
                continue
            due = [*operands[:n], *unknowns * times]
            if len(given.graph.inputs) != len(due):
                raise TypeRuleError(f"its {name} has {len(given.graph.inputs)} inputs, where {len(due)} are due")
            numbers = [*range(n), *[*range(n, len(operands))] * times]
            require_types(name, given, due, given.input_types, numbers)
            if given.output_types != unknowns:
                some, expected = (", ".join(map(str, types)) or "nothing" for types in (given.output_types, unknowns))
                raise TypeRuleError(f"its {name} gives {some}, where the unknowns are {expected}")
        if main == "matvec":
            _require_linear(graph, n)
        return unknowns

    return types


@lru_cache(maxsize=1024)
def _require_linear(matvec: ClosedGraph, n_consts: int) -> None:
    active = [k >= n_consts for k in range(len(matvec.graph.inputs))]
    try:
        require_linear(made_of(matvec), matvec.graph, active, "unknowns")
    except MissingRuleError as error:
        raise TypeRuleError(f"its matvec: {error}") from None


def _hidden(main: str) -> Callable[[Any, Sequence[Type | None], ValueTypes | None], Sequence[Type | None]]:
    def hidden(attrs: Any, operands: Sequence[Type | None], declared: ValueTypes | None) -> Sequence[Type | None]:
        types = getattr(attrs, main).input_types
        return types if len(types) == len(operands) else operands

    return hidden


def _given(attrs: Any) -> dict[str, ClosedGraph]:
    return {name: graph for name in attrs.graphs if (graph := getattr(attrs, name)) is not None}


def _solve_jvp(node: JVP) -> Terms:
    attrs, trace, n = node.attrs, trace_of(node.tangents), node.attrs.num_consts
    consts, types = node.operands[:n], [x.value_type for x in node.operands[n:]]
    none: list[Term | None] = [None] * len(types)
    moved = nested.push_forward(trace, attrs.matvec.graph, [*consts, *node.results], [*node.tangents[:n], *none])
    right = [minus(db, da) for db, da in zip(node.tangents[n:], moved, strict=True)]
    return emit_solve(trace, consts, dense(trace, right, types), _given(attrs)) if any(right) else none


def _solve_transpose(node: Transposition) -> Terms:
    attrs, trace, n = node.attrs, trace_of(node.cotangents), node.attrs.num_consts
    if any(node.active[:n]):
        raise MissingRuleError("missing transpose rule for linear_solve with active constants: it is linear in its right side")
    refuse_reverse(", matvec", attrs.matvec, [k >= n for k in range(len(node.active))])
    turned = {"matvec": transposed(trace.primitives, attrs.matvec, n)}
    turned |= {"solve": attrs.transpose_solve} if attrs.transpose_solve else {}
    turned |= {"transpose_solve": attrs.solve} if attrs.solve else {}
    right = dense(trace, node.cotangents, cast(ValueTypes, node.types[n:]))
    back = emit_solve(trace, cast(Sequence[Term], node.operands[:n]), right, turned)
    return [*[None] * n, *[ct if a else None for ct, a in zip(back, node.active[n:], strict=True)]]


def _solve_dependence(of_graph: DependenceOf, attrs: Any, operands: Dependences) -> Dependences:
    n: int = attrs.num_consts
    consts, right = operands[:n], operands[n:]
    if any(d.moves for d in consts):
        return (Dependence.OTHER,) * len(right)
    if all(d is Dependence.FREE for d in right):
        return (Dependence.FREE,) * len(right)
    if not all(d.vanishes for d in right):
        return (Dependence.OTHER,) * len(right)
    return (Dependence.LINEAR if Dependence.LINEAR in right else Dependence.ZERO,) * len(right)


def _batched(trace: Recorder, graph: ClosedGraph, flags: Sequence[bool], size: int) -> ClosedGraph:
    """A graph for a batch: of the inputs that have it as their first axis, and of all outputs."""
    return made(
        trace.primitives,
        batched_inputs(graph, flags, size),
        lambda inner, terms: [as_batch(*output, size) for output in batched_outputs(inner, graph, terms, flags, size)],
    )


def _solve_batch(node: Batching) -> Sequence[Term]:
    """The systems of all items are one, whose solvers solve each item by itself."""
    attrs, trace, n, size = node.attrs, node.operands[0].trace, node.attrs.num_consts, node.size
    flags = [*node.batched[:n], *[True] * (len(node.operands) - n)]
    each = {"matvec": attrs.matvec, "solve": attrs.solver}
    with suppress(MissingRuleError):  # then it will not be transposed
        each["transpose_solve"] = attrs.transpose_solve or linear_solver(transposed(trace.primitives, attrs.matvec, n), n)
    right = [as_batch(x, b, size) for x, b in zip(node.operands[n:], node.batched[n:], strict=True)]
    return emit_solve(trace, node.operands[:n], right, {name: _batched(trace, g, flags, size) for name, g in each.items()})


def _root_jvp(node: JVP) -> Terms:
    attrs, trace, n = node.attrs, trace_of(node.tangents), node.attrs.num_consts
    consts, none = node.operands[:n], cast(list[Term | None], [None] * len(node.results))
    moved = nested.push_forward(trace, attrs.f.graph, [*consts, *node.results], [*node.tangents[:n], *none])
    if not any(moved):
        return none
    fixed = isinstance(attrs, FixedPointAttrs)  # the residual is x − f(x)
    right = dense(trace, moved if fixed else [minus(None, df) for df in moved], [x.value_type for x in node.results])
    return [t if t.linear else None for t in outputs_of(trace, attrs.corrector, [*consts, *node.results, *right])]


def _root_batch(op: str, node: Batching) -> Sequence[Term]:
    attrs, trace, n, size = node.attrs, node.operands[0].trace, node.attrs.num_consts, node.size
    n_unknowns = len(node.operands) - n
    flags = [*node.batched[:n], *[True] * n_unknowns]
    guess = [as_batch(x, b, size) for x, b in zip(node.operands[n:], node.batched[n:], strict=True)]
    each = {
        "f": _batched(trace, attrs.f, flags, size),
        "solve": _batched(trace, attrs.solver, flags, size),
        "tangent_solve": _batched(trace, attrs.corrector, [*flags, *[True] * n_unknowns], size),
    }
    return trace.emit_all(op, *node.operands[:n], *guess, num_consts=n, **each)


def _root_dependence(of_graph: DependenceOf, attrs: Any, operands: Dependences) -> Dependences:
    n: int = attrs.num_consts
    return (Dependence.OTHER if any(d.moves for d in operands) else Dependence.FREE,) * (len(operands) - n)


def _inner(attrs: Any, operands: Sequence[Any], results: Sequence[Any], run: RunInner) -> None:
    """Run the equation, the first of the graphs, at the solution: derivatives go by it, and not by the solver."""
    run(0, None, [*operands[: attrs.num_consts], *results])


UNSOLVED = 64
"""A solution is off if it is so by more roundings than this, times the square root of one."""


def _solve_unsolved(np: Any, attrs: Any, operands: Sequence[Any], results: Sequence[Any]) -> str:
    """By its residual, relative to the right side."""
    right = operands[attrs.num_consts :]
    images = _values(np, attrs.matvec, [*operands[: attrs.num_consts], *results])
    residual, scale = _largest(np, [a - b for a, b in zip(images, right, strict=True)]), _largest(np, right)
    if residual <= UNSOLVED * _rounding(results) * scale:
        return ""
    return f"its solution leaves a residual of {residual:.1e} of a right side of {scale:.1e}: the solver has not converged"


def _root_unsolved(np: Any, attrs: Any, operands: Sequence[Any], results: Sequence[Any]) -> str:
    """By a step of Newton's from there, relative to the root."""
    consts = operands[: attrs.num_consts]
    residual = _values(np, attrs.residual, [*consts, *results])
    step, size = _largest(np, _values(np, attrs.corrector, [*consts, *results, *residual])), _largest(np, results)
    if step <= UNSOLVED * _rounding(results) * (1 + size):
        return ""
    return f"its residual is {_largest(np, residual):.1e}, a Newton step of {step:.1e} from a root: the solver has not converged"


def _values(np: Any, graph: ClosedGraph, arrays: Sequence[Any]) -> Sequence[Any]:
    values = kernel(np, graph.graph, made_of(graph))(*arrays)
    return values if len(graph.graph.outputs) > 1 else (values,)


def _largest(np: Any, arrays: Sequence[Any]) -> float:
    return max((float(np.max(np.abs(x), initial=0)) for x in arrays), default=0.0)


def _rounding(arrays: Sequence[Any]) -> float:
    return math.sqrt(max(EPSILON[real_dtype(dtype_name(x.dtype))] for x in arrays))


def _solve_flops(attrs: Any, operands: Any, results: Any) -> int:
    """Of a given solver; otherwise of a matrix, and its factors."""
    n = sum(t.size for t in results)
    return flops(attrs.solve) if attrs.solve else n * flops(attrs.matvec) + 2 * n**3 // 3


def _work(attrs: Any, operands: Any, results: Any) -> int:
    """Of a matrix of the unknowns, its columns, its factors and their products, where tidu makes one."""
    n = sum(t.size for t in results)
    return 0 if attrs.solve or n > DENSE else 4 * 8 * n * n


def _any_of(main: str, **rules: Any) -> Any:
    return {
        "kernel": lambda np, attrs, operands, results: kernel(np, attrs.solver.graph, made_of(attrs.solver)),
        "definition": lambda attrs, operands: outputs_of(operands[0].trace, attrs.solver, operands),
        "inner": _inner,
        "work": _work,
        **graphs.OF_ALL_TYPES,
        "n_results": lambda attrs, n_operands: len(getattr(attrs, main).graph.outputs),
        "hidden": _hidden(main),
        **rules,
    }


def _root(op: str, attrs: Any, **words: Any) -> Any:
    return primitive(
        op,
        None,
        _types("f", {"solve": 1, "tangent_solve": 2}),
        attrs=attrs,
        jvp=_root_jvp,
        batch=partial(_root_batch, op),
        dependence=_root_dependence,
        unsolved=_root_unsolved,
        flops=lambda attrs, operands, results: flops(attrs.solver),
        parts=graphs.root_parts,
        **_any_of("f"),
        **words,
    )


PRIMITIVES = (
    primitive(
        "linear_solve",
        None,
        _types("matvec", {"solve": 1, "transpose_solve": 1}),
        attrs=LinearSolveAttrs,
        jvp=_solve_jvp,
        transpose=_solve_transpose,
        batch=_solve_batch,
        dependence=_solve_dependence,
        carried=lambda attrs: range(attrs.num_consts, len(attrs.matvec.graph.inputs)),
        pattern=solve_pattern,
        unsolved=_solve_unsolved,
        flops=_solve_flops,
        caption=graphs.solve_caption,
        parts=graphs.solve_parts,
        formula="x, where matvec(consts, x) = b",
        examples=(
            Example(("f64[3,3]", "f64[3]"), graphs.a_system, diagonals=(8.0, 0.0)),
            Example(("f64[3]", "f64[3]"), graphs.a_solved_system, ((1.0, 3.0), (-2.0, 2.0))),
        ),
        summary="the solution of a linear system; by its matrix, or by solvers that are given, and its derivatives likewise",
        **_any_of("matvec"),
    ),
    _root(
        "root",
        RootAttrs,
        caption=graphs.root_caption,
        formula="x, where f(consts, x) = 0",
        examples=(
            Example(("f64[]", "f64[]"), graphs.an_equation),
            Example(("f64[]", "f64[]"), graphs.a_solved_equation, ((1.0, 3.0), (-2.0, 2.0))),
        ),
        summary="a root of an equation from a first guess; its derivatives are those of the implicit function, whatever solves it",
    ),
    _root(
        "fixed_point",
        FixedPointAttrs,
        caption=graphs.fixed_point_caption,
        formula="x, where x = f(consts, x)",
        examples=(
            Example(("f64[]", "f64[]"), graphs.a_contraction),
            Example(("f64[]", "f64[]"), graphs.a_solved_contraction, ((1.0, 3.0), (-2.0, 2.0))),
        ),
        summary="a fixed point from a first guess, by applying the function; its derivatives are those of the implicit function",
    ),
)
