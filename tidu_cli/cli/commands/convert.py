"""tidu convert: change the format of a document."""

from __future__ import annotations

from typing import Any

import click

from tidu_cli.cli import options
from tidu_cli.cli.building import kind_of
from tidu_cli.cli.format_options import FormatCommand, is_given, options_read, options_written, with_values_written
from tidu_cli.formats.files import OWN, read_bytes


@click.command(
    cls=FormatCommand,
    writes=True,
    after="--pass",
    epilog=options.example(
        "tidu convert samples/f.json --types", "tidu build 'sin(x)' -i x:f32[3] | tidu convert --format onnx > sin.onnx"
    ),
)
@options.file_argument
@click.option(
    "--types", is_flag=True, help="Write the result types of every node, for readers that infer none (implies --nodes list)."
)
@options.option("nodes")
@options.option("passes")
@options.option("bound_loops", type=options.Whole(1))
@options.option("size")
@click.option(
    "--weights-from",
    metavar="FILE",
    help="Write the model of ONNX that is read as it is, but for weights of which this file has values: npz, JSON or msgpack.",
)
@options.document_output_options
def command(
    file: str,
    types: bool,
    nodes: str | None,
    passes: tuple[tuple[int, int], ...],
    bound_loops: int | None,
    size: tuple[tuple[str, str], ...],
    weights_from: str | None,
    out: str | None,
    format_: str | None,
    **of_formats: Any,
) -> None:
    """Write a document in another format.

    JSON or msgpack, nodes listed or packed, with or without types; ONNX; StableHLO, its text (mlir) or portable artifacts
    (mlirbc). With --pass its passes have other numbers, so that files that were linearized apart can be linked. With --bound-loops
    loops with a condition have a known number of steps, and so a reverse mode. With --size open sizes are numbers, or other sizes.

    Sizes that a model of ONNX leaves open stay open, unless --dim, --input-type or --set choose them. With --weights its
    parameters are inputs, to differentiate by, and the file has their values for --inputs; with --cut so is a value within it,
    such as an embedding. With --weights-from values by the same names go back into the model.
    """
    if types and nodes == "packed":
        raise click.UsageError("packed nodes have no place for types; leave out --types, or --nodes packed")
    numbers = dict(passes)
    if len(numbers) < len(passes):
        raise click.UsageError("--pass gives one pass two numbers")
    reading = options_read(of_formats)
    if weights_from is not None:
        if types or nodes or passes or bound_loops or size or reading or any(map(is_given, of_formats.values())):
            raise click.UsageError("--weights-from changes nothing but weights; leave out the other options")
        _put_weights(file, weights_from, out, format_)
        return
    if len(dict(size)) < len(size):
        raise click.UsageError("--size gives one name two sizes")
    imported, came_in = options.load_imported(file, reading, sizes=dict(size))
    to = options.chosen_format(out, format_, came_in)
    how = options_written(of_formats, to)
    if to in OWN:
        how = {"types": types, "listed": None if nodes is None else nodes == "list"}
    elif types or nodes is not None:
        raise click.UsageError(f"--types and --nodes are for JSON and msgpack, and the result is {to}")
    document = imported.document
    if numbers:
        from tidu_cli.api.files import renumber

        document = renumber(document, numbers)
    if bound_loops is not None:
        from tidu_cli.api import files

        document = files.bound_loops(document, bound_loops)
    with_values_written(imported, reading, lambda: options.emit(document, out, format_, came_in, **how))


def _put_weights(file: str, weights: str, out: str | None, format_: str | None) -> None:
    """Write a model with values of weights that another file has."""
    from tidu_cli.api.training import save_weights
    from tidu_cli.formats.values import read_values

    if kind_of(file) != "file":
        raise click.UsageError(f"--weights-from is for models, and '{file}' is none")
    options.require_stdin_once(file, weights)
    if format_ not in (None, "onnx"):
        raise click.UsageError(f"--weights-from writes the model that it reads, and not {format_}; leave out --format")
    options.require_printable(out, "onnx")
    data = read_bytes(weights)
    save_weights(file, read_values(data, options.shown(weights), None if data[:2] == b"PK" else {}), out or "-")
