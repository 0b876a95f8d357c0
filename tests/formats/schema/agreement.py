"""What readers and the published JSON Schema say of a document in JSON, and where they may differ."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import jsonschema

from tidu_cli.errors import DocumentError, TiduError
from tidu_cli.formats.declarations import definitions, record_types
from tidu_cli.formats.nodes.listed import judged
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.schema import json_schema
from tidu_cli.formats.shape import ClosedGraphData, shaped, type_reader
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import CaseTable, Graph
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.vocabulary import PrimitiveSet


@cache
def stock() -> Any:
    """The validator as it comes: to JSON Schema 1.0 is an integer, since numbers have no spelling there."""
    return jsonschema.Draft202012Validator(json_schema())


@cache
def exact() -> Any:
    """The same, but for that."""
    checker = stock().TYPE_CHECKER.redefine("integer", lambda checker, value: type(value) is int)
    return jsonschema.validators.extend(stock(), type_checker=checker)(stock().schema)


BEYOND_SCHEMAS = {
    "sizes": "may be less than|is less than|may be 0 or less|of a size may have|a size may have|is not an integer or an expression",
    "names": r"unknown record type|declare it under 'types'|unknown type '\w+'|cannot be a part of itself",
    "how records nest": r"a record is written|is not a tuple|has two fields|nests deeper than 32|unknown type .*[{(]",
    "how large a type is": "larger than any memory|more than 1,000 tensors",
    "meta": "beyond 64 bits|nests deeper than 200 levels",
    "how many numbers a constant has": "takes .* (numbers|bytes), got",
    "what bytes are": "a bool is a byte 0 or 1",
    "dates": "constant of type datetime",
    "what attrs are together": "must contract and batch equally many axes|an axis cannot be both|-0.0 is not kept apart",
    "what is named twice": "names two of its|declares the (input|output) .* twice",
}
"""Refusals of a document's shape that no schema can express, as `docs/format.md` lists them: by what, and their words."""

SOME_GRAPH = ClosedGraph.of(Graph("", (), (), CaseTable()))

_BEYOND = re.compile("|".join(BEYOND_SCHEMAS.values()))


def refusal(plain: Any) -> str | None:
    """Why readers refuse plain data as a document in JSON; None if they do not."""
    try:
        parse_document(json.dumps(plain).encode(), "d")
    except DocumentError as error:
        return str(error)
    return None


def refusal_of_shape(plain: Any) -> str | None:
    """Why the models of documents and of attrs refuse plain data: what does not depend on what a reference or a type is."""
    try:
        records = record_types(plain["types"], {}) if "types" in plain else {}
        judged(plain, type_reader(records))
        definitions(plain.get("ops", {}), records, PrimitiveSet.parse_attrs)
        for graph in plain["graphs"]:
            _check_nodes(graph, records)
            for output in graph["outputs"]:
                _require_reference(0 if output["value"] is None else output["value"])
    except TiduError as error:
        return str(error)
    return None


def _check_nodes(graph: Any, records: Any) -> None:
    for node in graph["nodes"] if isinstance(graph["nodes"], list) else graph["nodes"]["table"]:
        if node["op"] in BUILTIN.primitives:
            attrs = BUILTIN.primitives[node["op"]].domain.attrs
            given = {
                name: _closed(value, records) if name in attrs.graphs else value for name, value in node.get("attrs", {}).items()
            }
            attrs.parse(given, records)
        for reference in node["inputs"] if isinstance(node["inputs"], list) else []:
            _require_reference(reference)


def _closed(value: Any, records: Any) -> Any:
    """What attrs take for graphs of the right shape."""
    if isinstance(value, list):
        return tuple([_closed(graph, records) for graph in value])
    if isinstance(value, dict):
        shaped(ClosedGraphData, value, type_reader(records))
        _check_nodes(value, records)
        return SOME_GRAPH
    return value


def _require_reference(value: Any) -> None:
    pair = isinstance(value, list) and len(value) == 2 and all(type(part) is int and part >= 0 for part in value)
    digest = isinstance(value, str) and re.fullmatch("sha256:[0-9a-f]{64}", value)
    if not (pair or digest or (type(value) is int and value >= 0)):
        raise DocumentError(f"malformed reference {value}")


def disagreement(plain: Any) -> str | None:
    """Where readers and the schema differ on plain data that has a version, and should not; None where they agree."""
    if refusal(plain) is None:
        return None if stock().is_valid(plain) else f"read, and the schema says: {next(stock().iter_errors(plain)).message[:300]}"
    if not isinstance(plain, dict) or type(plain.get("tidu")) is not int or not exact().is_valid(plain):
        return None
    of_shape = refusal_of_shape(plain)
    return None if of_shape is None or _BEYOND.search(of_shape) else f"valid by the schema, and refused: {of_shape}"
