"""Samples of Fourier transforms, convolutions and windows, with references that go window by window in plain Python."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

from tests.lax.sampling.reduction_samples import bounds
from tests.lax.sampling.sample import ORDER, Sample, draw, wrapped
from tidu_cli.graph.types import COMPLEXES, INTEGERS, NUMERIC, REALS
from tidu_cli.lax.arrays.structural import numpy_dtype


def meets(shape, windows, strides, padding, base, dilation):
    """For the number of each window, the (place in the window, element) pairs that it has, row-major in the places."""
    lines = []
    for n, w, s, (low, high), b, d in zip(shape, windows, strides, padding, base, dilation, strict=True):
        padded = low + ((n - 1) * b + 1 if n else 0) + high
        starts = range(0, max(0, padded - (w - 1) * d), s)
        where = {low + i * b: i for i in range(n)}
        lines.append([[(t, where[start + t * d]) for t in range(w) if start + t * d in where] for start in starts])
    counts = tuple(map(len, lines))
    pairs_at = {}
    for at in np.ndindex(*counts):
        per_axis = [line[k] for line, k in zip(lines, at, strict=True)]
        pairs_at[at] = [tuple(zip(*pairs, strict=True)) if pairs else ((), ()) for pairs in itertools.product(*per_axis)]
    return counts, pairs_at


def window(dimensions, **attrs):
    rank = len(dimensions)
    plain = {"window_strides": [1] * rank, "padding": [[0, 0]] * rank, "base_dilation": [1] * rank, "window_dilation": [1] * rank}
    return {"window_dimensions": list(dimensions), **plain, **attrs}


NAMES = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")


def windows_of(attrs, shape):
    ones = [1] * len(shape)
    return meets(shape, *(attrs.get(name) or ones for name in NAMES))


def over_windows(attrs, fold):
    """The reference that applies a Python function to the list of elements in each window."""

    def reference(x):
        counts, pairs_at = windows_of(attrs, x.shape)
        out = np.empty(counts, object)
        for at, pairs in pairs_at.items():
            out[at] = fold([x[element].item() for _, element in pairs])
        return wrapped(out, x.dtype)

    return reference


WINDOWS = [
    ((), window([])),
    ((5,), window([1])),
    ((5,), window([2])),
    ((5,), window([1], window_strides=[2])),
    ((0,), window([2], padding=[[1, 2]])),
    ((0,), window([2])),
    ((3,), window([4])),
    ((9,), window([7], padding=[[3, 3]])),
    ((4,), window([2], padding=[[-1, 2]], window_strides=[3])),
    ((5,), window([2], padding=[[-4, 1]], base_dilation=[3])),
    ((4, 6), window([2, 3], window_strides=[2, 3])),
    ((3, 5), window([2, 3], padding=[[1, 0], [2, -1]], window_strides=[1, 2])),
    ((2, 0), window([2, 1])),
    ((1, 3), window([1, 2], padding=[[3, 0], [0, 0]])),
    ((4, 3), window([2, 3], base_dilation=[2, 1], window_dilation=[1, 2], padding=[[0, 1], [2, 1]])),
    ((2, 3, 2), window([1, 2, 2], base_dilation=[1, 2, 3], window_dilation=[2, 2, 1], window_strides=[1, 2, 1])),
    ((2, 1, 3, 2), window([2, 1, 1, 2], padding=[[1, 1], [0, 0], [0, 1], [1, 0]])),
]

LONG = ((70,), window([33], window_strides=[1], padding=[[4, 5]]))
"""Windows long enough to be reduced in doubling steps."""


def window_reductions():
    for dtype in sorted(NUMERIC, key=ORDER.index):
        for shape, attrs in (*WINDOWS, LONG):
            x = draw(dtype, shape, low=0.1 if dtype in INTEGERS else None)
            yield Sample("reduce_window_sum", [x], attrs, over_windows(attrs, sum))
    for dtype in sorted(REALS | {"bool"}, key=ORDER.index):
        least, greatest = bounds(dtype)
        for shape, attrs in (*WINDOWS, LONG):
            x = draw(dtype, shape)
            yield Sample("reduce_window_max", [x], attrs, over_windows(attrs, functools.partial(max, default=least)))
            yield Sample("reduce_window_min", [x], attrs, over_windows(attrs, functools.partial(min, default=greatest)))


def extremes(attrs, operand):
    """For each window the element that it chooses, None if it has none: the first of ties."""
    better = max if attrs["select_prim"] == "ge" else min
    counts, pairs = windows_of(attrs, operand.shape)
    return counts, {at: better((e for _, e in own), key=lambda e: operand[e].item(), default=None) for at, own in pairs.items()}


def gathered(attrs):
    def reference(values, operand):
        counts, chosen = extremes(attrs, operand)
        out = np.empty(counts, object)
        for at, element in chosen.items():
            out[at] = 0 if element is None else values[element].item()
        return out

    return reference


def scattered(attrs):
    def reference(source, operand):
        out = np.zeros(operand.shape, object)
        for at, element in extremes(attrs, operand)[1].items():
            if element is not None:
                out[element] += source[at].item()
        return wrapped(out, source.dtype)

    return reference


def selections():
    dtypes = sorted(NUMERIC, key=ORDER.index)
    compared = sorted(REALS | {"bool"}, key=ORDER.index)
    for k, ((shape, attrs), select) in enumerate(itertools.product((*WINDOWS, LONG), ("ge", "le"))):
        attrs = attrs | {"select_prim": select}
        counts, _ = windows_of(attrs, shape)
        for j, dtype in enumerate(dtypes):
            # Every dtype of values with every one of operands, in the course of all windows; f64 always.
            for other in {"f64", compared[(j + k) % len(compared)]}:
                operand = draw(other, shape, 3)
                yield Sample("select_and_gather_add", [draw(dtype, shape, 1), operand], attrs, gathered(attrs))
                source = draw(dtype, counts, 1, 0.1 if dtype in INTEGERS else None)
                yield Sample("select_and_scatter_add", [source, operand], attrs, scattered(attrs))


def numbers(*specs):
    return dict(zip(("lhs_spec", "rhs_spec", "out_spec"), map(list, specs), strict=True))


def conv(spec, **attrs):
    rank = len(spec["lhs_spec"]) - 2
    plain = {"window_strides": [1] * rank, "padding": [[0, 0]] * rank, "lhs_dilation": [1] * rank, "rhs_dilation": [1] * rank}
    return {**plain, "dimension_numbers": spec, **attrs}


NC, NCW, NCHW = (numbers(range(rank), range(rank), range(rank)) for rank in (2, 3, 4))
NHWC = numbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
MIXED = numbers((2, 0, 1), (1, 2, 0), (1, 0, 2))

CONVOLUTIONS = [  # lhs shape, rhs shape, attrs
    ((2, 3), (4, 3), conv(NC)),
    ((1, 1, 1), (1, 1, 1), conv(NCW)),
    ((1, 1, 7), (1, 1, 3), conv(NCW)),
    ((1, 1, 2), (1, 1, 1), conv(NCW, lhs_dilation=[3], padding=[[0, 2]])),
    ((1, 1, 3), (1, 1, 5), conv(NCW, padding=[[4, 4]])),
    ((1, 1, 7), (1, 1, 3), conv(NCW, padding=[[2, -1]], window_strides=[2])),
    ((2, 3, 5), (4, 3, 2), conv(NCW, padding=[[1, 0]], window_strides=[2])),
    ((2, 3, 5), (4, 3, 4), conv(NCW, lhs_dilation=[3], rhs_dilation=[2], window_strides=[2], padding=[[3, 5]])),
    ((2, 3, 5), (4, 3, 2), conv(NCW, lhs_dilation=[4], window_strides=[6], rhs_dilation=[3], padding=[[-2, 7]])),
    ((2, 3, 2), (4, 3, 1), conv(NCW, lhs_dilation=[4])),
    ((1, 2, 3, 2), (1, 2, 2, 3), conv(NCHW, lhs_dilation=[7, 5000], window_strides=[5, 3], padding=[[-2, 3], [4, -4992]])),
    ((2, 3, 2), (4, 3, 5), conv(NCW)),
    ((2, 3, 0), (4, 3, 2), conv(NCW, padding=[[1, 2]])),
    ((0, 3, 4), (4, 3, 2), conv(NCW)),
    ((2, 0, 4), (4, 0, 2), conv(NCW)),
    ((2, 3, 4), (0, 3, 2), conv(NCW)),
    ((3, 5, 2), (2, 4, 3), conv(MIXED, rhs_dilation=[2])),
    ((1, 2, 4, 5), (3, 2, 2, 3), conv(NCHW, padding=[[1, 1], [2, -1]], window_strides=[2, 1])),
    ((2, 4, 5, 2), (2, 3, 2, 3), conv(NHWC, lhs_dilation=[2, 3], rhs_dilation=[3, 1], window_strides=[3, 2])),
    ((2, 4, 5), (6, 2, 2), conv(NCW, feature_group_count=2, padding=[[0, 1]])),
    ((4, 3, 5), (6, 3, 2), conv(NCW, batch_group_count=2, rhs_dilation=[2])),
    ((2, 3, 4, 4), (2, 3, 2, 8), conv(NHWC, feature_group_count=2, padding=[[-1, 1], [0, 2]])),
]


def convolved(attrs, result=None):
    """The sum over features and elements in each window, one product at a time."""
    spec, groups, batches = attrs["dimension_numbers"], attrs.get("feature_group_count", 1), attrs.get("batch_group_count", 1)

    def reference(lhs, rhs):
        wide = "O" if lhs.dtype.kind in "iu" else np.complex128 if lhs.dtype.kind == "c" else np.float64
        x, w = lhs.transpose(spec["lhs_spec"]).astype(wide), rhs.transpose(spec["rhs_spec"]).astype(wide)
        names = ("window_strides", "padding", "lhs_dilation", "rhs_dilation")
        counts, pairs_at = meets(x.shape[2:], w.shape[2:], *(attrs[name] for name in names))
        n, n_out = x.shape[0] // batches, w.shape[0]
        out = np.zeros((n, n_out, *counts), wide)
        for at, pairs in pairs_at.items():
            for b, o in np.ndindex(n, n_out):
                group = o // (n_out // (groups * batches))
                image, first = (group * n + b, 0) if batches > 1 else (b, group * w.shape[1])
                for (places, element), c in itertools.product(pairs, range(w.shape[1])):
                    out[(b, o, *at)] += x[(image, first + c, *element)] * w[(o, c, *places)]
        back = [spec["out_spec"].index(axis) for axis in range(out.ndim)]
        return wrapped(out.transpose(back), numpy_dtype(np, result) if result else lhs.dtype)

    return reference


def convolutions():
    for dtype in sorted(NUMERIC, key=ORDER.index):
        for lhs, rhs, attrs in CONVOLUTIONS:
            low = 0.1 if dtype in INTEGERS else None
            yield Sample("conv_general_dilated", [draw(dtype, lhs, 1, low), draw(dtype, rhs, 2, low)], attrs, convolved(attrs))
    for old, new in (("i8", "i32"), ("bf16", "f32"), ("f32", "f64"), ("i32", "f64"), ("c64", "c128")):
        lhs, rhs, attrs = CONVOLUTIONS[5]
        attrs = attrs | {"preferred_element_type": new}
        yield Sample("conv_general_dilated", [draw(old, lhs, 1, 0.1), draw(old, rhs, 2, 0.1)], attrs, convolved(attrs, new))


def transformed(kind, lengths):
    """The sums of the definition, as products with matrices of roots of unity."""

    def reference(x):
        y = x.astype(np.complex128)
        if kind == "IRFFT":
            n = lengths[-1]
            inner = [np.conj(np.take(y, n - k, -1)) for k in range(n // 2 + 1, n)]
            for axis in range(-len(lengths), -1):  # what is left out is the conjugate at the negative frequencies
                inner = [np.take(z, -np.arange(z.shape[axis + 1]), axis + 1) for z in inner]
            # The first entry, and of an even length the last, count with their real parts where the others are transformed.
            y = np.concatenate([y, np.stack(inner, -1)], -1) if inner else y
        sign = 1 if kind in ("IFFT", "IRFFT") else -1
        for axis, n in zip(range(-len(lengths), 0), lengths, strict=True):
            roots = np.exp(sign * 2j * math.pi * (np.outer(np.arange(n), np.arange(n)) % n) / n) / (n if sign > 0 else 1)
            y = np.moveaxis(np.tensordot(roots, y, (1, axis)), 0, axis)
        if kind == "IRFFT":
            return y.real
        return y[..., : lengths[-1] // 2 + 1] if kind == "RFFT" else y

    return reference


SHAPES = [
    ((1,), 1),
    ((5,), 1),
    ((8,), 1),
    ((2, 3), 1),
    ((2, 3), 2),
    ((0, 3), 1),
    ((2, 1, 4), 2),
    ((3, 1, 2, 7), 3),
    ((2, 2, 3, 1), 4),
]


def transforms():
    for (shape, count), dtype in itertools.product(SHAPES, ("f32", "f64", "c64", "c128")):
        lengths = shape[-count:]
        for kind in ("FFT", "IFFT", "IRFFT") if dtype in COMPLEXES else ("RFFT",):
            sizes = (*shape[:-1], shape[-1] // 2 + 1) if kind == "IRFFT" else shape
            yield Sample("fft", [draw(dtype, sizes)], {"fft_type": kind, "fft_lengths": lengths}, transformed(kind, lengths))


FAMILIES = (transforms, convolutions, window_reductions, selections)
