"""Operands: what NumPy's functions take beside traced arrays, what NumPy makes of them, and calls on operands of known kinds.

What a function of NumPy records depends on the types of its operands and on its other arguments alone. So the second call of a kind
is recorded on placeholders, on which nothing depends, and what it recorded there is done again for this call and all later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from types import EllipsisType, NoneType
from typing import Any, NamedTuple, Protocol

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, dtype_of, known, name_of
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import TensorType, real_dtype

Operand = object
"""What NumPy's functions take: an `Array`, a NumPy array or scalar, a number, or nested lists of these."""

NUMBERS = (bool, int, float, complex)
_EXAMPLE: dict[object, Any] = {int: 0, float: 0.0, complex: 0j}
"""Python's numbers, whose classes give way to the dtypes of arrays (NEP 50)."""


def arrays_in(values: Iterable[object]) -> list[Array]:
    """The traced arrays among arguments, in lists, tuples and dicts, too."""
    arrays: list[Array] = []
    for value in values:
        if isinstance(value, Array):
            arrays.append(value)
        elif isinstance(value, list | tuple):
            arrays += arrays_in(value)
        elif isinstance(value, dict):
            arrays += arrays_in(value.values())
    return arrays


def lift(value: Operand, like: Array, dtype: Any = None) -> Array:
    """An operand as an Array: constants become constant nodes, lists of arrays are stacked, and both converted to `dtype`.

    `dtype` is NumPy's or a name of tidu's. Raises OverflowError for a Python integer out of its range, as NumPy does.
    """
    if isinstance(value, Array):
        return value if dtype is None else value.convert(dtype)
    if isinstance(value, OpenSize):
        from tidu_cli.adapters.numpy.arrays.sizes import number_of  # which graphs without open sizes do without

        return number_of(like.recorder, value, dtype)
    if value.__class__ in NUMBERS and value and dtype is not None:  # 0.0 == -0.0
        numbers, number = like.recorder.numbers, (value.__class__, value, dtype)
        constant = numbers.get(number)
        if constant is None:
            constant = numbers[number] = _number(value, like, dtype)
        return constant
    if isinstance(value, list | tuple) and arrays_in(value):
        stacked: Array = like.recorder.numpy["stack"]([lift(x, like) for x in value])
        return stacked if dtype is None else stacked.convert(dtype)
    if dtype is None:
        return like.recorder.constant(np.asarray(value))
    if isinstance(value, NUMBERS):
        return _number(value, like, dtype)
    wanted = dtype_of(dtype) if isinstance(dtype, str) else dtype
    array = np.asarray(value)
    return like.recorder.constant(array if array.dtype == wanted else array.astype(wanted))


def _number(value: Any, like: Array, dtype: Any) -> Array:
    wanted = dtype_of(dtype) if isinstance(dtype, str) else dtype
    if isinstance(value, complex) and wanted.kind not in "bc":
        raise BuildError(f"{value} is complex and does not become {name_of(wanted)}; write its real part")
    if wanted.kind in "mM":  # a count of their unit, which NumPy takes whole
        return like.recorder.constant(np.asarray(value, wanted))
    with np.errstate(over="ignore"):
        scalar = wanted.type(value)
    if wanted.kind in "fcV" and np.isfinite(value) and not np.isfinite(scalar):
        raise BuildError(f"the number {value} is out of the range of {name_of(wanted)}; convert to a wider dtype first")
    return like.recorder.constant(scalar)


def lifted(*values: Operand, dtype: Any = None) -> list[Array]:
    """Operands as Arrays, of their own dtypes or of one. One of them is an Array, or holds one."""
    like = arrays_in(values)[0]
    return [lift(v, like, dtype) for v in values]


def lifted_weak(*values: Operand) -> list[Array]:
    """Operands as Arrays of one dtype, in which Python numbers give way, as in ufuncs."""
    return lifted(*values, dtype=result_dtype(*values))


def lifted_as_arrays(*values: Operand) -> list[Array]:
    """Operands as Arrays of one dtype, in which Python numbers count as arrays: for what calls np.asarray of its operands first."""
    return lifted(*values, dtype=array_dtype(*values))


def an_array(x: Operand, *others: Operand) -> Array:
    """x as an Array. Raises BuildError if neither x nor one of the other operands is one, or holds one."""
    if isinstance(x, Array):
        return x
    held = arrays_in([x, *others])
    if not held:
        raise BuildError("what it is applied to is a constant, and the traced array is another argument; compute it beforehand")
    return lift(x, held[0])


def kind(value: Operand) -> Any:
    """What decides the dtype of a result: tidu's name of a dtype, or for Python numbers, which give way (NEP 50), their class."""
    if isinstance(value, Array):
        return value.weak or value.type.dtype
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, OpenSize):
        return int
    if isinstance(value, np.generic | np.ndarray):
        return known(value.dtype)
    for number in (int, float, complex):
        if isinstance(value, number):
            return number
    if isinstance(value, list | tuple) and arrays_in(value):
        return name_of(array_dtype(*value))
    return known(np.asarray(value).dtype)


def result_dtype(*values: Operand) -> Any:
    """np.result_type: what NumPy promotes these operands to, where Python numbers give way to the dtypes of arrays."""
    kinds = [kind(v) for v in values]
    strong = [k for k in kinds if k not in _EXAMPLE]
    if "bf16" in strong and len(strong) < len(kinds) and complex not in kinds:
        kinds = strong  # NumPy does not know how numbers give way to bf16
    return promoted(kinds)


def array_dtype(*values: Operand) -> Any:
    """np.result_type of the operands as arrays: a Python number has the dtype that np.asarray gives it."""
    strong = [
        v.type.dtype
        if isinstance(v, Array)
        else k
        if (k := kind(v)) not in _EXAMPLE
        else "i64"
        if isinstance(v, OpenSize)
        else known(np.asarray(v).dtype)
        for v in values
    ]
    return promoted(strong)


def promoted(kinds: Sequence[Any]) -> Any:
    """The dtype that NumPy promotes operands of these kinds to. Raises BuildError if there is none."""
    try:
        return np.result_type(*(_EXAMPLE[k] if k in _EXAMPLE else dtype_of(k) for k in kinds))
    except TypeError:  # of bf16 and f16, or integers of more than 8 bits
        names = ", ".join(dict.fromkeys(k for k in kinds if isinstance(k, str)))
        raise BuildError(f"NumPy has no common dtype of {names}; convert one of them, such as x.astype(np.float32)") from None


def real_of(x: Array) -> Any:
    """The NumPy dtype of the real part."""
    return dtype_of(real_dtype(x.type.dtype))


class Clipped(Array):
    """`places` from 0 to `most`, as gathers and scatters clip them themselves. What is written into it later is no such thing."""

    __slots__ = ("most", "places", "value_of_clipped")

    def __init__(self, clipped: Array, places: Array, most: int) -> None:
        super().__init__(clipped.recorder, clipped.value, clipped.type)
        self.value_of_clipped, self.places, self.most = clipped.value, places, most

    def along(self, n: int) -> Array | None:
        """The places, if these are those of an axis of n elements."""
        unchanged = self.share is None and self.value == self.value_of_clipped
        return self.places if unchanged and self.most == n - 1 else None


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
