"""What ONNX adds to the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from tidu_cli.arguments import flag, named
from tidu_cli.formats.files import reading
from tidu_cli.formats.read import parse_imported
from tidu_cli.graph.types import TensorType
from tidu_cli.options import checked
from tidu_cli.port_data import Imported


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
