"""NumPy's functions that make arrays, as a traced function finds them: they give buffers, and take lists of traced values."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.buffers.buffer import Buffer, numbered, owned, wrapped
from tidu_cli.adapters.numpy.buffers.contents import mark_of
from tidu_cli.adapters.numpy.buffers.elements import STATIC, ElementTable
from tidu_cli.adapters.numpy.buffers.memory import Memory, first_array, holds_traced, numbers_of, plain, resolved
from tidu_cli.adapters.numpy.errors import UntraceableError

Function = Callable[..., Any]

MAKING = (
    "arange", "diagflat", "empty", "eye", "genfromtxt", "geomspace", "identity", "indices", "loadtxt", "logspace", "ones", "tri",
    "zeros",
)  # fmt: skip
"""Functions that give new arrays of numbers, of numbers."""

NESTED = ("array", "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "require")
"""Those that take nested lists, or an array, which they may give back."""

_ARRAY, _ASARRAY = np.array, np.asarray


def made(function: Function, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """What one of the functions gives users: a buffer, or what is traced."""
    found = function(*args, **options)
    return found if any(found is x for x in args) else wrapped(found, *args, *options.values())


def computed(function: Function, name: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """What a function of `functions.FUNCTIONS` gives users, of lists of traced values too, which do not ask to be dispatched."""
    if any(isinstance(x, list | tuple) and holds_traced(x) for x in (*args, *options.values())):
        return first_array(resolved(args), resolved(options)).recorder.numpy[name](*args, **options)
    return made(function, args, options)


def full(function: Function, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """np.full, also of a traced value."""
    bound = _FULL.bind(*args, **options).arguments
    if not holds_traced(bound["fill_value"]):
        return made(function, args, options)
    value = array(_ARRAY, True, (bound["fill_value"],), {"dtype": bound.get("dtype")})
    found = owned(np.empty(bound["shape"], value.dtype, bound.get("order", "C")))
    found[...] = value
    return found


_FULL = inspect.signature(np.full)


def array(function: Function, copies: bool, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What np.array gives, which `copies`, or one of its like."""
    value: Any = args[0] if args else None
    if isinstance(value, deque):
        value = list(value)
    options = {
        k: v for k, v in options.items() if k != "like" or not holds_traced(v)
    }  # an array that is given back is written into
    if not args or options.get("like") is not None or not (isinstance(value, Memory) or holds_traced(value)):
        return made(function, args, options)
    dtype, least = options.get("dtype", args[1] if len(args) > 1 else None), options.get("ndmin", 0)
    if isinstance(value, list | tuple):
        found = nested(value, dtype)
    elif dtype is not None and np.dtype(dtype) != value.dtype:
        found = resolved(value).astype(dtype) if isinstance(value, Array) or value.dtype == object else value.astype(dtype)
    elif isinstance(value, Array):
        like = _ARRAY if copies and options.get("copy", True) else _ASARRAY
        found = value.recorder.numpy["function"](like, (value,), {}, value)
    else:
        found = value.copy() if copies and options.get("copy", True) else value
    return found.reshape((1,) * (least - found.ndim) + found.shape) if found.ndim < least else found


def fromiter(function: Function, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """np.fromiter, of traced values too."""
    values, *rest = (list(args[0]), *args[1:])
    if not holds_traced(values):
        return wrapped(function(values, *rest, **options))
    return nested(values, rest[0] if rest else options["dtype"])


# Nested lists that hold traced values.


def nested(value: Any, dtype: Any = None) -> Any:
    """The array of a nested list. Raises ValueError as NumPy does for lists of several lengths."""
    if dtype is not None and np.dtype(dtype) == object:
        return _of_objects(value)
    if not holds_traced(value):
        return wrapped(_ARRAY(plain(value), dtype))
    return assembled(_ARRAY, value, dtype)


def assembled(function: Function, value: Any, dtype: Any = None) -> Any:
    """What `function` makes of nested lists that hold traced values, in which it moves elements and does no more.

    It is called with zeros in their place, which says the dtype and the shape, and with the numbers of elements, which says the
    rest.
    """
    like = first_array(resolved(value))
    known = function(_mapped(value, _zeros), dtype)
    if known.dtype == object:
        raise UntraceableError("an array of traced values and other objects; say dtype=object, or keep them in a list")
    table: ElementTable = like.recorder.elements
    numbers = function(_mapped(value, lambda x: _as_numbers(x, table, known.dtype)), None)
    try:
        mark_of(known.dtype)
    except UntraceableError:  # what code that is not traced could not tell from numbers
        return table.joined(numbers, known)
    return numbered(known, numbers, table)


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, list | tuple):
        return [_mapped(x, change) for x in value]
    return change(value)


def _zeros(x: Any) -> Any:
    """A leaf with zeros for its traced elements, for NumPy to tell types and shapes from; elements that are known stay."""
    numbers = numbers_of(x) if isinstance(x, Buffer) else None
    if numbers is not None:
        return np.where(numbers == STATIC, plain(x), x.dtype.type(0))
    found = resolved(x)
    return np.zeros(found.shape, found.dtype) if isinstance(found, Array) else plain(x)


def _as_numbers(x: Any, table: ElementTable, dtype: Any) -> Any:
    """The numbers of the elements of a leaf."""
    numbers = numbers_of(x) if isinstance(x, Buffer) and x.dtype == dtype else None
    if numbers is not None:
        return numbers
    found = resolved(x)
    if not isinstance(found, Array):
        return np.full(np.shape(found), STATIC)
    if found.type.complex and dtype.kind != "c":
        raise TypeError(f"a value of {found.type} does not become {dtype}; write its real part, z.real")
    return table.numbered(found.convert(dtype))


def _of_objects(value: Any) -> Any:
    """Nested lists as an array of objects."""
    found = np.empty(np.shape(_mapped(value, lambda x: 0)), object)
    for place in np.ndindex(*found.shape):
        x = value
        for k in place:
            x = x[k]
        found[place] = x
    return owned(found)
