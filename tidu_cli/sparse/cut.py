"""The linear graph without its beginning: what only moves elements of the tangents is cut off.

Where many terms read elements of shared arrays, each at its own places, an element is in the column of many terms. As a function of
what the terms read, the matrix is blocks beside each other, which take as many directions as a block has rows. Each entry then
belongs in the column of the element that was read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
from scipy.sparse import csr_array  # type: ignore[import-untyped]

from tidu_cli.errors import LimitError
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Document, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.limits import limited, limits
from tidu_cli.sparse.patterns import pattern, propagated
from tidu_cli.sparse.rows import ENTRY_BYTES

_MORE = 4
"""How many times the entries of the whole matrix that of a cut graph may have."""

_AT_LEAST = 100_000


class Cut(Frozen, eq=False):
    """A document whose head is linear in values that are elements of the tangents.

    `matrix` is its pattern, and `column` says of each of its columns which of the tangents' elements it is, or -1 for none.
    """

    document: Document
    matrix: Any
    column: Any


def without_moves(document: Document, n_entries: int) -> Cut | None:
    """The document whose head begins after what moves elements; None if there is nothing of that, or it makes more entries.

    `n_entries` are those of the whole matrix.
    """
    head = document.head
    if not all(_is_real(i.type) for i in head.inputs):
        return None
    moved = _moved(document)
    read = {a for _, args, first, _ in forwards(head, head.args) if first not in moved for a in args}
    cuts = sorted(moved & (read | {o.value for o in head.outputs if o.value is not None}))
    if not cuts or cuts[-1] < len(head.inputs):
        return None
    taken = {i.key.name for i in document.inputs.values()}
    names = (name for name in map("cut{}".format, count()) if name not in taken)
    path = head.inputs[0].key.path
    inputs = [Input(Key(name, path), head.type_of(value)) for name, value in zip(names, cuts, strict=False)]
    rest = replace(document, graphs=(*document.graphs[:-1], _after(head, cuts, moved, inputs)))
    most = ENTRY_BYTES * max(_MORE * n_entries, _AT_LEAST)
    try:
        with limited(replace(limits(), memory=min(most, limits().bytes()))):
            found = pattern(rest, [i.key for i in inputs]).matrix.tocoo()
    except LimitError:
        return None
    tangents = [i.key for i in head.inputs]
    column = np.concatenate([*map(_columns, propagated(_of_values(document, {a: head.type_of(a) for a in cuts}), tangents)[0])])
    there = column[found.col] >= 0
    at = found.row[there], found.col[there]
    return Cut(rest, csr_array((found.data[there], at), shape=found.shape), column)


def _is_real(type_: Type) -> bool:
    return isinstance(type_, TensorType) and type_.inexact and not type_.complex


def _moved(document: Document) -> set[int]:
    """The values of the head of which each element is one of the tangents, or 0, at places that are known."""
    moved, places = _movements(document, None)
    if not places:
        return moved
    asked = {a: type_ for a, type_ in places.items() if isinstance(type_, TensorType)}
    values, _ = propagated(_of_values(document, asked), ())
    return _movements(document, {a for a, value in zip(asked, values, strict=True) if value is not None})[0]


def _movements(document: Document, known: Collection[int] | None) -> tuple[set[int], dict[int, Type | None]]:
    """The values that are only moved where these are known, None for any, and what says where they are moved."""
    head, primitives = document.head, vocabulary(document.cases)
    moved, places = set(range(len(head.inputs))), dict[int, "Type | None"]()
    for code, args, first, end in forwards(head, head.args):
        case = head.cases[code]
        primitive = primitives[case.op]
        where = dict(list(zip(args, case.operands, strict=True))[slice(*primitive.domain.indices)])
        if primitive.rules.sparsity != "moved" or not all(map(_is_real, case.results)):
            continue
        if all(a < 0 or a in moved for a in args) and (known is None or all(a in known for a in where)):
            moved.update(range(first, end))
            places |= where
    return moved, places


def _of_values(document: Document, values: Mapping[int, Type]) -> Document:
    """The document with these values of the head, or of what it reads, for outputs."""
    outputs = tuple([Output(Key(f"{k}"), value, type_) for k, (value, type_) in enumerate(values.items())])
    return replace(document, graphs=(*document.graphs[:-1], replace(document.head, outputs=outputs)))


def _after(head: Graph, cuts: Sequence[int], moved: Collection[int], inputs: Sequence[Input]) -> Graph:
    """The head from these values on, which are its inputs."""
    builder = GraphBuilder(head.cases, inputs)
    builder.external = head.external
    new = {value: k for k, value in enumerate(cuts)}
    for code, args, first, end in forwards(head, head.args):
        if first not in moved:
            at = builder.append(code, [new.get(a, a) for a in args])
            new.update(zip(range(first, end), range(at, at + end - first), strict=True))
    outputs = [replace(o, value=None if o.value is None else new[o.value]) for o in head.outputs]
    return builder.build(head.name, outputs, linear=head.linear)


def _columns(pattern: Any) -> Any:
    """Of each row of a pattern with one entry at most the column of that, or -1."""
    start = pattern.indptr
    columns = np.full(pattern.shape[0], -1)
    columns[np.diff(start) > 0] = pattern.indices
    return columns
