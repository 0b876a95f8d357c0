"""What the specification says of an operator's inputs: how many there are, which may be left out, and of which dtypes they are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, name_of
from tidu_cli.adapters.onnx.reading.node import Node, RefusedError, Value, schema
from tidu_cli.graph.types import FLOATS

_NAMES = {
    "float": "f32",
    "double": "f64",
    "float16": "f16",
    "bfloat16": "bf16",
    "complex64": "c64",
    "complex128": "c128",
    "bool": "bool",
}
_NAMES |= {f"{sign}int{bits}": f"{letter}{bits}" for sign, letter in (("", "i"), ("u", "u")) for bits in (8, 16, 32, 64)}

_KINDS = {"INT": (int, False), "FLOAT": (float, False), "STRING": (str, False)}
_KINDS |= {f"{name}S": (kind, True) for name, (kind, _) in _KINDS.items()}
"""Python's types of attributes by the names that schemas have for theirs, and whether there is a list of them."""


class Parameter(NamedTuple):
    """An input as it is declared. `kind` names the type that all inputs of it have, "" where they may differ."""

    name: str
    kind: str
    dtypes: frozenset[str]
    optional: bool


@lru_cache(maxsize=1024)
def _parameters(op_type: str, version: int, domain: str) -> tuple[Parameter, ...]:
    declared = schema(op_type, version, domain)
    allowed = {c.type_param_str: c.allowed_type_strs for c in declared.type_constraints}
    found = []
    for i in declared.inputs:
        texts = allowed.get(i.type_str, [i.type_str])
        tensors = [text.removeprefix("tensor(").removesuffix(")") for text in texts if text.startswith("tensor(")]
        dtypes = {_NAMES[name] for name in tensors if name in _NAMES} if len(tensors) == len(texts) else set()
        dtypes |= FLOATS if dtypes & FLOATS else set()  # floats may be read as others
        kind = i.type_str if i.is_homogeneous else ""
        found.append(Parameter(i.name, kind, frozenset(dtypes), i.option == declared.FormalParameterOption.Optional))
    return tuple(found)


def require_fitting(node: Node, operands: Sequence[Value]) -> None:
    """Raises RefusedError unless inputs and attributes of a node are as the schema of its operator says."""
    declared = schema(node.op_type, node.version, node.domain)
    n = len(operands)
    if not declared.min_input <= n <= declared.max_input:
        due = (
            f"{declared.min_input}" if declared.min_input == declared.max_input else f"{declared.min_input} to {declared.max_input}"
        )
        raise RefusedError(f"takes {due} inputs, and has {n}")
    for name, attribute in declared.attributes.items():
        if attribute.required and name not in node.attributes:
            raise RefusedError(f"its attribute '{name}' is missing")
        if name in node.attributes and not _is_of(node.attributes[name], attribute.type.name):
            raise RefusedError(f"its attribute '{name}' is not of the type that is due, {attribute.type.name.lower()}")
    _require_types(_parameters(node.op_type, node.version, node.domain), operands)


def _is_of(value: Any, due: str) -> bool:
    """Whether the value of an attribute is of a type as schemas call it: of those that operators read, others they look at."""
    if due == "GRAPH":
        return type(value).__name__ == "GraphProto"
    if due == "TENSOR":
        return isinstance(value, np.ndarray) or type(value).__name__ == "TensorProto"
    kind, is_list = _KINDS.get(due, (object, False))
    return isinstance(value, list) and all(isinstance(x, kind) for x in value) if is_list else isinstance(value, kind)


def _require_types(parameters: Sequence[Parameter], operands: Sequence[Value]) -> None:
    kinds: dict[str, tuple[str, str]] = {}
    for k, x in enumerate(operands):
        p = parameters[min(k, len(parameters) - 1)]
        if x is None:
            if not p.optional:
                raise RefusedError(f"its input '{p.name}' is left out")
            continue
        dtype = _dtype(x)
        if dtype is None or not p.dtypes:
            continue
        if dtype not in p.dtypes:
            raise RefusedError(f"its input '{p.name}' is of {dtype}, and takes {', '.join(sorted(p.dtypes))}")
        name, other = kinds.setdefault(p.kind, (p.name, dtype))
        if p.kind and other != dtype:
            raise RefusedError(f"its inputs '{name}' and '{p.name}' are of {other} and {dtype}, and take one type")


def _dtype(x: Any) -> str | None:
    """The dtype of an array, None for sequences."""
    if isinstance(x, Array):
        return x.type.dtype
    return name_of(x.dtype) if hasattr(x, "dtype") else None
