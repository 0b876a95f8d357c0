"""The header of NumPy's .npy form: whose errors are of Python's parser, and are told in words of ours."""

from __future__ import annotations

import warnings
import zlib
from typing import IO, TYPE_CHECKING, Any

from tidu_cli.errors import DocumentError

if TYPE_CHECKING:
    import numpy as np

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
