"""Documents in notebooks: what they are in a line, the picture of a small one, and the listing, folded."""

from __future__ import annotations

import html
import shutil

from tidu_cli.errors import TiduError
from tidu_cli.graph.graph import Document
from tidu_cli.render.dot import draw, to_dot
from tidu_cli.render.listing.lines import listing
from tidu_cli.render.picture import n_items

_DRAWN = 60
"""A picture of more things is not drawn."""


def svg_of(document: Document) -> str | None:
    """The picture of a small document; None of a large one, or without Graphviz."""
    if shutil.which("dot") is None or sum(graph.n_nodes for graph in document.graphs) > _DRAWN or n_items(document)[0] > _DRAWN:
        return None
    try:
        return draw(to_dot(document), "svg").decode()
    except TiduError:
        return None  # a picture is an extra: the listing is there


def html_of(document: Document) -> str:
    """A line, the picture if there is one, and the listing."""
    picture = svg_of(document)
    svg = picture[picture.index("<svg") :] if picture else ""
    text = html.escape("\n".join(listing(document)))
    return (
        f"<div><code>{html.escape(repr(document))}</code>{svg}<details><summary>listing</summary><pre>{text}</pre></details></div>"
    )
