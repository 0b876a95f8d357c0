"""Sparse Jacobians and Hessians: a pattern, a colouring of it, and the graph of the entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.errors import Remedy, TransformError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import require_inputs
from tidu_cli.notes import detail
from tidu_cli.sparse import coloring
from tidu_cli.sparse.coloring import Coloring, Mode
from tidu_cli.sparse.compressed import by_columns, by_rows, compressed, symmetric
from tidu_cli.sparse.cut import without_moves
from tidu_cli.sparse.patterns import Sparsity, pattern
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.rename import bind_constants
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.shorthands import is_irreversible, one_real_number, seed
from tidu_cli.transforms.transpose import transpose

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
