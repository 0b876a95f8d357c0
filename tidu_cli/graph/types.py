"""Tensor types, `dtype[shape]` as JAX prints them: `f64[3,4]`, `c128[]`, `i32[8]`, `bool[]`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

from tidu_cli.errors import TypeTextError, did_you_mean

ITEMSIZE = {
    "bool": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8,
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "c64": 8, "c128": 16,
}  # fmt: skip
"""Bytes per element of each dtype, in the order in which dtypes are listed."""

ALL = frozenset(ITEMSIZE)
FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
COMPLEXES = frozenset({"c64", "c128"})
INEXACT = FLOATS | COMPLEXES
SIGNED = frozenset({"i8", "i16", "i32", "i64"})
INTEGERS = SIGNED | {"u8", "u16", "u32", "u64"}
REALS = INTEGERS | FLOATS
NUMERIC = INTEGERS | INEXACT

MAX_BYTES = 2**62
"""Types of more bytes than this are refused: no machine holds them and sizes would overflow elsewhere."""

_TEXT = re.compile(r"([a-z0-9]+)\[((?:0|[1-9][0-9]*)(?:,(?:0|[1-9][0-9]*))*)?\]")


@dataclass(frozen=True, slots=True)
class TensorType:
    """A dtype (a name of `ITEMSIZE`) and a shape, row-major."""

    dtype: str
    shape: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes that the elements take."""
        return self.size * ITEMSIZE[self.dtype]

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def inexact(self) -> bool:
        """Whether the dtype is of floats or complex numbers, which are their own tangent types."""
        return self.dtype in INEXACT

    @property
    def complex(self) -> bool:
        """Whether the dtype is a complex one."""
        return self.dtype in COMPLEXES

    def with_dtype(self, dtype: str) -> TensorType:
        """The type of the same shape with another dtype."""
        return TensorType(dtype, self.shape)

    def with_shape(self, shape: tuple[int, ...]) -> TensorType:
        """The type of the same dtype with another shape."""
        return TensorType(self.dtype, shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@lru_cache(maxsize=4096)
def parse_type(text: str) -> TensorType:
    """Read `dtype[shape]`. Raises TypeTextError if the text is of another form or the type impossibly large."""
    match = _TEXT.fullmatch(text)
    if match is None or match[1] not in ITEMSIZE:
        hint = did_you_mean(match[1], list(ITEMSIZE)) if match else "; write dtype[shape], such as f64[3,4] or f64[]"
        raise TypeTextError(f"unknown type {text[:60]!r}{hint}")
    if len(text) > 400:
        raise TypeTextError(f"the type {text[:40]}... has too many axes")
    parsed = TensorType(match[1], tuple(int(n) for n in match[2].split(",")) if match[2] else ())
    if math.prod(n or 1 for n in parsed.shape) * ITEMSIZE[parsed.dtype] > MAX_BYTES:
        raise TypeTextError(f"the type {text} is larger than any memory")
    return parsed


def real_dtype(dtype: str) -> str:
    """The dtype of the real part: `f32` for `c64`, `f64` for `c128`, a float itself."""
    return {"c64": "f32", "c128": "f64"}.get(dtype, dtype)


def complex_dtype(dtype: str) -> str:
    """The complex dtype whose parts are `f32` or `f64`. Raises KeyError for others."""
    return {"f32": "c64", "f64": "c128"}[dtype]


def tangent_type(primal: TensorType) -> TensorType:
    """The natural type of tangents of a primal type.

    A float or complex type is its own tangent type. Integers have tangents in f64 if they have 64 bits and in f32 below. Bool
    keeps its type, and has only the tangent zero.
    """
    if primal.dtype in INTEGERS:
        return primal.with_dtype("f64" if ITEMSIZE[primal.dtype] == 8 else "f32")
    return primal
