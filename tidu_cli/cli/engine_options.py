"""The options that say what evaluates: engine and device, and how work is spread over processes or machines."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from tidu_cli.cli.messages import detail
from tidu_cli.cli.options import Whole
from tidu_cli.installed import OWN_ENGINES, brought_engines

if TYPE_CHECKING:
    from tidu_cli.graph.graph import Graph
    from tidu_cli.runtime.engines.choosing import Choice


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
    function = click.option("--device", metavar="NAME", help="Where the engine xla runs: cpu, gpu, gpu:1, ...")(function)
    return click.option(
        "--engine",
        type=EngineChoice(ENGINES),
        default="auto",
        envvar="TIDU_ENGINE",
        show_envvar=True,
        help="What evaluates: numpy, native for graphs of single numbers, xla for any; auto takes the quickest.",
    )(function)


def chosen_engine(graph: Graph, engine: str, device: str | None) -> Choice:
    """Which engine runs a graph, told if --verbose was given."""
    from tidu_cli.runtime.engines.choosing import chosen

    choice = chosen(graph, engine, device=device)
    detail(f"engine {choice.name}, {choice.reason}")
    return choice


def engine_words(engine: str, device: str | None) -> list[str]:
    """The options as words of a command that says the same."""
    return [*(["--engine", engine] if engine != "auto" else []), *(["--device", device] if device else [])]


def scheduler_option(function: F) -> F:
    """The option --scheduler."""
    text = "Spread the work over a cluster of Dask's: the scheduler's address, tcp://head:8786, or local[:N], N processes here."
    return click.option("--scheduler", metavar="ADDRESS", help=text)(function)


def chunk_option(function: F) -> F:
    """The option --chunk."""
    text = "As many items go together. [default: as many as make a second of work]"
    return click.option("--chunk", type=Whole(1), metavar="N", help=text)(function)


def reduce_option(function: F) -> F:
    """The option --reduce."""
    text = "Give this of the outputs of all items of a --batch, in place of each."
    return click.option("--reduce", "reduction", type=click.Choice(("sum", "mean")), help=text)(function)


def resume_option(function: F) -> F:
    """The option --resume."""
    text = "Go on from what a run has done that broke off, in OUT.partial beside OUT."
    return click.option("--resume", is_flag=True, help=text)(function)


class Spread(NamedTuple):
    """What the options say."""

    scheduler: str | None = None
    chunk: int | None = None
    reduction: str | None = None
    resume: bool = False
    out: str | None = None

    def __bool__(self) -> bool:
        return any((self.scheduler, self.chunk, self.reduction, self.resume))

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
