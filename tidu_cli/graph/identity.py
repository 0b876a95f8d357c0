"""Digests: the structural identity of values (ValueKeys), in a form that holds across files and languages.

`docs/format.md` specifies the encoding. A value's digest hashes those of the values it is computed from, so that it costs the
same at any depth and in any sharing. It hashes how custom ops are defined, too; each definition is encoded once, and hashed once
for every op that reaches it, not for every node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from hashlib import sha256
from typing import Any

import msgpack

from tidu_cli.graph.closed import ClosedGraph, forwards
from tidu_cli.graph.graph import Case, CaseTable, Document, Externals, Vocabulary
from tidu_cli.graph.keys import Key

PREFIX = "sha256:"

Hashing = Callable[[bytes], Any]
"""Gives an object as hashlib has them, which has hashed these bytes, and maybe others before."""


def digest_text(digest: bytes) -> str:
    """The text form of a digest, `sha256:` and 64 hexadecimal digits."""
    return PREFIX + digest.hex()


def input_digest(key: Key) -> bytes:
    """The digest of a free input: SHA-256 of msgpack `["input", name, [pass, ...]]`, with cotangent passes negative."""
    return sha256(_pack(["input", key.name, list(key.path)])).digest()


def digests(document: Document) -> list[list[bytes]]:
    """For each graph, the 32-byte digests of its local values.

    Linear in the size of the graphs, and for each distinct custom op in them in what it reaches, all of which its digests hash.
    """
    cases, beginning = document.cases, _beginnings(document.cases.vocabulary)
    prefixes: list[bytes] = [b""] * len(cases)
    hashing: list[Hashing] = [sha256] * len(cases)
    for code in {code for graph in document.graphs for code in graph.code}:
        begun, hashing[code] = beginning(cases[code].op)
        prefixes[code] = begun + _after_op(cases[code], len(cases[code].operands))
    bound = document.bound
    detached = [bytes.fromhex(d.digest.removeprefix(PREFIX)) for d in document.detached]
    slots = [_pack(slot) for slot in range(max(cases.n_results, default=0))]
    by_graph: list[list[bytes]] = []
    for graph in document.graphs:
        values = [by_graph[bound[i.key][0]][bound[i.key][1]] if i.key in bound else input_digest(i.key) for i in graph.inputs]
        external = [detached[v] if g == Externals.DETACHED else by_graph[g][v] for g, v in graph.external]
        for code, arguments, first, after in forwards(graph, graph.args):
            # A 32-byte bin is its digest after the header C4 20.
            operands = b"".join(b"\xc4\x20" + (values[a] if a >= 0 else external[-1 - a]) for a in arguments)
            for slot in slots[: after - first]:
                values.append(hashing[code](prefixes[code] + operands + slot).digest())
        by_graph.append(values)
    return by_graph


def case_digests(cases: CaseTable, codes: Iterable[int]) -> dict[int, bytes]:
    """Of each of these cases what the digest of a node would be that reads nothing: it says op, attrs and role, and no types."""
    beginning = _beginnings(cases.vocabulary)
    by_code = {}
    for code in codes:
        begun, hashing = beginning(cases[code].op)
        by_code[code] = hashing(begun + _after_op(cases[code], 0) + _pack(0)).digest()
    return by_code


def closed_digest(closed: ClosedGraph) -> bytes:
    """The digest of a graph within a node: of `["graph", [types of inputs], [types of outputs], [digests of outputs]]`.

    Inputs count as free inputs named by their numbers, so that neither names nor the order of nodes matter, nor nodes that no
    output needs; an output that is zero has null. It is computed once for each graph, which others may hold.
    """
    if closed.digest is None:
        (values,) = digests(closed.positional)
        types = [[str(t) for t in some] for some in (closed.input_types, closed.output_types)]
        outputs = [None if o.value is None else values[o.value] for o in closed.graph.outputs]
        closed.digest = sha256(_pack(["graph", *types, outputs])).digest()
    return closed.digest


def _beginnings(vocabulary: Vocabulary | None) -> Callable[[str], tuple[bytes, Hashing]]:
    """How the encoding of `["node", op, attrs, mask, [operands...], slot]` begins, up to attrs.

    That of a custom operation is `[name, definitions]`, and may be long: it has been hashed before the rest comes.
    """
    encoded: dict[str, bytes] = {}

    @cache
    def beginning(op: str) -> tuple[bytes, Hashing]:
        """The first bytes that are to be hashed, and the hash function for them and what follows."""
        definitions = vocabulary.definitions_behind(op) if vocabulary else ()
        if not definitions:
            return _NODE + _pack(op), sha256
        packer = msgpack.Packer()
        state = sha256(_NODE + packer.pack_array_header(2) + _pack(op) + packer.pack_map_header(len(definitions)))
        for definition in definitions:
            name = definition.name
            if name not in encoded:
                encoded[name] = _pack(name) + _pack(_sorted_maps(definition.to_data()))
            state.update(encoded[name])
        return b"", _continued(state)

    return beginning


_NODE = b"\x96\xa4node"


def _continued(state: Any) -> Hashing:
    def hashed(data: bytes) -> Any:
        whole = state.copy()
        whole.update(data)
        return whole

    return hashed


def _after_op(case: Case, n_operands: int) -> bytes:
    """The encoding of a node from its attrs up to its operands."""
    attrs = _pack(_sorted_maps(case.attrs.identity(closed_digest)))
    mask = _pack(None if case.mask is None else list(case.mask))
    header: bytes = msgpack.Packer().pack_array_header(n_operands)
    return attrs + mask + header


def _pack(value: object) -> bytes:
    packed: bytes = msgpack.packb(value)
    return packed


def _sorted_maps(value: object) -> object:
    if isinstance(value, dict):
        return {k: _sorted_maps(value[k]) for k in sorted(value, key=str.encode)}
    return [_sorted_maps(v) for v in value] if isinstance(value, list) else value
