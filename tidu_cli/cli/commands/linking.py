"""Commands that put documents together, and rename what would not go together.

tidu resolve: link documents into one.
tidu compose: the outputs of each document are the inputs of the next.
tidu rename: give inputs, outputs and graphs other names.
"""

from __future__ import annotations

from typing import Any

import click

from tidu_cli.cli.building import build_option
from tidu_cli.cli.main import Command
from tidu_cli.cli.options import (
    document_output_options,
    emit,
    example,
    file_argument,
    load_all,
    on_document,
    ops_option,
    option,
    plain_option,
)
from tidu_cli.errors import KeyTextError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key, parse_key


@click.command(cls=Command, epilog=example("tidu linearize samples/f.json --wrt x --detach | tidu resolve samples/f.json -"))
@click.argument("files", nargs=-1, metavar="[FILES]...")
@option("bind")
@option("one_pass")
@build_option
@ops_option
@plain_option
@document_output_options
def resolve(files: tuple[str, ...], bind: tuple[str, ...], one_pass: tuple[int, ...], out: str | None, format_: str | None) -> None:
    """Link documents into one.

    Equal graphs merge, detached references find their values, and --bind composes graphs. If two different graphs have
    one name, the later is named f.2. A pass that is one call of linearize in one file and another in the next is refused:
    `tidu convert --pass` renumbers it, --one-pass says that both are one.

    References that no document defines stay detached, and are named on standard error.
    """
    from tidu_cli.api.documents import resolve

    documents, names, came_in = load_all(files or ("-",))
    pairs = [_pair(text, documents) for text in bind]
    emit(resolve(*documents, bind=pairs, one_pass=one_pass, names=names), out, format_, came_in)


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


@click.command(
    cls=Command, epilog=example("tidu compose --quiet samples/compose_f.json samples/compose_g.json | tidu grad --wrt x --set x=2")
)
@click.argument("files", nargs=-1, metavar="[FILES]...")
@option("by")
@option("share")
@option("one_pass")
@build_option
@ops_option
@plain_option
@document_output_options
def compose(files: tuple[str, ...], out: str | None, format_: str | None, **how: Any) -> None:
    """Feed the outputs of each document to the inputs of the next.

    FILES are in the order of evaluation: f.json g.json is g(f(x)). By position, outputs go in order to the inputs of their kind
    (plain, tangents or cotangents), or else to plain ones. Inputs that nothing feeds stay inputs of the result, whose head is the
    last document's.

    Derivatives of several calls of linearize are not one pass, unless --one-pass says so: as in the chain rule, where the product
    of derivatives is that of the composition.

    Notes on standard error list what was bound and renamed: u=v says that the input u is the output v.
    """
    from tidu_cli.api.documents import compose

    documents, names, came_in = load_all(files or ("-",))
    emit(compose(*documents, names=names, **how), out, format_, came_in)


def _names(pairs: tuple[tuple[str, str], ...], option: str) -> dict[str, str]:
    names = dict(pairs)
    if len(names) < len(pairs):
        raise click.UsageError(f"{option} gives one name two others")
    return names


@click.command(cls=Command, epilog=example("tidu rename samples/f.json --graph f=power --key x=base | tidu show"))
@file_argument
@option("keys")
@option("graphs")
@document_output_options
@on_document
def rename(document: Document, keys: tuple[tuple[str, str], ...], graphs: tuple[tuple[str, str], ...]) -> Document:
    """Give inputs, outputs and graphs other names.

    What is derived of them follows: with the input x go its tangents x@1 and its cotangents x@-1, with the graph f its derivative
    f@1. All change at once: --key x=y --key y=x exchanges two.
    """
    from tidu_cli.api.files import rename

    return rename(document, _names(keys, "--key"), _names(graphs, "--graph"))
