"""What stands in a model, however deep: its nodes, its tensors, its names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import Any

from tidu_cli.errors import DocumentError
from tidu_cli.formats.files import repeated
from tidu_cli.limits import require

FLOAT_CODES = frozenset((1, 10, 11, 16))
"""The codes of f32, f16, f64 and bf16."""

MOST_LEVELS = 64
"""How deep graphs may stand within nodes of graphs."""


def nodes_within(nodes: Iterable[Any]) -> Iterator[Any]:
    """Nodes, and those of graphs within them."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for inner in _graphs(attribute):
                yield from nodes_within(inner.node)


def tensors(model: Any) -> Iterator[Any]:
    """The tensors of a model: initializers, and attributes of nodes, also in functions and in graphs within nodes."""
    graphs = [model.graph]
    nodes = [node for function in model.functions for node in function.node]
    yield from (a.t for function in model.functions for a in function.attribute_proto if a.HasField("t"))
    while graphs or nodes:
        for graph in graphs:
            yield from graph.initializer
            for sparse in graph.sparse_initializer:
                yield from (sparse.values, sparse.indices)
            nodes += graph.node
        attributes = [attribute for node in nodes for attribute in node.attribute]
        for attribute in attributes:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for sparse in (*([attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else ()), *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)
        graphs, nodes = [inner for attribute in attributes for inner in _graphs(attribute)], []


def constants(graph: Any) -> dict[str, int]:
    """The float tensors of the Constant nodes of a graph that have more than one number, as parameters have: how many each has."""
    nodes = (node for node in graph.node if node.op_type == "Constant" and node.output)
    held = {node.output[0]: a.t for node in nodes for a in node.attribute if a.HasField("t")}
    return {name: size for name, t in held.items() if t.data_type in FLOAT_CODES and (size := prod(t.dims)) > 1}


def require_sound(model: Any) -> None:
    """Raises DocumentError for names that are no text and graphs that nest too deep, LimitError for too many nodes.

    Of text that is not UTF-8 protobuf gives the bytes.
    """
    _require_text(model.producer_name, model.producer_version, model.doc_string, *(o.domain for o in model.opset_import))
    n = _sound(model.graph, 0)
    for f in model.functions:
        _require_text(f.name, f.domain, f.overload, *f.input, *f.output, *f.attribute, *(a.name for a in f.attribute_proto))
        _require_text(*(o.domain for o in f.opset_import))
        n += _sound_nodes(f.node, 0)
    require("nodes", n, "the model")


def _sound(graph: Any, level: int) -> int:
    """The number of its nodes."""
    if level > MOST_LEVELS:
        raise DocumentError(f"graphs within graphs nest deeper than {MOST_LEVELS} levels")
    _require_text(graph.name, graph.doc_string, *(t.name for t in graph.initializer))
    for kind, ports in (("input", graph.input), ("output", graph.output), ("initializer", graph.initializer)):
        name = repeated(port.name for port in ports)
        if name is not None:
            raise DocumentError(f"graph '{graph.name}' declares {kind} '{name}' twice")
    for port in (*graph.input, *graph.output):
        _require_text(port.name, *(d.dim_param for d in port.type.tensor_type.shape.dim))
    return _sound_nodes(graph.node, level)


def _sound_nodes(nodes: Iterable[Any], level: int) -> int:
    n = 0
    for node in nodes:
        n += 1
        _require_text(node.op_type, node.domain, node.name, node.doc_string, node.overload, *node.input, *node.output)
        for attribute in node.attribute:
            _require_text(attribute.name, attribute.ref_attr_name)
            for inner in _graphs(attribute):
                n += _sound(inner, level + 1)
    return n


def _graphs(attribute: Any) -> Iterable[Any]:
    return [*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs]


def _require_text(*texts: str) -> None:
    try:
        "".join(texts)
    except TypeError:
        raise DocumentError("is a damaged model of ONNX: it has a name that is not text") from None
