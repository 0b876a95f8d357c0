"""Ufuncs: NumPy says the dtypes and the broadcasting, a table says the primitives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.build.array import Array, Operand, lift, result_dtype, weak
from tidu_cli.build.trouble import BuildError, UnknownFunctionError, UntraceableError
from tidu_cli.errors import did_you_mean
from tidu_cli.graph.types import FLOATS, INEXACT, INTEGERS, SIGNED

Rule = Callable[..., Any]
"""From operands of one shape and the dtypes that NumPy would compute in, to the result (or a tuple of results)."""


def _op(name: str, **attrs: object) -> Rule:
    return lambda *operands: operands[0].emit(name, *operands[1:], **attrs)


def _number(x: Array, value: float) -> Array:
    return x.constant(x.dtype.type(value)).broadcast(x.shape)


def select(condition: Array, if_true: Array, if_false: Array) -> Array:
    """if_true where the condition (bool) holds, else if_false; all of one shape."""
    return condition.emit("select_n", if_false, if_true)


def truth(x: Array) -> Array:
    """Whether elements are other than 0."""
    return x if x.type.dtype == "bool" else x.emit("ne", _number(x, 0))


def _by_bool(of_bools: str, otherwise: str) -> Rule:
    return lambda x, y: x.emit(of_bools if x.type.dtype == "bool" else otherwise, y)


def _logical(op: str) -> Rule:
    return lambda *operands: truth(operands[0]).emit(op, *map(truth, operands[1:]))


def _scaled(name: str, factor: float) -> Rule:
    return lambda x: x.emit(name) * factor


def _remainder(x: Array, y: Array) -> Array:
    # NumPy's has the sign of the divisor, the primitive that of the dividend.
    rest = x.emit("rem", y)
    return select(_crosses(rest, y), rest + y, rest)


def _crosses(rest: Array, y: Array) -> Array:
    zero = _number(y, 0)
    return rest.emit("ne", zero).emit("and", rest.emit("lt", zero).emit("ne", y.emit("lt", zero)))


def _floor_divide(x: Array, y: Array) -> Array:
    if x.type.dtype in INTEGERS:
        quotient = x.emit("div", y)
        return select(_crosses(x.emit("rem", y), y), quotient - 1, quotient) if x.type.dtype in SIGNED else quotient
    exact = (x - _remainder(x, y)).emit("div", y).emit("round", rounding_method="TO_NEAREST_EVEN")
    return select(y.emit("eq", _number(y, 0)), x.emit("div", y), exact)


def _logaddexp(x: Array, y: Array) -> Array:
    gap = x - y
    safe = x.emit("max", y) + (-abs(gap)).emit("exp").emit("log1p")
    return select(gap.emit("ne", gap), x + y, safe)  # of infinities, and NaN


def _trunc(x: Array) -> Array:
    return select(x.emit("lt", _number(x, 0)), x.emit("ceil"), x.emit("floor"))


def _unless_integer(op: str) -> Rule:
    return lambda x: x.emit(op) if x.type.dtype in FLOATS else x


def _heaviside(x: Array, at_zero: Array) -> Array:
    zero = _number(x, 0)
    step = select(x.emit("lt", zero), zero, _number(x, 1))
    return select(x.emit("ne", x), x, select(x.emit("eq", zero), at_zero, step))


def _is_finite(x: Array) -> Array:
    if x.type.complex:
        return x.emit("real").emit("is_finite").emit("and", x.emit("imag").emit("is_finite"))
    return x.emit("is_finite") if x.type.dtype in FLOATS else x.emit("eq", x)


def _is_inf(x: Array) -> Array:
    if x.type.complex:
        return _is_inf(x.emit("real")).emit("or", _is_inf(x.emit("imag")))
    return abs(x).emit("eq", _number(x, math.inf)) if x.type.dtype in FLOATS else x.emit("ne", x)


def _fmax(op: str) -> Rule:
    return lambda x, y: select(x.emit("ne", x), y, select(y.emit("ne", y), x, x.emit(op, y)))


def _abs(x: Array) -> Array:
    return x if x.type.dtype == "bool" else x.emit("abs")


def _x_times(log: str) -> Rule:
    def times(x: Array, y: Array) -> Array:
        zero = _number(x, 0)
        nothing = x.emit("eq", zero).emit("and", y.emit("eq", y))
        # The logarithm is of 1 where the product is 0 anyway, so that no derivative is 0 times infinity.
        inside = select(nothing, _number(x, 1 if log == "log" else 0), y)
        return select(nothing, zero, x * inside.emit(log))

    return times


def _power(x: Array, y: Array) -> Array:
    if x.type.dtype not in INEXACT:
        raise BuildError(
            f"power of integers ({x.type}) with an exponent that is no constant; convert the base first: x.astype(float)"
        )
    return x.emit("pow", y)


def _shift_right(x: Array, y: Array) -> Array:
    return x.emit("shift_right_arithmetic" if x.type.dtype in SIGNED else "shift_right_logical", y)


_LOG2 = math.log(2)

UFUNCS: Mapping[str, Rule] = {
    "add": _by_bool("or", "add"),
    "subtract": _op("sub"),
    "multiply": _by_bool("and", "mul"),
    "divide": _op("div"),
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "fmod": _op("rem"),
    "divmod": lambda x, y: (_floor_divide(x, y), _remainder(x, y)),
    "power": _power,
    "float_power": _power,
    "negative": _op("neg"),
    "positive": lambda x: x,
    "absolute": _abs,
    "fabs": _abs,
    "sign": _op("sign"),
    "conjugate": lambda x: x.emit("conj") if x.type.complex else x,
    "maximum": _op("max"),
    "minimum": _op("min"),
    "fmax": _fmax("max"),
    "fmin": _fmax("min"),
    "exp": _op("exp"),
    "exp2": _op("exp2"),
    "expm1": _op("expm1"),
    "log": _op("log"),
    "log2": _scaled("log", 1 / _LOG2),
    "log10": _scaled("log", 1 / math.log(10)),
    "log1p": _op("log1p"),
    "logaddexp": _logaddexp,
    "logaddexp2": lambda x, y: _logaddexp(x * _LOG2, y * _LOG2) * (1 / _LOG2),
    "sqrt": _op("sqrt"),
    "cbrt": _op("cbrt"),
    "square": _op("square"),
    "reciprocal": lambda x: _number(x, 1).emit("div", x),
    "hypot": lambda x, y: (x.emit("square") + y.emit("square")).emit("sqrt"),
    "sin": _op("sin"),
    "cos": _op("cos"),
    "tan": _op("tan"),
    "arcsin": _op("asin"),
    "arccos": _op("acos"),
    "arctan": _op("atan"),
    "arctan2": _op("atan2"),
    "sinh": _op("sinh"),
    "cosh": _op("cosh"),
    "tanh": _op("tanh"),
    "arcsinh": _op("asinh"),
    "arccosh": _op("acosh"),
    "arctanh": _op("atanh"),
    "degrees": lambda x: x * (180 / math.pi),
    "rad2deg": lambda x: x * (180 / math.pi),
    "radians": lambda x: x * (math.pi / 180),
    "deg2rad": lambda x: x * (math.pi / 180),
    "floor": _unless_integer("floor"),
    "ceil": _unless_integer("ceil"),
    "trunc": lambda x: _trunc(x) if x.type.dtype in FLOATS else x,
    "rint": lambda x: x.emit("round", rounding_method="TO_NEAREST_EVEN"),
    "heaviside": _heaviside,
    "nextafter": _op("nextafter"),
    "equal": _op("eq"),
    "not_equal": _op("ne"),
    "less": _op("lt"),
    "less_equal": _op("le"),
    "greater": _op("gt"),
    "greater_equal": _op("ge"),
    "logical_and": _logical("and"),
    "logical_or": _logical("or"),
    "logical_xor": _logical("xor"),
    "logical_not": _logical("not"),
    "bitwise_and": _op("and"),
    "bitwise_or": _op("or"),
    "bitwise_xor": _op("xor"),
    "invert": _op("not"),
    "left_shift": _op("shift_left"),
    "right_shift": _shift_right,
    "bitwise_count": _op("population_count"),
    "isfinite": _is_finite,
    "isinf": _is_inf,
    "isnan": lambda x: x.emit("ne", x),
}
"""NumPy's ufuncs by name."""

SPECIAL: Mapping[str, Rule] = {
    "expit": _op("logistic"),
    "logit": lambda x: x.emit("log") - (-x).emit("log1p"),
    "log_expit": lambda x: -_logaddexp(_number(x, 0), -x),
    "erf": _op("erf"),
    "erfc": _op("erfc"),
    "erfinv": _op("erf_inv"),
    "gammaln": _op("lgamma"),
    "psi": _op("digamma"),
    "gammainc": _op("igamma"),
    "gammaincc": _op("igammac"),
    "betainc": _op("regularized_incomplete_beta"),
    "i0e": _op("bessel_i0e"),
    "i1e": _op("bessel_i1e"),
    "xlogy": _x_times("log"),
    "xlog1py": _x_times("log1p"),
    "entr": lambda x: -_x_times("log")(x, x),
}
"""Ufuncs of scipy.special by name."""

_CONTRACTIONS = ("matmul", "vecdot", "matvec", "vecmat")
_EXAMPLE = {int: 0, float: 0.0, complex: 0j}


def apply_ufunc(name: str, *operands: Operand, dtype: Any = None) -> Any:
    """One of `UFUNCS` or `SPECIAL` on these operands, of which one is an Array, with NumPy's dtypes and broadcasting."""
    if name in _CONTRACTIONS:
        from tidu_cli.build.functions import FUNCTIONS

        return FUNCTIONS[name](*operands)
    like = next((x for x in operands if isinstance(x, Array)), None)
    if like is None:
        from tidu_cli.build.recorder import arrays_in

        like = arrays_in(operands)[0]
    if name in ("power", "float_power") and dtype is None:
        simple = _fixed_power(name, operands[0], operands[1], like)
        if simple is not None:
            return simple
    loop, results = _dtypes(name, operands, dtype)
    lifted = [lift(x, like, d) for x, d in zip(operands, loop, strict=True)]
    shape = common_shape(*(x.shape for x in lifted))
    found = (UFUNCS.get(name) or SPECIAL[name])(*(x.broadcast(shape) for x in lifted))
    if isinstance(found, tuple):
        return tuple(x.convert(d) for x, d in zip(found, results, strict=True))
    return found.convert(results[0])


def common_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that these broadcast to. Raises ValueError in the user's terms."""
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    common = []
    for sizes in zip(*padded, strict=True):
        others = {n for n in sizes if n != 1}
        if len(others) > 1:
            raise ValueError(f"shapes {' and '.join(str(list(s)) for s in shapes)} do not broadcast together")
        common.append(others.pop() if others else 1)
    return tuple(common)


def _ufunc(name: str) -> Any:
    if name in UFUNCS:
        return getattr(np, name)
    from scipy import special  # type: ignore[import-untyped]

    return getattr(special, name)


def _dtypes(name: str, operands: Sequence[Operand], dtype: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    ufunc = _ufunc(name)
    kinds = [weak(x) for x in operands]
    strong = [k for k in kinds if k not in _EXAMPLE]
    if any(k.name == "bfloat16" for k in strong):
        common = result_dtype(*operands) if dtype is None else np.dtype(dtype)
        kinds = [common] * len(kinds)
    signature = (None,) * ufunc.nin + (None if dtype is None else np.dtype(dtype),) * ufunc.nout
    try:
        found = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout), signature=signature)
    except TypeError:
        if len(set(kinds)) == 1 and getattr(kinds[0], "name", "") == "bfloat16":
            return kinds, [kinds[0]] * ufunc.nout  # scipy's have no loops for bf16
        shown = ", ".join(getattr(k, "name", None) or f"a Python {k.__name__}" for k in kinds)
        raise BuildError(f"{name} does not take {shown}") from None
    return found[: ufunc.nin], found[ufunc.nin :]


def _fixed_power(name: str, base: Operand, exponent: Operand, like: Array) -> Array | None:
    """The power with a constant whole exponent, or 1/2, which have derivatives at 0; None for all others."""
    if not isinstance(base, Array) or isinstance(exponent, Array | list | tuple) or np.ndim(exponent):
        return None
    value = exponent.item() if isinstance(exponent, np.ndarray | np.generic) else exponent
    if isinstance(value, complex | bool) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    loop, (result,) = _dtypes(name, (base, exponent), None)
    x = base.convert(loop[0])
    if value == int(value) and abs(value) < 2**31:
        if x.type.dtype in INTEGERS and value < 0:
            raise ValueError("integers to negative integer powers are not allowed; convert to a float first")
        return x.emit("integer_pow", y=int(value)).convert(result)
    return x.emit("sqrt").convert(result) if value == 0.5 and x.type.inexact else None


_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
    "logaddexp": "logsumexp",
}
_ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}


def call_ufunc(ufunc: Any, method: str, inputs: Sequence[Operand], options: Mapping[str, Any]) -> Any:
    """What `__array_ufunc__` does."""
    from tidu_cli.build.functions import FUNCTIONS

    name = ufunc.__name__
    options = {k: v for k, v in options.items() if not (k == "where" and v is True) and v is not None}
    if "out" in options:
        raise UntraceableError(
            f"np.{name} would write into an array (out=, or += on a NumPy array); write x = x + y for x += y, without out="
        )
    if method == "reduce" and name in _REDUCTIONS:
        return FUNCTIONS[_REDUCTIONS[name]](*inputs, **{"axis": 0, **options})
    if method == "accumulate" and name in _ACCUMULATIONS:
        return FUNCTIONS[_ACCUMULATIONS[name]](*inputs, **{"axis": 0, **options})
    if method not in ("__call__", "outer"):
        raise UntraceableError(f"np.{name}.{method} cannot be traced; write it with functions that make new arrays")
    known = name in UFUNCS or name in SPECIAL or name in _CONTRACTIONS
    if not known:
        raise UnknownFunctionError(f"the function {name} has no counterpart in graphs{did_you_mean(name, [*UFUNCS, *SPECIAL])}")
    if name in _CONTRACTIONS:
        return FUNCTIONS[name](*inputs, **options)
    if method == "outer":
        x, y = inputs
        column = np.shape(x) + (1,) * len(np.shape(y))
        inputs = (x.reshaped(column) if isinstance(x, Array) else np.reshape(x, column), y)
    dtype = options.pop("dtype", None)
    unknown = set(options) - {"casting", "order", "subok"}
    if unknown:
        raise UntraceableError(
            f"np.{name} with {unknown.pop()}= cannot be traced; write np.where(mask, np.{name}(x), y) for where="
        )
    return apply_ufunc(name, *inputs, dtype=dtype)
