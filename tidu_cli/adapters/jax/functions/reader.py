"""Jaxprs are read equation by equation: each becomes nodes of a recording, or, where it depends on no input, a known value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from tidu_cli.adapters.jax.functions.calls import of_package
from tidu_cli.adapters.jax.functions.equation import Equation, spread
from tidu_cli.adapters.jax.functions.index import (
    CALLS,
    CHOICES,
    LOOPS,
    OPERATIONS,
    REFUSED,
    SPREADING,
    TAKE_KEYS,
    of_keys,
)
from tidu_cli.adapters.jax.functions.known import (
    MOST_KNOWN,
    SMALL,
    Known,
    Value,
    as_numpy,
    attrs_of,
    is_extended,
    is_symbolic,
    known,
    names_of,
    type_of,
)
from tidu_cli.adapters.jax.functions.operations import Operations
from tidu_cli.adapters.jax.functions.places import EquationError, Needs, called_at, needed, refusal
from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.recorder import Recorder
from tidu_cli.custom.packages import KNOWN
from tidu_cli.errors import LimitError, TiduError
from tidu_cli.graph.closed import MAX_GRAPH_NESTING, TOO_DEEP, ClosedGraph
from tidu_cli.graph.graph import Document
from tidu_cli.graph.types import ITEMSIZE


class Reader:
    """A reading in progress. `closed` has the graphs of loops and branches by their jaxprs, which are read once."""

    def __init__(self, recorder: Recorder, operations: Operations, around: Reader | None = None) -> None:
        self.recorder = recorder
        self.operations = operations
        self.around = around
        self.closed: dict[object, ClosedGraph] = around.closed if around else {}
        self.instead: Mapping[str, Any] = {}  # operations by the names of primitives, before those of the index
        self.kept: list[Any] = around.kept if around else []  # jaxprs, as they are known by their ids

    def document(self, name: str, outputs: Mapping[str, Array]) -> Document:
        """The document of what has been read."""
        return self.operations.settled(self.recorder.document(name, outputs))

    def run(self, jaxpr: Any, consts: Sequence[Any], operands: Sequence[Value], wanted: Sequence[bool] | None = None) -> list[Any]:
        """The results of a jaxpr, without those that are not wanted. Raises EquationError."""
        values: dict[Any, Value] = dict(zip(jaxpr.invars, operands, strict=True))
        values |= {v: known(c) for v, c in zip(jaxpr.constvars, consts, strict=True)}
        results = [v for k, v in enumerate(jaxpr.outvars) if wanted is None or wanted[k]]
        for equation, needs in needed(jaxpr, results):
            given = [known(v.val) if hasattr(v, "val") else values[v] for v in equation.invars]
            values.update(zip(equation.outvars, self._applied(equation, needs, given), strict=True))
        outputs = [known(v.val) if hasattr(v, "val") else values[v] for v in results]
        if wanted is None:
            return outputs
        rest = iter(outputs)
        return [next(rest) if is_wanted else None for is_wanted in wanted]

    def _applied(self, equation: Any, needs: Needs, given: list[Value]) -> Sequence[Any]:
        name = equation.primitive.name
        if needs is None:  # FACTORS
            return given
        try:
            call = CALLS.get(name)
            if call is not None:
                results: Sequence[Any] = call(Equation(self, equation, needs), *given)
                return results
            if all(type(x) is Known for x in given) and not _is_open(equation):
                return self.folded(equation, needs, given)
            return self._recorded(equation, needs, given)
        except EquationError as error:
            raise called_at(equation, error) from error.__cause__
        except LimitError:
            raise
        except TiduError as error:
            raise refusal(equation, error) from error

    def _recorded(self, equation: Any, needs: list[bool], given: list[Value]) -> Sequence[Any]:
        """The results of an equation as arrays."""
        name, arrays = equation.primitive.name, [self.lifted(x) for x in given]
        if name not in TAKE_KEYS and any(is_extended(v.aval) for v in (*equation.invars, *equation.outvars)):
            return of_keys(Equation(self, equation, needs), *arrays)
        operation = self.instead.get(name) or OPERATIONS.get(name)
        if operation is not None:
            result = operation(Equation(self, equation, needs), *arrays)
            return [result] if isinstance(result, Array) else result
        if name in REFUSED or name not in KNOWN.primitives:
            computed = of_package(Equation(self, equation, needs), *arrays) if name not in REFUSED else None
            if computed is not None:
                return computed
            raise refusal(equation, REFUSED.get(name, "no operation of a graph does this, and its operands are not known"))
        if name in SPREADING:
            shape = type_of(equation.outvars[0].aval).shape
            arrays = [spread(x, shape) for x in arrays]
        return self.recorder.emit_all(name, arrays, **(attrs_of(name, equation.params) if names_of(name) else {}))

    def folded(self, equation: Any, needs: list[bool], given: list[Any]) -> Sequence[Any]:
        """The results of an equation whose operands are known: constants, unless these take more than what computes them."""
        name, avals = equation.primitive.name, [v.aval for v in equation.outvars]
        if equation.effects:
            raise refusal(equation, REFUSED.get(name, "it has effects"))
        types = [type_of(a) for a in avals]
        size = sum(ITEMSIZE.get(t.dtype, 8) * math.prod(t.shape) for t in types)
        cost = sum(x.cost for x in given)
        reads = (name in KNOWN.primitives or name in OPERATIONS) and name not in REFUSED
        if max((math.prod(t.shape) for t in types), default=0) > MOST_KNOWN:
            if not reads:
                raise refusal(equation, f"no operation of a graph does this, and it has more than {MOST_KNOWN:,} elements to know")
            return self._recorded(equation, needs, given)

        def compute(*values: Any) -> Any:
            try:
                with equation.ctx.manager:
                    result = equation.primitive.bind(*values, **equation.params)
            except Exception as error:  # whatever JAX has to say
                reason = REFUSED.get(name) or f"JAX does not compute it: {' '.join(str(error).split())}"
                raise refusal(equation, reason) from error
            return result if equation.primitive.multiple_results else [result]

        # Loops within loops and branches may never run, and take as long as they please.
        waits = size > max(SMALL, cost) or (self.around is not None and name in LOOPS)
        if reads and waits and not any(map(is_extended, avals)):
            results = self._recorded(equation, needs, given)
            whole = Known.later(compute, given, results[0], cost)
            return [
                None if x is None else Known.later(lambda values, k=k: values[k], [whole], x, cost) for k, x in enumerate(results)
            ]
        return [known(x) for x in compute(*[x.value for x in given])]

    def lifted(self, x: Value) -> Array:
        """A value as an array of the recording."""
        if isinstance(x, Array):
            return x
        if x.array is None:
            x.array = self.recorder.constant(as_numpy(x.value))
        return x.array

    def choosing(self) -> Reader:
        """This reading, where kinks are choices."""
        reader = copy(self)
        reader.instead = CHOICES
        return reader

    def graph(self, jaxpr: Any, consts: Sequence[Any]) -> ClosedGraph:
        """A jaxpr as the graph of a loop or branch."""
        if id(jaxpr) not in self.closed:
            self.kept += [jaxpr, consts]
            self.closed[id(jaxpr)] = self.made(
                [type_of(v.aval) for v in jaxpr.invars], lambda inner, arrays: inner.run(jaxpr, consts, arrays)
            )
        return self.closed[id(jaxpr)]

    def made(self, types: Sequence[Any], compute: Any) -> ClosedGraph:
        """The graph of a loop or branch of inputs x0, x1, …, which `compute` makes of (a reader, arrays)."""
        inner = Reader(Recorder(self.operations.primitives), self.operations, self)
        arrays = [inner.recorder.argument(f"x{k}", t) for k, t in enumerate(types)]
        results = [inner.lifted(x) for x in compute(inner, arrays)]
        outputs = [(f"y{k}", x.value, x.type) for k, x in enumerate(results)]
        closed = ClosedGraph.of(inner.recorder.graph("", inner.recorder.inputs, range(len(types)), outputs))
        if closed.depth > MAX_GRAPH_NESTING:
            raise BuildError(TOO_DEEP)
        self.recorder.primitives = self.operations.primitives  # which may be more than before
        return closed


def _is_open(equation: Any) -> bool:
    """Whether results depend on symbolic dimensions, which are not known though they are no operands."""
    shapes = [getattr(v.aval, "shape", ()) for v in equation.outvars]
    return equation.primitive.name == "dim_as_value" or any(is_symbolic(n) for shape in shapes for n in shape)
