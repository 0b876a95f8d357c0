"""Samples of every primitive: attrs and operands that cover its dtypes, ranks 0 to 3, empty and one-element shapes.

A sample also has an independent reference, mostly plain Python on one element at a time. A primitive without samples fails
`test_every_primitive_has_samples`: whoever adds one adds them here.
"""

from __future__ import annotations

import cmath
import itertools
import math
from functools import cache

import mpmath
import numpy as np

from tests.graphs.templates import type_of
from tests.lax.sampling import (
    decomposition_samples,
    elementwise_samples,
    indexing_samples,
    linear_algebra_samples,
    reduction_samples,
    signal_samples,
    special_samples,
)
from tests.lax.sampling.sample import ORDER, SHAPES, Sample, draw, each, wrap, wrapped
from tidu_cli.graph.types import ALL, COMPLEXES, FLOATS, INEXACT, INTEGERS, ITEMSIZE, NUMERIC, REALS, SIGNED, TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.tangents import admitted


def _div(x, y):
    if isinstance(x, int):
        if y == 0:
            return -1  # all bits set, once wrapped
        return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    return x / y


def _mp(name):
    def value(x):
        with mpmath.workdps(30):
            number = getattr(mpmath, name)(x)
            return complex(number) if isinstance(x, complex) else float(number)

    return each(value)


def _sign(x):
    return 0 if x == 0 else x / abs(x) if isinstance(x, complex) else int(x > 0) - int(x < 0)


def _elementwise(op, dtypes, arity, reference, low=None, **attrs):
    for dtype in sorted(dtypes, key=ORDER.index):
        for shape in SHAPES:
            yield Sample(op, [draw(dtype, shape, k, low) for k in range(arity)], attrs, reference)


def elementary():
    yield from _elementwise("exp", INEXACT, 1, _mp("exp"))
    yield from _elementwise("log", INEXACT, 1, _mp("log"), low=0.1)
    yield from _elementwise(
        "log1p", INEXACT, 1, each(lambda x: cmath.log(1 + x) if isinstance(x, complex) else math.log1p(x)), low=-0.9
    )
    for name in ("sin", "cos", "tanh"):
        yield from _elementwise(name, INEXACT, 1, _mp(name))
    yield from _elementwise(
        "logistic",
        INEXACT,
        1,
        each(lambda x: complex(1 / (1 + mpmath.exp(-x))) if isinstance(x, complex) else float(1 / (1 + mpmath.exp(-x)))),
    )
    yield from _elementwise("sqrt", INEXACT, 1, _mp("sqrt"), low=0.1)


def arithmetic():
    yield from _elementwise("add", NUMERIC, 2, wrap(lambda x, y: x + y))
    yield from _elementwise("sub", NUMERIC, 2, wrap(lambda x, y: x - y))
    yield from _elementwise("mul", NUMERIC, 2, wrap(lambda x, y: x * y))
    yield from _elementwise("div", NUMERIC, 2, wrap(_div))
    yield from _elementwise("strong_mul", INEXACT, 2, each(lambda x, y: x * y))
    yield from _elementwise("strong_div", INEXACT, 2, each(lambda x, y: x / y))
    yield from _elementwise("neg", NUMERIC, 1, wrap(lambda x: -x))
    for y in (-2, -1, 0, 1, 2, 3, 5, 200):
        powered = wrap(lambda x, y=y: x**y)
        dtypes = (INEXACT if y < 0 else NUMERIC) if abs(y) < 10 else INTEGERS
        yield from _elementwise("integer_pow", dtypes, 1, powered, low=0.5 if y < 0 else None, y=y)
    yield from _elementwise("pow", INEXACT, 2, each(lambda x, y: x**y), low=0.2)
    for dtype, exponent in itertools.product(sorted(INEXACT), ("i8", "i32", "u64")):
        for shape in ((), (3,)):
            y = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(numpy_dtype(np, exponent))
            yield Sample("pow", [draw(dtype, shape), y], {}, each(lambda x, y: x**y))
    yield from _elementwise("max", REALS | {"bool"}, 2, each(max))
    yield from _elementwise("min", REALS | {"bool"}, 2, each(min))
    yield from _elementwise("abs", FLOATS | COMPLEXES | INTEGERS - SIGNED, 1, each(abs))
    yield from _elementwise("abs", SIGNED, 1, wrap(abs))
    yield from _elementwise("sign", NUMERIC, 1, each(_sign))


def comparison():
    symbols = {
        "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y,
        "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
    }  # fmt: skip
    for name, function in symbols.items():
        yield from _elementwise(name, ALL if name in ("eq", "ne") else ALL - COMPLEXES, 2, each(function))
    for dtype, shape in itertools.product(ORDER, SHAPES):
        a, b, c = (draw(dtype, shape, k) for k in range(3))
        which = draw("bool", shape, 7)
        yield Sample("select_n", [which, a, b], {}, each(lambda w, x, y: y if w else x))
        yield Sample("select_n", [np.array(True), a, b], {}, lambda w, x, y: y)
        yield Sample("select_n", [which, a], {}, lambda w, x: x)
        number = np.random.default_rng(3).integers(0, 3, shape).astype(np.int32)
        yield Sample("select_n", [np.asarray(number, np.int32), a, b, c], {}, each(lambda w, *x: x[w]))
        yield Sample("select_n", [np.array(2, np.int32), a, b, c], {}, lambda w, x, y, z: z)


def _moved_by(old, new):
    """x + d, of integers by a whole number and within their range."""
    if old not in INTEGERS:
        return each(lambda x, d: x + d)
    info = np.iinfo(numpy_dtype(np, old))
    return each(lambda x, d: min(max(x + round(d), int(info.min)), int(info.max)))


def times():
    numbers = sorted(NUMERIC, key=ORDER.index)
    for dtype, shape in itertools.product(numbers, SHAPES):
        x, y = draw(dtype, shape), draw(dtype, shape, 1)
        yield Sample("difference", [x, y], {}, each(lambda x, y: x - y))
        for tangent in (t.dtype for t in admitted(TensorType(dtype))):
            d = draw(tangent, shape, 2)
            yield Sample("retract", [x, (3 * d).astype(d.dtype)], {}, _moved_by(dtype, tangent))


def complexes():
    for name, function in (("conj", complex.conjugate), ("real", lambda z: z.real), ("imag", lambda z: z.imag)):
        yield from _elementwise(name, COMPLEXES, 1, each(function))
    yield from _elementwise("complex", {"f32", "f64"}, 2, each(complex))


def _converted(old, new):
    def convert(x):
        if isinstance(x, complex) and new not in COMPLEXES and new != "bool":
            x = x.real
        if new == "bool":
            return x != 0
        if new in INTEGERS:
            info, bits = np.iinfo(numpy_dtype(np, new)), 8 * ITEMSIZE[new]
            if isinstance(x, float):
                return min(max(math.trunc(x), info.min), info.max)
            return (int(x) - info.min) % 2**bits + info.min
        return x

    return each(convert)


def structural():
    for dtype, shape in itertools.product(ORDER, SHAPES):
        x = draw(dtype, shape)
        rank = len(shape)
        data = x.astype(x.dtype.newbyteorder("<")).tobytes()
        yield Sample("constant", [], {"value": {"type": str(type_of(x)), "data": data}}, lambda x=x: x)
        yield Sample("stop_gradient", [x], {}, lambda x: x)
        yield Sample("reshape", [x], {"new_sizes": [x.size, 1]}, lambda x: np.array(x.ravel().tolist(), object).reshape(-1, 1))
        yield Sample("reshape", [x], {"new_sizes": shape}, lambda x: x)
        for order in itertools.permutations(range(rank)):
            yield Sample("transpose", [x], {"permutation": order}, lambda x, order=order: _moved(x, order))
        target = (2, *(3 if n == 1 else n for n in shape))
        yield Sample(
            "broadcast_in_dim",
            [x],
            {"shape": target, "broadcast_dimensions": list(range(1, rank + 1))},
            lambda x, t=target: np.array([x + np.zeros(t[1:], x.dtype) if x.dtype != bool else x | np.zeros(t[1:], bool)] * 2),
        )
        yield Sample(
            "broadcast_in_dim",
            [x],
            {"shape": [*shape, 4], "broadcast_dimensions": list(range(rank))},
            lambda x: np.stack([x] * 4, axis=-1),
        )
    for old, new in itertools.product(ORDER, ORDER):
        for shape in ((), (5,), (0, 2), (2, 1, 3), (1, 2, 1, 2)):
            yield Sample("convert_element_type", [draw(old, shape)], {"new_dtype": new}, _converted(old, new))


def _moved(x, order):
    out = np.empty([x.shape[k] for k in order], object)
    for index in np.ndindex(*x.shape):
        out[tuple(index[k] for k in order)] = x[index].item()
    return out


def _folded(axes, function, start):
    def reference(x):
        kept = [k for k in range(x.ndim) if k not in axes]
        out = np.full([x.shape[k] for k in kept], start(x.dtype), object)
        for index in np.ndindex(*x.shape):
            at = tuple(index[k] for k in kept)
            out[at] = function(out[at], x[index].item())
        return out

    return reference


def _lowest(dtype):
    return -math.inf if dtype.kind in "fV" else int(np.iinfo(dtype).min) if dtype.kind in "iu" else False


def reduction():
    for shape in SHAPES:
        for count in range(len(shape) + 1):
            for axes in itertools.combinations(range(len(shape)), count):
                for dtype in ORDER:
                    x = draw(dtype, shape, low=0.1 if dtype in INTEGERS else None)
                    if dtype != "bool":
                        yield Sample("reduce_sum", [x], {"axes": axes}, _folded(axes, lambda a, b: a + b, lambda dt: 0))
                    if dtype not in COMPLEXES:
                        yield Sample("reduce_max", [draw(dtype, shape)], {"axes": axes}, _folded(axes, max, _lowest))


DOTS = [  # lhs shape, rhs shape, dimension numbers
    ((), (), [[[], []], [[], []]]),
    ((3,), (3,), [[[0], [0]], [[], []]]),
    ((3,), (2,), [[[], []], [[], []]]),
    ((0,), (0,), [[[0], [0]], [[], []]]),
    ((2, 3), (3,), [[[1], [0]], [[], []]]),
    ((3, 2), (3,), [[[0], [0]], [[], []]]),
    ((2, 3), (3, 4), [[[1], [0]], [[], []]]),
    ((1, 3), (3, 1), [[[1], [0]], [[], []]]),
    ((3, 2), (3, 4), [[[0], [0]], [[], []]]),
    ((2, 3), (4, 3), [[[1], [1]], [[], []]]),
    ((3, 2), (4, 3), [[[0], [1]], [[], []]]),
    ((2, 3), (3, 2), [[[0, 1], [1, 0]], [[], []]]),
    ((2, 0), (0, 3), [[[1], [0]], [[], []]]),
    ((2, 3, 4), (4, 2, 5), [[[0, 2], [1, 0]], [[], []]]),
    ((2, 3, 4), (4, 5, 2), [[[2, 0], [0, 2]], [[], []]]),
    ((2, 3), (2, 3), [[[], []], [[0, 1], [0, 1]]]),
    ((2, 3), (4, 2), [[[], []], [[0], [1]]]),
    ((2, 3, 4), (3, 5, 2), [[[], []], [[1], [0]]]),
    ((2, 3), (3, 2), [[[1], [0]], [[0], [1]]]),
    ((2, 3, 4), (2, 4, 5), [[[2], [1]], [[0], [0]]]),
    ((3, 2, 4), (5, 4, 2), [[[2], [1]], [[1], [2]]]),
    ((4, 3, 2), (2, 4, 3), [[[0], [1]], [[2, 1], [0, 2]]]),
    ((2, 3, 4, 5), (5, 2, 3, 6), [[[3, 1], [0, 2]], [[0], [1]]]),
    ((2, 3, 4), (3, 2, 0), [[[1], [0]], [[0], [1]]]),
]  # fmt: skip


def dot_reference(numbers, result=None):
    (lc, rc), (lb, rb) = numbers

    def reference(x, y):
        letters = iter("abcdefghijklmnop")
        left, right = [next(letters) for _ in x.shape], [next(letters) for _ in y.shape]
        for i, j in [*zip(lc, rc, strict=True), *zip(lb, rb, strict=True)]:
            right[j] = left[i]
        out = [left[k] for k in lb]
        out += [c for k, c in enumerate(left) if k not in lc and k not in lb]
        out += [c for k, c in enumerate(right) if k not in rc and k not in rb]
        wide = "O" if x.dtype.kind in "iu" else np.complex128 if x.dtype.kind == "c" else np.float64
        product = np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", x.astype(wide), y.astype(wide))
        return wrapped(np.asarray(product), numpy_dtype(np, result) if result else x.dtype)

    return reference


def contraction():
    for dtype in sorted(NUMERIC, key=ORDER.index):
        for lhs, rhs, numbers in DOTS:
            low = 0.1 if dtype in INTEGERS else None
            operands = [draw(dtype, lhs, 1, low), draw(dtype, rhs, 2, low)]
            yield Sample("dot_general", operands, {"dimension_numbers": numbers}, dot_reference(numbers))
    for old, new in (("i8", "i32"), ("f16", "f32"), ("bf16", "f32"), ("f32", "f64"), ("i32", "f64"), ("c64", "c128")):
        for lhs, rhs, numbers in DOTS[4:9] + DOTS[-3:]:
            attrs = {"dimension_numbers": numbers, "preferred_element_type": new}
            yield Sample("dot_general", [draw(old, lhs, 1, 0.1), draw(old, rhs, 2, 0.1)], attrs, dot_reference(numbers, new))


FAMILIES = (elementary, arithmetic, comparison, times, complexes, structural, reduction, contraction)
MODULES = (
    elementwise_samples,
    indexing_samples,
    linear_algebra_samples,
    decomposition_samples,
    reduction_samples,
    signal_samples,
    special_samples,
)
ELSEWHERE = {"record", "field", "add_cotangents", "size", *(p.name for p in BUILTIN if p.domain.attrs.graphs)}
"""These have tests of their own: test_records, test_vectors, and control_flow."""

OPS = sorted(p.name for p in BUILTIN if p.name not in ELSEWHERE)
"""What there are samples of. They take seconds to make, and are not made where tests are collected."""


@cache
def by_op() -> dict[str, list[Sample]]:
    """All samples, by op."""
    samples: dict[str, list[Sample]] = {}
    for family in (*FAMILIES, *(family for module in MODULES for family in module.FAMILIES)):
        for sample in family():
            samples.setdefault(sample.op, []).append(sample)
    return samples
