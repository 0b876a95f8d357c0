"""Loops and branches of files that tidu wrote, as nodes. Their functions take all that they read, in the order of the operands.

Each is None where the statement is Python's to run: where nothing is traced, where a loop has no steps, changes the types of what
it carries, or carries numbers of Python's, which have no bounds. Such numbers, and lists, are given to functions as they are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.sizes import number_of
from tidu_cli.adapters.numpy.buffers.memory import resolved
from tidu_cli.adapters.numpy.control_flow.bodies import Body, Leaf, Outside, operands_of, parameters, type_of, weak_of
from tidu_cli.adapters.numpy.recorder import Recorder, distinct, innermost
from tidu_cli.errors import UndecidedSizeError
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import TensorType

Function = Callable[..., Any]
Results = tuple[Array, ...] | None


def scan(
    body: Function, length: Any, reverse: bool, consts: Sequence[Leaf], carry: Sequence[Leaf], scanned: Sequence[Leaf]
) -> Results:
    """What a loop of this length carries out, and the arrays of its other results."""
    recorder = _recorder()
    n = length if isinstance(length, OpenSize | Array) else operator.index(length)
    if recorder is None or isinstance(n, Array) or (isinstance(n, int) and n < 1):
        return None
    (first, first_arrays), (last, carried), (_, xs) = (_operands(recorder, some) for some in (consts, carry, scanned))
    if len(carried) < len(carry) or len(xs) < len(scanned) or any(x.shape[:1] != (n,) for x in xs):
        return None
    due = [x.type for x in carried]
    made, types = _recorded(recorder, body, [*first, *last, *[x.type.with_shape(x.type.shape[1:]) for x in xs]])
    if types[: len(due)] != due:
        return None
    return recorder.emit_all(
        "scan",
        [*operands_of(recorder, made.outside), *first_arrays, *carried, *xs],
        length=n,
        num_consts=len(made.outside) + len(first_arrays),
        num_carry=len(due),
        reverse=reverse,
        body=made.closed(made.outside),
    )


def loop(
    condition: Function, body: Function, of_condition: Sequence[Leaf], of_body: Sequence[Leaf], carry: Sequence[Leaf]
) -> Results:
    """What a loop carries out that goes on while a condition holds."""
    recorder = _recorder()
    if recorder is None:
        return None
    (tested, consts), (given, others), (last, carried) = (_operands(recorder, some) for some in (of_condition, of_body, carry))
    if len(carried) < len(carry):
        return None
    test, (*_, type_) = _recorded(recorder, condition, [*tested, *last])
    step, types = _recorded(recorder, body, [*given, *last])
    if type_ != TensorType("bool") or types != [x.type for x in carried]:
        return None
    return recorder.emit_all(
        "while",
        [*operands_of(recorder, test.outside), *consts, *operands_of(recorder, step.outside), *others, *carried],
        cond_consts=len(test.outside) + len(consts),
        body_consts=len(step.outside) + len(others),
        condition=test.closed(test.outside),
        body=step.closed(step.outside),
    )


def branch(index: Leaf, functions: Sequence[Function], operands: Sequence[Leaf], of_bool: bool) -> Results:
    """What one of these functions gives; the last of two where a bool is true, or any other number is not 0."""
    recorder = _recorder()
    if recorder is None or isinstance(index, bool | int | OpenSize):
        return None
    _, (chosen,) = _operands(recorder, [index])
    chosen = chosen if not of_bool or chosen.type.dtype == "bool" else chosen != 0
    given, arrays = _operands(recorder, operands)
    bodies = [_recorded(recorder, function, given)[0] for function in functions]
    outside: Outside = {}
    for body in bodies:
        outside |= body.outside
    closed = tuple([body.closed(outside) for body in bodies])
    return recorder.emit_all("cond", [chosen, *operands_of(recorder, outside), *arrays], branches=closed)


def surely(condition: Callable[[], Any]) -> bool:
    """Whether a condition on sizes holds, whatever open ones are."""
    try:
        return bool(condition())
    except UndecidedSizeError:
        return False


def _recorder() -> Recorder | None:
    """Where nodes are recorded now."""
    recorder = innermost()
    return recorder and recorder.open[-1]


def _operands(recorder: Recorder, leaves: Sequence[Leaf]) -> tuple[list[Any], list[Array]]:
    """What a function is given, and the arrays in it, which are operands."""
    given = [_array(recorder, x) if isinstance(x, Array | np.ndarray | np.generic) else x for x in map(resolved, leaves)]
    return given, [x for x in given if isinstance(x, Array)]


def _array(recorder: Recorder, x: Leaf) -> Array:
    if isinstance(x, OpenSize):
        return number_of(recorder, x, "i64")
    return x if isinstance(x, Array) else recorder.constant(np.asarray(x))


def _recorded(recorder: Recorder, function: Function, given: Sequence[Any]) -> tuple[Body, list[TensorType | None]]:
    """The graph of a function of these, which it takes as inputs if they are arrays or types, and the types of its results.

    Python's numbers have no type.
    """
    body = Body(recorder)
    body.recorder.keeps_constants = True
    with body.going_on():
        names = distinct(parameters(function, [f"x{k}" for k in range(len(given))]))
        types = [x if isinstance(x, TensorType) else x.type if isinstance(x, Array) else None for x in given]
        arguments = [x if t is None else body.argument(name, t) for x, t, name in zip(given, types, names, strict=True)]
        results = function(*arguments)
        results = [resolved(x) for x in (results if isinstance(results, tuple) else (results,))]
        due = [None if weak_of(x) else type_of(x) for x in results]
        body.give([f"y{k}" for k in range(len(results))], [body.array(_array(body.recorder, x)) for x in results])
    return body, due
