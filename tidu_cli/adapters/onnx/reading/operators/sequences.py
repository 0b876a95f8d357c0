"""Sequences and optional values, which are lists when a model is read: how many arrays there are is known then.

A sequence is a list of arrays. An optional value is the array or the sequence, or EMPTY.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value
from tidu_cli.adapters.onnx.reading.operators.shapes import normal

EMPTY: list[Any] = []
"""An optional value that is none."""


def _place(node: Node, sequence: list[Value], position: Value, most: int) -> int:
    """A known position in a sequence, from 0 up, below `most`."""
    k = int(node.known(position, "position").item())
    if not -len(sequence) <= k < most:
        raise RefusedError(f"position {k} of a sequence of {len(sequence)} arrays")
    return k + len(sequence) if k < 0 else k


def _insert(node: Node, sequence: list[Value], x: Value, position: Value = None) -> list[Any]:
    k = len(sequence) if position is None else _place(node, sequence, position, len(sequence) + 1)
    return [[*sequence[:k], x, *sequence[k:]]]


def _erase(node: Node, sequence: list[Value], position: Value = None) -> list[Any]:
    if not sequence:
        raise RefusedError("erases of a sequence of no arrays")
    k = len(sequence) - 1 if position is None else _place(node, sequence, position, len(sequence))
    return [[*sequence[:k], *sequence[k + 1 :]]]


def _split(node: Node, x: Value, split: Value = None) -> list[Any]:
    axis = normal([node["axis"]], x.ndim)[0]
    n = x.shape[axis]
    if split is None:
        sizes = [1] * n
    elif not np.shape(split):
        size = int(node.known(split, "split").item())
        if size <= 0:
            raise RefusedError(f"splits into parts of {size}")
        sizes = [min(size, n - k) for k in range(0, n, size)]
    else:
        sizes = node.ints(split, "split")
    if sum(sizes) != n or min(sizes, default=0) < 0:
        raise RefusedError(f"splits an axis of {n} into {sizes[:8]}")
    ends = np.cumsum(sizes).tolist()
    parts = [x[(*[slice(None)] * axis, slice(end - size, end))] for size, end in zip(sizes, ends, strict=True)]
    if split is None and not node["keepdims"]:
        parts = [np.squeeze(part, axis) for part in parts]
    return [parts]


def _concat(node: Node, sequence: list[Value]) -> Value:
    return np.stack(sequence, node["axis"]) if node["new_axis"] else np.concatenate(sequence, node["axis"])


def _map(node: Node, sequence: list[Value], *others: Any) -> list[Any]:
    body = node.body("body")
    rows = [body(x, *[o[k] if isinstance(o, list) else o for o in others]) for k, x in enumerate(sequence)]
    return [[row[k] for row in rows] for k in range(node.n_outputs)]


def _element(node: Node, x: Any) -> list[Any]:
    if x is EMPTY:
        raise RefusedError("takes the value of an optional one that is none")
    return [x]


OPERATORS: Mapping[str, Operator] = {
    "ConcatFromSequence": _concat,
    "Optional": lambda node, x=None: [EMPTY if x is None else x],
    "OptionalGetElement": _element,
    "OptionalHasElement": lambda node, x=None: np.array(x is not None and x is not EMPTY),
    "SequenceAt": lambda node, sequence, position: [sequence[_place(node, sequence, position, len(sequence))]],
    "SequenceConstruct": lambda node, *arrays: [list(arrays)],
    "SequenceEmpty": lambda node: [[]],
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": lambda node, sequence: np.array(len(sequence), np.int64),
    "SequenceMap": _map,
    "SplitToSequence": _split,
}

TAKING = frozenset((*OPERATORS, "Identity", "If", "Loop"))
"""Operators that take sequences."""
