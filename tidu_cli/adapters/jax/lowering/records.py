"""Records: dicts of their fields by name, tuples as tuples, as JAX's transforms take them; and the vectors that are no arrays.

What NumPy computes of them field by field is computed by the same kernels, of jax.numpy. Those have records as tuples of fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from jax import lax
from jax import numpy as jnp

from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import RecordType, TensorType, Type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import Types

_OF_VECTORS = ("add", "sub", "neg", "mul", "div")


def function(case: Case) -> Callable[..., Any] | None:
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
