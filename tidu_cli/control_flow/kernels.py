"""Loops and branches on NumPy: the graph of a step is made a function once, which runs step by step."""

from __future__ import annotations

from typing import Any

from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.types import Type
from tidu_cli.lax.builtin import vocabulary
from tidu_cli.rules.contract import Kernel, ValueTypes
from tidu_cli.rules.recording.graphs import kernel


def function_of(np: Any, graph: ClosedGraph) -> Kernel:
    """A function of the arrays of a graph's inputs that gives a tuple of its outputs."""
    run = kernel(np, graph.graph, vocabulary(graph.graph.cases))
    return (lambda *arrays: (run(*arrays),)) if len(graph.graph.outputs) == 1 else run


def scan_kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    """A function of constants, what is carried and what is scanned that gives what is carried and results."""
    step, n, n_carry, length = function_of(np, attrs.body), attrs.num_consts, attrs.num_carry, attrs.length
    stacked = results[n_carry:]
    steps = range(length - 1, -1, -1) if attrs.reverse else range(length)

    def run(*arrays: Any) -> Any:
        consts, carry, xs = arrays[:n], arrays[n : n + n_carry], arrays[n + n_carry :]
        ys = [empty(np, t) for t in stacked]
        for i in steps:
            found = step(*consts, *carry, *[sliced(x, i) for x in xs])
            carry = found[:n_carry]
            for y, value in zip(ys, found[n_carry:], strict=True):
                put(y, i, value)
        every = (*carry, *ys)
        return every if len(every) > 1 else every[0]

    return run


def sliced(x: Any, i: int) -> Any:
    """Slice i of an array, or of each array of a record; None, a zero, stays."""
    return tuple([sliced(part, i) for part in x]) if isinstance(x, tuple) else None if x is None else x[i]


def put(y: Any, i: int, value: Any) -> None:
    """Make slice i of an array, or of each array of a record, this value; None is zero."""
    if isinstance(y, tuple):
        for k, part in enumerate(y):
            put(part, i, None if value is None else value[k])
    else:
        y[i] = 0 if value is None else value


def empty(np: Any, type_: Type) -> Any:
    """An array of a type, or a record of such, with any values."""
    from tidu_cli.graph.types import RecordType, storage_dtype
    from tidu_cli.lax.arrays.structural import numpy_dtype

    if isinstance(type_, RecordType):
        return tuple([empty(np, t) for _, t in type_.fields])
    return np.empty(type_.shape, numpy_dtype(np, storage_dtype(type_.dtype)))


def cond_kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    """A function of an index and operands that gives what the branch of that number gives."""
    branches = [function_of(np, branch) for branch in attrs.branches]
    last = len(branches) - 1

    def run(index: Any, *arrays: Any) -> Any:
        found = branches[min(max(int(index), 0), last)](*arrays)
        return found if len(found) > 1 else found[0]

    return run


def while_kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    """A function of constants and what is carried that gives what is carried in the end."""
    go_on, step = function_of(np, attrs.condition), function_of(np, attrs.body)

    def run(*arrays: Any) -> Any:
        cond_consts, body_consts, carry = attrs.split(arrays)
        while go_on(*cond_consts, *carry)[0]:
            carry = step(*body_consts, *carry)
        return tuple(carry) if len(carry) > 1 else carry[0]

    return run
