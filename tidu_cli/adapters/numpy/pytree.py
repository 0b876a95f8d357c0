"""Nested inputs and outputs: dicts, lists, tuples and dataclasses, whose keys are the path to them: `params.w`, `layers.0.b`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, Record
from tidu_cli.adapters.numpy.arrays.operands import lift
from tidu_cli.adapters.numpy.arrays.storage import Selection, current
from tidu_cli.adapters.numpy.buffers.memory import resolved
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.recorder import Recorder
from tidu_cli.errors import TypeTextError
from tidu_cli.graph.keys import Key
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import DTYPES, RecordType, TensorType, Type
from tidu_cli.lax.arrays.structural import dtype_name
from tidu_cli.port_data import Static

MAX_LEVELS = 64
"""How deep inputs and outputs may nest."""


def members_of(tree: Any) -> list[tuple[Any, Any]] | None:
    """What a tree holds, by name or number; None if it is not a tree."""
    if tree is None:
        return []
    if isinstance(tree, dict):
        return list(tree.items())
    if isinstance(tree, list | tuple):
        return list(zip(getattr(tree, "_fields", range(len(tree))), tree, strict=True))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return [(f.name, getattr(tree, f.name)) for f in dataclasses.fields(tree) if f.init]
    return None


def with_members(tree: Any, members: Mapping[Any, Any]) -> Any:
    """A tree like this of other members, in the same order."""
    if tree is None:
        return None
    if isinstance(tree, dict):
        return members
    if isinstance(tree, list | tuple):
        parts = list(members.values())
        return parts if isinstance(tree, list) else type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return dataclasses.replace(tree, **members)


def inputs_of(recorder: Recorder, value: Any, path: str, level: int = 0) -> Any:
    """The structure of types `value` with Arrays in their place, declared in order. None, functions and constants stay."""
    if level > MAX_LEVELS:
        raise BuildError(f"input '{path[:60]}' nests deeper than {MAX_LEVELS} levels")
    members = None if isinstance(value, TensorType | RecordType | Static) else members_of(value)
    if members is not None:
        return with_members(value, {k: inputs_of(recorder, v, f"{path}.{k}", level + 1) for k, v in members})
    if isinstance(value, Static):
        return value.value
    if callable(value) and not hasattr(value, "dtype"):
        return value
    return recorder.input(Key(path), type_of_argument(value, path))


def type_of_argument(value: Any, path: str) -> Type:
    """The type that text, a type, an array or a number says. Raises BuildError."""
    if isinstance(value, TensorType | RecordType):
        return value
    if isinstance(value, str):
        try:
            return parse_value_type(value)
        except TypeTextError as error:
            raise BuildError(f"input '{path}': {error}; tidu.static({value[:40]!r}) is text") from None
    if isinstance(value, bool | int | float | complex):
        value = np.asarray(value)
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        dtype = dtype_name(np.dtype(value.dtype))
        if dtype in DTYPES:
            return TensorType(dtype, tuple(map(int, value.shape)))
    raise BuildError(
        f"input '{path}': a value of type {type(value).__name__} says no type; give text such as 'f64[3]', an array, a constant as "
        "tidu.static(value), or leave it out for its default"
    )


def outputs_of(recorder: Recorder, result: Any, alone: str) -> dict[str, Array]:
    """What a function returned, by the keys of outputs; one array is called `alone`. Raises BuildError for what is no array."""
    outputs: dict[str, Array] = {}
    for key, given in _leaves(result, "", alone, 0):
        value = resolved(given)
        if value is None:
            raise BuildError(f"output '{key}' is None; write return, with what the function computes")
        if isinstance(value, Record):
            raise BuildError(f"output '{key}' is {value}")
        if isinstance(value, Selection):
            raise BuildError(f"{value.place}: {value.refusal()}")
        if isinstance(value, OpenSize):
            value = lift(value, recorder.constant(0))
        if not isinstance(value, Array | np.ndarray | np.generic | bool | int | float | complex):
            raise BuildError(
                f"output '{key}' is a {type(value).__name__}; a function returns arrays, in dicts, lists, tuples or dataclasses"
            )
        if key in outputs:
            raise BuildError(f"two outputs are called '{key}'")
        outputs[key] = value if isinstance(value, Array) else recorder.constant(np.asarray(value))
        if outputs[key].recorder is not recorder:
            raise BuildError(f"output '{key}' is of another trace")
        try:
            current(outputs[key])
        except BuildError as error:
            raise BuildError(f"output '{key}': {error}") from None
    if not outputs:
        raise BuildError("the function returns nothing; it must return what it computes")
    return outputs


def _leaves(value: Any, path: str, alone: str, level: int) -> Iterator[tuple[str, Any]]:
    if level > MAX_LEVELS:
        raise BuildError(f"output '{path[:60]}' nests deeper than {MAX_LEVELS} levels")
    if isinstance(value, dict):
        members = [(str(k), v) for k, v in value.items()]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        members = [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
    elif isinstance(value, tuple | list):
        names = getattr(value, "_fields", None)
        members = [(str(k), v) for k, v in zip(names or range(len(value)), value, strict=True)]
        path = path or ("" if names else alone)
    else:
        yield path or alone, value
        return
    for k, v in members:
        yield from _leaves(v, f"{path}.{k}" if path else k, alone, level + 1)
