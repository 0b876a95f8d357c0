"""tidu transpose: turn the linear head round."""

from __future__ import annotations

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import document_output_options, example, file_argument, on_document, strong_zeros_option
from tidu_cli.graph.graph import Document


@click.command(cls=Command, epilog=example("tidu linearize samples/f.json --wrt x | tidu transpose"))
@file_argument
@strong_zeros_option
@document_output_options
@on_document
def command(document: Document, strong_zeros: bool) -> Document:
    """Turn the linear head round: a JVP to a VJP, or back.

    The transpose takes the head's place. It takes the cotangents of the outputs and gives those of the inputs: from y@-1 to
    x@-1, say.
    """
    from tidu_cli.transforms.transpose import transpose

    return transpose(document, strong_zeros=strong_zeros)
