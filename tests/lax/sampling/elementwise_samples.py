"""Samples of the elementwise primitives beyond arithmetic, with references from mpmath and from Python's integers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np

from tests.lax.sampling.sample import ORDER, SHAPES, Sample, draw, each, wrap, wrapped
from tidu_cli.graph.types import ALL, COMPLEXES, FLOATS, INEXACT, INTEGERS, ITEMSIZE, NUMERIC, REALS
from tidu_cli.lax.arrays.structural import numpy_dtype

RANK_4 = [*SHAPES, (2, 1, 1, 2)]


def between(dtype, shape, low, high, seed=0):
    """An array of floats from the interval; of complex numbers, both parts."""
    rng = np.random.default_rng([seed, 77, ORDER.index(dtype), *shape])
    x = rng.uniform(low, high, shape)
    if dtype in COMPLEXES:
        x = x + 1j * rng.uniform(low, high, shape)
    return np.asarray(x).astype(numpy_dtype(np, dtype))


def exact(function):
    """Reference from a function of mpmath's numbers, one element of each operand at a time."""

    def value(*elements):
        with mpmath.workdps(40):
            number = function(*map(mpmath.mpmathify, elements))
            return complex(number) if isinstance(elements[0], complex) else float(number)

    return each(value)


def in_(dtypes):
    return sorted(dtypes, key=ORDER.index)


REFERENCE = {
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "expm1": lambda x: mpmath.expm1(x),
    "log1p": lambda x: mpmath.log(1 + x),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "square": lambda x: x * x,
    "logistic": lambda x: 1 / (1 + mpmath.exp(-x)),
    "tan": mpmath.tan,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
    "atan2": lambda y, x: -1j * mpmath.log((x + 1j * y) / mpmath.sqrt(x * x + y * y)) if y.imag or x.imag else mpmath.atan2(y, x),
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "erf_inv": mpmath.erfinv,
    "lgamma": lambda x: mpmath.log(abs(mpmath.gamma(x))),
    "digamma": mpmath.digamma,
    "polygamma": lambda m, x: mpmath.psi(int(m), x),
    "zeta": mpmath.zeta,
    "igamma": lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
    "igammac": lambda a, x: mpmath.gammainc(a, x, regularized=True),
    "regularized_incomplete_beta": lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True),
    "bessel_i0e": lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)),
    "bessel_i1e": lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)),
}
"""Of each function its definition, by mpmath."""

WITHIN = {
    "exp2": (INEXACT, (-2, 2)),
    "expm1": (INEXACT, (-2, 2)),
    "rsqrt": (INEXACT, (0.3, 3)),
    "cbrt": (FLOATS, (0.3, 3)),
    "tan": (INEXACT, (-1, 1)),
    "asin": (INEXACT, (-0.7, 0.7)),
    "acos": (INEXACT, (-0.7, 0.7)),
    "atan": (INEXACT, (-0.7, 0.7)),
    "sinh": (INEXACT, (-2, 2)),
    "cosh": (INEXACT, (-2, 2)),
    "asinh": (INEXACT, (-0.7, 0.7)),
    "acosh": (INEXACT, (1.5, 3)),
    "atanh": (INEXACT, (-0.7, 0.7)),
    "atan2": (INEXACT, (-0.4, 0.4), (1, 2)),
    "erf": (FLOATS, (-2, 2)),
    "erfc": (FLOATS, (-2, 2)),
    "erf_inv": (FLOATS, (-0.7, 0.7)),
    "lgamma": (FLOATS, (0.5, 3)),
    "digamma": (FLOATS, (0.5, 3)),
    "zeta": (FLOATS, (2, 4), (0.5, 3)),
    "igamma": (FLOATS, (0.5, 3), (0.5, 3)),
    "igammac": (FLOATS, (0.5, 3), (0.5, 3)),
    "regularized_incomplete_beta": (FLOATS, (0.5, 3), (0.5, 3), (0.2, 0.8)),
    "bessel_i0e": (FLOATS, (0.2, 3)),
    "bessel_i1e": (FLOATS, (0.2, 3)),
}
"""The dtypes of a function, and for each operand an interval without kinks, poles and branch cuts."""


def functions():
    for name, (dtypes, *intervals) in WITHIN.items():
        for dtype in in_(dtypes):
            for shape in RANK_4:
                operands = [between(dtype, shape, *interval, k) for k, interval in enumerate(intervals)]
                yield Sample(name, operands, {}, exact(REFERENCE[name]))
    for dtype in in_(FLOATS):
        for shape in RANK_4:
            orders = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 4
            operands = [np.asarray(orders).astype(numpy_dtype(np, dtype)), between(dtype, shape, 0.5, 3)]
            yield Sample("polygamma", operands, {}, exact(REFERENCE["polygamma"]))
    for dtype in in_(NUMERIC):
        for shape in RANK_4:
            yield Sample("square", [draw(dtype, shape)], {}, wrap(lambda x: x * x))


def _rem(x, y):
    if isinstance(x, int):
        return x if y == 0 else abs(x) % abs(y) * (1 if x >= 0 else -1)
    return math.fmod(x, y)


def rounding():
    away = each(lambda x: math.floor(abs(Fraction(x)) + Fraction(1, 2)) * (1 if x > 0 else -1))
    for dtype in in_(FLOATS):
        for shape in RANK_4:
            x = between(dtype, shape, -4, 4)
            yield Sample("floor", [x], {}, each(math.floor))
            yield Sample("ceil", [x], {}, each(math.ceil))
            halves = np.round(2 * x.astype(np.float64)).astype(x.dtype) / x.dtype.type(2)
            for operand in (x, np.asarray(halves)):
                yield Sample("round", [operand], {}, away)
                yield Sample("round", [operand], {"rounding_method": "TO_NEAREST_EVEN"}, each(round))
            yield Sample("is_finite", [x], {}, each(math.isfinite))
            yield Sample("nextafter", [x, between(dtype, shape, -4, 4, 1)], {}, each(next_float(dtype)))
            yield Sample("rem", [between(dtype, shape, 2.25, 2.5), between(dtype, shape, 0.95, 1.05, 1)], {}, each(_rem))
    for dtype in in_(REALS):
        for shape in RANK_4:
            yield Sample("rem", [draw(dtype, shape), draw(dtype, shape, 1, 0.1 if dtype in FLOATS else None)], {}, each(_rem))


def next_float(dtype):
    """The neighbour of x on the way to y, by counting bit patterns."""
    dt = numpy_dtype(np, dtype)

    def after(x, y):
        if x == y:
            return y
        count = int(np.array(abs(x)).astype(dt).view(f"u{dt.itemsize}"))
        away = (y > x) == (x > 0)
        return math.copysign(float(np.array(count + (1 if away else -1), f"u{dt.itemsize}").view(dt)), x)

    return after


def clamping():
    def reference(low, x, high):
        return each(lambda a, b, c: min(max(a, b), c))(np.broadcast_to(low, x.shape), x, np.broadcast_to(high, x.shape))

    for dtype in in_(ALL - COMPLEXES):
        for shape in RANK_4:
            for low, high in ((shape, shape), ((), shape), (shape, ()), ((), ())):
                if dtype in FLOATS:
                    x = between(dtype, shape, -0.6, 0.6)
                    x = x + np.where(np.abs(x) > 0.2, np.sign(x), 0 * x).astype(x.dtype) * x.dtype.type(1.4)
                    operands = [between(dtype, low, -1.2, -0.9, 1), x, between(dtype, high, 0.9, 1.2, 2)]
                else:
                    operands = [draw(dtype, low, 1), draw(dtype, shape), draw(dtype, high, 2)]
                yield Sample("clamp", operands, {}, reference)


def bits():
    for dtype in in_(INTEGERS | {"bool"}):
        for shape in RANK_4:
            x, y = draw(dtype, shape), draw(dtype, shape, 1)
            yield Sample("not", [x], {}, each(lambda x: not x) if dtype == "bool" else wrap(lambda x: ~x))
            yield Sample("and", [x, y], {}, each(lambda x, y: x & y))
            yield Sample("or", [x, y], {}, each(lambda x, y: x | y))
            yield Sample("xor", [x, y], {}, each(lambda x, y: x ^ y))
            if dtype in INTEGERS:
                yield from _shifts(x, y)


def _shifts(x, y):
    size = 8 * x.dtype.itemsize

    def shifted(function):
        def reference(x, y):
            # Amounts are read as unsigned, and none is more than all the bits.
            return wrapped(each(lambda a, n: function(a, min(n % 2**size, size)))(x, y), x.dtype)

        return reference

    for amount in (y, np.asarray(y % y.dtype.type(size))):
        yield Sample("shift_left", [x, amount], {}, shifted(lambda a, n: a << n))
        # The highest bit is a sign, of unsigned integers too.
        yield Sample(
            "shift_right_arithmetic", [x, amount], {}, shifted(lambda a, n: (a - 2**size if a >> (size - 1) == 1 else a) >> n)
        )
        yield Sample("shift_right_logical", [x, amount], {}, shifted(lambda a, n: (a % 2**size) >> n))
    yield Sample("population_count", [x], {}, each(lambda a: bin(a % 2**size).count("1")))
    yield Sample("clz", [x], {}, each(lambda a: size - (a % 2**size).bit_length()))


def bitcasts():
    """The bytes of numbers, as Python's struct has them, read as another dtype."""
    for old, new in itertools.permutations(in_(REALS), 2):
        size, wide = (ITEMSIZE[dtype] for dtype in (old, new))
        shape = (3, wide // size) if wide > size else (3, 2)
        target = numpy_dtype(np, new)

        def reference(x, target=target, wide=wide, size=size):
            data = [x[index].tobytes() for index in np.ndindex(*x.shape)]
            data = b"".join(data)
            parts = [np.frombuffer(data[k : k + wide], target)[0] for k in range(0, len(data), wide)]
            shape = x.shape[:-1] if wide > size else x.shape if wide == size else (*x.shape, size // wide)
            return np.array(parts, target).reshape(shape)

        yield Sample("bitcast_convert_type", [draw(old, shape)], {"new_dtype": new}, reference)
    for shape in ((), (1,), (0, 2), (2, 1, 3), (1, 2, 3, 2)):
        yield Sample("bitcast_convert_type", [draw("f64", shape)], {"new_dtype": "i64"}, lambda x: x.view("i8"))


FAMILIES = (functions, rounding, clamping, bits, bitcasts)
