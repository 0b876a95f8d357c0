"""Results that come in chunks, kept until all are there: a directory beside the output, from which the output is put together.

`OUT.partial` holds a manifest, which says what is computed, and a file for each chunk that is done, with a checksum. So nothing at
the output's own name looks whole before it is, and a run that broke off goes on from the chunks that are there. A run that is at
work holds a lock on the manifest.
"""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from tidu_cli.errors import DocumentError, Remedy
from tidu_cli.formats.chunks.npy import new_group, require_zarr
from tidu_cli.formats.replacing import HAS_LOCKS, lock, replace
from tidu_cli.formats.write import require_replaceable
from tidu_cli.frozen import Frozen
from tidu_cli.graph.select import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

Arrays = Mapping[str, "NDArray[Any]"]

SUFFIX = ".partial"
MANIFEST = "manifest.json"
_CHUNK = ".chunk"
_CHECKSUM = 4


def kept() -> str:
    """How one goes on from the chunks that are there."""
    return f"what is done is kept, go on with {Remedy('resume', True)}"


class Manifest(Frozen, slots=False):
    """What a run computes: the names of the arrays, their dtypes in NumPy's words, and the shape of an item in each.

    The items are `size`, in chunks of `chunk`. `identity` says of the document, the inputs and whatever else the results depend on
    which they are, by what they are called in messages.
    """

    arrays: dict[str, tuple[str, tuple[int, ...]]]
    size: int
    chunk: int
    identity: dict[str, str]
    version: int = 1

    def __len__(self) -> int:
        return -(-self.size // self.chunk)

    def items(self, k: int) -> int:
        """How many items chunk k has."""
        return min((k + 1) * self.chunk, self.size) - k * self.chunk


def require_place(path: str, arrays: Mapping[str, tuple[str, tuple[int, ...]]]) -> None:
    """Raises DocumentError if `finish` could not put these arrays, with their dtypes, together at a path."""
    suffix = _suffix(path)
    if suffix == ".npy" and len(arrays) != 1:
        raise DocumentError(f"npy holds one array, and there are {len(arrays)} ({listed(list(arrays))}); choose one, or write npz")
    for name, (dtype, _) in arrays.items():
        if suffix == ".zarr" and "V" in dtype:
            raise DocumentError(f"zarr holds no bf16, which {name} is of; write npz, or convert it to f32 before")


class Sink:
    """The place of the chunks of an output, of which only their writer and one client need know."""

    def __init__(self, path: str, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest
        self.folder = path.rstrip("/") + SUFFIX
        self.damaged: list[int] = []
        """The chunks that were not whole when `done` looked."""
        self._sound: set[int] = set()

    @classmethod
    def create(cls, path: str, manifest: Manifest, *, resume: bool = False) -> Sink:
        """A place for the chunks of an output; with `resume` the one that is there, if there is one of the same work.

        Raises DocumentError where a run broke off that is not to be resumed, another one is at work, or another one's chunks or
        anything else are there; and for what is at the output's name and is not written over.
        """
        sink = cls(path, manifest)
        if _suffix(path) == ".zarr":
            require_zarr()
        if os.path.isdir(path):
            raise DocumentError(f"{path}: there is a directory; remove it, or choose another name")
        if _suffix(path) == ".zarr" and os.path.lexists(path):  # which no directory takes the place of
            raise DocumentError(f"{path}: there is a file; remove it, or choose another name")
        if _suffix(path) != ".zarr":
            require_replaceable(path)
        told = json.dumps(asdict(manifest), indent=1)
        place = os.path.join(sink.folder, MANIFEST)
        if os.path.exists(place):
            with sink.held():
                if not resume:
                    what = f"{sink.folder}: holds what a run has done that broke off: go on with "
                    raise DocumentError(what, Remedy("resume", True), ", or remove it")
                sink._require_same(place, told)
            return sink
        try:
            with suppress(FileExistsError):
                os.mkdir(sink.folder)
            if set(os.listdir(sink.folder)) - {MANIFEST}:  # it is removed when all is done, and with it whatever is there
                raise DocumentError(f"{sink.folder}: there is a directory of something else; remove it, or choose another output")
            with open(place, "x", encoding="utf-8") as file:  # by one of two that begin at once
                file.write(told)
        except FileExistsError:
            raise sink._taken() from None
        except OSError as error:
            with suppress(OSError):
                os.unlink(place)
            with suppress(OSError):
                os.rmdir(sink.folder)
            raise DocumentError(f"{sink.folder}: {error.strerror}") from None
        return sink

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within the block no other run is at work on these chunks. Raises DocumentError if one is, or has just ended."""
        if not HAS_LOCKS:
            yield
            return
        place = os.path.join(self.folder, MANIFEST)
        try:
            descriptor = os.open(place, os.O_RDWR)  # as some file systems lock only what may be written
        except OSError as error:
            raise DocumentError(f"{self.folder}: {error.strerror}") from None
        try:
            if lock(descriptor) is False or not os.path.exists(place):
                raise self._taken()
            yield
        finally:
            os.close(descriptor)

    def _taken(self) -> DocumentError:
        return DocumentError(f"{self.folder}: another run is at work there; wait until it ends, or choose another output")

    def _require_same(self, place: str, told: str) -> None:
        ours = json.loads(told)
        try:
            with open(place, encoding="utf-8") as file:
                theirs = json.load(file)
            mine, its = ours["identity"], theirs["identity"]
            differing = [what for what in {**mine, **its} if mine.get(what) != its.get(what)]
            differing += [_WORDS[name] for name in _WORDS if theirs[name] != ours[name]]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise DocumentError(f"{place}: is damaged; remove {self.folder}, and start again") from None
        if differing:
            raise DocumentError(
                f"{self.folder}: holds what another run has done: the {differing[0]} differs; remove "
                f"{self.folder}, or choose another output"
            )

    def write(self, k: int, arrays: Arrays, stamp: bytes = b"") -> None:
        """Keep the arrays of chunk k, all at once, on the disk, and with them a stamp, which says what they came of.

        Raises DocumentError naming the chunk; others stay.
        """
        data = _packed(self.manifest, k, arrays) + stamp
        try:
            replace(self._file(k), lambda file: file.write(data + _checksum(data, k)))
        except OSError as error:
            raise DocumentError(f"chunk {k}: {self.folder}: {error.strerror}; {kept()}") from None

    def done(self) -> list[int]:
        """The chunks that are there and whole; others are removed."""
        there = [k for k in range(len(self.manifest)) if os.path.exists(self._file(k))]
        whole = [k for k in there if self._is_whole(k)]
        self.damaged = sorted(set(there) - set(whole))
        for k in self.damaged:
            self.discard(k)
        return whole

    def stamp(self, k: int) -> bytes:
        """The stamp of a chunk that is there."""
        with open(self._file(k), "rb") as file:
            file.seek(self._bytes(k))
            return file.read()[:-_CHECKSUM]

    def discard(self, k: int) -> None:
        """Remove a chunk that is there."""
        os.unlink(self._file(k))

    def is_empty(self) -> bool:
        """Whether no chunk is there, whole or not."""
        return not os.path.isdir(self.folder) or not any(name.endswith(_CHUNK) for name in os.listdir(self.folder))

    def remove(self) -> None:
        """Remove all chunks, and the manifest."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def finish(self) -> None:
        """Put the output together, a chunk at a time, and remove the chunks. Raises DocumentError."""
        suffix = _suffix(self.path)
        try:
            if suffix == ".zarr":
                _write_zarr(self)
            elif suffix == ".npz":
                replace(os.path.realpath(self.path), self._write_npz)
            else:
                (name,) = self.manifest.arrays
                replace(os.path.realpath(self.path), lambda file: self._write_npy(file, name))
        except OSError as error:
            raise DocumentError(f"{self.path}: {error.strerror or error}; {kept()}") from None
        self.remove()

    def _file(self, k: int) -> str:
        return os.path.join(self.folder, f"{k}{_CHUNK}")

    def _bytes(self, k: int) -> int:
        """Those of the numbers of chunk k, which its stamp and the checksum come after."""
        return sum(_size(self.manifest, k, name) for name in self.manifest.arrays)

    def _is_whole(self, k: int) -> bool:
        with open(self._file(k), "rb") as file:
            data = file.read()
        return len(data) >= self._bytes(k) + _CHECKSUM and _checksum(data[:-_CHECKSUM], k) == data[-_CHECKSUM:]

    def part(self, k: int, name: str) -> NDArray[Any]:
        """One array of a chunk that is there. Raises DocumentError if it has been damaged since, OSError."""
        import numpy as np

        if k not in self._sound:
            if not self._is_whole(k):
                raise DocumentError(f"chunk {k}: {self._file(k)}: is damaged; {kept()}, which does it again")
            self._sound.add(k)
        names = list(self.manifest.arrays)
        before = sum(_size(self.manifest, k, other) for other in names[: names.index(name)])
        dtype, shape = self.manifest.arrays[name]
        with open(self._file(k), "rb") as file:
            file.seek(before)
            data = file.read(_size(self.manifest, k, name))
        return np.frombuffer(data, dtype).reshape(self.manifest.items(k), *shape)

    def parts(self, name: str) -> Iterator[NDArray[Any]]:
        """One array, chunk after chunk."""
        return (self.part(k, name) for k in range(len(self.manifest)))

    def _write_npy(self, file: IO[bytes], name: str) -> int:
        from numpy.lib import format as npy

        dtype, shape = self.manifest.arrays[name]
        header = {"descr": dtype, "fortran_order": False, "shape": (self.manifest.size, *shape)}
        npy.write_array_header_1_0(file, header)
        return sum(file.write(_numbers(part)) for part in self.parts(name))

    def _write_npz(self, file: BinaryIO) -> int:
        from zipfile import ZipFile, ZipInfo

        with ZipFile(file, "w") as archive:
            for name in self.manifest.arrays:
                info = ZipInfo()  # of the earliest time that zip knows: files are to depend on values alone
                info.filename = info.orig_filename = f"{name}.npy"
                with archive.open(info, "w", force_zip64=True) as member:
                    self._write_npy(member, name)
        return file.tell()


_WORDS = {"arrays": "choice of outputs", "size": "number of items", "chunk": "size of chunks", "version": "version of tidu"}


def _suffix(path: str) -> str:
    return os.path.splitext(path.rstrip("/"))[1].lower()


def _checksum(data: bytes, k: int) -> bytes:
    """Of the bytes of chunk k, which another one's are not taken for."""
    return zlib.crc32(data, k).to_bytes(_CHECKSUM, "little")


def _size(manifest: Manifest, k: int, name: str) -> int:
    """The bytes of an array in chunk k."""
    import numpy as np

    dtype, shape = manifest.arrays[name]
    return manifest.items(k) * math.prod(shape) * np.dtype(dtype).itemsize


def _numbers(array: NDArray[Any]) -> memoryview:
    """What a contiguous array holds, of any dtype: those of times give no buffers."""
    return array.reshape(-1).view("u1").data


def _packed(manifest: Manifest, k: int, arrays: Arrays) -> bytes:
    """The numbers of a chunk's arrays one after the other."""
    import numpy as np

    out = io.BytesIO()
    for name, (dtype, shape) in manifest.arrays.items():
        array = np.ascontiguousarray(arrays[name])
        due = (manifest.items(k), *shape)
        if array.shape != due or array.dtype.str != dtype:
            raise DocumentError(f"chunk {k}: {name} is {array.dtype}{list(array.shape)}, and {dtype}{list(due)} is due")
        out.write(_numbers(array))
    return out.getvalue()


def _write_zarr(sink: Sink) -> None:
    temporary = os.path.join(sink.folder, "output.zarr")
    shutil.rmtree(temporary, ignore_errors=True)
    manifest = sink.manifest
    shapes = {name: (dtype, (manifest.size, *shape)) for name, (dtype, shape) in manifest.arrays.items()}
    group = new_group(temporary, shapes, manifest.chunk)
    for name in manifest.arrays:
        for k in range(len(manifest)):
            start = k * manifest.chunk
            group[name][start : start + manifest.items(k)] = sink.part(k, name)
    os.rename(temporary, sink.path)
