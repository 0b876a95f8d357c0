"""Loops and branches of files that tidu wrote, as nodes. Their functions take all that they read, in the order of the operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.sizes import number_of
from tidu_cli.adapters.numpy.buffers.memory import resolved
from tidu_cli.adapters.numpy.control_flow.bodies import Body, Leaf, Outside, converted, fits, operands_of, parameters
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.recorder import Recorder, distinct, innermost
from tidu_cli.errors import UndecidedSizeError
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import TensorType

Function = Callable[..., Any]


def scan(
    body: Function, length: Any, reverse: bool, consts: Sequence[Leaf], carry: Sequence[Leaf], scanned: Sequence[Leaf]
) -> tuple[Array, ...]:
    """What a loop of this length carries out, and the arrays of its other results."""
    recorder = _recorder()
    given, xs = [_array(recorder, x) for x in (*consts, *carry)], [_array(recorder, x) for x in scanned]
    types = [*[x.type for x in given], *[x.type.with_shape(x.type.shape[1:]) for x in xs]]
    made = _recorded(recorder, body, types, [x.type for x in given[len(consts) :]])
    return recorder.emit_all(
        "scan",
        [*operands_of(recorder, made.outside), *given, *xs],
        length=length,
        num_consts=len(made.outside) + len(consts),
        num_carry=len(carry),
        reverse=reverse,
        body=made.closed(made.outside),
    )


def loop(
    condition: Function, body: Function, of_condition: Sequence[Leaf], of_body: Sequence[Leaf], carry: Sequence[Leaf]
) -> tuple[Array, ...]:
    """What a loop carries out that goes on while a condition holds."""
    recorder = _recorder()
    first, second, last = ([_array(recorder, x) for x in some] for some in (of_condition, of_body, carry))
    types = [x.type for x in last]
    test = _recorded(recorder, condition, [*[x.type for x in first], *types], [])
    step = _recorded(recorder, body, [*[x.type for x in second], *types], types)
    return recorder.emit_all(
        "while",
        [*operands_of(recorder, test.outside), *first, *operands_of(recorder, step.outside), *second, *last],
        cond_consts=len(test.outside) + len(first),
        body_consts=len(step.outside) + len(second),
        condition=test.closed(test.outside),
        body=step.closed(step.outside),
    )


def branch(index: Leaf, functions: Sequence[Function], operands: Sequence[Leaf], of_bool: bool) -> tuple[Array, ...]:
    """What one of these functions gives; the last of two where a bool is true, or any other number is not 0."""
    if isinstance(index, bool):
        results = functions[index](*operands)
        return results if isinstance(results, tuple) else (results,)
    recorder = _recorder()
    chosen = _array(recorder, index)
    chosen = chosen if not of_bool or chosen.type.dtype == "bool" else chosen != 0
    given = [_array(recorder, x) for x in operands]
    bodies = [_recorded(recorder, function, [x.type for x in given], []) for function in functions]
    outside: Outside = {}
    for body in bodies:
        outside |= body.outside
    closed = tuple([body.closed(outside) for body in bodies])
    return recorder.emit_all("cond", [chosen, *operands_of(recorder, outside), *given], branches=closed)


def surely(condition: Callable[[], Any]) -> bool:
    """Whether a condition on sizes holds, whatever open ones are."""
    try:
        return bool(condition())
    except UndecidedSizeError:
        return False


def _recorder() -> Recorder:
    """Where nodes are recorded now."""
    recorder = innermost()
    if recorder is None:
        raise BuildError("it is traced, and not called; import it from its file")
    return recorder.open[-1]


def _array(recorder: Recorder, leaf: Leaf) -> Array:
    """A value as an operand."""
    x = number_of(recorder, leaf, "i64") if isinstance(leaf, OpenSize) else resolved(leaf)
    return x if isinstance(x, Array) else recorder.constant(np.asarray(x))


def _recorded(recorder: Recorder, function: Function, types: Sequence[TensorType], due: Sequence[TensorType]) -> Body:
    """The graph of a function of inputs of these types, of which the first results are of types that are due."""
    body = Body(recorder)
    body.recorder.keeps_constants = True
    with body.going_on():
        names = distinct(parameters(function, [f"x{k}" for k in range(len(types))]))
        results = function(*[body.argument(name, t) for name, t in zip(names, types, strict=True)])
        results = [resolved(x) for x in (results if isinstance(results, tuple) else (results,))]
        for k, type_ in enumerate(due[: len(results)]):
            results[k] = converted(results[k], type_) if fits(results[k], type_) else results[k]
        body.give([f"y{k}" for k in range(len(results))], [body.array(x) for x in results])
    return body
