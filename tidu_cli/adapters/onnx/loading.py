"""Bytes of a model as a ModelProto, whose data all stands in it: what lies in files beside the model is read from there only."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import dtype_of
from tidu_cli.adapters.onnx.contents import require_sound, tensors
from tidu_cli.errors import DocumentError, counted
from tidu_cli.formats.files import note_read
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import FLOATS
from tidu_cli.limits import require


def package() -> ModuleType:
    """The package. Raises DocumentError, which says what to install, where it is missing."""
    try:
        import onnx
        import onnx.defs
        import onnx.external_data_helper
        import onnx.numpy_helper
    except ImportError as error:
        missing = "" if getattr(error, "name", "") in ("onnx", None) else f" ({error})"
        raise DocumentError(f"models of ONNX need the package onnx{missing}: pip install 'tidu[onnx]'") from None
    return onnx


_FIRST_TAGS = frozenset(b"\x08\x12\x1a\x3a\x42\x72")
"""The tags of fields with which writers begin a ModelProto. Three of them are letters of text, too."""

N_FIRST = 64
"""So many bytes tell a model from text."""

OLDEST = 7
"""The oldest opset that is read."""


def is_onnx(head: bytes) -> bool:
    """Whether what begins with these bytes, `N_FIRST` if there are as many, is a model: by its first field.

    One that begins like text, with :, B or r, has lengths or tags among them that no text has.
    """
    return bool(head) and head[0] in _FIRST_TAGS and (head[0] < 0x20 or any(b < 0x20 and b not in b"\t\n\r" for b in head))


def loaded(data: bytes, path: str | None = None) -> Any:
    """The model of these bytes. `path` is its file, beside which external data lies.

    Raises DocumentError for bytes that are no model, and for external data that is missing or lies elsewhere.
    """
    onnx = package()
    from google.protobuf.message import DecodeError

    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, ValueError, RecursionError) as error:
        raise DocumentError(f"is not an ONNX model, or a damaged one: {error}") from None
    if not model.HasField("graph") or not model.opset_import:
        missing = "graph" if not model.HasField("graph") else "opset_import"
        raise DocumentError(f"is not an ONNX model, or a damaged one: it has no {missing}")
    require_sound(model)
    _require_known(model)
    version = min((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=OLDEST)
    _read_external(model, path)
    return model if version >= OLDEST else _converted(model, version)


def _require_known(model: Any) -> None:
    """Raises DocumentError for operator sets that there cannot be, or not yet."""
    newest = package().defs.onnx_opset_version()
    for opset in (*model.opset_import, *(o for function in model.functions for o in function.opset_import)):
        if not 0 < opset.version < 2**31:
            named = opset.domain or "ai.onnx"
            raise DocumentError(f"imports version {opset.version} of the operator set '{named}', which cannot be")
        if opset.domain in ("", "ai.onnx") and opset.version > newest:
            raise DocumentError(
                f"is a model of opset {opset.version}, but the onnx that is installed knows opsets up to {newest}; "
                "pip install -U onnx, or export it at an older opset"
            )


def _converted(model: Any, version: int) -> Any:
    """A model of an opset whose operators broadcast in other ways, at the oldest that is read. Raises DocumentError."""
    from onnx.version_converter import ConvertError, convert_version

    try:
        return convert_version(model, OLDEST)
    except (ConvertError, RuntimeError, ValueError) as error:
        told = " ".join(str(error).split())
        raise DocumentError(f"is a model of opset {version}, which cannot be converted to opset {OLDEST}: {told}") from None


def _read_external(model: Any, path: str | None) -> None:
    """Put the data of tensors that lies in other files into the model."""
    onnx = package()
    total = 0
    for tensor in tensors(model):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        place = f"tensor '{tensor.name}': its data"
        if path in (None, "-"):
            raise DocumentError(
                f"{place} lies in a file beside the model, and so it cannot be read from stdin: name the model's file"
            )
        told = {entry.key: entry.value for entry in tensor.external_data}
        file = _beside(Path(str(path)).parent, told.get("location", ""), place)
        offset, length = (_number(told, field, place) if field in told else None for field in ("offset", "length"))
        data = _part(file, offset or 0, length, place, total)
        total += len(data)
        tensor.raw_data = data
        tensor.ClearField("data_location")
        del tensor.external_data[:]


def _part(file: Path, offset: int, length: int | None, place: str, before: int) -> bytes:
    """The bytes of a file from some place on, where `before` have been read of such files. Raises DocumentError, LimitError."""
    never = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # whatever it has become since it was looked at
    with open(os.open(file, os.O_RDONLY | never), "rb") as source:
        note_read(source, "weights")
        size = os.fstat(source.fileno()).st_size
        length = size - offset if length is None else length
        if offset + length > size or length < 0:
            raise DocumentError(f"{place} ends at byte {offset + length} of '{file.name}', which has {counted(size, 'byte')}")
        require("memory", before + length, f"external data in '{file.name}'")
        source.seek(offset)
        return source.read(length)


def _number(told: dict[str, str], field: str, place: str) -> int:
    text = told[field]
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise DocumentError(f"{place} has {field} '{text}', which is not a number of bytes")
    return int(text)


def _beside(folder: Path, location: str, place: str) -> Path:
    """The file of a location in the model's folder, or below it. Raises DocumentError for any other, and for links."""
    parts = Path(location).parts
    if not parts or os.path.isabs(location) or ".." in parts or "\0" in location or "\\" in location:
        raise DocumentError(f"{place} lies in '{location}', but only files in the model's folder are read")
    file = folder
    for part in parts:
        file = file / part
        try:
            mode = file.lstat().st_mode
        except OSError:
            raise DocumentError(f"{place} lies in '{location}', and there is no such file beside the model") from None
        if stat.S_ISLNK(mode):
            raise DocumentError(f"{place} lies in '{location}', which is a link; only files in the model's folder are read")
    if not stat.S_ISREG(mode):
        raise DocumentError(f"{place} lies in '{location}', which is not a file")
    return file


# Tensors of ONNX as NumPy arrays, and its codes of element types as dtypes.


DTYPES = {
    1: "f32",
    2: "u8",
    3: "i8",
    4: "u16",
    5: "i16",
    6: "i32",
    7: "i64",
    9: "bool",
    10: "f16",
    11: "f64",
    12: "u32",
    13: "u64",
    14: "c64",
    15: "c128",
    16: "bf16",
}
"""The names of dtypes by their codes, `TensorProto.DataType`."""

HELD: Mapping[int, tuple[str, str]] = {
    17: ("float8e4m3fn", "f32"),
    18: ("float8e4m3fnuz", "f32"),
    19: ("float8e5m2", "f32"),
    20: ("float8e5m2fnuz", "f32"),
    21: ("uint4", "u8"),
    22: ("int4", "i8"),
    23: ("float4e2m1", "f32"),
    24: ("float8e8m0", "f32"),
    25: ("uint2", "u8"),
    26: ("int2", "i8"),
}
"""The types of 2, 4 or 8 bits that tidu has not got, by their codes: their names, and dtypes that have the same numbers."""


def held(code: int, cast: str | None = None) -> tuple[str, str]:
    """The dtype whose arrays hold elements of a code, and the name of the type that these stand for, "" where it is that dtype.

    Raises DocumentError.
    """
    if code not in HELD:
        return dtype_name(code, cast), ""
    kind, dtype = HELD[code]
    return (cast if cast is not None and dtype in FLOATS else dtype), kind


def dtype_name(code: int, cast: str | None = None) -> str:
    """The dtype of a code, `cast` in place of any float. Raises DocumentError for one that tidu has not got."""
    if code not in DTYPES:
        known = package().TensorProto.DataType
        name = known.Name(code) if code in known.values() else str(code)
        raise DocumentError(
            f"elements of type {name.lower()}, which tidu has not got (it has {', '.join(sorted(DTYPES.values()))})"
        )
    name = DTYPES[code]
    return cast if cast is not None and name in FLOATS else name


def declared_shape(shape: Sequence[Any]) -> list[Any]:
    """A shape as ONNX declares it: open sizes by their texts."""
    return [str(n) if isinstance(n, OpenSize) else n for n in shape]


def array_of(tensor: Any, cast: str | None = None) -> Any:
    """The array of a TensorProto whose data is in it, its floats as `cast`; of the dtype that holds what tidu has not got.

    Raises DocumentError if shape and data do not fit.
    """
    dtype = dtype_of(held(tensor.data_type)[0])
    shape = tuple(tensor.dims)
    if min(shape, default=0) < 0:
        raise DocumentError(f"has the shape {list(shape)}")
    require("memory", math.prod(shape) * dtype.itemsize, f"an array of shape {list(shape)}")
    if tensor.data_location == package().TensorProto.EXTERNAL:
        raise DocumentError("its data lies in another file, which is not read for a tensor in this place")
    try:
        array = np.asarray(package().numpy_helper.to_array(tensor))
    except (ValueError, TypeError) as error:
        raise DocumentError(f"its data do not form an array of shape {list(shape)}: {error}") from None
    return array.astype(dtype, copy=False).astype(dtype_of(held(tensor.data_type, cast)[0]), copy=False)


def dense(sparse: Any, cast: str | None = None) -> Any:
    """The array of a SparseTensorProto. Raises DocumentError if its parts do not fit, LimitError if it is too large."""
    values, indices, shape = array_of(sparse.values, cast), array_of(sparse.indices), tuple(sparse.dims)
    require("memory", math.prod(shape) * values.itemsize, f"an array of shape {list(shape)}")
    array = np.zeros(shape, values.dtype)
    places = tuple(indices.T) if indices.ndim == 2 else np.unravel_index(indices, shape)
    try:
        array[places] = values
    except (IndexError, ValueError) as error:
        raise DocumentError(f"is sparse, and its indices do not fit: {error}") from None
    return array
