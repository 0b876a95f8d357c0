"""tidu check: validate documents."""

from __future__ import annotations

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import example, load


@click.command(cls=Command, epilog=example("tidu check samples/f.json"))
@click.argument("files", nargs=-1, metavar="[FILES]...")
def command(files: tuple[str, ...]) -> None:
    """Read documents as every command does, and say what is wrong with the first that is not valid (status 1)."""
    for file in files or ("-",):
        document, format_ = load(file)
        nodes = sum(graph.n_nodes for graph in document.graphs)
        name = "standard input" if file == "-" else file
        click.echo(f"{name}: valid {format_}, {_count(len(document.graphs), 'graph')}, {_count(nodes, 'node')}")


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
