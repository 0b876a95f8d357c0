"""tidu rename: give inputs, outputs and graphs other names."""

from __future__ import annotations

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import Parsed, document_output_options, example, file_argument, on_document
from tidu_cli.errors import KeyTextError
from tidu_cli.graph.graph import Document


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise KeyTextError(f"'{text}' is not OLD=NEW, such as x=t")
    return old, new


def _names(pairs: tuple[tuple[str, str], ...], option: str) -> dict[str, str]:
    names = dict(pairs)
    if len(names) < len(pairs):
        raise click.UsageError(f"{option} gives one name two others")
    return names


@click.command(cls=Command, epilog=example("tidu rename samples/f.json --graph f=power --key x=base | tidu show"))
@file_argument
@click.option(
    "--key", "keys", type=Parsed("names", _pair), multiple=True, metavar="OLD=NEW", help="Rename an input or output; repeats."
)
@click.option("--graph", "graphs", type=Parsed("names", _pair), multiple=True, metavar="OLD=NEW", help="Rename a graph; repeats.")
@document_output_options
@on_document
def command(document: Document, keys: tuple[tuple[str, str], ...], graphs: tuple[tuple[str, str], ...]) -> Document:
    """Give inputs, outputs and graphs other names.

    What is derived of them follows: with the input x go its tangents x@1 and its cotangents x@-1, with the graph f its derivative
    f@1. All change at once: --key x=y --key y=x exchanges two.
    """
    from tidu_cli.transforms.linking.rename import renamed

    return renamed(document, _names(keys, "--key"), _names(graphs, "--graph"))
