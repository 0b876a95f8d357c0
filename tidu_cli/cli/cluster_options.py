"""The options of work that is spread over processes or machines, and how commands do it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidu_cli.cli.messages import detail, error
from tidu_cli.errors import counted

if TYPE_CHECKING:
    from distributed import Client

    from tidu_cli.cluster.run import Batch
    from tidu_cli.graph.graph import Graph
    from tidu_cli.graph.keys import Key
    from tidu_cli.graph.types import Type
    from tidu_cli.runtime.engines.choosing import Choice
    from tidu_cli.transforms.shorthands import Pipeline

    EngineOf = Callable[[Graph], Choice]

F = TypeVar("F", bound=Callable[..., Any])


def scheduler_option(function: F) -> F:
    """The option --scheduler."""
    text = "Spread the work over a cluster of Dask's: the scheduler's address, tcp://head:8786, or local[:N], N processes here."
    return click.option("--scheduler", metavar="ADDRESS", help=text)(function)


def chunk_option(function: F) -> F:
    """The option --chunk."""
    text = "As many items go together. [default: as many as make a second of work]"
    return click.option("--chunk", type=click.IntRange(1), metavar="N", help=text)(function)


def reduce_option(function: F) -> F:
    """The option --reduce."""
    text = "Give this of the outputs of all items of a --batch, in place of each."
    return click.option("--reduce", "reduction", type=click.Choice(("sum", "mean")), help=text)(function)


@dataclass(frozen=True)
class Spread:
    """What the options say."""

    scheduler: str | None = None
    chunk: int | None = None
    reduction: str | None = None

    def __bool__(self) -> bool:
        return any((self.scheduler, self.chunk, self.reduction))

    def batch(self, graph: Graph, values: Mapping[Key, object], axes: Mapping[Key, int], engine: Choice) -> Batch:
        """What is to be evaluated. Raises EvaluationError."""
        from tidu_cli.cluster.run import batch_of

        plugins = tuple(click.get_current_context().meta.get("--plugins", ()))
        return batch_of(graph, values, axes, chunk=self.chunk, reduction=self.reduction, plugins=plugins, engine=engine)

    @contextmanager
    def client(self) -> Iterator[Client | None]:
        """The cluster, for as long as the block goes on; None for this process. Raises EvaluationError."""
        if self.scheduler is None:
            yield None
            return
        from tidu_cli.cluster.package import require_dask
        from tidu_cli.cluster.scheduler import connected, silence

        require_dask()
        silence()
        try:
            with interruptible(), connected(self.scheduler) as client:
                n = sum(client.nthreads().values())
                detail(f"{counted(n, 'thread')} at {client.scheduler_info()['address']}")
                yield client
        except KeyboardInterrupt:
            error("interrupted")
            raise


def spread_values(batch: Batch, spread: Spread) -> tuple[dict[Key, Any], dict[Key, Type]]:
    """The values of a batch, and their types. Raises EvaluationError."""
    from tidu_cli.cluster.collecting import collected
    from tidu_cli.cluster.run import results, total

    types = batch.types
    with spread.client() as client:
        detail(f"{counted(len(batch.plan), 'chunk')} of {counted(batch.plan.chunk, 'item')}")
        values = total(batch, client) if spread.reduction else collected(results(batch, client), batch.plan, types)
    return values, types


def spread_matrix(run: Pipeline, values: Mapping[Key, object], spread: Spread, engine: EngineOf) -> dict[Key, Any]:
    """The values of the matrix that a pipeline derives, by chunks of its columns or rows. Raises EvaluationError."""
    from tidu_cli.cluster.matrices import blocks_of
    from tidu_cli.cluster.plan import Plan
    from tidu_cli.cluster.run import results

    assert run.linear is not None
    head = run.linear.head
    graph = run.stages[-1].transform(run.linear, **run.stages[-1].options).head
    blocks = blocks_of(graph, run.document.head, head.inputs, head.outputs)
    if not blocks.units:
        return blocks.collected((), Plan(0, 1))
    batch = spread.batch(graph, {**values, **blocks.units}, dict.fromkeys(blocks.units, 0), engine(graph))
    with spread.client() as client:
        detail(f"{counted(len(batch.plan), 'chunk')} of {counted(batch.plan.chunk, 'item')}")
        return blocks.collected(results(batch, client), batch.plan)


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
