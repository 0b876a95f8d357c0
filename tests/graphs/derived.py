"""First and second derivatives of documents."""

from __future__ import annotations

from collections.abc import Iterator

from tidu_cli.graph.graph import Document
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose


def derivatives(document: Document) -> Iterator[Document]:
    """Reverse mode by one of the inputs that are not bound, and forward mode over that; nothing if there is none."""
    wrt = [i.key for graph in document.graphs for i in graph.inputs if i.key not in document.bound][:1]
    if wrt:
        first = transpose(linearize(document, wrt))
        yield first
        yield linearize(materialize(first), wrt)
