"""Values as MLIR writes them: the types of arrays, the arrays that a value of a record is, and constants."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tidu_cli.errors import DocumentError
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import Path, RecordType, TensorType, Type, storage_dtype

ELEMENTS = {"bool": "i1", "f16": "f16", "bf16": "bf16", "f32": "f32", "f64": "f64", "c64": "complex<f32>", "c128": "complex<f64>"}
ELEMENTS |= {f"{sign}{bits}": f"{prefix}i{bits}" for sign, prefix in (("i", ""), ("u", "u")) for bits in (8, 16, 32, 64)}
"""MLIR's names of the elements of arrays by dtype."""


SIZE = "tensor<i64>"
"""MLIR's type of an open size."""

WRAPPED = "_wrapped_jax_export_main"
"""What jax.export calls the function that takes sizes before arguments."""


def size_value(name: str) -> str:
    """The name of the value that an open size is."""
    return f"%size_{name}"


class UnwrittenError(DocumentError):
    """What cannot be written as a module of StableHLO."""


@lru_cache(maxsize=4096)
def tensor_text(type_: TensorType) -> str:
    """MLIR's text of the type of an array, in which open sizes are ?; of times that of their counts."""
    sizes = "".join("?x" if isinstance(n, OpenSize) else f"{n}x" for n in type_.shape)
    return f"tensor<{sizes}{ELEMENTS[storage_dtype(type_.dtype)]}>"


def pytree(type_: Type, of_leaf: Callable[[Path, TensorType], Any], path: Path = ()) -> Any:
    """A value of a type as functions of JAX take it, with these leaves: records are dicts of their fields, and tuples tuples."""
    if not isinstance(type_, RecordType):
        return of_leaf(path, type_)
    parts = {name: pytree(t, of_leaf, (*path, name)) for name, t in type_.fields}
    return tuple(parts.values()) if type_.is_tuple else parts


@lru_cache(maxsize=4096)
def arrays(type_: Type) -> Sequence[tuple[Path, TensorType]]:
    """The arrays that a value is, each with where it is in a record: in the order in which JAX has leaves, fields by name."""
    if not isinstance(type_, RecordType):
        return [((), type_)]
    fields = type_.fields if type_.is_tuple else sorted(type_.fields)
    return [((name, *path), leaf) for name, t in fields for path, leaf in arrays(t)]


def constant_text(array: Any, type_: TensorType) -> str:
    """An operation that makes an array, bit for bit: of few numbers readable once MLIR has printed it."""
    data = np.ascontiguousarray(array)
    if sys_is_big():
        data = data.byteswap()
    if data.size > 1 and data.nbytes > 64 and _is_uniform(data):
        data = data.reshape(-1)[:1]
    content = f'"0x{data.tobytes().hex().upper()}"' if data.size else ""
    return f"stablehlo.constant dense<{content}> : {tensor_text(type_)}"


def zeros_text(type_: TensorType) -> str:
    """An operation that makes an array of zeros."""
    width = np.dtype("?").itemsize if type_.dtype == "bool" else type_.with_shape(()).nbytes
    content = f'"0x{"00" * width}"' if type_.size else ""
    return f"stablehlo.constant dense<{content}> : {tensor_text(type_)}"


def quoted(text: str) -> str:
    """A text as MLIR quotes it."""
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in text.encode()) + '"'


def _is_uniform(data: Any) -> bool:
    flat = data.reshape(-1).view(f"V{data.itemsize}")
    return bool((flat == flat[0]).all())


def sys_is_big() -> bool:
    """Whether this machine has the most significant byte of a number first."""
    import sys

    return sys.byteorder == "big"


def json_text(data: object) -> str:
    """Plain data as JSON, in which nothing is left to chance."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
