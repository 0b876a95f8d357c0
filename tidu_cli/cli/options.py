"""What commands share: reading the document, writing the result, keys as parameters, and examples in the help."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, NamedTuple, TypeVar

import click

from tidu_cli.errors import KeyTextError, TiduError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key, parse_key

F = TypeVar("F", bound=Callable[..., Any])

SUFFIXES = {
    ".json": "json",
    ".msgpack": "msgpack",
    ".npz": "npz",
    ".dot": "dot",
    ".gv": "dot",
    ".svg": "svg",
    ".png": "png",
    ".pdf": "pdf",
}
"""The format that a file name's suffix stands for."""

BINARY = frozenset({"msgpack", "npz", "png", "pdf"})
"""Formats that are not printed to a terminal."""


class KeyParam(click.ParamType[Key]):
    """A key in its text form."""

    name = "key"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Key:
        """Parse the key; a malformed one is wrong usage."""
        if isinstance(value, Key):
            return value
        try:
            return parse_key(value)
        except KeyTextError as error:
            self.fail(str(error), param, ctx)


KEY = KeyParam()


class Source(NamedTuple):
    """A document that was read, and the format it came in."""

    document: Document
    format: str


def file_argument(function: F) -> F:
    """The argument FILE: a document, by default standard input."""
    return click.argument("file", default="-", metavar="[FILE]")(function)


def output_keys_option(function: F) -> F:
    """The option --output KEY, which repeats."""
    text = (
        "An output, by its key; repeats. Looked up in the head, then in the latest graph that has it. [default: all of the head's]"
    )
    return click.option("--output", "outputs", type=KEY, multiple=True, metavar="KEY", help=text)(function)


def document_output_options(function: F) -> F:
    """The options -o and --format of commands that write a document."""
    return result_options("json", "msgpack", default="what came in")(function)


def result_options(*formats: str, default: str) -> Callable[[F], F]:
    """The options -o and --format, for these formats."""

    def decorate(function: F) -> F:
        text = f"The format, where OUT has no suffix that says it. [default: {default}]"
        function = click.option("--format", "format_", type=click.Choice(formats), metavar="|".join(formats), help=text)(function)
        return click.option("-o", "out", metavar="OUT", help="Write to this file, whole or not at all. [default: standard output]")(
            function
        )

    return decorate


def example(*lines: str) -> str:
    """The epilog that shows a runnable example."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


def load(file: str) -> Source:
    """Read and check a document. Raises DocumentError."""
    from tidu_cli.documents.files import read_bytes
    from tidu_cli.documents.read import parse_document

    where = "standard input" if file == "-" else file
    return Source(*parse_document(read_bytes(file), where))


def chosen_format(out: str | None, format_: str | None, default: str, formats: tuple[str, ...]) -> str:
    """OUT's suffix if it stands for one of `formats`, else --format, else the default."""
    by_suffix = SUFFIXES.get(PurePath(out).suffix.lower()) if out else None
    return by_suffix if by_suffix in formats else format_ or default


def emit(document: Document, out: str | None, format_: str | None, came_in: str, **how: Any) -> None:
    """Write a document to OUT or standard output."""
    from tidu_cli.documents.write import format_document

    chosen = chosen_format(out, format_, came_in, ("json", "msgpack"))
    require_printable(out, chosen)
    emit_bytes(format_document(document, chosen, **how), out)


def require_printable(out: str | None, format_: str) -> None:
    """Raises TiduError if a binary format would go to a terminal. Called before the work, where that is possible."""
    if out is None and format_ in BINARY and sys.stdout.isatty():
        raise TiduError(f"{format_} is not printed to a terminal; redirect it, or give -o FILE")


def emit_bytes(data: bytes, out: str | None) -> None:
    """Write finished data to OUT or standard output."""
    from tidu_cli.documents.files import write_bytes

    write_bytes(data, out)
