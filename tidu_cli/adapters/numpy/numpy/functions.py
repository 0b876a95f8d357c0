"""The functions of NumPy and of the array API that have a counterpart in graphs, by name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.aliasing import SHARING, copied, item_of, shared
from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import Operand, an_array, arrays_in, lift, repeated, result_dtype
from tidu_cli.adapters.numpy.arrays.refused import FUNCTIONS as REFUSED
from tidu_cli.adapters.numpy.arrays.storage import Selection, masked_axes, rooted
from tidu_cli.adapters.numpy.buffers.memory import Memory, resolved
from tidu_cli.adapters.numpy.buffers.writing import into
from tidu_cli.adapters.numpy.errors import UnknownFunctionError, UntraceableError
from tidu_cli.adapters.numpy.numpy import assigning, counting, indexing, putting, shaping, signal, statements, statistics
from tidu_cli.adapters.numpy.numpy.elementwise import elementary
from tidu_cli.adapters.numpy.numpy.elementwise.elementwise import UFUNCS
from tidu_cli.adapters.numpy.numpy.elementwise.ufuncs import apply_operator, call_ufunc, ufunc_again
from tidu_cli.adapters.numpy.numpy.indexing import indexed, sizes_of
from tidu_cli.adapters.numpy.numpy.linear_algebra import decompositions, products, systems
from tidu_cli.adapters.numpy.numpy.reductions import reducing, series
from tidu_cli.errors import did_you_mean


def _asarray(x: Operand, dtype: Any = None, *args: object, **options: object) -> Array:
    array = an_array(x)
    return array if dtype is None else array.convert(np.dtype(dtype))


def _full_like(
    x: Operand, fill_value: Operand, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **options: Any
) -> Array:
    like = arrays_in([x, fill_value])[0]
    model = lift(x, like)
    filling = lift(fill_value, like, model.dtype if dtype is None else np.dtype(dtype))
    return filling.broadcast(model.shape if shape is None else sizes_of(shape))


def _filled(value: Any) -> Callable[..., Array]:
    return lambda x, dtype=None, order="K", subok=True, shape=None, **options: _full_like(x, value, dtype, shape=shape)


def _ufunc(name: str) -> Callable[..., Any]:
    return lambda *operands, **options: call_ufunc(getattr(np, name), "__call__", operands, options)


def functions_of(module: ModuleType, within: str = "", without: str = "") -> dict[str, Callable[..., Any]]:
    """The functions that a module defines, by their names, and those that it composes of others."""
    functions = {k: f for k, f in vars(module).items() if isinstance(f, FunctionType) and f.__module__ == module.__name__}
    named = {within + k: f for k, f in functions.items() if k[0] != "_" and k != without}
    return {**named, **getattr(module, "COMPOSED", {})}


GROUPS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "ufuncs": {name: _ufunc(name) for name in UFUNCS if hasattr(np, name)},
    "shapes, joining and splitting": functions_of(shaping),
    "matrices and products": functions_of(products),
    "norms and linear systems": functions_of(systems, within="linalg.", without="solve_triangular"),
    "factors, eigenvalues and least squares": functions_of(decompositions, within="linalg."),
    "reductions": functions_of(reducing),
    "order and statistics": functions_of(statistics) | functions_of(counting),
    "samples": functions_of(series),
    "convolutions": {"convolve": signal.convolve, "correlate": signal.correlate},
    "Fourier transforms": signal.FUNCTIONS,
    "choices and elements": functions_of(elementary) | {"take": indexing.taken, "take_along_axis": indexing.taken_along},
    "writing into arrays": putting.WRITING,
    "arrays and their types": {
        "asarray": _asarray,
        "copy": lambda a, order="K", subok=False: an_array(a),
        "zeros_like": _filled(0),
        "ones_like": _filled(1),
        "empty_like": _filled(0),
        "full_like": _full_like,
        "shape": lambda a: an_array(a).shape,
        "ndim": lambda a: an_array(a).ndim,
        "size": lambda a, axis=None: an_array(a).size if axis is None else an_array(a).shape[axis],
        "result_type": lambda *operands: result_dtype(*operands),
        "diag_indices_from": lambda arr: np.diag_indices_from(np.broadcast_to(0, an_array(arr).shape)),
        "tril_indices_from": lambda arr, k=0: np.tril_indices_from(np.broadcast_to(0, an_array(arr).shape), k),
        "triu_indices_from": lambda arr, k=0: np.triu_indices_from(np.broadcast_to(0, an_array(arr).shape), k),
        "can_cast": lambda from_, to, casting="safe": np.can_cast(an_array(from_).dtype, to, casting),
        "iscomplexobj": lambda x: an_array(x).type.complex,
        "isrealobj": lambda x: not an_array(x).type.complex,
    },
}
"""What can be traced, by NumPy's name under `numpy`, in the groups of the documentation.

Names that NumPy has not got are for formulas and methods.
"""


def numpys(name: str) -> Any:
    """NumPy's function of a name of `FUNCTIONS`, None if this NumPy has none."""
    if name == "sliding_window_view":
        return np.lib.stride_tricks.sliding_window_view
    module, _, function = name.rpartition(".")
    current = getattr({"": np, "linalg": np.linalg, "fft": np.fft}[module], function, None)
    return getattr(current, "numpys", current)  # while something is traced, some names stand for other functions


@lru_cache(maxsize=1024)
def places_of_out(name: str) -> Mapping[str, float]:
    """The options of NumPy's function that say what to write into, and where they are by position."""
    try:
        parameters = list(inspect.signature(numpys(name)).parameters.values())
    except (TypeError, ValueError):
        return {}
    alone = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    return {p.name: math.inf if p.kind in alone else k for k, p in enumerate(parameters) if p.name in ("out", "overwrite_input")}


def _as_numpys(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with results that share elements with its arguments where NumPy's do, and with out=.

    What it takes as an Array in the first place it is given as one.
    """
    lifts = next(iter(function.__annotations__.values()), "") == "Array"
    numpys_own = numpys(name) if name in SHARING else None
    writes = name in putting.WRITING
    if "<" in function.__qualname__:
        function.__qualname__ = name  # which Python's errors name

    @wraps(function)
    def apply(*args: Any, **options: Any) -> Any:
        for option, place in places_of_out(name).items():
            given = args[int(place)] if place < len(args) else options.get(option)
            if any(given is nothing for nothing in (None, False, np._NoValue)):
                continue
            if option != "out" or not isinstance(given, Array | Memory):
                raise UntraceableError(f"np.{name} with {option}= would write into an array; leave it out and use the result")
            args = (*args[: int(place)], None, *args[int(place) + 1 :]) if place < len(args) else args
            options.pop(option, None)
            if isinstance(given, Memory):
                return into(given, apply(*args, **options), True, "same_kind", f" of np.{name}")
            return written_exactly(given, apply(*args, **options), f"np.{name}")
        args, options = resolved(args), resolved(options)
        if writes:
            return function(*args, **options)
        given = (an_array(args[0]), *args[1:]) if lifts and args and type(args[0]) is not Array else args
        return shared(name, repeated(name, function, given, options), args, options, numpys_own)

    return apply


def written_exactly(out: Array, result: Array, what: str) -> Array:
    """`out` with what a function gave, which may depend on the dtype of `out` if that is another one."""
    if result.type != out.type:
        raise UntraceableError(f"{what} gives {result.type}, and out is {out.type}; write out[...] = {what}(...)")
    return statements.written(out, result, what)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {k: _as_numpys(k, v) for group in GROUPS.values() for k, v in group.items()}
"""All of them."""

NOT_NUMPYS = frozenset({"cummax", "cummin", "logsumexp", "softmax", "log_softmax"})
"""Those that NumPy has not got: they are for formulas and for arrays' methods."""

ALIASES: Mapping[str, str] = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "pow": "power", "conj": "conjugate", "mod": "remainder", "true_divide": "divide",
    "bitwise_invert": "invert", "bitwise_not": "invert", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
}  # fmt: skip
"""Other names of ufuncs, NumPy's and the array API's."""


@lru_cache(maxsize=1)
def _by_function() -> Mapping[Any, Callable[..., Any]]:
    return {numpys(name): implementation for name, implementation in FUNCTIONS.items()}


CREATION: Mapping[Any, str] = {
    getattr(np, name): name
    for name in (
        "arange", "array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "empty", "eye", "full", "identity",
        "ones", "require", "tri", "zeros",
    )
}  # fmt: skip
"""Functions that make arrays of numbers. NumPy asks an array about them where it is given as like=."""


def call_function(function: Any, args: Sequence[Any], options: Mapping[str, Any], like: Array) -> Any:
    """What `like.__array_function__` does. Raises UnknownFunctionError for what has no counterpart."""
    function = getattr(function, "numpys", function)
    if function in CREATION:
        name = CREATION[function]
        if not holds_arrays(args, options):
            array = function(*args, **options)
            constant = shared(name, like.recorder.constant(array), (), {})
            if not array.flags.c_contiguous:
                rooted(constant).root.contiguous = None
            if args and isinstance(args[0], np.ndarray) and np.may_share_memory(array, args[0]):
                rooted(constant).writable = False
            return constant
        if "array" in name or name == "require":
            options = {k: v for k, v in options.items() if k != "like"}
            copies = name == "array" and options.get("copy", True)
            array = shared("array" if copies else name, _asarray(*args, **options), args, options, function)
            return FUNCTIONS["atleast_1d"](array) if name in ("ascontiguousarray", "asfortranarray") else array
    implementation = _by_function().get(function)
    if implementation is None:
        raise UnknownFunctionError(refusal(f"{function.__module__}.{function.__name__}".removeprefix("numpy."), "np."))
    return implementation(*args, **options)


def refusal(name: str, module: str = "") -> str:
    """Why a function of that name cannot be traced, and what to write instead."""
    instead = REFUSED.get(name)
    hint = f"; {instead}" if instead else did_you_mean(name, list(FUNCTIONS))
    return f"{module}{name} cannot be traced{hint} (docs/build.md lists what can)"


def traced(name: str) -> Callable[..., Any] | None:
    """The function of that name or alias, of NumPy's or of the array API's."""
    return FUNCTIONS.get(ALIASES.get(name, name))


def holds_arrays(args: Sequence[Any], options: Mapping[str, Any]) -> bool:
    """Whether something traced is among the arguments of a call."""
    return bool(arrays_in([*args, *options.values()]))


PLAIN = frozenset(
    {"arange", "empty", "eye", "finfo", "from_dlpack", "full", "iinfo", "isdtype", "linspace", "ones", "zeros",
     "fft.fftfreq", "fft.rfftfreq"}
)  # fmt: skip
"""Functions that take no arrays: NumPy's, and what they give becomes a constant."""


class Namespace:
    """The standard's names. Functions are traced where an array that is traced is among the arguments, else NumPy's."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name in ("linalg", "fft") and not self._prefix:
            return Namespace(f"{name}.")
        if name == "newaxis":
            return None
        full = self._prefix + name
        implementation, plain = traced(full), numpys(full) if not name.startswith("_") else None
        if implementation is None and plain is not None and (full in PLAIN or not callable(plain) or isinstance(plain, type)):
            return plain
        if plain is None or implementation is None:
            raise UnknownFunctionError(refusal(full, "the array API's "))

        def function(*args: Any, **options: Any) -> Any:
            return implementation(*args, **options) if holds_arrays(args, options) else plain(*args, **options)

        function.__name__ = name
        return function

    def __array_namespace_info__(self) -> Any:
        return np.__array_namespace_info__()

    def __dir__(self) -> list[str]:
        names = [name.removeprefix(self._prefix) for name in (*FUNCTIONS, *PLAIN) if name.startswith(self._prefix)]
        return sorted(name for name in names if "." not in name)


NAMESPACE = Namespace()


def item(x: Array, index: Any) -> Any:
    """x[index]."""
    masked = masked_axes(x, index) if arrays_in([index]) else None
    if masked is not None and isinstance(masked[0], Array):
        return Selection(x, *masked)
    return item_of(x, index, repeated("item", indexed, (x, index), {}))


def _resolving(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which is given traced arrays for arrays of NumPy's that traced values were written into."""
    return lambda *args, **options: function(*resolved(args), **resolved(options))


def _operator(name: str, *operands: Operand) -> Any:
    result = ufunc_again(name, operands)
    return apply_operator(name, *resolved(operands)) if result is None else result


PROTOCOLS: Mapping[str, Callable[..., Any]] = {
    **FUNCTIONS,
    "operator": _operator,
    "in place": _resolving(statements.changed_by),
    "copy of": copied,
    "item": _resolving(item),
    "set item": _resolving(statements.set_item),
    "set part": _resolving(statements.set_part),
    "set shape": statements.set_shape,
    "flat": statements.Flat,
    "fill": _resolving(statements.fill),
    "sort in place": statements.sort_in_place,
    "at": _resolving(putting.at_places),
    "out": _resolving(statements.written),
    "indexed": indexed,
    "updated": assigning.updated,
    "over": assigning.over,
    "converted": assigning.converted,
    "ufunc": call_ufunc,
    "function": call_function,
    "namespace": lambda: NAMESPACE,
}
"""By name: NumPy's functions by theirs. Arrays find them through their recording, as these are made of arrays."""
