"""Arrays of zarr, by the package of that name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tidu_cli.errors import DocumentError
from tidu_cli.formats.chunks.npy import native, require_same
from tidu_cli.frozen import Frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
        raise DocumentError(f"{path}: is no zarr array or group: {' '.join(str(error).split())}") from None


def new_group(path: str, shapes: Any, chunk: int) -> Any:
    """A group of arrays, of these dtypes and shapes by name, in chunks of so many entries along the first axis."""
    require_zarr()
    import zarr

    group = zarr.open_group(path, mode="w")
    for name, (dtype, shape) in shapes.items():
        group.create_array(name, shape=shape, chunks=(max(min(chunk, shape[0]), 1), *(max(n, 1) for n in shape[1:])), dtype=dtype)
    return group
