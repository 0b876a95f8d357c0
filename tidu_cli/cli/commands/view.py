"""tidu view: a document as a page to look at, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tidu_cli.cli.commands.dot import LIMIT, picture_options, require_drawable, require_groupable
from tidu_cli.cli.main import Command
from tidu_cli.cli.messages import note
from tidu_cli.cli.options import emit_bytes, example, file_argument, load, require_stdin_once
from tidu_cli.cli.out_option import out_option
from tidu_cli.cli.value_options import given_values, inputs_option, set_option
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Document, Output
from tidu_cli.graph.keys import Key

_LARGEST = 100_000
"""Pages with all that is said of so many nodes have some 40 MB."""


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
def command(
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
    from tidu_cli.checking.numeric.cotangents import cotangent_owners
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
    from tidu_cli.checking.numeric.cotangents import computed_from
    from tidu_cli.graph.builder import GraphBuilder
    from tidu_cli.graph.link import link
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
