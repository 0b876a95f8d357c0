"""tidu diff: compare two documents by structure."""

from __future__ import annotations

import click

from tidu_cli.cli.building import build_option
from tidu_cli.cli.main import Command
from tidu_cli.cli.options import emit_json, emit_lines, example, load_all, option, plain_option, plugins_option, shown


@click.command(
    cls=Command, failure_status=2, epilog=example("tidu convert samples/f.json --format msgpack | tidu diff samples/f.json -")
)
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@option("exact")
@click.option("-q", "--brief", is_flag=True, help="Say only whether they differ.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@build_option
@plugins_option
@plain_option
def command(a: str, b: str, exact: bool, brief: bool, as_json: bool) -> None:
    """Compare two documents by structure.

    Two documents are the same if they have the same inputs and outputs, of the same types, and compute each output in the same
    way. The order of nodes, dead nodes, sharing, the split into graphs and the file format make no difference; op, attrs, role and
    the order of operands do. Where outputs are computed differently, the smallest parts that differ are shown.

    The status is 0 if they are the same, 1 if they differ, 2 in case of trouble. One of A and B may be -, standard input.
    """
    from tidu_cli.checking.comparison import difference
    from tidu_cli.checking.comparison import lines as lines_of

    (one, other), _, _ = load_all([a, b])
    compared, data = difference(one, other, exact=exact)
    same = data["same"]
    if as_json:
        emit_json(data)
    elif same and not brief:
        emit_lines([f"{shown(a)} and {shown(b)} are the same"])
    elif not same:
        lines = [f"{shown(a)} and {shown(b)} differ"]
        if not brief:
            more = data.get("more_structure", 0)
            lines += [*lines_of(compared, data), *data.get("structure", ()), *([f"... {more} more"] if more else [])]
        emit_lines(lines)
    if not same:
        click.get_current_context().exit(1)
