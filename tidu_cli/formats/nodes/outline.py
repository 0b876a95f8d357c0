"""The quick check of a document's shape, and the models' where it is in doubt.

Each distinct part of nodes is checked once: the quick check sees an outline of the document, in which those parts are all nodes
that there are. The models are asked about those documents only that it does not take, and see all, to say what is wrong and where.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

from tidu_cli.formats.nodes.columns import Pairs
from tidu_cli.formats.nodes.listed import Listed
from tidu_cli.formats.shape.document import DocumentData, TypeReader
from tidu_cli.rules.attrs.fields import DOUBT, made, read_quickly


def accepted(plain: dict[str, Any], read_type: TypeReader) -> DocumentData | None:
    """The shape of a document with its nodes in outline; None if there is anything that only the models can judge."""
    found = read_quickly(DocumentData, outline(plain), read_type)
    return None if found is DOUBT else made(DocumentData, found)


def judged(plain: dict[str, Any], read_type: TypeReader) -> DocumentData:
    """The shape of a document by the models. Raises DocumentError."""
    from tidu_cli.formats.shape.complaints import judged_as

    in_full = _with_nodes(plain, lambda nodes: list(nodes) if isinstance(nodes, Listed) else _outline(nodes))
    return judged_as(DocumentData, in_full, read_type)


def outline(plain: dict[str, Any]) -> dict[str, Any]:
    """A document whose nodes are one of each kind, without what they read, and one with each meta."""
    return _with_nodes(plain, _outline)


def _with_nodes(plain: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    if not isinstance(graphs := plain.get("graphs"), list):
        return plain
    changed = [{**g, "nodes": change(g["nodes"])} if isinstance(g, dict) and "nodes" in g else g for g in graphs]
    return {**plain, "graphs": changed}


def _outline(nodes: Any) -> Any:
    if isinstance(nodes, Listed):
        with_meta = [{"op": "", "inputs": [], "meta": meta} for meta in nodes.meta.values()]
        return [{**row, "inputs": []} for row in nodes.table] + with_meta
    if isinstance(nodes, dict):
        return {name: part if name == "table" else _without_entries(part) for name, part in nodes.items()}
    return nodes


def _without_entries(part: Any) -> Any:
    if isinstance(part, list | Pairs):
        return []
    return {**part, "data": b""} if isinstance(part, dict) and isinstance(part.get("data"), array) else part
