"""One array in NumPy's .npy form, from a file or a compressed member of one: bounded before it is read."""

from __future__ import annotations

import io
import math
import warnings
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from tidu_cli.errors import DocumentError, LimitError
from tidu_cli.formats.files import Source
from tidu_cli.formats.npy_header import AGAIN, read_header
from tidu_cli.limits import format_size, more_than

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HEADER = 2**14
"""More bytes than a header has: NumPy takes none of more than 10,000."""


def read_array(file: IO[bytes] | Source, where: str, room: int) -> NDArray[Any]:
    """The array. No more is read, and decompressed, than its header says, and that may say `room` bytes at most.

    Raises LimitError that begins with `where`, DocumentError for a broken file, and what a compressed one raises.
    """
    import numpy as np
    from numpy.lib import format as npy

    source = Source(cast(BinaryIO, file))
    shape, _, dtype = read_header(io.BytesIO(source.head(_HEADER)))
    n_bytes = math.prod(shape) * dtype.itemsize
    if n_bytes > room:
        raise LimitError(f"{where}: an array of {format_size(n_bytes)}, {more_than('memory', room)}")
    try:
        with warnings.catch_warnings(action="ignore"):
            array: NDArray[Any] = npy.read_array(source, allow_pickle=False)
    except (ValueError, EOFError):
        raise DocumentError(f"is cut off, or no array: {format_size(n_bytes)} of numbers are due; {AGAIN}") from None
    if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
        raise DocumentError(f"has a bool that is neither 0 nor 1; {AGAIN}")
    return array
