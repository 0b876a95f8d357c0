"""tidu transpose: turn the linear head round."""

from __future__ import annotations

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import document_output_options, emit, example, file_argument, load


@click.command(cls=Command, epilog=example("tidu linearize samples/f.json --wrt x | tidu transpose"))
@file_argument
@document_output_options
def command(file: str, out: str | None, format_: str | None) -> None:
    """Turn the linear head round: a JVP to a VJP, or back.

    The transpose takes the head's place. It takes the cotangents of the outputs and gives those of the inputs: from y@-1 to
    x@-1, say.
    """
    from tidu_cli.transforms.transpose import transpose

    document, came_in = load(file)
    emit(transpose(document), out, format_, came_in)
