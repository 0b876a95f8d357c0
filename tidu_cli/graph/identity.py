"""Digests: the structural identity of values (ValueKeys), in a form that holds across files and languages.

`docs/format.md` specifies the encoding. A value's digest hashes those of the values it is computed from, so that it costs the
same at any depth and in any sharing.
"""

from __future__ import annotations

from hashlib import sha256

import msgpack

from tidu_cli.graph.graph import Case, Document, Externals
from tidu_cli.graph.keys import Key

PREFIX = "sha256:"


def digest_text(digest: bytes) -> str:
    """The text form of a digest, `sha256:` and 64 hexadecimal digits."""
    return PREFIX + digest.hex()


def input_digest(key: Key) -> bytes:
    """The digest of a free input: SHA-256 of msgpack `["input", name, [pass, ...]]`, with cotangent passes negative."""
    return sha256(_pack(["input", key.name, list(key.path)])).digest()


def digests(document: Document) -> list[list[bytes]]:
    """For each graph, the 32-byte digests of its local values. Linear in the size of the document."""
    vocabulary = document.cases.vocabulary
    prefixes = [_node_prefix(case, vocabulary.identity_of(case.op) if vocabulary else case.op) for case in document.cases.cases]
    bound = {b.key: (b.graph, b.value) for b in document.bindings}
    detached = [bytes.fromhex(d.digest.removeprefix(PREFIX)) for d in document.detached]
    arity, n_results = document.cases.arity, document.cases.n_results
    slots = [_pack(slot) for slot in range(max(n_results, default=0))]
    found: list[list[bytes]] = []
    for graph in document.graphs:
        values = [found[bound[i.key][0]][bound[i.key][1]] if i.key in bound else input_digest(i.key) for i in graph.inputs]
        external = [detached[v] if g == Externals.DETACHED else found[g][v] for g, v in graph.external]
        end = 0
        for code in graph.code:
            start, end = end, end + arity[code]
            # A 32-byte bin is its digest after the header C4 20.
            operands = b"".join(b"\xc4\x20" + (values[a] if a >= 0 else external[-1 - a]) for a in graph.args[start:end])
            for slot in range(n_results[code]):
                values.append(sha256(prefixes[code] + operands + slots[slot]).digest())
        found.append(values)
    return found


def _node_prefix(case: Case, op: object) -> bytes:
    """The encoding of `["node", op, attrs, mask, [operands...], slot]` up to the operands."""
    attrs = _pack(_sorted_maps(case.attrs.to_data(binary=True)))
    mask = _pack(None if case.mask is None else list(case.mask))
    header: bytes = msgpack.Packer().pack_array_header(len(case.operands))
    return b"\x96" + _pack("node") + _pack(_sorted_maps(op)) + attrs + mask + header


def _pack(value: object) -> bytes:
    packed: bytes = msgpack.packb(value)
    return packed


def _sorted_maps(value: object) -> object:
    if isinstance(value, dict):
        return {k: _sorted_maps(value[k]) for k in sorted(value, key=str.encode)}
    return [_sorted_maps(v) for v in value] if isinstance(value, list) else value
