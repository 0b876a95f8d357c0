"""The functions of loops and branches: recorded as graphs within a recording, or, where nothing traced is in them, called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, Record, Traced, dtype_of, known, name_of
from tidu_cli.adapters.numpy.arrays.operands import kind, promoted
from tidu_cli.adapters.numpy.arrays.storage import A_NUMBER, rooted
from tidu_cli.adapters.numpy.buffers.memory import resolved
from tidu_cli.adapters.numpy.errors import BuildError, name_of_function
from tidu_cli.adapters.numpy.pytree import MAX_LEVELS, members_of, with_members
from tidu_cli.adapters.numpy.recorder import Recorder, distinct, innermost, running
from tidu_cli.errors import ArgumentError
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.closed import MAX_GRAPH_NESTING, TOO_DEEP, ClosedGraph
from tidu_cli.graph.types import TensorType, Type

# What loops and branches take and give: arrays in dicts, lists, tuples and dataclasses; None holds none.


LEAVES = (Array, np.ndarray, np.generic, bool, int, float, complex)
"""What stands at the leaves."""

Leaf = Any
Named = tuple[str, Leaf]
"""A leaf and its path, such as `carry.x`."""


def leaves(tree: Any, path: str, level: int = 0) -> Iterator[Named]:
    """The leaves of a tree with their paths, which begin with `path`. Raises BuildError for a leaf that is not an array."""
    if level > MAX_LEVELS:
        raise BuildError(f"'{path[:60]}' nests deeper than {MAX_LEVELS} levels")
    members = members_of(tree)
    if members is not None:
        for name, member in members:
            yield from leaves(member, f"{path}.{name}", level + 1)
    elif isinstance(tree, LEAVES):
        yield path, resolved(tree)
    else:
        told = str(tree) if isinstance(tree, Record) else f"a {type(tree).__name__}"
        raise BuildError(f"'{path}' is {told}; loops and branches take and give arrays, in dicts, lists, tuples or dataclasses")


def rebuilt(tree: Any, values: Iterable[Leaf]) -> Any:
    """A tree like this with other leaves, in the order in which `leaves` gives them."""
    members, rest = members_of(tree), iter(values)
    return next(rest) if members is None else with_members(tree, {name: rebuilt(member, rest) for name, member in members})


def stopped(tree: Any) -> Any:
    """A tree whose traced leaves are held still by derivatives."""
    members = members_of(tree)
    if members is not None:
        return with_members(tree, {name: stopped(member) for name, member in members})
    if not isinstance(tree, LEAVES):
        raise ArgumentError(f"stop_gradient takes arrays, also nested, not a value of type {type(tree).__name__}")
    x = resolved(tree)
    return x.emit("stop_gradient") if isinstance(x, Array) else x


def leaves_as(model: Any, tree: Any, path: str, whence: str) -> Iterator[Leaf]:
    """The leaves of a tree in the order of those of `model`. Raises BuildError where it is built otherwise.

    `whence` says who gives the tree.
    """
    if kind_of_tree(model) != kind_of_tree(tree):
        raise BuildError(f"'{path}' is {kind_of_tree(tree)} as {whence} gives it, where {kind_of_tree(model)} is due")
    due, given = members_of(model), dict(members_of(tree) or ())
    if due is None:
        yield resolved(tree)
        return
    if given.keys() != dict(due).keys():
        names = [", ".join(map(str, some)) or "nothing" for some in (given, dict(due))]
        raise BuildError(f"'{path}' holds {names[0]} as {whence} gives it, where {names[1]} is due")
    for name, member in due:
        yield from leaves_as(member, given[name], f"{path}.{name}", whence)


def kind_of_tree(tree: Any) -> str:
    """What a tree is, with its article."""
    if tree is None or isinstance(tree, LEAVES):
        return "None" if tree is None else "an array"
    return f"a {type(tree).__name__}"


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
        x = self.recorder.argument(name, type_)
        x.weak = weak
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


def begun(recorder: Recorder, inputs: Sequence[Any]) -> tuple[Body, list[Array]]:
    """The body of a function of what is carried, and of slices, and its arguments."""
    body, names = Body(recorder), distinct([i.path for i in inputs])
    with body.going_on():
        return body, [body.argument(name, i.type, i.weak) for name, i in zip(names, inputs, strict=True)]


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
    name = getattr(function, "__name__", default)
    return name if name.isidentifier() else default


def parameters(function: Callable[..., Any], default: Sequence[str]) -> list[str]:
    """The names of the parameters that a function is called with. Raises BuildError if it takes not as many."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of NumPy's functions, for example
        return list(default)
    try:
        bound = signature.bind(*default)
    except TypeError as error:
        raise BuildError(f"{name_of_function(function)}: {error}; it is called with {' and '.join(default) or 'nothing'}") from None
    simple = all(signature.parameters[name].kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD for name in bound.arguments)
    return list(bound.arguments) if simple else list(default)


# The types of what loops carry over, which must be the same after each step, and of what branches give.
#
# Where a loop begins with a number of Python's, that gives way, as JAX has it: it takes the dtype that a step makes of it.


class Carried(Frozen, slots=False):
    """What a loop carries over under a path. `flexible`: it began as a number of Python's, which as `weak` it still is."""

    path: str
    type: TensorType
    weak: Any
    flexible: bool

    @classmethod
    def of(cls, path: str, leaf: Leaf) -> Carried:
        """As the first step takes it."""
        weak = weak_of(leaf)
        return cls(path, type_of(leaf), weak, weak is not None)

    def after(self, leaf: Leaf) -> Carried:
        """Once a step has given this: of a dtype that holds both."""
        if not self.flexible or type_of(leaf).shape:
            return self
        dtype = promoted([self.weak or self.type.dtype, kind(leaf)])
        return replace(self, type=TensorType(name_of(dtype)), weak=None)

    def fitted(self, leaf: Leaf, whence: str) -> Leaf:
        """What a step gives, as the next one takes it. Raises BuildError for another type."""
        if not fits(leaf, self.type):
            is_, due = type_of(leaf), self.type
            way = f"give it the shape {list(is_.shape)} before the loop, or keep it in {whence}"
            if is_.shape == due.shape:
                way = f"convert it before the loop, x.astype('{_numpys(is_)}'), or in {whence}, x.astype('{_numpys(due)}')"
            raise BuildError(f"the loop carries '{self.path}' as {due}, but {whence} gives {is_} for it; {way}")
        return converted(leaf, self.type)


def _numpys(type_: TensorType) -> str:
    return str(dtype_of(type_.dtype))


def type_of(leaf: Leaf) -> TensorType:
    """The type of an array or number."""
    if isinstance(leaf, Array):
        return leaf.type
    array = np.asarray(leaf)
    return TensorType(known(array.dtype), array.shape)


def weak_of(leaf: Leaf) -> type | None:
    """int, float or complex for a number of Python's."""
    return None if isinstance(number := kind(leaf), str) else number


def fits(leaf: Leaf, due: TensorType) -> bool:
    """Whether a leaf is of that type, or a number that gives way to it."""
    if weak_of(leaf) is None:
        return type_of(leaf) == due
    return type_of(leaf).shape == due.shape and name_of(promoted([due.dtype, kind(leaf)])) == due.dtype


def converted(leaf: Leaf, due: TensorType) -> Leaf:
    """A leaf that fits a type, as one of it."""
    return leaf.convert(due.dtype) if isinstance(leaf, Array) else plain(leaf, due)


def plain(leaf: Leaf, type_: TensorType) -> Any:
    """A copy of a number or NumPy array as one of that dtype; without axes it is a number of NumPy's."""
    return np.array(leaf, dtype_of(type_.dtype))[()]


def constant_of(recorder: Recorder, carried: Carried, leaf: Leaf) -> Array:
    """What a loop begins with, as a node takes it."""
    value: Array = converted(leaf, carried.type)
    return value if isinstance(value, Array) else recorder.constant(np.asarray(value))


def settled(
    init: Sequence[Named], step: Callable[[Sequence[Carried]], tuple[R, Sequence[Leaf]]]
) -> tuple[list[Carried], R, Sequence[Leaf]]:
    """What a loop carries over once its types stay the same, and what `step` gave then: a result, and the leaves after a step."""
    carried = [Carried.of(path, leaf) for path, leaf in init]
    while True:
        result, leaves = step(carried)
        after = [c.after(leaf) for c, leaf in zip(carried, leaves, strict=True)]
        if after == carried:
            return carried, result, leaves
        carried = after


def common_type(path: str, given: Sequence[tuple[str, Leaf]]) -> TensorType:
    """The type of what branches, by name, give under a path; numbers of Python's give way. Raises BuildError if they differ."""
    strong = [(name, type_of(x)) for name, x in given if weak_of(x) is None]
    first, due = strong[0] if strong else (given[0][0], TensorType(name_of(promoted([kind(x) for _, x in given]))))
    for name, x in given:
        if not fits(x, due):
            alike = type_of(x).shape == due.shape
            way = f"convert it there, x.astype('{_numpys(due)}')" if alike else "give both one shape"
            raise BuildError(f"branches must give one type, but '{path}' is {due} of {first} and {type_of(x)} of {name}; {way}")
    return due
