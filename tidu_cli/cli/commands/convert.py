"""tidu convert: change the format of a document."""

from __future__ import annotations

from typing import Any

import click

from tidu_cli.cli.format_options import FormatCommand, options_read, options_written, values_file
from tidu_cli.cli.options import (
    chosen_format,
    document_output_options,
    emit,
    example,
    file_argument,
    load_imported,
    option,
)
from tidu_cli.formats.files import OWN
from tidu_cli.graph.keys import parse_key


@click.command(
    cls=FormatCommand,
    writes=True,
    after="--pass",
    epilog=example(
        "tidu convert samples/f.json --types", "tidu build 'sin(x)' -i x:f32[3] | tidu convert --format onnx > sin.onnx"
    ),
)
@file_argument
@click.option(
    "--types", is_flag=True, help="Write the result types of every node, for readers that infer none (implies --nodes list)."
)
@option("nodes")
@option("passes")
@document_output_options
def command(
    file: str,
    types: bool,
    nodes: str | None,
    passes: tuple[tuple[int, int], ...],
    out: str | None,
    format_: str | None,
    **of_formats: Any,
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
    options = options_read(of_formats)
    imported, came_in = load_imported(file, options)
    to = chosen_format(out, format_, came_in)
    how = options_written(of_formats, to)
    if to in OWN:
        how = {"types": types, "listed": None if nodes is None else nodes == "list"}
    elif types or nodes is not None:
        raise click.UsageError(f"--types and --nodes are for JSON and msgpack, and the result is {to}")
    document = imported.document
    if numbers:
        from tidu_cli.api.documents import renumber

        document = renumber(document, numbers)
    if (beside := values_file(options)) is None:
        emit(document, out, format_, came_in, **how)
        return
    from tidu_cli.formats.values import write_values
    from tidu_cli.formats.write import write_first

    values = write_values({parse_key(text): value for text, value in imported.weights.items()}, "npz")
    write_first((values,), beside, lambda: emit(document, out, format_, came_in, **how))
