"""What the suffixes of a file's name stand for: a format, and after it a compression, as in f.json.gz."""

from __future__ import annotations

import os

from tidu_cli.formats import compression
from tidu_cli.installed import OWN_FORMATS, OWN_SUFFIXES, brought_with_suffix

FORMATS = {
    ".json": "json",
    ".msgpack": "msgpack",
    **OWN_SUFFIXES,
    ".csv": "csv",
    ".txt": "table",
    ".npy": "npy",
    ".npz": "npz",
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
