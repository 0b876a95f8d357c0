"""Man pages, written from the commands themselves: what they say is what --help says.

    python -m tools.manual FOLDER

writes a page for tidu and one for each command, as building a wheel does. They hold no date, so that the same program has the same
pages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from tidu_cli import __version__
from tidu_cli.cli.main import Command, cli

_ENVIRONMENT = {
    "NO_COLOR": "Where set and not empty, nothing is coloured or bold.",
    "FORCE_COLOR, CLICOLOR_FORCE": "Where set to anything but 0, colours and bold print go to files and pipes, too.",
    "TERM": "Where it is dumb, there are neither colours nor a progress bar.",
    "TIDU_TRACEBACK": "Where it is 1, failures show where in the program they arose.",
}

_SEE_ALSO = {
    "linearize": ["transpose", "materialize", "resolve"],
    "transpose": ["linearize", "materialize"],
    "materialize": ["resolve", "eval"],
    "resolve": ["linearize", "materialize"],
}


def pages() -> Iterator[tuple[str, str]]:
    """The name of each page's file, and its text in roff."""
    ctx = click.Context(cli, info_name="tidu", **cli.context_settings)
    commands = {name: cli.get_command(ctx, name) for name in cli.list_commands(ctx)}
    names = [f"tidu-{name}" for name in commands]
    yield "tidu.1", _page(cli, "tidu", None, {name: c.get_short_help_str(200) for name, c in commands.items() if c}, names)
    for name, command in commands.items():
        if command is not None:
            others = [f"tidu-{other}" for other in _SEE_ALSO.get(name, ())]
            yield f"tidu-{name}.1", _page(command, f"tidu {name}", ctx, {}, ["tidu", *others])


def _page(command: click.Command, name: str, parent: click.Context | None, commands: dict[str, str], others: list[str]) -> str:
    ctx = click.Context(command, parent=parent, info_name=name.split()[-1], **cli.context_settings)
    title = name.replace(" ", "-")
    summary = command.get_short_help_str(200).rstrip(".")
    lines = [f'.TH "{escaped(title.upper())}" 1 "" "tidu {escaped(__version__)}" "User Commands"', ".SH NAME"]
    lines.append(f"{escaped(title)} \\- {escaped(summary[:1].lower() + summary[1:])}")
    lines += [".SH SYNOPSIS", f".B {escaped(name)}", escaped(" ".join(command.collect_usage_pieces(ctx)))]
    lines += [".SH DESCRIPTION", *_prose(command.help or "")]
    if commands:
        lines.append(".SH COMMANDS")
        for other, text in commands.items():
            lines += [".TP", f"\\fB{escaped(f'tidu-{other}')}\\fR(1)", escaped(text)]
    lines.append(".SH OPTIONS")
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
        if record is not None:
            lines += [".TP", f"\\fB{escaped(record[0])}\\fR", *_prose(record[1], ".IP")]
    if command.epilog:
        lines += [".SH EXAMPLES", *_prose(command.epilog.replace("Example:\n", ""))]
    lines += [".SH EXIT STATUS", *_statuses(command)]
    lines.append(".SH ENVIRONMENT")
    for variable, text in _ENVIRONMENT.items():
        lines += [".TP", f"\\fB{escaped(variable)}\\fR", escaped(text)]
    lines += [".SH SEE ALSO", ",\n".join(f".BR {escaped(other)} (1)" for other in others).replace(",\n", " ,\n")]
    return "\n".join(lines) + "\n"


def _statuses(command: click.Command) -> Iterator[str]:
    failure = command.failure_status if isinstance(command, Command) else 1
    rows = [("0", "Done."), ("1", "The work failed; a line on standard error says why."), ("2", "Wrong usage.")]
    if failure != 1:
        rows = [("0, 1", "As the description says."), (str(failure), "The work failed, or wrong usage.")]
    for status, text in rows:
        yield from (".TP", f"\\fB{status}\\fR", text)


def _prose(text: str, paragraph: str = ".PP") -> Iterator[str]:
    """Paragraphs, as click tells them apart: those that begin with \\b keep their lines."""
    first = True
    for part in re.split(r"\n[ \t]*\n", "\n".join(line.strip("\n") for line in text.strip("\n").split("\n"))):
        lines = part.split("\n")
        verbatim = lines[0].strip() == "\b"
        if not first:
            yield paragraph
        first = False
        if verbatim:
            yield from (".nf", *(escaped(line) for line in lines[1:]), ".fi")
        else:
            yield escaped(" ".join(line.strip() for line in lines))


_ROFF = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti", '"': "\\(dq"}


def escaped(text: str) -> str:
    """Text for roff: its backslashes, hyphens and quotes stay what they are, and no line becomes a request."""
    text = "".join(_ROFF.get(c) or (c if c.isascii() else f"\\[u{ord(c):04X}]") for c in text)
    return f"\\&{text}" if text.startswith((".", "\\(aq")) else text


def main(folder: str) -> None:
    """Write every page into a folder."""
    Path(folder).mkdir(exist_ok=True)
    for name, text in pages():
        (Path(folder) / name).write_text(text, encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1])
