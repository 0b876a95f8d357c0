"""Documents as msgpack: reading, of which large parts become columns, and writing."""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NoReturn, TypeVar

import msgpack

from tidu_cli.errors import DocumentError
from tidu_cli.formats.files import Resumed, Source, repeated
from tidu_cli.formats.nodes.listed import BLOCK, GraphWriter, with_meta
from tidu_cli.formats.nodes.numbering import TYPECODES, Pairs
from tidu_cli.graph.graph import Column, Externals
from tidu_cli.port_data import Piece
from tidu_cli.watching import Watched

# msgpack to plain data, as it comes in.
#
# Documents are walked down to the columns of packed nodes, which become `columns` in blocks; all else is what msgpack's own reader
# makes of it. So of a large document neither the bytes are ever held as a whole, nor an object for each entry.


E = TypeVar("E")

READ_AT_ONCE = 2**20
"""So many bytes of a column at once."""

PAIRS = 2**13
"""So many pairs at once, as Python objects before they are columns."""


def unpacked(source: Source) -> object:
    """The plain data of the map that a source holds. Raises DocumentError if it is malformed, or there is more."""
    try:
        reader = _Reader(source)
        document = reader.document()
        reader.end()
    except msgpack.OutOfData:
        raise DocumentError("malformed msgpack: ends within the document; is it cut off?") from None
    except UnicodeDecodeError:
        raise DocumentError("malformed msgpack: a string is not valid UTF-8") from None
    except (msgpack.StackError, RecursionError):
        raise DocumentError("nests too deeply") from None
    except (msgpack.FormatError, MemoryError, TypeError):
        raise DocumentError("malformed msgpack") from None
    except ValueError as error:
        raise DocumentError(f"malformed msgpack: {error}") from None
    return document


# https://github.com/msgpack/msgpack/blob/master/spec.md
_LENGTH_OF_BINARY = {0xC4: 1, 0xC5: 2, 0xC6: 4}
"""By what binary data begin with, how many bytes of length follow."""

_Fields = Mapping[str, Callable[[dict[str, object]], object]]
"""How the values of some keys of a map are read. They are told those of the keys before."""


class _Reader:
    """Reads a document. Whoever asks for the head of a map or a list, and finds another value, has that yet to be read."""

    def __init__(self, source: Source) -> None:
        self._source = source
        counting: dict[str, Any] = {"list_hook": self._counted, "object_pairs_hook": lambda pairs: _object(self._counted(pairs))}
        self._hooks = {**_HOOKS, **counting} if source.is_compressed else _HOOKS
        self._unpacker = msgpack.Unpacker(source, max_buffer_size=0, **self._hooks)

    def document(self) -> object:
        """The document, which is a map."""
        return self._map({"graphs": self._graphs})

    def end(self) -> None:
        """Raises DocumentError unless all has been read."""
        if self._unpacker.read_bytes(1):
            raise DocumentError("malformed msgpack: more data after the document; a file or pipe holds one document")

    def _graphs(self, _: object) -> object:
        n = self._length(self._unpacker.read_array_header)
        return self._unpacker.unpack() if n is None else [self._map({"nodes": self._nodes}) for _ in range(n)]

    def _nodes(self, _: object) -> object:
        return self._map({"code": self._column, "args": self._column, "external": self._pairs})

    def _column(self, _: object) -> object:
        return self._map({"data": self._data})

    def _data(self, before: dict[str, object]) -> object:
        first = self._bytes(1)
        if first[0] not in _LENGTH_OF_BINARY:
            # Never so in a document. A reader that takes a byte at a time leaves what follows where it is.
            return msgpack.Unpacker(
                Resumed(first, self._unpacker.read_bytes), read_size=1, max_buffer_size=0, **self._hooks
            ).unpack()
        n = int.from_bytes(self._bytes(_LENGTH_OF_BINARY[first[0]]), "big")
        dtype = before.get("dtype")
        known = array(TYPECODES[dtype]) if isinstance(dtype, str) and dtype in TYPECODES else None
        values = array("B") if known is None or n % known.itemsize else known
        for begin in range(0, n, READ_AT_ONCE):
            values.frombytes(self._bytes(min(READ_AT_ONCE, n - begin)))
        return values if values is known else values.tobytes()

    def _pairs(self, _: object) -> object:
        n = self._length(self._unpacker.read_array_header)
        if n is None:
            return self._unpacker.unpack()
        pairs = Pairs()
        while len(pairs) < n:
            block = self._entries(min(PAIRS, n - len(pairs)))
            if not pairs.take(block):
                return [*pairs, *block, *self._entries(n - len(pairs) - len(block))]
        return pairs

    def _map(self, fields: _Fields) -> object:
        """The next value, of which these fields are read like this if it is a map."""
        n = self._length(self._unpacker.read_map_header)
        if n is None:
            return self._unpacker.unpack()
        pairs: list[tuple[object, object]] = []
        before: dict[str, object] = {}
        for _ in range(n):
            key = self._unpacker.unpack()
            value = fields[key](before) if isinstance(key, str) and key in fields else self._unpacker.unpack()
            pairs.append((key, value))
            if isinstance(key, str):
                before[key] = value
        return _object(self._counted(pairs))

    def _counted(self, entries: list[E]) -> list[E]:
        self._source.count(entries)
        return entries

    def _entries(self, n: int) -> list[object]:
        entries = list(islice(self._unpacker, n))
        if len(entries) < n:
            raise msgpack.OutOfData
        return entries

    def _length(self, header: Callable[[], int]) -> int | None:
        """How many entries the next value has, whose `header` this reads; None if it is of another kind."""
        try:
            return header()
        except ValueError:
            return None

    def _bytes(self, n: int) -> bytes:
        data: bytes = self._unpacker.read_bytes(n)
        if len(data) < n:
            raise msgpack.OutOfData
        return data


def _object(pairs: list[tuple[object, object]]) -> dict[object, object]:
    for key, _ in pairs:
        if type(key) is not str:
            raise DocumentError(f"malformed msgpack: the map key {key!r} is not a string")
    result = dict(pairs)
    if len(result) < len(pairs):
        raise DocumentError(f"a map has the key {repeated(key for key, _ in pairs)!r} twice")
    return result


def _refuse_extension(code: int, data: bytes) -> NoReturn:
    raise DocumentError(f"malformed msgpack: documents have no extension types, but here is one of type {code}")


_HOOKS: dict[str, Any] = {"object_pairs_hook": _object, "ext_hook": _refuse_extension, "strict_map_key": False}


# Documents as msgpack, a field or a column at a time.


MOST_BYTES = 2**32 - 1
"""So many bytes of binary data msgpack can hold."""


def pieces(
    before: Mapping[str, object], writers: Sequence[GraphWriter], after: Mapping[str, object], watched: Watched
) -> Iterator[Piece]:
    """The bytes of a document with these fields before and after its graphs. Raises DocumentError if a graph is too large."""
    for writer in writers:
        n, graph = max(writer.graph.n_nodes, len(writer.graph.args)), writer.graph
        if not writer.listed and n * graph.args.itemsize > MOST_BYTES:
            raise DocumentError(f"graph '{graph.name}': a column of {n} entries is more than msgpack can hold; write JSON")
    return _pieces(before, writers, after, watched)


def _pieces(
    before: Mapping[str, object], writers: Sequence[GraphWriter], after: Mapping[str, object], watched: Watched
) -> Iterator[Piece]:
    packer = msgpack.Packer()
    yield packer.pack_map_header(len(before) + 1 + len(after))
    yield from _fields(packer, before)
    yield packer.pack("graphs")
    yield packer.pack_array_header(len(writers))
    for writer in writers:
        head = {**writer.head(), "inputs": writer.inputs()}
        yield packer.pack_map_header(len(head) + 2)
        yield from _fields(packer, head)
        yield packer.pack("nodes")
        yield from _listed(packer, writer, watched) if writer.listed else _packed(packer, writer)
        yield from _fields(packer, {"outputs": writer.outputs()})
    yield from _fields(packer, after)


def _fields(packer: msgpack.Packer, fields: Mapping[str, object]) -> Iterator[bytes]:
    for name, value in fields.items():
        yield packer.pack(name)
        yield packer.pack(value)


def _listed(packer: msgpack.Packer, writer: GraphWriter, watched: Watched) -> Iterator[bytes]:
    graph, cases, common, needs_types = writer.graph, writer.graph.cases, writer.common(), writer.types or writer.detached
    yield packer.pack_array_header(graph.n_nodes)
    for block in writer.blocks():
        end = 0
        for i, number in enumerate(watched(block.code), block.first):
            case = cases[number]
            start, end = end, end + len(case.operands)
            args = block.args[start:end]
            node = {"op": case.op, "inputs": [a if a >= 0 else writer.reference(a) for a in args], **common[number]}
            if needs_types and writer.needs_types(args):
                node["types"] = [str(t) for t in case.results]
            yield packer.pack(with_meta(node, graph.node_meta.get(i)))


def _packed(packer: msgpack.Packer, writer: GraphWriter) -> Iterator[Piece]:
    nodes = writer.packed()
    yield packer.pack_map_header(4)
    yield from _fields(packer, {"table": nodes.table})
    for name, n, blocks in (("code", writer.graph.n_nodes, nodes.code), ("args", len(nodes.args), (nodes.args,))):
        yield packer.pack(name)
        yield packer.pack_map_header(2)
        yield from _fields(packer, {"dtype": "i32"})
        yield packer.pack("data")
        yield binary_header(n * nodes.args.itemsize)
        yield from map(_little_endian, blocks)
    yield packer.pack("external")
    yield from _pairs(packer, nodes.external)


def binary_header(n: int) -> bytes:
    """What `n` bytes of binary data begin with, `MOST_BYTES` at most."""
    # https://github.com/msgpack/msgpack/blob/master/spec.md
    if n < 2**8:
        return struct.pack(">BB", 0xC4, n)
    if n < 2**16:
        return struct.pack(">BH", 0xC5, n)
    return struct.pack(">BI", 0xC6, n)


def _little_endian(values: Column[int]) -> Piece:
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return memoryview(values).cast("B")


def _pairs(packer: msgpack.Packer, external: Externals) -> Iterator[bytes]:
    yield packer.pack_array_header(len(external))
    for first in range(0, len(external), BLOCK):
        some = slice(first, first + BLOCK)
        block = [*zip(external.graph[some], external.value[some], strict=True)]
        entries: bytes = packer.pack(block)
        yield entries[len(packer.pack_array_header(len(block))) :]
