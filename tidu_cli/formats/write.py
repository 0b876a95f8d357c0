"""Documents to bytes, deterministic byte for byte, piece by piece."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, BinaryIO, TypeVar

from tidu_cli.errors import DocumentError, Remedy
from tidu_cli.formats.compression import SUFFIXES, packed
from tidu_cli.formats.files import OWN, Kind, is_overwriting, kind_read, one_line_errors
from tidu_cli.formats.nodes.listed import GraphWriter, with_meta
from tidu_cli.graph.closed import MAX_GRAPH_NESTING, TOO_DEEP, graphs_of, nodes_written_out
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import key_to_json, passes_to_json
from tidu_cli.graph.sizes.open import are_there_open_sizes
from tidu_cli.graph.types import RecordType
from tidu_cli.installed import blaming, format_named
from tidu_cli.lax.vocabulary import used_definitions, used_records
from tidu_cli.limits import require
from tidu_cli.port_data import Piece, Written
from tidu_cli.rules.recording.conversion import view_data
from tidu_cli.streams import data_stream, is_stdout
from tidu_cli.watching import watch

# Bytes to files and pipes, in one piece or not at all.


T = TypeVar("T")

AT_ONCE = 2**16
"""So many bytes are written at once, where there are as many: what a pipe holds."""


def require_replaceable(path: str, kind: Kind = "data") -> None:
    """Raises DocumentError if something that is to stay lies where a file of this kind is to be written, or where a folder would.

    That is what the command has read as another kind, or as values or a library; and a document, unless a document replaces it.
    """
    if path.endswith(os.sep):
        raise DocumentError(f"{path}: ends in a slash, which means a folder, and a file is written; leave out the slash")
    if is_overwriting() or not os.path.isfile(path):
        return
    from tidu_cli.formats.detect import holds_document

    way = f"give another name, or {Remedy('force', True, python='remove it before')}"
    read = kind_read(path)
    if read is not None and not (read == kind != "data"):
        raise DocumentError(f"{path}: is read, too, and would be replaced by something else; {way}")
    if kind == "data" and holds_document(path):
        raise DocumentError(f"{path}: holds a document, and the result is none; {way}")


def write_pieces(pieces: Iterable[Piece], path: str | None, kind: Kind = "data") -> int:
    """Write what may be made meanwhile to a file, or to stdout for None and "-"; give its length.

    A file is replaced at once when all is written, under its old permissions, and left as it was if anything fails.
    It is compressed where the path ends in .gz or .zst. A link stays a link: the file that it points to is replaced. Devices and
    pipes are written to directly. Raises DocumentError, also as `require_replaceable`; BrokenPipeError if the reader has gone.
    """
    with one_line_errors("stdout" if is_stdout(path) else str(path), "write"):
        if path is None or is_stdout(path):
            stdout = data_stream()
            if stdout is None:
                raise DocumentError("stdout: is closed")
            return _write(stdout.buffer, pieces)
        require_replaceable(path, kind)
        if compression := SUFFIXES.get(os.path.splitext(path)[1].lower()):
            pieces = packed(pieces, compression)
        if _is_special(path):
            with open(path, "wb") as file:
                return _write(file, pieces)
        from tidu_cli.formats.replacing import replace  # not for pipes

        return replace(os.path.realpath(path), lambda file: _write(file, pieces))


def write_first(pieces: Iterable[Piece], path: str, rest: Callable[[], T], kind: Kind = "data") -> T:
    """Write to a file, and then do the rest; give what that gives. If it fails, the file is as it was. Raises likewise."""
    results: list[T] = []

    def both() -> Iterator[Piece]:
        yield from pieces
        results.append(rest())  # after which the file is complete, and gets its name

    write_pieces(both(), path, kind)
    return results[0]


def _write(file: BinaryIO, pieces: Iterable[Piece]) -> int:
    length = 0
    for piece in _gathered(pieces):
        rest = memoryview(piece).cast("B")
        length += len(rest)
        while rest:  # An unbuffered stdout, as with PYTHONUNBUFFERED, may take a part only.
            rest = rest[file.write(rest) :]
    file.flush()
    return length


def _gathered(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces, the small ones joined. So a reader like `head`, which goes when it has seen enough, has all of a small file."""
    small: list[Piece] = []
    size = 0
    for piece in pieces:
        small.append(piece)
        size += memoryview(piece).nbytes
        if size >= AT_ONCE:
            yield b"".join(small) if len(small) > 1 else piece
            small, size = [], 0
    yield b"".join(small)


def _is_special(path: str) -> bool:
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


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
        from tidu_cli.formats.msgpack import pieces

        return pieces(heading(document), writers, after, watched)
    from tidu_cli.formats.json import texts

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
    if (format_ := format_named(format)) and not format_.binary:  # people write text by hand, too
        _require_own(path, "")
    return write_written(lambda beside: _written(document, format, beside, how), path)


def write_written(make: Callable[[str | None], Written], path: str) -> int:
    """Write what an adapter makes of the name that a second file would have. Raises as `write_pieces` does."""
    if is_stdout(path):
        return write_pieces(make(None).pieces, path, "document")
    beside = f"{os.path.basename(path)}.data"
    written = make(beside)
    if written.beside is None:
        return write_pieces(written.pieces, path, "document")
    data = os.path.join(os.path.dirname(path), written.name or beside)
    if written.name:
        _require_own(data)
    return write_first(written.beside, data, lambda: write_pieces(written.pieces, path, "document"), "weights")


def _require_own(path: str, too: str = " too,") -> None:
    """Raises DocumentError for a file that tidu did not write; for one whose name nobody gave it says that, `too`."""
    if is_overwriting() or not os.path.isfile(path) or not os.path.getsize(path):
        return
    from tidu_cli.formats.detect import holds_document

    if not holds_document(path):
        way = f"give another name, or {Remedy('force', True, python='remove it before')}"
        raise DocumentError(f"{path}: would be replaced,{too} and tidu did not write it; {way}")


def _written(document: Document, name: str, beside: str | None, options: Mapping[str, Any]) -> Written:
    if (format_ := format_named(name)) is None:
        raise ValueError(f"unknown format {name!r}")
    with blaming(name):
        return format_.write(document, beside, options)


def heading(document: Document) -> dict[str, object]:
    """The fields before the graphs."""
    fields = with_meta({"tidu": 1}, document.meta)
    if are_there_open_sizes():
        from tidu_cli.graph.open_sizes import bounds_to_file

        fields |= bounds_to_file(document)
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
    entries = [{"input": key_to_json(b.key), "value": [b.graph, b.value]} for b in document.bindings]
    return {"bindings": entries} if entries else {}
