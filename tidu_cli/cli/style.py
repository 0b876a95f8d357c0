"""Colours and bold print, for people at a terminal: never in what goes to a file or a pipe, unless they ask for it."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from tidu_cli.streams import data_stream


def coloured(stream: Any) -> bool:
    """Whether text that goes to this stream is styled.

    NO_COLOR forbids it; else FORCE_COLOR or CLICOLOR_FORCE (but for "0") ask for it; else a terminal has it, unless it is dumb.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def is_terminal(stream: Any) -> bool:
    """Whether a stream is a terminal. A closed one is none."""
    try:
        return stream is not None and bool(stream.isatty())
    except ValueError:
        return False


def heading(text: str) -> str:
    """Text that heads a part of what is printed to stdout."""
    return click.style(text, bold=True) if coloured(data_stream()) else text


def alarm(text: str) -> str:
    """The word on stderr that says that something is wrong."""
    return click.style(text, fg="red", bold=True) if coloured(sys.stderr) else text


class HelpFormatter(click.HelpFormatter):
    """Help with bold headings."""

    def write_heading(self, heading_: str) -> None:
        """Write a heading."""
        self.write(f"{'':>{self.current_indent}}{heading(f'{heading_}:')}\n")


class Context(click.Context):
    """A context whose help is styled where stdout is to be. Errors of usage, which go to stderr, have no headings."""

    formatter_class = HelpFormatter

    def get_help(self) -> str:
        """The help of the command. It is about to be printed to stdout."""
        self.color = coloured(data_stream())  # else click would take out again what FORCE_COLOR put in
        return super().get_help()
