"""tidu matrix: the matrix of the linear head."""

from __future__ import annotations

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import document_output_options, example, file_argument, holomorphic_option, on_document
from tidu_cli.graph.graph import Document


@click.command(
    cls=Command, epilog=example("tidu linearize samples/vector.json --wrt x | tidu matrix | tidu eval --set 'x=[1,2,3]'")
)
@file_argument
@holomorphic_option
@document_output_options
@on_document
def command(document: Document, holomorphic: bool) -> Document:
    """Replace the linear head by its matrix.

    It applies the head to all unit tangents in one batched pass. The result has no input of its own, and a block y/x for each
    output y and each input x of the derivative, with the axes of y and then those of x. A transposed head gives the same blocks by
    rows.
    """
    from tidu_cli.transforms.matrix import matrix

    return matrix(document, holomorphic=holomorphic)
