"""The names of the formula language: its constants and its functions. What is not in these tables is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import NUMBERS, arrays_in, lift
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.numpy.elementwise.elementwise import UFUNCS
from tidu_cli.adapters.numpy.numpy.elementwise.ufuncs import SCIPYS, apply_ufunc, apply_ufunc_all, ufunc_named
from tidu_cli.adapters.numpy.numpy.functions import ALIASES, FUNCTIONS
from tidu_cli.adapters.numpy.numpy.linear_algebra.systems import solve_triangular
from tidu_cli.adapters.numpy.numpy.putting import WRITING
from tidu_cli.adapters.numpy.numpy.reductions import series
from tidu_cli.adapters.numpy.recorder import Recorder
from tidu_cli.errors import TypeTextError
from tidu_cli.graph.literals import literal_from_numbers
from tidu_cli.graph.sizes.open import OpenSize, larger
from tidu_cli.graph.types import DATETIME, DURATION, UNITS, TensorType

CONSTANTS: Mapping[str, Any] = {"pi": np.pi, "e": np.e, "inf": np.inf, "nan": np.nan, "True": True, "False": False}
"""Names that formulas may use besides those of inputs."""

OTHER_NAMES: Mapping[str, str] = {
    "sigmoid": "expit", "logistic": "expit", "erf_inv": "erfinv", "lgamma": "gammaln", "digamma": "psi",
    "igamma": "gammainc", "igammac": "gammaincc",
}  # fmt: skip
"""Names of ufuncs that are only the formulas'."""

_HIDDEN = frozenset(
    {"diag_indices_from", "tril_indices_from", "triu_indices_from",
     "shape", "ndim", "result_type", "can_cast", "iscomplexobj", "isrealobj", "asarray", "copy", "empty_like", "astype",
     "array_equal", "sliding_window_view", "histogram", "histogram2d", "histogramdd", *WRITING}
)  # fmt: skip
"""What makes sense for functions only: it gives no arrays, or stands under another name."""

OPTIONS_REFUSED = frozenset({"out", "casting", "order", "subok", "where", "device", "like", "copy", "optimize"})
"""Options of NumPy's that say nothing about a graph, or that have another form."""


class Several(tuple[Array, ...]):
    """The results of a function that gives several."""

    __slots__ = ()


@lru_cache(maxsize=1)
def function_names() -> tuple[str, ...]:
    """The functions that formulas may call."""
    plain = {name for name in FUNCTIONS if "." not in name and name not in _HIDDEN}
    return tuple(sorted(plain | set(ALIASES) | set(SCIPYS) | set(OTHER_NAMES) | set(CREATION) | set(_OWN)))


def function_named(name: str) -> Callable[..., Any] | None:
    """The function of that name, None if formulas have none. Those of `CREATION` also take a recorder, which comes first."""
    if name in CREATION:
        return CREATION[name]
    if name in _OWN:
        return _OWN[name]
    name = OTHER_NAMES.get(name, name)
    name = ALIASES.get(name, name)
    if name in UFUNCS or (name in SCIPYS and name not in FUNCTIONS):
        arity, several = ufunc_named(name).nin, ufunc_named(name).nout > 1

        def apply(*operands: Any) -> Any:
            if len(operands) != arity:
                raise BuildError(f"{name} takes {arity} argument{'s' if arity != 1 else ''}, got {len(operands)}")
            return apply_ufunc_all(name, *operands) if several else apply_ufunc(name, *operands)

        return apply
    return FUNCTIONS.get(name) if "." not in name and name not in _HIDDEN else None


def recorded(recorder: Recorder, value: Any) -> Array:
    """A value of the language as an Array. Raises BuildError for what is neither an array nor a number nor a list of these."""
    if isinstance(value, Array):
        return value
    held = arrays_in([value])
    if held:
        return lift(value, held[0])
    if isinstance(value, OpenSize):
        from tidu_cli.adapters.numpy.arrays.sizes import number_of  # which formulas of fixed sizes do without

        return number_of(recorder, value)
    if isinstance(value, (*NUMBERS, list, tuple)):
        return recorder.constant(np.asarray(value))
    raise BuildError("not an array or a number")


def _array(recorder: Recorder, values: Any, dtype: Any = None) -> Array:
    array = recorded(recorder, values)
    return array if dtype is None else array.convert(dtype)


def _full(recorder: Recorder, shape: Any, value: Any = 0.0, dtype: Any = None) -> Array:
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    if not all(isinstance(n, OpenSize) or (isinstance(n, int) and n >= 0) for n in sizes):
        raise ValueError("a shape is of integers from 0 up")
    return _array(recorder, value, dtype).broadcast(sizes)


def _arange(recorder: Recorder, start: int, stop: int | None = None, step: int = 1, dtype: Any = None) -> Array:
    start, stop = (0, start) if stop is None else (start, stop)
    if isinstance(start, OpenSize) or isinstance(stop, OpenSize):
        from tidu_cli.adapters.numpy.arrays.sizes import counted as places

        return places(recorder, start, stop, step, dtype)
    if not all(isinstance(n, int) for n in (start, stop, step)) or not step:
        raise ValueError("arange takes integers; write linspace for floats")
    n = len(range(start, stop, step))
    counted = recorder.emit("iota", dtype="i64", shape=(n,), dimension=0)
    multiples = counted if step == 1 else counted * step
    return (multiples if start == 0 else multiples + start).convert(dtype or np.dtype(np.int64))


def _linspace(recorder: Recorder, start: Any, stop: Any, num: int = 50, **options: Any) -> Array:
    if arrays_in([start, stop]):
        return series.linspace(start, stop, num, **options)
    if options:
        raise ValueError(f"linspace of numbers takes no {next(iter(options))}=")
    if not isinstance(num, int | OpenSize) or not num >= 1:
        raise ValueError("linspace takes a number of points from 1 up")
    counted = recorder.emit("iota", dtype="f64", shape=(num,), dimension=0)
    points: Array = counted * ((stop - start) / larger(num - 1, 1)) + start
    return points


def _eye(recorder: Recorder, n: int, m: int | None = None, k: int = 0, dtype: Any = None) -> Array:
    shape = (n, n if m is None else m)
    rows, columns = (recorder.emit("iota", dtype="i64", shape=shape, dimension=d) for d in (0, 1))
    return ((columns - rows) == k).convert(dtype or np.dtype(np.float64))


def _datetime(recorder: Recorder, text: object, unit: object = None) -> Array:
    """A point in time, in a unit or else in the longest that counts it; as it meets others, the shorter of both units is taken."""
    if not isinstance(text, str):
        raise ValueError("a point in time is text, such as datetime64('2026-01-31T12:00')")
    if unit is not None:
        return _time(recorder, DATETIME, [text], unit)
    for unit in UNITS[:-1]:
        with suppress(TypeTextError):
            return _time(recorder, DATETIME, [text], unit)
    return _time(recorder, DATETIME, [text], UNITS[-1])


def _duration(recorder: Recorder, count: object, unit: object = None) -> Array:
    if isinstance(count, bool) or not isinstance(count, int | float):
        raise ValueError("a span of time is a number and a unit, such as timedelta64(1, 'h')")
    return _time(recorder, DURATION, [count], unit)


def _time(recorder: Recorder, kind: str, numbers: list[object], unit: object) -> Array:
    if unit not in UNITS:
        raise ValueError(f"the unit of a time is one of {', '.join(UNITS)}, as text: timedelta64(1, 'h')")
    return recorder.emit("constant", value=literal_from_numbers(TensorType(f"{kind}[{unit}]"), numbers))


CREATION: Mapping[str, Callable[..., Array]] = {
    "zeros": lambda recorder, shape, dtype=None: _full(recorder, shape, 0.0, dtype),
    "ones": lambda recorder, shape, dtype=None: _full(recorder, shape, 1.0, dtype),
    "full": _full,
    "arange": _arange,
    "linspace": _linspace,
    "eye": _eye,
    "array": _array,
    "datetime64": _datetime,
    "timedelta64": _duration,
}


_OWN: Mapping[str, Callable[..., Any]] = {
    **{name: FUNCTIONS[f"linalg.{name}"] for name in ("norm", "solve", "inv", "det", "slogdet", "cholesky", "matrix_power")},
    "solve_triangular": solve_triangular,
    "convert": lambda x, dtype: x.convert(np.dtype(dtype)),
    "stop_gradient": lambda x: x.emit("stop_gradient"),
}
