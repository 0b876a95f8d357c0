"""tidu convert: change the format of a document."""

from __future__ import annotations

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import Parsed, document_output_options, emit, example, file_argument, load, pass_number
from tidu_cli.errors import KeyTextError


def _renumbering(text: str) -> tuple[int, int]:
    old, equals, new = text.partition("=")
    if not equals:
        raise KeyTextError(f"'{text}' is not OLD=NEW, such as 1=2")
    return pass_number(old), pass_number(new)


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
@click.option(
    "--pass",
    "passes",
    type=Parsed("passes", _renumbering),
    multiple=True,
    metavar="OLD=NEW",
    help="Give a pass another number, in keys, linear graphs and names of graphs; repeats, and all change at once.",
)
@document_output_options
def command(
    file: str, types: bool, nodes: str | None, passes: tuple[tuple[int, int], ...], out: str | None, format_: str | None
) -> None:
    """Write a document in another format.

    JSON or msgpack, nodes listed or packed, with or without types. With --pass its passes have other numbers, so that files that
    were linearized apart can be linked.
    """
    if types and nodes == "packed":
        raise click.UsageError("packed nodes have no place for types; leave out --types, or --nodes packed")
    numbers = dict(passes)
    if len(numbers) < len(passes):
        raise click.UsageError("--pass gives one pass two numbers")
    document, came_in = load(file)
    if numbers:
        from tidu_cli.transforms.linking.passes import renumber

        document = renumber(document, numbers)
    emit(document, out, format_, came_in, types=types, listed=None if nodes is None else nodes == "list")
