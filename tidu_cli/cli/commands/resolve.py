"""tidu resolve: link documents into one."""

from __future__ import annotations

import click

from tidu_cli.cli.building.declarations import build_option
from tidu_cli.cli.main import Command
from tidu_cli.cli.messages import note
from tidu_cli.cli.options import document_output_options, emit, example, load_all, one_pass_option, ops_option, plain_option
from tidu_cli.errors import KeyTextError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.select import listed

_NAMED = 10
"""How many of the values that no document defines are named."""


@click.command(cls=Command, epilog=example("tidu linearize samples/f.json --wrt x --detach | tidu resolve samples/f.json -"))
@click.argument("files", nargs=-1, metavar="[FILES]...")
@click.option(
    "--bind",
    "binds",
    multiple=True,
    metavar="INPUT=KEY",
    help="Make an input equal to an output of another graph, or to the value of a digest; repeats.",
)
@one_pass_option
@build_option
@ops_option
@plain_option
@document_output_options
def command(
    files: tuple[str, ...], binds: tuple[str, ...], one_pass: tuple[int, ...], out: str | None, format_: str | None
) -> None:
    """Link documents into one.

    Equal graphs merge, detached references find their values, and --bind composes graphs. If two different graphs have
    one name, the later is named f.2. A pass that is one call of linearize in one file and another in the next is refused:
    `tidu convert --pass` renumbers it, --one-pass says that both are one.

    References that no document defines stay detached, and are named on standard error.
    """
    from tidu_cli.transforms.linking.resolve import dangling, renamed, resolve

    documents, names, came_in = load_all(files or ("-",))
    pairs = [_pair(bind, documents) for bind in binds]
    result = resolve(documents, bind=pairs, one_pass=one_pass, names=names)
    if other := [f"{old} to {new}" for old, new in renamed(result, documents)]:
        note(f"renamed graph {listed(other)}: another one has that name")
    unknown = list(dangling(result))
    for digest, graph in unknown[:_NAMED]:
        note(f"graph '{graph}' reads {digest}, which no document defines")
    if len(unknown) > _NAMED:
        note(f"... {len(unknown)} such values in all")
    emit(result, out, format_, came_in)


def _pair(bind: str, documents: list[Document]) -> tuple[Key, Key]:
    # A key may hold an =, so the one to split at is the first with a declared input to its left.
    declared = {str(i.key) for document in documents for graph in document.graphs for i in graph.inputs}
    splits = [(bind[:at], bind[at + 1 :]) for at, character in enumerate(bind) if character == "="]
    if not splits:
        raise click.BadParameter(f"'{bind}' is not INPUT=KEY, such as x=y", param_hint="'--bind'")
    key, output = next((split for split in splits if split[0] in declared), splits[0])
    try:
        return parse_key(key), parse_key(output)
    except KeyTextError as error:
        raise click.BadParameter(str(error), param_hint="'--bind'") from None
