"""tidu eval: the values of outputs."""

from __future__ import annotations

import click

from tidu_cli.cli.given import given_values, inputs_option, set_option
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
)
from tidu_cli.graph.keys import Key

_FORMATS = ("json", "npz", "msgpack")


@click.command(cls=Command, epilog=example("tidu eval samples/f.json --set x=3"))
@file_argument
@set_option("An input's value, as JSON (3, [1,2], ...) or @FILE.npy; repeats.")
@inputs_option
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
    chosen = chosen_format(out, format_, "json")
    require_printable(out, chosen)
    document = load(file).document
    values = given_values(document, settings, files)
    results = evaluate(materialize(document, outputs=outputs).head, values, max_memory=max_memory)
    emit_bytes(write_values(results, chosen), out)
