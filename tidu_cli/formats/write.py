"""Documents to bytes, deterministic byte for byte, piece by piece."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from tidu_cli.errors import DocumentError
from tidu_cli.formats.nodes.writer import GraphWriter, with_meta
from tidu_cli.formats.output import write_first, write_pieces
from tidu_cli.formats.suffixes import OWN
from tidu_cli.graph.closed import MAX_GRAPH_NESTING, TOO_DEEP, graphs_of, nodes_written_out
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import key_to_json, passes_to_json
from tidu_cli.graph.types import RecordType
from tidu_cli.installed import blaming, format_named
from tidu_cli.lax.builtin import used_definitions
from tidu_cli.lax.vocabulary import used_records
from tidu_cli.limits import require
from tidu_cli.rules.tangents.views import view_data
from tidu_cli.streams import is_stdout
from tidu_cli.watching import watch

if TYPE_CHECKING:
    from tidu_cli.port_data import Piece, Written


def format_document(document: Document, format: str, **how: Any) -> bytes:
    """Write a document in one piece: as `formatted`."""
    return b"".join(formatted(document, format, **how))


def formatted(
    document: Document, format: str, *, types: bool = False, listed: bool | None = None, **options: Any
) -> Iterable[Piece]:
    """Write a document as "json", "msgpack" or in the format of another system, which has types and nodes of its own.

    It comes in pieces that are made while others have been written: of a large document, without ever holding all. Nodes are a list
    in JSON and packed in msgpack, unless `listed` says otherwise. `types` gives every node its types. A graph whose nodes carry
    types or meta is always written as a list: packed nodes have no place for them. `options` are of the format of another system.
    Raises ValueError for a format that there is not.
    """
    if format not in OWN:
        return _written(document, format, None, options).pieces
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


def write_document(document: Document, path: str | None, format: str, **how: Any) -> int:
    """Write a document to a file, or to stdout for None and "-"; give its length. `how` is as in `formatted`.

    A format that needs a second file, as ONNX does for weights of 2 GiB and more, has it in PATH.data beside the first: there are
    both files, or neither. Raises as `write_pieces` does.
    """
    if format in OWN or path is None or is_stdout(path):
        return write_pieces(formatted(document, format, **how), path, "document")
    beside = f"{os.path.basename(path)}.data"
    written = _written(document, format, beside, how)
    if written.beside is None:
        return write_pieces(written.pieces, path, "document")
    data = os.path.join(os.path.dirname(path), beside)
    return write_first(written.beside, data, lambda: write_pieces(written.pieces, path, "document"), "weights")


def _written(document: Document, name: str, beside: str | None, options: Mapping[str, Any]) -> Written:
    if (found := format_named(name)) is None:
        raise ValueError(f"unknown format {name!r}")
    with blaming(name):
        return found.write(document, beside, options)


def heading(document: Document) -> dict[str, object]:
    """The fields before the graphs."""
    fields = with_meta({"tidu": 1}, document.meta)
    if types := {r.name: _declaration(r) for r in used_records(document)}:
        fields["types"] = types
    codes = chain.from_iterable(graph.code for graph in document.graphs)
    if ops := {d.name: with_meta(d.to_data(), d.meta) for d in used_definitions(document.cases, codes)}:
        fields["ops"] = ops
    if document.passes:
        fields["passes"] = passes_to_json(document.passes)
    return fields


def _declaration(record: RecordType) -> dict[str, object]:
    fields: dict[str, object] = {name: str(field) for name, field in record.fields}
    return {"fields": fields, "views": {v.name: view_data(v) for v in record.views}} if record.views else fields


def bindings(document: Document) -> dict[str, object]:
    """The field after the graphs, if there are bindings."""
    found = [{"input": key_to_json(b.key), "value": [b.graph, b.value]} for b in document.bindings]
    return {"bindings": found} if found else {}
