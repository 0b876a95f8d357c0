"""Calling ufuncs: NumPy says the dtypes and the broadcasting, the tables of `elementwise` say the primitives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.aliasing import like_operands
from tidu_cli.adapters.numpy.arrays.array import Array, dtype_of, name_of
from tidu_cli.adapters.numpy.arrays.operands import Operand, an_array, arrays_in, kind, lift
from tidu_cli.adapters.numpy.arrays.refused import FUNCTIONS as REFUSED
from tidu_cli.adapters.numpy.arrays.refused import refusal
from tidu_cli.adapters.numpy.arrays.storage import Selection, own
from tidu_cli.adapters.numpy.errors import BuildError, UnknownFunctionError, UntraceableError
from tidu_cli.adapters.numpy.numpy.elementwise.elementwise import UFUNCS
from tidu_cli.adapters.numpy.numpy.elementwise.special import COMPLEX, SPECIAL
from tidu_cli.adapters.numpy.numpy.elementwise.special_parameters import GENERAL, WITH_PARAMETERS, parametrized
from tidu_cli.adapters.numpy.numpy.indexing import common_shape
from tidu_cli.errors import did_you_mean
from tidu_cli.graph.types import COMPLEXES, INTEGERS, TIMES

SEVERAL_RESULTS = frozenset({"divmod", "fresnel", "modf", "sici"})
"""Ufuncs that have two results."""

CONTRACTIONS = ("matmul", "vecdot", "matvec", "vecmat")
"""Ufuncs that are not elementwise; among NumPy's functions they are in the table of `functions`."""

SCIPYS: Mapping[str, Any] = {**SPECIAL, **GENERAL, **WITH_PARAMETERS}
"""Those of scipy.special."""

_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
    "logaddexp": "logsumexp",
}  # fmt: skip
_ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}


def apply_ufunc(name: str, *operands: Operand, dtype: Any = None) -> Array:
    """The result of one of `UFUNCS` or `SCIPYS` on these operands, of which one is an Array, or holds one.

    Dtypes and broadcasting are NumPy's. Raises BuildError for dtypes that it does not take.
    """
    if name in CONTRACTIONS:
        contracted: Array = arrays_in(operands)[0].recorder.numpy[name](*operands)
        return contracted
    if name in ("power", "float_power") and dtype is None:
        simple = _fixed_power(name, operands[0], operands[1])
        if simple is not None:
            return simple
    return apply_ufunc_all(name, *operands, dtype=dtype)[0]


def apply_operator(name: str, *operands: Operand) -> Any:
    """What an operator gives: the result of the ufunc (of divmod both), but for the square of bools.

    NumPy computes `x ** 2` as np.square, which makes i8 of bools, where np.power makes i64. What operators make of Python's numbers
    is one.
    """
    x, *rest = operands
    if name == "power" and type(rest[0]) is int and rest[0] == 2 and isinstance(x, Array) and x.type.dtype == "bool":
        return apply_ufunc("square", x)
    result: Any = apply_ufunc_all(name, *operands) if name == "divmod" else apply_ufunc(name, *operands)
    if any(isinstance(x, Array) and x.weak for x in operands) and not any(isinstance(kind(x), str) for x in operands):
        return tuple(map(_weak, result)) if isinstance(result, tuple) else _weak(result)
    for operand in operands:
        if isinstance(operand, Array) and operand.share is not None:
            return tuple([like_operands(x, operands) for x in result]) if name == "divmod" else like_operands(result, operands)
    return result


def ufunc_again(name: str, operands: Sequence[Operand]) -> Any:
    """The results of a ufunc on arrays and Python's numbers, recorded as they were before; None for other operands."""
    like = next((x for x in operands if x.__class__ is Array), None)
    if like is None:
        return None
    given: list[Any] = []
    dtypes = None
    for k, x in enumerate(operands):
        if x.__class__ is Array:
            if x.weak is not None:
                return None
        elif x.__class__ not in _KINDS_OF_NUMBERS or name in _BY_VALUE:
            return None
        else:
            dtypes = dtypes or _dtypes(name, tuple([kind(y) for y in operands]), None)[0]
            x = lift(x, like, dtypes[k])
        given.append(x)
    key = (name, *[x.type for x in given])
    several = name in SEVERAL_RESULTS
    result = like.recorder.repeats.call(key, partial(apply_ufunc_all if several else apply_ufunc, name), given)
    if all(x.share is None for x in given):
        return result
    return tuple([like_operands(x, given) for x in result]) if several else like_operands(result, given)


def _weak(x: Array) -> Array:
    return Array(x.recorder, x.value, x.type, _PYTHONS.get(x.dtype.kind))


_KINDS_OF_NUMBERS = (float, int, complex)

_BY_VALUE = frozenset({"power", "float_power", *SCIPYS})
"""Ufuncs whose nodes depend on which number of Python's an operand is."""

_PYTHONS = {"i": int, "f": float, "c": complex}
"""Python's numbers by the kinds of dtypes."""


def apply_ufunc_all(name: str, *operands: Operand, dtype: Any = None) -> tuple[Array, ...]:
    """All results, as `apply_ufunc` gives the first."""
    loop, results = _dtypes(name, tuple([kind(x) for x in operands]), dtype)
    if name in SCIPYS:
        like = arrays_in(operands)[0]
        value = parametrized(name, operands, lambda rest: lift(rest[0], like, loop[-1]))
        if value is not None:
            return (value.convert(results[0]),)
    first = next((x for x in operands if isinstance(x, Array)), None)
    like = arrays_in(operands)[0] if first is None else first
    arrays = [lift(x, like, d) for x, d in zip(operands, loop, strict=True)]
    shape = common_shape(*[x.type.shape for x in arrays])
    rule = UFUNCS.get(name) or SCIPYS[name]
    given = rule(*[x.broadcast(shape) for x in arrays])
    parts = given if isinstance(given, tuple) else (given,)
    converted = [x.convert(d) for x, d in zip(parts, results, strict=True)]
    return tuple([own(x) if any(x is y for y in arrays) else x for x in converted])


def ufunc_named(name: str) -> Any:
    """The ufunc of `UFUNCS` or `SCIPYS` of that name, NumPy's or SciPy's."""
    if name in UFUNCS:
        return getattr(np, name)
    from scipy import special  # type: ignore[import-untyped]  # slow to import, and rarely needed

    return getattr(special, name)


@lru_cache(maxsize=4096)
def _dtypes(name: str, kinds: tuple[Any, ...], dtype: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The dtypes that NumPy would compute a ufunc in, and those of its results, by tidu's names."""
    ufunc = ufunc_named(name)
    if "bf16" in kinds:
        strong = [dtype_of(k) for k in kinds if isinstance(k, str)]
        common = np.result_type(*strong, *([0j] if complex in kinds else [])) if dtype is None else np.dtype(dtype)
        kinds = (name_of(common),) * len(kinds)
    alone = not any(isinstance(k, str) for k in kinds)  # numbers of Python's, which NumPy makes arrays of first
    given = [dtype_of(k) if isinstance(k, str) else np.dtype(k) if alone else k for k in kinds]
    signature = (None,) * ufunc.nin + (None if dtype is None else np.dtype(dtype),) * ufunc.nout
    try:
        dtypes = ufunc.resolve_dtypes((*given, *(None,) * ufunc.nout), signature=signature)
    except TypeError:
        if set(kinds) == {"bf16"}:
            return kinds, ("bf16",) * ufunc.nout  # SciPy's have no loops for it
        shown = ", ".join(k if isinstance(k, str) else f"a Python {k.__name__}" for k in kinds)
        way = "; x / np.timedelta64(1, 'h') is a number of hours" if TIMES.intersection(kinds) else ""
        raise BuildError(f"{name} does not take {shown}{way}") from None
    names = tuple(map(name_of, dtypes))
    refused = _REAL_ONLY if name in SCIPYS and name not in COMPLEX else _UNORDERED if name in _ORDERING else ""
    if refused and COMPLEXES.intersection(names[: ufunc.nin]):
        raise BuildError(f"{name} of complex numbers {refused}")
    return names[: ufunc.nin], names[ufunc.nin :]


_UNORDERED = "has no counterpart in graphs, as they have no order; take it of their magnitudes, np.abs(z), or of z.real and z.imag"
_REAL_ONLY = "has no counterpart in graphs; take it of real numbers"
_ORDERING = ("maximum", "minimum", "fmax", "fmin", "less", "less_equal", "greater", "greater_equal")
"""What NumPy does with complex numbers, and graphs do not, as they do not what SciPy does."""


def _fixed_power(name: str, base: Operand, exponent: Operand) -> Array | None:
    """The power with a constant whole exponent, or 1/2, which have derivatives at 0; None for all others."""
    if not isinstance(base, Array) or isinstance(exponent, Array | list | tuple) or np.ndim(exponent):  # type: ignore[arg-type]
        return None
    value = exponent.item() if isinstance(exponent, np.ndarray | np.generic) else exponent
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    (loop, _), (result,) = _dtypes(name, (kind(base), kind(exponent)), None)
    x = base.convert(loop)
    if value == int(value) and abs(value) < 2**31:
        if x.type.dtype in INTEGERS and value < 0:
            raise ValueError("integers to negative integer powers are not allowed; convert to a float first")
        return x.emit("integer_pow", y=int(value)).convert(result)
    return x.emit("sqrt").convert(result) if value == 0.5 and x.type.inexact else None


def call_ufunc(ufunc: Any, method: str, inputs: Sequence[Operand], options: Mapping[str, Any]) -> Any:
    """What `__array_ufunc__` does. Raises UnknownFunctionError and UntraceableError for what has no counterpart."""
    name = ufunc.__name__
    if method == "__call__" and not options and (name in UFUNCS or name in SCIPYS):
        result = ufunc_again(name, inputs)
        if result is not None:
            return tuple([like_operands(x, inputs) for x in result]) if isinstance(result, tuple) else like_operands(result, inputs)
    numpy = arrays_in([*inputs, options])[0].recorder.numpy
    options = {k: v for k, v in options.items() if not (k == "where" and v is True) and v is not None}
    if any(isinstance(x, Selection) for x in inputs):
        return NotImplemented
    if "out" in options:
        return _into(ufunc, method, inputs, dict(options))
    if method == "reduce" and name in _REDUCTIONS:
        if name == "logaddexp":
            ((loop, _), _), (x, *rest) = _dtypes(name, (kind(inputs[0]),) * 2, None), inputs
            inputs = [an_array(x).convert(loop), *rest]
        return numpy[_REDUCTIONS[name]](*inputs, **{"axis": 0, **options})
    if method == "accumulate" and name in _ACCUMULATIONS:
        return numpy[_ACCUMULATIONS[name]](*inputs, **{"axis": 0, **options})
    if method == "at":
        return numpy["at"](ufunc, inputs)
    if method not in ("__call__", "outer"):
        raise UntraceableError(f"np.{name}.{method} cannot be traced; write it with functions that make new arrays")
    if name in CONTRACTIONS:
        return numpy[name](*inputs, **options)
    if name not in UFUNCS and name not in SCIPYS:
        if not hasattr(np, name) and name not in REFUSED:
            raise UnknownFunctionError(refusal(f"scipy.special.{name}"))
        instead = f"; {REFUSED[name]}" if name in REFUSED else did_you_mean(name, [*UFUNCS, *SCIPYS])
        raise UnknownFunctionError(f"{name} cannot be traced{instead}")
    if method == "outer":
        x, y = (v if isinstance(v, Array) else np.asarray(v) for v in inputs)
        inputs = (x.reshape(x.shape + (1,) * y.ndim), y)
    dtype = options.pop("dtype", None)
    unknown = set(options) - {"casting", "order", "subok"}
    if unknown:
        raise UntraceableError(
            f"np.{name} with {unknown.pop()}= cannot be traced; write np.where(mask, np.{name}(x), y) for where="
        )
    if ufunc.nout > 1:
        return tuple([like_operands(x, inputs) for x in apply_ufunc_all(name, *inputs, dtype=dtype)])
    return like_operands(apply_ufunc(name, *inputs, dtype=dtype), inputs)


def _into(ufunc: Any, method: str, inputs: Sequence[Operand], options: dict[str, Any]) -> Any:
    """A ufunc with out=, and with where=, which says where it is written."""
    outs = options.pop("out")
    outs = outs if isinstance(outs, tuple) else (outs,)
    for x in outs:
        if isinstance(x, Selection):
            raise x.refusal()
    if not all(isinstance(x, Array) for x in outs):
        raise UntraceableError(
            f"np.{ufunc.__name__} would write into a NumPy array (+= on one, or out=), which holds numbers; write x = x + y for "
            "x += y, and leave out= out"
        )
    where, numpy = options.pop("where", True), outs[0].recorder.numpy
    if arrays_in(inputs):
        result = call_ufunc(ufunc, method, [*inputs], options)
    else:
        result = outs[0].constant(getattr(ufunc, method)(*inputs, **options))
    parts = result if isinstance(result, tuple) else (result,)
    for out, part in zip(outs, parts, strict=True):
        new = part if where is True else numpy["where"](where, part, out).convert(part.type.dtype)
        numpy["out"](out, new, f"np.{ufunc.__name__}", broadcast=method == "__call__")
    return outs if len(outs) > 1 else outs[0]
