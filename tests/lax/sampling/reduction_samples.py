"""Samples of reductions, cumulative reductions, sorts and roundings, with references that fold in plain Python."""

from __future__ import annotations

import cmath
import functools
import itertools
import math
from fractions import Fraction

import numpy as np

from tests.lax.sampling.sample import ORDER, SHAPES, Sample, draw, each, wrapped
from tidu_cli.graph.types import FLOATS, INEXACT, INTEGERS, NUMERIC, REALS
from tidu_cli.lax.arrays.structural import numpy_dtype

RANK_4 = (2, 1, 3, 2)


def drawn(dtypes, shapes=(*SHAPES, RANK_4), low=None):
    for dtype in sorted(dtypes, key=ORDER.index):
        for shape in shapes:
            yield draw(dtype, shape, low=low)


def subsets(rank):
    return itertools.chain.from_iterable(itertools.combinations(range(rank), count) for count in range(rank + 1))


def along(axes, function):
    """The reference that applies a Python function to the list of elements along some axes, in row-major order."""

    def reference(x):
        kept = [k for k in range(x.ndim) if k not in axes]
        groups = np.empty([x.shape[k] for k in kept], object)
        for index in np.ndindex(*groups.shape):
            groups[index] = []
        for index in np.ndindex(*x.shape):
            groups[tuple(index[k] for k in kept)].append(x[index].item())
        out = np.empty(groups.shape, object)
        for index in np.ndindex(*groups.shape):
            out[index] = function(groups[index])
        return wrapped(out, x.dtype)

    return reference


def bounds(dtype):
    if dtype in INTEGERS:
        info = np.iinfo(numpy_dtype(np, dtype))
        return int(info.min), int(info.max)
    return (False, True) if dtype == "bool" else (-math.inf, math.inf)


def reductions():
    for x in drawn(REALS | {"bool"}):
        dtype = ORDER[[numpy_dtype(np, d) for d in ORDER].index(x.dtype)]
        least, greatest = bounds(dtype)
        for axes in subsets(x.ndim):
            attrs = {"axes": axes}
            yield Sample("reduce_min", [x], attrs, along(axes, functools.partial(min, default=greatest)))
            if x.ndim == len(RANK_4):
                yield Sample("reduce_max", [x], attrs, along(axes, functools.partial(max, default=least)))
            if dtype not in FLOATS:
                for op, of_two, start in (
                    ("reduce_and", lambda a, b: a & b, -1),
                    ("reduce_or", lambda a, b: a | b, 0),
                    ("reduce_xor", lambda a, b: a ^ b, 0),
                ):
                    start = bool(start) if dtype == "bool" else start
                    fold = functools.partial(lambda of_two, start, v: functools.reduce(of_two, v, start), of_two, start)
                    yield Sample(op, [x], attrs, along(axes, fold))
        for axis in range(x.ndim):
            if x.shape[axis]:
                index = INDEX_DTYPES[axis]
                attrs = {"axes": [axis], "index_dtype": index}
                yield Sample("argmax", [x], attrs, along([axis], lambda v: v.index(max(v))))
                yield Sample("argmin", [x], attrs, along([axis], lambda v: v.index(min(v))))
    for x in drawn(NUMERIC):
        for axes in subsets(x.ndim):
            yield Sample("reduce_prod", [x], {"axes": axes}, along(axes, math.prod))


INDEX_DTYPES = ("i32", "u8", "i64", "u16")


def accumulated(axis, reverse, of_list):
    """The reference of a cumulative reduction: at each element, a function of the list of those up to it."""

    def reference(x):
        out = np.empty(x.shape, object)
        for index in np.ndindex(*x.shape):
            before = range(index[axis], x.shape[axis]) if reverse else range(index[axis] + 1)
            out[index] = of_list([x[(*index[:axis], k, *index[axis + 1 :])].item() for k in before])
        return wrapped(out, x.dtype)

    return reference


def logsumexp(values):
    if isinstance(values[0], complex):
        return cmath.log(sum(map(cmath.exp, values)))
    return math.log(math.fsum(map(math.exp, values)))


def cumulatives():
    for op, dtypes, of_list in (
        ("cumsum", NUMERIC, sum),
        ("cumprod", NUMERIC, math.prod),
        ("cummax", REALS, max),
        ("cummin", REALS, min),
        ("cumlogsumexp", INEXACT, logsumexp),
    ):
        for x in drawn(dtypes):
            for axis, reverse in itertools.product(range(x.ndim), (False, True)):
                yield Sample(op, [x], {"axis": axis, "reverse": reverse}, accumulated(axis, reverse, of_list))


def in_order(x):
    """A sort key for Python: as XLA compares, NaN last and -0 equal to 0, part by part."""
    parts = (x.real, x.imag) if isinstance(x, complex) else (x,)
    return tuple((part != part, 0 if part != part else part) for part in parts)


def sorted_along(axis):
    def reference(x):
        out = np.empty(x.shape, object)
        for index in np.ndindex(*x.shape):
            line = x[(*index[:axis], slice(None), *index[axis + 1 :])].tolist()
            out[index] = sorted(line, key=in_order)[index[axis]]
        return out

    return reference


def top_of(axis, k):
    def reference(x):
        shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
        values, places = np.empty(shape, object), np.empty(shape, object)
        for index in np.ndindex(*shape):
            line = x[(*index[:axis], slice(None), *index[axis + 1 :])].tolist()
            # Python's sort is stable also in reverse: equal elements keep their order.
            descending = sorted(range(len(line)), key=lambda k: in_order(line[k]), reverse=True)
            places[index] = descending[index[axis]]
            values[index] = line[places[index]]
        return values, places

    return reference


def sorts():
    for x in drawn(ORDER):
        for axis in range(x.ndim):
            for stable in (True, False):
                yield Sample("sort", [x], {"dimension": axis, "is_stable": stable}, sorted_along(axis))
            if x.dtype.kind != "c":
                for k in {0, x.shape[axis] // 2, x.shape[axis]}:
                    yield Sample("top_k", [x], {"k": k, "axis": axis}, top_of(axis, k))


SOURCE_BITS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
FORMATS = [(5, 10), (8, 7), (4, 3), (5, 2), (8, 23), (11, 52), (2, 0), (1, 0), (3, 60), (40, 4)]


def rounded(dtype, exponent_bits, mantissa_bits):
    """x in the nearest number of a format, of two equally near the even one, in exact arithmetic."""
    n_exponent, n_mantissa = SOURCE_BITS[dtype]
    smallest_exponent = 2 - 2 ** (n_exponent - 1)  # of the operand's normal numbers; below, its numbers are evenly spaced

    def value(x):
        if math.isnan(x) or math.isinf(x) or x == 0:
            return x
        if mantissa_bits < n_mantissa:
            quantum = Fraction(2) ** (max(math.frexp(x)[1] - 1, smallest_exponent) - mantissa_bits)
            exact = round(Fraction(x) / quantum) * quantum
        else:
            exact = Fraction(x)
        if exponent_bits < n_exponent:
            bias = 2 ** (exponent_bits - 1) - 1
            if abs(exact) >= Fraction(2) ** (bias + 1):
                return math.copysign(math.inf, x)
            if abs(exact) < Fraction(2) ** (1 - bias):
                return math.copysign(0.0, x)
        try:
            return float(exact)
        except OverflowError:
            return math.copysign(math.inf, x)

    return each(value)


def roundings():
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0625, 1.03125, 1.1875]
    special += [-65519.0, 65520.0, 3e38, 6e-5, 6.1e-5, -1e-7, 1e-40]
    special += [1.0 + 2.0**-k for k in range(1, 12)] + [2.0 - 2.0**-k for k in range(1, 12)] + [-1e308, 5e-324, 3e-310]
    for dtype, (exponent_bits, mantissa_bits) in itertools.product(sorted(FLOATS), FORMATS):
        attrs = {"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits}
        reference = rounded(dtype, exponent_bits, mantissa_bits)
        with np.errstate(all="ignore"):
            yield Sample("reduce_precision", [np.array(special).astype(numpy_dtype(np, dtype))], attrs, reference)
        for x in drawn({dtype}):
            yield Sample("reduce_precision", [x], attrs, reference)


FAMILIES = (reductions, cumulatives, sorts, roundings)
