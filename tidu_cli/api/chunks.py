"""Values by chunks: of a batch, and of matrices, in this process or on machines, and on their way to a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tidu_cli.cluster.collecting import blocks_of, spread, write
from tidu_cli.cluster.items import Plan, from_files
from tidu_cli.cluster.run import batch_of
from tidu_cli.graph.keys import Key
from tidu_cli.graph.sizes.open import are_there_open_sizes
from tidu_cli.graph.types import Type

if TYPE_CHECKING:
    from tidu_cli.graph.graph import Graph
    from tidu_cli.runtime.choosing import Choice
    from tidu_cli.transforms.shorthands import Pipeline

Results = tuple[Mapping[Key, Any], Mapping[Key, Type]]
"""Values by key, and their types."""


def values_by_chunks(
    graph: Graph, inputs: Mapping[Key, object], axes: Mapping[Key, int], to: Mapping[str, Any], **how: Any
) -> Results:
    """The values of outputs for all items of a batch, or their sum or mean, and their types.

    `to` says where they are computed and written, as `spread` takes it, and `how` are options of `batch_of`. Values that are
    written as they come are not returned. Raises EvaluationError, DocumentError.
    """
    given = {key: from_files(f"input {key}", value, key in axes) for key, value in inputs.items()}
    batch = batch_of(graph, given, axes, **how)
    return spread(batch, **to), batch.types


def matrix_by_chunks(
    run: Pipeline, inputs: Mapping[Key, object], engine: Callable[[Graph], Choice], to: Mapping[str, Any], **how: Any
) -> Results:
    """The blocks of the matrix that a pipeline derives, and their types, by chunks of its columns or rows.

    `engine` chooses what evaluates a graph; else as `values_by_chunks`. Open sizes are those that the inputs have.
    """
    assert run.linear is not None
    linear, matrix = run.linear, run.document.head
    if are_there_open_sizes():
        from tidu_cli.runtime.sizing import as_given, document_as_given

        matrix, linear = as_given(matrix, inputs), document_as_given(linear, inputs)
    graph = run.stages[-1].transform(linear, **run.stages[-1].options).head
    blocks = blocks_of(graph, matrix, linear.head.inputs, linear.head.outputs)
    if not blocks.units:
        values = blocks.collected((), Plan(0, 1))
        write(values, blocks.types, to["format_"], to["out"])
        return values, blocks.types
    axes = dict.fromkeys(blocks.units, 0)
    batch = batch_of(graph, {**inputs, **blocks.units}, axes, engine=engine(graph), **how)
    values = spread(batch, **to, types=blocks.types, collect=lambda _, parts: blocks.collected(parts, batch.plan), may_stream=False)
    return values, blocks.types
