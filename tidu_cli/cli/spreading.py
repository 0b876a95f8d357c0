"""How commands have work done that is spread over processes or machines: what is under way ends with them, what is done stays."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from tidu_cli.cli.engine_options import Spread
from tidu_cli.cli.messages import detail, error, note
from tidu_cli.errors import counted
from tidu_cli.formats.files import is_chunked

if TYPE_CHECKING:
    from tidu_cli.cluster.run import Batch
    from tidu_cli.cluster.saved import Saved
    from tidu_cli.graph.graph import Graph
    from tidu_cli.graph.keys import Key
    from tidu_cli.graph.types import Type
    from tidu_cli.runtime.engines.choosing import Choice
    from tidu_cli.transforms.shorthands import Pipeline

    EngineOf = Callable[[Graph], Choice]

_TOLD = 6  # how many chunks that are done again notes tell of


def spread_values(
    graph: Graph,
    values: Mapping[Key, object],
    axes: Mapping[Key, int],
    engine: Choice,
    spread: Spread,
    format_: str,
) -> None:
    """Write the values of a graph for a batch in a format, to an OUT of chunks as they come.

    Raises EvaluationError, DocumentError.
    """
    from tidu_cli.cluster.collecting import put_together
    from tidu_cli.cluster.run import parts
    from tidu_cli.formats.values import require_writable

    batch = _batch(spread, graph, values, axes, engine)
    types = batch.types
    streamed = not spread.reduction and is_chunked(spread.out)
    if not streamed:
        require_writable(format_, types)
    with _evaluating(spread, batch, streamed=streamed) as (client, saved):
        if saved is None:
            _emit(put_together(batch, parts(batch, client)), types, spread, format_)
        elif streamed:
            saved.fill(client)
        else:
            _emit(put_together(batch, saved.filled(client)), types, spread, format_)


def spread_matrix(run: Pipeline, values: Mapping[Key, object], spread: Spread, engine: EngineOf, format_: str) -> None:
    """Write the values of the matrix that a pipeline derives in a format, by chunks of its columns or rows.

    Raises as `spread_values`.
    """
    from tidu_cli.cluster.items import Plan
    from tidu_cli.cluster.matrices import blocks_of
    from tidu_cli.cluster.run import parts
    from tidu_cli.formats.values import require_writable

    assert run.linear is not None
    head = run.linear.head
    graph = run.stages[-1].transform(run.linear, **run.stages[-1].options).head
    blocks = blocks_of(graph, run.document.head, head.inputs, head.outputs)
    require_writable(format_, blocks.types)
    if not blocks.units:
        _emit(blocks.collected((), Plan(0, 1)), blocks.types, spread, format_)
        return
    batch = _batch(spread, graph, {**values, **blocks.units}, dict.fromkeys(blocks.units, 0), engine(graph))
    with _evaluating(spread, batch) as (client, saved):
        found = parts(batch, client) if saved is None else saved.filled(client)
        _emit(blocks.collected(found, batch.plan), blocks.types, spread, format_)


def _emit(values: Mapping[Key, Any], types: Mapping[Key, Type], spread: Spread, format_: str) -> None:
    from tidu_cli.cli.options import emit_bytes
    from tidu_cli.formats.values import write_values

    emit_bytes(write_values(values, format_, types), spread.out)


@contextmanager
def interruptible() -> Iterator[None]:
    """Within the block Ctrl-C is KeyboardInterrupt, not the end of the process, so that what is under way elsewhere is cancelled.

    A second one ends the process. Where interrupts are ignored, they stay so.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _batch(spread: Spread, graph: Graph, values: Mapping[Key, object], axes: Mapping[Key, int], engine: Choice) -> Batch:
    """What is to be evaluated. Raises EvaluationError."""
    from tidu_cli.cluster.run import batch_of

    plugins = tuple(click.get_current_context().meta.get("--plugins", ()))
    return batch_of(graph, values, axes, chunk=spread.chunk, reduction=spread.reduction, plugins=plugins, engine=engine)


@contextmanager
def _evaluating(spread: Spread, batch: Batch, *, streamed: bool = False) -> Iterator[tuple[Any, Saved | None]]:
    """The cluster, None for this process, and what is on disk of the results, for as long as the block goes on.

    Where Ctrl-C ends the block, what is under way elsewhere is cancelled. Raises EvaluationError, DocumentError.
    """
    saved = _saved(spread, batch, streamed)
    try:
        with interruptible(), nullcontext() if saved is None else saved.open(), _client(spread) as client:
            detail(f"{counted(len(batch.plan), 'chunk')} of {counted(batch.plan.chunk, 'item')}")
            yield client, saved
        if streamed:
            detail(f"wrote {spread.out}")
    except KeyboardInterrupt:
        from tidu_cli.formats.chunks.sinks import kept

        if saved is not None and saved.is_begun():
            error(f"interrupted; {kept()}")
        raise


def _saved(spread: Spread, batch: Batch, streamed: bool) -> Saved | None:
    if not spread.is_file():
        return None
    from tidu_cli.cluster.saved import Saved

    saved = Saved(batch, str(spread.out), streamed=streamed, resume=spread.resume)
    if saved.done:
        what = "sum" if spread.reduction else "chunk"
        detail(f"going on from {counted(len(saved.done), what)} of {len(saved.sink.manifest)} in {saved.sink.folder}")
    for name, reason in list(saved.again.items())[:_TOLD]:
        note(f"{name} is done again: {reason}")
    return saved


@contextmanager
def _client(spread: Spread) -> Iterator[Any]:
    if spread.scheduler is None:
        yield None
        return
    from tidu_cli.installed import scheduler

    machines = scheduler()
    with machines.connected(spread.scheduler, quiet=True) as client:
        detail(machines.described(client))
        yield client
