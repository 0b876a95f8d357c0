"""Primitives that have no name in NumPy: computed at once where all operands are known, else recorded."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, name_of
from tidu_cli.adapters.onnx.reading.node import LARGEST_KNOWN, Node, RefusedError, Value
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.builtin import BUILTIN
from tidu_cli.rules.contract import Types


def computed(node: Node, op: str, *operands: Value, **attrs: object) -> Value:
    """The first result of a primitive, known if its operands are. Raises TypeRuleError for those that do not fit."""
    return computed_all(node, op, *operands, **attrs)[0]


def computed_all(node: Node, op: str, *operands: Value, **attrs: object) -> tuple[Value, ...]:
    """All results, as `computed` gives the first."""
    if any(isinstance(x, Array) for x in operands):
        return node.emit_all(op, *operands, **attrs)
    arrays = [np.asarray(x) for x in operands]
    types = [TensorType(name_of(x.dtype), x.shape) for x in arrays]
    case = BUILTIN.case(op, BUILTIN.parse_attrs(op, attrs), None, types)
    results = cast(Types, case.results)
    if max(t.size for t in results) > LARGEST_KNOWN:
        return node.emit_all(op, *operands, **attrs)
    found = BUILTIN[op].evaluation.kernel(np, case.attrs, tuple(types), results)(*arrays)
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def counted(node: Node, n: int, dtype: Any = np.int64) -> Value:
    """0, 1, 2, ... of a dtype, traced where they are many."""
    if n <= LARGEST_KNOWN:
        return np.arange(n).astype(dtype)
    return node.traced(np.int64(0)).recorder.emit("iota", dtype="i64", shape=(n,), dimension=0).astype(dtype)


def at(node: Node, x: Value, *index: Value) -> Value:
    """x[index], of which any may be traced."""
    traced = any(isinstance(i, Array) for i in index)
    return (node.traced(x) if traced else x)[index]


def number(like: Value, value: float) -> Any:
    """A number in the dtype of an array: where it is bf16, NumPy does not let Python's numbers give way."""
    return np.dtype(like.dtype).type(value)


def integer(node: Node, x: Value, what: str) -> int:
    """The one number of a known value. Raises RefusedError if it has several, or none."""
    found = node.ints(x, what)
    if len(found) != 1:
        raise RefusedError(f"its {what} is one number, and not {len(found)}")
    return found[0]
