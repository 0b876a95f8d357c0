"""The options of work that is spread over processes or machines."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import click

from tidu_cli.cli.options import Whole

F = TypeVar("F", bound=Callable[..., Any])


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
