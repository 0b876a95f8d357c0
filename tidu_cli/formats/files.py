"""Files and pipes: bytes in, what is wrong with them in words, which were read, and what suffixes stand for."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from io import BytesIO
from typing import Any, BinaryIO, Literal, TypeVar

from tidu_cli.errors import DocumentError, TiduError, placed, printable
from tidu_cli.formats import compression
from tidu_cli.formats.compression import N_MAGIC, PER_ENTRY, PER_KEY, CompressionError, Unpacked, compression_of
from tidu_cli.installed import OWN_FORMATS, OWN_SUFFIXES, brought_with_suffix

# The words of errors in files: one printable line, with no more of a broken file than a few words.


T = TypeVar("T", bound=Hashable)

MAX_MESSAGE = 600
"""Messages are cut to this length: they quote names, which may be of any length in a broken file."""


def one_line(message: str) -> str:
    """`message` as one printable line of limited length: other characters are escaped, and of a long one the middle is left out."""
    if len(message) <= MAX_MESSAGE and len(line := printable(message)) <= MAX_MESSAGE:
        return line
    start, end = printable(message[:MAX_MESSAGE])[: 2 * MAX_MESSAGE // 3], printable(message[-MAX_MESSAGE:])
    return f"{start} ... {end[5 - MAX_MESSAGE // 3 :]}"


def shown(value: object) -> str:
    """A part of a broken file as a message quotes it: as JSON, and no longer than a few words."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (RecursionError, ValueError):
        return "that"
    return text if len(text) <= 80 else text[:77] + "..."


@contextmanager
def naming(place: str) -> Iterator[None]:
    """What goes wrong in the block is told with its place before it, as a DocumentError.

    An error that begins with a place of its own, within the node of `place`, has both in one: `node 3 (scan), body, node 7`.
    """
    try:
        yield
    except TiduError as error:
        raise DocumentError(placed(place.removesuffix(": "), error) if place.endswith(": ") else f"{place}{error}") from None


def repeated(keys: Iterable[T]) -> T | None:
    """The first key that occurs before: in one walk, as objects may have a million keys. None if there is none."""
    seen: set[T] = set()
    for key in keys:
        if key in seen:
            return key
        seen.add(key)
    return None


# Which files a command has read, and as what: a result is not to take their place by mistake.


Kind = Literal["document", "weights", "data"]
"""What a file is for a command: a document, the weights beside a model of ONNX, or anything else, such as values or a library."""

_noted: ContextVar[dict[tuple[int, int], Kind] | None] = ContextVar("_noted", default=None)

_overwriting: ContextVar[bool] = ContextVar("_overwriting", default=False)


@contextmanager
def noting(*, overwriting: bool = False) -> Iterator[None]:
    """Within the block files that are read are noted; with `overwriting` results may replace them, and any other file."""
    tokens = _noted.set({}), _overwriting.set(overwriting)
    try:
        yield
    finally:
        _noted.reset(tokens[0])
        _overwriting.reset(tokens[1])


def is_overwriting() -> bool:
    """Whether results may replace whatever is there."""
    return _overwriting.get()


def note_read(file: Any, kind: Kind = "data") -> None:
    """Note that a file, open or by its path, is read. What is no regular file is never replaced."""
    noted = _noted.get()
    if noted is None:
        return
    with suppress(OSError, AttributeError, ValueError):  # what has no descriptor is no file
        state = os.stat(file if isinstance(file, str) else file.fileno())
        if stat.S_ISREG(state.st_mode):
            place = state.st_dev, state.st_ino
            noted[place] = kind if noted.get(place, kind) == kind else "data"


def kind_read(path: str) -> Kind | None:
    """What a file was read as, by whatever name or link; None if it was not read."""
    state = os.stat(path)
    return (_noted.get() or {}).get((state.st_dev, state.st_ino))


ASKED = 2**20
"""Bytes of objects that are made until it is asked again whether there is room."""

_JSON = rb"[ \t\n\r]*[{\[]"


class Source:
    """What is read. Its beginning can be looked at first; so a reader is chosen, and bytes need not be held by those who choose.

    Reading raises OSError, as the file does.
    """

    def __init__(self, file: BinaryIO | bytes, path: str | None = None, *, unpacked: bool = False) -> None:
        """With `unpacked`, what is compressed is read as what it holds."""
        self._file: BinaryIO | Unpacked = BytesIO(file) if isinstance(file, bytes) else file
        self._to_unpack = unpacked
        self._head = b""
        self.path = path
        """The file's path, None for what comes from elsewhere: models of ONNX have data in files beside them."""
        self.n_read = 0
        """The number of bytes that have been read."""
        self._made = self._asked = 0

    def head(self, n: int) -> bytes:
        """The next `n` bytes, or all if there are fewer. They are still to be read."""
        self._look()
        if len(self._head) < n:
            self._head += self._file.read(n - len(self._head))
        return self._head[:n]

    def read(self, n: int = -1) -> bytes:
        """The next `n` bytes, or all if there are fewer or `n` is negative."""
        self._look()
        if self._head:
            data, self._head = (self._head, b"") if n < 0 else (self._head[:n], self._head[n:])
            data = _joined(data, self._file) if n < 0 else data + self._file.read(n - len(data))
        else:
            data = self._file.read(n)
        self.n_read += len(data)
        return data

    @property
    def is_compressed(self) -> bool:
        """Whether what is read is decompressed, as its head has told."""
        return isinstance(self._file, Unpacked)

    def require_room(self, made: int) -> None:
        """Raises CompressionError if this is compressed and too small to stand for objects of this size."""
        if isinstance(self._file, Unpacked):
            self._file.require_room(made)

    def require_room_for_json(self, text: bytes | bytearray) -> None:
        """Likewise, if this is JSON, as it will be parsed: told by the signs in it, of which strings have few."""
        if isinstance(self._file, Unpacked):
            entries, keys = sum(map(text.count, (b",", b"[", b"{"))), text.count(b":")
            self._file.require_room(2 * len(text) + PER_ENTRY * entries + PER_KEY * keys)

    def require_room_for_msgpack(self, data: bytes) -> None:
        """Likewise, if this is msgpack: counted by going over it, with no list kept but the one that is being read."""
        if not self.is_compressed:
            return
        import msgpack

        with suppress(ValueError, msgpack.UnpackException):  # of which its reader will tell
            msgpack.unpackb(data, list_hook=self.count, object_pairs_hook=self.count)

    def count(self, entries: Sized) -> None:
        """Likewise, of a list or an object that was made of it, beside those before."""
        self._made += PER_ENTRY * (len(entries) + 1)
        if self._made > self._asked:
            self.require_room(self._made)
            self._asked = self._made + ASKED

    def _look(self) -> None:
        """See whether it is compressed. Not before something is to be read: until then nobody waits for a pipe."""
        if not self._to_unpack:
            return
        self._to_unpack = False
        if compression := compression_of(self.head(N_MAGIC)):
            whole, self._head = Resumed(self._head, self._file.read), b""
            self._file = Unpacked(whole, compression)


def _joined(head: bytes, file: BinaryIO | Unpacked) -> bytes:
    """The head and the rest of a file, which is held once."""
    whole = BytesIO()
    whole.write(head)
    while part := file.read(ASKED):
        whole.write(part)
    return whole.getvalue()


class Resumed:
    """A file whose first bytes have been read, to be read again from its beginning. `more` reads what follows them."""

    def __init__(self, head: bytes, more: Callable[[int], bytes]) -> None:
        self._head, self._more = head, more

    def read(self, n: int) -> bytes:
        """The next `n` bytes; the head alone."""
        head, self._head = self._head, b""
        return head or self._more(n)


@contextmanager
def reading(path: str, kind: Kind = "data") -> Iterator[Source]:
    """The bytes of a file, or of stdin for "-", to be read in the block. Raises DocumentError if they cannot be read.

    `kind` says what the command takes it for, as `occupants` has it.
    """
    with one_line_errors("stdin" if path == "-" else path, "read"), _opened(path) as file:
        note_read(file, kind)
        yield Source(file, None if path == "-" else path, unpacked=True)


def read_bytes(path: str) -> bytes:
    """All bytes of a file, or of stdin for "-". Raises DocumentError if there are none or they cannot be read."""
    where = "stdin" if path == "-" else path
    with reading(path) as source:
        if source.head(1) == b"\0":  # a device, perhaps, which has no end
            raise DocumentError(f"{where}: begins with a byte 0, as no format that tidu reads does")
        data = source.read()
        if re.match(_JSON, data):
            source.require_room_for_json(data)
        elif is_msgpack_map(data):
            source.require_room_for_msgpack(data)
        elif path.lower().endswith((".csv.gz", ".csv.zst")):
            source.require_room(2 * len(data) + 2 * PER_ENTRY * (data.count(b",") + data.count(b"\n")))
    if not data:
        table = path.lower().endswith((".csv", ".csv.gz", ".csv.zst"))
        expected = "a line of names and lines of numbers" if table else "a document in JSON or msgpack"
        raise DocumentError(f"{where}: empty; expected {expected}")
    return data


def _opened(path: str) -> AbstractContextManager[BinaryIO]:
    if path != "-":
        return open(path, "rb")
    if sys.stdin is None:
        raise DocumentError("stdin: is closed")
    return nullcontext(sys.stdin.buffer)


def is_msgpack_map(data: bytes) -> bool:
    """Whether data begins as a map of msgpack does."""
    return bool(data[:1]) and (0x80 <= data[0] <= 0x8F or data[0] in (0xDE, 0xDF))


@contextmanager
def one_line_errors(where: str, action: str) -> Iterator[None]:
    """Within the block errors of the system are a DocumentError each, which says what could not be read or written."""
    if not _is_path(where):
        raise DocumentError(f"{where!r}: not a path")
    try:
        yield
    except BrokenPipeError:
        raise  # not the user's mistake: `tidu … | head` ends like this
    except FileNotFoundError:
        what = "no such file" if action == "read" else "no such directory"
        raise DocumentError(f"{where}: {what}") from None
    except CompressionError as error:
        raise error.kind(f"{where}: {error}") from None
    except IsADirectoryError:
        raise DocumentError(f"{where}: is a directory") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DocumentError(f"{where}: cannot {action}: {reason}") from None


def _is_path(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


# What the suffixes of a file's name stand for: a format, and after it a compression, as in f.json.gz.


FORMATS = {
    ".json": "json",
    ".msgpack": "msgpack",
    **OWN_SUFFIXES,
    ".csv": "csv",
    ".txt": "table",
    ".npy": "npy",
    ".npz": "npz",
    ".mtx": "mtx",
    ".zarr": "zarr",
    ".dot": "dot",
    ".gv": "dot",
    ".svg": "svg",
    ".png": "png",
    ".pdf": "pdf",
    ".html": "html",
}
"""The format that a suffix stands for. Other packages may bring more."""

OWN = ("json", "msgpack")
"""The formats of documents that are tidu's."""

DOCUMENTS = (*OWN, *OWN_FORMATS)
"""The formats of documents. Other packages may bring more."""


def split(path: str) -> tuple[str, str | None]:
    """The suffix of a path without that of a compression, "" if it has none, and the compression."""
    stem, suffix = os.path.splitext(path.rstrip(os.sep))  # a slash after it says that it is a folder, as zarr is
    packed = compression.SUFFIXES.get(suffix.lower())
    return (os.path.splitext(stem)[1] if packed else suffix), packed


def compressed_too(*suffixes: str) -> tuple[str, ...]:
    """These suffixes, and each of them before that of a compression."""
    return (*suffixes, *(suffix + packed for suffix in suffixes for packed in compression.SUFFIXES))


def format_of(path: str | None) -> str | None:
    """The format that a path's suffix stands for; None where it has none, or one that is of no format."""
    if not path:
        return None
    return FORMATS.get(split(path)[0].lower()) or brought_with_suffix(path)


def is_chunked(path: str | None) -> bool:
    """Whether a path's suffix says that arrays there are put together of chunks, and not in memory."""
    return path is not None and os.path.splitext(path.rstrip(os.sep))[1].lower() in (".zarr", ".npz", ".npy")


def of_formats(formats: tuple[str, ...]) -> str:
    """The suffixes of these formats, as messages list them."""
    *others, last = [suffix for suffix, format_ in FORMATS.items() if format_ in formats]
    return f"{', '.join(others)} or {last}" if others else last
