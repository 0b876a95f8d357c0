"""tidu dot: the picture of a document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import KEY, chosen_format, emit_bytes, example, file_argument, load, require_printable, result_options
from tidu_cli.errors import TiduError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key

F = TypeVar("F", bound=Callable[..., Any])

LIMIT = 500
"""Graphviz draws more things than this slowly, and nobody reads the result."""

_FORMATS = ("dot", "svg", "png", "pdf")


def picture_options(function: F) -> F:
    """The options --types, --highlight, --collapse and --limit."""
    limit = f"Refuse to draw more inputs, nodes and outputs than this. [default: {LIMIT}; none for DOT text]"
    function = click.option("--limit", type=click.IntRange(min=1), metavar="N", help=limit)(function)
    collapse = "Draw each graph but the head as one node between its inputs and outputs."
    function = click.option("--collapse", is_flag=True, help=collapse)(function)
    highlight = "Fade all but the paths from inputs to outputs that go through this input or output; repeats."
    function = click.option("--highlight", type=KEY, multiple=True, metavar="KEY", help=highlight)(function)
    return click.option("--types", is_flag=True, help="Write the types of values on the edges.")(function)


def require_drawable(document: Document, *, collapse: bool, limit: int | None) -> None:
    """Raises TiduError, with what to do, if the picture would show more things than `limit`."""
    from tidu_cli.render.picture import n_items

    n = n_items(document, collapse=collapse)
    if limit is None or n <= limit:
        return
    collapsed = n_items(document, collapse=True)
    smaller = f"--collapse draws {collapsed}, each graph but the head as one node; " if collapsed < n else ""
    raise TiduError(
        f"the picture would show {n} inputs, nodes and outputs, more than {limit}; {smaller}"
        f"--limit {n} draws it anyway; tidu info summarises a document of any size"
    )


@click.command(
    cls=Command, epilog=example("tidu linearize samples/f.json --wrt x | tidu dot", "tidu dot samples/mlp.json -o mlp.svg")
)
@file_argument
@picture_options
@result_options(*_FORMATS, default="dot")
def command(
    file: str, types: bool, highlight: tuple[Key, ...], collapse: bool, limit: int | None, out: str | None, format_: str | None
) -> None:
    """Draw a document.

    Each graph is a frame that says what it is. Inputs are ellipses, nodes boxes, outputs have a double border, and a circle is an
    add that accumulates a cotangent. Tangents are orange, cotangents purple, references to other graphs dashed. The format dot is
    text, for Graphviz and for diffs; svg, png and pdf are drawn by Graphviz.
    """
    from tidu_cli.render.dot import to_dot
    from tidu_cli.render.graphviz import draw

    chosen = chosen_format(out, format_, "dot")
    require_printable(out, chosen)
    document = load(file).document
    require_drawable(document, collapse=collapse, limit=limit or (None if chosen == "dot" else LIMIT))
    text = to_dot(document, types=types, collapse=collapse, highlight=highlight)
    emit_bytes(text.encode() if chosen == "dot" else draw(text, chosen), out)
