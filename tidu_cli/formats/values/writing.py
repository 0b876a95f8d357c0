"""Files of values written: JSON, msgpack, npy and npz; others by the room's file that knows them."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tidu_cli.errors import DocumentError
from tidu_cli.formats.json import json_text
from tidu_cli.formats.values.text import Member, csv_text, fields, members, stored, table_text
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import spelled
from tidu_cli.graph.select import listed
from tidu_cli.graph.text import NOT_A_TIME, instant_to_text
from tidu_cli.graph.types import DATETIMES, RecordType, TensorType, Type, unit_of
from tidu_cli.lax.arrays.dtypes import dtype_name, numpy_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray


NO_TYPES: Mapping[Key, Type] = {}

FORMATS = ("json", "csv", "npy", "npz", "msgpack", "table")
"""The formats that values are written in. Those of files that are read are JSON, npz and msgpack."""


def write_values(values: Mapping[Key, Any], format: str, types: Mapping[Key, Type] = NO_TYPES) -> bytes:
    """These values in one of `FORMATS`: the same values, the same bytes. In npy, npz and msgpack typed, and exact to the bit.

    `types` are theirs, which arrays of numbers do without. A record is a tuple of the values of its fields, in order, or a mapping
    of them by name; None is zero. Datetimes are NumPy's, or integers.

    JSON is one line without types: floats are exact as doubles, complex numbers are `{"re": .., "im": ..}`, datetimes ISO 8601
    text, durations numbers, records objects, tuples lists. In npz, csv and the table each tensor of a record is by itself, `p.x` or
    `p.0`. Raises DocumentError where two of these had one name, and for what the format has no place for.
    """
    if format == "npz":
        return npz_bytes(values, types)
    if format == "npy":
        return npy_bytes(values, types)
    if format == "mtx":
        return _matrix_market(values)
    if format in ("csv", "table"):
        return (csv_text if format == "csv" else table_text)(values, types).encode()
    if format == "msgpack":
        import msgpack

        packed: bytes = msgpack.packb({str(key): _tree(_typed, value, types.get(key)) for key, value in values.items()})
        return packed
    lines = ", ".join(f"{json_text(str(key))}: {json_text(_tree(_nested, value, types.get(key)))}" for key, value in values.items())
    return f"{{{lines}}}\n".encode()


def require_writable(format: str, types: Mapping[Key, Type]) -> None:
    """Raises DocumentError where `write_values` would for values of these types, before these are computed."""
    write_values({key: _hollow(type_) for key, type_ in types.items()}, format, types)


def _hollow(type_: Type) -> Any:
    """Arrays of as many axes as a value's, and without numbers: they cost nothing."""
    import numpy as np

    if isinstance(type_, RecordType):
        return {name: _hollow(field) for name, field in type_.fields}
    return np.zeros((0,) * type_.rank, numpy_dtype(np, type_.dtype))


def _tree(leaf: Callable[[Any, TensorType | None], object], value: Any, type_: Type | None) -> object:
    """A value with `leaf` of each tensor, as JSON nests records."""
    if not isinstance(type_, RecordType):
        return leaf(stored(value, type_), type_)
    parts = {name: _tree(leaf, part, field_type) for name, part, field_type in fields(value, type_)}
    return list(parts.values()) if type_.is_tuple else parts


def _typed(value: NDArray[Any], type_: TensorType | None) -> dict[str, object]:
    little = value.astype(value.dtype.newbyteorder("<"), copy=False)
    return {"type": str(type_ or TensorType(dtype_name(value.dtype), value.shape)), "data": little.tobytes()}


def _nested(value: NDArray[Any], type_: TensorType | None) -> object:
    """An array as nested lists of what JSON has; of rank 0 as its one element."""
    import numpy as np

    if type_ is not None and type_.dtype in DATETIMES:
        unit = unit_of(type_.dtype)
        counts = value.ravel().tolist()
        elements: list[object] = ["NaT" if x == NOT_A_TIME else instant_to_text(x, unit) or x for x in counts]
    elif value.dtype.kind == "c":
        parts = zip(value.real.ravel().tolist(), value.imag.ravel().tolist(), strict=True)
        elements = [{"re": spelled(re), "im": spelled(im)} for re, im in parts]
    elif value.dtype.kind in "biu":
        return value.tolist()
    else:
        value = value.astype(np.float64)
        if np.isfinite(value).all():
            return value.tolist()
        elements = [spelled(x) for x in value.ravel().tolist()]
    array = np.empty(value.size, object)
    array[:] = elements
    return array.reshape(value.shape).tolist()


def npz_bytes(values: Mapping[Key, Any], types: Mapping[Key, Type]) -> bytes:
    """An npz file of these values. Raises DocumentError where two of its members had one name."""
    from zipfile import ZipFile, ZipInfo

    import numpy as np
    from numpy.lib import format as npy

    out = io.BytesIO()
    with ZipFile(out, "w") as archive:
        for member in members(values, types, "an npz file"):
            info = ZipInfo()  # of the earliest time that zip knows: files are to depend on values alone
            info.filename = info.orig_filename = f"{member.name}.npy"  # ZipInfo itself would cut a name at a NUL
            array = _named(member)
            with archive.open(info, "w", force_zip64=array.nbytes > 2**30) as file:
                npy.write_array(file, array, allow_pickle=False)
        if _is_sparse(values):  # what scipy.sparse.load_npz asks for besides
            info = ZipInfo("format.npy", (1980, 1, 1, 0, 0, 0))
            with archive.open(info, "w") as file:
                npy.write_array(file, np.array(b"coo"), allow_pickle=False)
    return out.getvalue()


SPARSE = ("data", "row", "col", "shape")
"""The keys of the values that are a sparse matrix: its entries, where they are, and its shape."""


def _is_sparse(values: Mapping[Key, Any]) -> bool:
    return [str(key) for key in values] == list(SPARSE)


def _matrix_market(values: Mapping[Key, Any]) -> bytes:
    """A sparse matrix in the format of Matrix Market. Raises DocumentError for other values."""
    if not _is_sparse(values):
        raise DocumentError(f"mtx holds one sparse matrix, of outputs {', '.join(SPARSE)}, as jacobian --sparse gives them")
    from scipy import io as scipy_io  # type: ignore[import-untyped]
    from scipy import sparse

    data, row, col, shape = values.values()
    out = io.BytesIO()
    scipy_io.mmwrite(out, sparse.coo_array((data, (row, col)), shape=tuple(int(n) for n in shape)), symmetry="general")
    return out.getvalue()


def npy_bytes(values: Mapping[Key, Any], types: Mapping[Key, Type]) -> bytes:
    """An npy file of the one tensor that these values are. Raises DocumentError if they are none or several."""
    from numpy.lib import format as npy

    tensors = members(values, types, "npy")
    if len(tensors) != 1:
        names = listed([member.name for member in tensors])
        raise DocumentError(f"npy holds one array, and there are {len(tensors)} ({names}); ask for one of them, or write npz")
    out = io.BytesIO()
    npy.write_array(out, _named(tensors[0]), allow_pickle=False)
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
