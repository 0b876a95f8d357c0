"""The options that say what evaluates: engine and device, and how work is spread over processes or machines."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from tidu_cli.cli.messages import detail
from tidu_cli.cli.options import option
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
    function = option("device")(function)
    return option("engine", type=EngineChoice(ENGINES), default="auto", envvar="TIDU_ENGINE", show_envvar=True)(function)


def chosen_engine(graph: Graph, engine: str, device: str | None) -> Choice:
    """Which engine runs a graph, told if --verbose was given."""
    from tidu_cli.runtime.engines.choosing import chosen

    choice = chosen(graph, engine, device=device)
    detail(f"engine {choice.name}, {choice.reason}")
    return choice


def engine_words(engine: str, device: str | None) -> list[str]:
    """The options as words of a command that says the same."""
    return [*(["--engine", engine] if engine != "auto" else []), *(["--device", device] if device else [])]


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
