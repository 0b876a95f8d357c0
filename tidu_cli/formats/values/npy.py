"""One array in NumPy's .npy form, from a file or a compressed member of one: bounded before it is read."""

from __future__ import annotations

import io
import math
import warnings
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from tidu_cli.errors import LimitError
from tidu_cli.formats.files import Source
from tidu_cli.limits import format_size, more_than

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HEADER = 2**14
"""More bytes than a header has: NumPy takes none of more than 10,000."""


def read_array(file: IO[bytes] | Source, where: str, room: int) -> NDArray[Any]:
    """The array. No more is read, and decompressed, than its header says, and that may say `room` bytes at most.

    Raises LimitError that begins with `where`, and what NumPy raises for a broken file.
    """
    import numpy as np
    from numpy.lib import format as npy

    source = Source(cast(BinaryIO, file))
    header = io.BytesIO(source.head(_HEADER))
    with warnings.catch_warnings(action="ignore"):  # of headers that Python 2 wrote, which are read as well
        version = npy.read_magic(header)
        shape, _, dtype = npy.read_array_header_1_0(header) if version == (1, 0) else npy.read_array_header_2_0(header)
        n_bytes = math.prod(shape) * dtype.itemsize
        if n_bytes > room:
            raise LimitError(f"{where}: an array of {format_size(n_bytes)}, {more_than('memory', room)}")
        array: NDArray[Any] = npy.read_array(source, allow_pickle=False)
    if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
        raise ValueError("a bool is a byte 0 or 1")
    return array
