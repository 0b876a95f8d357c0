"""Files compressed by gzip or Zstandard: told by their first bytes when read, and by their suffix when written.

What a file decompresses to is bounded, whatever it claims, and so are the objects that are made of it: a small one may stand for
more than memory holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any, Protocol

from tidu_cli.errors import DocumentError, LimitError, TiduError
from tidu_cli.limits import format_size, limits, more_than

SUFFIXES = {".gz": "gzip", ".zst": "zstd"}
"""The compression that the last suffix of a file's name stands for."""

N_MAGIC = 4
"""The first bytes that tell a compressed file."""

_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}

_AT_ONCE = {"gzip": 2**14, "zstd": 2**10}
"""So many compressed bytes are read at once: none becomes more than about 1000 in gzip and 32,000 in Zstandard."""

SMALL = 2**28
"""So many bytes of objects may be made of any compressed file, where no limit of memory is set."""

RATIO = 1000
"""Bytes of objects allowed for each byte of the file. Random digits need 100; only repetitive data need more."""

PER_ENTRY, PER_KEY = 80, 160
"""The bytes that Python takes for an entry of a list or an object, a number or an empty list; and for a key, with its table."""

_GZIP = 31  # what zlib calls a window of 32 KiB, within gzip's header and sum


class CompressionError(OSError):
    """A compressed file cannot be read, as files cannot for other reasons; `kind` is the error that users get, with its name."""

    def __init__(self, message: str, kind: type[TiduError] = DocumentError) -> None:
        super().__init__(message)
        self.kind = kind


class _Readable(Protocol):
    def read(self, n: int, /) -> bytes: ...


def compression_of(first: bytes) -> str | None:
    """The compression that a file of these first bytes has."""
    return next((name for magic, name in _MAGIC.items() if first.startswith(magic)), None)


class Unpacked:
    """What a compressed file holds, to be read. Raises CompressionError where it is damaged, and before it is too much."""

    def __init__(self, file: _Readable, compression: str) -> None:
        self.n_packed = 0
        self._file = file
        self._parts = _unpacked(self._counted, compression)
        self._rest = b""

    def _counted(self, n: int) -> bytes:
        data = self._file.read(n)
        self.n_packed += len(data)
        return data

    def require_room(self, made: int) -> None:
        """Raises CompressionError if objects of this size are more than the bytes read so far may stand for."""
        chosen = limits()
        allowed = chosen.bytes() if chosen.memory is not None else min(chosen.bytes(), max(SMALL, RATIO * self.n_packed))
        if made > allowed:
            told = f"stands for numbers and objects of about {format_size(made)}"
            raise CompressionError(f"{told}, {more_than('memory', allowed)}", LimitError)

    def read(self, n: int = -1) -> bytes:
        """The next `n` bytes, fewer at the end; all for a negative number."""
        parts, length = [self._rest], len(self._rest)
        while n < 0 or length < n:
            if not (part := next(self._parts, b"")):
                break
            parts.append(part)
            length += len(part)
        data = b"".join(parts)
        self._rest = data[n:] if n >= 0 else b""
        return data[:n] if n >= 0 else data


def _unpacked(read: Callable[[int], bytes], compression: str) -> Iterator[bytes]:
    """The pieces that a file decompresses to: of one frame after the other, as both formats have it."""
    new, failure = _decompressors(compression)
    room = allowed = limits().bytes()
    data, inner = b"", None
    try:
        while data := data or read(_AT_ONCE[compression]):
            if inner is None:
                inner = new()
            part = inner.decompress(data)
            room -= len(part)
            if room < 0:
                raise CompressionError(f"decompresses to {more_than('memory', allowed)}", LimitError)
            if part:
                yield part
            data = b""
            if inner.eof:
                data, inner = inner.unused_data, None
                if compression == "gzip":
                    data = data.lstrip(b"\0")  # which tapes and some programs fill up with
    except failure as error:
        raise CompressionError(f"malformed {compression}: {error}") from None
    if inner is not None:
        raise CompressionError(f"malformed {compression}: it ends too early")


def packed(pieces: Iterable[bytes | memoryview], compression: str) -> Iterator[bytes]:
    """Pieces compressed: the same pieces, the same bytes, without a time or a name. Raises CompressionError without a library."""
    compressor = _compressor(compression)
    for piece in pieces:
        yield compressor.compress(piece)
    yield compressor.flush()


def require_library(compression: str | None) -> None:
    """Raises CompressionError, with what helps, if files of this compression can be neither read nor written here."""
    if compression == "zstd":
        _zstd()


def _zstd() -> tuple[Any, bool]:
    """The library for Zstandard, and whether it is Python's own."""
    for name in ("compression.zstd", "zstandard"):
        with suppress(ImportError):
            return import_module(name), name != "zstandard"
    raise CompressionError("Zstandard needs Python 3.14, or a package: pip install 'tidu[zstd]'")


def _decompressors(compression: str) -> tuple[Callable[[], Any], type[Exception]]:
    """What makes a decompressor of one frame, and what that raises."""
    if compression == "gzip":
        import zlib

        return lambda: zlib.decompressobj(_GZIP), zlib.error
    zstd, is_own = _zstd()
    return zstd.ZstdDecompressor if is_own else lambda: zstd.ZstdDecompressor().decompressobj(), zstd.ZstdError


def _compressor(compression: str) -> Any:
    """A compressor, whose result has a checksum."""
    if compression == "gzip":
        import zlib

        return zlib.compressobj(wbits=_GZIP)
    zstd, is_own = _zstd()
    if is_own:
        return zstd.ZstdCompressor(options={zstd.CompressionParameter.checksum_flag: 1})
    return zstd.ZstdCompressor(write_checksum=True).compressobj()
