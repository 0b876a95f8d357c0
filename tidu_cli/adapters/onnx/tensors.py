"""Tensors of ONNX as NumPy arrays, and its codes of element types as dtypes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import dtype_of
from tidu_cli.adapters.onnx.loading import package
from tidu_cli.errors import DocumentError
from tidu_cli.graph.types import FLOATS
from tidu_cli.limits import require

DTYPES = {
    1: "f32",
    2: "u8",
    3: "i8",
    4: "u16",
    5: "i16",
    6: "i32",
    7: "i64",
    9: "bool",
    10: "f16",
    11: "f64",
    12: "u32",
    13: "u64",
    14: "c64",
    15: "c128",
    16: "bf16",
}
"""The names of dtypes by their codes, `TensorProto.DataType`."""


def dtype_name(code: int, cast: str | None = None) -> str:
    """The dtype of a code, `cast` in place of any float. Raises DocumentError for one that tidu has not got."""
    if code not in DTYPES:
        known = package().TensorProto.DataType
        name = known.Name(code) if code in known.values() else str(code)
        raise DocumentError(
            f"elements of type {name.lower()}, which tidu has not got (it has {', '.join(sorted(DTYPES.values()))})"
        )
    name = DTYPES[code]
    return cast if cast is not None and name in FLOATS else name


def array_of(tensor: Any, cast: str | None = None) -> Any:
    """The array of a TensorProto whose data is in it, its floats as `cast`. Raises DocumentError if shape and data do not fit."""
    dtype = dtype_of(dtype_name(tensor.data_type))
    shape = tuple(tensor.dims)
    if min(shape, default=0) < 0:
        raise DocumentError(f"has the shape {list(shape)}")
    require("memory", math.prod(shape) * dtype.itemsize, f"an array of shape {list(shape)}")
    if tensor.data_location == package().TensorProto.EXTERNAL:
        raise DocumentError("its data lies in another file, which is not read for a tensor in this place")
    try:
        found = np.asarray(package().numpy_helper.to_array(tensor))
    except (ValueError, TypeError) as error:
        raise DocumentError(f"its data is no array of shape {list(shape)}: {error}") from None
    if found.dtype != dtype:
        found = found.astype(dtype)
    return found.astype(dtype_of(cast)) if cast is not None and DTYPES[tensor.data_type] in FLOATS else found


def dense(sparse: Any, cast: str | None = None) -> Any:
    """The array of a SparseTensorProto. Raises DocumentError if its parts do not fit, LimitError if it is too large."""
    values, indices, shape = array_of(sparse.values, cast), array_of(sparse.indices), tuple(sparse.dims)
    require("memory", math.prod(shape) * values.itemsize, f"an array of shape {list(shape)}")
    found = np.zeros(shape, values.dtype)
    places = tuple(indices.T) if indices.ndim == 2 else np.unravel_index(indices, shape)
    try:
        found[places] = values
    except (IndexError, ValueError) as error:
        raise DocumentError(f"is sparse, and its indices do not fit: {error}") from None
    return found
