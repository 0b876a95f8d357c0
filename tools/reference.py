"""docs/commands.md: every command with its help and options, from the same declarations as `--help`."""

from __future__ import annotations

import re
import sys
from html import escape

import click

from tidu_cli.cli.main import COMMANDS, cli


def to_markdown() -> str:
    """The page: a section per command, in the order of the help."""
    lines = [
        "# Commands",
        "",
        "What `tidu COMMAND --help` prints. Commands read FILE, or standard input, and write to standard output or `-o OUT`.",
        "Exit statuses are 0, 1 for failed work and 2 for wrong usage, unless a command says so; [pipes](howto/pipes.md) says",
        "more. This page is generated: `make generated` writes it.",
        "",
        "| command | does |",
        "|---|---|",
    ]
    context = click.Context(cli, info_name="tidu", **cli.context_settings)
    shown = [(name, command) for name in COMMANDS if (command := cli.get_command(context, name)) is not None and not command.hidden]
    lines += [
        f"| [`{name}`](#tidu-{name}) | {_in_table(_escaped(command.get_short_help_str(limit=200)))} |" for name, command in shown
    ]
    for name, command in shown:
        lines += _section(command, click.Context(command, info_name=name, parent=context))
    return "\n".join(lines) + "\n"


def _section(command: click.Command, context: click.Context) -> list[str]:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    lines = ["", f"## tidu {context.info_name}", "", "```text", usage, "```"]
    lines += _prose(command.help or "")
    shown = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    options = [record for option in shown if (record := option.get_help_record(context)) is not None]
    if options:
        lines += ["", "| option | does |", "|---|---|"]
        lines += [f"| {_code_in_table(name)} | {_in_table(_escaped(text))} |" for name, text in options]
    return lines + _prose(command.epilog or "")


def _prose(text: str) -> list[str]:
    r"""The paragraphs of a help text. A preformatted one, marked \b, is a block, maybe with a heading."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        body = paragraph.strip("\n").split("\n")
        if body[0].strip() == "\b":
            if not body[1].startswith(" "):
                lines += ["", body.pop(1).strip()]
            lines += ["", "```text", *(line.removeprefix("  ") for line in body[1:]), "```"]
        elif any(body):
            lines += ["", _escaped(" ".join(line.strip() for line in body).strip())]
    return lines


def _escaped(text: str) -> str:
    """Text that is not markup; what stands within backticks is left alone."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if k % 2 else re.sub(r"([*_<\[\]])", r"\\\1", part) for k, part in enumerate(parts))


def _code_in_table(text: str) -> str:
    """Code in HTML: dialects of Markdown differ in whether a bar within backticks ends the cell."""
    return f"<code>{escape(text)}</code>".replace("|", "&#124;")


def _in_table(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    sys.stdout.write(to_markdown())
