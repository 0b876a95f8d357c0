"""Bytes to files and pipes, in one piece or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, TypeVar

from tidu_cli.errors import DocumentError, Remedy
from tidu_cli.formats.compression import SUFFIXES, packed
from tidu_cli.formats.files import one_line_errors
from tidu_cli.formats.occupants import Kind, is_overwriting, kind_read
from tidu_cli.port_data import Piece
from tidu_cli.streams import data_stream, is_stdout

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
    found: list[T] = []

    def both() -> Iterator[Piece]:
        yield from pieces
        found.append(rest())  # after which the file is complete, and gets its name

    write_pieces(both(), path, kind)
    return found[0]


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
