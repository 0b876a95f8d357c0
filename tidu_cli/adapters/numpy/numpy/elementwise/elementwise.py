"""What ufuncs are made of: for each a rule from operands of one shape and dtype to primitives."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.numpy.indexing import filled, is_nan, select, truth
from tidu_cli.graph.types import DATETIMES, DURATIONS, FLOATS, INEXACT, INTEGERS, SIGNED
from tidu_cli.lax.names import ops_of

Rule = Callable[..., Any]
"""From operands of one shape and the dtypes that NumPy would compute in, to the result (or a tuple of results)."""


def as_op(name: str, **attrs: object) -> Rule:
    """The rule that is one primitive."""
    return lambda *operands: operands[0].emit(name, *operands[1:], **attrs)


def _logical(op: str) -> Rule:
    return lambda *operands: truth(operands[0]).emit(op, *map(truth, operands[1:]))


def _remainder(x: Array, y: Array) -> Array:
    # NumPy's has the sign of the divisor, the primitive that of the dividend.
    rest = x.emit("rem", y)
    if x.type.dtype in INTEGERS and x.type.dtype not in SIGNED:
        return rest
    return select(_crosses(rest, y), rest + y, rest)


def _crosses(rest: Array, y: Array) -> Array:
    zero = filled(y, 0)
    return rest.emit("ne", zero).emit("and", rest.emit("lt", zero).emit("ne", y.emit("lt", zero)))


def _floor_divide(x: Array, y: Array) -> Array:
    if x.type.dtype in INTEGERS:
        quotient = x.emit("div", y)
        return select(_crosses(x.emit("rem", y), y), quotient - 1, quotient) if x.type.dtype in SIGNED else quotient
    exact = (x - _remainder(x, y)).emit("div", y).emit("round", rounding_method="TO_NEAREST_EVEN")
    return select(y.emit("eq", filled(y, 0)), x.emit("div", y), exact)


def logaddexp(x: Array, y: Array) -> Array:
    """ln(eˣ + eʸ), without overflow; by choices, each smooth where x = y, as max and abs have no second derivatives there."""
    gap, first = x - y, x.emit("ge", y)
    safe = select(first, x, y) + select(first, -gap, gap).emit("exp").emit("log1p")
    return select(gap.emit("ne", gap), x + y, safe)  # of infinities, and NaN


def _trunc(x: Array) -> Array:
    return select(x.emit("lt", filled(x, 0)), x.emit("ceil"), x.emit("floor"))


def _unless_integer(op: str) -> Rule:
    return lambda x: x.emit(op) if x.type.dtype in FLOATS else x


def _heaviside(x: Array, at_zero: Array) -> Array:
    zero = filled(x, 0)
    step = select(x.emit("lt", zero), zero, filled(x, 1))
    return select(x.emit("ne", x), x, select(x.emit("eq", zero), at_zero, step))


def _comparison(op: str) -> Rule:
    def compare(x: Array, y: Array) -> Array:
        if x.type.dtype == y.type.dtype:
            return x.emit(op, y)
        # NumPy compares i64 with u64 exactly: what is negative is less than all that is unsigned.
        signed = x if x.type.dtype in SIGNED else y
        of_negative = getattr(operator, op)(*((-1, 0) if signed is x else (0, -1)))
        negative = signed.emit("lt", filled(signed, 0))
        return select(negative, filled(negative, of_negative), x.convert("u64").emit(op, y.convert("u64")))

    return compare


def _is_finite(x: Array) -> Array:
    if x.type.complex:
        return x.emit("real").emit("is_finite").emit("and", x.emit("imag").emit("is_finite"))
    if x.type.dtype in DURATIONS:
        x = x.convert("f64")
    return x.emit("is_finite") if x.type.dtype in FLOATS else x.emit("eq", x)


def _is_inf(x: Array) -> Array:
    if x.type.complex:
        return _is_inf(x.emit("real")).emit("or", _is_inf(x.emit("imag")))
    if x.type.dtype in DURATIONS:
        x = x.convert("f64")
    return abs(x).emit("eq", filled(x, math.inf)) if x.type.dtype in FLOATS else x.emit("ne", x)


def _fmax(op: str) -> Rule:
    return lambda x, y: select(x.emit("ne", x), y, select(y.emit("ne", y), x, x.emit(op, y)))


def _abs(x: Array) -> Array:
    if x.type.dtype in DURATIONS:
        return x.emit("max", x.emit("neg"))
    return x if x.type.dtype == "bool" else x.emit("abs")


def x_times(log: str) -> Rule:
    """x log y, which is 0 where x is, whatever y is but NaN."""
    start = 0 if log == "log" else -1

    def times(x: Array, y: Array) -> Array:
        zero = filled(x, 0)
        nothing = x.emit("eq", zero).emit("and", y.emit("eq", y))
        if not y.type.complex:
            regular = y.emit("gt", filled(y, start)).emit("and", y.emit("lt", filled(y, math.inf)))
            nothing = nothing.emit("and", regular.emit("not"))  # elsewhere it is 0 of itself, with the derivative log y
        # The logarithm is of 1 where the product is 0 anyway, so that no derivative is 0 times infinity.
        inside = select(nothing, filled(x, start + 1), y)
        return select(nothing, zero, x * inside.emit(log))

    return times


def _power(x: Array, y: Array) -> Array:
    if x.type.dtype not in INEXACT:
        raise BuildError(
            f"power of integers ({x.type}) with an exponent that is not a constant; convert the base first: x.astype(float)"
        )
    return x.emit("pow", y)


def _rint(x: Array) -> Array:
    if x.type.complex:
        return _rint(x.emit("real")).emit("complex", _rint(x.emit("imag")))
    return x.emit("round", rounding_method="TO_NEAREST_EVEN")


def _signbit(x: Array) -> Array:
    if x.type.dtype not in FLOATS:
        return x.emit("lt", filled(x, 0))
    # The angle of the point (-1, x) tells -0 from 0. NaN counts as positive: no primitive sees its sign.
    return x.emit("atan2", filled(x, -1)).emit("lt", filled(x, 0))


def _copysign(x: Array, y: Array) -> Array:
    return select(_signbit(x).emit("eq", _signbit(y)), x, x.emit("neg"))


def _modf(x: Array) -> tuple[Array, Array]:
    whole = _trunc(x)
    rest = select(x.emit("eq", whole), filled(x, 0), x - whole)  # of infinities it is 0, and not their difference
    return _copysign(rest, x), whole


def _add(x: Array, y: Array) -> Array:
    if y.type.dtype in DATETIMES:
        x, y = y, x
    return x.emit("or" if x.type.dtype == "bool" else "retract" if x.type.dtype in DATETIMES else "add", y)


def _subtract(x: Array, y: Array) -> Array:
    return x.emit("retract", y.emit("neg")) if x.type.dtype in DATETIMES and y.type.dtype in DURATIONS else x.emit("sub", y)


def _divide(x: Array, y: Array) -> Array:
    if x.type.dtype not in DURATIONS:
        return x.emit("div", y)
    return (x.convert("f64") if y.type.dtype in DURATIONS else x).emit("div", y.convert("f64"))


_LOG2 = math.log(2)

UFUNCS: Mapping[str, Rule] = {
    **{ufunc: as_op(op) for ufunc, op in ops_of("numpy").items()},
    "add": _add,
    "subtract": _subtract,
    "divide": _divide,
    "multiply": lambda x, y: x.emit("and" if x.type.dtype == "bool" else "mul", y),
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "divmod": lambda x, y: (_floor_divide(x, y), _remainder(x, y)),
    "power": _power,
    "float_power": _power,
    "positive": lambda x: x,
    "absolute": _abs,
    "fabs": _abs,
    "conjugate": lambda x: x.emit("conj") if x.type.complex else x,
    **{f"f{op}": _fmax(op) for op in ("max", "min")},
    "log2": lambda x: x.emit("log") * (1 / _LOG2),
    "log10": lambda x: x.emit("log") * (1 / math.log(10)),
    "logaddexp": logaddexp,
    "logaddexp2": lambda x, y: logaddexp(x * _LOG2, y * _LOG2) * (1 / _LOG2),
    "reciprocal": lambda x: filled(x, 1).emit("div", x),
    "hypot": lambda x, y: (x.emit("square") + y.emit("square")).emit("sqrt"),
    **dict.fromkeys(("degrees", "rad2deg"), lambda x: x * (180 / math.pi)),
    **dict.fromkeys(("radians", "deg2rad"), lambda x: x * (math.pi / 180)),
    **{op: _unless_integer(op) for op in ("floor", "ceil")},
    "trunc": lambda x: _trunc(x) if x.type.dtype in FLOATS else x,
    "rint": _rint,
    "modf": _modf,
    "signbit": _signbit,
    "copysign": _copysign,
    "heaviside": _heaviside,
    "equal": _comparison("eq"),
    "not_equal": _comparison("ne"),
    "less": _comparison("lt"),
    "less_equal": _comparison("le"),
    "greater": _comparison("gt"),
    "greater_equal": _comparison("ge"),
    **{f"logical_{op}": _logical(op) for op in ("and", "not", "or", "xor")},
    "right_shift": lambda x, y: x.emit("shift_right_arithmetic" if x.type.dtype in SIGNED else "shift_right_logical", y),
    "isfinite": _is_finite,
    "isinf": _is_inf,
    "isnan": is_nan,
}
"""NumPy's ufuncs by name."""
