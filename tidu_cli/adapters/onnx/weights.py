"""Values put into a model in the place of those of its initializers: the way back of `--weights`.

Large tensors are held beside the model's protobuf: they are neither parsed nor serialized, each of which would copy them. The
format (https://protobuf.dev/programming-guides/encoding) is fields of a number and a kind; those of kind 2 have a length.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import dtype_of
from tidu_cli.adapters.onnx.contents import as_key
from tidu_cli.adapters.onnx.loading import dtype_name, package
from tidu_cli.adapters.onnx.read import opened
from tidu_cli.adapters.onnx.writing.model import MOST_BYTES
from tidu_cli.errors import DocumentError, UnknownNameError, did_you_mean
from tidu_cli.graph.select import listed
from tidu_cli.graph.types import FLOATS, REALS
from tidu_cli.lax.arrays.structural import dtype_name as name_of
from tidu_cli.port_data import Piece, Written

GRAPH, INITIALIZER, NAME, RAW_DATA = 7, 5, 8, 9
"""The numbers of these fields in ModelProto, GraphProto, and the others in TensorProto."""

LARGE = 1024
"""Bytes of data from which on it is held apart."""


def taken_apart(data: bytes) -> tuple[bytes, Mapping[str, memoryview]]:
    """A model without the large raw data of its initializers, and these by the initializer's name.

    What is no such file is given back as it is, for protobuf to say why.
    """
    taken: dict[str, memoryview] = {}

    def tensor(view: memoryview) -> Iterator[Piece]:
        fields = list(_fields(view))
        raw = [(whole, body) for number, whole, body in fields if number == RAW_DATA]
        names = [str(body, "utf-8") for number, _, body in fields if number == NAME]
        if len(raw) != 1 or len(names) != 1 or len(raw[0][1]) < LARGE or names[0] in taken:
            return iter([view])
        taken[names[0]] = raw[0][1]
        return (whole for number, whole, _ in fields if number != RAW_DATA)

    def graph(view: memoryview) -> Iterator[Piece]:
        for number, whole, body in _fields(view):
            if number == INITIALIZER:
                yield from _field(INITIALIZER, list(tensor(body)))
            else:
                yield whole

    pieces: list[Piece] = []
    try:
        for number, whole, body in _fields(memoryview(data)):
            pieces += _field(GRAPH, list(graph(body))) if number == GRAPH else [whole]
    except (ValueError, IndexError):
        return data, {}
    return b"".join(pieces), taken


class Tensor(NamedTuple):
    """What a tensor is but for its raw data, and these, which may be made when they are written."""

    rest: bytes
    size: int
    raw: Iterable[Piece]


def put_together(model: Any, tensors: Sequence[Tensor]) -> Iterable[Piece]:
    """The pieces of a ModelProto, which loses its initializers, with these in their place."""
    model.graph.ClearField("initializer")
    graph = model.graph.SerializeToString(deterministic=True)
    model.ClearField("graph")
    own = [(t, _head(RAW_DATA, t.size) if t.size else b"") for t in tensors]
    heads = [_head(INITIALIZER, len(t.rest) + len(head) + t.size) for t, head in own]
    size = len(graph) + sum(len(h) + len(t.rest) + len(head) + t.size for h, (t, head) in zip(heads, own, strict=True))
    yield model.SerializeToString(deterministic=True)
    yield from (_head(GRAPH, size), graph)
    for h, (t, head) in zip(heads, own, strict=True):
        yield from (h, t.rest, head)
        yield from t.raw


def _field(number: int, body: Sequence[Piece]) -> list[Piece]:
    return [_head(number, sum(map(len, body))), *body]


def _head(number: int, size: int) -> bytes:
    return bytes([number << 3 | 2]) + _varint(size)


def _varint(n: int) -> bytes:
    digits = bytearray()
    while n > 0x7F:
        digits.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*digits, n])


def _fields(view: memoryview) -> Iterator[tuple[int, memoryview, memoryview]]:
    """The number of each field, the whole of it, and what it has if it has a length. Raises ValueError, IndexError."""
    at = 0
    while at < len(view):
        tag, place = _number(view, at)
        kind = tag & 7
        if kind == 2:
            size, place = _number(view, place)
        elif kind == 0:
            size, place = 0, _number(view, place)[1]
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError("a group, which no model has")
        end = place + size
        if end > len(view):
            raise ValueError("an end before the last field's")
        yield tag >> 3, view[at:end], view[place:end] if kind == 2 else view[:0]
        at = end


def _number(view: memoryview, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, and where it ends."""
    number = shift = 0
    while True:
        byte = view[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


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
    stored = [_stored(t, fresh.get(k), raw.get(t.name)) for k, t in enumerate(initializers)]
    if most < sum(data.size for data in stored):
        if beside is None:
            raise DocumentError(f"{where}: has more than the 2 GiB that one file of ONNX can hold; give -o FILE.onnx")
        return _in_two_files(model, stored, beside), left_out
    return Written(put_together(model, stored)), left_out


def _stored(tensor: Any, fresh: Any, raw: memoryview | None) -> Tensor:
    """A TensorProto, which loses its data, with those of an array, or else its own."""
    if fresh is None:
        data = tensor.raw_data if raw is None else raw
        tensor.ClearField("raw_data")
        return Tensor(tensor.SerializeToString(deterministic=True), len(data), (data,))
    for name in (*_FIELDS, "raw_data"):
        tensor.ClearField(name)
    dtype = np.dtype(dtype_of(dtype_name(tensor.data_type))).newbyteorder("<")
    return Tensor(tensor.SerializeToString(deterministic=True), fresh.size * dtype.itemsize, _converted(fresh, dtype))


def _converted(array: Any, dtype: Any) -> Iterator[Piece]:
    """The bytes of an array, converted when they are written."""
    yield np.ascontiguousarray(array, dtype).reshape(-1).view("u1").data


def _in_two_files(model: Any, stored: Sequence[Tensor], location: str) -> Written:
    """A model, and the file beside it that has its large tensors."""
    tensors, apart, offset = list[Tensor](), list[Tensor](), 0
    for x in stored:
        if x.size < LARGE:
            tensors.append(x)
            continue
        t = package().TensorProto.FromString(x.rest)
        t.data_location = package().TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", offset), ("length", x.size)):
            t.external_data.add(key=key, value=str(value))
        tensors.append(Tensor(t.SerializeToString(deterministic=True), 0, ()))
        apart.append(x)
        offset += x.size
    return Written(put_together(model, tensors), (piece for x in apart for piece in x.raw))


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
