"""A batch evaluated in chunks from beginning to end, for callers in Python."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from tidu_cli.cluster.collecting import collected
from tidu_cli.cluster.run import batch_of, results, total
from tidu_cli.cluster.scheduler import connected
from tidu_cli.cluster.work import Values
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.keys import Key

if TYPE_CHECKING:
    from distributed import Client


def mapped(
    graph: Graph, inputs: Mapping[Key, object], axes: Mapping[Key, int], scheduler: str | Client | None, **how: Any
) -> Values:
    """The values of outputs for all items, or their sum or mean. `how` are options of `batch_of`. Raises EvaluationError."""
    batch = batch_of(graph, inputs, axes, **how)
    with nullcontext(None) if scheduler is None else connected(scheduler) as client:
        return total(batch, client) if batch.job.reduction else collected(results(batch, client), batch.plan, batch.types)
