"""Parts of arrays in files: npy and the members of npz, by where their numbers lie, and zarr."""

from __future__ import annotations

import math
import os
import struct
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any

from tidu_cli.errors import DocumentError
from tidu_cli.formats.detect import read_header
from tidu_cli.formats.files import note_read
from tidu_cli.frozen import Frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Located(Frozen, slots=False):
    """An array whose numbers lie in a file one after the other, from the byte `offset` on, in the order of C or of Fortran."""

    path: str
    offset: int
    dtype: str
    shape: tuple[int, ...]
    fortran: bool = False
    name: str = ""
    header: int = 0
    """The byte at which what says its dtype and shape begins."""

    def read(self, start: int, stop: int, axis: int = 0) -> NDArray[Any]:
        """As `Source` says."""
        import numpy as np

        _require_same(self)
        index = (slice(None),) * axis + (slice(start, stop),) if self.shape else ()
        if not math.prod(self.shape):
            return np.empty(self.shape, native(self.dtype))[index].copy()
        try:
            whole = np.memmap(self.path, self.dtype, "r", self.offset, self.shape, "F" if self.fortran else "C")
        except (OSError, ValueError) as error:
            raise DocumentError(f"{self.path}: {error}") from None
        part = whole[index]
        return np.array(part, native(self.dtype), order="C")

    def files(self, start: int, stop: int, axis: int = 0) -> tuple[str, ...]:
        """As `Source` says."""
        return (self.path,)


class Compressed(Frozen, slots=False):
    """An array in a compressed member of an npz file: all before a part is decompressed to read it."""

    path: str
    member: str
    dtype: str
    shape: tuple[int, ...]

    def read(self, start: int, stop: int, axis: int = 0) -> NDArray[Any]:
        """As `Source` says."""
        import zipfile

        import numpy as np

        if axis:
            raise DocumentError(
                f"{self.path}: {self.member} is compressed, and is read in parts of its first axis alone; write it with np.savez"
            )
        shape = (min(stop, self.shape[0]) - start, *self.shape[1:]) if self.shape else ()
        row = math.prod(self.shape[1:]) * np.dtype(self.dtype).itemsize
        try:
            with _member(self.path, self.member) as file:
                held, _, dtype = _header(file, f"{self.path}: {self.member}")
                require_same(self, held, dtype)
                file.seek(start * row, os.SEEK_CUR)
                data = file.read(math.prod(shape[:1]) * row)
            return np.frombuffer(data, self.dtype).reshape(shape).astype(native(self.dtype))
        except (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile) as error:
            raise DocumentError(f"{self.path}: {self.member} is damaged: {error}") from None

    def files(self, start: int, stop: int, axis: int = 0) -> tuple[str, ...]:
        """As `Source` says."""
        return (self.path,)


def native(dtype: Any) -> Any:
    """A dtype in the order of bytes that the machine has."""
    import numpy as np

    return np.dtype(dtype).newbyteorder("=")


def require_whole(source: Located) -> None:
    """Raises DocumentError if the file ends before the array does."""
    try:
        size = os.path.getsize(source.path)
    except OSError as error:
        raise DocumentError(f"{source.path}: {error.strerror}") from None
    _require_numbers(size, source.shape, source.dtype, source.path, source.offset)


def _require_numbers(n_bytes: int, shape: tuple[int, ...], dtype: str, where: str, offset: int = 0) -> None:
    """Raises DocumentError if a file, or a member of an archive, ends before its array does, which begins at `offset`."""
    import numpy as np

    due = offset + math.prod(shape) * np.dtype(dtype).itemsize
    if n_bytes < due:
        raise DocumentError(f"{where}: is cut off, at {n_bytes} bytes of {due}; write it again")


def _require_same(source: Located) -> None:
    """Raises DocumentError if the file is not what it was when it was looked at, here or on the machine that did."""
    try:
        with open(source.path, "rb") as file:
            file.seek(source.header)
            shape, fortran, dtype = _header(file, source.path)
            offset = file.tell()
    except OSError as error:
        raise DocumentError(f"{source.path}: {error.strerror}") from None
    require_same(source, shape, dtype)
    if (fortran, offset) != (source.fortran, source.offset):
        raise DocumentError(f"{source.path}: has been changed since the run began")
    require_whole(source)


def require_same(source: Any, shape: tuple[int, ...], dtype: str) -> None:
    """Raises DocumentError unless an array is still of the dtype and shape that it was of."""
    if (dtype, shape) != (source.dtype, source.shape):
        told = f"{dtype}{list(shape)}, and {source.dtype}{list(source.shape)} is due"
        raise DocumentError(f"{source.files(0, 0)[0]}: has been changed since the run began: it is {told}")


def located(path: str) -> Located:
    """The array of an .npy file. Raises DocumentError, OSError."""
    with open(path, "rb") as file:
        note_read(file)
        shape, fortran, dtype = _header(file, path)
        array = Located(path, file.tell(), dtype, shape, fortran)
    require_whole(array)
    return array


def members_of(path: str) -> Iterator[tuple[str, Located | Compressed]]:
    """The arrays of an .npz file by name. Raises DocumentError, OSError."""
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
            note_read(file)
            for info in archive.infolist():
                if not info.filename.endswith(".npy"):
                    continue
                name = info.filename.removesuffix(".npy")
                with archive.open(info) as member:
                    shape, fortran, dtype = _header(member, f"{path}: {name}")
                    length = member.tell()
                _require_numbers(info.file_size - length, shape, dtype, f"{path}: {name}")
                if info.compress_type == zipfile.ZIP_STORED:
                    header = _data_of(file, info.header_offset)
                    yield name, Located(path, header + length, dtype, shape, fortran, name, header)
                elif fortran and len(shape) > 1:
                    raise DocumentError(f"{path}: {name} is compressed and in the order of Fortran; write it with np.savez")
                else:
                    yield name, Compressed(path, info.filename, dtype, shape)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, struct.error) as error:
        raise DocumentError(f"{path}: is not a complete .npz file: {error}") from None


_LOCAL_HEADER = 30
"""Bytes of a member's own header before its name and its extra field, whose lengths are in the last four (zip, 4.3.7)."""


def _data_of(file: IO[bytes], offset: int) -> int:
    file.seek(offset)
    name, extra = struct.unpack("<HH", file.read(_LOCAL_HEADER)[-4:])
    return int(offset + _LOCAL_HEADER + name + extra)


def _member(path: str, member: str) -> IO[bytes]:
    import zipfile

    try:
        return zipfile.ZipFile(path).open(member)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise DocumentError(f"{path}: {error}") from None


def _header(file: IO[bytes], where: str) -> tuple[tuple[int, ...], bool, str]:
    """The shape, whether in the order of Fortran, and the dtype. Raises DocumentError for what holds no numbers."""
    try:
        shape, fortran, dtype = read_header(file)
    except DocumentError as error:
        raise DocumentError(f"{where}: {error}") from None
    if dtype.names or dtype.kind not in "biufcmMV":
        raise DocumentError(f"{where}: is of {dtype}, and arrays are of numbers; convert it with astype")
    return shape, fortran and len(shape) > 1, dtype.str


# Arrays of zarr, by the package of that name.


class ZarrSource(Frozen, slots=False):
    """An array of zarr; `member` is its path in a group, "" for an array by itself."""

    path: str
    member: str
    dtype: str
    shape: tuple[int, ...]

    def read(self, start: int, stop: int, axis: int = 0) -> NDArray[Any]:
        """As `Source` says."""
        import numpy as np

        index = (slice(None),) * axis + (slice(start, stop),) if self.shape else ()
        try:
            array = _opened(os.path.join(self.path, self.member))
            require_same(self, array.shape, array.dtype.str)
            part = array[index]
        except DocumentError:
            raise
        except Exception as error:  # as many kinds as zarr has codecs and stores
            reason = " ".join(str(error).split()) or type(error).__name__
            raise DocumentError(f"{self.path}: {self.member or 'the array'}, entries {start} to {stop - 1}: {reason}") from None
        return np.array(part, native(self.dtype))

    def files(self, start: int, stop: int, axis: int = 0) -> tuple[str, ...]:
        """As `Source` says."""
        return (os.path.join(self.path, self.member),)


def zarr_sources(path: str) -> Iterator[tuple[str, ZarrSource]]:
    """The arrays of a directory of zarr's by their paths in it. Raises DocumentError."""
    opened = _opened(path)
    if hasattr(opened, "shape"):
        arrays = {"": opened}
    else:
        arrays = {name: array for name, array in opened.members(max_depth=None) if hasattr(array, "shape")}
        if not arrays:
            raise DocumentError(f"{path}: is a zarr group without arrays")
    for name, array in arrays.items():
        if array.dtype.hasobject or array.dtype.kind not in "biufcmMV":
            raise DocumentError(f"{path}: {name or 'the array'} is of {array.dtype}, and arrays are of numbers")
        yield (
            name or path.rstrip("/").rsplit("/", 1)[-1].removesuffix(".zarr"),
            ZarrSource(path, name, array.dtype.str, array.shape),
        )


def require_zarr() -> None:
    """Raises DocumentError that says what to install, if the package is missing."""
    if find_spec("zarr") is None:
        raise DocumentError("zarr needs a package: pip install 'tidu[dask]'")


def _opened(path: str) -> Any:
    require_zarr()
    import zarr

    try:
        return zarr.open(path, mode="r")
    except Exception as error:  # as many kinds as zarr has stores
        raise DocumentError(f"{path}: is not a zarr array or group: {' '.join(str(error).split())}") from None


def new_group(path: str, shapes: Any, chunk: int) -> Any:
    """A group of arrays, of these dtypes and shapes by name, in chunks of so many entries along the first axis."""
    require_zarr()
    import zarr

    group = zarr.open_group(path, mode="w")
    for name, (dtype, shape) in shapes.items():
        group.create_array(name, shape=shape, chunks=(max(min(chunk, shape[0]), 1), *(max(n, 1) for n in shape[1:])), dtype=dtype)
    return group
