"""A batch evaluated in chunks from beginning to end, for callers in Python."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from tidu_cli import installed
from tidu_cli.cluster.collecting import put_together
from tidu_cli.cluster.items.filed import from_files
from tidu_cli.cluster.run import batch_of, parts
from tidu_cli.cluster.saved import Saved
from tidu_cli.cluster.work import Values
from tidu_cli.formats.occupants import noting
from tidu_cli.formats.output import write_pieces
from tidu_cli.formats.suffixes import format_of
from tidu_cli.formats.values import require_writable, write_values
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.keys import Key


@noting()
def mapped(
    graph: Graph,
    inputs: Mapping[Key, object],
    axes: Mapping[Key, int],
    scheduler: Any,
    out: str | None = None,
    resume: bool = False,
    **how: Any,
) -> Values:
    """The values of outputs for all items, or their sum or mean. `how` are options of `batch_of`. Raises EvaluationError.

    With `out` the values of items are written there, and none are returned; a sum or mean is both.
    """
    batch = batch_of(graph, {key: from_files(f"input {key}", x, key in axes) for key, x in inputs.items()}, axes, **how)
    if out is not None and batch.job.reduction:
        require_writable(str(format_of(out)), batch.types)
    saved = None if out is None else Saved(batch, out, streamed=not batch.job.reduction, resume=resume)
    with (
        nullcontext() if saved is None else saved.open(),
        nullcontext(None) if scheduler is None else installed.scheduler().connected(scheduler) as client,
    ):
        if saved is None:
            return put_together(batch, parts(batch, client))
        if not saved.streamed:
            found = put_together(batch, saved.filled(client))
            write_pieces((write_values(found, str(format_of(out)), batch.types),), out)
            return found
        saved.fill(client)
        return {}
