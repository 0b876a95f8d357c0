"""Values that break what is nearly an identity: signed zeros, infinities, NaNs with payloads, subnormals, the ends of integers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.graphs.interpret import numpy_dtype_of
from tidu_cli.graph.types import RecordType, TensorType, Type

EDGES = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    3.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-45,
    -1e-310,
    6e-8,
    65504.0,
    -3.4e38,
    1.7e308,
    0.1,
    -(2.0**-140),
)


def edgy(type_: Type, rng: np.random.Generator, *, finite: bool = False) -> Any:
    """An array of such values and of others."""
    assert not isinstance(type_, RecordType)
    dtype = numpy_dtype_of(type_)
    if type_.dtype == "bool":
        return rng.integers(0, 2, type_.shape).astype(bool)
    if type_.dtype[0] in "iu":
        info = np.iinfo(dtype)
        ends = np.array([info.min, info.max, 0, 1, info.max - 1], dtype)
        return np.where(
            rng.random(type_.shape) < 0.5, rng.choice(ends, type_.shape), rng.integers(0, 100, type_.shape).astype(dtype)
        )
    if type_.complex:
        part = TensorType("f32" if type_.dtype == "c64" else "f64", type_.shape)
        z = np.empty(type_.shape, dtype)
        z.real, z.imag = edgy(part, rng, finite=finite), edgy(part, rng, finite=finite)
        return z
    with np.errstate(all="ignore"):
        x = np.where(rng.random(type_.shape) < 0.6, rng.choice(np.array(EDGES), type_.shape), rng.normal(size=type_.shape))
        x = np.asarray(x.astype(dtype))
        payloads = rng.integers(0, 2**60, type_.shape).astype(np.uint64)
    if finite:
        return np.where(np.isfinite(x.astype(float)) & (np.abs(x.astype(float)) < 1e4), x, np.ones_like(x)).astype(dtype)
    return _with_payloads(x, payloads, rng)


def _with_payloads(x: Any, payloads: Any, rng: np.random.Generator) -> Any:
    """Some NaNs with bits of their own, quiet and signalling."""
    bits = np.dtype(f"u{x.dtype.itemsize}")
    digits = {np.dtype("f2"): 10, np.dtype(ml_dtypes.bfloat16): 7, np.dtype("f4"): 23, np.dtype("f8"): 52}[x.dtype]
    array = np.array(x)
    raw = array.view(bits) if array.ndim else array.reshape(1).view(bits)
    nan = np.asarray(np.isnan(array.astype(float))).reshape(raw.shape)
    mask = np.uint64(2**digits - 1)
    raw[nan] = raw[nan] | (payloads.reshape(raw.shape)[nan] & mask).astype(bits)
    return array


def same(one: Any, other: Any, *, signed_zeros: bool = True) -> bool:
    """Whether two values have the same bits, but for those of NaNs."""
    if isinstance(one, tuple):
        return all(same(x, y, signed_zeros=signed_zeros) for x, y in zip(one, other, strict=True))
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind == "c":
        return all(same(f(one), f(other), signed_zeros=signed_zeros) for f in (np.real, np.imag))
    if one.dtype.kind in "iub":
        return bool(np.array_equal(one, other))
    x, y = one.astype(np.float64), other.astype(np.float64)
    alike = (x == y) | (np.isnan(x) & np.isnan(y))
    return bool(np.all(alike & ((np.signbit(x) == np.signbit(y)) | np.isnan(x)))) if signed_zeros else bool(np.all(alike))
