"""Files of documents, models and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, cast

from tidu_cli.arguments import checked, named, values_by_key
from tidu_cli.custom.packages import known_with
from tidu_cli.errors import ArgumentError
from tidu_cli.formats.files import read_bytes, reading
from tidu_cli.formats.onnx.choices import Choices, Imported
from tidu_cli.formats.output import write_pieces
from tidu_cli.formats.read import parse_imported, parse_library
from tidu_cli.formats.suffixes import DOCUMENTS, format_of, of_formats, split
from tidu_cli.formats.values import FORMATS, read_values, write_values
from tidu_cli.formats.write import write_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.types import TensorType
from tidu_cli.runtime.inputs import type_of_value


@checked()
def load(
    file: str | PurePath,
    plugins: str | Sequence[str] = (),
    ops: str | PurePath | Sequence[str | PurePath] = (),
    plain: bool = False,
) -> Document:
    """Read and check a document, JSON or msgpack, or a model of ONNX (`load_onnx` has more of it). Raises DocumentError.

    With `plain` a model of ONNX or a module of StableHLO is read by what it runs, and not as the document that it claims to be.

    `plugins` names the packages that may be imported for ops of the document; so does the environment variable TIDU_PLUGINS. `ops`
    are files of documents whose own ops may be used, too. Raises UnknownNameError for a package that is not installed.
    """
    primitives = known_with(plugins)
    for library in map(str, cast("list[str | PurePath]", ops)):
        with reading(library) as source:
            primitives = parse_library(source, library, primitives)
    with reading(str(file)) as source:
        return parse_imported(source, str(file), primitives, plain=plain)[0].document


@checked(set=named)
def load_onnx(
    file: str | PurePath,
    dims: Mapping[str, int] | None = None,
    input_types: Mapping[str, str | TensorType] | None = None,
    set: Mapping[str, Any] | None = None,
    cast: str | None = None,
    cut: str | Sequence[str] = (),
    weights: bool = False,
) -> Imported:
    """Read a model of ONNX, as `tidu convert` does: what is found has the `document`, the values of `weights`, and `notes`.

    `dims` are sizes of open dimensions by name, `input_types` types of inputs, such as "f32[1,3]", and `set` values of inputs that
    are constants. `cast` is a dtype for all floats. Values of the names in `cut`, and with `weights` parameters, become inputs.
    Raises DocumentError.
    """
    choices = Choices.of(dims, input_types, set, weights, cast, cut)
    with reading(str(file)) as source:
        return parse_imported(source, str(file), choices=choices)[0]


@checked()
def save(
    document: Document,
    file: str | PurePath,
    format: str | None = None,
    types: bool = False,
    nodes: str | None = None,
    opset: int | None = None,
    target_version: str | None = None,
) -> None:
    """Write a document as its suffix says, .json, .msgpack, .onnx, .mlir or .mlirbc, without one as JSON, or in this format.

    After these, .gz and .zst compress. `types` gives every node its types, `nodes` are a "list" or "packed"; `opset` is the
    operator set of a model of ONNX, and `target_version` the version of StableHLO that programs read which get a .mlirbc file.
    Raises DocumentError, ArgumentError.
    """
    found, suffix = format_of(str(file)), split(str(file))[0]
    if suffix and found not in DOCUMENTS and (format is None or found is not None):
        raise ArgumentError(f"'{file}' ends in '{suffix}', which is no format of a document; end it in {of_formats(DOCUMENTS)}")
    if format is not None and found not in (None, format):
        raise ArgumentError(f"'{file}' ends in '{suffix}', and argument 'format' says {format!r}; leave out one of them")
    chosen = found or format or "json"
    how = {"types": types or None, "nodes": nodes, "opset": opset, "target_version": target_version}
    for name, value in how.items():
        if value is not None and chosen not in _TAKES[name]:
            raise ArgumentError(f"argument '{name}' is for {' and '.join(_TAKES[name])}, and the result is {chosen}")
    if types and nodes == "packed":
        raise ArgumentError("packed nodes have no place for types; leave out one of them")
    listed = None if nodes is None else nodes == "list"
    write_document(document, str(file), chosen, types=types, listed=listed, opset=opset, target_version=target_version)


_TAKES = {"types": ("json", "msgpack"), "nodes": ("json", "msgpack"), "opset": ("onnx",), "target_version": ("mlirbc",)}
"""The formats that arguments of `save` are for."""


@checked()
def load_values(file: str | PurePath, document: Document | None = None) -> dict[str, Any]:
    """The values that a file holds, JSON, npz or msgpack, by the text of their keys, as `evaluate` takes them.

    With a document its types say what is a record; without, what is nested is an array. Raises DocumentError.
    """
    declared = None if document is None else {key: i.type for key, i in document.inputs.items()}
    found = read_values(read_bytes(str(file)), str(file), declared)
    return {str(key): value for key, value in found.items()}


@checked(values=values_by_key)
def save_values(values: Mapping[Any, object], file: str | PurePath) -> None:
    """Write values by key, such as `evaluate` gives, as the suffix says: .json, .npz, .msgpack, .csv, .npy, or .txt for a table.

    Raises DocumentError, ArgumentError.
    """
    format_, suffix = format_of(str(file)), split(str(file))[0]
    if format_ not in FORMATS:
        raise ArgumentError(f"'{file}' ends in '{suffix}', which is no format of values; end it in {of_formats(FORMATS)}")
    types = {key: type_of_value(f"value of {key}", value) for key, value in values.items()}
    write_pieces((write_values(values, str(format_), types),), str(file))
