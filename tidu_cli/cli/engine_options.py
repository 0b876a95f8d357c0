"""The options that say what evaluates: engine and device, and how work is spread over processes or machines."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from tidu_cli.cli.messages import detail, error
from tidu_cli.cli.options import emit_bytes, option
from tidu_cli.installed import OWN_ENGINES, brought_engines

if TYPE_CHECKING:
    from tidu_cli.api.chunks import Results
    from tidu_cli.graph.graph import Graph
    from tidu_cli.runtime.choosing import Choice


F = TypeVar("F", bound=Callable[..., Any])

ENGINES = ("auto", "numpy", *OWN_ENGINES)
"""The names of engines, those of `runtime.engines.choosing`, which is not imported for a command that evaluates nothing."""


class EngineChoice(click.Choice[str]):
    """Tidu's own engines, and those that other packages bring, which `known` has, too."""

    @property
    def known(self) -> list[str]:
        """All engines that may be chosen."""
        return [*self.choices, *brought_engines()]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name of an engine."""
        return value if value in self.choices or value in brought_engines() else super().convert(value, param, ctx)


def engine_options(function: F) -> F:
    """The options --engine and --device, which `chosen_engine` takes."""
    function = option("device")(function)
    return option("engine", type=EngineChoice(ENGINES), default="auto", envvar="TIDU_ENGINE", show_envvar=True)(function)


def chosen_engine(graph: Graph, engine: str, device: str | None, **runs: int) -> Choice:
    """Which engine runs a graph, told if --verbose was given."""
    from tidu_cli.runtime.choosing import chosen

    choice = chosen(graph, engine, device=device, **runs)
    detail(f"engine {choice.name}, {choice.reason}")
    return choice


def engine_words(engine: str, device: str | None) -> list[str]:
    """The options as words of a command that says the same."""
    return [*(["--engine", engine] if engine != "auto" else []), *(["--device", device] if device else [])]


class Spread(NamedTuple):
    """What the options say."""

    scheduler: str | None = None
    chunk: int | None = None
    reduce: str | None = None
    resume: bool = False
    out: str | None = None

    def __bool__(self) -> bool:
        return any((self.scheduler, self.chunk, self.reduce, self.resume))

    def require_out(self) -> None:
        """Raises UsageError for --resume without a file beside which something may be."""
        if self.resume and not self.is_file():
            raise click.UsageError("--resume goes on from what is beside OUT; give the -o OUT of the run that broke off")

    def is_file(self) -> bool:
        """Whether results go to a file, beside which chunks may be kept."""
        from tidu_cli.streams import is_stdout

        if self.out is None or is_stdout(self.out):
            return False
        return not os.path.exists(self.out) or os.path.isfile(self.out) or os.path.isdir(self.out)

    def to(self, format_: str) -> dict[str, Any]:
        """Where chunks are computed, and the file for their results, as `cluster.collecting.spread` takes it."""
        out = self.out if self.is_file() else None
        return {"scheduler": self.scheduler, "out": out, "resume": self.resume, "format_": format_, "quiet": True}

    def how(self) -> dict[str, Any]:
        """How a batch is cut and computed, as `cluster.run.batch_of` takes it."""
        plugins = tuple(click.get_current_context().meta.get("--plugins", ()))
        return {"chunk": self.chunk, "reduction": self.reduce, "plugins": plugins}


def emit_chunks(compute: Callable[..., Results], spread: Spread, format_: str) -> None:
    """Have values computed by chunks, by a function of `api.chunks`, and written to OUT or standard output."""
    from tidu_cli.formats.values import write_values

    with interruptible():
        values, types = compute(to=spread.to(format_), **spread.how())
    if not spread.is_file():
        emit_bytes(write_values(values, format_, types), spread.out)


@contextmanager
def interruptible() -> Iterator[None]:
    """Within the block Ctrl-C is KeyboardInterrupt, not the end of the process, so that what is under way elsewhere is cancelled.

    A second one ends the process. Where interrupts are ignored, they stay so. What one says of chunks that are kept is printed.
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
    except KeyboardInterrupt as interrupt_:
        if interrupt_.args:
            error(f"interrupted; {interrupt_}")
        raise
    finally:
        signal.signal(signal.SIGINT, before)
