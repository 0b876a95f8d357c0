"""Loops and branches on NumPy: functions of Python, in which a step is written out, so that a loop runs as one written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.types import RecordType, Type, storage_dtype
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.builtin import vocabulary
from tidu_cli.limits import each_step, refuse_steps, take_steps
from tidu_cli.rules.contract import Kernel, ValueTypes
from tidu_cli.rules.recording.functions import Lines, Writer, returned


def scan_kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    """A function of constants, what is carried and what is scanned that gives what is carried and results."""
    writer, n, n_carry = _writer(np, attrs.body), attrs.num_consts, attrs.num_carry
    parameters = [writer.variable() for _ in operands]
    carry, slices = parameters[n : n + n_carry], [writer.variable() for _ in operands[n + n_carry :]]
    lines, found = writer.statements(attrs.body.graph, [*parameters[: n + n_carry], *slices])
    stacks = [writer.variable() for _ in results[n_carry:]]
    make = writer.constant(lambda k: _empty(np, results[n_carry + k]))
    cut, put = writer.constant(_slice), writer.constant(_put)
    steps = f"range({attrs.length - 1}, -1, -1)" if attrs.reverse else f"range({attrs.length})"
    taken = [
        f"{x} = {cut}({xs}, i)" if isinstance(t, RecordType) else f"{x} = {xs}[i]"
        for x, xs, t in zip(slices, parameters[n + n_carry :], operands[n + n_carry :], strict=True)
    ]
    given = [
        f"{put}({ys}, i, {y})" if isinstance(t, RecordType) else f"{ys}[i] = {y}"
        for ys, y, t in zip(stacks, found[n_carry:], results[n_carry:], strict=True)
    ]
    body = [*taken, *lines, *given, *_assigned(carry, found[:n_carry])]
    return writer.function(
        parameters,
        [
            *_as_scalars(carry, results[:n_carry]),
            f"{writer.constant(take_steps)}({attrs.length})",
            *[f"{ys} = {make}({k})" for k, ys in enumerate(stacks)],
            f"for i in {steps}:",
            *[f" {line}" for line in body or ["pass"]],
            f"return {returned([*carry, *stacks])}",
        ],
    )


def while_kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    """A function of constants and what is carried that gives what is carried in the end."""
    writer = _writer(np, attrs.body)
    parameters = [writer.variable() for _ in operands]
    of_condition, of_body, carry = attrs.split(parameters)
    tests, (go_on,) = writer.statements(attrs.condition.graph, [*of_condition, *carry])
    lines, found = writer.statements(attrs.body.graph, [*of_body, *carry])
    body = [*tests, f"if not {go_on}: break", *lines, *_assigned(carry, found)]
    end = ["else:", f" {writer.constant(refuse_steps)}()"]
    loop = [f"for _ in {writer.constant(each_step)}():", *[f" {line}" for line in body], *end]
    return writer.function(parameters, [*_as_scalars(carry, results), *loop, f"return {returned(carry)}"])


def cond_kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    """A function of an index and operands that gives what the branch of that number gives."""
    writer = _writer(np, attrs.branches[0])
    index, *parameters = [writer.variable() for _ in operands]
    lines: Lines = []
    last = len(attrs.branches) - 1
    for k, branch in enumerate(attrs.branches):
        statements, found = writer.statements(branch.graph, parameters)
        test = "if True:" if not last else f"if {index} <= 0:" if k == 0 else "else:" if k == last else f"elif {index} <= {k}:"
        lines += [test, *[f" {line}" for line in [*statements, f"return {returned(found)}"]]]
    return writer.function([index, *parameters], lines)


def _writer(np: Any, graph: ClosedGraph) -> Writer:
    return Writer(np, vocabulary(graph.graph.cases))


def _assigned(names: Sequence[str], values: Sequence[str]) -> Lines:
    """What is carried to the next step, all at once."""
    changed = [(name, value) for name, value in zip(names, values, strict=True) if name != value]
    return [f"{', '.join(n for n, _ in changed)} = {', '.join(v for _, v in changed)}"] if changed else []


def _as_scalars(names: Sequence[str], types: Sequence[Type]) -> Lines:
    """Arrays of rank 0 as scalars of NumPy's, whose arithmetic is the faster."""
    return [f"{x} = {x}[()]" for x, t in zip(names, types, strict=True) if not isinstance(t, RecordType) and not t.shape]


def _slice(x: Any, i: int) -> Any:
    """Slice i of an array, or of each array of a record; None, a zero, stays."""
    return tuple([_slice(part, i) for part in x]) if isinstance(x, tuple) else None if x is None else x[i]


def _put(y: Any, i: int, value: Any) -> None:
    """Make slice i of an array, or of each array of a record, this value; None is zero."""
    if isinstance(y, tuple):
        for k, part in enumerate(y):
            _put(part, i, None if value is None else value[k])
    else:
        y[i] = 0 if value is None else value


def _empty(np: Any, type_: Type) -> Any:
    """An array of a type, or a record of such, with any values."""
    if isinstance(type_, RecordType):
        return tuple([_empty(np, t) for _, t in type_.fields])
    return np.empty(type_.shape, numpy_dtype(np, storage_dtype(type_.dtype)))
