"""Calls that were recorded before: on operands of the same types they record the same nodes, and nothing is worked out again.

What a function of NumPy records depends on the types of its operands and on its other arguments alone. So the second call of a kind
is recorded on placeholders, on which nothing depends, and what it recorded there is done again for this call and all later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from types import EllipsisType, NoneType
from typing import Any, NamedTuple, Protocol

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.graph.types import TensorType

MOST = 4096
"""So many kinds of calls are remembered."""

_ONCE = "once"
_NEVER = "never"


Node = tuple[int, tuple[int, ...], int, int]
"""The code of a case, operands, the first result, and how many results there are."""


class Steps(NamedTuple):
    """What a call records. Values are counted from the operands on, result by result; those of constants are ~x."""

    nodes: tuple[tuple[int, tuple[int, ...], int], ...]  # codes, values, numbers of results
    results: tuple[tuple[int, TensorType], ...]
    container: type | None  # of several results


class Recording(Protocol):
    """What is asked of a recording."""

    def placeholder(self, type_: TensorType) -> Array:
        """A value that nothing gives."""

    def recorded(self, function: Callable[..., Any], operands: Sequence[Array]) -> tuple[Any, list[Node]]:
        """What the function gives, and the nodes that were new."""

    def node(self, code: int, operands: tuple[int, ...], n_results: int) -> int:
        """The first result of a node, which may be there already."""

    def value_of(self, x: Array) -> int:
        """The number of a value here."""


class Repeats:
    """The calls that one recording has seen, by what tells one kind from another."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._steps: dict[Any, Any] = {}

    def call(self, key: Any, function: Callable[..., Any], operands: Sequence[Array]) -> Any:
        """function(*operands), whose kind is `key`, hashable; the types of the operands are part of it."""
        steps = self._steps.get(key)
        if steps.__class__ is Steps:
            return self._again(steps, operands)
        if steps is None:
            if len(self._steps) < MOST:
                self._steps[key] = _ONCE
        elif steps is _ONCE:
            steps = self._steps[key] = self._learned(function, [x.type for x in operands])
            if steps is not _NEVER:
                return self._again(steps, operands)
        return function(*operands)

    def _again(self, steps: Steps, operands: Sequence[Array]) -> Any:
        recording: Any = self._recording
        values = [x.value if x.share is None and x.recorder is recording else recording.value_of(x) for x in operands]
        for code, sources, n_results in steps.nodes:
            first = recording.node(code, tuple([values[k] if k >= 0 else ~k for k in sources]), n_results)
            values.append(first)
            if n_results > 1:
                values += range(first + 1, first + n_results)
        if steps.container is None:
            k, type_ = steps.results[0]
            return Array(recording, values[k] if k >= 0 else ~k, type_)
        return steps.container([Array(recording, values[k] if k >= 0 else ~k, type_) for k, type_ in steps.results])

    def _learned(self, function: Callable[..., Any], types: Sequence[TensorType]) -> Any:
        placeholders = [self._recording.placeholder(t) for t in types]
        result, nodes = self._recording.recorded(function, placeholders)
        container = type(result) if type(result) in (tuple, list) else None
        results = [result] if container is None else result
        if not all(type(x) is Array and x.share is None and x.weak is None for x in results):
            return _NEVER
        if any(x is y for x in results for y in placeholders):
            return _NEVER  # NumPy's function gives an operand back, and whether it is the same object counts
        number = count(len(types))
        of = {x.value: k for k, x in enumerate(placeholders)}
        steps = []
        for code, operands, first, n_results in nodes:
            if any(x in of for x in operands):  # others are of constants, which are there now
                steps.append((code, tuple([of.get(x, ~x) for x in operands]), n_results))
                of |= {first + k: next(number) for k in range(n_results)}
        return Steps(tuple(steps), tuple([(of.get(x.value, ~x.value), x.type) for x in results]), container)


def kind_of(argument: object, operands: list[Array]) -> Any:
    """What tells a call with this argument from others, hashable; traced arrays in it are appended to `operands`.

    Raises TypeError for what is not hashable.
    """
    class_ = argument.__class__
    if class_ is Array and argument.weak is None:  # type: ignore[attr-defined]
        operands.append(argument)  # type: ignore[arg-type]
        return argument.type  # type: ignore[attr-defined]
    if class_ is tuple or class_ is list:
        return class_, *[kind_of(x, operands) for x in argument]  # type: ignore[attr-defined]
    if class_ is slice:
        return class_, kind_of(argument.start, operands), kind_of(argument.stop, operands), kind_of(argument.step, operands)  # type: ignore[attr-defined]
    if class_ in _STATIC:
        return class_, argument
    if class_ is float:
        return class_, argument or str(argument)  # as -0.0 == 0.0
    raise TypeError


_STATIC = frozenset({int, bool, str, EllipsisType, NoneType, type})


def repeated(name: str, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """function(*args, **options), recorded as it was before for others of their kind. `name` is the function's."""
    operands: list[Array] = []
    try:
        key = name, kind_of(args, operands), *[(k, kind_of(x, operands)) for k, x in options.items()]
    except TypeError:
        return function(*args, **options)
    if not operands:
        return function(*args, **options)

    def call(*others: Array) -> Any:
        values = iter(others)
        return function(*_replaced(args, values), **{k: _replaced(x, values) for k, x in options.items()})

    return operands[0].recorder.repeats.call(key, call, operands)


def _replaced(argument: Any, values: Iterator[Array]) -> Any:
    """An argument with other traced arrays in it."""
    if argument.__class__ is tuple or argument.__class__ is list:
        return argument.__class__([_replaced(x, values) for x in argument])
    return next(values) if argument.__class__ is Array else argument
