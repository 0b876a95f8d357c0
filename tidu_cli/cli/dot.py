"""tidu dot: the picture of a document."""

from __future__ import annotations

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import chosen_format, emit_bytes, example, file_argument, load, require_printable, result_options

_FORMATS = ("dot", "svg", "png", "pdf")


@click.command(cls=Command, epilog=example("tidu linearize samples/f.json --wrt x | tidu dot"))
@file_argument
@result_options(*_FORMATS, default="dot")
def command(file: str, out: str | None, format_: str | None) -> None:
    """Draw a document.

    Each graph is a box, references to other graphs are dashed, and active inputs are marked. The format dot is text, for
    Graphviz and for diffs; svg, png and pdf are drawn by Graphviz.
    """
    from tidu_cli.render.dot import to_dot
    from tidu_cli.render.graphviz import draw

    chosen = chosen_format(out, format_, "dot")
    require_printable(out, chosen)
    text = to_dot(load(file).document)
    emit_bytes(text.encode() if chosen == "dot" else draw(text, chosen), out)
