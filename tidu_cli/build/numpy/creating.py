"""NumPy's functions that make arrays, as a traced function finds them: they give buffers, and take lists of traced values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tidu_cli.build.arrays.array import Array
from tidu_cli.build.arrays.buffers import numbered, owned, wrapped
from tidu_cli.build.arrays.contents import mark_of
from tidu_cli.build.arrays.elements import STATIC, ElementTable
from tidu_cli.build.arrays.memory import Memory, first_array, holds_traced, is_traced, numbers_of, plain, resolved
from tidu_cli.build.errors import UntraceableError

Function = Callable[..., Any]

MAKING = (
    "arange", "copy", "diag", "empty", "empty_like", "eye", "full", "full_like", "geomspace", "identity", "indices", "linspace",
    "logspace", "ones", "ones_like", "outer", "repeat", "tile", "tri", "tril", "triu", "vander", "where", "zeros", "zeros_like",
    "concatenate", "hstack", "vstack", "stack", "column_stack", "meshgrid", "loadtxt", "genfromtxt",
)  # fmt: skip
"""Functions that give new arrays of numbers."""


def made(function: Function, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """What one of these functions gives users: a buffer, or what is traced."""
    found = function(*args, **options)
    if type(found) is np.ndarray:
        return found if any(found is x for x in args) or found.base is not None else owned(found)
    return wrapped(found) if type(found) in (list, tuple) else found


# Arrays of nested lists.


def of_nested(function: Function, value: Any, dtype: Any = None, **options: Any) -> Any:
    """np.array and its like of nested lists that hold traced values. Raises ValueError as NumPy does for lists of several lengths."""
    if dtype is not None and np.dtype(dtype) == object:
        return _of_objects(value)
    like = first_array(resolved(value))
    known = function(_mapped(value, _number), dtype=dtype, **options)
    if known.dtype == object:
        raise UntraceableError("np.array of traced values and objects; give dtype=object, or make it an array of numbers")
    table: ElementTable = like.recorder.elements
    numbers = np.array(_mapped(value, lambda x: _numbers(x, table, known.dtype)), ndmin=known.ndim)
    try:
        mark_of(known.dtype)
    except UntraceableError:  # what code that is not traced could not tell from numbers
        return table.joined(numbers, known)
    return numbered(known, numbers, table)


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, list | tuple):
        return [_mapped(x, change) for x in value]
    return change(value)


def _number(x: Any) -> Any:
    """What stands for a traced value when NumPy is asked for types and shapes."""
    found = resolved(x) if isinstance(x, np.ndarray) else x
    return np.zeros(found.shape, found.dtype) if isinstance(found, Array) else plain(x)


def _numbers(x: Any, table: ElementTable, dtype: Any) -> Any:
    """The numbers of the elements of a leaf."""
    if isinstance(x, Memory) and x.dtype == dtype and x.dtype != object:
        numbers = numbers_of(x)
        return np.full(x.shape, STATIC) if numbers is None else numbers
    found = resolved(x) if isinstance(x, np.ndarray) else x
    if isinstance(found, Array):
        if found.type.complex and dtype.kind != "c":
            raise TypeError(f"a value of {found.type} does not become {dtype}; write its real part, z.real")
        return table.numbered(found.convert(dtype))
    return np.full(np.shape(found), STATIC)


def _of_objects(value: Any) -> Any:
    """Nested lists as an array of objects."""
    leaves, shape = _mapped(value, lambda x: 0), ()
    shape = np.shape(leaves)
    found = np.empty(shape, object)
    for k in np.ndindex(*shape):
        x = value
        for i in k:
            x = x[i]
        found[k] = x
    return owned(found)


def array(function: Function, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """np.array, np.asarray and the like."""
    if not args or options.get("like") is not None:
        return function(*args, **options)
    value, *rest = args
    if rest:
        options = {"dtype": rest[0], **options}
    dtype = options.get("dtype")
    copies = name == "array" and options.get("copy", True) is not None and options.get("copy", True)
    if isinstance(value, Memory):
        return _of_buffer(value, dtype, copies, options)
    if isinstance(value, Array) or (isinstance(value, np.ndarray) and is_traced(value)):
        given = {k: v for k, v in options.items() if k in ("dtype",)} | ({} if copies else {"copy": None})
        given = {"dtype": dtype} if dtype is not None else {}
        like = resolved(value)
        found = like.recorder.numpy["function"](_NUMPYS["array" if copies else "asarray"], (like,), given, like)
        least = options.get("ndmin", 0)
        return found.reshape((1,) * (least - found.ndim) + found.shape) if found.ndim < least else found
    if isinstance(value, list | tuple) and holds_traced(value):
        options.pop("copy", None), options.pop("order", None), options.pop("subok", None)
        return of_nested(_NUMPYS["array"], value, **options)
    found = function(*args, **options) if not rest else function(value, **options)
    return owned(found) if type(found) is np.ndarray and found is not value and found.base is None else wrapped_views(found)


def wrapped_views(found: Any) -> Any:
    """A view of a buffer as one."""
    return found


_NUMPYS = {name: getattr(np, name) for name in ("array", "asarray")}


def _of_buffer(x: Memory, dtype: Any, copies: Any, options: Mapping[str, Any]) -> Any:
    least = options.get("ndmin", 0)
    if dtype is not None and np.dtype(dtype) != x.dtype:
        found: Any = x.astype(dtype)
    else:
        found = x.copy() if copies else x
    return found.reshape((1,) * (least - found.ndim) + found.shape) if found.ndim < least else found


def fromiter(function: Function, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """np.fromiter, of traced values too."""
    values, *rest = args
    values = list(values)
    if not holds_traced(values):
        return owned(function(values, *rest, **options))
    dtype = rest[0] if rest else options["dtype"]
    return of_nested(_NUMPYS["array"], values, dtype)
