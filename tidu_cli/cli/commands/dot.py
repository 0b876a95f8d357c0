"""tidu dot: the picture of a document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import KEY, Whole, chosen_format, emit_bytes, example, file_argument, load, require_printable
from tidu_cli.cli.out_option import result_options
from tidu_cli.errors import TiduError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key

F = TypeVar("F", bound=Callable[..., Any])

LIMIT = 500
"""Graphviz draws more things than this slowly, and nobody reads the result."""

EDGES = 4
"""As many edges are drawn for each thing that the limit allows: most graphs have half as many."""

_SLOW = 5000
"""Of so many things Graphviz takes a minute or more."""

MOST = 1_000_000
"""Groups of so many nodes take a minute or two."""

_FORMATS = ("dot", "svg", "png", "pdf")


def picture_options(function: F) -> F:
    """The options --types, --highlight, --collapse, --limit and --expand."""
    expand = "Draw every node, and no groups, however large the graph is."
    function = click.option("--expand", is_flag=True, help=expand)(function)
    limit = f"Draw every node, but refuse more things than this, or {EDGES} times as many edges. [default with --expand: {LIMIT}; "
    limit += "none for DOT text]"
    function = click.option("--limit", type=Whole(min=1), metavar="N", help=limit)(function)
    collapse = "Draw each graph but the head as one node, and in the head each run of nodes that only hand a value on."
    function = click.option("--collapse", is_flag=True, help=collapse)(function)
    highlight = "Fade all but the paths from inputs to outputs that go through this input or output; repeats."
    function = click.option("--highlight", type=KEY, multiple=True, metavar="KEY", help=highlight)(function)
    return click.option("--types", is_flag=True, help="Write the types of values on the edges.")(function)


def require_drawable(document: Document, *, collapse: bool, limit: int | None) -> None:
    """Raises TiduError, with what helps, if the picture would show more things than `limit`, or edges than `EDGES` to each."""
    from tidu_cli.render.picture import n_items

    n, n_edges = n_items(document, collapse=collapse)
    if limit is None or (needed := _needed(n, n_edges)) <= limit:
        return
    ports = sum(len(graph.inputs) + len(graph.outputs) for graph in document.graphs)
    folded = (n, n_edges) if collapse else n_items(document, collapse=True)
    if _needed(*folded) <= limit:
        helps = f"--collapse draws {folded[0]}, other graphs and runs of nodes as one each"
    elif ports > limit:
        helps = f"{ports} are inputs and outputs, which are always drawn: build it of arrays rather than of single numbers"
    elif _needed(*folded) < needed:
        helps = f"--collapse --limit {_needed(*folded)} draws {folded[0]}"
    else:
        helps = "it is collapsed already" if collapse else "--collapse does not help, there are no runs of nodes to draw as one"
    shown = f"{n} inputs, nodes and outputs, more than {limit}" if n > limit else f"{n_edges} edges, more than {EDGES * limit}"
    raise TiduError(
        f"the picture would show {shown}; {helps}; --limit {needed} draws all{', slowly' if needed > _SLOW else ''}; "
        "tidu info summarises a document of any size"
    )


def require_groupable(document: Document, most: int, way: str = "") -> None:
    """Raises TiduError, with what helps, if the groups of a document are those of more nodes than this."""
    if (n := sum(graph.n_nodes for graph in document.graphs)) > most:
        raise TiduError(
            f"{n:,} nodes are too many to be grouped, the most are {most:,}; {way}tidu info summarises a document of any size"
        )


def _needed(n: int, n_edges: int) -> int:
    """The limit that lets so many things and edges be drawn."""
    return max(n, -(-n_edges // EDGES))


@click.command(
    cls=Command, epilog=example("tidu linearize samples/f.json --wrt x | tidu dot", "tidu dot samples/mlp.json -o mlp.svg")
)
@file_argument
@picture_options
@click.option("--open", "opened", multiple=True, metavar="GROUP", help="Draw what is in the groups of this name or line; repeats.")
@click.option(
    "--depth",
    type=Whole(min=0),
    metavar="N",
    help="Open groups to this depth. [default: as a screen has room for]",
)
@result_options(*_FORMATS, default="dot")
def command(
    file: str,
    types: bool,
    highlight: tuple[Key, ...],
    collapse: bool,
    limit: int | None,
    expand: bool,
    opened: tuple[str, ...],
    depth: int | None,
    out: str | None,
    format_: str | None,
) -> None:
    """Draw a document.

    Each graph is a frame that says what it is. Inputs are ellipses, nodes boxes, outputs have a double border, and a circle is an
    add that accumulates a cotangent. Tangents are orange, cotangents purple, references to other graphs dashed. The format dot is
    text, for Graphviz and for diffs; svg, png and pdf are drawn by Graphviz.

    In svg, png and pdf the nodes of large graphs are boxes: by the functions and lines that made them (tidu build --source), by
    names such as layer1/conv, by steps that repeat, or by number. With --open or --depth so they are in text, too.
    """
    from tidu_cli.render.dot import to_dot
    from tidu_cli.render.graphviz import draw

    chosen = chosen_format(out, format_, "dot")
    require_printable(out, chosen)
    document = load(file).document
    if boxed := bool(opened) or depth is not None:
        if expand or limit:
            raise click.UsageError("--open and --depth draw groups, --expand and --limit every node: give the one or the other")
    elif not expand and not limit and chosen != "dot":
        from tidu_cli.render.groups.layout import PLAIN
        from tidu_cli.render.picture import n_items

        boxed = n_items(document, collapse=collapse)[0] > PLAIN
    if boxed:
        require_groupable(document, MOST)
        from tidu_cli.render.groups.text import to_boxes

        text = to_boxes(document, types=types, collapse=collapse, highlight=highlight, open_=opened, depth=depth)
    else:
        require_drawable(document, collapse=collapse, limit=limit or (None if chosen == "dot" else LIMIT))
        text = to_dot(document, types=types, collapse=collapse, highlight=highlight)
    emit_bytes(text.encode() if chosen == "dot" else draw(text, chosen), out)
