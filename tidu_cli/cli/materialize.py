"""tidu materialize: one self-contained graph."""

from __future__ import annotations

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import document_output_options, emit, example, file_argument, load, output_keys_option
from tidu_cli.graph.keys import Key


@click.command(cls=Command, epilog=example("tidu linearize samples/f.json --wrt x | tidu materialize"))
@file_argument
@output_keys_option
@document_output_options
def command(file: str, outputs: tuple[Key, ...], out: str | None, format_: str | None) -> None:
    """Make one self-contained graph of a document.

    Equal values are computed once, and what no output needs is dropped. Its inputs are those needed, in the order declared.
    """
    from tidu_cli.transforms.materialize import materialize

    document, came_in = load(file)
    emit(materialize(document, outputs=outputs), out, format_, came_in)
