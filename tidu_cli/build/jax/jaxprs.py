"""jaxprs as graphs: an equation is a node of the same name, with those of its params that are attrs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from tidu_cli.custom.packages import KNOWN
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import CaseTable, Document, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import dtype_name, numpy_dtype
from tidu_cli.rules.attrs.fields import field_names
from tidu_cli.rules.recording.graphs import recorded
from tidu_cli.rules.recording.trace import Trace
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

NAMES = {"pjit": "", "jit": "", "closed_call": "", "custom_jvp_call": "", "custom_vjp_call": "", "custom_vjp_call_jaxpr": ""}
"""Equations that stand for the jaxpr in them."""

RENAMED = {
    "scan": {"jaxpr": "body"},
    "while": {"cond_nconsts": "cond_consts", "body_nconsts": "body_consts", "cond_jaxpr": "condition", "body_jaxpr": "body"},
}
"""Params of which attrs have another name."""


# fmt: off
SPREADING = frozenset({
    "add", "sub", "mul", "div", "max", "min", "pow", "rem", "atan2", "nextafter", "eq", "ne", "lt", "le", "gt", "ge",
    "lt_to", "le_to", "and", "or", "xor", "add_any", "zeta", "polygamma", "igamma", "igammac", "regularized_incomplete_beta",
})
# fmt: on
"""Equations that take scalars beside arrays."""


class NoSuchOpError(Exception):
    """An equation that tidu has no primitive for."""


def document_of(function: Callable[..., Any], *args: Any) -> Document:
    """The jaxpr of a function at these arguments, as a document with inputs x0, x1, … and outputs y0, y1, …."""
    closed = jax.make_jaxpr(function)(*args)
    graph = graph_of(closed.jaxpr, closed.consts)
    return Document((graph,), graph.cases)


def graph_of(jaxpr: Any, consts: Sequence[Any]) -> Graph:
    """A jaxpr as a graph."""
    trace = Trace(KNOWN, CaseTable(KNOWN))
    types = [_type(v.aval) for v in jaxpr.invars]
    sources = [trace.source(t, linear=False) for t in types]
    results = _emitted(trace, jaxpr, consts, sources)
    inputs = [Input(Key(f"x{k}"), t) for k, t in enumerate(types)]
    return recorded(trace, "f", inputs, [Output(Key(f"y{k}"), r.slot, r.value_type) for k, r in enumerate(results)])


def _emitted(trace: Trace, jaxpr: Any, consts: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
    values: dict[Any, Any] = dict(zip(jaxpr.invars, operands, strict=True))
    values |= {v: _constant(trace, c, v.aval) for v, c in zip(jaxpr.constvars, consts, strict=True)}

    def read(atom: Any) -> Any:
        return values[atom] if not hasattr(atom, "val") else _constant(trace, atom.val, atom.aval)

    solves = any(equation.primitive.name == "custom_linear_solve" for equation in jaxpr.eqns)
    for equation in jaxpr.eqns:
        given = [read(v) for v in equation.invars]
        name = SAME.get(equation.primitive.name, equation.primitive.name)
        if name in WRITTEN_OUT and (name != "while" or equation.params["cond_jaxpr"].out_avals[0].shape):
            found = WRITTEN_OUT[name](trace, equation.params, given)
        elif name == "stop_gradient" and solves:  # of the factors of a system, which is differentiated by its solution
            found = given
        elif name in NAMES or name not in KNOWN.primitives:
            inner = next((equation.params[p] for p in ("jaxpr", "call_jaxpr", "fun_jaxpr") if p in equation.params), None)
            if inner is None:
                raise NoSuchOpError(name)
            found = _emitted(trace, getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), given)
        else:
            if name == "select_n" and given[0].type.dtype == "i64":
                given[0] = trace.emit("convert_element_type", given[0], new_dtype="i32")
            if equation.primitive.name in SPREADING:
                shape = equation.outvars[0].aval.shape
                given = [_spread(trace, t, shape) for t in given]
            found = trace.emit_all(name, *given, **_attrs(name, equation.params))
        values.update(zip(equation.outvars, found, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _spread(trace: Trace, x: Any, shape: tuple[int, ...]) -> Any:
    """An array of this shape of a scalar, or of one with axes of one element."""
    if x.type.shape == shape:
        return x
    return trace.emit("broadcast_in_dim", x, shape=shape, broadcast_dimensions=tuple(range(x.type.rank)))


def _solved(trace: Trace, params: dict[str, Any], given: Sequence[Any]) -> list[Any]:
    """A linear system by the jaxpr that solves it."""
    lengths = params["const_lengths"]
    first = lengths.matvec + lengths.vecmat
    solve = params["jaxprs"].solve
    end = first + lengths.solve + lengths.transpose_solve
    return _emitted(trace, solve.jaxpr, solve.consts, [*given[first : first + lengths.solve], *given[end:]])


def _platform(trace: Trace, params: dict[str, Any], given: Sequence[Any]) -> list[Any]:
    """The number of the branch for the CPU."""
    platforms = params["platforms"]
    number = next(k for k, some in enumerate(platforms) if some is None or "cpu" in some)
    return [trace.full(number, TensorType("i32"))]


def _stacked(trace: Trace, params: dict[str, Any], given: Sequence[Any]) -> list[Any]:
    axis = params["axis"]
    shape = given[0].type.shape
    parts = [trace.emit("reshape", x, new_sizes=(*shape[:axis], 1, *shape[axis:])) for x in given]
    return [trace.emit("concatenate", *parts, dimension=axis)]


def _batched_while(trace: Trace, params: dict[str, Any], given: Sequence[Any]) -> list[Any]:
    """A loop with a condition for each item: as long as one holds, and items for which it does not are held."""
    n, m = params["cond_nconsts"], params["body_nconsts"]
    test, step = params["cond_jaxpr"], params["body_jaxpr"]
    types = [t.type for t in given]

    def made(types: Sequence[TensorType], emit: Callable[[Trace, list[Any]], list[Any]]) -> ClosedGraph:
        inner = Trace(KNOWN, CaseTable(KNOWN))
        terms = [inner.source(t, linear=False) for t in types]
        outputs = [Output(Key(f"y{k}"), t.slot, t.type) for k, t in enumerate(emit(inner, terms))]
        return ClosedGraph.of(recorded(inner, "", [Input(Key(f"x{k}"), t) for k, t in enumerate(types)], outputs))

    def condition(inner: Trace, terms: list[Any]) -> list[Any]:
        (go_on,) = _emitted(inner, test.jaxpr, test.consts, terms)
        return [inner.emit("reduce_or", go_on, axes=tuple(range(go_on.type.rank)))]

    def body(inner: Trace, terms: list[Any]) -> list[Any]:
        old = terms[n + m :]
        (go_on,) = _emitted(inner, test.jaxpr, test.consts, [*terms[:n], *old])
        axes = {"broadcast_dimensions": tuple(range(go_on.type.rank))}
        new = _emitted(inner, step.jaxpr, step.consts, terms[n:])
        each = [inner.emit("broadcast_in_dim", go_on, shape=t.type.shape, **axes) for t in old]
        return [inner.emit("select_n", which, a, b) for which, a, b in zip(each, old, new, strict=True)]

    attrs = {"cond_consts": n, "body_consts": n + m}
    graphs = {"condition": made([*types[:n], *types[n + m :]], condition), "body": made(types, body)}
    return list(trace.emit_all("while", *given[:n], *given, **attrs, **graphs))


SAME = {"add_any": "add", "lt_to": "lt", "le_to": "le"}
"""Equations that are another where no number is NaN."""

WRITTEN_OUT: dict[str, Callable[[Trace, dict[str, Any], Sequence[Any]], list[Any]]] = {
    "custom_linear_solve": _solved,
    "platform_index": _platform,
    "stack": _stacked,
    "while": _batched_while,
}
"""Equations that are several nodes; of whiles, those with a condition for each item of a batch."""


def _attrs(name: str, params: dict[str, Any]) -> dict[str, Any]:
    names = field_names(KNOWN[name].domain.attrs)
    renamed = RENAMED.get(name, {})
    given = {renamed.get(k, k): v for k, v in params.items()}
    found = {k: _plain(v) for k, v in given.items() if k in names}
    if isinstance(found.get("mode"), str):
        found["mode"] = found["mode"].lower().removesuffix("_or_drop")
    return found


def _plain(value: Any) -> Any:
    if hasattr(value, "jaxpr"):
        return ClosedGraph.of(graph_of(value.jaxpr, value.consts))
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        return tuple(_plain(v) for v in value)
    if hasattr(value, "_asdict"):
        return {k: _plain(v) for k, v in value._asdict().items()}
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return dtype_name(np.dtype(value))
    if isinstance(value, np.integer):
        return int(value)
    if hasattr(value, "name") and not isinstance(value, str):
        return str(value.name)
    return value


def _type(aval: Any) -> TensorType:
    return TensorType(dtype_name(np.dtype(aval.dtype)), tuple(aval.shape))


def _constant(trace: Trace, value: Any, aval: Any) -> Any:
    type_ = _type(aval)
    return trace.emit(
        "constant", value=Literal(type_, np.ascontiguousarray(np.asarray(value, numpy_dtype(np, type_.dtype))).tobytes())
    )


def compared(
    function: Callable[..., Any], *args: Any, reverse: bool = True, second: bool = True, forward: bool = True
) -> dict[str, float]:
    """How far values, JVP, VJP and HVP of a function by tidu and by JAX are apart, relative to the largest number."""
    rng = np.random.default_rng(3)
    document = document_of(function, *args)
    keys = [i.key for i in document.head.inputs if i.type.inexact]
    args = [np.asarray(a) for a in args]
    values = {i.key: a for i, a in zip(document.head.inputs, args, strict=True)}
    if not forward:
        return {"value": _distance(_run(document, values), jax.tree.leaves(function(*args)))}
    active = [a.dtype.kind in "fc" for a in args]
    tangents = [_like(rng, a) if act else np.zeros(a.shape, jax.dtypes.float0) for a, act in zip(args, active, strict=True)]
    primal, moved = jax.jvp(function, tuple(args), tuple(tangents))
    primal, moved = (jax.tree.leaves(some) for some in (primal, moved))
    linear = linearize(document, keys)
    given = {k.tangent(1): t for k, t, a in zip([i.key for i in document.head.inputs], tangents, active, strict=True) if a}
    found = {"value": _distance(_run(document, values), primal)}
    found["jvp"] = _distance(_run(linear, values | given), moved)
    if reverse:
        cotangents = [_like(rng, np.asarray(y)) for y in primal]
        turned = transpose(linear)
        cts = {o.key.cotangent(1): np.asarray(c) for o, c in zip(document.head.outputs, cotangents, strict=True)}

        def back(*xs: Any) -> Any:
            _, vjp = jax.vjp(lambda *ys: jax.tree.leaves(function(*ys)), *xs)
            pulled = vjp([_conj(c) for c in cotangents])
            return [_conj(g) for g, a in zip(pulled, active, strict=True) if a]

        found["vjp"] = _distance(_run(turned, values | cts), back(*args))
        if second:
            _, hvp = jax.jvp(back, tuple(args), tuple(tangents))
            again = linearize(turned, keys)
            given = {Key(k.name, (2,)): t for k, t in given.items()}
            found["hvp"] = _distance(_run(again, values | cts | given), hvp)
    return found


def _conj(x: Any) -> Any:
    return jax.numpy.conj(x) if jax.numpy.iscomplexobj(x) else x


def _like(rng: Any, x: Any) -> Any:
    if x.dtype.kind not in "fc":
        return np.zeros(x.shape, jax.dtypes.float0)
    drawn = rng.standard_normal(x.shape)
    return np.asarray(drawn + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else drawn, x.dtype)


def _run(document: Document, values: dict[Key, Any]) -> list[Any]:
    from tidu_cli.runtime.evaluate import evaluate

    graph = materialize(document).head
    found = evaluate(graph, {i.key: values[i.key] for i in graph.inputs if i.key in values})
    return [found[o.key] for o in graph.outputs]


def _distance(ours: Sequence[Any], theirs: Sequence[Any]) -> float:
    worst = 0.0
    for a, b in zip(ours, map(np.asarray, theirs), strict=True):
        if b.dtype == jax.dtypes.float0:
            continue
        scale = max(1.0, float(np.max(np.abs(b), initial=0)))
        worst = max(
            worst,
            float(np.max(np.abs(np.asarray(a, b.dtype) - b), initial=0)) / scale if b.dtype.kind in "fc" else float(np.any(a != b)),
        )
    return worst
