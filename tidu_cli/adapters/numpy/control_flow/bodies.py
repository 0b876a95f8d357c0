"""The functions of loops and branches: recorded as graphs within a recording, or, where nothing traced is in them, called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, Traced
from tidu_cli.adapters.numpy.arrays.storage import A_NUMBER, rooted
from tidu_cli.adapters.numpy.control_flow.trees import Leaf
from tidu_cli.adapters.numpy.errors import BuildError, name_of_function
from tidu_cli.adapters.numpy.recorder import Recorder, innermost, running
from tidu_cli.graph.closed import MAX_GRAPH_NESTING, TOO_DEEP, ClosedGraph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType, Type

R = TypeVar("R")

Outside = dict[int, Type]
"""Values of the recording around a body, by number, with their types."""


class Body:
    """The graph of a function, recorded within the recording `around`. What it closes over becomes inputs before its own."""

    def __init__(self, around: Recorder) -> None:
        if len(around.open) > MAX_GRAPH_NESTING:
            raise BuildError(TOO_DEEP)
        self.recorder = Recorder(around.primitives, within=around)
        self.outputs: list[tuple[str, int, Type]] = []

    def going_on(self) -> AbstractContextManager[None]:
        """Within the block, what is computed is part of it."""
        return self.recorder.going_on()

    def argument(self, name: str, type_: TensorType, weak: type | None = None) -> Array:
        """An input of its own; a number of Python's if it is `weak`."""
        x = self.recorder.input(Key(name), type_)
        assert isinstance(x, Array)
        x.share, x.weak = None, weak
        return x

    def copy(self, leaf: Leaf) -> Leaf:
        """A value of outside that may be changed in place here."""
        if isinstance(leaf, Array):
            x = Array(self.recorder, self.recorder.value_of(leaf), leaf.type, leaf.weak)
            if leaf.share is not None and not leaf.type.rank:
                rooted(x, doubt=A_NUMBER)
            return x
        return leaf.copy() if isinstance(leaf, np.ndarray) else leaf

    def array(self, leaf: Leaf) -> Array:
        """A leaf as an array of this body."""
        x = leaf if isinstance(leaf, Array) else self.recorder.constant(np.asarray(leaf))
        return Array(self.recorder, self.recorder.value_of(x), x.type)

    def give(self, names: Sequence[str], arrays: Sequence[Array]) -> None:
        """Make these its outputs."""
        self.outputs = [(name, x.value, x.type) for name, x in zip(names, arrays, strict=True)]

    @property
    def outside(self) -> Outside:
        """What it closes over and needs."""
        needed = self.recorder.needed(self.outputs)
        return {outer: type_ for outer, (value, type_) in self.recorder.taken.items() if needed[value]}

    def needs(self, k: int) -> bool:
        """Whether its outputs depend on argument k."""
        return bool(self.recorder.needed(self.outputs)[k])

    def closed(self, outside: Outside, arguments: Sequence[int] | None = None) -> ClosedGraph:
        """The graph, whose inputs are these values of outside and its arguments, all or those of these numbers."""
        own = range(len(self.recorder.inputs)) if arguments is None else arguments
        return self.recorder.closed(list(outside.items()), own, self.outputs)


def operands_of(recorder: Recorder, outside: Outside) -> list[Any]:
    """What nodes take for values of a recording."""
    return [Traced(recorder, value, type_) for value, type_ in outside.items()]  # type: ignore[arg-type]


def run(values: Iterable[Leaf], staged: Callable[[Recorder], R], plain: Callable[[], R]) -> R:
    """A loop of these values: a node of a recording if one of them is traced, or if its functions close over what is; else called.

    Where the values are plain numbers, whether functions close over what is traced is seen by recording them for once.
    """
    traced = next((x for x in values if isinstance(x, Array)), None)
    if traced is not None:
        return staged(traced.recorder.open[-1])
    around = innermost()
    if around is None:
        return plain()
    trial = Body(around)
    with suppress(Exception), trial.going_on():
        staged(trial.recorder)
    if trial.recorder.reads_traced:
        return staged(around)
    with running(None):
        return plain()


def named(function: Callable[..., Any], default: str) -> str:
    """The name of a function, or of the parameter that it is."""
    found = getattr(function, "__name__", default)
    return found if found.isidentifier() else default


def parameters(function: Callable[..., Any], default: Sequence[str]) -> list[str]:
    """The names of the parameters that a function is called with. Raises BuildError if it takes not as many."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of NumPy's functions, for example
        return list(default)
    try:
        found = signature.bind(*default)
    except TypeError as error:
        raise BuildError(f"{name_of_function(function)}: {error}; it is called with {' and '.join(default) or 'nothing'}") from None
    simple = all(signature.parameters[name].kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD for name in found.arguments)
    return list(found.arguments) if simple else list(default)
