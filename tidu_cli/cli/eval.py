"""tidu eval: the values of outputs."""

from __future__ import annotations

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import (
    SIZE,
    chosen_format,
    emit_bytes,
    example,
    file_argument,
    load,
    output_keys_option,
    require_printable,
    require_stdin_once,
    result_options,
    shown,
)
from tidu_cli.errors import KeyTextError, TransformError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key, parse_key

_FORMATS = ("json", "npz", "msgpack")


@click.command(cls=Command, epilog=example("tidu eval samples/f.json --set x=3"))
@file_argument
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="An input's value, as JSON (3, [1,2], ...) or @FILE.npy; repeats."
)
@click.option("--inputs", "files", multiple=True, metavar="FILE", help="Values of inputs by key: JSON, npz or msgpack; repeats.")
@output_keys_option
@click.option(
    "--max-memory",
    type=SIZE,
    metavar="SIZE",
    help="Refuse to start if more memory is needed, such as 512M or 2G. [default: the machine's]",
)
@result_options(*_FORMATS, default="json")
def command(
    file: str,
    settings: tuple[str, ...],
    files: tuple[str, ...],
    outputs: tuple[Key, ...],
    max_memory: int | None,
    out: str | None,
    format_: str | None,
) -> None:
    """Evaluate the head's outputs, and print them by key.

    A document of several graphs is materialized first. Inputs come from --inputs files, then from --set, which wins; files may hold
    more than is needed.
    """
    from tidu_cli.documents.values import write_values
    from tidu_cli.runtime.evaluate import evaluate
    from tidu_cli.transforms.materialize import materialize

    require_stdin_once(file, *files)
    for setting in settings:
        _require_assignment(setting)
    chosen = chosen_format(out, format_, "json")
    require_printable(out, chosen)
    document = load(file).document
    values = _given(document, settings, files)
    results = evaluate(materialize(document, outputs=outputs).head, values, max_memory=max_memory)
    emit_bytes(write_values(results, chosen), out)


def _require_assignment(setting: str) -> None:
    """Raises BadParameter unless some = has a key to its left: which one it is, the document says, as names may hold one."""
    complaint = f"'{setting}' is not KEY=VALUE, such as x=3 or x=[1,2]"
    for at in reversed([at for at, character in enumerate(setting) if character == "="]):
        try:
            parse_key(setting[:at])
            return
        except KeyTextError as error:
            complaint = str(error)
    raise click.BadParameter(complaint, param_hint="'--set'")


def _given(document: Document, settings: tuple[str, ...], files: tuple[str, ...]) -> dict[Key, object]:
    from tidu_cli.documents.files import read_bytes
    from tidu_cli.documents.values import parse_assignment, read_values

    given: dict[Key, object] = {}
    for file in files:
        given.update(read_values(read_bytes(file), shown(file)))
    known = _known_keys(document)
    assigned = dict(parse_assignment(setting, known) for setting in settings)
    for binding in document.bindings:
        if binding.key in assigned:
            graph = document.graphs[binding.graph].name
            raise TransformError(f"input '{binding.key}' is bound to a value of graph '{graph}', so it cannot be set")
    return given | assigned


def _known_keys(document: Document) -> set[Key]:
    """The keys that --set takes: declared inputs, and what other keys are tangents or cotangents of.

    The latter since materialize drops inputs that nothing depends on: where x@2 is declared, x is no typing error, only not needed.
    """
    known = {i.key for graph in document.graphs for i in graph.inputs}
    return known | {Key(key.name, key.path[:depth]) for key in document.every_key() for depth in range(len(key.path))}
