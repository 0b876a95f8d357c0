"""The sparsity pattern of a derivative: which elements of the outputs depend on which of the inputs, whatever the inputs are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse  # type: ignore[import-untyped]

from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.open_sizes import require_fixed
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.sparse.propagation import Propagation, Value, elements
from tidu_cli.sparse.rows import empty, identity
from tidu_cli.transforms.materialize import materialize


class Sparsity(Frozen, eq=False):
    """A pattern: `matrix` has an entry where an element of the outputs, a row, may depend on one of the inputs, a column.

    Rows go through the outputs in order, and columns through the inputs, element by element in row-major order. `dense` names the
    ops of which it is only known that each element of their result depends on all of an operand.
    """

    matrix: Any
    dense: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are."""
        rows, columns = self.matrix.shape
        return int(rows), int(columns)

    @property
    def n_entries(self) -> int:
        """How many entries there are."""
        return int(self.matrix.nnz)

    @property
    def most(self) -> int:
        """The most entries of a row."""
        return int(np.diff(self.matrix.indptr).max(initial=0))

    @property
    def row(self) -> Any:
        """The row of each entry."""
        return self.matrix.tocoo().row

    @property
    def col(self) -> Any:
        """The column of each entry."""
        return self.matrix.tocoo().col

    def to_data(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "shape": list(self.shape),
            "entries": self.n_entries,
            "dense": list(self.dense),
            "row": self.row.tolist(),
            "col": self.col.tolist(),
        }

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.shape[0]:,} x {self.shape[1]:,}, {self.n_entries:,} entries>"


def pattern(document: Document, tangents: Sequence[Key]) -> Sparsity:
    """The pattern of a document whose head is linear in the inputs `tangents`: of its outputs by their elements.

    Raises LimitError for a pattern that takes more memory than is allowed, naming the op; TransformError for one of open sizes.
    """
    require_fixed(document, "patterns of sparse derivatives")
    values, dense = propagated(document, tangents)
    columns = sum(elements(document.inputs[key].type) for key in tangents)
    ports = zip(values, document.head.outputs, strict=True)
    outputs = [x if sparse.issparse(x) else empty(elements(o.type), columns) for x, o in ports]  # of no steps nothing is known
    matrix = sparse.vstack(outputs, format="csr") if outputs else sparse.csr_array((0, columns), dtype=bool)
    matrix.sum_duplicates()
    return Sparsity(sparse.csr_array(matrix), dense)


def propagated(document: Document, tangents: Sequence[Key]) -> tuple[list[Value], tuple[str, ...]]:
    """The patterns of the head's outputs, or their values where these depend on no input, and the ops that are `dense`."""
    graph = materialize(document).head
    start, columns = {}, 0
    for key in tangents:
        start[key] = columns
        columns += elements(document.inputs[key].type)
    run = Propagation(vocabulary(graph.cases), columns)
    inputs = [identity(elements(i.type), start[i.key], columns) if i.key in start else None for i in graph.inputs]
    return run.graph(graph, inputs), tuple(run.dense)
