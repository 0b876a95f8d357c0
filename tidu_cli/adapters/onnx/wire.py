"""Large tensors of a model beside its protobuf: they are neither parsed nor serialized, each of which would copy them.

The format (https://protobuf.dev/programming-guides/encoding) is fields of a number and a kind; those of kind 2 have a length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tidu_cli.port_data import Piece

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
    graph: list[Piece] = [model.graph.SerializeToString(deterministic=True)]
    model.ClearField("graph")
    own = [(t, _head(RAW_DATA, t.size) if t.size else b"") for t in tensors]
    heads = [_head(INITIALIZER, len(t.rest) + len(head) + t.size) for t, head in own]
    size = len(graph[0]) + sum(len(h) + len(t.rest) + len(head) + t.size for h, (t, head) in zip(heads, own, strict=True))
    yield model.SerializeToString(deterministic=True)
    yield from (_head(GRAPH, size), *graph)
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
