"""Functions of JAX as documents: a function is traced by JAX itself, and its jaxpr is read; leaves of pytrees have names."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.jax.functions.jaxpr import is_extended, struct_of, type_of
from tidu_cli.adapters.jax.functions.operations import Operations
from tidu_cli.adapters.jax.functions.reader import CALLS, Reader
from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.data import parts_of, with_data
from tidu_cli.adapters.numpy.errors import BuildError, called, name_of_function
from tidu_cli.adapters.numpy.parameters import arguments_of, bound, tree_of
from tidu_cli.adapters.numpy.recorder import Recorder, chosen, default_output
from tidu_cli.adapters.numpy.tracing import loaded
from tidu_cli.errors import TypeTextError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import TIMES, TensorType, Type, unit_of
from tidu_cli.limits import require
from tidu_cli.port_data import Data, Given, Static

WIDE = ("i64", "u64", "f64", "c128")
"""Dtypes that JAX has only where it is told so."""


def from_jax(
    function: Callable[..., Any], *args: Any, names: Sequence[str] = (), name: str | None = None, rules: bool = True
) -> Document:
    """The document of a function of JAX at arguments of these types: arrays, numbers, ShapeDtypeStructs, text, pytrees of them.

    Inputs are called as the parameters are, or as `names` says; those within pytrees by the path to them, `params.w`, `layers.0.b`.
    Leaves that are neither arrays nor types (functions, text) are as they are. Raises BuildError for what cannot be traced.
    """
    imported()
    leaves: dict[str, Any] = {}
    rebuild = []
    for each, arg in zip(_names(function, args, names), args, strict=True):
        parts, unflatten = flattened(arg)
        keys: list[tuple[str | None, Any]] = []
        for path, leaf in parts:
            key = ".".join([each, *dotted(path)])
            shape = _shaped(leaf, key)
            if shape is None:
                keys.append((None, leaf.value if isinstance(leaf, Static) else leaf))
                continue
            if key in leaves:
                raise BuildError(f"two inputs are called '{key}'; give names that differ")
            leaves[key] = shape
            keys.append((key, None))
        rebuild.append((keys, unflatten))

    def whole(given: dict[str, Any]) -> Any:
        return function(*[unflatten([given[k] if k is not None else leaf for k, leaf in keys]) for keys, unflatten in rebuild])

    reader, outputs = _read(whole, leaves, None, rules)
    return reader.document(name or name_of_function(function), outputs)


def build_jax_function(
    place: str,
    inputs: Mapping[str, Given],
    *,
    name: str | None = None,
    outputs: Sequence[str] = (),
    rules: bool = True,
    data: Data | None = None,
) -> Document:
    """The document of FILE.py:FUNCTION, which is run by JAX. Dots in the keys of `inputs` say how they nest.

    Of parameters, and parts of them, that are not in `inputs` what `data` has for them says the types, or is a constant. Where a
    type has 64 bits, so has JAX. `outputs` chooses outputs, or names the one of a function that returns one array.
    """
    jax = imported()
    of_data = [x for key, value in (data.values if data else {}).items() for _, x in parts_of(key, value)]
    wide = any(isinstance(t, TensorType) and t.dtype in WIDE for t in (*inputs.values(), *of_data))
    with contextlib.redirect_stdout(sys.stderr), jax.enable_x64(True) if wide else contextlib.nullcontext():
        file, _, function_name = place.rpartition(":")
        function = loaded(file, function_name)
        inputs = with_data(function, inputs, data)
        arguments = arguments_of(function, tree_of(inputs))
        structs = {key: _struct(key, type_) for key, type_ in inputs.items() if not isinstance(type_, Static)}
        constants = {key: x.value for key, x in inputs.items() if isinstance(x, Static)}
        alone = default_output(inputs, outputs)

        def whole(arrays: dict[str, Any]) -> Any:
            given = bound(function, arguments, constants | arrays)
            return function(*given.args, **given.kwargs)

        reader, results = _read(whole, structs, alone, rules)
    return reader.document(name or function_name, chosen(results, outputs, function_name))


def imported() -> Any:
    """The package jax. Raises BuildError without it."""
    try:
        import jax
    except ImportError:
        raise BuildError("functions of JAX need the package jax: pip install 'tidu[jax]'") from None
    return jax


def _read(
    function: Callable[[dict[str, Any]], Any], inputs: Mapping[str, Any], alone: str | None, rules: bool
) -> tuple[Reader, dict[str, Array]]:
    """The reading of a function of arrays by key, at arguments of these types, and its outputs by key."""
    keys: list[str] = []

    def flat(*arrays: Any) -> list[Any]:
        result = function(dict(zip(inputs, arrays, strict=True)))
        leaves = leaves_of(result, alone if alone and is_leaf(result) else default_output(inputs))
        keys[:] = leaves
        return list(leaves.values())

    closed = _traced(flat, list(inputs.values()))
    recorder, jaxpr = Recorder(), closed.jaxpr
    require_written_out(jaxpr)
    for key, v in zip(inputs, jaxpr.invars, strict=True):
        if is_extended(v.aval):
            raise BuildError(f"input '{key}' is {v.aval.str_short()}, of keys; give their integers, jax.random.key_data(key)")
    arrays = [recorder.argument(key, type_of(v.aval)) for key, v in zip(inputs, jaxpr.invars, strict=True)]
    reader = Reader(recorder, Operations(always=rules))
    results = [reader.lifted(x) for x in reader.run(jaxpr, closed.consts, arrays)]
    return reader, dict(zip(keys, results, strict=True))


_INSTEAD = {
    "TracerBoolConversionError": "write jnp.where or jax.lax.cond for if, and jax.lax.while_loop for while",
    "TracerIntegerConversionError": "write jnp.take for a place in a list, or make it a constant",
    "TracerArrayConversionError": "write the function of jax.numpy in place of NumPy's",
    "NonConcreteBooleanIndexError": "write jnp.where(mask, new, old) in place of x[mask]",
    "ConcretizationTypeError": "make the number that it depends on a constant",
}
"""What to write where a function asks for a value that is not known when it is traced."""


def _traced(function: Callable[..., Any], types: Sequence[Any]) -> Any:
    """The jaxpr of a function. Raises BuildError, with the line, for what it raises; JAX's own errors tell more than one line."""
    try:
        return called(imported().make_jaxpr(function), *types)
    except BuildError as error:
        kind = type(error.__cause__).__name__
        first = str(error).partition(" The error occurred while tracing ")[0].partition(" See https://")[0].rstrip(".")
        raise BuildError(f"{first}; {_INSTEAD[kind]}" if kind in _INSTEAD else first) from error


def _names(function: Callable[..., Any], args: Sequence[Any], names: Sequence[str]) -> list[str]:
    """The name of each argument."""
    if names:
        if len(names) != len(args):
            raise BuildError(f"{len(names)} names are given for {len(args)} arguments")
        return list(names)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [f"x{k}" for k in range(len(args))]
    keys: list[str] = []
    for p in parameters:
        if p.kind is inspect.Parameter.VAR_POSITIONAL:
            return keys + [f"{p.name}.{k}" for k in range(len(args) - len(keys))]
        if len(keys) < len(args) and p.kind is not inspect.Parameter.KEYWORD_ONLY:
            keys.append(p.name)
    if len(keys) < len(args):
        raise BuildError(f"{name_of_function(function)} takes {len(keys)} arguments, and {len(args)} are given")
    return keys


def _shaped(leaf: Any, key: str) -> Any:
    """What JAX traces a leaf at: its shape and dtype; None for what is no array."""
    if isinstance(leaf, Static):
        return None
    if isinstance(leaf, str):
        try:
            type_ = parse_value_type(leaf)
        except TypeTextError:
            return None
        return _struct(key, type_)
    if isinstance(leaf, TensorType):
        return _struct(key, leaf)
    if isinstance(leaf, bool | int | float | complex | np.generic | np.ndarray):
        return leaf
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return leaf
    if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
        kind = type(leaf).__name__
        raise BuildError(f"input '{key}' is a {kind}, no pytree of JAX's: decorate it, @jax.tree_util.register_dataclass")
    return None


def _struct(key: str, type_: Type) -> Any:
    """A type as JAX's. Raises BuildError for one that JAX does not have."""
    jax = imported()
    if not isinstance(type_, TensorType):
        raise BuildError(f"input '{key}' is a record, {type_}, which JAX does not have; give inputs of its fields, {key}.FIELD")
    if type_.dtype in TIMES:
        raise BuildError(f"input '{key}': JAX has no times, {type_}; give counts of {unit_of(type_.dtype)}, as f64")
    if type_.dtype in WIDE and not jax.config.jax_enable_x64:
        raise BuildError(f"input '{key}': JAX has {type_} only with jax.enable_x64(True); write it around from_jax")
    return struct_of(type_)


def flattened(tree: Any) -> tuple[list[tuple[tuple[Any, ...], Any]], Callable[[Iterable[Any]], Any]]:
    """The leaves of a pytree with the paths to them, and the function that puts others in their place."""
    from jax.tree_util import tree_flatten_with_path, tree_unflatten

    leaves, structure = tree_flatten_with_path(tree)
    return leaves, lambda some: tree_unflatten(structure, some)


def dotted(path: Iterable[Any]) -> list[str]:
    """The parts of the path to a leaf: keys of dicts, names of attributes, numbers of items."""
    return [str(next(getattr(part, a) for a in ("key", "name", "idx") if hasattr(part, a))) for part in path]


def is_leaf(value: Any) -> bool:
    """Whether it is one array."""
    leaves = flattened(value)[0]
    return len(leaves) == 1 and not leaves[0][0]


def leaves_of(result: Any, alone: str) -> dict[str, Any]:
    """The leaves of what a function returned, by the keys of outputs: one array is called `alone`, items `alone.0`.

    Dataclasses that JAX does not know as pytrees are taken apart, too. Raises BuildError for two of one key.
    """
    leaves: dict[str, Any] = {}
    pending: list[tuple[list[str], Any]] = [([], result)]
    while pending:
        before, value = pending.pop()
        inner = []
        for path, leaf in flattened(value)[0]:
            parts = [*before, *dotted(path)]
            if not before and (not path or hasattr(path[0], "idx") or type(path[0]).__name__ == "FlattenedIndexKey"):
                parts = [alone, *parts]
            if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type) and not hasattr(leaf, "aval"):
                here = parts if path else parts[:-1]
                inner += [([*here, f.name], getattr(leaf, f.name)) for f in dataclasses.fields(leaf)]
                continue
            key = ".".join(parts)
            if key in leaves:
                raise BuildError(f"two outputs are called '{key}'")
            leaves[key] = leaf
        pending += inner[::-1]
    if not leaves:
        raise BuildError("the function returns nothing; it must return what it computes")
    return leaves


def require_written_out(jaxpr: Any) -> None:
    """Raises LimitError if a jaxpr with its calls written out has more equations than one may, beyond those that stand in it.

    The graphs of loops and branches are read once, whoever holds them.
    """
    pending, sizes, written = [jaxpr], dict[int, int](), 0
    roots: dict[int, int] = {}

    def size(some: Any) -> int:
        nonlocal written
        if id(some) not in sizes:
            written += len(some.eqns)
            total = len(some.eqns)
            for equation in some.eqns:
                if equation.primitive.name in CALLS:
                    total += sum(map(size, _jaxprs(equation.params.values())))
                else:
                    pending.extend(_jaxprs(equation.params.values()))
            sizes[id(some)] = total
        return sizes[id(some)]

    while pending:
        root = pending.pop()
        roots[id(root)] = size(root)
    require("expansion", sum(roots.values()) - written, "functions that call functions, written out")


def _jaxprs(values: Any) -> Iterator[Any]:
    """The jaxprs among these, also in tuples, as branches are."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from _jaxprs(value)
        elif hasattr(inner := getattr(value, "jaxpr", value), "eqns"):
            yield inner
