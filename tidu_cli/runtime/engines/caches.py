"""Files that engines keep between processes, in the user's cache directory: what is lost or damaged is made again."""

from __future__ import annotations

import os
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path

VARIABLE = "TIDU_CACHE_DIR"
"""The environment variable that names another directory."""

MOST = 2**30
"""The bytes that files take at most; those of the longest time without use make room for new ones."""

_KINDS = ("native-", "xla-")
"""How the names of files begin, in a directory that may hold others."""

_CHECKSUM = 4


def cache_directory() -> Path:
    """Where they lie: $TIDU_CACHE_DIR, else tidu in $XDG_CACHE_HOME, else in ~/.cache."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidu"


def cached(name: str) -> bytes | None:
    """What a file holds, None if there is none, if it is damaged, or if another user's: what is kept is code."""
    try:
        path = cache_directory() / name
        with open(path, "rb") as file:
            if hasattr(os, "getuid") and os.fstat(file.fileno()).st_uid != os.getuid():
                return None
            data = file.read()
    except (OSError, RuntimeError):  # there is no home
        return None
    with suppress(OSError):  # where nothing can be written
        os.utime(path)
    found, checksum = data[:-_CHECKSUM], data[-_CHECKSUM:]
    return found if zlib.crc32(found).to_bytes(_CHECKSUM, "little") == checksum else None


def keep(name: str, data: bytes) -> None:
    """Write a file `xla-...` or `native-...`, all at once. Where that cannot be, nothing is kept."""
    with suppress(OSError, RuntimeError):
        directory = cache_directory()
        directory.mkdir(parents=True, exist_ok=True)
        descriptor, path = tempfile.mkstemp(dir=directory, prefix=f"{name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data + zlib.crc32(data).to_bytes(_CHECKSUM, "little"))
            os.replace(path, directory / name)
        except OSError:
            os.unlink(path)
            raise
        _make_room(directory)


def _make_room(directory: Path) -> None:
    """Remove files, those first that were used last the longest ago, until the rest take `MOST` bytes."""
    with os.scandir(directory) as entries:
        files = [(entry.stat(), entry.path) for entry in entries if entry.name.startswith(_KINDS)]
    size = sum(found.st_size for found, _ in files)
    for found, path in sorted(files, key=lambda file: file[0].st_mtime_ns):
        if size <= MOST:
            return
        size -= found.st_size
        with suppress(FileNotFoundError):  # another process's was quicker
            os.unlink(path)
