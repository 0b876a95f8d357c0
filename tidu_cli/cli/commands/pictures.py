"""Commands that draw documents.

tidu dot: the picture of a document.
tidu view: a document as a page to look at, step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.messages import note
from tidu_cli.cli.options import (
    Whole,
    chosen_format,
    emit_bytes,
    example,
    file_argument,
    load,
    option,
    require_printable,
    require_stdin_once,
)
from tidu_cli.cli.out_option import out_option, result_options
from tidu_cli.cli.value_options import given_values, inputs_option, set_option
from tidu_cli.errors import TiduError
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Document, Output
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
    for name in ("collapse", "highlight", "types"):
        function = option(name)(function)
    return function


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
def dot(
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
    from tidu_cli.render.dot import draw, to_dot

    chosen = chosen_format(out, format_, "dot")
    require_printable(out, chosen)
    document = load(file).document
    if boxed := bool(opened) or depth is not None:
        if expand or limit:
            raise click.UsageError("--open and --depth draw groups, --expand and --limit every node: give the one or the other")
    elif not expand and not limit and chosen != "dot":
        from tidu_cli.render.groups.drawn import PLAIN
        from tidu_cli.render.picture import n_items

        boxed = n_items(document, collapse=collapse)[0] > PLAIN
    if boxed:
        require_groupable(document, MOST)
        from tidu_cli.render.groups.drawn import to_boxes

        text = to_boxes(document, types=types, collapse=collapse, highlight=highlight, open_=opened, depth=depth)
    else:
        require_drawable(document, collapse=collapse, limit=limit or (None if chosen == "dot" else LIMIT))
        text = to_dot(document, types=types, collapse=collapse, highlight=highlight)
    emit_bytes(text.encode() if chosen == "dot" else draw(text, chosen), out)


_LARGEST = 100_000
"""Most nodes of a page with all details, which then has about 40 MB."""


@click.command(
    cls=Command,
    epilog=example("tidu linearize samples/f.json --wrt x | tidu transpose | tidu view --set x=3 --set y@-1=1 -o reverse.html"),
)
@file_argument
@set_option("An input's value: 3, .5, 1+2j, 1,2,3, JSON such as [[1,2],[3,4]], or @FILE.npy; repeats.")
@inputs_option
@picture_options
@out_option("html")
@click.option("--at", metavar="GROUP", help="The group, by its name or line, that the page shows first.")
@click.option("--open", "open_", is_flag=True, help="Open the page in the browser; needs -o.")
def view(
    file: str,
    settings: tuple[str, ...],
    files: tuple[str, ...],
    types: bool,
    highlight: tuple[Key, ...],
    collapse: bool,
    limit: int | None,
    expand: bool,
    at: str | None,
    out: str | None,
    open_: bool,
) -> None:
    """Write a page that shows a document.

    One HTML file that needs no network: the picture of tidu dot with pan and zoom, a search, all that is known of a value at a
    click, and a slider that steps through the head's nodes in the order in which they are computed, each told in words. Large
    graphs are boxes that open. With --set and --inputs, as in eval, it has the numbers. It is drawn by Graphviz.
    """
    from tidu_cli.checking.numeric.linear import cotangent_owners
    from tidu_cli.render.picture import picture
    from tidu_cli.render.view import to_html

    require_stdin_once(file, *files)
    if open_ and out in (None, "-"):
        raise click.UsageError("--open needs a file: give -o page.html")
    document = load(file, settings, files).document
    if expand or limit:
        require_drawable(document, collapse=collapse, limit=limit or LIMIT)
    else:
        require_groupable(document, _LARGEST, "tidu dot -o FILE.svg groups more, and ")
    shown = picture(document, collapse=collapse, highlight=highlight, inside=False)
    values = _values(document, given_values(document, settings, files)) if settings or files else {}
    owners = cotangent_owners(document)
    emit_bytes(to_html(shown, types=types, values=values, owners=owners, expand=bool(expand or limit), at=at).encode(), out)
    if open_ and out is not None:
        import webbrowser

        if not webbrowser.open(Path(out).resolve().as_uri()):
            note(f"no browser to open {out} with")


def _values(document: Document, given: Mapping[Key, object]) -> dict[tuple[int, int], Any]:
    """Every value that the given inputs determine, by graph and local id. The head's outputs must be among them."""
    from tidu_cli.checking.numeric.linear import computed_from
    from tidu_cli.graph.link import GraphBuilder, link
    from tidu_cli.runtime.evaluate import evaluate
    from tidu_cli.transforms.materialize import materialize

    logical = link(document)
    known = computed_from(logical, given, all)
    builder = GraphBuilder(document.cases)
    outputs = [
        Output(Key(f"{g} {v}"), builder.refer(g, v), graph.type_of(v))
        for g, graph in enumerate(document.graphs)
        for v in range(graph.n_values)
        if known[logical.flat_id(g, v)]
    ]
    # What the head needs is asked for like any other, so that what is missing is named as eval names it.
    last = len(document.graphs) - 1
    for k, output in enumerate(document.head.outputs):
        if output.value is not None:
            outputs.append(Output(Key(f"head {k}"), builder.refer(*document.head.place(last, output.value)), output.type))
    everything = replace(document, graphs=(*document.graphs, builder.build(document.head.name, outputs)))
    results = evaluate(materialize(everything).head, given)
    return {(int(g), int(v)): array for key, array in results.items() for g, v in [key.name.split(" ")] if g != "head"}
