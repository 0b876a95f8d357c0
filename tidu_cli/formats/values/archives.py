"""Values in NumPy's files: npz, an archive of arrays by name, and npy, one array."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidu_cli.errors import DocumentError
from tidu_cli.formats.values.members import Member, members
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import listed
from tidu_cli.graph.types import DATETIMES, Type, unit_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


def npz_bytes(values: Mapping[Key, Any], types: Mapping[Key, Type]) -> bytes:
    """An npz file of these values. Raises DocumentError where two of its members had one name."""
    from zipfile import ZipFile, ZipInfo

    from numpy.lib import format as npy

    out = io.BytesIO()
    with ZipFile(out, "w") as archive:
        for member in members(values, types, "an npz file"):
            info = ZipInfo()  # of the earliest time that zip knows: files are to depend on values alone
            info.filename = info.orig_filename = f"{member.name}.npy"  # ZipInfo itself would cut a name at a NUL
            array = _named(member)
            with archive.open(info, "w", force_zip64=array.nbytes > 2**30) as file:
                npy.write_array(file, array, allow_pickle=False)
    return out.getvalue()


def npy_bytes(values: Mapping[Key, Any], types: Mapping[Key, Type]) -> bytes:
    """An npy file of the one tensor that these values are. Raises DocumentError if they are none or several."""
    from numpy.lib import format as npy

    found = members(values, types, "npy")
    if len(found) != 1:
        names = listed([member.name for member in found])
        raise DocumentError(f"npy holds one array, and there are {len(found)} ({names}); ask for one of them, or write npz")
    out = io.BytesIO()
    npy.write_array(out, _named(found[0]), allow_pickle=False)
    return out.getvalue()


def _named(member: Member) -> NDArray[Any]:
    """The array in a dtype that .npy has a name for."""
    import numpy as np

    array: NDArray[Any] = np.asarray(member.array, order="C")
    if array.dtype.name == "bfloat16":
        return array.view("V2")  # .npy has no name for it; whoever reads it knows the type
    if member.type is not None and member.type.dtype in DATETIMES:
        return array.view(f"M8[{unit_of(member.type.dtype)}]")
    return array
