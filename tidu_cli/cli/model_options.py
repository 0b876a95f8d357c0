"""Options of commands for models of ONNX: what is chosen of a model where it leaves that open, and what of it is read how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

from tidu_cli.cli.options import Parsed
from tidu_cli.cli.value_options import set_option
from tidu_cli.errors import KeyTextError, TypeTextError
from tidu_cli.formats.onnx.choices import Choices, as_key
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.types import TensorType, parse_type

F = TypeVar("F", bound=Callable[..., Any])


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


_size_options: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--dim",
        "dims",
        type=Parsed("size", _size),
        multiple=True,
        metavar="NAME=N",
        help="The size of a dimension that a model of ONNX leaves open; repeats.",
    ),
    click.option(
        "--input-type",
        "input_types",
        type=Parsed("type", _type),
        multiple=True,
        metavar="KEY=TYPE",
        help="The type of an input of a model of ONNX, such as image=f32[1,3,224,224]; repeats.",
    ),
    set_option("A constant for an input of a model of ONNX, such as one that sizes depend on; repeats."),
)


def size_options(function: F) -> F:
    """The options --dim, --input-type and --set, which repeat: what a model leaves open."""
    return _with(function, _size_options)


def part_options(function: F) -> F:
    """The options --weights, --cast and --cut: what becomes of weights, floats and inner values."""
    options = (
        click.option(
            "--weights",
            metavar="FILE.npz",
            type=Parsed("file", _npz),
            help="Make inputs of the weights of a model of ONNX, and write their values to this file.",
        ),
        click.option(
            "--cast", type=click.Choice(["f64", "f32"]), metavar="f64|f32", help="Make all floats of a model of ONNX these."
        ),
        click.option(
            "--cut", "cuts", multiple=True, metavar="NAME", help="Make an input of an inner value of a model of ONNX; repeats."
        ),
    )
    return _with(function, options)


def _with(function: F, options: Sequence[Callable[[Any], Any]]) -> F:
    for option in reversed(options):
        function = option(function)
    return function


def _npz(path: str) -> str:
    if not path.lower().endswith(".npz"):
        raise KeyTextError(f"'{path}' does not end in .npz, the format of the file that weights are written to")
    return path


def chosen(
    dims: Iterable[tuple[str, int]],
    input_types: Iterable[tuple[str, TensorType]],
    settings: Iterable[str],
    weights: str | None = None,
    cast: str | None = None,
    cuts: Sequence[str] = (),
) -> Choices:
    """What these options choose. Raises UsageError for two choices of one thing, TiduError for a malformed value."""
    sizes, types = dict(_once("--dim", dims)), dict(_once("--input-type", input_types))
    return Choices(sizes, types, dict(_once("--set", map(_value, settings))), weights is not None, cast, tuple(cuts))


def _once(option: str, given: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    seen = set()
    for name, value in given:
        if name in seen:
            raise click.UsageError(f"{option} gives '{name}' twice")
        seen.add(name)
        yield name, value


def _value(setting: str) -> tuple[str, object]:
    from tidu_cli.formats.values import parse_assignment

    name, _, text = setting.partition("=")
    key = as_key(name)
    value = parse_assignment(f"{key}={text}", [key])[1]
    if isinstance(value, Literal):
        import numpy as np

        from tidu_cli.lax.arrays.structural import literal_array

        value = literal_array(np, value)
    return name, value
