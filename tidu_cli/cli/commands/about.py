"""Commands on tidu itself and its files.

tidu schema: print the JSON Schema of documents.
tidu help: the help of tidu, or of a command.
tidu completion: the script by which a shell completes commands, options, files and keys.
"""

from __future__ import annotations

from typing import Any

import click

from tidu_cli.cli.completion import SCRIPTS
from tidu_cli.cli.main import COMMANDS, Command
from tidu_cli.cli.options import emit_json, emit_text, example
from tidu_cli.cli.out_option import out_option
from tidu_cli.errors import did_you_mean, printable
from tidu_cli.streams import data_stream


@click.command(cls=Command, epilog=example("tidu schema"))
@out_option("json")
def schema(out: str | None) -> None:
    """Print the JSON Schema of documents."""
    from tidu_cli.formats.schema import json_schema

    emit_json(json_schema(), out, indent=2)


class _Topic(click.Choice[str]):
    """A command, by its name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            self.fail(
                f"no command '{printable(value)}'{did_you_mean(value, list(self.choices))} (tidu --help lists them)", param, ctx
            )
        return str(value)


@click.command(cls=Command, epilog=example("tidu help grad"))
@click.argument("topic", required=False, type=_Topic(COMMANDS), metavar="[COMMAND]")
@click.pass_context
def help(ctx: click.Context, topic: str | None) -> None:
    """Print the help of tidu, or of a command, as --help does."""
    root = ctx.find_root()
    if topic is not None and isinstance(root.command, click.Group) and (named := root.command.get_command(root, topic)):
        root = named.context_class(named, info_name=topic, parent=root)
    click.echo(root.get_help(), data_stream(), color=root.color)


@click.command(cls=Command, epilog=example('eval "$(tidu completion bash)"', "tidu completion fish"))
@click.argument("shell", type=click.Choice(list(SCRIPTS)))
def completion(shell: str) -> None:
    """Print the script for completion in a shell.

    It completes commands, options, files, and keys of the file that is named in the line, wherever in it. For bash and zsh put

    \b
      eval "$(tidu completion bash)"

    (or zsh) into ~/.bashrc or ~/.zshrc; for fish, save the script as ~/.config/fish/completions/tidu.fish.
    """
    emit_text(SCRIPTS[shell].rstrip("\n"))
