"""The array that formulas and traced functions compute with: a type and a place in a recording, and no value.

It behaves as a NumPy array: operators, methods, NumPy's functions (`__array_ufunc__`, `__array_function__`) and those of the
Python array API standard (`__array_namespace__`). What would need a value is refused in words that say what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from tidu_cli.build.arrays.refusals import AN_INTEGER, fixed, refused, refused_conversion
from tidu_cli.build.errors import BuildError, UnknownFunctionError, UntraceableError
from tidu_cli.build.numpy.refused import CHANGING
from tidu_cli.errors import did_you_mean
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import dtype_name, numpy_dtype

if TYPE_CHECKING:
    from tidu_cli.build.arrays.aliasing import Share
    from tidu_cli.build.recorder import Recorder

Shape = tuple[int, ...]

dtype_of = lru_cache(partial(numpy_dtype, np))
"""The NumPy dtype of a name of tidu's."""

name_of = lru_cache(dtype_name)
"""tidu's name of a NumPy dtype."""

OPERANDS_OF_OPERATORS = (np.ndarray, np.generic, bool, int, float, complex, list)
"""What operators take beside arrays; the rest Python may ask in its turn."""


def _operator(name: str, *, swapped: bool = False) -> Callable[[Array, object], Array]:
    def apply(self: Array, other: object) -> Array:
        if type(other) is not Array and not isinstance(other, OPERANDS_OF_OPERATORS):
            return cast(Array, NotImplemented)  # as Python's operators say it
        from tidu_cli.build.numpy.elementwise.ufuncs import apply_operator

        return apply_operator(name, other, self) if swapped else apply_operator(name, self, other)

    return apply


def _in_place(name: str, symbol: str) -> Callable[[Array, object], Array]:
    def apply(self: Array, other: object) -> Array:
        if self.share is None and not self.type.rank:
            return cast(Array, NotImplemented)  # NumPy's numbers cannot be changed, and x += y is x = x + y
        from tidu_cli.build.arrays.in_place import changed_by

        return changed_by(self, name, symbol, list(other) if isinstance(other, tuple) else other)

    return apply


def _divmod(*, swapped: bool = False) -> Callable[[Array, object], tuple[Array, ...]]:
    def apply(self: Array, other: object) -> tuple[Array, ...]:
        if type(other) is not Array and not isinstance(other, OPERANDS_OF_OPERATORS):
            return cast(tuple[Array, ...], NotImplemented)
        from tidu_cli.build.numpy.elementwise.ufuncs import apply_ufunc_all

        return apply_ufunc_all("divmod", *((other, self) if swapped else (self, other)))

    return apply


def _unary(name: str) -> Callable[[Array], Array]:
    def apply(self: Array) -> Array:
        from tidu_cli.build.numpy.elementwise.ufuncs import apply_ufunc

        return apply_ufunc(name, self)

    return apply


def _call(name: str, *args: Any, **options: Any) -> Array:
    from tidu_cli.build.numpy.functions import FUNCTIONS

    found: Array = FUNCTIONS[name](*args, **options)
    return found


def _method(name: str) -> Callable[..., Array]:
    def apply(self: Array, *args: Any, **options: Any) -> Array:
        return _call(name, self, *args, **options)

    apply.__name__ = name
    return apply


MAX_STEPS = 100_000
"""As many elements of an array as a loop may take one by one."""

_STAY = "stay with arrays, or make it an ordinary argument that is no -i input"


class Array:
    """Value number `value` of a recording, of `type`."""

    __slots__ = ("recorder", "share", "type", "value")
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]  # as NumPy's: == is elementwise

    def __init__(self, recorder: Recorder, value: int, type_: TensorType) -> None:
        self.recorder = recorder
        self.value = value
        self.type = type_
        self.share: Share | None = None  # with the arrays that are views of it, or that it is a view of

    def __repr__(self) -> str:
        return f"<traced {self.type}>"

    @property
    def shape(self) -> Shape:
        """The sizes of the axes."""
        return self.type.shape

    @shape.setter
    def shape(self, value: object) -> None:
        fixed("shape", "write x = x.reshape(shape)")(self, value)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.type.rank

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.type.size

    @property
    def dtype(self) -> Any:
        """The NumPy dtype."""
        return dtype_of(self.type.dtype)

    @dtype.setter
    def dtype(self, value: object) -> None:
        fixed("dtype", "write x = x.astype(dtype)")(self, value)

    @property
    def T(self) -> Array:  # noqa: N802
        """The axes in reverse order."""
        return self.transpose()

    @property
    def mT(self) -> Array:  # noqa: N802
        """The last two axes swapped."""
        return self.swapaxes(-1, -2)

    nbytes = property(lambda self: self.type.nbytes)
    itemsize = property(lambda self: self.dtype.itemsize)
    device = property(lambda self: "cpu")
    real = property(_method("real"), fixed("real", "write new + 1j * x.imag"))
    imag = property(_method("imag"), fixed("imag", "write x.real + 1j * new"))

    # What everything else is made of.

    def emit(self, op: str, *operands: Array, **attrs: object) -> Array:
        """The first result of a node whose first operand is this."""
        return self.recorder.emit(op, self, *operands, **attrs)

    def constant(self, value: object, dtype: Any = None) -> Array:
        """A constant of the same recording."""
        return self.recorder.constant(np.asarray(value, dtype))

    def convert(self, dtype: Any) -> Array:
        """This as another dtype, NumPy's or by its name in tidu."""
        name = dtype if isinstance(dtype, str) else name_of(dtype)
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

    __add__ = _operator("add")
    __radd__ = _operator("add", swapped=True)
    __sub__ = _operator("subtract")
    __rsub__ = _operator("subtract", swapped=True)
    __mul__ = _operator("multiply")
    __rmul__ = _operator("multiply", swapped=True)
    __truediv__ = _operator("divide")
    __rtruediv__ = _operator("divide", swapped=True)
    __floordiv__ = _operator("floor_divide")
    __rfloordiv__ = _operator("floor_divide", swapped=True)
    __mod__ = _operator("remainder")
    __rmod__ = _operator("remainder", swapped=True)
    __divmod__ = _divmod()
    __rdivmod__ = _divmod(swapped=True)
    __pow__ = _operator("power")
    __rpow__ = _operator("power", swapped=True)
    __matmul__ = _operator("matmul")
    __rmatmul__ = _operator("matmul", swapped=True)
    __and__ = _operator("bitwise_and")
    __rand__ = _operator("bitwise_and", swapped=True)
    __or__ = _operator("bitwise_or")
    __ror__ = _operator("bitwise_or", swapped=True)
    __xor__ = _operator("bitwise_xor")
    __rxor__ = _operator("bitwise_xor", swapped=True)
    __lshift__ = _operator("left_shift")
    __rlshift__ = _operator("left_shift", swapped=True)
    __rshift__ = _operator("right_shift")
    __rrshift__ = _operator("right_shift", swapped=True)
    __lt__ = _operator("less")
    __le__ = _operator("less_equal")
    __gt__ = _operator("greater")
    __ge__ = _operator("greater_equal")
    __eq__ = _operator("equal")  # type: ignore[assignment]
    __ne__ = _operator("not_equal")  # type: ignore[assignment]
    __iadd__ = _in_place("add", "+")
    __isub__ = _in_place("subtract", "-")
    __imul__ = _in_place("multiply", "*")
    __itruediv__ = _in_place("divide", "/")
    __ifloordiv__ = _in_place("floor_divide", "//")
    __imod__ = _in_place("remainder", "%")
    __ipow__ = _in_place("power", "**")
    __imatmul__ = _in_place("matmul", "@")
    __iand__ = _in_place("bitwise_and", "&")
    __ior__ = _in_place("bitwise_or", "|")
    __ixor__ = _in_place("bitwise_xor", "^")
    __ilshift__ = _in_place("left_shift", "<<")
    __irshift__ = _in_place("right_shift", ">>")
    __neg__ = _unary("negative")
    __pos__ = _unary("positive")
    __invert__ = _unary("invert")
    __abs__ = _unary("absolute")

    # Structure, which is known.

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        if not self.shape:
            raise TypeError("iteration over an array without axes")
        if self.shape[0] > MAX_STEPS:
            raise BuildError(f"iteration over {self.shape[0]:,} elements; the most are {MAX_STEPS:,}: write it with whole arrays")
        return (self[k] for k in range(self.shape[0]))

    def __getitem__(self, index: object) -> Array:
        from tidu_cli.build.arrays.aliasing import item_of
        from tidu_cli.build.numpy.indexing import indexed

        return item_of(self, index, indexed(self, index))

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True, **options: object
    ) -> Array:
        """This as another dtype. Complex numbers lose their imaginary part where the dtype has none, as in NumPy."""
        return _call("astype", self, np.dtype(dtype), copy=copy)

    def __copy__(self) -> Array:
        return self.copy()

    def __deepcopy__(self, memo: object) -> Array:
        return self.copy()

    def to_device(self, device: object, /, *, stream: object = None) -> Array:
        """This: graphs know no devices."""
        return self

    def view(self, *args: object, **options: object) -> NoReturn:
        """Refused: graphs know values and not their bytes."""
        raise UntraceableError("view() of an array that is traced; write astype() to convert it")

    def reshape(self, *shape: Any, **options: Any) -> Array:
        """As NumPy's method: the shape as one argument or as several."""
        return _call("reshape", self, shape[0] if len(shape) == 1 else shape, **options)

    def transpose(self, *axes: Any) -> Array:
        """As NumPy's method: no axes, one tuple, or several axes."""
        return _call("transpose", self, (axes[0] if len(axes) == 1 else axes) if axes else None)

    def conj(self) -> Array:
        """The complex conjugate. Unlike np.conjugate, which makes i8 of them, NumPy's method leaves bools as they are."""
        return self.emit("conj") if self.type.complex else self

    conjugate = conj

    def flatten(self, order: str = "C") -> Array:
        """All elements in a row."""
        return _call("ravel", self.copy(), order)

    all = _method("all")
    any = _method("any")
    argmax = _method("argmax")
    argmin = _method("argmin")
    argsort = _method("argsort")
    clip = _method("clip")
    copy = _method("copy")
    cumprod = _method("cumprod")
    cumsum = _method("cumsum")
    diagonal = _method("diagonal")
    dot = _method("dot")
    max = _method("max")
    mean = _method("mean")
    min = _method("min")
    prod = _method("prod")
    ravel = _method("ravel")
    repeat = _method("repeat")
    round = _method("round")
    squeeze = _method("squeeze")
    std = _method("std")
    sum = _method("sum")
    swapaxes = _method("swapaxes")
    take = _method("take")
    trace = _method("trace")
    var = _method("var")

    def __getattr__(self, name: str) -> NoReturn:
        if name in CHANGING:
            raise UnknownFunctionError(f".{name} changes an array in place, which a traced one cannot; {CHANGING[name]}")
        known = [k for k in dir(type(self)) if not k.startswith("_")]
        raise UnknownFunctionError(f"a traced array has no .{name}{did_you_mean(name, known)} (docs/build.md lists what it has)")

    # Protocols.

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: object, **options: Any) -> Any:
        from tidu_cli.build.numpy.elementwise.ufuncs import call_ufunc

        return call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: object, args: Sequence[Any], options: dict[str, Any]) -> Any:
        from tidu_cli.build.numpy.functions import call_function

        return call_function(function, args, options, self)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        from tidu_cli.build.numpy.namespace import NAMESPACE

        return NAMESPACE

    # What needs a value.

    __bool__ = refused(
        "a branch on a value (if, while, and, or, not, min, max, in)", "write np.where(condition, a, b), np.maximum, &, | or ~"
    )
    __float__ = refused_conversion("float() (as math's functions call it)", "write NumPy's function in place of math's")
    __int__ = refused_conversion("int()", "write x.astype(int)")
    __complex__ = refused_conversion("complex()", _STAY)
    __index__ = refused_conversion(AN_INTEGER, "make it a constant, or index with the array itself: x[i]")
    __array__ = refused_conversion(
        "a NumPy array (np.array, np.asarray, or a function without support for tracing)",
        "write np.stack([...]) to make an array of arrays",
    )
    __setitem__ = refused("assignment to elements", "write np.where(mask, new, x), np.concatenate or np.stack")
    __contains__ = refused("in", "write (x == value).any()")
    __round__ = refused("round()", "write np.round(x)")
    __format__ = lambda self, spec: repr(self)  # noqa: E731
    item = refused("item()", _STAY)
    tolist = refused("tolist()", _STAY)
