"""tidu eval --stream: standard input answered item by item, on standard output."""

from __future__ import annotations

import sys

import click

from tidu_cli.api.streaming import answers, lines, messages
from tidu_cli.cli.engine_options import chosen_engine
from tidu_cli.cli.messages import detail
from tidu_cli.cli.options import load
from tidu_cli.cli.value_options import given_values
from tidu_cli.errors import DocumentError
from tidu_cli.formats.write import write_pieces
from tidu_cli.graph.keys import Key
from tidu_cli.transforms.materialize import materialize


def answer(
    kind: str,
    file: str,
    settings: tuple[str, ...],
    files: tuple[str, ...],
    output: tuple[Key, ...],
    engine: str,
    device: str | None,
    *,
    alone: bool,
    to_stdout: bool,
) -> None:
    """Answer each item before the next is read. Raises UsageError for options that do not go together with --stream.

    Raises DocumentError for what ends the stream before its end.
    """
    if kind not in ("json", "msgpack"):
        raise click.UsageError(f"--stream is json or msgpack, not '{kind}'; write a file before it: tidu eval {kind} --stream")
    if "-" in (file, *files):
        raise click.UsageError("--stream reads values from standard input; name the files of the document and of --inputs")
    if not to_stdout:
        raise click.UsageError("--stream answers on standard output, line by line; write > FILE, and --stream msgpack for arrays")
    if not alone:
        raise click.UsageError("--stream goes with --set, --inputs, --output, --engine and --device alone")
    if sys.stdin is None:
        raise DocumentError("stdin: is closed, and --stream reads values from it")
    document = load(file, settings, files).document
    fixed = given_values(document, settings, files)
    head = materialize(document, outputs=output).head
    items = (lines if kind == "json" else messages)(sys.stdin.buffer)
    for made in answers(head, fixed, items, kind, chosen_engine(head, engine, device), tell=detail):
        write_pieces((made,), None)
