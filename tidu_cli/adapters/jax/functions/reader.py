"""Jaxprs are read equation by equation: each becomes nodes of a recording, or, where it depends on no input, a known value.

The tables say which function reads which equation. Those that call jaxprs are read in the place of the call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from tidu_cli.adapters.jax.functions.arrays import ARRAYS, ELEMENTWISE, REDUCTIONS, SPREADING
from tidu_cli.adapters.jax.functions.equation import LOOPS, Equation, cond, spread
from tidu_cli.adapters.jax.functions.jaxpr import (
    MOST_KNOWN,
    REFUSED,
    SMALL,
    EquationError,
    Known,
    Needs,
    Value,
    as_numpy,
    attrs_of,
    called_at,
    is_extended,
    is_symbolic,
    known,
    names_of,
    needed,
    refusal,
    type_of,
)
from tidu_cli.adapters.jax.functions.library import CHOICES, own, sinc_call
from tidu_cli.adapters.jax.functions.matrices import MATRICES, custom_linear_solve
from tidu_cli.adapters.jax.functions.operations import NoDerivativeError, Operations, takes_bits
from tidu_cli.adapters.jax.functions.random import RANDOM, of_keys, random_gamma
from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.recorder import Recorder
from tidu_cli.custom.packages import KNOWN
from tidu_cli.errors import LimitError, TiduError
from tidu_cli.graph.closed import MAX_GRAPH_NESTING, TOO_DEEP, ClosedGraph
from tidu_cli.graph.graph import Document
from tidu_cli.graph.types import ITEMSIZE


def called(eq: Equation, *operands: Value) -> Sequence[Any]:
    """The jaxpr that an equation stands for, whatever the param is called."""
    if eq.reader.operations.always and not all(type(x) is Known for x in operands) and (sinc := sinc_call(eq)):
        return sinc(*operands)  # type: ignore[no-any-return]
    inner = next((eq.params[name] for name in ("jaxpr", "call_jaxpr", "fun_jaxpr", "call", "callee") if name in eq.params), None)
    if inner is None:
        raise eq.refused("it tells no jaxpr that it stands for")
    return eq.run(inner, operands, eq.needs)


def with_rule(eq: Equation, *operands: Value) -> Sequence[Any]:
    """A function that defines its derivative: as it is computed, or as an operation of the document.

    It is one unless that is not wanted, and also then where the derivative of what is computed is lost; there what has no rule that
    a graph can have is read as it is computed if only loops are in the way, of which forward mode knows the derivative. JAX's own
    functions become nodes that have the derivative. A rule that raises says none that could be kept: it guards what nothing moves.
    """
    reader = eq.reader
    if type(operands[0]) is not Known and _is_determinant(eq):
        return [eq.lifted(operands[0]).emit("det")]
    if all(type(x) is Known for x in operands) or not reader.operations.wants(eq.equation):
        return called(eq, *operands)
    if nodes := own(eq):
        return nodes(*operands)
    before = set(reader.closed)
    try:
        name = reader.operations.named(eq.equation, lambda types, compute: reader.made(types, compute).graph)
    except TiduError as error:
        for jaxpr in reader.closed.keys() - before:  # their graphs have operations that are defined no more
            del reader.closed[jaxpr]
        if isinstance(error, NoDerivativeError):
            return called(eq, *operands)
        if not reader.operations.always and not takes_bits(eq.params["call_jaxpr"].jaxpr):
            return called(eq, *operands)
        instead = "; rules=False (--no-rules) derives what it computes" if reader.operations.always else ""
        raise eq.refused(f"its rule cannot be written as a graph: {error}{instead}") from error
    reader.recorder.primitives = reader.operations.primitives
    return eq.emit_all(name, *[eq.lifted(x) for x in operands])


def _is_determinant(eq: Equation) -> bool:
    """Whether it is jax.numpy.linalg.det, which computes nothing else but has a rule: of it that of a primitive knows more."""
    source = eq.params["call_jaxpr"].jaxpr.debug_info.func_src_info or ""
    return source.startswith("_det at ") and "jax/_src/numpy/linalg.py" in source.replace("\\", "/")


def same(eq: Equation, *operands: Value) -> Sequence[Any]:
    """Equations that say where or how, and not what."""
    return operands


def of_package(eq: Equation, *operands: Value) -> Sequence[Any] | None:
    """An equation that another package defines, by the function of JAX that it says computes it; None if it names none."""
    compute = eq.equation.primitive.impl
    if (getattr(compute, "__module__", None) or "jax").partition(".")[0] in ("jax", "functools"):
        return None
    return eq.traced(partial(compute, **eq.params), *operands)


def platform(eq: Equation) -> Sequence[Any]:
    """The number of the branch for the CPU: the one that is written for all platforms, or for this one."""
    platforms = eq.params["platforms"]
    numbers = [k for k, some in enumerate(platforms) if some is None or "cpu" in some]
    if not numbers:
        raise eq.refused("it has no branch for the CPU")
    return [known(np.int32(numbers[0]))]


CALLS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(
        ("jit", "pjit", "closed_call", "call", "core_call", "eval_jaxpr", "remat2", "checkpoint", "remat_opt", "composite",
         "custom_vmap_call", "linear_call"), called),
    **dict.fromkeys(("custom_jvp_call", "custom_vjp_call"), with_rule),
    **dict.fromkeys(
        ("device_put", "sharding_constraint", "layout_constraint", "reshard", "name", "pvary", "random_clone"), same),
    "platform_index": platform,
    "custom_linear_solve": custom_linear_solve,
    "cond": cond,
    "random_gamma": random_gamma,
}  # fmt: skip
"""Equations that are read whether their operands are known or not, by the names of their primitives: from values to values."""


def _dim_as_value(eq: Any) -> Any:
    from tidu_cli.adapters.jax.dims import as_value  # which functions of fixed sizes do without

    return as_value(eq)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "dim_as_value": _dim_as_value,
    **ELEMENTWISE,
    **ARRAYS,
    **LOOPS,
    **RANDOM,
    **REDUCTIONS,
    **MATRICES,
}
"""Those that take arrays and give arrays. All others are operations of graphs of the same name."""

TAKE_KEYS = frozenset({*LOOPS, *RANDOM})
"""Of those, what keys of random numbers may be operands of; all others only arrange them, `of_keys`."""


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
