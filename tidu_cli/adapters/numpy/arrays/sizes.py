"""Open sizes in formulas and traced functions: `x.shape[0]` is one. It is a number of the graph where arithmetic needs one.

What needs an int of Python's is refused in words that say what to write instead.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import prod
from typing import Any, NoReturn, cast
from zlib import crc32

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, Shape, known
from tidu_cli.adapters.numpy.arrays.refused import name_of_call
from tidu_cli.adapters.numpy.errors import UntraceableError, written_by_users
from tidu_cli.errors import TiduError
from tidu_cli.graph.sizes.algebra import Size, names_of, undecided
from tidu_cli.graph.sizes.names import substituted, way_in_types
from tidu_cli.graph.sizes.open import NUMBERS, OpenSize, larger, smaller
from tidu_cli.graph.sizes.polynomials import bounds
from tidu_cli.graph.types import FLOATS, TensorType
from tidu_cli.rules.recording.trace import emit_size


def number_of(recorder: Any, size: OpenSize, dtype: Any = None) -> Array:
    """A size as a node, which gives way to the dtypes of arrays as an int of Python's; of a dtype, that."""
    if dtype is None:
        number = number_of(recorder, size, "i64")
        return Array(number.recorder, number.value, number.type, int)
    name = dtype if isinstance(dtype, str) else known(dtype)
    own = name if name in FLOATS else "i64"
    for reader in (recorder, *recorder.around):  # as it is known when the graph runs
        reader.reads_traced = True
    exact: Array = emit_size(recorder.emit, size, own)
    return exact.convert(name)


_users = lru_cache(maxsize=4096)(written_by_users)


class _Numbers:
    """What sizes are while this recording runs: `open.Numbers`."""

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder

    def number(self, size: Size) -> Array:
        return number_of(self._recorder, size)

    def ufunc(self, ufunc: Any, method: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
        given = [int(x) if isinstance(x, np.integer) else x for x in operands]
        exact = _EXACT.get(ufunc.__name__)
        if exact is not None and method == "__call__" and not options and all(isinstance(x, int | Size) for x in given):
            return exact(*given)
        return getattr(ufunc, method)(*[self.number(x) if isinstance(x, Size) else x for x in operands], **options)

    def require_number(self, size: Size, frame: Any) -> NoReturn:
        while frame.f_back is not None and not _users(frame.f_code.co_filename):
            frame = frame.f_back
        name = name_of_call(frame) if _users(frame.f_code.co_filename) else None
        if name is None:
            raise undecided(f"needs a number, and the size {size} is open", size)
        raise UntraceableError(f"{name}() needs a number, and the size {size} is open; {_INSTEAD.get(name, _GENERALLY)}")

    def require_decided(self, a: Size, b: Any, frame: Any) -> None:
        if _users(frame.f_code.co_filename):  # asked first: to compare sizes may take comparing others
            low, high = bounds(a - b)
            if low <= 0 <= high:
                raise undecided(f"cannot decide whether {a} == {b}", a, b, dues=[(a, b, 1), (b, a, 1)], same=(a, b))


_EXACT = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "floor_divide": operator.floordiv,
          "remainder": operator.mod, "less": operator.lt, "less_equal": operator.le, "greater": operator.gt,
          "greater_equal": operator.ge, "minimum": smaller, "maximum": larger}  # fmt: skip
"""Functions of NumPy that are decided of sizes, and integers."""

_GENERALLY = "write it with arithmetic, + - * // %, or with arrays"
_LOOP = "write tidu.scan, or tidu.fori_loop, for a loop over it"
_INSTEAD: Mapping[str, str] = {
    "range": _LOOP,
    "enumerate": _LOOP,
    "int": "leave int() out: sizes are integers",
    "float": "leave float() out: a size is a number in arithmetic with floats",
    "math.sqrt": "write np.sqrt",
    "math.log": "write np.log",
    "math.exp": "write np.exp",
}
"""What to write instead of functions that need an int of Python's."""


@contextmanager
def sizes_as_numbers(recorder: Any) -> Iterator[None]:
    """Within the block sizes are numbers of this recording where arithmetic needs them."""
    token = NUMBERS.set(None if recorder is None else cast(Any, _Numbers(recorder)))
    try:
        yield
    finally:
        NUMBERS.reset(token)


# Shapes.


class DifferentSizesError(TiduError, ValueError):
    """Two sizes that are to be the same, and are not, whatever names are, or are for some of them."""

    def __init__(self, told: str, a: Any, b: Any) -> None:
        super().__init__(f"{told}{way_in_types(a, b)}")
        self.same = a, b


def broadcast(*shapes: Shape) -> Shape:
    """The shape that these broadcast to, of which some sizes are open. Raises ValueError in the user's terms."""
    rank = max(map(len, shapes))
    common: list[Any] = []
    for sizes in zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True):
        different = list(dict.fromkeys(n for n in sizes if n != 1)) or [1]
        if len(different) > 1:
            told = " and ".join(f"[{','.join(map(str, s))}]" for s in shapes)
            raise DifferentSizesError(f"shapes {told} do not broadcast together", different[0], different[1])
        common.append(different[0])
    return tuple(common)


def reshaped(type_: TensorType, sizes: Sequence[Any]) -> Shape:
    """A shape for the elements of a type, in which -1 stands for the rest. Raises ValueError, UndecidedSizeError."""
    rest = [k for k, n in enumerate(sizes) if isinstance(n, int) and n == -1]
    others: Any = prod(n for k, n in enumerate(sizes) if k not in rest)
    quotient, left = divmod(type_.size, others) if len(rest) == 1 else (1, type_.size - others)
    if len(rest) > 1 or not (isinstance(left, int) and left == 0):
        told = f"{type_} has {type_.size} elements and does not reshape to [{','.join(map(str, sizes))}]"
        raise DifferentSizesError(told, left, 0)
    return tuple(quotient if k in rest else n for k, n in enumerate(sizes))


def standing(value: Any) -> Any:
    """The same with numbers for open sizes, such that NumPy says of these what holds of those."""
    if type(value) in (tuple, list):
        return type(value)(map(standing, value))
    if isinstance(value, slice):
        return slice(standing(value.start), standing(value.stop), standing(value.step))
    if not isinstance(value, OpenSize):
        return value
    numbers = {}
    for name in names_of(value):
        units = max(-(-name.least // name.multiple), 1) + 4 + crc32(name.text.encode()) % 13
        numbers[name.text] = units * name.multiple if name.most is None else min(units * name.multiple, name.most)
    return substituted(value, numbers)


_FIRST = 1_000_003


def open_shapes(numpys: Callable[..., Any], shapes: Sequence[Shape]) -> list[Shape]:
    """The shapes of the results of a function of NumPy's for arrays of these shapes: it runs with a number for each open size."""
    sizes: Any = dict.fromkeys(n for shape in shapes for n in shape if isinstance(n, OpenSize))
    numbers = {size: _FIRST + k for k, size in enumerate(sizes)}
    blanks = [np.broadcast_to(np.empty(()), [numbers.get(n, n) for n in shape]) for shape in shapes]
    result, standing_for = numpys(*blanks), dict(zip(numbers.values(), sizes, strict=True))
    return [tuple(standing_for.get(n, n) for n in x.shape) for x in (result if isinstance(result, list | tuple) else [result])]


# Arrays that are made of sizes.


def counted(recorder: Any, start: Any, stop: Any, step: Any, dtype: Any = None) -> Array:
    """np.arange of integers, of which some are open sizes."""
    if not all(isinstance(n, int | Size) for n in (start, stop, step)) or isinstance(step, Size) or not step:
        raise ValueError("arange of an open size takes integers, and a step that is a number; write linspace for floats")
    n = larger((stop - start + step - 1) // step if step > 0 else (start - stop - step - 1) // -step, 0)
    places = recorder.emit("iota", dtype="i64", shape=(n,), dimension=0)
    multiples = places if step == 1 else places * step
    array: Array = multiples if isinstance(start, int) and start == 0 else multiples + start
    return array.convert(np.dtype(np.int64) if dtype is None else np.dtype(dtype))


def spaced(recorder: Any, start: float, stop: float, num: Any, endpoint: bool = True, dtype: Any = None) -> Array:
    """np.linspace between numbers, in as many steps as NumPy takes."""
    places = recorder.emit("iota", dtype="f64", shape=(num,), dimension=0)
    steps = larger(num - 1, 1) if endpoint else num
    step = recorder.constant(np.float64(stop) - np.float64(start)) / steps
    points: Array = places * step + np.float64(start)
    if endpoint:
        last = recorder.emit("iota", dtype="i64", shape=(num,), dimension=0) == steps
        end = recorder.constant(np.float64(stop)).broadcast((num,))
        points = last.emit("select_n", points, end)
    return points if dtype is None else points.convert(np.dtype(dtype))


def diagonals(recorder: Any, n: Any, m: Any, k: int, dtype: Any, keeps: Any = operator.eq) -> Array:
    """np.eye, or np.tri: ones where the number of a diagonal compares so with k."""
    shape = (n, n if m is None else m)
    rows, columns = (recorder.emit("iota", dtype="i64", shape=shape, dimension=d) for d in (0, 1))
    ones: Array = keeps(columns - rows, k)
    return ones.convert(np.dtype(np.float64) if dtype is None else np.dtype(dtype))


def repeated_number(recorder: Any, shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", **options: Any) -> Array:
    """np.full."""
    value = number_of(recorder, fill_value) if isinstance(fill_value, OpenSize) else fill_value
    filling = value if isinstance(value, Array) else recorder.constant(value)
    filling = filling if dtype is None else filling.convert(np.dtype(dtype))
    return filling.broadcast(tuple(shape) if isinstance(shape, tuple | list) else (shape,))


def _filled(value: float) -> Any:
    return lambda recorder, shape, dtype=None, order="C", **options: repeated_number(
        recorder, shape, np.asarray(value, np.float64 if dtype is None else dtype)
    )


MAKING: Mapping[str, Any] = {
    "zeros": _filled(0),
    "empty": _filled(0),
    "ones": _filled(1),
    "full": repeated_number,
    "arange": lambda recorder, start, stop=None, step=1, dtype=None, **options: counted(
        recorder, 0 if stop is None else start, start if stop is None else stop, step, dtype
    ),
    "eye": lambda recorder, n, m=None, k=0, dtype=None, **options: diagonals(recorder, n, m, k, dtype),
    "identity": lambda recorder, n, dtype=None, **options: diagonals(recorder, n, None, 0, dtype),
    "tri": lambda recorder, n, m=None, k=0, dtype=None, **options: diagonals(recorder, n, m, k, dtype, operator.le),
    "linspace": spaced,
}
"""NumPy's functions that make arrays of open sizes, given a recording first."""


def ends_needed(width: tuple[int, int], mode: str) -> int:
    """The number of elements that np.pad needs along an axis of open size, in a mode that repeats them."""
    return 1 if mode == "edge" else larger(*width) + (mode == "reflect")


def with_ends(x: Array, axis: int, width: tuple[int, int], mode: str) -> list[Array]:
    """x, and what np.pad puts around it, of open sizes. Raises ValueError, or UndecidedSizeError, for too few elements."""
    (a, b), n, skipped = width, x.shape[axis], int(mode == "reflect")

    def part(*at: Any, of: Array = x) -> Array:
        return of[(slice(None),) * axis + (slice(*at),)]

    if not n >= (needed := ends_needed(width, mode)):
        raise ValueError(f"np.pad with mode={mode!r} by {a} and {b} needs {needed} elements, and axis {axis} of {x.type} has {n}")
    if mode == "edge":
        before, after = part(1), part(n - 1, n)
        before, after = (y.broadcast((*x.shape[:axis], k, *x.shape[axis + 1 :])) for y, k in ((before, a), (after, b)))
    elif mode == "wrap":
        before, after = part(n - a, n), part(b)
    else:
        ends = (skipped, skipped + a), (n - skipped - b, n - skipped)
        before, after = (part(None, None, -1, of=part(*at)) for at in ends)
    return [y for y, k in ((before, a), (x, n), (after, b)) if k != 0]
