"""Values put into a model in the place of those of its initializers: the way back of `--weights`."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import dtype_of
from tidu_cli.adapters.onnx.choices import as_key
from tidu_cli.adapters.onnx.loading import dtype_name, package
from tidu_cli.adapters.onnx.read import opened
from tidu_cli.adapters.onnx.wire import LARGE, Tensor, put_together, taken_apart
from tidu_cli.adapters.onnx.writing.model import MOST_BYTES
from tidu_cli.errors import DocumentError, UnknownNameError, did_you_mean
from tidu_cli.graph.select import listed
from tidu_cli.graph.types import FLOATS, REALS
from tidu_cli.lax.arrays.structural import dtype_name as name_of
from tidu_cli.port_data import Piece, Written

_FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")


def with_weights(
    data: bytes, where: str, path: str | None, values: Mapping[str, Any], beside: str | None, most: int = MOST_BYTES
) -> tuple[Written, Sequence[str]]:
    """A model whose initializers have these values, by name, and the names of values that none has.

    Those are numbers without axes, such as a count of steps, and what stands beside a weight w, as mu.w does. Numbers are rounded
    to the floats of the initializer, one array after the other. Raises DocumentError for values of another shape or kind,
    UnknownNameError for other names.
    """
    rest, raw = taken_apart(data)
    model = opened(rest, where, path)
    initializers = model.graph.initializer
    tensors = {str(as_key(t.name)): k for k, t in enumerate(initializers)}
    left_out = [name for name in values if name not in tensors]
    for name in left_out:
        if np.ndim(values[name]) and not _is_beside(name, tensors):
            raise UnknownNameError(
                f"{where}: has no initializer '{name}'{did_you_mean(name, list(tensors))} (it has {listed(sorted(tensors))})"
            )
    if len(left_out) == len(values):
        raise UnknownNameError(f"{where}: none of the values is of an initializer (it has {listed(sorted(tensors))})")
    fresh = {tensors[name]: np.asarray(values[name]) for name in values.keys() - set(left_out)}
    for k, array in fresh.items():
        _require_fitting(initializers[k], f"{where}: initializer '{initializers[k].name}'", array)
    stored = [_Stored.of(t, fresh.get(k), raw.get(t.name)) for k, t in enumerate(initializers)]
    if most < sum(data.size for data in stored):
        if beside is None:
            raise DocumentError(f"{where}: has more than the 2 GiB that one file of ONNX can hold; give -o FILE.onnx")
        return _in_two_files(model, stored, beside), left_out
    return Written(put_together(model, [Tensor(x.rest, x.size, x.pieces()) for x in stored])), left_out


class _Stored(NamedTuple):
    """A TensorProto without raw data, and these: an array to be converted, or bytes."""

    rest: bytes
    size: int
    data: Any
    dtype: Any = None

    @classmethod
    def of(cls, tensor: Any, fresh: Any, raw: memoryview | None) -> _Stored:
        """Of a tensor, which loses its data, with those of an array, or else its own."""
        if fresh is None:
            data = tensor.raw_data if raw is None else raw
            tensor.ClearField("raw_data")
            return cls(tensor.SerializeToString(deterministic=True), len(data), data)
        for name in (*_FIELDS, "raw_data"):
            tensor.ClearField(name)
        dtype = np.dtype(dtype_of(dtype_name(tensor.data_type))).newbyteorder("<")
        return cls(tensor.SerializeToString(deterministic=True), fresh.size * dtype.itemsize, fresh, dtype)

    def pieces(self) -> Iterator[Piece]:
        """The raw data, converted when they are written."""
        if self.dtype is None:
            yield self.data
        else:
            yield np.ascontiguousarray(self.data, self.dtype).reshape(-1).view("u1").data


def _in_two_files(model: Any, stored: Sequence[_Stored], location: str) -> Written:
    """A model, and the file beside it that has its large tensors."""
    tensors, apart, offset = list[Tensor](), list[_Stored](), 0
    for x in stored:
        if x.size < LARGE:
            tensors.append(Tensor(x.rest, x.size, x.pieces()))
            continue
        t = package().TensorProto.FromString(x.rest)
        t.data_location = package().TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", offset), ("length", x.size)):
            t.external_data.add(key=key, value=str(value))
        tensors.append(Tensor(t.SerializeToString(deterministic=True), 0, ()))
        apart.append(x)
        offset += x.size
    return Written(put_together(model, tensors), (piece for x in apart for piece in x.pieces()))


def _is_beside(name: str, weights: Container[str]) -> bool:
    """Whether a name is that of a weight behind a first part or more: mu.w of w."""
    parts = name.split(".")
    return any(".".join(parts[k:]) in weights for k in range(1, len(parts)))


def _require_fitting(tensor: Any, place: str, array: Any) -> None:
    """Raises DocumentError for elements that are not those of a TensorProto."""
    due, given = dtype_name(tensor.data_type), name_of(array.dtype)
    if array.shape != tuple(tensor.dims) or (due != given and not (due in FLOATS and given in REALS)):
        told, shape = ",".join(map(str, tensor.dims)), ",".join(map(str, array.shape))
        raise DocumentError(f"{place}: is {due}[{told}], and the value is {given}[{shape}]")
