"""NumPy's .npy form: its header, with error messages of our own, and one array, whose size is checked before it is read."""

from __future__ import annotations

import io
import math
import warnings
import zlib
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from tidu_cli.errors import DocumentError, LimitError
from tidu_cli.formats.files import Source
from tidu_cli.limits import format_size, more_than

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


AGAIN = "write it again with numpy.save"
"""The way out."""


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape of an array, whether it is in the order of Fortran, and its dtype. Raises DocumentError.

    What says so is text of Python's, which NumPy has Python's own parser read.
    """
    from numpy.lib import format as npy

    try:
        with warnings.catch_warnings(action="ignore"):  # of headers that Python 2 wrote, which are read as well
            version = npy.read_magic(file)
            if version not in ((1, 0), (2, 0), (3, 0)):
                raise ValueError
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(file)
    except (OSError, zlib.error):
        raise
    except Exception:
        raise DocumentError(f"is damaged, or no .npy file: nothing says its dtype and its shape; {AGAIN}") from None
    if any(type(n) is not int or n < 0 for n in shape):
        raise DocumentError(f"is damaged: its shape is {list(shape)}; {AGAIN}")
    if dtype.hasobject:
        raise DocumentError("is of Python's objects, and arrays are of numbers; convert it with astype")
    return shape, fortran, dtype


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
