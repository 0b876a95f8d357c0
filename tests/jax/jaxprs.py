"""Graphs of jaxprs: what JAX traces, node for node, for comparisons of whole functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidu_cli.build.recorder import Recorder
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import dtype_name
from tidu_cli.lax.builtin import BUILTIN

INLINED = {
    "pjit": "jaxpr",
    "jit": "jaxpr",
    "closed_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
}
"""Calls, which stand for what is in them, with the parameter that holds it."""
OPS = frozenset(primitive.name for primitive in BUILTIN)


class NoSuchOpError(Exception):
    """A primitive of JAX that tidu has not got."""


def document_of(function: Any, *operands: Any) -> Document:
    """The graph of a function of JAX of these operands, with inputs x0, x1, ... and outputs y0, ... Raises NoSuchOpError."""
    import jax

    closed = jax.make_jaxpr(function)(*operands)
    recorder = Recorder()
    inputs = [recorder.input(Key(f"x{k}"), type_of(v.aval)) for k, v in enumerate(closed.jaxpr.invars)]
    outputs = _run(recorder, closed.jaxpr, [recorder.constant(np.asarray(c)) for c in closed.consts], inputs)
    return recorder.document("f", {f"y{k}": y for k, y in enumerate(outputs)})


def type_of(aval: Any) -> TensorType:
    return TensorType(dtype_name(aval.dtype), tuple(aval.shape))


def _run(recorder: Recorder, jaxpr: Any, constants: list[Any], inputs: list[Any]) -> list[Any]:
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *inputs], strict=True))

    def read(x: Any) -> Any:
        return recorder.constant(np.asarray(x.val, x.aval.dtype)) if hasattr(x, "val") else known[x]

    for equation in jaxpr.eqns:
        name, operands = equation.primitive.name, [read(x) for x in equation.invars]
        if name in INLINED:
            inner = equation.params[INLINED[name]]
            consts = [recorder.constant(np.asarray(c)) for c in inner.consts]
            found = _run(recorder, inner.jaxpr, consts, operands)
        elif name not in OPS:
            raise NoSuchOpError(name)
        else:
            found = list(recorder.emit_all(name, _of_one_shape(name, operands), **_attrs(name, equation.params)))
        known.update(zip(equation.outvars, found, strict=True))
    return [read(x) for x in jaxpr.outvars]


def _of_one_shape(op: str, operands: list[Any]) -> list[Any]:
    """Operands with axes of one element beside others, or with none, which JAX leaves as they are, broadcast."""
    if not BUILTIN[op].domain.one_type and op not in ("select_n", "eq", "ne", "lt", "le", "gt", "ge"):
        return operands
    shape = np.broadcast_shapes(*[x.shape for x in operands])
    return [x.broadcast(shape) for x in operands]


def _attrs(op: str, params: dict[str, Any]) -> dict[str, Any]:
    """The parameters that are attrs here, in their file form; the others are about compilation."""
    fields = BUILTIN[op].domain.attrs.__annotations__
    return {name: _plain(value) for name, value in params.items() if name in fields and value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_plain(x) for x in value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return dtype_name(np.dtype(value))
    return getattr(value, "name", value)
