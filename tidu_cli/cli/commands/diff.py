"""tidu diff: compare two documents by structure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from tidu_cli.cli.building.declarations import build_option
from tidu_cli.cli.main import Command
from tidu_cli.cli.options import emit_json, emit_lines, example, load_all, plugins_option, shown
from tidu_cli.graph.graph import Document
from tidu_cli.graph.select import listed

if TYPE_CHECKING:
    from tidu_cli.checking.comparing.values import Comparison, TypesDiffer
    from tidu_cli.graph.graph import Place
    from tidu_cli.graph.keys import Key

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
def command(a: str, b: str, exact: bool, brief: bool, as_json: bool) -> None:
    """Compare two documents by structure.

    Two documents are the same if they have the same inputs and outputs, of the same types, and compute each output in the same
    way. The order of nodes, dead nodes, sharing, the split into graphs and the file format make no difference; op, attrs, role and
    the order of operands do. Where outputs are computed differently, the smallest parts that differ are shown.

    The status is 0 if they are the same, 1 if they differ, 2 in case of trouble. One of A and B may be -, standard input.
    """
    from tidu_cli.checking.comparing.structure import structural_differences
    from tidu_cli.checking.comparing.values import compare

    (one, other), _, _ = load_all([a, b])
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
            lines += [*_lines(found, _data(found, one, other)), *letters, *([f"... {more} more"] if more else [])]
        emit_lines(lines)
    if not same:
        click.get_current_context().exit(1)


def _lines(found: Comparison, data: dict[str, Any]) -> Iterator[str]:
    from tidu_cli.checking.comparing.structure import told_apart

    for what in ("inputs", "outputs"):
        for side, keys in data[f"{what}_only"].items():
            if keys:
                yield f"{what} only in {side.upper()}: {listed(keys)}"
    for what, ports in (("input", found.input_types), ("output", found.output_types)):
        for port in ports:
            yield f"{what} '{port.of}' is {told_apart(port.a, port.b)}"
    for types, value in zip(found.value_types, data["value_types"], strict=True):
        yield f"{value['value']} is {told_apart(types.a, types.b)}"
    if data["computed_differently"]:
        yield f"outputs computed differently: {listed(data['computed_differently'])}"
    for place in data["places"]:
        reason = f", {place['reason']}" if place["reason"] else ""
        yield f"  output '{place['output']}'{reason}:"
        for side in "ab":
            at = place[side]
            where = f"  (graph '{at['graph']}', node {at['node']})" if "node" in at else ""
            yield f"    {side.upper()}: {at['expression']}{where}"
    if data["n_places"] > len(data["places"]):
        yield f"  ... at {data['n_places']} places in all"
    values = data["values"]
    only = [f"{sum(values[k].values())} only in {side}{_ops(values[k])}" for k, side in (("only_a", "A"), ("only_b", "B"))]
    yield f"values: {values['shared']} in both, {', '.join(only)}"


def _data(found: Comparison, a: Document, b: Document) -> dict[str, Any]:
    from tidu_cli.checking.comparing.structure import texts

    def keys(pair: tuple[Sequence[Key], Sequence[Key]]) -> dict[str, list[str]]:
        return {side: list(map(str, keys)) for side, keys in zip("ab", pair, strict=True)}

    def types(differences: Sequence[TypesDiffer[Key]]) -> list[dict[str, str]]:
        return [{"key": str(d.of), **texts(d.a, d.b)} for d in differences]

    return {
        "inputs_only": keys(found.inputs_only),
        "outputs_only": keys(found.outputs_only),
        "input_types": types(found.input_types),
        "output_types": types(found.output_types),
        "value_types": [{"value": _value(a, d.of)["expression"], **texts(d.a, d.b)} for d in found.value_types],
        "computed_differently": list(map(str, found.computed)),
        "places": [
            {"output": str(place.key), "reason": place.reason or None, "a": _value(a, place.a), "b": _value(b, place.b)}
            for place in found.places
        ],
        "n_places": found.n_places,
        "values": {"shared": found.shared, "only_a": dict(found.values_only[0]), "only_b": dict(found.values_only[1])},
    }


def _value(document: Document, place: Place | None) -> dict[str, Any]:
    """A value as an expression, and the graph and node that make it, if a node does."""
    from tidu_cli.graph.link import Application, Definitions
    from tidu_cli.render.words.expression import expression

    if place is None:
        return {"expression": "0"}
    definitions = Definitions(document)
    data, found = {"expression": expression(definitions, place)}, definitions[place]
    return data | ({"graph": document.graphs[found.graph].name, "node": found.node} if isinstance(found, Application) else {})


def _ops(ops: dict[str, int]) -> str:
    listed = ", ".join(f"{n} {op}" for op, n in sorted(ops.items(), key=lambda item: (-item[1], item[0])))
    return f" ({listed})" if listed else ""
