"""Commands that draw documents.

tidu dot: the picture of a document.
tidu view: a document as a page to look at, step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from tidu_cli.cli import options
from tidu_cli.cli.evaluation_options import given_values, inputs_option, set_option
from tidu_cli.cli.main import Command
from tidu_cli.cli.messages import note
from tidu_cli.cli.out_option import out_option, result_options

F = TypeVar("F", bound=Callable[..., Any])


def picture_options(function: F) -> F:
    """The options --types, --highlight, --collapse, --limit and --expand."""
    function = options.option("limit", type=options.Whole(min=1))(options.option("expand")(function))
    for name in ("collapse", "highlight", "types"):
        function = options.option(name)(function)
    return function


@click.command(
    cls=Command, epilog=options.example("tidu linearize samples/f.json --wrt x | tidu dot", "tidu dot samples/mlp.json -o mlp.svg")
)
@options.file_argument
@picture_options
@options.option("opened")
@options.option("depth", type=options.Whole(min=0))
@result_options("dot", "svg", "png", "pdf", default="dot")
def dot(file: str, out: str | None, format_: str | None, **how: Any) -> None:
    """Draw a document.

    Each graph is a frame that says what it is. Inputs are ellipses, nodes boxes, outputs have a double border, and a circle is an
    add that accumulates a cotangent. Tangents are orange, cotangents purple, references to other graphs dashed. The format dot is
    text, for Graphviz and for diffs; svg, png and pdf are drawn by Graphviz.

    In svg, png and pdf the nodes of large graphs are boxes: by the functions and lines that made them (tidu build --source), by
    names such as layer1/conv, by steps that repeat, or by number. With --open or --depth so they are in text, too.
    """
    from tidu_cli.api.pictures import draw

    chosen = options.chosen_format(out, format_, "dot")
    options.require_printable(out, chosen)
    options.emit_bytes(draw(options.load(file).document, chosen, **how), out)


@click.command(
    cls=Command,
    epilog=options.example(
        "tidu linearize samples/f.json --wrt x | tidu transpose | tidu view --set x=3 --set y@-1=1 -o reverse.html"
    ),
)
@options.file_argument
@set_option("An input's value: 3, .5, 1+2j, 1,2,3, JSON such as [[1,2],[3,4]], or @FILE.npy; repeats.")
@inputs_option
@picture_options
@out_option("html")
@options.option("at")
@click.option("--open", "open_", is_flag=True, help="Open the page in the browser; needs -o.")
def view(file: str, settings: tuple[str, ...], files: tuple[str, ...], out: str | None, open_: bool, **how: Any) -> None:
    """Write a page that shows a document.

    One HTML file that needs no network: the picture of tidu dot with pan and zoom, a search, all that is known of a value at a
    click, and a slider that steps through the head's nodes in the order in which they are computed, each told in words. Large
    graphs are boxes that open. With --set and --inputs, as in eval, it has the numbers. It is drawn by Graphviz; where that is
    missing the page draws itself, and is larger by 1.3 MB.
    """
    from tidu_cli.api import pictures

    options.require_stdin_once(file, *files)
    if open_ and out in (None, "-"):
        raise click.UsageError("--open needs a file: give -o page.html")
    document = options.load(file, settings, files).document
    values = given_values(document, settings, files) if settings or files else None
    options.emit_bytes(pictures.view(document, values, **how).encode(), out)
    if open_ and out is not None:
        import webbrowser

        if not webbrowser.open(Path(out).resolve().as_uri()):
            note(f"no browser to open {out} with")
