"""Sparse Jacobians and Hessians: a pattern, a colouring of it, and the graph of the entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.errors import Remedy, TransformError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import require_inputs
from tidu_cli.notes import detail
from tidu_cli.sparse import coloring
from tidu_cli.sparse.coloring import Mode
from tidu_cli.sparse.compressed import by_columns, by_rows, compressed, symmetric
from tidu_cli.sparse.patterns import Sparsity, pattern
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.rename import bind_constants
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.shorthands import is_irreversible, one_real_number, seed
from tidu_cli.transforms.transpose import transpose

Keys = Sequence[Key]


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
    matrix = _of_head(linear).matrix
    if mode is None and is_irreversible(linear.head):
        mode = "forward"
    chosen = coloring.of_jacobian(matrix, mode)
    detail(f"{matrix.nnz:,} entries of {matrix.shape[0]:,} x {matrix.shape[1]:,} in {chosen.n_directions} directions")
    in_columns, in_rows = chosen.parts(matrix)
    turned = transpose(linear, strong_zeros=strong_zeros) if in_rows.nnz else linear
    parts = [(linear.head, by_columns(in_columns, chosen.of_columns))] if in_columns.nnz or not in_rows.nnz else []
    if in_rows.nnz:
        parts.append((turned.head, by_rows(in_rows, chosen.of_rows)))
    return materialize(compressed(turned, parts))


def hessian(document: Document, wrt: Keys, outputs: Keys = (), *, strong_zeros: bool = False) -> Document:
    """One graph of the entries of the sparse Hessian of one output, a real number, both triangles, and of where they are.

    Forward over reverse, in the directions of a star colouring. Raises as `linearize`.
    """
    along = _gradient_along(document, wrt, outputs, strong_zeros)
    found = _of_head(along).matrix
    matrix: Any = found + found.T  # rounding aside, it is symmetric; where rules say more of one triangle, both are taken
    colors = coloring.star(matrix)
    detail(f"{matrix.nnz:,} entries of {matrix.shape[0]:,} x {matrix.shape[1]:,} in {int(colors.max(initial=-1)) + 1} directions")
    return materialize(compressed(along, [(along.head, symmetric(matrix, colors))]))


def _of_head(document: Document) -> Sparsity:
    return pattern(document, [i.key for i in document.head.inputs])


def _gradient_along(document: Document, wrt: Keys, outputs: Keys, strong_zeros: bool = False) -> Document:
    """The gradient, linearized: a map from tangents of the inputs to those of their cotangents."""
    loss = one_real_number(document, outputs, "a Hessian")
    gradient = transpose(linearize(document, wrt=wrt, outputs=outputs), strong_zeros=strong_zeros)
    return linearize(bind_constants(gradient, seed(document, loss)), wrt=wrt)
