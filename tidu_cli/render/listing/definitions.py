"""The lines of a custom operation: patterns of its inputs and outputs, and the graphs that say what it and its derivatives are.

These graphs have no types, which come with the operands, so names stand alone: `a = exp x`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from tidu_cli.errors import TiduError, counted
from tidu_cli.graph.keys import key_from_json
from tidu_cli.graph.literals import Literal
from tidu_cli.render.listing.names import attr_text, key_text, letters
from tidu_cli.rules.vocabulary import Definition, PrimitiveSet

_INDENT = "    "


def definition_lines(definition: Definition, primitives: PrimitiveSet, most: int | None) -> Iterator[str]:
    """The lines of a definition. A graph of more than `most` nodes is told of in a line."""
    data = definition.to_data()
    attrs: Mapping[str, Any] = data.get("attrs", {})
    defaults = ", ".join(key_text(name) + ("" if value is None else f"={attr_text(value)}") for name, value in attrs.items())
    ports = [", ".join(f"{_key(port)}: {port['type']}" for port in data[side]) for side in ("inputs", "outputs")]
    yield f"op {key_text(definition.name)}{f'[{defaults}]' if attrs else ''}({ports[0]}) -> ({ports[1]}):"
    for kind, graph in data.items():
        if kind in ("inputs", "outputs", "attrs"):
            continue
        head = f"{_INDENT}{kind}({', '.join(map(_key, graph['inputs']))}):"
        sizes = _sizes(graph["nodes"], primitives)
        if sizes is None or (most is not None and len(sizes) > most):
            yield f"{head} {counted(len(graph['nodes']), 'node')}"
        else:
            yield head
            yield from (f"{2 * _INDENT}{line}" for line in _lines(graph, sizes, set(attrs)))


def _key(port: Mapping[str, Any]) -> str:
    return key_text(key_from_json(port["key"]))


def _sizes(nodes: Sequence[Mapping[str, Any]], primitives: PrimitiveSet) -> list[int] | None:
    """How many results each node has; None if that depends on attrs which come with the operation's."""
    found = []
    for node in nodes:
        domain = primitives[node["op"]].domain
        attrs = None
        if domain.n_results is not type(domain).n_results:  # else it is one, whatever the attrs
            if domain.attrs.graphs:
                return None
            try:
                attrs = primitives.parse_attrs(node["op"], node.get("attrs", {}))
            except TiduError:
                return None
        found.append(domain.n_results(attrs, len(node["inputs"])))
    return found


def _lines(graph: Mapping[str, Any], sizes: Sequence[int], taken: set[str]) -> Iterator[str]:
    """The lines of nodes and outputs. Attrs of the operation, which are `taken`, may stand among operands, as numbers do."""
    names = [_key(port) for port in graph["inputs"]]
    keys = taken.union(names, map(_key, graph["outputs"]))
    fresh = (name for name in map(letters, count()) if name not in keys)
    for node, size in zip(graph["nodes"], sizes, strict=True):
        attrs = node.get("attrs", {})
        number = _scalar(attrs) if node["op"] == "constant" else None
        if number is not None:
            names.append(number)
            continue
        results = [next(fresh) for _ in range(size)]
        given = ", ".join(f"{name}={attr_text(value)}" for name, value in attrs.items())
        op = f"{node['op']}[{given}]" if given else node["op"]
        yield f"{', '.join(results)} = {' '.join([op, *(names[x] for x in node['inputs'])])}"
        names += results
    returned = [(_key(output), "0" if output["value"] is None else names[output["value"]]) for output in graph["outputs"]]
    yield f"return {', '.join(key if key == name else f'{key} = {name}' for key, name in returned)}"


def _scalar(attrs: Mapping[str, Any]) -> str | None:
    """A constant without axes: a number with its dtype, or the attr that it is; None for others, and for pairs of numbers."""
    value = attrs.get("value")
    if isinstance(value, Literal) or not isinstance(value, Mapping):
        return None
    type_, data = str(value.get("type", "")), value.get("data")
    if not type_.endswith("[]") or not isinstance(data, list) or len(data) != 1:
        return None
    dtype, number = type_.removesuffix("[]"), data[0]
    if isinstance(number, Mapping):
        return key_text(str(number["attr"])) if "attr" in number else None
    if isinstance(number, list):
        return None
    return attr_text(number) if dtype in ("f64", "bool") else f"{attr_text(number)}:{dtype}"
