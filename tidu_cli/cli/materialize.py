"""tidu materialize: one self-contained graph."""

from __future__ import annotations

import click

from tidu_cli.cli.given import given_literals, set_option
from tidu_cli.cli.main import Command
from tidu_cli.cli.options import document_output_options, emit, example, file_argument, load, output_keys_option
from tidu_cli.graph.keys import Key


@click.command(cls=Command, epilog=example("tidu linearize samples/f.json --wrt x | tidu materialize"))
@file_argument
@output_keys_option
@set_option("Make an input a constant: its value, as JSON (3, [1,2], ...) or @FILE.npy; repeats.")
@click.option("--inline", is_flag=True, help="Put the graphs of the document's own ops in place of their nodes.")
@document_output_options
def command(
    file: str, outputs: tuple[Key, ...], settings: tuple[str, ...], inline: bool, out: str | None, format_: str | None
) -> None:
    """Make one self-contained graph of a document.

    Equal values are computed once, and what no output needs is dropped. Its inputs are those needed, in the order declared.
    """
    from tidu_cli.transforms.materialize import materialize

    document, came_in = load(file)
    if settings:
        from tidu_cli.transforms.fix import fix

        document = fix(document, given_literals(document, settings))
    result = materialize(document, outputs=outputs)
    if inline:
        from tidu_cli.transforms.inline import inline as inlined

        result = materialize(inlined(result))
    emit(result, out, format_, came_in)
