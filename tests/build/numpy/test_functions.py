"""Traced functions have NumPy's values, dtypes and shapes."""

from __future__ import annotations

import dataclasses
import math
import warnings

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu_cli as tidu
from tests.build.comparing import assert_same, check, traced
from tests.tiers import examples, few
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.checking.numeric.laws import check_numerically
from tidu_cli.lax.vocabulary import BUILTIN

RNG = np.random.default_rng(7)
A, B, V, W = RNG.uniform(0.2, 0.9, (3, 4)), RNG.uniform(0.2, 0.9, (4, 3)), RNG.uniform(0.2, 0.9, 4), RNG.uniform(-2, 2, (2, 3, 4))
I3 = np.array([[2, 0, -1], [1, 1, 0]])
C = W + 1j * W[::-1]

FUNCTIONS = {
    "sum": lambda x: np.sum(x, axis=1, keepdims=True),
    "sum2": lambda x: x.sum((0, -1)),
    "prod": lambda x: np.prod(x, 2),
    "mean": lambda x: np.mean(x, axis=(1, 2)),
    "var": lambda x: np.var(x, axis=1, ddof=1),
    "std": lambda x: x.std(),
    "max": lambda x: np.max(x, axis=0),
    "amin": lambda x: np.amin(x),
    "argmax": lambda x: np.argmax(x),
    "argmin": lambda x: x.argmin(axis=1, keepdims=True),
    "any": lambda x: np.any(x > 1.9, axis=0),
    "all": lambda x: (x > -2).all(),
    "cumsum": lambda x: np.cumsum(x),
    "cumprod": lambda x: np.cumprod(x, axis=1),
    "sort": lambda x: np.sort(x, axis=1),
    "argsort": lambda x: np.argsort(x),
    "median": lambda x: np.median(x, axis=1),
    "ptp": lambda x: np.ptp(x, axis=2),
    "average": lambda x: np.average(x, axis=2, weights=V),
    "clip": lambda x: np.clip(x, -0.5, 0.7),
    "clip of a number": lambda x: np.clip(0.1, -0.5, x),
    "clip of integers": lambda x: np.clip(x.astype(np.int8), -1000, 1),
    "clip to floats": lambda x: np.clip(x.astype(np.int8), -0.5, 1),
    "clip method": lambda x: x.clip(max=0.7),
    "round": lambda x: np.round(x, 1),
    "diff": lambda x: np.diff(x, n=2, axis=1),
    "where": lambda x: np.where(x > 0, x, 0),
    "select": lambda x: np.select([x > 1, x > 0], [x, x * x], -1.0),
    "concatenate": lambda x: np.concatenate([x, np.ones((2, 1, 4))], axis=1),
    "stack": lambda x: np.stack([x[0], x[1]], axis=-1),
    "vstack": lambda x: np.vstack([x[0], x[1, 0]]),
    "hstack": lambda x: np.hstack([x[0, 0], x[1, 0]]),
    "column_stack": lambda x: np.column_stack([x[0, 0], x[1, 0]]),
    "reshape": lambda x: x.reshape(4, -1),
    "ravel": lambda x: np.ravel(x),
    "transpose": lambda x: np.transpose(x, (2, 0, 1)),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "moveaxis": lambda x: np.moveaxis(x, 0, -1),
    "swapaxes": lambda x: x.swapaxes(0, 2),
    "expand_dims": lambda x: np.expand_dims(x, (0, 2)),
    "squeeze": lambda x: np.squeeze(x[:, :1]),
    "broadcast_to": lambda x: np.broadcast_to(x[:, :1], (5, 2, 3, 4)),
    "tile": lambda x: np.tile(x, (2, 1, 3)),
    "repeat": lambda x: np.repeat(x, 2, axis=1),
    "repeat each": lambda x: np.repeat(x, [0, 2, 1], axis=1),
    "flip": lambda x: np.flip(x, 1),
    "roll": lambda x: np.roll(x, -1, axis=1),
    "roll flat": lambda x: np.roll(x, 5),
    "pad": lambda x: np.pad(x, ((0, 1), (2, 0), (0, 0)), constant_values=3),
    "tril": lambda x: np.tril(x, 1),
    "triu": lambda x: np.triu(x),
    "diagonal": lambda x: np.diagonal(x, 1, 1, 2),
    "diag": lambda x: np.diag(x[0, 0], -1),
    "trace": lambda x: np.trace(x, axis1=1, axis2=2),
    "split": lambda x: np.split(x, [1, 2], axis=1)[1],
    "take": lambda x: np.take(x, [0, 2, 2], axis=1),
    "take flat": lambda x: np.take(x, I3),
    "take_along_axis": lambda x: np.take_along_axis(x, np.argsort(x, axis=1), axis=1),
    "norm": lambda x: np.linalg.norm(x),
    "norm 1": lambda x: np.linalg.norm(x, 1, axis=1),
    "norm inf": lambda x: np.linalg.norm(x, np.inf, axis=1, keepdims=True),
    "norm 3": lambda x: np.linalg.norm(x, 3, axis=1),
    "cross": lambda x: np.cross(x[0].T, x[1].T),
    "kron": lambda x: np.kron(x[0], x[1, :2]),
    "outer": lambda x: np.outer(x[0], V),
    "inner": lambda x: np.inner(x, V),
    "vdot": lambda x: np.vdot(x[0], x[1]),
    "tensordot": lambda x: np.tensordot(x, x, axes=([0, 1], [0, 1])),
    "dot": lambda x: np.dot(x, B),
    "matmul": lambda x: x @ B,
    "rmatmul": lambda x: A @ x.mT,
    "matmul batch": lambda x: x @ x.mT,
    "matmul vector": lambda x: V @ x.mT,
    "vecdot": lambda x: np.vecdot(x, V),
    "nansum": lambda x: np.nansum(np.where(x > 0, x, np.nan), axis=0),
    "nanmean": lambda x: np.nanmean(np.where(x > -3, x, np.nan), axis=0),
    "add.reduce": lambda x: np.add.reduce(x, axis=1),
    "multiply.outer": lambda x: np.multiply.outer(V, x),
    "maximum.accumulate": lambda x: np.maximum.accumulate(x, axis=1),
    "divmod": lambda x: np.stack(np.divmod(x, 0.7)),
    "logsumexp ufunc": lambda x: np.logaddexp.reduce(x, axis=1),
    "meshgrid": lambda x: np.stack(np.meshgrid(x[0, 0], V)),
    "polyval": lambda x: np.polyval([1.0, 2.0, 3.0], x),
    "sinc": lambda x: np.sinc(x),
    "zeros_like": lambda x: np.zeros_like(x) + x,
    "astype": lambda x: x.astype(np.float32),
    "loop": lambda x: sum(row * k for k, row in enumerate(x)),
    "list operand": lambda x: x[0, 0] + [1, 2, 3, 4],
    "power": lambda x: x**3 + 2.0**x + abs(x) ** 1.5 + x**-2,
    "floor_divide": lambda x: x // 0.3,
    "einsum": lambda x: np.einsum("aij,kj->aik", x, A),
    "einsum sum": lambda x: np.einsum("aij->j", x),
    "einsum diagonal": lambda x: np.einsum("aii->a", x[:, :, :3]),
    "einsum dots": lambda x: np.einsum("...ij,j->...i", x, V),
    "einsum implicit": lambda x: np.einsum("aij,ajk", x, x.mT),
    "einsum three": lambda x: np.einsum("aij,ij,j->a", x, A, V),
    "pad edge": lambda x: np.pad(x, ((0, 0), (2, 1), (1, 3)), mode="edge"),
    "pad reflect": lambda x: np.pad(x, ((0, 0), (2, 2), (5, 3)), mode="reflect"),
    "pad symmetric": lambda x: np.pad(x, 1, mode="symmetric"),
    "pad wrap": lambda x: np.pad(x, ((1, 0), (0, 0), (6, 3)), mode="wrap"),
    "pad values": lambda x: np.pad(x, 1, constant_values=((1, 2), (3, 4), (5, 6))),
    "delete": lambda x: np.delete(x, [0, 2], axis=1),
    "insert": lambda x: np.insert(x, 1, 5.0, axis=1),
    "insert row": lambda x: np.insert(x, -1, V, axis=1),
    "rot90": lambda x: np.rot90(x, 1, (1, 2)),
    "rot90 back": lambda x: np.rot90(x, -1),
    "resize": lambda x: np.resize(x, (5, 7)),
    "block": lambda x: np.block([[x[0], x[1]], [np.ones((1, 8))]]),
    "sliding_window_view": lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 3), axis=(1, 2)),
    "hsplit": lambda x: np.hsplit(x, 3)[2],
    "atleast": lambda x: np.atleast_3d(x[0, 0], x[0], x)[0],
    "diagflat": lambda x: np.diagflat(x[0, :2], 1),
    "vander": lambda x: np.vander(x[0, 0], 3),
    "norm of matrices 1": lambda x: np.linalg.norm(x, 1, axis=(1, 2)),
    "norm of matrices -1": lambda x: np.linalg.norm(x, -1, axis=(2, 1)),
    "norm of matrices inf": lambda x: np.linalg.norm(x, np.inf, axis=(1, 2), keepdims=True),
    "norm of matrices -inf": lambda x: np.linalg.norm(x[0], -np.inf),
    "vector_norm": lambda x: np.linalg.vector_norm(x, axis=(0, 2), ord=1),
    "matrix_norm": lambda x: np.linalg.matrix_norm(x, keepdims=True, ord=1),
    "matrix_power": lambda x: np.linalg.matrix_power(x[:, :, :3], 5),
    "matrix_power 0": lambda x: np.linalg.matrix_power(x[:, :, :3], 0),
    "multi_dot": lambda x: np.linalg.multi_dot([x[0], B, x[1]]),
    "nanmax": lambda x: np.nanmax(np.where(x > 0, x, np.nan), axis=2),
    "nanmin": lambda x: np.nanmin(np.where(x > 0, x, np.nan)),
    "nanargmax": lambda x: np.nanargmax(np.where(x > 0, x, np.nan), axis=2),
    "nancumsum": lambda x: np.nancumsum(np.where(x > 0, x, np.nan), axis=2),
    "nanvar": lambda x: np.nanvar(np.where(x > 0, x, np.nan), axis=(1, 2), ddof=1),
    "nanstd": lambda x: np.nanstd(np.where(x > 0, x, np.nan)),
    "median axes": lambda x: np.median(x, axis=(0, 2), keepdims=True),
    "quantile": lambda x: np.quantile(x, 0.3, axis=1),
    "quantile many": lambda x: np.quantile(x, [[0.0, 0.25], [0.5, 1.0]], axis=(0, 2)),
    "quantile keepdims": lambda x: np.quantile(x, [0.1, 0.9], axis=2, keepdims=True),
    "quantile midpoint": lambda x: np.quantile(x, 0.4, method="midpoint"),
    "quantile higher": lambda x: np.quantile(x, 0.4, method="higher"),
    "percentile": lambda x: np.percentile(x, [20, 70]),
    "cov": lambda x: np.cov(x[0]),
    "cov of two": lambda x: np.cov(x[0, 0], x[0, 1], bias=True),
    "corrcoef": lambda x: np.corrcoef(x[0], rowvar=False),
    "searchsorted": lambda x: np.searchsorted(np.sort(x[0, 0]), x),
    "searchsorted right": lambda x: np.searchsorted([-1.0, 0.0, 0.0, 1.0], x, side="right"),
    "digitize": lambda x: np.digitize(x, [-1.0, 0.0, 1.0]),
    "digitize down": lambda x: np.digitize(x, [1.0, 0.0, -1.0], right=True),
    "interp": lambda x: np.interp(x, [-1.0, 0.0, 1.5], [2.0, -1.0, 4.0]),
    "interp ends": lambda x: np.interp(x, [-1.0, 0.0, 1.5], [2.0, -1.0, 4.0], left=-7.0, right=9.0),
    "interp of values": lambda x: np.interp([0.1, 0.5, 5.0], [0.0, 1.0, 2.0, 3.0], x[0, 0]),
    "interp of one point": lambda x: np.interp(x, [0.0], [3.0], left=-1.0),
    "gradient": lambda x: np.gradient(x[0], 0.5, axis=1),
    "gradient of axes": lambda x: np.stack(np.gradient(x[0])),
    "gradient at places": lambda x: np.gradient(x, [0.0, 0.5, 2.0], axis=1),
    "trapezoid": lambda x: np.trapezoid(x, dx=0.3),
    "trapezoid at places": lambda x: np.trapezoid(x, [0.0, 0.5, 2.0], axis=1),
    "diff ends": lambda x: np.diff(x, axis=1, prepend=0.0, append=x[:, :1]),
    "ediff1d": lambda x: np.ediff1d(x, to_begin=1.0, to_end=[2.0, 3.0]),
    "isclose": lambda x: np.isclose(x, x + 1e-9) & ~np.isclose(x, x + 1e-3),
    "isin": lambda x: np.isin(np.round(x), [0.0, 1.0]),
    "allclose": lambda x: np.asarray(np.allclose(x, x)) if isinstance(x, np.ndarray) else np.allclose(x, x),
    "nan_to_num": lambda x: np.nan_to_num(np.where(x > 0, x, np.nan), nan=7.0),
    "i0": lambda x: np.i0(x),
    "fix": lambda x: np.fix(x),
    "take wrap": lambda x: np.take(x, [5, -7], axis=1, mode="wrap"),
    "take clip": lambda x: np.take(x, [5, -7], axis=1, mode="clip"),
    "fftshift": lambda x: np.fft.ifftshift(np.fft.fftshift(x, axes=1)) + np.fft.fftshift(x),
    "argsort of ties": lambda x: np.argsort(np.round(x), axis=1, stable=True),
    "linspace": lambda x: np.linspace(x, 2.0, 5, axis=1),
    "linspace open": lambda x: np.linspace(0.0, x[0, 0], 4, endpoint=False),
    "in place": lambda x: in_place(x),
}  # fmt: skip


def in_place(x):
    y = x.copy()
    y += 1.0
    y *= 2.0
    return y


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    check(FUNCTIONS[name], W)


@pytest.mark.parametrize(
    "name",
    [
        "sum",
        "mean",
        "var",
        "T",
        "matmul",
        "vdot",
        "norm",
        "power",
        "einsum",
        "vecdot",
        "outer",
        "cov",
        "norm of matrices 1",
        "fftshift",
        "vector_norm",
        "trapezoid",
        "cumsum",
        "average",
        "pad wrap",
        "gradient",
        "diff ends",
        "round",
        "concatenate",
    ],
)
def test_function_of_complex_numbers(name):
    check(FUNCTIONS[name], C)


@pytest.mark.parametrize(
    "name", ["sum", "prod", "mean", "max", "cumsum", "argmax", "sort", "clip method", "tensordot", "floor_divide", "any", "norm"]
)
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16", "bool", "float32", "float16"])
def test_function_of_other_dtypes(name, dtype):
    x = RNG.integers(0, 3, (2, 3, 4)).astype(dtype)
    check(FUNCTIONS[name], x)


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=3))
@settings(max_examples=examples(60))
def test_broadcasting(shapes):
    a, b = (np.random.default_rng(k).uniform(-1, 1, s) for k, s in enumerate(shapes.input_shapes))
    check(lambda x, y: x * y + np.maximum(x, y), a, b)


@st.composite
def indexed(draw):
    shape = draw(hnp.array_shapes(max_dims=4, max_side=4))
    if draw(st.booleans()):
        return shape, draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    entries = []
    for n in shape[: draw(st.integers(1, len(shape)))]:
        kind = draw(st.sampled_from(["int", "slice", "array", "none"]))
        if kind == "none":
            entries.append(None)
        if kind == "int":
            entries.append(draw(st.integers(-n, n - 1)))
        elif kind == "array":
            entries.append(
                np.array(draw(st.lists(st.integers(-n, n - 1), min_size=2, max_size=2))).reshape(
                    draw(st.sampled_from([(2,), (2, 1), (1, 2)]))
                )
            )
        else:
            entries.append(draw(st.slices(n)))
    return shape, tuple(entries)


@given(indexed())
@settings(max_examples=examples(150, check=60))
def test_indexing(case):
    shape, index = case
    x = np.arange(float(np.prod(shape))).reshape(shape)
    part = x[index]
    if isinstance(part, np.ndarray) or np.isscalar(part):
        check(lambda a: a[index], x)


@given(indexed())
@settings(max_examples=examples(100))
def test_indexing_with_traced_indices(case):
    shape, index = case
    index = index if isinstance(index, tuple) else (index,)
    arrays = [i for i in index if isinstance(i, np.ndarray)]
    if arrays:
        x = np.arange(float(np.prod(shape))).reshape(shape)

        def take(a, *given):
            rest = iter(given)
            return a[tuple(next(rest) if isinstance(i, np.ndarray) else i for i in index)]

        check(take, x, *arrays)


@given(st.data())
@settings(max_examples=examples(40, check=10))
def test_traced_indices_out_of_range_are_clipped(data):
    """From -n to n - 1 they are NumPy's, negative ones from the end; past that they are of the nearest element."""
    n = data.draw(st.integers(1, 5))
    x, places = np.arange(10.0, 10.0 + n), np.array(data.draw(st.lists(st.integers(-20, 20), min_size=1, max_size=6)))
    expected = x[np.clip(places, -n, n - 1)]
    for dtype in ("int8", "int64"):
        assert_same(traced(lambda a, i: a[i], x, places.astype(dtype)), expected)
    assert_same(traced(lambda a, i: np.take(a, i), x, places), expected)
    assert_same(traced(lambda a, i: np.take(a, i, mode="wrap"), x, places), np.take(x, places, mode="wrap"))
    assert_same(traced(lambda a, i: np.take(a, i, mode="clip"), x, places), np.take(x, places, mode="clip"))
    assert_same(traced(lambda i: np.array(x, like=i)[i], places), expected)


@given(st.data())
@settings(max_examples=examples(60, check=33))
def test_convolution(data):
    numbers, dtypes = st.lists(st.integers(-5, 5), min_size=1, max_size=6), st.sampled_from(["f8", "i8", "c16"])
    a, v = (np.array(data.draw(numbers), data.draw(dtypes)) for _ in range(2))
    mode = data.draw(st.sampled_from(["full", "same", "valid"]))
    check(lambda x, y: np.convolve(x, y, mode), a, v)
    check(lambda x, y: np.correlate(x, y, mode), a + 1j if a.dtype.kind == "c" else a, v)


@given(st.data())
@settings(max_examples=examples(60, check=22))
def test_order_statistics(data):
    elements = st.sampled_from([0.0, -0.0, 1.0, 2.0, 2.5, -1.0, np.inf, np.nan])
    x = np.array(data.draw(st.lists(elements, min_size=1, max_size=7)))
    values = np.array(data.draw(st.lists(elements, min_size=1, max_size=4)))
    side = data.draw(st.sampled_from(["left", "right"]))
    check(lambda a, v: np.searchsorted(np.sort(a), v, side), x, values)
    finite = x[np.isfinite(x)]
    if finite.size:
        q = data.draw(st.floats(0, 1))
        method = data.draw(st.sampled_from(["linear", "lower", "higher", "midpoint", "nearest"]))
        check(lambda a: np.quantile(a, q, method=method), finite)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(lambda a: np.median(a), x)


@given(st.data())
@settings(max_examples=examples(60, check=27))
def test_interpolation(data):
    points = np.unique(data.draw(st.lists(st.integers(-8, 8), min_size=1, max_size=6))) / 2.0
    values = np.array(data.draw(st.lists(st.integers(-8, 8), min_size=points.size, max_size=points.size)), float)
    at = np.array(data.draw(st.lists(st.integers(-40, 40), min_size=1, max_size=8))) / 8.0
    check(lambda x: np.interp(x, points, values), at)
    check(lambda x, xp, fp: np.interp(x, xp, fp), at, points, values)


def test_masks_that_are_constant():
    check(lambda x: x[W > 0], W)
    check(lambda x: x[:, np.array([True, False, True])], W)


@given(hnp.array_shapes(min_dims=1, max_dims=4, max_side=3), st.data())
@settings(max_examples=examples(60))
def test_reductions(shape, data):
    axes = data.draw(st.none() | hnp.valid_tuple_axes(len(shape)) | st.integers(-len(shape), len(shape) - 1))
    keep = data.draw(st.booleans())
    name = data.draw(st.sampled_from(["sum", "prod", "max", "min", "mean", "var", "any"]))
    x = np.random.default_rng(0).uniform(-1, 1, shape)
    check(lambda a: getattr(np, name)(a, axis=axes, keepdims=keep), x)


@pytest.mark.parametrize("other", [2, 2.5, 2j, True, np.float32(2), np.int64(2), np.array([1, 2], np.int16), np.float64(2)])
@pytest.mark.parametrize("dtype", few(["int8", "uint8", "int64", "float16", "float32", "float64", "complex64", "bool"], 3))
@pytest.mark.parametrize("operation", [lambda x, y: x + y, lambda x, y: y * x, lambda x, y: x / y, lambda x, y: x == y])
def test_promotion(dtype, other, operation):
    check(lambda x: operation(x, other), np.array([1, 1], dtype))


SMOOTH = [
    "mean",
    "var",
    "norm",
    "matmul batch",
    "einsum three",
    "take",
    "cumprod",
    "where",
    "kron",
    "sinc",
    "logsumexp ufunc",
    "power",
    "roll",
    "pad reflect",
    "quantile",
    "cov",
    "interp",
    "gradient",
    "norm of matrices 1",
    "trapezoid",
    "sliding_window_view",
]


@pytest.mark.parametrize("name", SMOOTH)
def test_gradient(name):
    verdicts = check_numerically(trace(FUNCTIONS[name], W), BUILTIN, intervals={})
    assert verdicts
    assert all(v.ok for v in verdicts), verdicts


def test_derivatives_of_sinc_keep_their_digits_near_zero():
    """sinc⁽ⁿ⁾(x) = πⁿ ∫₀¹ tⁿ cos(π x t + n π/2) dt."""
    x = np.array([0.0, 1e-12, -1e-9, 1e-4, 0.01, 0.3, 1 / np.pi, 0.32, 0.9])
    t, weights = (np.polynomial.legendre.leggauss(30)[0] + 1) / 2, np.polynomial.legendre.leggauss(30)[1] / 2
    document = tidu.trace(np.sinc, x)
    for n in range(6):
        expected = np.pi**n * np.cos(np.pi * np.outer(x, t) + n * np.pi / 2) @ (weights * t**n)
        tangents = {f"x@{p}": np.ones_like(x) for p in range(1, n + 1)}
        (values,) = tidu.evaluate(document, {"x": x, **tangents}).values()
        np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12 * np.pi**n)
        document = tidu.linearize(document, "x")


def test_logaddexp_has_all_derivatives_where_its_operands_are_equal():
    document = tidu.trace(lambda x: np.logaddexp(x, 1.0), "f64[]")
    slopes = [float(tidu.evaluate(tidu.derivative(document, "x", order=n), x=1.0)["y" + "@1@2@3@4"[: 2 * n]]) for n in (1, 2, 3, 4)]
    np.testing.assert_allclose(slopes, [1 / 2, 1 / 4, 0, -1 / 8], atol=1e-15)


def test_a_loop_of_1000_steps():
    def heat(u):
        for _ in range(1000):
            u = u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
        return u

    check(heat, RNG.uniform(0, 1, 8))


def test_equal_values_are_one_node_and_dead_ones_go():
    document = trace(lambda x: (np.exp(x), np.sin(x), np.exp(x) * np.exp(x))[2], x="f64[]")
    assert [document.head.case(k).op for k in range(document.head.n_nodes)] == ["exp", "mul"]


def test_a_split_is_one_node_whose_cotangent_is_one_array():
    document = trace(lambda x: math.prod(np.sum(part) for part in np.split(x, 4)), x="f64[8]")
    gradient = [case.op for case, _ in tidu.grad(document, "x").head.nodes()]
    assert gradient.count("split") == gradient.count("concatenate") == 1
    assert "pad" not in gradient


@dataclasses.dataclass
class Layer:
    w: object
    b: object


def test_nested_inputs_and_outputs():
    def model(params, x, scale=2.0):
        for layer in params["layers"]:
            x = np.tanh(x @ layer.w + layer.b) * scale
        return {"out": x, "parts": (x[0], [x[1]]), "last": Layer(x[0], 1.0)}

    document = trace(model, {"layers": [Layer("f64[4,3]", "f64[3]"), Layer("f64[3,2]", "f64[2]")]}, x="f64[4]")
    assert [str(i.key) for i in document.head.inputs] == [
        "params.layers.0.w", "params.layers.0.b", "params.layers.1.w", "params.layers.1.b", "x"
    ]  # fmt: skip
    assert [str(o.key) for o in document.head.outputs] == ["out", "parts.0", "parts.1.0", "last.w", "last.b"]
    assert document.head.name == "model"
