"""The array that formulas and traced functions compute with: a type and a place in a recording, and no value.

It behaves as a NumPy array: operators, methods, NumPy's functions (`__array_ufunc__`, `__array_function__`) and those of the
Python array API standard (`__array_namespace__`). What would need a value is refused in words that say what to write instead.
Inputs of record types have arrays as their fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn, Protocol, cast

import numpy as np

from tidu_cli.adapters.numpy import errors
from tidu_cli.adapters.numpy.arrays.refused import CHANGING
from tidu_cli.adapters.numpy.arrays.shares import Share
from tidu_cli.errors import did_you_mean
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import DATETIMES, DURATIONS, ITEMSIZE, TIMES, UNITS, RecordType, TensorType, unit_of
from tidu_cli.lax.arrays.structural import dtype_name, numpy_dtype

Shape = tuple[int, ...]


@lru_cache
def dtype_of(name: str) -> Any:
    """The NumPy dtype of a name of tidu's; of times datetime64 and timedelta64 in their unit, as NumPy promotes them."""
    kind = "M8" if name in DATETIMES else "m8" if name in DURATIONS else ""
    return np.dtype(f"{kind}[{unit_of(name)}]") if kind else numpy_dtype(np, name)


name_of = lru_cache(dtype_name)
"""tidu's name of a NumPy dtype."""


def known(dtype: Any) -> str:
    """tidu's name of a NumPy dtype. Raises BuildError if there is none."""
    name = name_of(dtype)
    if name not in ITEMSIZE and name not in TIMES:
        able = f"times have a unit: {', '.join(UNITS)}" if np.dtype(dtype).kind in "mM" else f"dtypes: {', '.join(ITEMSIZE)}"
        raise errors.BuildError(f"NumPy's dtype {dtype} has no place in a graph ({able})")
    return name


class Recording(Protocol):
    """What an array asks of the recording that it is part of. A `Recorder` it is, which stands above NumPy's functions."""

    @property
    def repeats(self) -> Any:
        """The calls that were recorded: a `Repeats`."""

    def require_room(self, n: int) -> None:
        """Raises BuildError if n more nodes would exceed the limit."""

    @property
    def numbers(self) -> dict[Any, Array]:
        """Constants by a number of Python's and a dtype."""

    numpy: Mapping[str, Callable[..., Any]]
    """What arrays do, by NumPy's name of a function, or by that of a protocol."""

    elements: Any
    """Of the arrays that were written into buffers, the numbers of their elements."""

    open: list[Any]
    """The recordings in one another that are going on, the innermost last."""

    def value_of(self, x: Any) -> int:
        """The number of a value here."""

    def emit(self, op: str, *operands: Any, **attrs: object) -> Array:
        """The first result of a node."""

    def emit_all(self, op: str, operands: Sequence[Any], **attrs: object) -> tuple[Array, ...]:
        """All results of a node."""

    def constant(self, value: Any) -> Array:
        """A NumPy array or scalar as a node."""

    def field(self, record: Any, name: str) -> Any:
        """A field of a record."""


class WithTraced:
    """NumPy's arrays that may hold traced values: they see to functions of both."""


Method = Callable[..., "Array"]
Operator = Callable[["Array", object], "Array"]


def _binary(name: str, symbol: str = "") -> tuple[Operator, Operator, Operator]:
    """The operator of a ufunc: of an array and another operand, of the other one and an array, and in place."""

    def apply(self: Array, other: object) -> Any:
        # What else there is Python may ask in its turn.
        return self.recorder.numpy["operator"](name, self, other) if isinstance(other, OPERANDS_OF_OPERATORS) else NotImplemented

    def swapped(self: Array, other: object) -> Any:
        return self.recorder.numpy["operator"](name, other, self) if isinstance(other, OPERANDS_OF_OPERATORS) else NotImplemented

    def in_place(self: Array, other: object) -> Any:
        if self.share is None and not self.type.rank:
            return NotImplemented  # NumPy's numbers cannot be changed, and x += y is x = x + y
        return self.recorder.numpy["in place"](self, name, symbol, list(other) if isinstance(other, tuple) else other)

    return apply, swapped, in_place


def _unary(name: str) -> Method:
    """The operator of a ufunc of one operand."""
    return lambda self: cast(Array, self.recorder.numpy["operator"](name, self))


def _method(name: str) -> Method:
    """A method that is NumPy's function of that name."""

    def apply(self: Array, *args: Any, **options: Any) -> Any:
        return self.recorder.numpy[name](self, *args, **options)

    apply.__name__ = name
    return apply


MAX_STEPS = 100_000
"""As many elements of an array as a loop may take one by one."""

_STAY = "stay with arrays, or make it an ordinary argument without -i"


class Array:
    """Value number `value` of a recording, of `type`.

    `weak` is int, float or complex where it stands for a number of Python's, whose dtype gives way to those of arrays.
    """

    __slots__ = ("recorder", "share", "type", "value", "weak")
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]  # as NumPy's: == is elementwise

    def __init__(self, recorder: Recording, value: int, type_: TensorType, weak: type | None = None) -> None:
        self.recorder = recorder
        self.value = value
        self.type = type_
        self.weak = weak
        self.share: Share | None = None  # with the arrays that are views of it, or that it is a view of; if so, `value` may be old

    def __repr__(self) -> str:
        return f"<traced {self.type}>"

    @property
    def shape(self) -> Shape:
        """The sizes of the axes."""
        return self.type.shape

    @shape.setter
    def shape(self, value: object) -> None:
        self.recorder.numpy["set shape"](self, value)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.type.rank

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.type.size

    dtype = property(lambda self: dtype_of(self.type.dtype), errors.fixed("dtype", "write x = x.astype(dtype)"))
    T = property(lambda self: self.transpose())
    mT = property(lambda self: self.swapaxes(-1, -2))  # noqa: N815
    nbytes = property(lambda self: self.type.nbytes)
    itemsize = property(lambda self: self.dtype.itemsize)
    device = property(lambda self: "cpu")
    real = property(_method("real"), lambda self, new: self.recorder.numpy["set part"](self, "real", new))
    imag = property(_method("imag"), lambda self, new: self.recorder.numpy["set part"](self, "imag", new))
    flat = property(lambda self: self.recorder.numpy["flat"](self), lambda self, new: self.flat.__setitem__(..., new))

    # What everything else is made of.

    def emit(self, op: str, *operands: Array, **attrs: object) -> Array:
        """The first result of a node whose first operand is this."""
        return self.recorder.emit(op, self, *operands, **attrs)

    def constant(self, value: object, dtype: Any = None) -> Array:
        """A constant of the same recording."""
        return self.recorder.constant(np.asarray(value, dtype))

    def convert(self, dtype: Any) -> Array:
        """This as another dtype, NumPy's or by its name in tidu."""
        name = dtype if isinstance(dtype, str) else known(dtype)
        return self if name == self.type.dtype else self.emit("convert_element_type", new_dtype=name)

    def broadcast(self, shape: Shape) -> Array:
        """This with the shape that NumPy's broadcasting gives it. Raises ValueError if it does not fit."""
        if shape == self.shape:
            return self
        axes = tuple(range(len(shape) - self.ndim, len(shape)))
        if self.ndim > len(shape) or any(n not in (1, shape[k]) for n, k in zip(self.shape, axes, strict=True)):
            raise ValueError(f"{self.type} does not broadcast to the shape {list(shape)}")
        return self.emit("broadcast_in_dim", shape=shape, broadcast_dimensions=axes)

    def reshaped(self, shape: Shape) -> Array:
        """This with another shape of as many elements."""
        return self if shape == self.shape else self.emit("reshape", new_sizes=shape)

    def permuted(self, permutation: Sequence[int]) -> Array:
        """This with its axes in another order."""
        axes = tuple(permutation)
        return self if axes == tuple(range(self.ndim)) else self.emit("transpose", permutation=axes)

    # Operators.

    __add__, __radd__, __iadd__ = _binary("add", "+")
    __sub__, __rsub__, __isub__ = _binary("subtract", "-")
    __mul__, __rmul__, __imul__ = _binary("multiply", "*")
    __truediv__, __rtruediv__, __itruediv__ = _binary("divide", "/")
    __floordiv__, __rfloordiv__, __ifloordiv__ = _binary("floor_divide", "//")
    __mod__, __rmod__, __imod__ = _binary("remainder", "%")
    __divmod__, __rdivmod__ = _binary("divmod")[:2]
    __pow__, __rpow__, __ipow__ = _binary("power", "**")
    __matmul__, __rmatmul__, __imatmul__ = _binary("matmul", "@")
    __and__, __rand__, __iand__ = _binary("bitwise_and", "&")
    __or__, __ror__, __ior__ = _binary("bitwise_or", "|")
    __xor__, __rxor__, __ixor__ = _binary("bitwise_xor", "^")
    __lshift__, __rlshift__, __ilshift__ = _binary("left_shift", "<<")
    __rshift__, __rrshift__, __irshift__ = _binary("right_shift", ">>")
    __lt__, __le__, __gt__, __ge__ = (_binary(name)[0] for name in ("less", "less_equal", "greater", "greater_equal"))
    __eq__, __ne__ = _binary("equal")[0], _binary("not_equal")[0]  # type: ignore[assignment]
    __neg__, __pos__, __invert__, __abs__ = map(_unary, ("negative", "positive", "invert", "absolute"))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        if isinstance(n := self.shape[0], OpenSize):
            raise errors.UntraceableError(f"len() is an int of Python's, and the size {n} is open; write x.shape[0]")
        return n

    def __iter__(self) -> Iterator[Array]:
        if not self.shape:
            raise TypeError("iteration over an array without axes")
        if isinstance(n := self.shape[0], OpenSize):
            raise errors.UntraceableError(f"a loop over the rows of {self.type} has {n} turns; write tidu.scan(f, init, x)")
        if n > MAX_STEPS:
            raise errors.BuildError(f"iteration over {n:,} elements; the most are {MAX_STEPS:,}: write it with whole arrays")
        return map(self.__getitem__, range(n))

    __getitem__ = _method("item")
    __setitem__ = _method("set item")
    fill, put, sort = map(_method, ("fill", "put", "sort in place"))

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True, **options: object
    ) -> Array:
        """This as another dtype. Complex numbers lose their imaginary part where the dtype has none, as in NumPy."""
        return _method("astype")(self, np.dtype(dtype), copy=copy)

    def copy(self, order: str = "C") -> Array:
        """An array of its own. Unlike np.copy, the method lays it out as C does."""
        return _method("copy of")(self, order)

    __copy__ = __deepcopy__ = lambda self, *memo: self.copy()

    def to_device(self, device: object, /, *, stream: object = None) -> Array:
        """This: graphs know no devices."""
        return self

    def view(self, *args: object, **options: object) -> NoReturn:
        """Refused: graphs know values and not their bytes."""
        raise errors.UntraceableError("view() of an array that is traced; write astype() to convert it")

    def reshape(self, *shape: Any, **options: Any) -> Array:
        """As NumPy's method: the shape as one argument or as several."""
        return _method("reshape")(self, shape[0] if len(shape) == 1 else shape, **options)

    def transpose(self, *axes: Any) -> Array:
        """As NumPy's method: no axes, one tuple, or several axes."""
        return _method("transpose")(self, (axes[0] if len(axes) == 1 else axes) if axes else None)

    def conj(self) -> Array:
        """The complex conjugate. Unlike np.conjugate, which makes i8 of them, NumPy's method leaves bools as they are."""
        return self.emit("conj") if self.type.complex else self

    conjugate = conj

    def flatten(self, order: str = "C") -> Array:
        """All elements in a row."""
        return self.copy().ravel(order)

    all, any, argmax, argmin, argsort = map(_method, ("all", "any", "argmax", "argmin", "argsort"))
    clip, cumprod, cumsum, diagonal = map(_method, ("clip", "cumprod", "cumsum", "diagonal"))
    dot, max, mean, min, prod, ravel = map(_method, ("dot", "max", "mean", "min", "prod", "ravel"))
    repeat, round, squeeze, std, sum = map(_method, ("repeat", "round", "squeeze", "std", "sum"))
    swapaxes, take, trace, var = map(_method, ("swapaxes", "take", "trace", "var"))

    def __getattr__(self, name: str) -> NoReturn:
        if name in CHANGING:
            raise errors.UnknownFunctionError(f".{name} changes an array in place, which a traced one cannot; {CHANGING[name]}")
        known = [k for k in dir(type(self)) if not k.startswith("_")]
        raise errors.UnknownFunctionError(
            f"a traced array has no .{name}{did_you_mean(name, known)} (docs/build.md lists what it has)"
        )

    # Protocols.

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: object, **options: Any) -> Any:
        if any(isinstance(x, WithTraced) for x in (*inputs, *options.get("out", ()))):
            return NotImplemented
        return self.recorder.numpy["ufunc"](ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
        if any(issubclass(t, WithTraced) for t in types):
            return NotImplemented
        return self.recorder.numpy["function"](function, args, options, self)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return self.recorder.numpy["namespace"]()

    # What needs a value.

    __bool__ = errors.refused_branch(
        "a branch on a value (if, while, and, or, not, min, max, in)",
        "write np.where(condition, a, b) or tidu.cond, tidu.while_loop for while, np.maximum, &, | or ~",
    )
    __float__ = errors.refused_conversion("float()", "write NumPy's function in place of it")
    __int__ = errors.refused_conversion("int()", "write x.astype(int), and tidu.fori_loop for range(int(x))")
    __complex__ = errors.refused_conversion("complex()", _STAY)
    __index__ = errors.refused_conversion(
        errors.AN_INTEGER, "make it a constant, write tidu.fori_loop for range(), or index with the array itself: x[i]"
    )
    __array__ = errors.refused_conversion(
        "a NumPy array (of a function without support for tracing)", "write it with functions of docs/build.md"
    )
    __contains__ = errors.refused("in", "write (x == value).any()")
    __round__ = errors.refused("round()", "write np.round(x)")
    __format__ = lambda self, spec: repr(self)  # noqa: E731
    item = errors.refused("item()", _STAY)
    tolist = errors.refused("tolist()", _STAY)


OPERANDS_OF_OPERATORS = (Array, np.ndarray, np.generic, bool, int, float, complex, list, OpenSize)
"""What operators take."""


class Traced(NamedTuple):
    """A value of a recording: what nodes need to know of it."""

    recorder: Recording
    value: int
    type: RecordType
    share: None = None  # records cannot be changed in place; their fields may be


class Record:
    """A traced record: p.x, or p["x"], is a field of it, t[0] the first of a tuple. Nothing else can be done with one."""

    def __init__(self, traced: Traced) -> None:
        self._traced = traced
        self._fields: dict[str, Any] = {}  # one array each, which may be changed in place

    def __getattr__(self, name: str) -> Any:
        if self._traced.type.get(name) is None:
            raise AttributeError(self._without(name))
        if name not in self._fields:
            self._fields[name] = self._traced.recorder.field(self._traced, name)
        return self._fields[name]

    def __getitem__(self, name: str | int) -> Any:
        names = self._traced.type.names
        if isinstance(name, int) and self._traced.type.is_tuple and -len(names) <= name < len(names):
            name = names[name]
        if not isinstance(name, str) or name not in names:
            raise errors.BuildError(self._without(name))
        return getattr(self, name)

    def __iter__(self) -> Any:
        if not self._traced.type.is_tuple:
            raise errors.BuildError(f"a record, {self._traced.type}, is not gone through; take its fields by name")
        return (self[k] for k in range(len(self._traced.type.fields)))

    def _without(self, name: object) -> str:
        type_ = self._traced.type
        return f"{type_} has no field '{name}'{did_you_mean(str(name), list(type_.names))} (fields: {', '.join(type_.names)})"

    def __repr__(self) -> str:
        return f"a record, {self._traced.type}; take its fields, as in p.x"
