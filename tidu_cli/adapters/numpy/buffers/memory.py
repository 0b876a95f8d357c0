"""The memory of arrays of NumPy's that traced values may be written into: who has which, and what is read from it."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, WithTraced
from tidu_cli.adapters.numpy.arrays.storage import own
from tidu_cli.adapters.numpy.buffers.elements import STATIC, Contents, joined, mark_of, traced_in
from tidu_cli.adapters.numpy.errors import UntraceableError

# Which recording runs, for what recordings are made of.


RUNNING: ContextVar[Any] = ContextVar("running", default=None)
"""The outermost one."""

LOADING: ContextVar[bool] = ContextVar("loading", default=False)
"""Whether a file is run whose function is to be traced."""


def buffers_wanted() -> bool:
    """Whether arrays that are made now may be met by a function that is traced."""
    return RUNNING.get() is not None or LOADING.get()


def innermost_running() -> Any:
    """The recording in which nodes are recorded now, None if nothing is traced."""
    recording = RUNNING.get()
    return recording.open[-1] if recording is not None else None


MANY = 32
"""An array that was joined of more parts than this is one from then on: what each step of a loop writes into and reads as a whole
is joined of what is new."""

OUTSIDE = (
    "the function of a loop or branch would change an array of outside, of which it is not known how often it runs; make the array "
    "within it, or let the function take the array and return it"
)
_BEFORE = (
    "a traced value cannot be written into an array that was made before the function was traced, as calls would see what others "
    "left there; write into a copy: np.array(x)"
)


class Memory(np.ndarray, WithTraced):
    """An array of NumPy's that traced values may be written into."""

    home: Any
    contents: Contents | None

    def __array_finalize__(self, model: object) -> None:
        self.home = innermost_running()
        self.contents = None


# Memory.


def root_of(x: Any) -> Any:
    """The array that owns the memory of x."""
    while isinstance(x.base, np.ndarray):
        x = x.base
    return x


def contents_of(x: Memory) -> Contents | None:
    """What the memory of x holds, if traced values were ever written into it."""
    owner = root_of(x)
    return owner.contents if isinstance(owner, Memory) else None


def numbers_of(x: Memory) -> Any:
    """The numbers of the elements of x; None where all are known."""
    contents = contents_of(x)
    if contents is None:
        return None
    seen = contents.seen(x)
    return seen if traced_in(seen) else None


def plain(x: Any) -> Any:
    """The memory of a buffer as NumPy's own array; anything else as it is, but for what lists, tuples and dicts hold."""
    return _mapped(x, lambda b: np.ndarray.view(b, np.ndarray))


def require_here(x: Memory, value: Array | None = None) -> None:
    """Has to be called before x is changed. Raises UntraceableError unless what runs now may."""
    owner, now = root_of(x), innermost_running() if value is None else value.recorder.open[-1]
    home = owner.home if isinstance(owner, Memory) else None
    if value is not None and (home is None or home.open[0] is not now.open[0]):
        raise UntraceableError(_BEFORE)
    if home is not now and now is not None and (value is not None or len(now.open) > 1):
        raise UntraceableError(OUTSIDE)
    if isinstance(owner, Memory) and owner.contents is not None:
        owner.contents.changing()


def write(x: Memory, index: Any, value: Any, chosen: Callable[[Any], Any] | None = None) -> None:
    """x[index] = value, of which the index is known: an Array, a buffer, or anything of NumPy's.

    `chosen` says which numbers of the elements of an Array are written, if not all of them in their shape.
    """
    if isinstance(value, Array):
        value = lifted(x, value)
        if not x.flags.writeable:
            raise ValueError("assignment destination is read-only")
        numbers = value.recorder.elements.numbered(value)
        described(x, value).seen(x)[index] = numbers if chosen is None else chosen(numbers)
        np.ndarray.__setitem__(x, index, mark_of(x.dtype))
        return
    numbers = numbers_of(value) if isinstance(value, Memory) else None
    if numbers is not None and value.dtype != x.dtype:
        write(x, index, array_of(value))
        return
    require_here(x, None if numbers is None else contents_of(value).table.arrays[0])  # type: ignore[union-attr]
    np.ndarray.__setitem__(x, index, value)
    if numbers is not None:
        described(x, contents_of(value).table.arrays[0]).seen(x)[index] = numbers  # type: ignore[union-attr]
    elif (contents := contents_of(x)) is not None:
        contents.seen(x)[index] = STATIC


def lifted(x: Memory, value: Array) -> Array:
    """A value as it is written into x, or refused."""
    require_here(x, value)
    if value.type.complex and x.dtype.kind != "c":
        raise UntraceableError(f"a value of {value.type} is written into an array of {x.dtype}; write its real part, z.real")
    mark_of(x.dtype)
    return value.convert(x.dtype)


def described(x: Memory, value: Array) -> Contents:
    """What the memory of x holds, from now on also if that was known."""
    owner = root_of(x)
    if owner.contents is None:
        owner.contents = Contents(owner, value.recorder.open[-1], value.recorder.elements)
    contents: Contents = owner.contents
    return contents


# Values.


def array_of(x: Memory) -> Array:
    """A buffer that traced values were written into as the traced array that it is now."""
    numbers, contents = numbers_of(x), contents_of(x)
    assert numbers is not None and contents is not None
    array = joined(contents.table, numbers, np.ndarray.view(x, np.ndarray))
    if array.recorder.open[-1] is contents.home and contents.table.pieces(numbers) > MANY:
        traced = numbers != STATIC
        numbers[traced] = contents.table.numbered(array)[traced]
    return array


def whole_of(x: Memory, like: Array) -> Array:
    """A buffer as a traced array that may be changed, also if all of it is known."""
    return own(array_of(x) if numbers_of(x) is not None else like.recorder.constant(np.ndarray.view(x, np.ndarray)))


def is_traced(x: object) -> bool:
    """Whether it is an array with traced values in it."""
    if type(x) is Array:
        return True
    if isinstance(x, np.ndarray):
        return bool(x.dtype.hasobject and _has_objects(x)) or (isinstance(x, Memory) and numbers_of(x) is not None)
    return False


def _has_objects(x: Any) -> bool:
    return x.dtype == object and any(isinstance(e, Array) for e in np.asarray(x).flat)


def holds_traced(x: object) -> bool:
    """Whether it is an array with traced values in it, or a list, tuple or dict that holds one."""
    if isinstance(x, list | tuple):
        return any(map(holds_traced, x))
    if isinstance(x, dict):
        return any(map(holds_traced, x.values()))
    return is_traced(x)


def resolved(x: Any) -> Any:
    """The same with traced arrays for arrays with traced values in them, and NumPy's own for all other buffers."""
    return _mapped(x, _resolved)


def _resolved(x: Any) -> Any:
    if _has_objects(x):
        return of_objects(x)
    if not isinstance(x, Memory):
        return x
    return np.ndarray.view(x, np.ndarray) if numbers_of(x) is None else array_of(x)


_KNOWN = frozenset({Array, bool, int, float, complex, str, slice, type(None), type(...), np.float64, np.int64})
"""Types of what is no list or array of NumPy's: most arguments are of these."""


def _mapped(x: Any, change: Callable[[Any], Any]) -> Any:
    kind = type(x)
    if issubclass(kind, Memory) or (kind is np.ndarray and x.dtype == object):
        return change(x)
    if kind is list or kind is tuple:
        if _KNOWN.issuperset(map(type, x)):
            return x
        parts = [_mapped(e, change) for e in x]
        return x if all(a is b for a, b in zip(parts, x, strict=True)) else kind(parts)
    if kind is dict and x:
        return {k: _mapped(v, change) for k, v in x.items()}
    return x


def of_objects(x: Any) -> Array:
    """An array of objects, traced values without axes among them, as a traced array. Raises UntraceableError for other objects."""
    parts = list(np.asarray(x).flat)
    like = next(e for e in parts if isinstance(e, Array))
    for e in parts:
        if not (isinstance(e, bool | int | float | complex | np.generic) or (isinstance(e, Array) and not e.shape)):
            told = f"an array of {e.type}" if isinstance(e, Array) else f"a {type(e).__name__}"
            raise UntraceableError(f"an array of objects holds {told}; keep it in a list, or give all elements the same shape")
    stacked: Array = like.recorder.numpy["stack"](parts)
    return stacked.reshaped(x.shape)


def first_array(*values: Any) -> Array:
    """A traced array among values, which `holds_traced`, after `resolved`."""
    for x in values:
        if isinstance(x, Array):
            return x
        if isinstance(x, list | tuple | dict):
            inner = first_array(*(x.values() if isinstance(x, dict) else x))
            if inner is not None:
                return inner
    return None  # type: ignore[return-value]
