"""Digests of loops and branches: what is in their graphs counts, and how it is written does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.control_flow.laws import hold, longer
from tests.control_flow.strategies import CONDITIONED, looping
from tests.graphs.strategies import seeds
from tidu_cli.errors import DocumentError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.identity import digests


def outputs_digests(doc: Document) -> list[bytes]:
    (values,) = digests(doc)
    return [values[o.value] for o in doc.head.outputs]


def read(plain: Any) -> Document:
    return parse_document(json.dumps(plain).encode(), "d")[0]


def bodies(node: Any) -> Iterator[Any]:
    """The graphs within a node, at any depth."""
    attrs = node.get("attrs", {})
    for graph in [attrs.get("body"), attrs.get("condition"), *attrs.get("branches", [])]:
        if graph is not None:
            yield graph
            for inner in graph["nodes"]:
                yield from bodies(inner)


def inner_graphs(plain: Any) -> list[Any]:
    return [graph for node in plain["graphs"][0]["nodes"] for graph in bodies(node)]


def in_another_order(graph: Any, rng: Any, n_results: Callable[[Any], int]) -> None:
    """The nodes of a graph in another order that has each after what it reads, under other keys, with a dead node at the end."""
    n = len(graph["inputs"])
    first, value = [], n
    for node in graph["nodes"]:
        first.append(value)
        value += n_results(node)
    maker = {v: k for k, f in enumerate(first) for v in range(f, f + n_results(graph["nodes"][k]))}
    order: list[int] = []
    while len(order) < len(first):
        ready = [
            k for k in range(len(first)) if k not in order and all(maker[a] in order for a in graph["nodes"][k]["inputs"] if a >= n)
        ]
        order.append(int(rng.choice(ready)))
    new, value = {k: k for k in range(n)}, n
    for k in order:
        for j in range(n_results(graph["nodes"][k])):
            new[first[k] + j] = value
            value += 1
    graph["nodes"] = [{**graph["nodes"][k], "inputs": [new[a] for a in graph["nodes"][k]["inputs"]]} for k in order]
    graph["nodes"].append({"op": "constant", "inputs": [], "attrs": {"value": {"type": "i8[]", "data": [int(rng.integers(99))]}}})
    for output in graph["outputs"]:
        output["value"] = new[output["value"]]
    for k, port in enumerate((*graph["inputs"], *graph["outputs"])):
        port["key"] = f"renamed{k}"


def n_results(node: Any) -> int:
    attrs = node.get("attrs", {})
    graph = attrs.get("body") or attrs.get("branches", [None])[0]
    return 1 if graph is None else len(graph["outputs"])


@longer
def test_keys_order_and_dead_nodes_of_bodies_do_not_count(times: int) -> None:
    def law(doc: Document, seed: int) -> None:
        plain, rng = json.loads(format_document(doc, "json", listed=True)), np.random.default_rng(seed)
        for graph in inner_graphs(plain):
            in_another_order(graph, rng, n_results)
        assert outputs_digests(read(plain)) == outputs_digests(doc)

    hold(40 * times, law, looping(nested=CONDITIONED), seeds)


def changes(graph: Any) -> Iterator[str]:
    """Make one change to a graph after another, each of which matters; the graph is put back after each."""
    for node in graph["nodes"]:
        other = {"sin": "cos", "cos": "sin", "add": "mul", "mul": "add", "exp": "tanh", "lt": "le"}.get(node["op"])
        if other:
            node["op"], kept = other, node["op"]
            yield f"{kept} → {other}"
            node["op"] = kept
        if node["op"] in ("sub", "div", "pow", "lt", "complex") and one_is_an_input(node, graph):
            node["inputs"].reverse()
            yield "operands"
            node["inputs"].reverse()
        if "length" in node.get("attrs", {}) and node["attrs"]["length"] > 1:
            node["attrs"]["reverse"] = not node["attrs"].get("reverse", False)
            yield "reverse"
            node["attrs"]["reverse"] = not node["attrs"]["reverse"]
        data = node.get("attrs", {}).get("value", {})
        if data.get("type") in ("f64[]", "i32[]"):
            data["data"][0] += 1
            yield "constant"
            data["data"][0] -= 1
    for k, output in enumerate(graph["outputs"]):
        kept = output["value"]
        for j, port in enumerate(graph["inputs"]):
            if port["type"] == output["type"] and j != kept:
                output["value"] = j
                yield f"output {k}"
        output["value"] = kept


def one_is_an_input(node: Any, graph: Any) -> bool:
    """Whether the operands are not equal for sure: two values of nodes may be."""
    return min(node["inputs"]) < len(graph["inputs"]) and len(set(node["inputs"])) == 2


@longer
def test_whatever_else_differs_counts(times: int) -> None:
    """A change is seen in the digest of the node, if it is not to what is dead."""

    def law(doc: Document) -> None:
        plain = json.loads(format_document(doc, "json", listed=True))
        for number, node in enumerate(plain["graphs"][0]["nodes"]):
            for graph in bodies(node):
                live = live_nodes(graph)
                for what in changes({**graph, "nodes": [n for k, n in enumerate(graph["nodes"]) if k in live]}):
                    try:
                        changed = read(plain)
                    except DocumentError:  # of other types
                        continue
                    value = first_value(doc.head, number)
                    assert digests(changed)[0][value] != digests(doc)[0][value], what

    hold(15 * times, law, looping(nested=CONDITIONED, depth=1))


def first_value(graph: Any, number: int) -> int:
    return len(graph.inputs) + sum(graph.cases.n_results[code] for code in graph.code[:number])


def live_nodes(graph: Any) -> set[int]:
    """The nodes that outputs of a graph need."""
    first, value = [], len(graph["inputs"])
    for node in graph["nodes"]:
        first.append(value)
        value += n_results(node)
    needed, live = {o["value"] for o in graph["outputs"]}, set()
    for k in reversed(range(len(first))):
        if needed & set(range(first[k], first[k] + n_results(graph["nodes"][k]))):
            live.add(k)
            needed.update(graph["nodes"][k]["inputs"])
    return live
