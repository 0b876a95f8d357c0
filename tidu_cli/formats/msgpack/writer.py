"""Documents as msgpack, a field or a column at a time."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator, Mapping, Sequence

import msgpack

from tidu_cli.errors import DocumentError
from tidu_cli.formats.nodes.writer import BLOCK, GraphWriter, with_meta
from tidu_cli.graph.graph import Column, Externals
from tidu_cli.port_data import Piece
from tidu_cli.watching import Watched

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
