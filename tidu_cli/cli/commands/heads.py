"""Commands that put another graph in the place of the head.

tidu transpose: turn the linear head round.
tidu matrix: the matrix of the linear head.
tidu materialize: one self-contained graph.
"""

from __future__ import annotations

from typing import Any

import click

from tidu_cli.cli.building import values_of
from tidu_cli.cli.evaluation_options import assigned, file_values, input_types, set_option
from tidu_cli.cli.main import Command
from tidu_cli.cli.options import Parsed, document_output_options, example, file_argument, on_document, option, shown
from tidu_cli.errors import TiduError, TransformError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import listed
from tidu_cli.rules.terms import ASSUMPTIONS


@click.command(cls=Command, epilog=example("tidu linearize samples/f.json --wrt x | tidu transpose"))
@file_argument
@option("strong_zeros")
@document_output_options
@on_document
def transpose(document: Document, strong_zeros: bool) -> Document:
    """Turn the linear head round: a JVP to a VJP, or back.

    The transpose takes the head's place. It takes the cotangents of the outputs and gives those of the inputs: from y@-1 to
    x@-1, say.
    """
    from tidu_cli.api.documents import transpose

    return transpose(document, strong_zeros=strong_zeros)


@click.command(
    cls=Command, epilog=example("tidu linearize samples/vector.json --wrt x | tidu matrix | tidu eval --set 'x=[1,2,3]'")
)
@file_argument
@option("holomorphic")
@document_output_options
@on_document
def matrix(document: Document, holomorphic: bool) -> Document:
    """Replace the linear head by its matrix.

    It applies the head to all unit tangents in one batched pass. The result has no input of its own, and a block y/x for each
    output y and each input x of the derivative, with the axes of y and then those of x. A transposed head gives the same blocks by
    rows.
    """
    from tidu_cli.api.documents import matrix

    return matrix(document, holomorphic=holomorphic)


def _policies(ctx: click.Context, param: click.Parameter, policies: tuple[str, ...]) -> tuple[str, ...]:
    """The policies, if they go together. Raises UsageError."""
    if policies:
        from tidu_cli.transforms.recompute import joint_policy

        try:
            joint_policy(policies)
        except TiduError as error:
            raise click.UsageError(str(error)) from None
    return policies


def _policy(text: str) -> str:
    from tidu_cli.transforms.recompute import parse_policy

    parse_policy(text)
    return text


_constants_option = click.option(
    "--inputs",
    "files",
    multiple=True,
    metavar="FILE",
    help="Make the inputs constants that a file has values of, by key: JSON, npz, msgpack or csv; repeats.",
)
"""The option --inputs FILE of what makes inputs constants."""


def _constants(document: Document, settings: tuple[str, ...], files: tuple[str, ...] = ()) -> dict[Key, object]:
    """The values of --inputs files and of --set that become constants. Raises TiduError for the malformed and unknown."""
    types = input_types(document)
    of_files = {key: value for key, value in file_values(files, types).items() if key in types}
    if files and not of_files:
        raise TransformError(f"{', '.join(map(shown, files))}: has no values of inputs (inputs: {listed(list(map(str, types)))})")
    return of_files | (assigned(document, values_of(settings), types, "--set") if settings else {})


@click.command(cls=Command, epilog=example("tidu linearize samples/f.json --wrt x | tidu materialize"))
@file_argument
@option("output")
@set_option("Make an input a constant: its value, such as 3, .5, 1,2,3, JSON, or @FILE.npy; repeats.")
@_constants_option
@option("recompute", type=Parsed("policy", _policy), callback=_policies)
@option("inline")
@option("needed_inputs")
@option("simplify")
@click.option(
    "--assume",
    multiple=True,
    type=click.Choice(ASSUMPTIONS),
    help="With --simplify: also by what holds where zeros have no sign, or nothing is infinite or NaN; repeats.",
)
@document_output_options
@on_document
def materialize(document: Document, settings: tuple[str, ...], files: tuple[str, ...], **how: Any) -> Document:
    """Make one self-contained graph of a document.

    Equal values are computed once, and nodes that no output needs are dropped. Its inputs are all that the document declares and
    that are not bound, in order, needed or not, so that a pipeline works the same for every function.

    With --simplify, products with 1, changes of shape that undo one another and the like go, and arithmetic on constants is done,
    in loops and branches, too. As tidu evaluates it no value changes by a bit, but for the bits of NaNs.

    With --recompute, values that a reverse sweep would hold for long are computed a second time instead. A note tells the peak of
    memory and the operations, with and without; where the peak is no lower, the graph is as it is without. No value changes.
    """
    from tidu_cli.api.documents import materialize

    if how["assume"] and not how["simplify"]:
        raise click.UsageError("--assume says what --simplify may take for granted; add --simplify")
    return materialize(document, set=_constants(document, settings, files), **how)
