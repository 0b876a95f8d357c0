"""tidu ops: list the primitives."""

from __future__ import annotations

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import emit_json, emit_text, example


@click.command(cls=Command, epilog=example("tidu ops", "tidu ops dot_general --json"))
@click.argument("names", nargs=-1, metavar="[OP]...")
@click.option("--json", "as_json", is_flag=True, help="As JSON, with dtypes, types of attrs, and what each rule emits.")
def command(names: tuple[str, ...], as_json: bool) -> None:
    """List the primitives, or those named.

    Each line tells the number of inputs (n: any), J for a JVP rule and T for a transpose rule, what it computes, and its [attrs].
    """
    from tidu_cli.primitives.builtin import BUILTIN

    chosen = [BUILTIN[name] for name in names] or list(BUILTIN)
    if as_json:
        from tidu_cli.checking.catalogue import entry

        emit_json([entry(primitive).to_data() for primitive in chosen], indent=1)
        return
    width = max(len(primitive.name) for primitive in chosen)
    lines = []
    for p in chosen:
        arity = "n" if p.arity is None else p.arity
        rules = ("J" if p.jvp else "-") + ("T" if p.transpose else "-")
        attrs = f"  [{', '.join(p.attrs.model_fields)}]" if p.attrs.model_fields else ""
        lines.append(f"{p.name:{width}}  {arity}  {rules}  {p.formula}: {p.summary}{attrs}")
    emit_text("\n".join(lines))
