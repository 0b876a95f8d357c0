"""tidu linearize: append the JVP of the head's outputs."""

from __future__ import annotations

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import (
    PASS,
    Parsed,
    document_output_options,
    example,
    file_argument,
    on_document,
    output_keys_option,
    wrt_option,
)
from tidu_cli.errors import KeyTextError, TypeTextError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key, parse_key


def _assignment(setting: str) -> tuple[Key, str]:
    # Types hold no =, so what stands before the last one is the key.
    key, equals, type_ = setting.rpartition("=")
    if not equals:
        raise KeyTextError(f"'{setting}' is not KEY=TYPE, such as n=f32[]")
    return parse_key(key), type_


@click.command(cls=Command, epilog=example("tidu linearize samples/f.json --wrt x"))
@file_argument
@wrt_option
@output_keys_option
@click.option("--pass", "pass_number", type=PASS, metavar="N", help="The pass number. [default: the next free one]")
@click.option(
    "--detach", is_flag=True, help="Write only the new graphs, which refer to the others by digest; `tidu resolve` links them."
)
@click.option(
    "--tangent",
    multiple=True,
    metavar="KEY=TYPE",
    type=Parsed("tangent", _assignment),
    help="The type of an input's tangent, one that its own type admits: f32 for x of f64[], duration[h], {at: duration[h]}; "
    "repeats. [default: the natural one]",
)
@document_output_options
@on_document
def command(
    document: Document,
    wrt: tuple[Key, ...],
    output: tuple[Key, ...],
    pass_number: int | None,
    detach: bool,
    tangent: tuple[tuple[Key, str], ...],
) -> Document:
    """Append the JVP of the head's outputs.

    It is a linear graph, and comes after a residual graph where the derivative needs values that the document does not have. It
    takes the tangents of the --wrt inputs, in that order, and gives those of the outputs: from x@1 to y@1, say.
    """
    from tidu_cli.api.documents import linearize

    try:
        return linearize(document, wrt, output, pass_number, detach, dict(tangent))
    except TypeTextError as error:
        raise click.BadParameter(str(error), param_hint="'--tangent'") from None
