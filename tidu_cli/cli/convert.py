"""tidu convert: change the format of a document."""

from __future__ import annotations

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import document_output_options, emit, example, file_argument, load


@click.command(cls=Command, epilog=example("tidu convert samples/f.json --types"))
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
@document_output_options
def command(file: str, types: bool, nodes: str | None, out: str | None, format_: str | None) -> None:
    """Write a document in another format.

    JSON or msgpack, nodes listed or packed, with or without types.
    """
    if types and nodes == "packed":
        raise click.UsageError("packed nodes have no place for types; leave out --types, or --nodes packed")
    document, came_in = load(file)
    emit(document, out, format_, came_in, types=types, listed=None if nodes is None else nodes == "list")
