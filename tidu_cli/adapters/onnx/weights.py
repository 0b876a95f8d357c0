"""Values put into a model in the place of those of its initializers: the way back of `--weights`."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import dtype_of
from tidu_cli.adapters.onnx.choices import as_key
from tidu_cli.adapters.onnx.loading import dtype_name
from tidu_cli.adapters.onnx.read import opened
from tidu_cli.adapters.onnx.writing.model import MOST_BYTES, files_of
from tidu_cli.errors import DocumentError, UnknownNameError, did_you_mean
from tidu_cli.graph.select import listed
from tidu_cli.graph.types import FLOATS, REALS
from tidu_cli.lax.arrays.structural import dtype_name as name_of
from tidu_cli.port_data import Written

_FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")


def with_weights(
    data: bytes, where: str, path: str | None, values: Mapping[str, Any], beside: str | None
) -> tuple[Written, Sequence[str]]:
    """A model whose initializers have these values, by name, and the names of values that none has.

    Those are numbers without axes, such as a count of steps, and what stands beside a weight w, as mu.w does. Numbers are rounded
    to the floats of the initializer. Raises DocumentError for values of another shape or kind, UnknownNameError for other names.
    """
    model = opened(data, where, path)
    tensors = {str(as_key(t.name)): t for t in model.graph.initializer}
    left_out = [name for name in values if name not in tensors]
    for name in left_out:
        if np.ndim(values[name]) and not _is_beside(name, tensors):
            raise UnknownNameError(
                f"{where}: has no initializer '{name}'{did_you_mean(name, list(tensors))} (it has {listed(sorted(tensors))})"
            )
    if len(left_out) == len(values):
        raise UnknownNameError(f"{where}: none of the values is of an initializer (it has {listed(sorted(tensors))})")
    for name in values.keys() - set(left_out):
        _put(tensors[name], f"{where}: initializer '{name}'", np.asarray(values[name]))
    if beside is None:
        if sum(len(t.raw_data) for t in model.graph.initializer) > MOST_BYTES:
            raise DocumentError(f"{where}: has more than the 2 GiB that one file of ONNX can hold; give -o FILE.onnx")
        return Written((model.SerializeToString(deterministic=True),)), left_out
    written, data = files_of(model, beside)
    return Written((written,), (data,) if data else None), left_out


def _is_beside(name: str, weights: Container[str]) -> bool:
    """Whether a name is that of a weight behind a first part or more: mu.w of w."""
    parts = name.split(".")
    return any(".".join(parts[k:]) in weights for k in range(1, len(parts)))


def _put(tensor: Any, place: str, array: Any) -> None:
    """Give a TensorProto these elements."""
    due, given = dtype_name(tensor.data_type), name_of(array.dtype)
    if array.shape != tuple(tensor.dims) or (due != given and not (due in FLOATS and given in REALS)):
        told, shape = ",".join(map(str, tensor.dims)), ",".join(map(str, array.shape))
        raise DocumentError(f"{place}: is {due}[{told}], and the value is {given}[{shape}]")
    for field in _FIELDS:
        tensor.ClearField(field)
    tensor.raw_data = array.astype(np.dtype(dtype_of(due)).newbyteorder("<"), copy=False).tobytes()
