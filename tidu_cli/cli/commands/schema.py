"""tidu schema: print the JSON Schema of documents."""

from __future__ import annotations

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import emit_json, example
from tidu_cli.cli.out_option import out_option


@click.command(cls=Command, epilog=example("tidu schema"))
@out_option("json")
def command(out: str | None) -> None:
    """Print the JSON Schema of documents."""
    from tidu_cli.formats.shape.schema import json_schema

    emit_json(json_schema(), out, indent=2)
