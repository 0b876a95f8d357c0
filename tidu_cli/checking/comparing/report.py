"""Comparisons as lines for people and as data for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from tidu_cli.checking.comparing.structure import structural_differences, texts, told_apart
from tidu_cli.checking.comparing.values import Comparison, TypesDiffer, compare
from tidu_cli.graph.graph import Document, Place
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import Application, Definitions
from tidu_cli.graph.select import listed
from tidu_cli.render.phrases import expression


def lines(compared: Comparison, data: dict[str, Any]) -> Iterator[str]:
    """A line for each thing that differs, of data as `to_data` gives it, and at last one of values."""
    for what in ("inputs", "outputs"):
        for side, keys in data[f"{what}_only"].items():
            if keys:
                yield f"{what} only in {side.upper()}: {listed(keys)}"
    for what, ports in (("input", compared.input_types), ("output", compared.output_types)):
        for port in ports:
            yield f"{what} '{port.of}' is {told_apart(port.a, port.b)}"
    for types, value in zip(compared.value_types, data["value_types"], strict=True):
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


def difference(a: Document, b: Document, *, exact: bool = False) -> tuple[Comparison, dict[str, Any]]:
    """How two documents differ, and the JSON form of that: "same", and where; with `exact` also graph by graph, as "structure"."""
    compared = compare(a, b)
    told = structural_differences(a, b) if exact else iter(())
    first = list(islice(told, _LISTED))
    structure = {"structure": first, "more_structure": sum(1 for _ in told)} if exact else {}
    return compared, {"same": compared.same and not first, **to_data(compared, a, b), **structure}


_LISTED = 10
"""As many differences of structure are listed."""


def to_data(compared: Comparison, a: Document, b: Document) -> dict[str, Any]:
    """The JSON form of a comparison."""

    def keys(pair: tuple[Sequence[Key], Sequence[Key]]) -> dict[str, list[str]]:
        return {side: list(map(str, keys)) for side, keys in zip("ab", pair, strict=True)}

    def types(differences: Sequence[TypesDiffer[Key]]) -> list[dict[str, str]]:
        return [{"key": str(d.of), **texts(d.a, d.b)} for d in differences]

    return {
        "inputs_only": keys(compared.inputs_only),
        "outputs_only": keys(compared.outputs_only),
        "input_types": types(compared.input_types),
        "output_types": types(compared.output_types),
        "value_types": [{"value": _value(a, d.of)["expression"], **texts(d.a, d.b)} for d in compared.value_types],
        "computed_differently": list(map(str, compared.computed)),
        "places": [
            {"output": str(place.key), "reason": place.reason or None, "a": _value(a, place.a), "b": _value(b, place.b)}
            for place in compared.places
        ],
        "n_places": compared.n_places,
        "values": {"shared": compared.shared, "only_a": dict(compared.values_only[0]), "only_b": dict(compared.values_only[1])},
    }


def _value(document: Document, place: Place | None) -> dict[str, Any]:
    """A value as an expression, and the graph and node that make it, if a node does."""
    if place is None:
        return {"expression": "0"}
    definitions = Definitions(document)
    data, maker = {"expression": expression(definitions, place)}, definitions[place]
    return data | ({"graph": document.graphs[maker.graph].name, "node": maker.node} if isinstance(maker, Application) else {})


def _ops(ops: dict[str, int]) -> str:
    listed = ", ".join(f"{n} {op}" for op, n in sorted(ops.items(), key=lambda item: (-item[1], item[0])))
    return f" ({listed})" if listed else ""
