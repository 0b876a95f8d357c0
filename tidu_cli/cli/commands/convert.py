"""tidu convert: change the format of a document."""

from __future__ import annotations

from typing import Any

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.model_options import chosen, part_options, size_options
from tidu_cli.cli.options import (
    Parsed,
    chosen_format,
    document_output_options,
    emit,
    example,
    file_argument,
    load_imported,
    pass_number,
)
from tidu_cli.errors import KeyTextError
from tidu_cli.graph.keys import parse_key


def _renumbering(text: str) -> tuple[int, int]:
    old, equals, new = text.partition("=")
    if not equals:
        raise KeyTextError(f"'{text}' is not OLD=NEW, such as 1=2")
    return pass_number(old), pass_number(new)


def _opset(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 5):
        raise KeyTextError(f"'{text}' is not the number of an operator set, such as 18")
    return int(text)


@click.command(
    cls=Command,
    epilog=example(
        "tidu convert samples/f.json --types", "tidu build 'sin(x)' -i x:f32[3] | tidu convert --format onnx > sin.onnx"
    ),
)
@file_argument
@click.option(
    "--types", is_flag=True, help="Write the result types of every node, for readers that infer none (implies --nodes list)."
)
@click.option(
    "--nodes",
    type=click.Choice(["list", "packed"]),
    metavar="list|packed",
    help="How nodes are written. [default: packed in msgpack, list in JSON]",
)
@click.option(
    "--pass",
    "passes",
    type=Parsed("passes", _renumbering),
    multiple=True,
    metavar="OLD=NEW",
    help="Give a pass another number, in keys, linear graphs and names of graphs; repeats, and all change at once.",
)
@size_options
@part_options
@click.option(
    "--opset",
    type=Parsed("opset", _opset),
    metavar="N",
    help="The operator set in which ONNX is written, 18 or newer. [default: 21]",
)
@click.option(
    "--target-version",
    metavar="VERSION",
    help="The version of StableHLO that programs read which get the file (mlirbc), such as 1.0.0. [default: twelve weeks old]",
)
@document_output_options
def command(
    file: str,
    types: bool,
    nodes: str | None,
    passes: tuple[tuple[int, int], ...],
    weights: str | None,
    opset: int | None,
    target_version: str | None,
    out: str | None,
    format_: str | None,
    **of_model: Any,
) -> None:
    """Write a document in another format.

    JSON or msgpack, nodes listed or packed, with or without types; ONNX; StableHLO, its text (mlir) or portable artifacts
    (mlirbc). With --pass its passes have other numbers, so that files that were linearized apart can be linked.

    Sizes that a model of ONNX leaves open are chosen with --dim, --input-type and --set. With --weights its parameters are inputs,
    to differentiate by, and the file has their values for --inputs; with --cut so is a value within it, such as an embedding.
    """
    if types and nodes == "packed":
        raise click.UsageError("packed nodes have no place for types; leave out --types, or --nodes packed")
    numbers = dict(passes)
    if len(numbers) < len(passes):
        raise click.UsageError("--pass gives one pass two numbers")
    choices = chosen(**of_model, weights=weights)
    imported, came_in = load_imported(file, choices)
    to = chosen_format(out, format_, came_in)
    how = _how(to, types, nodes, opset, target_version)
    document = imported.document
    if numbers:
        from tidu_cli.transforms.linking.passes import renumber

        document = renumber(document, numbers)
    if weights is None:
        emit(document, out, format_, came_in, **how)
        return
    from tidu_cli.formats.output import write_first
    from tidu_cli.formats.values import write_values

    values = write_values({parse_key(text): value for text, value in imported.weights.items()}, "npz")
    write_first((values,), weights, lambda: emit(document, out, format_, came_in, **how))


def _how(to: str, types: bool, nodes: str | None, opset: int | None, target_version: str | None) -> dict[str, Any]:
    """What the writer of a format takes of the options. Raises UsageError for those of other formats."""
    if opset is not None and to != "onnx":
        raise click.UsageError(f"--opset is for ONNX, and the result is {to}; give --format onnx or -o FILE.onnx")
    if target_version is not None and to != "mlirbc":
        way = "give --format mlirbc or -o FILE.mlirbc"
        raise click.UsageError(f"--target-version is for portable artifacts of StableHLO, and the result is {to}; {way}")
    if to in ("onnx", "mlir", "mlirbc"):
        if types or nodes is not None:
            raise click.UsageError(f"--types and --nodes are for JSON and msgpack, and the result is {to}")
        return {"opset": opset} if to == "onnx" else {"target_version": target_version}
    return {"types": types, "listed": None if nodes is None else nodes == "list"}
