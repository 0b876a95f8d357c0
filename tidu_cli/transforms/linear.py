"""Linear heads: what transpose and matrix require of the graph that they act on."""

from __future__ import annotations

from tidu_cli.errors import TransformError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.link import LogicalGraph, link


def linked_linear_head(document: Document, command: str) -> LogicalGraph:
    """The logical graph of a document whose head is linear in its inputs.

    `command` is how messages call the transform. Raises TransformError if the head is no linear graph, has keys that are neither
    tangents nor cotangents, has an input that is bound, or reads values of other graphs that depend on its inputs.
    """
    head = document.head
    if head.linear is None:
        raise TransformError(f"graph '{head.name}' is not a linear graph; {command} takes the output of tidu linearize")
    for key in [*(i.key for i in head.inputs), *(o.key for o in head.outputs)]:
        if not key.path:
            raise TransformError(f"graph '{head.name}': '{key}' is neither a tangent nor a cotangent, as a linear graph's must be")
    bound = {b.key: document.graphs[b.graph].name for b in document.bindings}
    for key in (i.key for i in head.inputs):
        if key in bound:
            raise TransformError(
                f"graph '{head.name}': its input '{key}' is bound to a value of graph '{bound[key]}', so that {command} would see "
                "only a part of the linear map; compose the functions, and linearize the composition"
            )
    logical = link(document)
    _require_residuals_free_of_tangents(logical)
    return logical


def _require_residuals_free_of_tangents(logical: LogicalGraph) -> None:
    head = logical.document.head
    tangents = {i.key for i in head.inputs}
    if not any(i.key in tangents for graph in logical.document.graphs[:-1] for i in graph.inputs):
        return
    # Other graphs may take the same tangents; what the head reads of them must not come from there.
    last = len(logical.document.graphs) - 1
    read = logical.depends_on(logical.flat_id(last, -1 - k) for k in range(len(head.external)))
    for key in tangents:
        if read[logical.source[key]]:
            raise TransformError(
                f"graph '{head.name}' reads values of other graphs that depend on its input '{key}', so it is not linear"
            )
