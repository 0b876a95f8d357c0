"""tidu diff: compare two documents by structure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import emit_json, emit_lines, example, load, plugins_option, require_stdin_once, shown
from tidu_cli.graph.graph import Document
from tidu_cli.graph.select import listed

if TYPE_CHECKING:
    from tidu_cli.checking.comparing.values import Comparison, Difference, TypesDiffer
    from tidu_cli.graph.graph import Place

_LISTED = 10  # how many structural differences are told


@click.command(
    cls=Command,
    failure_status=2,
    epilog=example("tidu convert samples/f.json --format msgpack | tidu diff samples/f.json -"),
)
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--exact", is_flag=True, help="Also compare the graphs one by one: names, order, nodes, roles, and meta.")
@click.option("-q", "--brief", is_flag=True, help="Say only whether they differ.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@plugins_option
def command(a: str, b: str, exact: bool, brief: bool, as_json: bool) -> None:
    """Compare two documents by structure.

    Two documents are the same if they have the same inputs and outputs, of the same types, and compute each output in the same
    way. The order of nodes, dead nodes, sharing, the split into graphs and the file format make no difference; op, attrs, role and
    the order of operands do. Where outputs are computed differently, the smallest parts that differ are shown.

    The status is 0 if they are the same, 1 if they differ, 2 in case of trouble. One of A and B may be -, standard input.
    """
    from tidu_cli.checking.comparing.structure import structural_differences
    from tidu_cli.checking.comparing.values import compare

    require_stdin_once(a, b)
    one, other = load(a).document, load(b).document
    found = compare(one, other)
    exactly = structural_differences(one, other) if exact else iter(())
    letters = list(islice(exactly, _LISTED))
    more = sum(1 for _ in exactly)
    same = found.same and not letters
    if as_json:
        emit_json({"same": same, **_data(found, one, other), **({"structure": letters, "more_structure": more} if exact else {})})
    elif same and not brief:
        emit_lines([f"{shown(a)} and {shown(b)} are the same"])
    elif not same:
        lines = [f"{shown(a)} and {shown(b)} differ"]
        if not brief:
            lines += [*_lines(found, one, other), *letters, *([f"... {more} more"] if more else [])]
        emit_lines(lines)
    if not same:
        click.get_current_context().exit(1)


def _lines(found: Comparison, a: Document, b: Document) -> Iterator[str]:
    from tidu_cli.checking.comparing.structure import told_apart

    for what, pair in (("inputs", found.inputs_only), ("outputs", found.outputs_only)):
        for side, keys in zip("AB", pair, strict=True):
            if keys:
                yield f"{what} only in {side}: {listed(list(map(str, keys)))}"
    for what, types in (("input", found.input_types), ("output", found.output_types)):
        for differ in types:
            yield f"{what} '{differ.key}' is {told_apart(differ.a, differ.b)}"
    for value in found.value_types:
        yield f"{_text(a, value.place)} is {told_apart(value.a, value.b)}"
    if found.computed:
        yield f"outputs computed differently: {listed(list(map(str, found.computed)))}"
    for place in found.places:
        yield f"  output '{place.key}'{f', {place.reason}' if place.reason else ''}:"
        for side, document, at in (("A", a, place.a), ("B", b, place.b)):
            yield f"    {side}: {_text(document, at)}{_where(document, at)}"
    if found.n_places > len(found.places):
        yield f"  ... at {found.n_places} places in all"
    only = [f"{sum(ops.values())} only in {side}{_ops(ops)}" for side, ops in zip("AB", found.values_only, strict=True)]
    yield f"values: {found.shared} in both, {', '.join(only)}"


def _data(found: Comparison, a: Document, b: Document) -> dict[str, Any]:
    from tidu_cli.checking.comparing.structure import texts

    def types(differences: Sequence[TypesDiffer]) -> list[dict[str, str]]:
        return [{"key": str(d.key), **texts(d.a, d.b)} for d in differences]

    return {
        "inputs_only": {side: list(map(str, keys)) for side, keys in zip("ab", found.inputs_only, strict=True)},
        "outputs_only": {side: list(map(str, keys)) for side, keys in zip("ab", found.outputs_only, strict=True)},
        "input_types": types(found.input_types),
        "output_types": types(found.output_types),
        "value_types": [{"value": _text(a, d.place), **texts(d.a, d.b)} for d in found.value_types],
        "computed_differently": list(map(str, found.computed)),
        "places": [_place_data(place, a, b) for place in found.places],
        "n_places": found.n_places,
        "values": {"shared": found.shared, "only_a": dict(found.values_only[0]), "only_b": dict(found.values_only[1])},
    }


def _place_data(place: Difference, a: Document, b: Document) -> dict[str, Any]:
    data: dict[str, Any] = {"output": str(place.key), "reason": place.reason or None}
    for side, document, at in (("a", a, place.a), ("b", b, place.b)):
        data[side] = {"expression": _text(document, at), **_node(document, at)}
    return data


def _text(document: Document, place: Place | None) -> str:
    from tidu_cli.graph.link import Definitions
    from tidu_cli.render.words.expression import expression

    return "0" if place is None else expression(Definitions(document), place)


def _where(document: Document, place: Place | None) -> str:
    at = _node(document, place)
    return f"  (graph '{at['graph']}', node {at['node']})" if at else ""


def _node(document: Document, place: Place | None) -> dict[str, Any]:
    """The graph and node that make a value, if a node does."""
    from tidu_cli.graph.link import Application, Definitions

    found = None if place is None else Definitions(document)[place]
    return {"graph": document.graphs[found.graph].name, "node": found.node} if isinstance(found, Application) else {}


def _ops(ops: Counter[str]) -> str:
    listed = ", ".join(f"{n} {op}" for op, n in sorted(ops.items(), key=lambda item: (-item[1], item[0])))
    return f" ({listed})" if listed else ""
