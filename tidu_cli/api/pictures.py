"""Pictures of documents: text for Graphviz, drawings, and pages to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidu_cli.arguments import KeyTexts, one_of, parsed
from tidu_cli.errors import ArgumentError, Remedy, TiduError, is_called_in_shell
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Document, Output
from tidu_cli.graph.keys import Key
from tidu_cli.limits import EDGES_DRAWN, MOST_DRAWN
from tidu_cli.options import checked

_SLOW = 5000
"""From this many things on, Graphviz takes a minute or more."""

_MOST = 1_000_000
"""Grouping this many nodes takes a minute or two."""

_LARGEST = 100_000
"""Most nodes of a page with all details, which then has about 40 MB."""

_SUMMARY = Remedy(function="info"), " summarises a document of any size"


@checked()
def to_dot(document: Document, types: bool = False, collapse: bool = False, highlight: KeyTexts = ()) -> str:
    """The picture of a document as DOT text for Graphviz; `types` writes the type of what flows on each edge.

    With `collapse` each graph is one box, `highlight` are keys of what is drawn bold. Raises UnknownNameError.
    """
    from tidu_cli.render.dot import to_dot

    return to_dot(document, types=types, collapse=collapse, highlight=parsed(highlight))


@checked(format=one_of("svg", "png", "pdf", "dot"))
def draw(
    document: Document,
    format: str | None = None,
    types: bool = False,
    highlight: KeyTexts = (),
    collapse: bool = False,
    limit: int | None = None,
    expand: bool = False,
    opened: str | Sequence[str] = (),
    depth: int | None = None,
) -> bytes:
    """The picture of a document in a format, "svg" by default, "png", "pdf" or "dot", as `tidu dot -o` writes it.

    The nodes of a large graph are boxes: `opened` names those whose inside is drawn, `depth` says how deep boxes are open. With
    `expand` each node is drawn, up to `limit` of them, and no boxes. `types`, `highlight` and `collapse` are those of `to_dot`.
    Raises TiduError for too large a picture, ArgumentError for boxes that are both open and not drawn, UnknownNameError.
    """
    from tidu_cli.render.dot import draw

    format = format or "svg"
    grouped = bool(opened) or depth is not None
    if grouped and (expand or limit):
        groups = f"{Remedy('opened', flag='--open', python='opened')} and {Remedy('depth', python='depth')} draw groups"
        nodes = f"{Remedy('expand', python='expand')} and {Remedy('limit', python='limit')} every node"
        raise ArgumentError(f"{groups}, {nodes}: give the one or the other")
    if not grouped and not expand and not limit and format != "dot":
        from tidu_cli.render.picture import n_items
        from tidu_cli.render.scene_dot import PLAIN

        grouped = n_items(document, collapse=collapse)[0] > PLAIN
    if grouped:
        _require_groupable(document, _MOST)
        from tidu_cli.render.scene_dot import to_boxes

        text = to_boxes(document, types=types, collapse=collapse, highlight=parsed(highlight), open_=opened, depth=depth)
    else:
        _require_drawable(document, collapse=collapse, limit=limit or (None if format == "dot" else MOST_DRAWN))
        text = to_dot(document, types, collapse, highlight)
    return text.encode() if format == "dot" else draw(text, format)


@checked()
def view(
    document: Document,
    inputs: Mapping[Any, object] | None = None,
    types: bool = False,
    highlight: KeyTexts = (),
    collapse: bool = False,
    limit: int | None = None,
    expand: bool = False,
    at: str | None = None,
) -> str:
    """A page that shows a document, with the values that `inputs` determine: HTML, which needs no network.

    `at` is the group that the page shows first; the other options are those of `draw`. Raises TiduError for too large a picture,
    UnknownNameError, and EvaluationError where values do not fit or are missing for the head's outputs.
    """
    from tidu_cli.api.evaluation import nested
    from tidu_cli.checking.numeric.exact_laws import cotangent_owners
    from tidu_cli.render.picture import picture
    from tidu_cli.render.view import to_html
    from tidu_cli.runtime.sizing import document_of_sizes

    given = nested(dict(inputs), document.inputs) if inputs else {}
    document = document_of_sizes(document, given) if given else document
    every = bool(expand or limit)
    if every:
        _require_drawable(document, collapse=collapse, limit=limit or MOST_DRAWN)
    else:
        _require_groupable(
            document, _LARGEST, ("tidu dot -o FILE.svg" if is_called_in_shell() else "draw(document)", " groups more, and ")
        )
    shown = picture(document, collapse=collapse, highlight=parsed(highlight), inside=False)
    values = _values(document, given) if given else {}
    return to_html(
        shown, types=types, values=values, owners=cotangent_owners(document), expand=every, at=at, beside=_pattern(document)
    )


def _pattern(document: Document) -> tuple[str, str] | None:
    """The picture of where entries are, and what it shows, if the outputs are those of a sparse matrix and these are constants."""
    from tidu_cli.formats.values.writing import SPARSE

    outputs = document.head.outputs
    if [str(o.key) for o in outputs] != list(SPARSE):
        return None
    from tidu_cli.runtime.evaluate import evaluate
    from tidu_cli.transforms.materialize import materialize

    graph = materialize(document, outputs=[o.key for o in outputs[1:]], needed_inputs=True).head
    if graph.inputs:
        return None
    from tidu_cli.sparse.patterns import beside

    return beside(*evaluate(graph, {}).values())


def _require_drawable(document: Document, *, collapse: bool, limit: int | None) -> None:
    """Raises TiduError, with what helps, if the picture would show more things than `limit`, or too many edges to each."""
    from tidu_cli.render.picture import n_items

    n, n_edges = n_items(document, collapse=collapse)
    if limit is None or (needed := _needed(n, n_edges)) <= limit:
        return
    ports = sum(len(graph.inputs) + len(graph.outputs) for graph in document.graphs)
    folded = (n, n_edges) if collapse else n_items(document, collapse=True)
    fold, wider = Remedy("collapse", True), Remedy("limit", _needed(*folded))
    helps: tuple[object, ...]
    if _needed(*folded) <= limit:
        helps = fold, f" draws {folded[0]}, other graphs and runs of nodes as one each"
    elif ports > limit:
        helps = (f"{ports} are inputs and outputs, which are always drawn: build it of arrays rather than of single numbers",)
    elif _needed(*folded) < needed:
        helps = fold, " " if is_called_in_shell() else ", ", wider, f" draws {folded[0]}"
    else:
        helps = ("it is collapsed already",) if collapse else (fold, " does not help, there are no runs of nodes to draw as one")
    shown = (
        f"{n} inputs, nodes and outputs, more than {limit}" if n > limit else f"{n_edges} edges, more than {EDGES_DRAWN * limit}"
    )
    slowly = ", slowly" if needed > _SLOW else ""
    raise TiduError(
        f"the picture would show {shown}; ", *helps, "; ", Remedy("limit", needed), f" draws all{slowly}; ", *_SUMMARY
    )  # fmt: skip


def _require_groupable(document: Document, most: int, way: Sequence[object] = ()) -> None:
    """Raises TiduError, with what helps, if the groups of a document are those of more nodes than this."""
    if (n := sum(graph.n_nodes for graph in document.graphs)) > most:
        raise TiduError(f"{n:,} nodes are too many to be grouped, the most are {most:,}; ", *way, *_SUMMARY)


def _needed(n: int, n_edges: int) -> int:
    """The least limit with which this many things and edges are drawn."""
    return max(n, -(-n_edges // EDGES_DRAWN))


def _values(document: Document, given: Mapping[Key, object]) -> dict[tuple[int, int], Any]:
    """Every value that the given inputs determine, by graph and local id. The head's outputs must be among them."""
    from tidu_cli.checking.numeric.exact_laws import computed_from
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
