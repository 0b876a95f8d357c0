"""tidu diff: compare two documents by structure."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import click

from tidu_cli.cli.building.declarations import build_option
from tidu_cli.cli.main import Command
from tidu_cli.cli.options import emit_json, emit_lines, example, load_all, plain_option, plugins_option, shown

if TYPE_CHECKING:
    pass

_LISTED = 10  # how many structural differences are told


@click.command(
    cls=Command, failure_status=2, epilog=example("tidu convert samples/f.json --format msgpack | tidu diff samples/f.json -")
)
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--exact", is_flag=True, help="Also compare the graphs one by one: names, order, nodes, roles, and meta.")
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
    from tidu_cli.checking.comparing.report import lines as lines_of
    from tidu_cli.checking.comparing.report import to_data
    from tidu_cli.checking.comparing.structure import structural_differences
    from tidu_cli.checking.comparing.values import compare

    (one, other), _, _ = load_all([a, b])
    found = compare(one, other)
    exactly = structural_differences(one, other) if exact else iter(())
    letters = list(islice(exactly, _LISTED))
    more = sum(1 for _ in exactly)
    same = found.same and not letters
    if as_json:
        emit_json({"same": same, **to_data(found, one, other), **({"structure": letters, "more_structure": more} if exact else {})})
    elif same and not brief:
        emit_lines([f"{shown(a)} and {shown(b)} are the same"])
    elif not same:
        lines = [f"{shown(a)} and {shown(b)} differ"]
        if not brief:
            lines += [*lines_of(found, to_data(found, one, other)), *letters, *([f"... {more} more"] if more else [])]
        emit_lines(lines)
    if not same:
        click.get_current_context().exit(1)
