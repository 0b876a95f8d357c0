"""A batch evaluated in chunks from beginning to end, for callers in Python."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from tidu_cli.cluster.collecting import put_together
from tidu_cli.cluster.run import batch_of, parts
from tidu_cli.cluster.saved import Saved
from tidu_cli.cluster.scheduler import connected
from tidu_cli.cluster.work import Values
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.keys import Key

if TYPE_CHECKING:
    from distributed import Client


def mapped(
    graph: Graph,
    inputs: Mapping[Key, object],
    axes: Mapping[Key, int],
    scheduler: str | Client | None,
    out: str | None = None,
    resume: bool = False,
    **how: Any,
) -> Values:
    """The values of outputs for all items, or their sum or mean. `how` are options of `batch_of`. Raises EvaluationError.

    With `out` the values of items are written there, and none are returned; sums are returned, and not written, but what they come
    of is kept beside `out` until they are.
    """
    batch = batch_of(graph, inputs, axes, **how)
    saved = None if out is None else Saved(batch, out, streamed=not batch.job.reduction, resume=resume)
    with (
        nullcontext() if saved is None else saved.open(),
        nullcontext(None) if scheduler is None else connected(scheduler) as client,
    ):
        if saved is None:
            return put_together(batch, parts(batch, client))
        if not saved.streamed:
            return put_together(batch, saved.filled(client))
        saved.fill(client)
        return {}
