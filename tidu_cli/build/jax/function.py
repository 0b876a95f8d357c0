"""Functions of JAX as documents: a function is traced by JAX itself, and its jaxpr is read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tidu_cli.build.arrays.array import dtype_of
from tidu_cli.build.errors import BuildError, called, name_of_function
from tidu_cli.build.jax.attrs import is_extended, type_of
from tidu_cli.build.jax.pytrees import dotted, flattened, leaves_of
from tidu_cli.build.jax.reader import Reader
from tidu_cli.build.recorder import Recorder, default_output
from tidu_cli.errors import TypeTextError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.text.types import parse_value_type
from tidu_cli.graph.types import TensorType


def from_jax(
    function: Callable[..., Any], *args: Any, names: Sequence[str] | None = None, name: str | None = None, rules: bool = False
) -> Document:
    """The document of a function of JAX at arguments of these types: arrays, numbers, ShapeDtypeStructs, text, pytrees of them.

    Inputs are called as the parameters are, or as `names` says; those within pytrees by the path to them, `params.w`, `layers.0.b`.
    Leaves that are neither arrays nor types (functions, text) are as they are. Raises BuildError for what cannot be traced.
    """
    leaves: dict[str, Any] = {}
    rebuild = []
    for each, arg in zip(_names(function, args, names), args, strict=True):
        found, unflatten = flattened(arg)
        keys = []
        for path, leaf in found:
            key = ".".join([each, *dotted(path)])
            shape = _shaped(leaf, key)
            if shape is None:
                keys.append((None, leaf))
                continue
            if key in leaves:
                raise BuildError(f"two inputs are called '{key}'; give names that differ")
            leaves[key] = shape
            keys.append((key, None))
        rebuild.append((keys, unflatten))

    def whole(given: dict[str, Any]) -> Any:
        return function(*[unflatten([given[k] if k is not None else leaf for k, leaf in keys]) for keys, unflatten in rebuild])

    return read(whole, leaves, name or name_of_function(function), rules=rules)


def read(function: Callable[[dict[str, Any]], Any], inputs: dict[str, Any], name: str, *, rules: bool = False) -> Document:
    """The document of a function of arrays by key, at arguments of these types."""
    import jax

    alone = default_output(inputs)
    keys: list[str] = []

    def flat(*arrays: Any) -> list[Any]:
        found = leaves_of(function(dict(zip(inputs, arrays, strict=True))), alone)
        keys[:] = found
        return list(found.values())

    closed = called(jax.make_jaxpr(flat), *inputs.values())
    jaxpr = closed.jaxpr
    recorder = Recorder()
    for key, v in zip(inputs, jaxpr.invars, strict=True):
        if is_extended(v.aval):
            raise BuildError(
                f"input '{key}' is {v.aval.str_short()}, a key of random numbers; take its integers, jax.random.key_data"
            )
    arrays = [recorder.argument(key, type_of(v.aval)) for key, v in zip(inputs, jaxpr.invars, strict=True)]
    reader = Reader(recorder)
    found = [reader.lifted(x) for x in reader.run(jaxpr, closed.consts, arrays)]
    return recorder.document(name, dict(zip(keys, found, strict=True)))


def _names(function: Callable[..., Any], args: Sequence[Any], names: Sequence[str] | None) -> list[str]:
    """The name of each argument."""
    if names is not None:
        if len(names) != len(args):
            raise BuildError(f"{len(names)} names are given for {len(args)} arguments")
        return list(names)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [f"x{k}" for k in range(len(args))]
    found: list[str] = []
    for p in parameters:
        if p.kind is inspect.Parameter.VAR_POSITIONAL:
            return found + [f"{p.name}.{k}" for k in range(len(args) - len(found))]
        if len(found) < len(args) and p.kind is not inspect.Parameter.KEYWORD_ONLY:
            found.append(p.name)
    if len(found) < len(args):
        raise BuildError(f"{name_of_function(function)} takes {len(found)} arguments, and {len(args)} are given")
    return found


def _shaped(leaf: Any, key: str) -> Any:
    """What JAX traces a leaf at: its shape and dtype; None for what is no array."""
    import jax

    if isinstance(leaf, str):
        try:
            type_ = parse_value_type(leaf)
        except TypeTextError:
            return None
        if not isinstance(type_, TensorType):
            raise BuildError(f"input '{key}': {leaf} is a record; give a dict of its fields")
        if type_.dtype in ("i64", "u64", "f64", "c128") and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
            raise BuildError(f"input '{key}': JAX has {type_} only with jax.enable_x64(True); write it around from_jax")
        return jax.ShapeDtypeStruct(type_.shape, dtype_of(type_.dtype))
    if isinstance(leaf, bool | int | float | complex | np.generic | np.ndarray):
        return leaf
    return leaf if hasattr(leaf, "shape") and hasattr(leaf, "dtype") else None
