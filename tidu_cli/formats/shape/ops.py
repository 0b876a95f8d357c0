"""The field `ops` of documents: own primitives, between their shape and definitions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidu_cli.custom.attrs import REQUIRED
from tidu_cli.custom.definitions import KINDS, OpDefinition, Port, SourceGraph, SourceNode
from tidu_cli.errors import DocumentError
from tidu_cli.formats.shape.op_schema import OpData, OpGraph
from tidu_cli.formats.shape.schema import OWN_NAME
from tidu_cli.formats.syntax import repeated

_NAME = re.compile(OWN_NAME)
_RESERVED = "active"


def definitions(data: Mapping[str, OpData], origin: str = "") -> list[OpDefinition]:
    """The definitions of a document, in order; of a library, with its name as `origin`. Raises DocumentError."""
    return [_definition(name, op, origin) for name, op in data.items()]


def _definition(name: str, data: OpData, origin: str) -> OpDefinition:
    place = f"op '{name}'"
    if not _NAME.fullmatch(name):
        raise DocumentError(f"{place}: a name is of letters, digits, _ and -, and begins with a letter")
    ports = [p.key for p in (*data.inputs, *data.outputs)]
    if (twice := repeated(ports)) is not None:
        raise DocumentError(f"{place}: '{twice}' names two of its inputs and outputs")
    if _RESERVED in data.attrs:
        raise DocumentError(f"{place}: the attr name '{_RESERVED}' is taken; choose another")
    given = [kind for kind in KINDS if getattr(data, kind) is not None]
    if len(given) > 2:
        raise DocumentError(f"{place}: has {', '.join(given[1:])}; one of them says what its derivative is")
    return OpDefinition(
        name,
        tuple(Port(p.key, p.type) for p in data.inputs),
        tuple(Port(p.key, p.type) for p in data.outputs),
        {k: REQUIRED if v is None else v for k, v in data.attrs.items()},
        {kind: _graph(getattr(data, kind), f"{place}: its {kind}") for kind in given},
        data.meta,
        origin,
    )


def _graph(data: OpGraph, place: str) -> SourceGraph:
    for kind, keys in (("input", [i.key for i in data.inputs]), ("output", [o.key for o in data.outputs])):
        if (twice := repeated(keys)) is not None:
            raise DocumentError(f"{place} declares the {kind} '{twice}' twice")
    nodes = (SourceNode(n["op"], n.get("attrs", {}), tuple(n["inputs"])) for n in data.nodes)
    return SourceGraph(tuple(i.key for i in data.inputs), tuple(nodes), tuple((o.key, o.value) for o in data.outputs))
