"""Values that equations define: `root`, `fixed_point` and `linear_solve`, of traced arrays and of NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.control_flow.bodies import (
    Body,
    Carried,
    Leaf,
    Outside,
    begun,
    constant_of,
    leaves,
    leaves_as,
    named,
    operands_of,
    parameters,
    plain,
    rebuilt,
    run,
    settled,
    type_of,
)
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.recorder import Recorder, distinct
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Graph
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.recording.functions import kernel
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose
from tidu_cli.watching import listening

Function = Callable[..., Any]


class Equation(Frozen, slots=False):
    """An equation of unknowns that are built as `guess` is, whose leaves are floats or complex numbers.

    `op` is the operation, `main` what its attrs call the graph of `function`. `solvers` are functions of a function and of arrays,
    by the names that attrs have for their graphs, or None: `solve` of `function` itself and a guess, another one of its derivative
    and a right side; of its transpose if the function is `linear`.
    """

    op: str
    main: str
    function: Function
    guess: Any
    solvers: Mapping[str, Function | None]
    linear: bool = False

    def solution(self) -> Any:
        """The unknowns."""
        parameters(self.function, ("x",))
        for name, solver in self.solvers.items():
            if solver is not None:
                parameters(solver, ("f", "x0") if name == "solve" else ("g", "b"))
        given = [x for _, x in leaves(self.guess, "x")]
        if not given:
            raise BuildError(f"{self.op} has no unknowns; give it arrays or numbers")
        return rebuilt(self.guess, run(given, self._staged, self._called))

    def _called(self) -> Sequence[Leaf]:
        """Where nothing is traced: the solver that is given, or the graph of the equation alone, computed."""
        solve = self.solvers["solve"]
        if solve is not None:
            return list(leaves_as(self.guess, solve(self.function, _as_floats(self.guess)), "x", named(solve, "solve")))
        recorder = Recorder()
        arrays = {str(k): x for k, x in enumerate(self._staged(recorder))}
        results = kernel(np, recorder.document("", arrays).head, BUILTIN)()
        return [np.asarray(x)[()] for x in (results if len(arrays) > 1 else (results,))]

    def _staged(self, recorder: Recorder) -> Sequence[Array]:
        init = list(leaves(_as_floats(self.guess), "x"))

        def record(carried: Sequence[Carried]) -> tuple[Body, Sequence[Leaf]]:
            body, given = begun(recorder, carried)
            with body.going_on():
                return body, self._leaves(self.function(rebuilt(self.guess, given)), self.function)

        carried, body, residual = settled(init, record)
        self._give(body, carried, residual, self.function)
        bodies = {self.main: body} | {
            name: self._solver(recorder, name, solver, carried, body) for name, solver in self.solvers.items() if solver is not None
        }
        outside: Outside = {}
        for some in bodies.values():
            outside |= some.outside
        first = [constant_of(recorder, c, x) for c, (_, x) in zip(carried, init, strict=True)]
        graphs = {name: some.closed(outside) for name, some in bodies.items()}
        return recorder.emit_all(self.op, [*operands_of(recorder, outside), *first], num_consts=len(outside), **graphs)

    def _solver(self, recorder: Recorder, name: str, solver: Function, carried: Sequence[Carried], equation: Body) -> Body:
        if name == "solve":
            body, given = begun(recorder, carried)
            with body.going_on():
                result = solver(self.function, rebuilt(self.guess, given))
        else:
            outside, closed = equation.outside, equation.closed(equation.outside)
            if self.op == "fixed_point":  # whose graph is not the one that is zero at the solution
                closed = BUILTIN.parse_attrs(self.op, {"num_consts": len(outside), self.main: closed}).residual  # type: ignore[attr-defined]
            graph = derivative(closed, len(outside), turned=self.linear)
            sides = [replace(c, path=f"b{c.path[1:]}") for c in carried]
            body, given = begun(recorder, carried if self.linear else [*carried, *sides])
            point, given = ([None] * len(given), given) if self.linear else (given[: len(carried)], given[len(carried) :])

            def along(tree: Any) -> Any:
                given = [c.fitted(x, named(solver, name)) for c, x in zip(carried, self._leaves(tree, solver), strict=True)]
                moved = [constant_of(recorder, c, x) for c, x in zip(carried, given, strict=True)]
                return rebuilt(self.guess, body.recorder.inlined(graph, [*operands_of(recorder, outside), *point, *moved]))

            with body.going_on():
                result = solver(along, rebuilt(self.guess, given))
        with body.going_on():
            after = self._leaves(result, solver)
        self._give(body, carried, after, solver)
        return body

    def _leaves(self, tree: Any, whence: Function) -> list[Leaf]:
        return list(leaves_as(self.guess, tree, "x", named(whence, "the function")))

    def _give(self, body: Body, carried: Sequence[Carried], after: Sequence[Leaf], whence: Function) -> None:
        with body.going_on():
            fitted = [c.fitted(x, named(whence, "the function")) for c, x in zip(carried, after, strict=True)]
            body.give(distinct([c.path for c in carried]), [body.array(x) for x in fitted])


def _as_floats(tree: Any) -> Any:
    """A guess whose integers are floats."""
    return rebuilt(tree, [_as_float(x) for _, x in leaves(tree, "x")])


def _as_float(leaf: Leaf) -> Leaf:
    type_ = type_of(leaf)
    if type_.inexact:
        return leaf
    if type(leaf) in (int, bool):
        return float(leaf)
    return leaf.convert("f64") if isinstance(leaf, Array) else plain(leaf, type_.with_dtype("f64"))


def derivative(closed: ClosedGraph, n_consts: int, *, turned: bool) -> Graph:
    """The derivative of a graph by the inputs that follow constants, or its transpose: a graph of all inputs and of tangents."""
    with listening(None):
        document = linearize(closed.document, [i.key for i in closed.graph.inputs[n_consts:]])
        return materialize(transpose(document) if turned else document).head


def root(f: Function, x0: Any, solve: Function | None = None, tangent_solve: Function | None = None) -> Any:
    """An x with f(x) = 0, from the first guess x0, which it has the structure and types of. Raises BuildError."""
    return Equation("root", "f", f, x0, {"solve": solve, "tangent_solve": tangent_solve}).solution()


def linear_solve(matvec: Function, b: Any, solve: Function | None = None, transpose_solve: Function | None = None) -> Any:
    """The x with matvec(x) = b. Raises BuildError."""
    solvers = {"solve": solve, "transpose_solve": transpose_solve}
    return Equation("linear_solve", "matvec", matvec, b, solvers, linear=True).solution()


def fixed_point(f: Function, x0: Any, solve: Function | None = None, tangent_solve: Function | None = None) -> Any:
    """An x with f(x) = x, from the first guess x0. Raises BuildError."""
    return Equation("fixed_point", "f", f, x0, {"solve": solve, "tangent_solve": tangent_solve}).solution()
