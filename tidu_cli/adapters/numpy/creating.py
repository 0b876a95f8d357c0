"""NumPy's functions that make arrays, as a traced function finds them: they give buffers, and take lists of traced values."""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import MAX_STEPS, Array
from tidu_cli.adapters.numpy.arrays.operands import arrays_in
from tidu_cli.adapters.numpy.buffers.buffer import Buffer, numbered, owned, wrapped
from tidu_cli.adapters.numpy.buffers.elements import STATIC, ElementTable, mark_of
from tidu_cli.adapters.numpy.buffers.memory import Memory, first_array, holds_traced, innermost_running, numbers_of, plain, resolved
from tidu_cli.adapters.numpy.errors import UntraceableError
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.lax.names import names_in, ops_of

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
    if _of_sizes_alone(args, options):
        return _of_sizes(function.__name__, args, options)
    result = function(*args, **options)
    return result if any(result is x for x in args) else wrapped(result, *args, *options.values())


def computed(function: Function, name: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """What a function of `functions.FUNCTIONS` gives users, of lists of traced values too, which do not ask to be dispatched."""
    if _of_sizes_alone(args, options):
        return _of_sizes(name, args, options)
    if any(isinstance(x, list | tuple) and holds_traced(x) for x in (*args, *options.values())):
        return first_array(resolved(args), resolved(options)).recorder.numpy[name](*args, **options)
    return made(function, args, options)


def _sized(args: Any, options: Mapping[str, Any]) -> bool:
    """Whether open sizes are among the arguments of a call, or in tuples there."""
    return any(
        isinstance(x, OpenSize) or (isinstance(x, tuple | list) and any(isinstance(n, OpenSize) for n in x))
        for x in (*args, *options.values())
    )


def _of_sizes_alone(args: Any, options: Mapping[str, Any]) -> bool:
    """Likewise, and nothing else is traced, of which NumPy would ask."""
    return _sized(args, options) and not arrays_in(resolved((*args, *options.values())))


def _of_sizes(name: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """What a function of NumPy's gives of open sizes, and of numbers."""
    from tidu_cli.adapters.numpy.arrays.sizes import MAKING as OF_SIZES  # which graphs without open sizes do without

    recorder = innermost_running()
    if name == "prod" and len(args) == 1 and not options:
        return math.prod(args[0])
    if recorder is None or (name not in OF_SIZES and name not in recorder.numpy):
        raise UntraceableError(
            f"np.{name} of open sizes cannot be traced; write np.zeros, np.full, np.arange, np.linspace or np.eye"
        )
    args, options = resolved(args), {k: v for k, v in resolved(dict(options)).items() if k != "like"}
    if name in OF_SIZES:
        return OF_SIZES[name](recorder, *args, **options)
    return recorder.numpy[name](recorder.constant(np.asarray(args[0])), *args[1:], **options)


def full(function: Function, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """np.full, also of a traced value."""
    bound = _FULL.bind(*args, **options).arguments
    if _sized(args, options):
        return _of_sizes("full", args, options)
    if not holds_traced(bound["fill_value"]):
        return made(function, args, options)
    value = array(_ARRAY, (bound["fill_value"],), {"dtype": bound.get("dtype")})
    buffer = owned(np.empty(bound["shape"], value.dtype, bound.get("order", "C")))
    buffer[...] = value
    return buffer


_FULL = inspect.signature(np.full)


def array(function: Function, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What np.array gives, which copies, or one of its like."""
    value: Any = args[0] if args else None
    if isinstance(value, deque):
        value = list(value)
    # An array that is given back is written into.
    options = {k: v for k, v in options.items() if k != "like" or not holds_traced(v)}
    if not args or options.get("like") is not None or not (isinstance(value, Memory) or holds_traced(value)):
        return made(function, args, options)
    dtype, least = options.get("dtype", args[1] if len(args) > 1 else None), options.get("ndmin", 0)
    if isinstance(value, list | tuple):
        result = nested(value, dtype)
    elif dtype is not None and np.dtype(dtype) != value.dtype:
        result = resolved(value).astype(dtype) if isinstance(value, Array) or value.dtype == object else value.astype(dtype)
    elif isinstance(value, Array):
        copies = function.__name__ == "array" and options.get("copy", True)
        like, *rest = (_ARRAY,) if copies else _laying_out(function, args, options)
        result = value.recorder.numpy["function"](like, (value, *rest), {}, value)
    else:
        plain_value = np.ndarray.view(value, np.ndarray)
        laid = function(plain_value, *args[1:], **options)
        result = value if np.may_share_memory(laid, plain_value) else value.copy("C" if laid.flags.c_contiguous else "F")
    return result.reshape((1,) * (least - result.ndim) + result.shape) if result.ndim < least else result


def _laying_out(function: Function, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
    """NumPy's function that returns an array itself if its layout is the one that this call wants; and its other arguments."""
    if function.__name__ == "require":
        return function, None, options.get("requirements", args[2] if len(args) > 2 else None)
    order = options.get("order", args[2] if len(args) > 2 else None)
    if function.__name__ in ("ascontiguousarray", "asfortranarray"):
        return (function,)
    ordering = {"C": np.ascontiguousarray, "F": np.asfortranarray}.get(str(order))
    return (_ASARRAY,) if ordering is None or not args[0].ndim else (getattr(ordering, "numpys", ordering),)


def fromiter(function: Function, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """np.fromiter, of traced values too."""
    values, rest = list(args[0]), args[1:]
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
    value = resolved(x)
    return np.zeros(value.shape, value.dtype) if isinstance(value, Array) else plain(x)


def _as_numbers(x: Any, table: ElementTable, dtype: Any) -> Any:
    """The numbers of the elements of a leaf."""
    numbers = numbers_of(x) if isinstance(x, Buffer) and x.dtype == dtype else None
    if numbers is not None:
        return numbers
    value = resolved(x)
    if not isinstance(value, Array):
        return np.full(np.shape(value), STATIC)
    if value.type.complex and dtype.kind != "c":
        raise TypeError(f"a value of {value.type} does not become {dtype}; write its real part, z.real")
    return table.numbered(value.convert(dtype))


def _of_objects(value: Any) -> Any:
    """Nested lists as an array of objects."""
    objects = np.empty(np.shape(_mapped(value, lambda x: 0)), object)
    for place in np.ndindex(*objects.shape):
        x = value
        for k in place:
            x = x[k]
        objects[place] = x
    return owned(objects)


# What of NumPy's is neither function nor method, with traced values: np.r_, np.c_, np.vectorize and np.ndenumerate.
#
# And functions that call a function of users', with traced arrays.


def joined(numpys: Any, key: Any) -> Any:
    """np.r_[key] or np.c_[key]."""
    if not holds_traced(key):
        return wrapped(numpys[key])
    parts = [numpys[k] if isinstance(k, slice) else k for k in (key if isinstance(key, tuple) else (key,))]
    said = [k for k in parts if isinstance(k, str)]
    given = [k for k in parts if not isinstance(k, str)]
    return assembled(lambda values, _: numpys[(*said, *values)], given)


def enumerated(numpys: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """np.ndenumerate: the elements of an array with their places."""
    if options or len(args) != 1 or not holds_traced(args):
        return numpys(*args, **options)
    x = args[0] if hasattr(args[0], "shape") else nested(args[0])  # itself: changes while it goes on are seen
    return ((k, x[k]) for k in np.ndindex(*x.shape))


def along_axis(numpys: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """np.apply_along_axis: the results for all rows along an axis, in the place of that axis."""
    if not holds_traced((args, options)):
        return numpys(*args, **options)
    given = dict(zip(("func1d", "axis", "arr"), args, strict=False))
    function, axis, x = ({**given, **options}[k] for k in ("func1d", "axis", "arr"))
    named = {k: v for k, v in options.items() if k not in ("func1d", "axis", "arr")}
    x = x if hasattr(x, "shape") else nested(x)
    axis = range(x.ndim)[axis]
    rows = np.moveaxis(x, axis, -1)
    shape = rows.shape[:-1]
    if not math.prod(shape) or math.prod(shape) > MAX_STEPS:
        raise UntraceableError(f"np.apply_along_axis of {math.prod(shape):,} rows; write it with whole arrays")
    results = nested([function(rows[k], *args[3:], **named) for k in np.ndindex(*shape)])
    results = results.reshape((*shape, *results.shape[1:]))
    return np.moveaxis(results, range(len(shape), results.ndim), range(axis, axis + results.ndim - len(shape)))


def piecewise(numpys: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """np.piecewise: what each function gives of the elements for which its condition holds; later ones win."""
    if len(args) < 3 or not holds_traced((args, options)):
        return numpys(*args, **options)
    x, conditions, functions, *rest = args
    x = x if hasattr(x, "shape") else nested(x)
    first = conditions[0] if isinstance(conditions, list | tuple) else conditions
    if not isinstance(conditions, list | tuple) and np.ndim(conditions) <= x.ndim:
        conditions = [conditions]
    elif x.ndim and not np.ndim(first):
        conditions = [nested(list(conditions))]
    conditions = list(conditions)
    if len(functions) == len(conditions) + 1:
        conditions.append(~functools.reduce(operator.or_, conditions))
    if len(functions) != len(conditions):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} functions are expected"
        )
    y = np.zeros_like(x)
    for condition, function in zip(conditions, functions, strict=True):
        y[condition] = function(x[condition], *rest, **options) if callable(function) else function
    return y


def vectorized(self: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """What np.vectorize calls for each element, called so. Raises UntraceableError for its options."""
    if options or self.signature is not None or self.excluded:
        raise UntraceableError(
            "np.vectorize with signature=, excluded= or named arguments cannot be traced; write a loop over the rows and np.stack"
        )
    arrays = [x if isinstance(x, Buffer) or hasattr(x, "recorder") else np.asarray(x) for x in args]
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    if math.prod(shape) > MAX_STEPS:
        raise UntraceableError(
            f"np.vectorize of {math.prod(shape):,} elements; the most are {MAX_STEPS:,}: write it with whole arrays"
        )
    full = [np.broadcast_to(x, shape) for x in arrays]
    results = [self.pyfunc(*(_element(x, k) for x in full)) for k in np.ndindex(*shape)]
    if not results:
        return self(*(np.zeros(x.shape, x.dtype) for x in arrays))
    if not isinstance(results[0], tuple):
        return _of_results(results, shape, self.otypes, 0)
    return tuple(_of_results([r[k] for r in results], shape, self.otypes, k) for k in range(len(results[0])))


def _element(x: Any, k: tuple[int, ...]) -> Any:
    element = x[k]
    return element.item() if isinstance(element, np.generic) else element


def _of_results(results: Sequence[Any], shape: tuple[int, ...], types: str | None, k: int) -> Any:
    """Results as one array, of the dtype that is asked for, or that the first of them has."""
    first = results[0]
    dtype = np.dtype(types[k]) if types else first.dtype if hasattr(first, "dtype") else np.asarray(first).dtype
    return nested(list(results), dtype).reshape(shape)


# The functions of Python's `math` of traced values: NumPy's, which give numbers of Python's.
#
# Where `math` raises, as for the root of a negative number, a graph has NaN or an infinity.


def _named_in(system: str) -> dict[str, str]:
    """What a system calls the functions of `math`."""
    return {name: names_in(system)[op] for name, op in ops_of("math").items() if op in names_in(system)}


_SAME = ("copysign", "degrees", "isfinite", "isinf", "isnan", "log10", "log2", "radians")
_UFUNCS = {**dict(zip(_SAME, _SAME, strict=True)), **_named_in("numpy"), "pow": "float_power", "fabs": "absolute"}


def _numbers(name: str, args: Any) -> list[Any]:
    """Arguments as floats. Raises TypeError for an argument that is not a number."""
    numbers = []
    for x in resolved(args):
        if isinstance(x, Array) and (x.shape or x.type.complex):
            what = f"an array of {x.type}" if x.shape else "a complex number"
            raise TypeError(f"math.{name} of {what}; write np.{_UFUNCS.get(name, name)}")
        numbers.append(x.convert("f64") if isinstance(x, Array) else float(x))
    return numbers


def _of_python(x: Any) -> Any:
    """A result as a number of Python's, whose dtype gives way."""
    weak = {"f": float, "i": int}.get(x.dtype.kind)
    return Array(x.recorder, x.value, x.type, weak) if isinstance(x, Array) else x


def _function(name: str, ufunc: Any) -> Callable[..., Any]:
    return lambda *args: _of_python(ufunc(*_numbers(name, args)))


def _whole(name: str, ufunc: Any) -> Callable[..., Any]:
    return lambda x: _of_python(ufunc(*_numbers(name, (x,))).astype(np.int64))


def _special(name: str, function: str) -> Callable[..., Any]:
    def apply(x: Any) -> Any:
        from scipy import special  # type: ignore[import-untyped]  # slow to import, and rarely needed

        return _of_python(getattr(special, function)(*_numbers(name, (x,))))

    return apply


def _log(x: Any, *base: Any) -> Any:
    logarithms = [np.log(v) for v in _numbers("log", (x, *base))]
    return _of_python(logarithms[0] / logarithms[1] if base else logarithms[0])


def _hypot(*args: Any) -> Any:
    numbers = _numbers("hypot", args)
    return _of_python(np.hypot(*numbers) if len(numbers) == 2 else np.sqrt(sum(x * x for x in numbers)))


def _isclose(a: Any, b: Any, *, rel_tol: Any = 1e-9, abs_tol: Any = 0.0) -> Any:
    raise UntraceableError(
        "math.isclose needs values, which a graph does not have yet; write np.isclose, and np.where for branches"
    )


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{name: _function(name, getattr(np, numpys)) for name, numpys in _UFUNCS.items()},
    **{name: _whole(name, getattr(np, name)) for name in ("ceil", "floor", "trunc")},
    **{name: _special(name, function) for name, function in _named_in("scipy.special").items()},
    "log": _log,
    "hypot": _hypot,
    "dist": lambda p, q: _hypot(*(a - b for a, b in zip(p, q, strict=True))),
    "fsum": lambda values: _of_python(sum(_numbers("fsum", list(values)), 0.0)),
    "isclose": _isclose,
}
"""By the names of `math`."""
