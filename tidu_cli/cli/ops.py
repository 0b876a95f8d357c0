"""tidu ops: list the primitives."""

from __future__ import annotations

from collections.abc import Iterator

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import emit_json, emit_text, example
from tidu_cli.cli.style import heading
from tidu_cli.primitives.contract import Primitive


@click.command(cls=Command, epilog=example("tidu ops", "tidu ops mul reduce_sum", "tidu ops dot_general --json"))
@click.argument("names", nargs=-1, metavar="[OP]...")
@click.option(
    "--long", "in_full", is_flag=True, help="Also dtypes, attrs with their types, and what each rule may emit, as for named ops."
)
@click.option("--json", "as_json", is_flag=True, help="All of that as JSON, for programs.")
def command(names: tuple[str, ...], in_full: bool, as_json: bool) -> None:
    """List the primitives, or those named in full.

    Each line tells the number of inputs (n: any), J for a JVP rule and T for a transpose rule, what it computes, and its [attrs].
    """
    from tidu_cli.primitives.builtin import BUILTIN

    chosen = [BUILTIN[name] for name in names] or list(BUILTIN)
    if as_json:
        from tidu_cli.checking.catalogue import entry

        emit_json([entry(primitive).to_data() for primitive in chosen], indent=1)
        return
    in_full = in_full or bool(names)
    width = max(len(primitive.name) for primitive in chosen)
    lines: list[str] = []
    for p in chosen:
        arity = "n" if p.arity is None else p.arity
        rules = ("J" if p.jvp else "-") + ("T" if p.transpose else "-")
        attrs = f"  [{', '.join(p.attrs.model_fields)}]" if p.attrs.model_fields and not in_full else ""
        lines.append(f"{heading(f'{p.name:{width}}')}  {arity}  {rules}  {p.formula}: {p.summary}{attrs}")
        if in_full:
            lines += (f"{'':{width}}  {line}" for line in _details(p))
    emit_text("\n".join(lines))


def _details(primitive: Primitive) -> Iterator[str]:
    from tidu_cli.checking.catalogue import entry
    from tidu_cli.primitives.families import dtype_class

    found = entry(primitive)
    yield f"of {dtype_class(primitive.dtypes)}"
    for name, type_ in found.attrs.items():
        yield f"attr {name}: {type_}"
    for rule, letter, emitted in (("jvp", "J", found.emits.jvp), ("transpose", "T", found.emits.transpose)):
        if rule in found.rules:
            yield f"{letter} → {', '.join(emitted) or 'nothing'}"
