"""Files that engines keep between processes, in the user's cache directory: what is lost or damaged is made again.

They are code, which is run. So a file counts only if it is a plain one, the user's own, that nobody else may write; and if it is
signed, with its name, by a key of the user's beside it: what was brought from elsewhere is not, nor what has another name.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

VARIABLE = "TIDU_CACHE_DIR"
"""The environment variable that names another directory."""

MOST = 2**30
"""The bytes that files take at most; those of the longest time without use make room for new ones."""

_KINDS = ("native-", "xla-")
"""How the names of files begin, in a directory that may hold others."""

_KEY = "tidu-key"
"""The name of the file of the key."""

_SIZE = 32
"""The bytes of the key, and of a signature."""


def cache_directory() -> Path:
    """Where they lie: $TIDU_CACHE_DIR, else tidu in $XDG_CACHE_HOME, else in ~/.cache."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidu"


def cached(name: str) -> bytes | None:
    """What a file holds, None if there is none that this user has kept under this name, or if it is damaged."""
    try:
        directory = cache_directory()
        data = _read(directory / name)
        key = None if data is None else _read(directory / _KEY)
    except (OSError, RuntimeError):  # there is no home
        return None
    if data is None or key is None or len(key) != _SIZE:
        return None
    kept, signature = data[:-_SIZE], data[-_SIZE:]
    return kept if _signature(key, name, kept) == signature else None


def keep(name: str, data: bytes) -> None:
    """Write a file `xla-...` or `native-...`, all at once. Where that cannot be, nothing is kept."""
    with suppress(OSError, RuntimeError):
        directory = cache_directory()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(directory, name, data + _signature(_key(directory), name, data))
        _make_room(directory)


def _signature(key: bytes, name: str, data: bytes) -> bytes:
    hasher = blake2b(key=key, digest_size=_SIZE)
    hasher.update(name.encode() + b"\0")
    hasher.update(data)
    return hasher.digest()


def _key(directory: Path) -> bytes:
    """The user's key, a new one if there is none. Where two processes make one at once, what one of them keeps is lost."""
    with suppress(OSError):
        key = _read(directory / _KEY)
        if key is not None and len(key) == _SIZE:
            return key
    made = os.urandom(_SIZE)
    _write(directory, _KEY, made)
    return made


def _read(path: Path) -> bytes | None:
    """The bytes of a file of the user's, which is marked as used; None if others may write it, or if it is no file. Raises OSError.

    A pipe is not waited for, and a link not followed.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            return None
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
            return None
        with suppress(OSError):  # where nothing can be written
            os.utime(descriptor if os.utime in os.supports_fd else path)
        return file.read()


def _write(directory: Path, name: str, data: bytes) -> None:
    """Put a file in its place, all at once, which only the user reads. Raises OSError."""
    descriptor, path = tempfile.mkstemp(dir=directory, prefix=f"{name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(path, directory / name)
    except OSError:
        os.unlink(path)
        raise


def _make_room(directory: Path) -> None:
    """Remove files, those first that were used last the longest ago, until the rest take `MOST` bytes."""
    with os.scandir(directory) as entries:
        files = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries if entry.name.startswith(_KINDS)]
    size = sum(status.st_size for status, _ in files)
    for status, path in sorted(files, key=lambda file: file[0].st_mtime_ns):
        if size <= MOST:
            return
        size -= status.st_size
        with suppress(FileNotFoundError):  # another process's was quicker
            os.unlink(path)
