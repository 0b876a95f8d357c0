"""tidu completion: the script by which a shell completes commands, options, files and keys."""

from __future__ import annotations

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import emit_text, example
from tidu_cli.cli.shell.answers import SCRIPTS


@click.command(cls=Command, epilog=example('eval "$(tidu completion bash)"', "tidu completion fish"))
@click.argument("shell", type=click.Choice(list(SCRIPTS)))
def command(shell: str) -> None:
    """Print the script for completion in a shell.

    It completes commands, options, files, and keys of the file that is named in the line, wherever in it. For bash and zsh put

    \b
      eval "$(tidu completion bash)"

    (or zsh) into ~/.bashrc or ~/.zshrc; for fish, save the script as ~/.config/fish/completions/tidu.fish.
    """
    emit_text(SCRIPTS[shell].rstrip("\n"))
