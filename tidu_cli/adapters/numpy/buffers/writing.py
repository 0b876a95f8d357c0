"""The ways to write into buffers other than by an index: functions, methods and ufuncs.

Where a function of NumPy's writes, it is asked to write the numbers of what it writes into an array of integers, which says all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.buffers import memory
from tidu_cli.adapters.numpy.buffers.elements import STATIC
from tidu_cli.adapters.numpy.errors import UntraceableError

_NONE = -1


def deposit(x: memory.Memory, values: Any, act: Callable[[Any, Any], object]) -> None:
    """What `act(x, values)` writes into x, which is asked of an array of integers. Raises what NumPy raises."""
    if isinstance(values, memory.Memory) and values.dtype == x.dtype and memory.numbers_of(values) is not None:
        theirs: Any = memory.contents_of(values)
        memory.require_here(x, theirs.table.arrays[0])
        ours = memory.described(x, theirs.table.arrays[0])
        act(np.ndarray.view(x, np.ndarray), np.ndarray.view(values, np.ndarray))
        act(ours.seen(x), theirs.seen(values))  # also where one is written into the other
        return
    traced = memory.holds_traced(values)
    given = as_array(values) if traced else memory.plain(values)
    contents = memory.contents_of(x)
    if traced or contents is not None:
        places = np.full(x.shape, _NONE)
        act(places, np.arange(np.size(given)).reshape(np.shape(given)))
        written = places != _NONE
    if traced:
        act(np.zeros(x.shape, x.dtype), np.zeros(given.shape, given.dtype))  # which NumPy may refuse for their dtypes
        memory.write(x, written, given, lambda numbers: numbers.ravel()[places[written]])
        return
    memory.require_here(x)
    act(np.ndarray.view(x, np.ndarray), given)
    if contents is not None:
        contents.seen(x)[written] = STATIC


def as_array(value: Any) -> Array:
    """A traced array, or what nested lists hold, as one."""
    value = memory.resolved(value)
    return value if isinstance(value, Array) else memory.first_array(value).recorder.numpy["stack"](value)


def overwritten(x: Any, where: Any) -> None:
    """Have x known where it was written into."""
    contents = memory.contents_of(x) if isinstance(x, memory.Memory) else None
    if contents is not None:
        contents.seen(x)[np.broadcast_to(where, x.shape)] = STATIC


def into(x: Any, result: Any, where: Any, casting: str, what: str = "", *, wider: bool = False) -> Any:
    """x, the out= of a function, which holds what was computed, broadcast if x may be `wider`. Raises what NumPy raises."""
    if not np.can_cast(result.dtype, x.dtype, casting):  # type: ignore[arg-type]
        raise TypeError(f"cannot cast output{what} from {result.dtype} to {x.dtype} with casting rule '{casting}'")
    shape = np.shape(result)
    if (np.broadcast_shapes(shape, x.shape) if wider else shape) != x.shape:
        raise ValueError(f"an output of shape {x.shape} does not fit {shape}")
    if memory.holds_traced(where):
        old = memory.array_of(x) if memory.is_traced(x) else np.ndarray.view(x, np.ndarray)
        condition = memory.resolved(where)
        memory.write(x, ..., condition.recorder.numpy["where"](condition, memory.resolved(result), old))
    else:
        mask = np.broadcast_to(memory.plain(where), x.shape)
        deposit(x, result, lambda target, values: np.copyto(target, values, where=mask, casting="unsafe"))
    return x


# Ufuncs.


def computed(ufunc: Any, method: str, inputs: Any, out: Any, options: Any) -> Any:
    """What a ufunc makes of traced values, in the end in `out`."""
    if method == "at":
        return _at(ufunc, *inputs)
    given, others = memory.resolved(inputs), memory.resolved(options)
    if ufunc is np.matmul and out and "axes" in others:  # x @= y
        if np.ndim(given[1]) < 2:
            raise ValueError("x @= y takes a y of two axes or more; write x = x @ y")
        del others["axes"]
    like = memory.first_array(*given, others)
    if not all(isinstance(x, memory.Memory) or x is None for x in out):
        return like.recorder.numpy["ufunc"](ufunc, method, given, {**others, "out": out})
    where = others.pop("where", True) if out else True
    result = like.recorder.numpy["ufunc"](ufunc, method, given, others)
    results = list(result) if isinstance(result, tuple) else [result]
    for k, x in enumerate(out):
        if x is not None:
            into(x, results[k], where, options.get("casting", "same_kind"), f" of np.{ufunc.__name__}", wider=method == "__call__")
            results[k] = x
    return tuple(results) if isinstance(result, tuple) else results[0]


def _at(ufunc: Any, x: Any, indices: Any, *values: Any) -> None:
    """`ufunc.at`: the values that go to one element one after the other, each of them once in each round."""
    if not isinstance(x, memory.Memory):
        given = memory.resolved((x, indices, *values))
        memory.first_array(*given).recorder.numpy["ufunc"](ufunc, "at", given, {})
        return
    if memory.holds_traced(indices):
        whole = memory.whole_of(x, memory.first_array(memory.resolved(indices)))
        ufunc.at(whole, memory.resolved(indices), *memory.resolved(values))
        memory.write(x, ..., whole)
        return
    places = np.arange(x.size).reshape(x.shape)[memory.plain(indices)]
    operands = [np.broadcast_to(v, np.shape(places)).reshape(-1) for v in values]
    flat = np.ravel(places)
    order = np.argsort(flat, kind="stable")
    first = np.searchsorted(flat[order], flat[order])
    turn = np.empty_like(flat)
    turn[order] = np.arange(len(flat)) - first
    for k in range(int(turn.max(initial=_NONE)) + 1):
        now = np.nonzero(turn == k)[0]
        at = np.unravel_index(flat[now], x.shape)
        changed = ufunc(x[at], *(v[now] for v in operands))
        into_part = f" of np.{ufunc.__name__}.at"
        if not np.can_cast(changed.dtype, x.dtype, "same_kind"):
            raise TypeError(f"cannot cast output{into_part} from {changed.dtype} to {x.dtype} with casting rule 'same_kind'")
        x[at] = changed


# Functions and methods.


def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    np.copyto(dst, src, casting=casting, where=where)


def _putmask(a: Any, mask: Any, values: Any) -> None:
    np.putmask(a, mask, values)


def _writer(numpys: Any, values: str, function: Any = None) -> Callable[..., None]:
    """A function that writes into its first argument what its argument `values` says. `function` is it with names of parameters."""
    function = numpys if function is None else function
    signature = inspect.signature(function)

    def apply(*args: Any, **options: Any) -> None:
        bound = signature.bind(*args, **options)
        target, *_ = bound.arguments
        x, value = bound.arguments[target], bound.arguments[values]
        others = {k: v for k, v in bound.arguments.items() if k not in (target, values)}
        if not isinstance(x, memory.Memory):
            given = memory.resolved(args), memory.resolved(options)
            memory.first_array(x, *given).recorder.numpy["function"](numpys, *given, memory.first_array(x, *given))
        elif memory.holds_traced(others):
            whole = memory.whole_of(x, memory.first_array(memory.resolved(others)))
            function(**{**memory.resolved(bound.arguments), target: whole})
            memory.write(x, ..., whole)
        else:
            given = memory.plain(others)
            deposit(x, value, lambda t, v: function(**{target: t, values: v, **given}))

    return apply


WRITERS: Mapping[str, Callable[..., Any]] = {
    "copyto": _writer(np.copyto, "src", _copyto),
    "putmask": _writer(np.putmask, "values", _putmask),
    "fill_diagonal": _writer(np.fill_diagonal, "val"),
    "put": _writer(np.put, "v"),
    "place": _writer(np.place, "vals"),
    "put_along_axis": _writer(np.put_along_axis, "values"),
}
"""NumPy's functions that write into their first argument."""


class Flat:
    """The elements of a buffer in a row, as NumPy's `flat`."""

    def __init__(self, x: Any) -> None:
        self._x = x

    def __len__(self) -> int:
        return int(self._x.size)

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        if memory.holds_traced(index):
            return self._x.ravel()[index]
        places = np.arange(self._x.size)[memory.plain(index)]
        return self._x[np.unravel_index(places, self._x.shape)]

    def __setitem__(self, index: Any, value: Any) -> None:
        if memory.holds_traced(index):
            raise UntraceableError("x.flat[i] = y with a traced i; write x[i] = y, of an array of one axis")
        deposit(self._x, value, lambda target, values: target.flat.__setitem__(memory.plain(index), values))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if memory.is_traced(self._x):
            raise UntraceableError("a NumPy array of x.flat needs values, which a graph does not have yet; write x.ravel()")
        return np.array(np.ndarray.view(self._x, np.ndarray).flat, dtype)

    def __getattr__(self, name: str) -> Any:
        return getattr(np.ndarray.view(self._x, np.ndarray).flat, name)


def _fill(self: Any, value: Any) -> None:
    """Have all elements be that one."""
    if np.ndim(value):
        raise ValueError("fill() takes one number")
    self[...] = value


def _put(self: Any, indices: Any, values: Any, mode: str = "raise") -> None:
    """As np.put."""
    np.put(self, indices, values, mode)  # type: ignore[arg-type]


def _sort(self: Any, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
    """In place."""
    if memory.is_traced(self):
        memory.write(self, ..., memory.array_of(self).recorder.numpy["sort"](memory.array_of(self), axis))
    else:
        np.ndarray.sort(np.ndarray.view(self, np.ndarray), axis, kind, order, stable=stable)


def _resize(self: Any, *shape: Any, refcheck: bool = True) -> None:
    """In place, which is for arrays that traced values were never written into."""
    if memory.contents_of(self) is not None:
        raise UntraceableError("resize() of an array that traced values were written into; write x = np.resize(x, shape)")
    np.ndarray.resize(self, *shape, refcheck=refcheck)


def _viewed(self: Any, *args: Any, **options: Any) -> Any:
    """As NumPy's, but for the bytes of traced values."""
    view = np.ndarray.view(self, *args, **options)
    if isinstance(view, memory.Memory) and (contents := memory.contents_of(self)) is not None:
        contents.seen(view)
    return view


METHODS: Mapping[str, Callable[..., Any]] = {"fill": _fill, "put": _put, "sort": _sort, "resize": _resize, "view": _viewed}
"""Methods that write, or show memory as it is."""


def set_objects(x: Any, index: Any, value: Any) -> None:
    """x[index] = value of an array of objects, which traced values are among others."""
    if memory.holds_traced(index):
        raise UntraceableError("an array of objects with a traced index; make it an array of numbers")
    value = memory.resolved(value)
    if isinstance(value, Array) and value.shape and np.ndarray.view(x, np.ndarray)[index].__class__ is np.ndarray:
        value = [value.reshape(-1)[k] for k in range(value.size)] if value.ndim == 1 else list(value)
    if memory.holds_traced(value) and np.shape(_shaped(value)):
        value = _shaped(value)
    elif isinstance(value, Array):
        entry = np.ndarray.view(x, np.ndarray)[index]
        value = _shaped(value) if isinstance(entry, np.ndarray) and entry.shape else value
    memory.require_here(x)
    np.ndarray.__setitem__(x, index, value)


def _shaped(value: Any) -> Any:
    """Nested lists of traced arrays as an array of objects."""
    if isinstance(value, Array):
        objects = np.empty(value.shape, object)
        for k in np.ndindex(value.shape):
            objects[k] = value[k] if k else value
        return objects
    if isinstance(value, list | tuple):
        return np.stack([_shaped(v) for v in value])
    one = np.empty((), object)
    one[()] = value
    return one
