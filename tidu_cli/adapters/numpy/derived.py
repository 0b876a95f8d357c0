"""Functions of Python, differentiated where they are called, by JAX's conventions: `grad(f)(x)`.

A function is traced for the structure, shapes and dtypes of its arguments, and what was made of it is kept for these. Within a
function that is traced, its derivative is recorded, so that derivatives nest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import update_wrapper
from inspect import Parameter
from itertools import chain
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, dtype_of
from tidu_cli.adapters.numpy.buffers.memory import resolved
from tidu_cli.adapters.numpy.control_flow.bodies import Body, leaves, leaves_as, operands_of, rebuilt, run
from tidu_cli.adapters.numpy.errors import BuildError, called, name_of_function, signature_of
from tidu_cli.adapters.numpy.pytree import MAX_LEVELS, members_of, outputs_of, type_of_argument
from tidu_cli.adapters.numpy.recorder import Recorder, running
from tidu_cli.adapters.numpy.scipy.calling import scipy_traced
from tidu_cli.adapters.numpy.tracing import numpy_traced
from tidu_cli.errors import ArgumentError, did_you_mean
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import FLOATS, TensorType, Type
from tidu_cli.port_data import Static
from tidu_cli.transforms import shorthands

Compile = Callable[[Document], Callable[[Mapping[str, Any]], Mapping[str, Any]]]
"""Makes a document a function from values of inputs to values of outputs, by the text of their keys."""

KEPT = 64
"""For how many kinds of arguments a function keeps what was made of it: the last ones."""


def derived(name: str, function: Callable[..., Any], wrt: Any, compile: Compile, how: Mapping[str, Any]) -> _Derived:
    """The derivative of this name of a function: by the arguments `wrt`, their numbers or names; of jvp, vjp and hvp by all."""
    classes: dict[str, type[_Derived]] = {"jvp": _Jvp, "vjp": _Vjp, "hvp": _Hvp}
    return classes.get(name, _ByArguments)(name, function, wrt, compile, how)


class _Leaf(Frozen, eq=False):
    """A leaf of the arguments: the type of the input that it is, None of a constant; and whether one differentiates by it."""

    path: str
    value: Any
    type: TensorType | None
    moves: bool


class _Call(Frozen, slots=False, eq=False):
    """Arguments of a function, and their leaves in order."""

    args: Sequence[Any]
    options: Mapping[str, Any]
    leaves: Sequence[_Leaf]

    def inputs(self) -> list[_Leaf]:
        """The leaves that are inputs."""
        return [leaf for leaf in self.leaves if leaf.type is not None]

    def of(self, function: Callable[..., Any], values: Sequence[Any]) -> Any:
        """What the function gives for other inputs in the place of these."""
        rest = iter(values)
        args, options = rebuilt((self.args, self.options), [x.value if x.type is None else next(rest) for x in self.leaves])
        return called(function, *args, **options)

    def kind(self) -> tuple[object, ...] | None:
        """What arguments share for which the same is recorded: structures, types, and constants; None if these have no hash."""
        constants = [(type(x.value), x.value) for x in self.leaves if x.type is None]
        structures = [_structure(x) for x in (*self.args, *self.options.values())]
        kind = (len(self.args), *self.options, *chain.from_iterable(structures), *[x.type for x in self.leaves], *constants)
        try:
            hash(kind)
        except TypeError:
            return None
        return kind


class _Recorded(Frozen, slots=False, eq=False):
    """A function as a document: the keys of its inputs, a tree like its result, and the types of its outputs."""

    document: Document
    inputs: Sequence[Key]
    result: Any
    outputs: Sequence[Type]

    def more(self, derivative: Document) -> list[str]:
        """The inputs that a derivative has besides, tangents or cotangents."""
        return [str(i.key) for i in derivative.head.inputs if i.key not in self.document.inputs]


class _Derived:
    """A derivative of a function, and what was made of it for the kinds of arguments that it was called with."""

    def __init__(self, name: str, function: Callable[..., Any], wrt: Any, compile: Compile, how: Mapping[str, Any]) -> None:
        self._name, self._function, self._wrt, self._compile, self._how = name, function, wrt, compile, dict(how)
        self._kept: dict[object, tuple[_Recorded, dict[str, Any]]] = {}
        self._names: dict[int, list[str]] = {}

    def __repr__(self) -> str:
        kinds = f"{len(self._kept)} kind{'' if len(self._kept) == 1 else 's'} of arguments"
        return f"<{self._name} of {_named(self._function)}{self._by()}, traced for {kinds}>"

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles have: all but what was made for calls, which holds locks and machine code, and is made again."""
        return {**self.__dict__, "_kept": {}}

    def _by(self) -> str:
        return ""

    def _positions(self, n: int) -> list[str]:
        """The names of the first n positions; to look at a signature takes as long as small functions run."""
        if n not in self._names:
            self._names[n] = _names_of_positions(self._function, n)
        return self._names[n]

    def _values(self, name: str, call: _Call, more: Sequence[Any] = ()) -> tuple[_Recorded, list[Any]]:
        """What the derivative of this name gives, or the "value", for a call and `more` inputs, tangents or cotangents."""
        given = [leaf.value for leaf in call.inputs()]
        return run(
            [*given, *more], lambda recorder: self._staged(name, recorder, call, more), lambda: self._computed(name, call, more)
        )

    def _computed(self, name: str, call: _Call, more: Sequence[Any]) -> tuple[_Recorded, list[Any]]:
        kind = call.kind()
        kept = self._kept.pop(kind, None) if kind is not None else None
        recorded, programs = kept or (self._traced(call), {})
        if name not in programs:
            derivative = self._derivative(name, recorded, call)
            programs[name] = recorded.more(derivative), self._compile(derivative)
        if kind is not None:
            while len(self._kept) >= KEPT:
                self._kept.pop(next(iter(self._kept)), None)
            self._kept[kind] = recorded, programs
        further, program = programs[name]
        given = dict(zip(map(str, recorded.inputs), [leaf.value for leaf in call.inputs()], strict=True))
        return recorded, [value[()] for value in program(given | dict(zip(further, more, strict=True))).values()]

    def _traced(self, call: _Call) -> _Recorded:
        """The function, called with arrays that record what is done to them."""
        recorder = Recorder()
        inputs = [(Key(leaf.path), recorder.input(Key(leaf.path), leaf.type)) for leaf in call.inputs() if leaf.type]
        with running(recorder), numpy_traced(), scipy_traced():
            result = call.of(self._function, [x for _, x in inputs])
        outputs = outputs_of(recorder, result, "y")
        document = recorder.document(name_of_function(self._function), outputs)
        return _Recorded(
            document, [key for key, _ in inputs], rebuilt(result, [0] * len(outputs)), [x.type for x in outputs.values()]
        )

    def _staged(self, name: str, around: Recorder, call: _Call, more: Sequence[Any]) -> tuple[_Recorded, list[Any]]:
        """Likewise within another recording, in which the derivative is recorded, too."""
        body, inputs = Body(around), call.inputs()
        with body.going_on():
            given = [body.argument(leaf.path, leaf.type) for leaf in inputs if leaf.type]
            result = call.of(self._function, given)
            outputs = [body.array(x) for _, x in leaves(result, "y")]
            body.give([f"y{k}" for k in range(len(outputs))], outputs)
        outside = body.outside
        document = body.closed(outside).document
        keys = [i.key for i in document.head.inputs]
        types = [o.type for o in document.head.outputs]
        recorded = _Recorded(document, keys[len(outside) :], rebuilt(result, [0] * len(types)), types)
        derivative = self._derivative(name, recorded, call)
        operands = dict(zip(map(str, keys), [*operands_of(around, outside), *[leaf.value for leaf in inputs]], strict=True))
        operands |= dict(zip(recorded.more(derivative), more, strict=True))
        arrays = [_as_operand(around, i.type, operands[str(i.key)]) for i in derivative.head.inputs]
        return recorded, around.inlined(derivative.head, arrays)

    def _derivative(self, name: str, recorded: _Recorded, call: _Call) -> Document:
        """The document of a derivative by the inputs that move. Raises TransformError, ArgumentError."""
        if name == "value":
            return recorded.document
        if name in ("grad", "hessian", "hvp"):
            self._require_number(recorded.outputs)
        transform: Callable[..., shorthands.Pipeline] = getattr(shorthands, name)
        wrt = [key for key, leaf in zip(recorded.inputs, call.inputs(), strict=True) if leaf.moves]
        return transform(recorded.document, wrt, **self._how).document

    def _require_number(self, types: Sequence[Type]) -> None:
        if len(types) != 1 or not isinstance(types[0], TensorType) or types[0].size != 1 or types[0].dtype not in FLOATS:
            raise ArgumentError(
                f"{self._name} is of a function that returns one real number, and {_named(self._function)} returns "
                f"{', '.join(map(str, types))}; return a sum, or take the jacobian"
            )


class _ByArguments(_Derived):
    """The gradient, the Jacobian or the Hessian by some of the arguments."""

    def __init__(self, name: str, function: Callable[..., Any], wrt: Any, compile: Compile, how: Mapping[str, Any]) -> None:
        super().__init__(name, function, wrt, compile, {**how, "value": True} if name == "value_and_grad" else how)
        self._alone = isinstance(wrt, int | str)
        self._places: Sequence[int | str] = [wrt] if self._alone else wrt
        update_wrapper(self, function, updated=())

    def _by(self) -> str:
        return f" by {', '.join(map(str, self._places))}"

    def __call__(self, *args: Any, **options: Any) -> Any:
        """The derivative at these arguments. Raises BuildError, TransformError, ArgumentError."""
        names = [*self._positions(len(args)), *options]
        moved = [self._name_at(place, names, len(args)) for place in self._places]
        parts = {name: list(_leaves(x, name, name in moved)) for name, x in zip(names, [*args, *options.values()], strict=True)}
        call = _Call(args, options, [leaf for part in parts.values() for leaf in part])
        for name in moved:
            if not any(leaf.moves for leaf in parts[name]):
                raise ArgumentError(f"{self._name} by '{name}', which has no array or number")
        recorded, results = self._values("grad" if self._name == "value_and_grad" else self._name, call)
        trees = dict(zip(names, [*args, *options.values()], strict=True))
        # Inputs are in the order of the call, and what is given in that of `wrt`.
        places = {leaf.path: k for k, leaf in enumerate(x for x in call.leaves if x.moves)}

        def like(values: Sequence[Any]) -> Any:
            arguments = [rebuilt(trees[name], [values[places[x.path]] if x.moves else None for x in parts[name]]) for name in moved]
            return arguments[0] if self._alone else tuple(arguments)

        n = len(places)
        if self._name in ("grad", "value_and_grad"):
            gradient = like(results[-n:])
            return (rebuilt(recorded.result, results[:1]), gradient) if self._how.get("value") else gradient
        rows = [like(results[k : k + n]) for k in range(0, len(results), n)]
        return like(rows) if self._name == "hessian" else rebuilt(recorded.result, rows)

    def _name_at(self, place: int | str, names: Sequence[str], n: int) -> str:
        """The name of the argument that `wrt` says. Raises ArgumentError."""
        if isinstance(place, int):
            if -n <= place < n:
                return names[place % n]
            by_keyword = self._positions(max(place + 1, 0))[-1:]  # as JAX has it not, but Python
            if by_keyword and by_keyword[0] in names:
                return by_keyword[0]
        elif place in names:
            return place
        hint = did_you_mean(str(place), list(names)) or f" (arguments: {', '.join(names) or 'none'})"
        raise ArgumentError(f"wrt={place!r}: {_named(self._function)} is called without such an argument{hint}")


class _Along(_Derived):
    """What is by all arguments, and along directions."""

    def _call(self, primals: Any) -> _Call:
        if not isinstance(primals, tuple | list):
            raise ArgumentError(f"{self._name} takes the arguments of {_named(self._function)} as a tuple, such as (x,)")
        names = self._positions(len(primals))
        call = _Call(tuple(primals), {}, [leaf for name, x in zip(names, primals, strict=True) for leaf in _leaves(x, name, True)])
        if not call.inputs():
            raise ArgumentError(f"{self._name} is along arguments that are arrays or numbers, and there are none")
        return call

    def _directions(self, call: _Call, tangents: Any) -> list[Any]:
        """The leaves of tangents, which are built as the arguments are. Raises ArgumentError."""
        tangents = tuple(tangents) if isinstance(tangents, list | tuple) else tangents
        try:
            given = list(leaves_as(call.args, tangents, "tangents", "the call"))
        except BuildError as error:
            raise ArgumentError(f"{self._name}: {error}") from None
        return [x for x, leaf in zip(given, call.leaves, strict=True) if leaf.moves]

    def _like(self, call: _Call, values: Iterable[Any]) -> Any:
        """Values of the inputs as a tuple of arguments."""
        rest = iter(values)
        return rebuilt(call.args, [next(rest) if leaf.moves else None for leaf in call.leaves])


class _Jvp(_Along):
    def __call__(self, primals: Any, tangents: Any) -> Any:
        """The function at `primals`, a tuple of its arguments, and its derivative along `tangents`, which are built alike."""
        self._how["value"] = True
        call = self._call(primals)
        recorded, results = self._values("jvp", call, self._directions(call, tangents))
        n = len(recorded.outputs)
        return rebuilt(recorded.result, results[:n]), rebuilt(recorded.result, results[n:])


class _Hvp(_Along):
    def __call__(self, primals: Any, tangents: Any) -> Any:
        """The derivative of the gradient at `primals`, a tuple of all arguments, along `tangents`, which are built alike."""
        call = self._call(primals)
        _, results = self._values("hvp", call, self._directions(call, tangents))
        return self._like(call, results)


class _Vjp(_Along):
    def __call__(self, *primals: Any) -> Any:
        """The function at these arguments, and a function from cotangents of its result to a tuple of those of the arguments."""
        call = self._call(primals)
        recorded, values = self._values("value", call)

        def pullback(cotangents: Any) -> Any:
            """The cotangents of the arguments."""
            try:
                given = list(leaves_as(recorded.result, cotangents, "cotangents", "the call"))
            except BuildError as error:
                raise ArgumentError(f"vjp: {error}") from None
            return self._like(call, self._values("vjp", call, given)[1])

        return rebuilt(recorded.result, values), pullback


# Arguments: their names, and their leaves.


def _named(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _names_of_positions(function: Callable[..., Any], n: int) -> list[str]:
    """The names of the parameters that the first n positions of a call are for."""
    try:
        parameters = list(signature_of(function).parameters.values())
    except BuildError:
        return [f"x{k}" for k in range(n)]
    names = [p.name for p in parameters if p.kind <= Parameter.POSITIONAL_OR_KEYWORD]
    rest = next((p.name for p in parameters if p.kind is Parameter.VAR_POSITIONAL), "x")
    return [*names, *[f"{rest}.{k}" for k in range(n - len(names))]][:n]


def _leaves(tree: Any, path: str, moves: bool, level: int = 0) -> Iterator[_Leaf]:
    """The leaves of an argument. Raises ArgumentError, BuildError."""
    if level > MAX_LEVELS:
        raise BuildError(f"input '{path[:60]}' nests deeper than {MAX_LEVELS} levels")
    members = None if isinstance(tree, Static) else members_of(tree)
    if members is not None:
        for name, member in members:
            yield from _leaves(member, f"{path}.{name}", moves, level + 1)
        return
    value = resolved(tree)
    if isinstance(value, Static):
        yield _Leaf(path, value.value, None, False)
    elif type(value) in (int, bool) and not moves:
        yield _Leaf(path, value, None, False)  # as JAX has it, where only what one differentiates by is traced
    elif isinstance(value, Array):
        yield _Leaf(path, value, value.type, _movable(path, value.type, moves))
    elif isinstance(value, int | float | complex) or (hasattr(value, "shape") and hasattr(value, "dtype")):
        try:
            array = np.asarray(float(value) if type(value) is int else value)
        except OverflowError:
            raise ArgumentError(f"argument '{path}' is an integer larger than any float") from None
        type_ = type_of_argument(array, path)
        assert isinstance(type_, TensorType)
        yield _Leaf(path, array, type_, _movable(path, type_, moves))
    else:
        yield _Leaf(path, value, None, False)


def _movable(path: str, type_: TensorType, moves: bool) -> bool:
    if moves and not type_.inexact:
        way = f"convert it, {path}.astype(float)" if path.isidentifier() else "convert it to floats"
        raise ArgumentError(f"argument '{path}' is {type_}, which has no derivative; {way}, or differentiate by others (wrt)")
    return moves


def _structure(tree: Any) -> Iterator[object]:
    members = members_of(tree)
    if members is None or isinstance(tree, Static):
        return
    yield type(tree), tuple(name for name, _ in members)
    for _, member in members:
        yield from _structure(member)


def _as_operand(around: Recorder, type_: Type, value: Any) -> Any:
    """What a node takes for a value: one that is traced, or a constant of this type."""
    if isinstance(value, np.ndarray | np.generic | int | float | complex):
        assert isinstance(type_, TensorType)
        return around.constant(np.array(value, dtype_of(type_.dtype)))
    return value
