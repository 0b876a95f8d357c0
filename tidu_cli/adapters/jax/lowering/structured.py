"""What is made of more than arrays of numbers: graphs, the loops and branches that hold some, records, and times.

Graphs are functions that run node by node, without recursion, and a value is let go once the last node that reads it has run. So
are the graphs that loops and branches hold, which JAX traces.

Records are dicts of their fields by name, tuples are tuples, as JAX's transforms take them. What NumPy computes of them field by
field is computed by the same kernels, of jax.numpy, which have records as tuples of fields.

Datetimes and durations are counts; here is where those are not simply numbers, as in other units, or where NaT is. NaT is the least
of all counts, and among datetimes what NaN is among floats. Less 1, modulo 2^64, counts are in the same order but for NaT, which is
the greatest then: so it wins as a maximum, and comes last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from tidu_cli.adapters.jax.lowering import primitives
from tidu_cli.errors import MissingRuleError, placed
from tidu_cli.graph.closed import ClosedGraph, forwards
from tidu_cli.graph.graph import Case, Graph
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.text import NOT_A_TIME
from tidu_cli.graph.types import DATETIMES, TIMES, RecordType, TensorType, Type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import Types

Function = Callable[..., tuple[Any, ...]]


def graph_function(graph: Graph, function_of: Callable[[Case], Function]) -> Function:
    """The function of a self-contained graph, from its inputs in order to its outputs; `function_of` a case is asked for once.

    Outputs that are structural zeros are None. Raises MissingRuleError naming the node of a case that has no function.
    """
    functions: dict[int, Function] = {}
    for node, code in enumerate(graph.code):
        if code not in functions:
            functions[code] = _function(graph, node, function_of)
    outputs = [o.value for o in graph.outputs]
    steps = [(functions[code], reads, dying) for code, reads, dying in _with_last_uses(graph)]

    def run(*inputs: Any) -> tuple[Any, ...]:
        values: list[Any] = list(inputs)
        for function, reads, dying in steps:
            values += function(*[values[k] for k in reads])
            for k in dying:
                values[k] = None
        return tuple([None if k is None else values[k] for k in outputs])

    return run


def _function(graph: Graph, node: int, function_of: Callable[[Case], Function]) -> Function:
    try:
        return function_of(graph.case(node))
    except MissingRuleError as error:
        raise MissingRuleError(placed(graph.describe(node), error)) from None


def _with_last_uses(graph: Graph) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """Of each node its code, what it reads, and the values that nothing needs after it."""
    nodes = list(forwards(graph, graph.args))
    live = bytearray(graph.n_values)
    for o in graph.outputs:
        if o.value is not None:
            live[o.value] = 1
    steps = []
    for code, reads, first, end in reversed(nodes):
        dying = [k for k in range(first, end) if not live[k]]
        for k in reads:
            if not live[k]:
                live[k] = 1
                dying.append(k)
        steps.append((code, reads, tuple(dying)))
    steps.reverse()
    return steps


OfGraph = Callable[[ClosedGraph], Callable[..., tuple[Any, ...]]]


def _scan(attrs: Any, of_graph: OfGraph) -> Callable[..., Any]:
    body, n, n_carry, length = of_graph(attrs.body), attrs.num_consts, attrs.num_carry, attrs.length
    if isinstance(length, OpenSize):
        from tidu_cli.adapters.jax.dims import dim_of  # which functions of fixed sizes do without

        length = dim_of(length)

    def scan(*operands: Any) -> Any:
        consts, carry, slices = operands[:n], operands[n : n + n_carry], operands[n + n_carry :]

        scanned, steps = slices, length
        if isinstance(attrs.length, OpenSize):  # which lax.scan takes from arrays alone
            scanned, steps = slices or (jnp.zeros((length,), bool),), None

        def step(carry: Any, rows: Any) -> Any:
            values = body(*consts, *carry, *rows[: len(slices)])
            return values[:n_carry], values[n_carry:]

        carry, stacked = lax.scan(step, carry, scanned, steps, attrs.reverse)
        return (*carry, *stacked)

    return _compiled(scan)


def _while(attrs: Any, of_graph: OfGraph) -> Callable[..., Any]:
    condition, body = of_graph(attrs.condition), of_graph(attrs.body)

    def loop(*operands: Any) -> Any:
        of_condition, of_body, carry = attrs.split(operands)
        return lax.while_loop(lambda c: condition(*of_condition, *c)[0], lambda c: body(*of_body, *c), tuple(carry))

    return _compiled(loop)


def _cond(attrs: Any, of_graph: OfGraph) -> Callable[..., Any]:
    branches = [of_graph(branch) for branch in attrs.branches]
    last = len(branches) - 1

    def choose(index: Any, *operands: Any) -> Any:
        if index.dtype.kind == "b":
            index = index.astype(np.int32)
        elif index.dtype != np.int32:  # to which lax.switch would convert it before it clamps it
            index = jnp.clip(index, 0, min(last, np.iinfo(index.dtype).max)).astype(np.int32)
        return lax.switch(index, branches, *operands)

    return _compiled(choose)


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which JAX would compile at every call outside of a trace, as its closures are new ones."""
    once = jax.jit(function)

    def called(*operands: Any) -> Any:
        traced = any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(operands))
        return function(*operands) if traced else once(*operands)

    return called


LOOPS_AND_BRANCHES = {"scan": _scan, "while": _while, "cond": _cond}
"""By op, of attrs and what makes functions of the graphs in them."""

_OF_VECTORS = ("add", "sub", "neg", "mul", "div")


def record_function(case: Case) -> Callable[..., Any] | None:
    """The function of a case that has to do with records, or joins vectors of different types; None of others."""
    if case.op == "record":
        return _record(case)
    if case.op == "field":
        name = cast(Any, case.attrs).name
        return lambda value: value[int(name)] if isinstance(value, tuple) else value[name]
    types = {*case.operands, *case.results}
    if case.op in ("difference", "retract"):
        (first, *others) = types
        plain = not others and isinstance(first, TensorType) and first.inexact
        return (lax.sub if case.op == "difference" else lax.add) if plain else of_kernel(case)
    # What vectors have, of records and of tangents of different types.
    is_vector = case.op in _OF_VECTORS and (len(types) > 1 or isinstance(case.results[0], RecordType))
    return of_kernel(case) if is_vector or case.op == "add_cotangents" else None


def of_kernel(case: Case) -> Callable[..., Any]:
    """What NumPy's kernel of a built-in primitive computes, if it uses functions that jax.numpy has, too."""
    operands, results = cast(Types, case.operands), cast(Types, case.results)
    kernel = BUILTIN[case.op].evaluation.kernel(jnp, case.attrs, operands, results)

    def call(*values: Any) -> Any:
        return pytree(results[0], kernel(*[fields(t, x) for t, x in zip(operands, values, strict=True)]))

    return call


def _record(case: Case) -> Callable[..., Any]:
    attrs = cast(Any, case.attrs)
    type_, names = attrs.type, attrs.names

    def put_together(*values: Any) -> Any:
        given = dict(zip(names, values, strict=True))
        return made(type_, [given[name] if name in given else zeros(t) for name, t in type_.fields])

    return put_together


def zeros(type_: Type) -> Any:
    """The zero of a type of tangents."""
    if isinstance(type_, TensorType):
        return jnp.zeros(type_.shape, numpy_dtype(jnp, type_.dtype))
    return made(type_, [zeros(t) for _, t in type_.fields])


def fields(type_: Type, value: Any) -> Any:
    """A value as kernels have it: a record as the tuple of its fields in order."""
    if isinstance(type_, TensorType):
        return value
    parts = value if isinstance(value, tuple) else [value[name] for name in type_.names]
    return tuple([fields(t, part) for (_, t), part in zip(type_.fields, parts, strict=True)])


def pytree(type_: Type, value: Any) -> Any:
    """A value of kernels as JAX has it. None stands for a zero in them."""
    if isinstance(type_, TensorType):
        return value
    given = (None,) * len(type_.fields) if value is None else value
    parts = [zeros(t) if part is None else pytree(t, part) for (_, t), part in zip(type_.fields, given, strict=True)]
    return made(type_, parts)


def made(type_: RecordType, parts: list[Any]) -> Any:
    """The pytree of a record with these fields, in order."""
    return tuple(parts) if type_.is_tuple else dict(zip(type_.names, parts, strict=True))


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_FIRST: dict[str, Callable[..., Any]] = {
    "max": lambda attrs, x, y: lax.max(x, y),
    "reduce_max": lambda attrs, x: lax.reduce_max(x, **attrs),
    "cummax": lambda attrs, x: lax.cummax(x, **attrs),
    "argmax": primitives.FUNCTIONS["argmax"],
    "sort": primitives.FUNCTIONS["sort"],
    "top_k": primitives.FUNCTIONS["top_k"],
    "scatter-max": primitives.FUNCTIONS["scatter-max"],
}
"""The functions in which NaT is to be the greatest."""


def time_function(case: Case) -> Callable[..., Any] | None:
    """The function of a case of times that is not the function of their counts; None of others."""
    dtypes = [t.dtype for t in (*case.operands, *case.results) if isinstance(t, TensorType)]
    if not any(dtype in TIMES for dtype in dtypes):
        return None
    attrs = dict(cast(Any, case.attrs))
    if case.op == "convert_element_type":
        return _converted(case, *dtypes)
    if not DATETIMES.intersection(dtypes):
        return None
    if case.op == "sub":
        return of_kernel(case)
    if case.op in _COMPARISONS:
        return lambda x, y: _compared(case.op, x, y)
    if case.op == "clamp":
        return lambda low, x, high: jnp.where(_none(low) | _none(x) | _none(high), NOT_A_TIME, lax.clamp(low, x, high))
    called = _FIRST.get(case.op)
    return None if called is None else _with_none_greatest(case, lambda *xs: called(attrs, *xs))


def _converted(case: Case, old: str, new: str) -> Callable[..., Any]:
    """Conversions of times: of their counts as they are, but where datetimes may be NaT, or units differ."""
    if old == new:
        return lambda x: x
    if (old in TIMES and new in TIMES) or DATETIMES & {old, new}:
        return of_kernel(case)
    attrs = dict(cast(Any, case.attrs))
    return lambda x: primitives.convert(attrs, x)


def _compared(op: str, x: Any, y: Any) -> Any:
    either, truth = _none(x) | _none(y), getattr(lax, op)(x, y)
    return truth | either if op == "ne" else truth & ~either


def _none(x: Any) -> Any:
    return jnp.equal(x, NOT_A_TIME)


def _with_none_greatest(case: Case, compute: Callable[..., Any]) -> Callable[..., Any]:
    taken, given = ([isinstance(t, TensorType) and t.dtype in DATETIMES for t in types] for types in (case.operands, case.results))

    def ordered(*values: Any) -> Any:
        outcome = compute(*[x - 1 if time else x for x, time in zip(values, taken, strict=True)])
        results = outcome if isinstance(outcome, tuple | list) else (outcome,)
        return tuple([y + 1 if time else y for y, time in zip(results, given, strict=True)])

    return ordered
