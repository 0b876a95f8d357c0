"""What a graph of a document is: its part in a derivative, told from its keys and roles."""

from __future__ import annotations

from enum import StrEnum

from tidu_cli.graph.graph import Graph


class Kind(StrEnum):
    """The kinds of graphs."""

    PRIMAL = "primal"
    RESIDUAL = "residual"
    LINEAR = "linear"
    TRANSPOSED = "transposed"
    MATERIALIZED = "materialized"


MEANING = {
    Kind.RESIDUAL: "kept for the linear graph",
    Kind.LINEAR: "tangents forward",
    Kind.TRANSPOSED: "cotangents backward",
    Kind.MATERIALIZED: "values and derivatives in one",
}
"""A few words on each kind, for newcomers."""


def kind_of(graph: Graph) -> Kind:
    """The kind of a graph. A graph with derivatives among its nodes that is not itself linear has been materialized."""
    if graph.linear is not None:
        takes_cotangents = any(i.key.path and i.key.path[-1] < 0 for i in graph.inputs)
        return Kind.TRANSPOSED if takes_cotangents else Kind.LINEAR
    if not graph.inputs and not graph.outputs:
        return Kind.RESIDUAL
    if any(graph.cases[code].mask is not None for code in set(graph.code)):
        return Kind.MATERIALIZED
    return Kind.PRIMAL
