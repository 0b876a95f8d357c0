"""detach: cut the last graphs of a document loose, so that they can travel alone and be linked again by `resolve`."""

from __future__ import annotations

from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Detached, Document, Externals, Graph
from tidu_cli.graph.identity import digest_text, digests
from tidu_cli.graph.passes import with_used_passes


def detach(document: Document, first: int) -> Document:
    """The graphs from number `first` on; what they read of earlier ones becomes detached, by digest.

    Bindings go: the digest of a bound input is that of the value it is bound to.
    """
    found = digests(document)
    detached: dict[str, Detached] = {}
    numbers: dict[str, int] = {}

    def cut(graph: Graph) -> Graph:
        externals = Externals()
        for g, v in graph.external:
            if g >= first:
                externals.graph.append(g - first)
                externals.value.append(v)
                continue
            defined = g != Externals.DETACHED
            entry = Detached(digest_text(found[g][v]), document.graphs[g].type_of(v)) if defined else document.detached[v]
            detached.setdefault(entry.digest, entry)
            externals.graph.append(Externals.DETACHED)
            externals.value.append(numbers.setdefault(entry.digest, len(numbers)))
        return replace(graph, external=externals)

    graphs = tuple(cut(graph) for graph in document.graphs[first:])
    alone = replace(document, graphs=graphs, detached=tuple(detached.values()), bindings=())
    return with_used_passes(alone, document.passes)
