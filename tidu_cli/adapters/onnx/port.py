"""ONNX behind the port of formats, and `load_onnx`, the function that it adds to the API, with the same options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from tidu_cli.adapters.onnx.contents import Choices, as_key
from tidu_cli.arguments import flag, named
from tidu_cli.errors import KeyTextError, TypeTextError
from tidu_cli.formats.files import reading
from tidu_cli.formats.read import parse_imported
from tidu_cli.graph.graph import Case, Document
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.types import TensorType, parse_type
from tidu_cli.options import CHECKS, checked
from tidu_cli.port_data import Asked, FromPlain, Imported, Option, Remarks, Written
from tidu_cli.ports import Readable
from tidu_cli.rules.vocabulary import PrimitiveSet


def _size(setting: str) -> tuple[str, int]:
    name, equals, size = setting.rpartition("=")
    if not equals or not name or not (size.isascii() and size.isdigit()) or len(size) > 15:
        raise KeyTextError(f"'{setting}' is not NAME=N, such as batch=8")
    return name, int(size)


def _type(setting: str) -> tuple[str, TensorType]:
    # Types hold no =, so what stands before the last one is the key.
    name, equals, type_ = setting.rpartition("=")
    if not equals or not name:
        raise TypeTextError(f"'{setting}' is not KEY=TYPE, such as image=f32[1,3,224,224]")
    return name, parse_type(type_)


def _value(setting: str) -> tuple[str, object]:
    from tidu_cli.formats.values import parse_assignment

    name, equals, text = setting.partition("=")
    if not equals:
        raise KeyTextError(f"'{setting}' is not KEY=VALUE, such as x=3 or x=[1,2]")
    key = as_key(name)
    value = parse_assignment(f"{key}={text}", [key])[1]
    if isinstance(value, Literal):
        import numpy as np

        from tidu_cli.lax.arrays.structural import literal_array

        value = literal_array(np, value)
    return name, value


def _npz(path: str) -> str:
    if not path.lower().endswith(".npz"):
        raise KeyTextError(f"'{path}' does not end in .npz, the format of the file that weights are written to")
    return path


def _opset(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 5):
        raise KeyTextError(f"'{text}' is not the number of an operator set, such as 18")
    return int(text)


def _option(flag: str, metavar: str, parse: Callable[[str], Any], help: str, name: str = "", **more: Any) -> Option:
    name = name or flag[2:].replace("-", "_")
    return Option(flag, name, help, metavar, parse, more.pop("check", CHECKS.get(name, named)), **more)


def _flag(text: str, help: str) -> Option:
    return _option(text, "", str, help, of_result=True, is_flag=True, check=flag)


class _Onnx:
    """Models, of which `Choices` say what is left open."""

    name, title, subject = "onnx", "ONNX", "models of ONNX"
    suffixes = (".onnx",)
    binary = True
    runtimes = ("onnxruntime",)
    reading = (
        _option("--dim", "NAME=N", _size, "The size of a dimension that a model of ONNX leaves open; repeats.", "dims", pairs=True),
        _option(
            "--input-type",
            "KEY=TYPE",
            _type,
            "The type of an input of a model of ONNX, such as image=f32[1,3,224,224]; repeats.",
            "input_types",
            pairs=True,
        ),
        _option(
            "--set",
            "KEY=VALUE",
            _value,
            "A constant for an input of a model of ONNX, such as one that sizes depend on; repeats.",
            pairs=True,
            check=named,
        ),
        _option(
            "--weights",
            "FILE.npz",
            _npz,
            "Make inputs of the weights of a model of ONNX, and write their values to this file.",
            of_result=True,
            values_file=True,
        ),
        _flag("--statistics", "With --weights, make outputs of the statistics that batch norms of a model of ONNX update."),
        _option("--cast", "f64|f32", str, "Make all floats of a model of ONNX these.", of_result=True, choices=("f64", "f32")),
        _option("--cut", "NAME", str, "Make an input of an inner value of a model of ONNX; repeats.", of_result=True, repeats=True),
        _flag(
            "--straight-through",
            "Give rounding in a model of ONNX the derivative 1, and quantizing within the range of its integers.",
        ),
        _option(
            "--stop",
            "NAME",
            str,
            "Let no derivative through a value, of a model or a document, as torch's detach does; repeats.",
            of_result=True,
            repeats=True,
        ),
    )
    writing = (
        _option("--opset", "N", _opset, "The operator set in which ONNX is written, 18 or newer. [default: 21]", of_result=True),
    )

    def sniff(self, source: Readable) -> bool:
        """Whether these are the first bytes of a ModelProto."""
        from tidu_cli.adapters.onnx.loading import N_FIRST, is_onnx

        return is_onnx(source.head(N_FIRST))

    def read(self, source: Readable, where: str, options: Mapping[str, Any], from_plain: FromPlain | None) -> Imported:
        """As `read_onnx` does."""
        from tidu_cli.adapters.onnx.read import read_onnx

        return read_onnx(source.read(), where, source.path, Choices.of(**options), from_plain)

    def write(self, document: Document, beside: str | None, options: Mapping[str, Any]) -> Written:
        """As `onnx_bytes` and `onnx_files` do."""
        from tidu_cli.adapters.onnx.writing.model import OPSET, onnx_bytes, onnx_files

        opset = options.get("opset") or OPSET
        if beside is None:
            return Written((onnx_bytes(document, opset),))
        model, data = onnx_files(document, beside, opset)
        return Written((model,), (data,) if data else None)

    def with_weights(
        self, source: Readable, where: str, values: Mapping[str, Any], beside: str | None
    ) -> tuple[Written, Sequence[str]]:
        """As `with_weights` does."""
        from tidu_cli.adapters.onnx.weights import with_weights

        return with_weights(source.read(), where, source.path, values, beside)

    def double(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """All floats, also those of the types of inputs, as f64."""
        from tidu_cli.adapters.onnx.remarks import in_double

        return in_double(options)

    def remarks(self, source: Readable, where: str, imported: Imported, options: Mapping[str, Any], asked: Asked) -> Remarks:
        """What the model holds, where derivatives end, and whether its values are those of onnxruntime."""
        from tidu_cli.adapters.onnx.remarks import remarks

        return remarks(source, where, imported, options, asked)

    def takes(self, case: Case, primitives: PrimitiveSet) -> str:
        """The operators that stand for it, or how many."""
        from tidu_cli.adapters.onnx.writing.model import OPSET
        from tidu_cli.adapters.onnx.writing.templates import LOWERINGS, operators

        names = operators(case, OPSET, primitives)
        written = f"{len(names)} operators" if len(names) > 5 else ", ".join(names) or "an initializer"
        return written if case.op in LOWERINGS else f"its definition, {written}"

    def outline(self, data: bytes) -> dict[str, Any]:
        """The keys and types of inputs and outputs."""
        from tidu_cli.adapters.onnx.remarks import as_plain

        return as_plain(data)


ONNX = _Onnx()


@checked(set=named, straight_through=flag, statistics=flag)
def load_onnx(
    file: str | PurePath,
    dims: Mapping[str, int] | None = None,
    input_types: Mapping[str, str | TensorType] | None = None,
    set: Mapping[str, Any] | None = None,
    cast: str | None = None,
    cut: str | Sequence[str] = (),
    weights: bool = False,
    straight_through: bool = False,
    stop: str | Sequence[str] = (),
    statistics: bool = False,
) -> Imported:
    """Read a model of ONNX, as `tidu convert` does: the result has the `document`, the values of `weights`, and `notes`.

    `dims` are sizes of open dimensions by name, `input_types` types of inputs, such as "f32[1,3]", and `set` values of inputs that
    are constants. `cast` is a dtype for all floats. Values of the names in `cut`, and with `weights` parameters, become inputs.
    With `straight_through` rounding, and quantizing within the range of the integers, has the derivative 1; through values of the
    names in `stop` goes no derivative. With `statistics` new values of weights that batch norms update are outputs, by the names
    of these. Raises DocumentError, ArgumentError.
    """
    options = {"dims": dims, "input_types": input_types, "set": set, "cast": cast, "cut": cut, "weights": weights, "stop": stop}
    options |= {"straight_through": straight_through, "statistics": statistics}
    with reading(str(file)) as source:
        return parse_imported(source, str(file), options={name: value for name, value in options.items() if value})[0]
