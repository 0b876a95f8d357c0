"""Pictures of large graphs as DOT text, with some groups open."""

from __future__ import annotations

from collections.abc import Sequence

from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.render.groups.drawn import overview_dot
from tidu_cli.render.groups.forest import forest, named
from tidu_cli.render.groups.layout import opened
from tidu_cli.render.groups.scene import Forest, around
from tidu_cli.render.picture import picture


def to_boxes(
    document: Document,
    *,
    types: bool = False,
    collapse: bool = False,
    highlight: Sequence[Key] = (),
    open_: Sequence[str] = (),
    depth: int | None = None,
) -> str:
    """The picture of a document with its groups as boxes, as DOT text. For `collapse` and `highlight` see `picture`.

    Those of the names `open_` are open, and those to this depth; without a depth as many as a screen has room for, which Graphviz
    says. Raises UnknownNameError, and TiduError if Graphviz is missing.
    """
    found = forest(picture(document, collapse=collapse, highlight=highlight, inside=False))
    given = named(found, open_)

    def text(chosen: set[str], wide: bool) -> str:
        return overview_dot(found, found.overview(chosen), types=types, wide=wide)

    if depth is None:
        return text(*opened(found, text, given))
    return text(_to_depth(found, depth) | around(found, given), False)


def _to_depth(found: Forest, depth: int) -> set[str]:
    """The groups around which there are fewer than this; graphs are open where there is one only."""
    first = len(found.graphs) == 1
    return {id_ for id_, group in found.groups.items() if len(around(found, [id_])) <= depth + first and not group.is_port}
