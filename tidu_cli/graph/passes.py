"""Passes are calls: the identity of a call of linearize, which identities a document keeps, and what a graph is in a derivative.

Two files linearized apart may both say pass 1. The identity tells whether that is one call, so that linking never takes the
tangents of two for those of one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

import msgpack

from tidu_cli.errors import Remedy, TransformError
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.graph import Column, Document, Graph, Input, Output, column
from tidu_cli.graph.identity import case_digests, digest_text
from tidu_cli.graph.keys import MAX_PASS, Key, checked_pass
from tidu_cli.graph.large import by_columns, no_collection
from tidu_cli.graph.link import LogicalGraph, link
from tidu_cli.graph.select import require_inputs

if TYPE_CHECKING:
    from tidu_cli.graph.dataflow import Ints


class Call(Frozen, slots=False, eq=False):
    """A call of linearize on a linked document: of these outputs, given with their flat ids, by inputs `wrt`, in a pass."""

    logical: LogicalGraph
    number: int
    targets: Sequence[tuple[Output, int | None]]
    wrt: Sequence[Key]

    @classmethod
    def of(cls, document: Document, wrt: Sequence[Key], outputs: Sequence[Key] | None, number: int | None) -> Call:
        """The call for outputs and inputs of these keys. Raises UnknownNameError, and TransformError if the pass is in use."""
        logical, number = link(document), _free_pass(document, number)
        call = cls(logical, number, logical.select_outputs(outputs), list(dict.fromkeys(wrt)))
        require_inputs(document, wrt)
        return call

    @cached_property
    def needed(self) -> bytearray:
        """For each flat id, 1 if an output depends on it, else 0."""
        return self.logical.depends_on(flat for _, flat in self.targets if flat is not None)

    @no_collection()
    def identity(self, tangents: Sequence[Input]) -> str:
        """The identity of the call, where these are the tangents of its inputs.

        It hashes the document as it was given, but for what does not tell: graph names, meta, the pass's own number, and how a file
        lists nodes and references. `docs/format.md` says what is hashed. Linear in the size of the document, by whole columns.
        """
        logical, document, cases = self.logical, self.logical.document, self.logical.document.cases
        by_code = case_digests(cases, sorted({code for graph in document.graphs for code in occurring(graph.code, len(cases))}))
        # Cases are numbered by what they are, and so are detached values: in memory they are in the order in which they were read.
        kinds = sorted({(digest, cases.arity[code]) for code, digest in by_code.items()})
        number = {kind: k for k, kind in enumerate(kinds)}
        kind_of = column([0]) * len(cases)
        for code, digest in by_code.items():
            kind_of[code] = number[digest, cases.arity[code]]
        flat = _in_order(document, logical.base[-1])
        graphs = [
            ([(str(i.key), str(i.type), logical.source[i.key]) for i in graph.inputs], graph.n_nodes, len(graph.args))
            for graph in document.graphs
        ]
        outputs = [(str(o.key), str(o.type), flat.get(value, value) if value is not None else None) for o, value in self.targets]
        wrt = [(str(key), str(i.type)) for key, i in zip(self.wrt, tangents, strict=True)]
        passes = sorted(document.passes.items())
        header = ["linearize", graphs, sorted(d.digest for d in document.detached), kinds, outputs, wrt, passes]
        identity = sha256(msgpack.packb(header))
        for part in _columns(logical, kind_of, flat):
            identity.update(part)
        return digest_text(identity.digest())


def _free_pass(document: Document, chosen: int | None) -> int:
    if chosen is None:
        chosen = document.next_pass()
        if chosen > MAX_PASS:
            raise TransformError(
                f"pass {MAX_PASS} is in use and is the greatest there is; choose another with ",
                Remedy("pass_number", function="linearize", flag="--pass"),
            )
        return chosen
    checked_pass(chosen)
    if chosen in document.used_passes():
        raise TransformError(f"pass {chosen} is in use in this document; the next free one is {document.next_pass()}")
    return chosen


def with_used_passes(document: Document, passes: Mapping[int, str]) -> Document:
    """The document with those of these identities whose pass numbers it uses."""
    used = document.used_passes() if passes else set()
    return replace(document, passes={number: identity for number, identity in passes.items() if number in used})


@by_columns("tidu_cli.graph.dataflow", lambda code, _: len(code))
def occurring(code: Column[int], n: int) -> set[int]:
    """Which of the numbers below n occur."""
    return set(code)


def _in_order(document: Document, base: int) -> dict[int, int]:
    """By the flat ids of detached values those that they would have if they came in order of their digests."""
    order = sorted(range(len(document.detached)), key=lambda k: document.detached[k].digest)
    return {base + k: base + place for place, k in enumerate(order)}


def _columns(logical: LogicalGraph, kind_of: Column[int], flat: Mapping[int, int]) -> Iterator[bytes]:
    """The columns of all graphs as little-endian integers of 32 bits: those of codes, then those of arguments."""
    for graph in logical.document.graphs:
        yield from encoded(graph.code, kind_of)
    table = None
    if flat:
        table = column(range(logical.n_values))
        for old, new in flat.items():
            table[old] = new
    for args in logical.args if logical.flow is None else (logical.flow.args,):
        yield from encoded(args, table)


@by_columns("tidu_cli.graph.dataflow", lambda values, _: len(values))
def encoded(values: Column[int] | Ints, table: Column[int] | None) -> Iterator[bytes]:
    """Integers, or the entries of a table that they number, as little-endian bytes."""
    integers = column(values if table is None else [*map(table.tolist().__getitem__, values)])
    if sys.byteorder == "big":
        integers.byteswap()
    yield integers.tobytes()


class Kind(StrEnum):
    """The kinds of graphs."""

    PRIMAL = "primal"
    RESIDUAL = "residual"
    LINEAR = "linear"
    TRANSPOSED = "transposed"
    MATERIALIZED = "materialized"


MEANING = {
    Kind.RESIDUAL: "kept for the linear graph",
    Kind.LINEAR: "tangents forward",
    Kind.TRANSPOSED: "cotangents backward",
    Kind.MATERIALIZED: "values and derivatives in one",
}
"""A few words on each kind, for newcomers."""


def kind_of(graph: Graph) -> Kind:
    """The kind of a graph. A graph with derivatives among its nodes that is not itself linear has been materialized."""
    if graph.linear is not None:
        takes_cotangents = any(i.key.path and i.key.path[-1] < 0 for i in graph.inputs)
        return Kind.TRANSPOSED if takes_cotangents else Kind.LINEAR
    if not graph.inputs and not graph.outputs:
        return Kind.RESIDUAL
    if any(graph.cases[code].mask is not None for code in set(graph.code)):
        return Kind.MATERIALIZED
    return Kind.PRIMAL
