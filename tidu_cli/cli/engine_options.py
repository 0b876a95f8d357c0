"""The options that say which engine evaluates, and on which device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidu_cli.cli.messages import detail
from tidu_cli.installed import OWN_ENGINES

if TYPE_CHECKING:
    from tidu_cli.graph.graph import Graph
    from tidu_cli.runtime.engines.choosing import Choice

F = TypeVar("F", bound=Callable[..., Any])

ENGINES = ("auto", "numpy", *OWN_ENGINES)
"""The names of engines, those of `runtime.engines.choosing`, which is not imported for a command that evaluates nothing."""


def engine_options(function: F) -> F:
    """The options --engine and --device, which `chosen_engine` takes."""
    function = click.option("--device", metavar="NAME", help="Where the engine xla runs: cpu, gpu, gpu:1, ...")(function)
    return click.option(
        "--engine",
        type=click.Choice(ENGINES),
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
