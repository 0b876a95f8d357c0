"""tidu compile: a program, planned once for many runs."""

from __future__ import annotations

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.messages import detail
from tidu_cli.cli.options import (
    counted,
    emit_bytes,
    example,
    file_argument,
    load,
    out_option,
    output_keys_option,
    require_printable,
)
from tidu_cli.graph.keys import Key


@click.command(
    cls=Command,
    epilog=example("tidu grad samples/f.json --wrt x | tidu compile -o gradient.msgpack", "tidu eval gradient.msgpack --set x=3"),
)
@file_argument
@output_keys_option
@out_option("msgpack")
def command(file: str, outputs: tuple[Key, ...], out: str | None) -> None:
    """Plan an evaluation, and write the program.

    It computes the head's outputs. `tidu eval` runs it as it runs the document, but neither reads nor plans it anew. A program
    belongs to the version of tidu that made it, and is no document: other commands do not take it. It is msgpack.
    """
    from tidu_cli.formats.programs import format_program
    from tidu_cli.runtime.plans.program import compile_graph
    from tidu_cli.runtime.stored import stored
    from tidu_cli.transforms.materialize import materialize

    require_printable(out, "msgpack")
    head = materialize(load(file).document, outputs=outputs).head
    program = compile_graph(head)
    detail(f"program '{head.name}': {counted(program.n_steps, 'step')}, {program.told}")
    emit_bytes(format_program(*stored(program)), out)
