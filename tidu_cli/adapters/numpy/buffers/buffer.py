"""NumPy arrays that a traced function makes, which traced values may be written into.

A buffer is the NumPy array that it is: NumPy, packages, and branches on its numbers do with it what they always do. Once a traced
value is written into it, its memory is known in part only (`contents`), and whatever reads such a part has the traced values. NumPy
still says what is a view of what, as views are views of the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.aliasing import SHARING
from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.buffers import memory, writing
from tidu_cli.adapters.numpy.buffers.elements import STATIC, Contents, mark_of, traced_in
from tidu_cli.adapters.numpy.errors import UntraceableError


class Buffer(memory.Memory):
    """An array of NumPy's that traced values may be written into."""

    # Elements.

    def __getitem__(self, index: Any) -> Any:
        if memory.holds_traced(index):
            return _of(self)[memory.resolved(index)]
        index = memory.plain(index)
        part: Any = np.ndarray.__getitem__(self, index)
        if isinstance(part, Buffer) and memory.root_of(part) is memory.root_of(self):
            return part
        contents = memory.contents_of(self)
        if contents is None:
            return wrapped(memory.plain(part))
        numbers = contents.seen(self)[index]
        if isinstance(numbers, np.ndarray):
            return numbered(part, numbers, contents.table)
        return part if numbers == STATIC else contents.table.one(int(numbers))

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.dtype == object:
            writing.set_objects(self, index, value)
        elif memory.holds_traced(index):
            whole = memory.whole_of(self, memory.first_array(memory.resolved(index)))
            whole[memory.resolved(index)] = memory.resolved(value)
            memory.write(self, ..., whole)
        elif isinstance(value, memory.Memory):
            memory.write(self, memory.plain(index), value)
        else:
            traced = memory.holds_traced(value)
            memory.write(self, memory.plain(index), writing.as_array(value) if traced else memory.resolved(value))

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[k] for k in range(len(self)))

    @property
    def flat(self) -> Any:
        """The elements in a row."""
        return writing.Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        self.flat[:] = value

    # Protocols.

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.pop("out", ())
        if memory.holds_traced(inputs) or memory.holds_traced(options) or (method == "at" and memory.holds_traced(out)):
            return writing.computed(ufunc, method, inputs, out, options)
        for x in (*out, *(inputs[:1] if method == "at" else ())):
            if isinstance(x, memory.Memory):
                memory.require_here(x)
        given = {"out": tuple(map(memory.plain, out))} if out else {}
        result = getattr(ufunc, method)(*map(memory.plain, inputs), **given, **memory.plain(options))
        for x in out:
            writing.overwritten(x, memory.plain(options.get("where", True)) if method == "__call__" else True)
        return (out[0] if len(out) == 1 else out) if out else wrapped(result, *inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        function = getattr(function, "numpys", function)
        name = function.__name__
        if name in writing.WRITERS:
            return writing.WRITERS[name](*args, **options)
        if isinstance(options.get("out"), memory.Memory):
            out = options["out"]
            result = function(*args, **{k: v for k, v in options.items() if k != "out"})
            return writing.into(out, result, True, "unsafe" if name != "concatenate" else options.get("casting", "same_kind"))
        if not memory.holds_traced(args) and not memory.holds_traced(options):
            return wrapped(function(*memory.plain(args), **memory.plain(options)), *args, *options.values())
        if name == "copy":
            return args[0].copy()
        if name in ("real", "imag"):
            return getattr(args[0], name)
        given = memory.resolved(args), memory.resolved(options)
        like = memory.first_array(*given)
        if not any(isinstance(x, Array) for x in _flat(args)):
            view = _view(name, lambda: function(*memory.plain(args), **memory.plain(options)))
            if view is not None:
                return view
        return like.recorder.numpy["function"](function, *given, like)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else wrapped(array)

    def __array_namespace__(self, *, api_version: Any = None) -> Any:
        if memory.is_traced(self):
            return memory.array_of(self).__array_namespace__()
        return np.ndarray.__array_namespace__(self, api_version=api_version)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if memory.is_traced(self):
            raise UntraceableError(f"{memory.array_of(self)!r} cannot be pickled; return it")
        return np.array(np.ndarray.view(self, np.ndarray)).__reduce_ex__(protocol)

    __copy__ = __deepcopy__ = lambda self, *memo: self.copy()  # type: ignore[assignment]

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("real", "imag") and (memory.is_traced(self) or memory.holds_traced(value)):
            _set_part(self, name, value)
        elif name in ("real", "imag"):
            getattr(np.ndarray, name).__set__(self, memory.plain(value))
        elif name == "flat":
            self.flat[:] = value
        else:
            super().__setattr__(name, value)


def _set_part(x: Buffer, name: str, value: Any) -> None:
    """x.real = value, or x.imag, of which one is traced."""
    if x.dtype.kind == "c":
        x[...] = value + 1j * x.imag if name == "real" else x.real + 1j * value
    elif name == "real":
        x[...] = np.real(value) if np.iscomplexobj(value) and not memory.holds_traced(value) else value
    else:
        raise TypeError("array does not have imaginary part to set")


def _now(x: Buffer) -> Any:
    """What is known of it: NumPy's own array, or the traced one."""
    return memory.array_of(x) if memory.numbers_of(x) is not None else np.ndarray.view(x, np.ndarray)


def _of(x: Buffer) -> Array:
    """A buffer as a traced array, also if all of it is known."""
    if memory.is_traced(x):
        array: Array = memory.resolved(x)
        return array
    recording = memory.innermost_running()
    if recording is None:
        raise UntraceableError("a traced value is used after its function was traced")
    constant: Array = recording.constant(np.ndarray.view(x, np.ndarray))
    return constant


def _flat(values: Any) -> Iterator[Any]:
    for x in values:
        if isinstance(x, list | tuple):
            yield from _flat(x)
        else:
            yield x


def _view(name: str, function: Callable[[], Any]) -> Any:
    """What a function of NumPy's gives, if that is a view of a buffer, or several; else None."""
    if name not in VIEWS:
        return None
    result = function()
    parts = list(result) if isinstance(result, list | tuple) else [result]
    shared = all(type(p) is np.ndarray and isinstance(memory.root_of(p), memory.Memory) for p in parts)
    return wrapped(result) if shared and parts else None


_OWN = {"ascontiguousarray", "astype", "imag", "nan_to_num", "require"}
VIEWS = {"T", "mT", *(name.rpartition(".")[2] for name in SHARING - _OWN)}
"""What NumPy gives views of, or may."""


def _method(name: str) -> Callable[..., Any]:
    """A method of NumPy's arrays: with traced values the traced array's, but for views, which NumPy makes."""
    numpys = getattr(np.ndarray, name)

    def apply(self: Any, *args: Any, **options: Any) -> Any:
        if isinstance(options.get("out"), memory.Memory):
            out = options.pop("out")
            return writing.into(out, apply(self, *args, **options), True, "same_kind", f" of .{name}()")
        if not memory.is_traced(self):
            if not (memory.holds_traced(args) or memory.holds_traced(options)):
                result = numpys(np.ndarray.view(self, np.ndarray), *memory.plain(args), **memory.plain(options))
                return wrapped(result, self, *args)
            return getattr(_of(self), name)(*memory.resolved(args), **memory.resolved(options))
        view = _view(name, lambda: numpys(np.ndarray.view(self, np.ndarray), *args, **options))
        return getattr(memory.resolved(self), name)(*memory.resolved(args), **memory.resolved(options)) if view is None else view

    apply.__name__ = name
    return apply


def _conversion(name: str) -> Callable[..., Any]:
    return lambda self, *args: getattr(_now(self), name)(*args)


def _attribute(name: str) -> Any:
    def get(self: Any) -> Any:
        view = np.ndarray.view(self, np.ndarray)
        if not memory.is_traced(self):
            return wrapped(getattr(view, name), self)
        contents = memory.contents_of(self)
        if self.dtype.kind == "c" and name in ("real", "imag") and contents is not None:
            return contents.part(getattr(memory.resolved(self), name))
        shown = _view(name, lambda: getattr(view, name))
        return getattr(memory.resolved(self), name) if shown is None else shown

    return property(get)


LAYOUT = frozenset({"setflags", "getfield", "to_device"})
"""Methods that look at no values."""


def _copied(self: Any, order: Any = "C") -> Any:
    """A buffer of its own with the same elements."""
    numbers, contents = memory.numbers_of(self), memory.contents_of(self)
    copy = np.ndarray.copy(np.ndarray.view(self, np.ndarray), order)
    return owned(copy) if numbers is None or contents is None else numbered(copy, numbers, contents.table)


def _flattened(self: Any, order: Any = "C") -> Any:
    """The elements of a copy in a row."""
    return self.copy().ravel(order)


for _name in dir(np.ndarray):
    if not _name.startswith("_") and callable(getattr(np.ndarray, _name)) and _name not in LAYOUT:
        setattr(Buffer, _name, writing.METHODS.get(_name) or _method(_name))
for _name in ("T", "mT", "real", "imag"):
    setattr(Buffer, _name, _attribute(_name))
for _name in ("__bool__", "__float__", "__int__", "__index__", "__complex__", "__repr__", "__str__", "__format__"):
    setattr(Buffer, _name, _conversion(_name))
Buffer.copy, Buffer.flatten = _copied, _flattened  # type: ignore[method-assign]


# What NumPy gives.


def wrapped(result: Any, *given: Any) -> Any:
    """What a function of NumPy's made of what it was given as a buffer: a view of that, or an array of its own."""
    if type(result) is np.ndarray:
        owner = memory.root_of(result)
        if type(owner) is Buffer:
            return result.view(Buffer)
        if not memory.buffers_wanted():
            return result
        new = owner.base is None and all(owner is not memory.root_of(x) for x in _flat(given) if isinstance(x, np.ndarray))
        return owned(result) if new else result.view(Buffer)
    if isinstance(result, list | tuple):
        parts = [wrapped(x, *given) for x in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


def owned(x: Any) -> Buffer:
    """A buffer of its own with the numbers of an array."""
    buffer: Buffer = np.ndarray.copy(x.view(Buffer), order="K")
    return buffer


def numbered(x: Any, numbers: Any, table: Any) -> Buffer:
    """A buffer of its own that holds the elements of these numbers, and those of an array of NumPy's where they are known."""
    buffer = owned(x)
    if traced_in(numbers):
        home = memory.innermost_running()
        assert home is not None
        buffer.contents = Contents(buffer, home, table)
        buffer.contents.seen(buffer)[...] = numbers
        np.ndarray.__setitem__(buffer, numbers != STATIC, mark_of(buffer.dtype))
    return buffer
