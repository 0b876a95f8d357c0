"""The sparsity pattern of a derivative: which elements of the outputs depend on which of the inputs, whatever the inputs are.

It is shown to people and to other programs as text, pictures, Matrix Market and SciPy's npz.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import io as scipy_io  # type: ignore[import-untyped]
from scipy import sparse

from tidu_cli.formats.json import json_text
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


FORMATS = ("text", "json", "npz", "mtx", "svg", "png")

_TEXT = 60, 30
_PICTURE = 400
"""As many cells a picture has along the longer side, at most: each stands for a block of entries then."""


def written(pattern: Sparsity, format: str) -> bytes:
    """A pattern in one of `FORMATS`."""
    if format == "json":
        return f"{json_text(pattern.to_data())}\n".encode()
    if format in ("npz", "mtx"):
        out = io.BytesIO()
        if format == "npz":
            sparse.save_npz(out, pattern.matrix)
        else:
            scipy_io.mmwrite(out, pattern.matrix, field="pattern", symmetry="general")
        return out.getvalue()
    if format == "text":
        return text(pattern).encode()
    cells = _blocks(pattern, _PICTURE, _PICTURE)
    return _svg(cells, pattern) if format == "svg" else _png(cells)


def text(pattern: Sparsity) -> str:
    """Counts, and a picture of dots."""
    n_rows, n_columns = pattern.shape
    share = pattern.n_entries / (n_rows * n_columns) if n_rows and n_columns else 0
    noun = "entry" if pattern.n_entries == 1 else "entries"
    lines = [f"{n_rows:,} x {n_columns:,}, {pattern.n_entries:,} {noun} ({share:.2%}), at most {pattern.most:,} a row"]
    if pattern.dense:
        lines.append(f"dense where nothing better is known: {', '.join(pattern.dense)}")
    cells = _blocks(pattern, _TEXT[1], _TEXT[0])
    lines += ["".join("*" if cell else "." for cell in row) for row in cells]
    return "".join(f"{line}\n" for line in lines)


def beside(row: Any, col: Any, shape: Any) -> tuple[str, str]:
    """A picture of where entries are, and a line that says what it shows."""
    pattern = Sparsity(sparse.csr_array((np.ones(row.size, bool), (row, col)), shape=tuple(int(n) for n in shape)))
    return _svg(_blocks(pattern, _PICTURE, _PICTURE), pattern).decode(), text(pattern).splitlines()[0]


def _blocks(pattern: Sparsity, most_rows: int, most_columns: int) -> Any:
    """Which blocks of the matrix have an entry: at most `most_rows` x `most_columns` blocks."""
    n_rows, n_columns = pattern.shape
    step = max(-(-n_rows // most_rows), -(-n_columns // most_columns), 1)
    cells = np.zeros((-(-n_rows // step), -(-n_columns // step)), bool)
    cells[pattern.row // step, pattern.col // step] = True
    return cells


def _svg(cells: Any, pattern: Sparsity) -> bytes:
    height, width = cells.shape
    path = "".join(f"M{x} {y}h1v1h-1z" for y, x in np.argwhere(cells).tolist())
    title = f"{pattern.shape[0]:,} x {pattern.shape[1]:,}, {pattern.n_entries:,} entries"
    box = f'viewBox="-.5 -.5 {width + 1} {height + 1}" width="{min(4 * width, 800)}"'
    frame = f'<rect width="{width}" height="{height}" fill="white" stroke="gray" stroke-width=".2"/>'
    drawn = f'<svg xmlns="http://www.w3.org/2000/svg" {box}><title>{title}</title>{frame}<path d="{path}" fill="#1f4e8c"/></svg>\n'
    return drawn.encode()


def _png(cells: Any) -> bytes:
    """Black on white, four pixels a cell, one bit a pixel (PNG, section 11)."""
    pixels = np.kron(cells, np.ones((4, 4), bool))
    rows = np.packbits(~pixels, axis=1)
    data = zlib.compress(np.hstack([np.zeros((rows.shape[0], 1), np.uint8), rows]).tobytes(), 9)
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 1, 0, 0, 0, 0)

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
