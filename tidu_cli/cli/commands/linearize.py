"""tidu linearize: append the JVP of the head's outputs."""

from __future__ import annotations

from typing import Any

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import document_output_options, example, file_argument, on_document, option
from tidu_cli.errors import TypeTextError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key


@click.command(cls=Command, epilog=example("tidu linearize samples/f.json --wrt x"))
@file_argument
@option("wrt", required=True)
@option("output")
@option("pass_number")
@option("detach")
@option("tangent")
@document_output_options
@on_document
def command(document: Document, tangent: tuple[tuple[Key, str], ...], **how: Any) -> Document:
    """Append the JVP of the head's outputs.

    It is a linear graph, and comes after a residual graph where the derivative needs values that the document does not have. It
    takes the tangents of the --wrt inputs, in that order, and gives those of the outputs: from x@1 to y@1, say.
    """
    from tidu_cli.api.documents import linearize

    try:
        return linearize(document, tangent=dict(tangent), **how)
    except TypeTextError as error:
        raise click.BadParameter(str(error), param_hint="'--tangent'") from None
