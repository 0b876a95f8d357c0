"""A graph as a function for users of JAX: inputs as they come are checked against the declared types, also in traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from tidu_cli.adapters.jax.lowering.functions import document_function
from tidu_cli.adapters.jax.lowering.structured import made, zeros
from tidu_cli.errors import EvaluationError, UnknownNameError, counted, did_you_mean
from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.graph import Graph, Input
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.open_sizes import names_in
from tidu_cli.graph.select import listed
from tidu_cli.graph.types import RecordType, TensorType, Type, leaves, storage_dtype
from tidu_cli.lax.arrays.structural import dtype_name, numpy_dtype
from tidu_cli.runtime.inputs import is_zero_seed, record_fields, value_of_input
from tidu_cli.runtime.sizing import as_given, sizes_given

_DIGITS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53, "c64": 24, "c128": 53}
"""The binary digits of floats, the leading one included, and of the parts of complex numbers."""


def jax_callable(graph: Graph) -> Callable[..., Any]:
    """The function of a self-contained graph: see `tidu_cli.to_jax`. Raises MissingRuleError for what only NumPy computes."""
    if names_in(graph):
        return _of_each_shape(graph)
    function, needed = document_function(graph), _needed(graph)
    outputs = [(str(o.key), o.type) for o in graph.outputs]
    wide = _wide_type(graph)

    def call(*args: Any, **named: Any) -> Any:
        if wide and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
            raise EvaluationError(f'{wide} has 64 bits, which JAX does not: call jax.config.update("jax_enable_x64", True) before')
        given = _given(graph, args, named)
        missing = [f"{i.key}: {i.type}" for i in graph.inputs if i.key in needed and i.key not in given]
        if missing:
            raise EvaluationError(f"missing inputs: {', '.join(missing)}; give them in order, by name, or in a dict by key")
        values = [_value(i.key, i.type, given[i.key]) if i.key in needed else None for i in graph.inputs]
        results = [zeros(t) if y is None else y for (_, t), y in zip(outputs, function(*values), strict=True)]
        return results[0] if len(results) == 1 else {name: y for (name, _), y in zip(outputs, results, strict=True)}

    return _described(call, graph)


def _of_each_shape(graph: Graph) -> Callable[..., Any]:
    """Likewise, of a graph with open sizes: a function for all sizes that inputs have, of which the last ones are kept."""
    kept: dict[tuple[tuple[str, int], ...], Callable[..., Any]] = {}

    def call(*args: Any, **named: Any) -> Any:
        given = _given(graph, args, named)
        for key, value in given.items():
            if not all(isinstance(n, int) for n in getattr(value, "shape", ())):
                raise EvaluationError(f"input {key} has a symbolic dimension; the function is for arrays whose sizes are numbers")
        numbers = tuple(sorted(sizes_given(graph.inputs, given).items()))
        function = kept.pop(numbers, None) or jax_callable(as_given(graph, given))
        kept[numbers] = function
        while len(kept) > KEPT:
            kept.pop(next(iter(kept)), None)
        return function(given)

    return _described(call, graph)


KEPT = 64
"""A function of open sizes keeps what was made of it for this number of sizes: those seen last."""


def _described(call: Callable[..., Any], graph: Graph) -> Callable[..., Any]:
    call.__name__ = call.__qualname__ = graph.name or "graph"
    ports = (", ".join(f"{port.key}: {port.type}" for port in ports) for ports in (graph.inputs, graph.outputs))
    call.__doc__ = " -> ".join(ports)
    return call


def _needed(graph: Graph) -> set[Key]:
    """The inputs that something reads."""
    read = {*graph.args, *(o.value for o in graph.outputs)}
    return {i.key for k, i in enumerate(graph.inputs) if k in read}


def _wide_type(graph: Graph) -> str:
    """What of a graph has 64 bits, as messages tell it: an input or a result of some op; "" if there is nothing."""
    for i in graph.inputs:
        if _is_wide(i.type):
            return f"input {i.key}: {i.type}"
    for case in cases_within([graph.cases[code] for code in dict.fromkeys(graph.code)]):
        for t in (*case.operands, *case.results):
            if t is not None and _is_wide(t):
                return f"a {case.op} of {t}"
    return ""


def _is_wide(type_: Type) -> bool:
    return any(storage_dtype(leaf.dtype) in ("i64", "u64", "f64", "c128") for _, leaf in leaves(type_))


# Arguments.


def _given(graph: Graph, args: Sequence[Any], named: Mapping[str, Any]) -> dict[Key, Any]:
    """What is given, by key. Raises EvaluationError, and UnknownNameError for a name that is no input's."""
    inputs = graph.inputs
    known = [str(i.key) for i in inputs]
    if len(args) == 1 and isinstance(args[0], Mapping) and not _is_record(inputs[:1], args[0]):
        given = {k if isinstance(k, Key) else parse_key(str(k)): x for k, x in args[0].items()}
    else:
        if len(args) > len(inputs):
            raise EvaluationError(
                f"{graph.name or 'the graph'} takes {counted(len(inputs), 'input')} ({listed(known)}), got {len(args)}"
            )
        given = {i.key: x for i, x in zip(inputs, args, strict=False)}
    for name, value in named.items():
        key = parse_key(name)
        if name not in known:
            raise UnknownNameError(f"no input '{name}'{did_you_mean(name, known)} (inputs: {listed(known)})")
        if key in given:
            raise EvaluationError(f"input {name} is given twice, by position and by name")
        given[key] = value
    return given


def _is_record(first: Sequence[Input], value: Mapping[Any, Any]) -> bool:
    """Whether a dict is the first input, a record, and not a dict of inputs by key."""
    return any(isinstance(i.type, RecordType) and set(value) <= set(i.type.names) and str(i.key) not in value for i in first)


# Values.


def _value(key: Key, type_: Type, value: Any) -> Any:
    if is_zero_seed(key, type_, value):
        return zeros(type_)
    return _converted(f"input {key}", key, type_, value)


def _converted(place: str, key: Key, type_: Type, value: Any) -> Any:
    """What a user gave as an array of JAX of its declared type, or a pytree of such. Raises EvaluationError."""
    if isinstance(type_, RecordType):
        given = record_fields(place, type_, value)
        missing = [name for name in type_.names if name not in given]
        if missing and not type_.inexact:
            raise EvaluationError(f"{place}.{missing[0]}: missing; {type_.get(missing[0])} is due")
        parts = [
            zeros(t) if given.get(name) is None and type_.inexact else _converted(f"{place}.{name}", key, t, given[name])
            for name, t in type_.fields
        ]
        return made(type_, parts)
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in "mMOSUV":
        value = jnp.asarray(value)  # as JAX does: without x64, what has 64 bits gets 32
    if not isinstance(value, jax.Array):
        return jnp.asarray(value_of_input(key, type_, value))  # numbers, lists, and times of NumPy
    return _cast(place, type_, value)


def _cast(place: str, type_: TensorType, x: jax.Array) -> Any:
    """An array of JAX in the declared dtype, if no digit is lost, or it is a Python number: then it has the dtype that is due."""
    due = numpy_dtype(np, type_.dtype)
    if x.shape == type_.shape and isinstance(x.dtype, np.dtype):
        if x.dtype == due and not x.weak_type:
            return x
        if _fits(x.dtype, due) or (x.weak_type and _KINDS.find(x.dtype.kind) <= _KINDS.find(_kind(due))):
            return lax.convert_element_type(x, due)
    given = TensorType(dtype_name(x.dtype) if isinstance(x.dtype, np.dtype) else str(x.dtype), x.shape)
    raise EvaluationError(f"{place}: expected {type_}, got {given}; nothing is broadcast, or converted where digits may be lost")


_KINDS = "iufc"
"""The kinds of numbers that Python has, which are weak: none becomes one of those before it."""


def _kind(dtype: Any) -> str:
    return "f" if dtype.kind == "V" else str(dtype.kind)  # bf16


def _fits(given: Any, due: Any) -> bool:
    """Whether all values of one dtype are values of the other."""
    if given.kind in "iu" and _kind(due) in "fc":
        return int(8 * given.itemsize - (given.kind == "i")) <= _DIGITS[dtype_name(due)]
    return np.can_cast(given, due)
