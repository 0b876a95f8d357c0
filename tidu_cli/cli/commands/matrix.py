"""tidu matrix: the matrix of the linear head."""

from __future__ import annotations

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import document_output_options, emit, example, file_argument, load


@click.command(
    cls=Command, epilog=example("tidu linearize samples/vector.json --wrt x | tidu matrix | tidu eval --set 'x=[1,2,3]'")
)
@file_argument
@click.option("--holomorphic", is_flag=True, help="Inputs and outputs are complex, and the function is holomorphic.")
@document_output_options
def command(file: str, holomorphic: bool, out: str | None, format_: str | None) -> None:
    """Replace the linear head by its matrix.

    It applies the head to all unit tangents in one batched pass. The result has no input of its own, and a block y/x for each
    output y and each input x of the derivative, with the axes of y and then those of x. A transposed head gives the same blocks by
    rows.
    """
    from tidu_cli.transforms.matrix import matrix

    document, came_in = load(file)
    emit(matrix(document, holomorphic=holomorphic), out, format_, came_in)
