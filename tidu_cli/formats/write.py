"""Documents to bytes, deterministic byte for byte, piece by piece."""

from __future__ import annotations

import os
from collections.abc import Iterator

from tidu_cli.errors import DocumentError
from tidu_cli.formats.heading import bindings, heading
from tidu_cli.formats.nodes.writer import GraphWriter
from tidu_cli.formats.output import Piece, write_first, write_pieces
from tidu_cli.graph.closed import MAX_GRAPH_NESTING, TOO_DEEP, graphs_of, nodes_written_out
from tidu_cli.graph.graph import Document
from tidu_cli.limits import require
from tidu_cli.streams import is_stdout
from tidu_cli.watching import watch


def format_document(document: Document, format: str, *, types: bool = False, listed: bool | None = None) -> bytes:
    """Write a document as "json" or "msgpack"; or as "onnx", "mlir" or "mlirbc", which have types and nodes of their own.

    Nodes are a list in JSON and packed in msgpack, unless `listed` says otherwise. `types` gives every node its types.
    A graph whose nodes carry types or meta is always written as a list: packed nodes have no place for them.
    """
    return b"".join(formatted(document, format, types=types, listed=listed))


def formatted(
    document: Document,
    format: str,
    *,
    types: bool = False,
    listed: bool | None = None,
    opset: int | None = None,
    target_version: str | None = None,
) -> Iterator[Piece]:
    """Likewise, in pieces that are made while others have been written: of a large document, without ever holding all.

    `opset` is the operator set of a model of ONNX, `target_version` the version of StableHLO of a portable artifact.
    """
    if format == "onnx":
        from tidu_cli.formats.onnx.writing.model import onnx_bytes

        return iter((onnx_bytes(document) if opset is None else onnx_bytes(document, opset=opset),))
    if format in ("mlir", "mlirbc"):
        from tidu_cli.formats.stablehlo.writing.files import stablehlo_artifact, stablehlo_text

        return iter((stablehlo_text(document) if format == "mlir" else stablehlo_artifact(document, target_version),))
    if format not in ("json", "msgpack"):
        raise ValueError(f"unknown format {format!r}")
    _require_readable(document)
    binary = format == "msgpack"
    writers = [
        GraphWriter(document, graph, binary=binary, types=types, listed=not binary if listed is None else listed)
        for graph in document.graphs
    ]
    watched = watch("writing", sum(w.graph.n_nodes for w in writers if w.listed))
    after = bindings(document)
    if binary:
        from tidu_cli.formats.msgpack.writer import pieces

        return pieces(heading(document), writers, after, watched)
    from tidu_cli.formats.json.writer import texts

    return map(str.encode, texts(heading(document), writers, after, watched))


def _require_readable(document: Document) -> None:
    """Raises LimitError for a graph of more nodes than readers take, DocumentError for graphs that nest deeper than they go."""
    for graph in document.graphs:
        require("nodes", nodes_written_out(graph.code, graph.cases), f"graph '{graph.name}', with the graphs within its nodes")
    deep = {code for code, case in enumerate(document.cases.cases) if any(g.depth > MAX_GRAPH_NESTING for g in graphs_of([case]))}
    for graph in document.graphs if deep else ():
        for node, code in enumerate(graph.code):
            if code in deep:
                raise DocumentError(f"{graph.describe(node)}: {TOO_DEEP}")


def write_document(
    document: Document,
    path: str | None,
    format: str,
    *,
    types: bool = False,
    listed: bool | None = None,
    opset: int | None = None,
    target_version: str | None = None,
) -> int:
    """Write a document to a file, or to stdout for None and "-"; give its length. Raises as `write_pieces` does.

    A model of ONNX that is too large for one file has its constants beside it, in PATH.data: there are both files, or neither.
    """
    if format != "onnx" or path is None or is_stdout(path):
        pieces = formatted(document, format, types=types, listed=listed, opset=opset, target_version=target_version)
        return write_pieces(pieces, path, "document")
    from tidu_cli.formats.onnx.writing.model import onnx_files

    location = f"{os.path.basename(path)}.data"
    model, beside = onnx_files(document, location) if opset is None else onnx_files(document, location, opset)
    if not beside:
        return write_pieces((model,), path, "document")
    data = os.path.join(os.path.dirname(path), location)
    return write_first((beside,), data, lambda: write_pieces((model,), path, "document"), "weights")
