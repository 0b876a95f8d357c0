"""tidu show: a document as text that one can read."""

from __future__ import annotations

import re
from typing import Any

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import emit_lines, example, file_argument, load
from tidu_cli.cli.style import coloured
from tidu_cli.installed import source_named
from tidu_cli.streams import data_stream

_PARTS = re.compile(
    r"(?P<cotangent>[^\s(),:=]+@[-\d@]*-\d+'?)|(?P<tangent>[^\s(),:=]+@\d[\d@]*'?)|(?P<remark>  # .*)"
    r"|(?P<type>: [A-Za-z]\w*(?:\[[^\]]*\])*)|(?P<op>(?<=[^n] = )[a-z]\w*)"
)
_COLOURS: dict[str, dict[str, Any]] = {
    "cotangent": {"fg": "magenta"},
    "tangent": {"fg": "yellow"},
    "remark": {"dim": True},
    "type": {"dim": True},
    "op": {"fg": "cyan"},
}


@click.command(cls=Command, epilog=example("tidu linearize samples/f.json --wrt x | tidu transpose | tidu show"))
@file_argument
@click.option("--all", "every", is_flag=True, help="All nodes, also of graphs of more than 60.")
@click.option(
    "--formula",
    is_flag=True,
    help="The head, a graph of numbers without axes, as a formula, which tidu build reads; derivatives' keys become names.",
)
def command(file: str, every: bool, formula: bool) -> None:
    """Show a document as text.

    Each value has a line: its name, its type, and the op that gives it, with attrs in brackets and operands. Inputs go by their
    keys, results of nodes by letters, numbers without axes as they are. In derivatives an operand with a prime is one that moves:
    c = mul b x@1' is linear in x@1. Graphs within loops and branches stand below their nodes. Of a graph of more than 60 nodes the
    first and the last are shown.
    """
    document, _ = load(file)
    if formula:
        emit_lines([source_named("formula").written(document)])
    else:
        from tidu_cli.render.listing.lines import listing

        emit_lines(listing(document, every=every), _coloured if coloured(data_stream()) else str)


def _coloured(line: str) -> str:
    """A line for a terminal: tangents yellow, cotangents magenta, ops cyan, types and remarks dim, headers bold."""
    if line.lstrip().startswith("return "):
        return _PARTS.sub(lambda m: m[0] if m.lastgroup == "op" else _styled(m), line)
    head, bracket, rest = line.partition("(") if line.endswith(":") or ":  # " in line else ("", "", line)
    return (click.style(head, bold=True) if head else "") + bracket + _PARTS.sub(_styled, rest)


def _styled(found: re.Match[str]) -> str:
    return click.style(found[0], **_COLOURS[str(found.lastgroup)])
