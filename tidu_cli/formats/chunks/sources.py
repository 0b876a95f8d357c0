"""Arrays in files of which parts are read: npy, npz, zarr, and directories of these.

A source is small, and says where the array lies: it travels to other processes, which see the same files, and read there.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from bisect import bisect_left, bisect_right
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tidu_cli.errors import DocumentError, UnknownNameError, counted, did_you_mean
from tidu_cli.formats.chunks.npy import located, members_of, native, zarr_sources
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.select import listed
from tidu_cli.limits import require

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Source(Protocol):
    """An array in files."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""

    @property
    def dtype(self) -> str:
        """Its dtype, in NumPy's words: "<f8"."""

    def read(self, start: int, stop: int, axis: int = 0) -> NDArray[Any]:
        """Its entries from `start` to `stop` along an axis, in memory of their own. Raises DocumentError naming the file.

        Of a single number, which has no axis, it.
        """

    def files(self, start: int, stop: int, axis: int = 0) -> tuple[str, ...]:
        """The files, or directories of them, that these entries lie in."""


def source_of(path: str) -> Source:
    """The array at FILE.npy, FILE.npz:NAME, DIR.zarr, DIR.zarr:NAME, or in a directory of numbered chunks.

    Where a file holds one array alone, its name may be left out. Raises DocumentError, UnknownNameError.
    """
    place, name = (path, "") if os.path.exists(path) or ":" not in path else path.rsplit(":", 1)
    arrays = sources_of(place)
    if name and name not in arrays:
        raise UnknownNameError(f"{place}: no array '{name}'{did_you_mean(name, list(arrays))} (arrays: {listed(list(arrays))})")
    if not name and len(arrays) != 1:
        first = next(iter(arrays))
        raise DocumentError(f"{place}: holds {counted(len(arrays), 'array')} ({listed(list(arrays))}); say which: {place}:{first}")
    return arrays[name] if name else next(iter(arrays.values()))


def sources_of(path: str) -> dict[str, Source]:
    """The arrays of a file or directory by name; the one of a .npy file has its name. Raises DocumentError."""
    if not os.path.exists(path):
        raise DocumentError(f"{path}: no such file or directory")
    try:
        if not os.path.isdir(path):
            return _of_file(path)
        if any(os.path.exists(os.path.join(path, mark)) for mark in ("zarr.json", ".zarray", ".zgroup")):
            return dict(zarr_sources(path))
        return _of_directory(path)
    except OSError as error:
        raise DocumentError(f"{error.filename or path}: {error.strerror or error}") from None


def _of_file(path: str) -> dict[str, Source]:
    if path.endswith(".npz"):
        return dict(members_of(path))
    if path.endswith(".npy"):
        return {Path(path).stem: located(path)}
    raise DocumentError(f"{path}: parts are read of .npy and .npz files, zarr, and directories of these; convert it to one of them")


_NUMBERED = re.compile(r"(.*?)(\d+)\.(npy|npz)")


def _of_directory(path: str) -> dict[str, Source]:
    """Numbered files are chunks of arrays along their first axis; files of other names hold an array each."""
    names = sorted(n for n in os.listdir(path) if n.endswith((".npy", ".npz")) and not n.startswith("."))
    if not names:
        raise DocumentError(f"{path}: holds no .npy or .npz files, and is not a zarr array or group")
    series: dict[tuple[str, str], list[tuple[int, str]]] = {}
    sources: dict[str, Source] = {}
    for name in names:
        numbered = _NUMBERED.fullmatch(name)
        if numbered:
            series.setdefault((numbered[1].rstrip("-_."), numbered[3]), []).append((int(numbered[2]), name))
        else:
            sources |= _of_file(os.path.join(path, name))
    for (prefix, suffix), files in series.items():
        files.sort()
        for (before, name), (number, _) in pairwise(files):
            if number != before + 1:
                told = "is there twice" if number == before else "is missing"
                raise DocumentError(f"{os.path.join(path, name)}: chunk {before if number == before else before + 1} {told}")
        parts = [_of_file(os.path.join(path, name)) for _, name in files]
        if suffix == "npy":
            sources[prefix or Path(path).stem] = joined(path, [next(iter(p.values())) for p in parts], [name for _, name in files])
        else:
            for key in parts[0]:
                lacking = next((name for p, (_, name) in zip(parts, files, strict=True) if key not in p), None)
                if lacking:
                    raise DocumentError(f"{os.path.join(path, lacking)}: no array '{key}', which {files[0][1]} has")
                sources[key] = joined(path, [p[key] for p in parts], [name for _, name in files])
    return sources


def absolute(source: Source) -> Source:
    """The same array for processes that work in other directories."""
    if isinstance(source, Joined):
        return replace(source, parts=tuple(map(absolute, source.parts)))
    return replace(source, path=os.path.abspath(source.path))  # type: ignore[attr-defined]


def whole(source: Source) -> NDArray[Any]:
    """All of an array. Raises LimitError if memory does not hold it, DocumentError."""
    import numpy as np

    (file, *_) = source.files(0, 1)
    require("memory", math.prod(source.shape) * np.dtype(source.dtype).itemsize, file)
    return source.read(0, source.shape[0] if source.shape else 1)


STAMP = 8


def stamp(file: str) -> bytes:
    """As many bytes as `STAMP` that are others when a file, or of a directory one in it, was changed, or put where it is.

    They follow from times, sizes, and from where links lead: not from contents, which may be large. Raises DocumentError.
    """
    try:
        told = hashlib.blake2b(os.path.realpath(file).encode(errors="surrogateescape"), digest_size=STAMP)
        told.update(_state(file))
        for folder, folders, names in os.walk(file):
            folders.sort()
            for name in sorted(names):
                told.update(name.encode(errors="surrogateescape") + _state(os.path.join(folder, name)))
    except OSError as error:
        raise DocumentError(f"{error.filename or file}: {error.strerror}") from None
    return told.digest()


def _state(path: str) -> bytes:
    status = os.stat(path)
    return f" {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}\n".encode()


class Joined(Frozen, slots=False):
    """Arrays one after the other along their first axis; the k-th begins at entry `starts[k]`."""

    parts: tuple[Source, ...]
    starts: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str

    def read(self, start: int, stop: int, axis: int = 0) -> NDArray[Any]:
        """As `Source` says."""
        import numpy as np

        if axis:
            return np.concatenate([part.read(start, stop, axis) for part in self.parts])
        arrays = [part.read(max(start, a) - a, min(b, stop) - a) for part, a, b in self._holding(start, stop)]
        return np.concatenate(arrays) if arrays else np.empty((0, *self.shape[1:]), native(self.dtype))

    def files(self, start: int, stop: int, axis: int = 0) -> tuple[str, ...]:
        """As `Source` says."""
        chosen = self.parts if axis else [part for part, _, _ in self._holding(start, stop)]
        return tuple(file for part in chosen for file in part.files(0, 0))

    def _holding(self, start: int, stop: int) -> list[tuple[Source, int, int]]:
        """The parts with entries from `start` to `stop`, and where each begins and ends."""
        first = bisect_right(self.starts, start) - 1
        last = min(bisect_left(self.starts, stop), len(self.parts))
        return [(self.parts[k], self.starts[k], self.starts[k + 1]) for k in range(first, last)]


def joined(path: str, parts: list[Source], names: list[str]) -> Source:
    """Arrays as one. Raises DocumentError unless they differ in their first axis at most."""
    first = parts[0]
    for part, name in zip(parts, names, strict=True):
        if not part.shape:
            raise DocumentError(f"{os.path.join(path, name)}: holds a single number, and chunks have a first axis")
        if (part.dtype, part.shape[1:]) != (first.dtype, first.shape[1:]):
            raise DocumentError(
                f"{os.path.join(path, name)}: {part.dtype}{list(part.shape)} does not continue {names[0]}, "
                f"{first.dtype}{list(first.shape)}; chunks differ in their first axis alone"
            )
    starts = tuple(accumulate((part.shape[0] for part in parts), initial=0))
    return Joined(tuple(parts), starts, (starts[-1], *first.shape[1:]), first.dtype)
