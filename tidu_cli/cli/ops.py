"""tidu ops: list the primitives."""

from __future__ import annotations

import json
from typing import Any

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import example
from tidu_cli.errors import UnknownNameError, did_you_mean
from tidu_cli.primitives.contract import Primitive


@click.command(cls=Command, epilog=example("tidu ops", "tidu ops dot_general --json"))
@click.argument("names", nargs=-1, metavar="[OP]...")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
def command(names: tuple[str, ...], as_json: bool) -> None:
    """List the primitives, or those named: arity, attrs, derivative rules and what they compute."""
    from tidu_cli.primitives.builtin import BUILTIN

    for name in names:
        if name not in BUILTIN.primitives:
            raise UnknownNameError(f"unknown op '{name}'{did_you_mean(name, list(BUILTIN.primitives))}")
    rows = [_row(primitive) for primitive in BUILTIN if not names or primitive.name in names]
    if as_json:
        click.echo(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    width = max(len(row["op"]) for row in rows)
    for row in rows:
        arity = "n" if row["arity"] is None else row["arity"]
        rules = ("J" if row["jvp"] else "-") + ("T" if row["transpose"] else "-")
        attrs = f"  [{', '.join(row['attrs'])}]" if row["attrs"] else ""
        click.echo(f"{row['op']:{width}}  {arity}  {rules}  {row['formula']}: {row['summary']}{attrs}")


def _row(primitive: Primitive) -> dict[str, Any]:
    return {
        "op": primitive.name,
        "arity": primitive.arity,
        "attrs": list(primitive.attrs.model_fields),
        "jvp": primitive.jvp is not None,
        "transpose": primitive.transpose is not None,
        "formula": primitive.formula,
        "summary": primitive.summary,
    }
