"""Sparse Jacobians and Hessians: a pattern, a colouring of it, and the graph of the entries.

The linear graph may go without its beginning: what only moves elements of the tangents is cut off. Where many terms read elements
of shared arrays, each at its own places, an element is in the column of many terms. As a function of what the terms read, the
matrix is blocks beside each other, which take as many directions as a block has rows. Each entry then belongs in the column of the
element that was read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
from scipy.sparse import csr_array  # type: ignore[import-untyped]

from tidu_cli.errors import LimitError, Remedy, TransformError
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Document, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.select import require_inputs
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.limits import limited, limits
from tidu_cli.notes import detail
from tidu_cli.sparse import coloring
from tidu_cli.sparse.coloring import Coloring, Mode
from tidu_cli.sparse.compressed import by_columns, by_rows, compressed, symmetric
from tidu_cli.sparse.patterns import Sparsity, pattern, propagated
from tidu_cli.sparse.rows import ENTRY_BYTES
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.rename import bind_constants
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.shorthands import is_irreversible, one_real_number, seed
from tidu_cli.transforms.transpose import transpose

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


Keys = Sequence[Key]

_PAIRS = 20_000_000
"""The pairs of entries of a row, of all rows together, up to which a Hessian's colouring is a star colouring."""


def of_jacobian(document: Document, wrt: Keys, outputs: Keys = ()) -> Sparsity:
    """The pattern of the Jacobian of these outputs, the rows, by the inputs `wrt`, the columns. Raises as `linearize`."""
    require_inputs(document, wrt)
    return _of_head(linearize(document, wrt=wrt, outputs=outputs))


def of_hessian(document: Document, wrt: Keys, outputs: Keys = ()) -> Sparsity:
    """The pattern of the Hessian of one output, a real number, by the inputs `wrt`. Raises as `linearize`."""
    return _of_head(_gradient_along(document, wrt, outputs))


def jacobian(
    document: Document,
    wrt: Keys,
    outputs: Keys = (),
    *,
    reverse: bool | None = None,
    holomorphic: bool = False,
    strong_zeros: bool = False,
) -> Document:
    """One graph of the entries of the sparse Jacobian, and of where they are (`SPARSE`).

    By rows if `reverse` or for `strong_zeros`, by columns if not, and by default by the fewest directions: where that is best, some
    rows by rows and the rest by columns. Raises as `linearize`, and TransformError for complex numbers, `holomorphic` or not.
    """
    require_inputs(document, wrt)
    if holomorphic:
        raise TransformError("a sparse Jacobian is of real numbers: leave out ", Remedy("holomorphic"))
    mode: Mode | None = "reverse" if reverse or strong_zeros else None if reverse is None else "forward"
    linear = linearize(document, wrt=wrt, outputs=outputs)
    return _of_way(way(linear, mode), strong_zeros)


def hessian(document: Document, wrt: Keys, outputs: Keys = (), *, strong_zeros: bool = False) -> Document:
    """One graph of the entries of the sparse Hessian of one output, a real number, both triangles, and of where they are.

    Forward over reverse, in the directions of a star colouring, or by rows where a head that is cut takes fewer by far. Raises as
    `linearize`.
    """
    along = _gradient_along(document, wrt, outputs, strong_zeros)
    found = _of_head(along).matrix
    irreversible = is_irreversible(along.head)
    mode: Mode | None = "forward" if irreversible else None
    matrix: Any = found + found.T  # rounding aside, it is symmetric; where rules say more of one triangle, both are taken
    if coloring.pairs(matrix) > _PAIRS:
        return _of_way(_fewest(along, found, mode), strong_zeros)
    colors = coloring.star(matrix)
    n_directions = int(colors.max(initial=-1)) + 1
    cut = _cut(along, found, mode) if n_directions > 1 else None
    if cut is not None and 2 * cut.coloring.n_directions <= n_directions:  # they cost about twice as much
        return _of_way(cut, strong_zeros)
    _say(matrix.nnz, matrix.shape, n_directions)
    return materialize(compressed(along, [(along.head, symmetric(matrix, colors))]))


class Way(Frozen, eq=False):
    """A document whose head is linear, its pattern and a colouring, for a derivative of `n_columns` columns.

    If the head is cut, `column` says in which of them each column of the pattern is.
    """

    document: Document
    matrix: Any
    coloring: Coloring
    n_columns: int
    column: Any = None


def way(linear: Document, mode: Mode | None) -> Way:
    """The way with the fewest directions to the entries of a linear head, cut or not."""
    if mode is None and is_irreversible(linear.head):
        mode = "forward"
    return _fewest(linear, _of_head(linear).matrix, mode)


def _fewest(linear: Document, matrix: Any, mode: Mode | None) -> Way:
    """Likewise, where the pattern of the head is known. One direction is the fewest, and saves the colouring of the other way."""
    cut = None if coloring.is_one(matrix, mode) else _cut(linear, matrix, mode)
    if cut is not None and cut.coloring.n_directions == 1:
        return cut
    whole = Way(linear, matrix, coloring.of_jacobian(matrix, mode), matrix.shape[1])
    return min(whole, cut or whole, key=lambda way: way.coloring.n_directions)


def _cut(linear: Document, matrix: Any, mode: Mode | None) -> Way | None:
    """The way of a head that is cut. `matrix` is the pattern of the head as it is."""
    cut = without_moves(linear, matrix.nnz)
    if cut is None:
        return None
    return Way(cut.document, cut.matrix, coloring.of_jacobian(cut.matrix, mode), matrix.shape[1], cut.column)


def _of_way(how: Way, strong_zeros: bool) -> Document:
    in_columns, in_rows = how.coloring.parts(how.matrix)
    turned = transpose(how.document, strong_zeros=strong_zeros) if in_rows.nnz else how.document
    parts = []
    if in_columns.nnz or not in_rows.nnz:
        parts.append((how.document.head, by_columns(in_columns, how.coloring.of_columns)))
    if in_rows.nnz:
        parts.append((turned.head, by_rows(in_rows, how.coloring.of_rows)))
    if how.column is not None:
        parts = [(head, entries.moved(how.column, how.n_columns)) for head, entries in parts]
    _say(sum(entries.row.size for _, entries in parts), (how.matrix.shape[0], how.n_columns), how.coloring.n_directions)
    return materialize(compressed(turned, parts))


def _say(n_entries: int, shape: Sequence[int], n_directions: int) -> None:
    directions = f"{n_directions} direction{'s' * (n_directions != 1)}"
    detail(f"{n_entries:,} entries of {shape[0]:,} x {shape[1]:,} in {directions}")


def _of_head(document: Document) -> Sparsity:
    found = pattern(document, [i.key for i in document.head.inputs])
    if found.dense:
        detail(f"dense where nothing better is known: {', '.join(found.dense)}")
    return found


def _gradient_along(document: Document, wrt: Keys, outputs: Keys, strong_zeros: bool = False) -> Document:
    """The gradient, linearized: a map from tangents of the inputs to those of their cotangents."""
    loss = one_real_number(document, outputs, "a Hessian")
    gradient = transpose(linearize(document, wrt=wrt, outputs=outputs), strong_zeros=strong_zeros)
    return linearize(bind_constants(gradient, seed(document, loss)), wrt=wrt)
