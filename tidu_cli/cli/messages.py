"""What commands say on stderr besides errors, and how much of it: --quiet and --verbose.

Quiet leaves nothing but errors; verbose tells every step.
"""

from __future__ import annotations

import sys

import click

from tidu_cli.cli.progress import paused
from tidu_cli.cli.style import alarm, coloured

_LEVEL = f"{__name__}.level"


def level_options() -> list[click.Option]:
    """The options --quiet and --verbose, which every command has. Where both are given, the last one counts."""

    def remember(ctx: click.Context, param: click.Parameter, given: bool) -> None:
        if given:
            ctx.meta[_LEVEL] = param.name

    quiet = "Say nothing on standard error but errors."
    verbose = "Say on standard error what is read, done and written."
    return [
        click.Option(["--quiet"], is_flag=True, expose_value=False, callback=remember, help=quiet),
        click.Option(["-v", "--verbose"], is_flag=True, expose_value=False, callback=remember, help=verbose),
    ]


def is_quiet() -> bool:
    """Whether --quiet was given to the running command."""
    return _level() == "quiet"


def is_verbose() -> bool:
    """Whether --verbose was given to the running command."""
    return _level() == "verbose"


def _level() -> str | None:
    ctx = click.get_current_context(silent=True)
    return None if ctx is None else ctx.meta.get(_LEVEL)


def error(message: str) -> None:
    """Say why the command failed."""
    _say(f"{alarm('error:')} {_one_line(message)}")


def note(message: str) -> None:
    """Say something that the user should know, unless --quiet was given."""
    if not is_quiet():
        _say(f"note: {_one_line(message)}")


def detail(message: str) -> None:
    """Say what was done, if --verbose was given."""
    if is_verbose():
        _say(_one_line(message))


def _say(text: str) -> None:
    with paused():
        click.echo(f"{click.get_current_context().command_path}: {text}", err=True, color=coloured(sys.stderr))


def _one_line(message: str) -> str:
    from tidu_cli.formats.messages import one_line

    return one_line(message)
