"""What is wrong with the shape of a document, in one line: the models of `schema` look at what `shapes` does not take."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from tidu_cli.errors import DocumentError, TiduError
from tidu_cli.formats.json.listed import Listed
from tidu_cli.formats.nodes.columns import as_files_have_them
from tidu_cli.formats.shape.schema import DocumentData
from tidu_cli.formats.shape.shapes import BoundInput, DeclaredInput, DeclaredOutput, DocumentShape, GraphShape, Packed, TypeReader
from tidu_cli.graph.keys import key_from_json
from tidu_cli.graph.types import RecordType

if TYPE_CHECKING:
    from tidu_cli.formats.shape.op_schema import LibraryData, OpData

M = TypeVar("M", bound=BaseModel)


def judged(plain: Any, read_type: TypeReader | None) -> DocumentShape:
    """The shape of a document, by the models. `read_type` is None if there are no record types. Raises DocumentError."""
    data = _validated(_as_files_have_it(plain), DocumentData, read_type)
    graphs = [_graph(graph, of["nodes"]) for graph, of in zip(data.graphs, plain["graphs"], strict=True)]
    return DocumentShape(data.meta, data.ops, data.passes, graphs, [BoundInput(b.input, b.value) for b in data.bindings])


def _as_files_have_it(plain: Any) -> Any:
    """A document with nothing compact in it, whatever else may be wrong."""
    if not isinstance(plain, dict) or not isinstance(graphs := plain.get("graphs"), list):
        return plain
    in_full = [{**g, "nodes": _nodes_in_full(g["nodes"])} if isinstance(g, dict) and "nodes" in g else g for g in graphs]
    return {**plain, "graphs": in_full}


def _nodes_in_full(nodes: object) -> object:
    return list(nodes) if isinstance(nodes, Listed) else as_files_have_them(nodes)


def library(plain: Any) -> LibraryData:
    """The shape of a library. Raises DocumentError."""
    from tidu_cli.formats.shape.op_schema import LibraryData

    return _validated(plain, LibraryData, None)


def own_ops(ops: Mapping[str, Any], records: Mapping[str, RecordType]) -> dict[str, OpData]:
    """The shapes of own primitives. Raises DocumentError."""
    from tidu_cli.formats.shape.op_schema import OpData

    return {name: _validated(op, OpData, records, ("ops", name), {"ops": ops}) for name, op in ops.items()}


def _validated(plain: Any, model: type[M], context: object, place: tuple[str, ...] = (), within: Any = None) -> M:
    try:
        return model.model_validate(plain, context=context)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise DocumentError(_complaint(within or plain, (*place, *first["loc"]), first["type"], first["msg"])) from None


def _graph(graph: Any, nodes: Any) -> GraphShape:
    # Nodes stay as the file has them: the models convert nothing in them but types, which are read once a row.
    return GraphShape(
        graph.name,
        graph.linear.number if graph.linear is not None else None,
        graph.meta,
        [DeclaredInput(i.key, i.type, i.meta) for i in graph.inputs],
        Packed(nodes["table"], nodes["code"], nodes["args"], nodes.get("external", [])) if isinstance(nodes, dict) else nodes,
        [DeclaredOutput(o.key, o.value, o.type, o.meta) for o in graph.outputs],
    )


def _complaint(plain: Any, location: Sequence[int | str], kind: str, message: str) -> str:
    # pydantic's locations, such as ("graphs", 0, "nodes", "list", 3, "op"), in the words of documents.
    value, places = plain, []
    fields: list[str] = []
    for step in location:
        if step in ("list", "object") and fields and fields[-1] in ("nodes", "code", "args"):
            continue  # the tag of a union: not a step of the data
        value = _entry(value, step)
        if isinstance(step, int) and fields and fields[-1] in _PLACES:
            places.append(f"{_PLACES[fields[-1]]} {_name(fields[-1], value, step)}")
            fields.clear()
        elif fields == ["ops"]:
            places.append(f"op '{step}'")
            fields.clear()
        else:
            fields.append(str(step))
    field = ".".join(fields)
    if kind == "missing":
        what = f"missing field '{field}'"
    elif kind == "extra_forbidden":
        what = f"unknown field '{field}'; fields of your own go under 'meta'"
    elif kind == "too_short":
        what = f"'{field}' is empty; a document has at least one graph"
    elif fields and fields[-1] in ("nodes", "code", "args") and kind in ("model_type", "dict_type"):
        what = f"'{field}' must be a list or an object"
    elif kind in ("tidu", "literal"):
        what = f"{field}: {message}" if field else message
    else:
        what = f"'{field}' {_IN_OUR_WORDS.sub(lambda found: _WORDS.get(found[0], ''), message)}" if field else "must be an object"
    return ": ".join([", ".join(places), what]) if places else what


_PLACES = {
    "graphs": "graph", "nodes": "node", "inputs": "input", "outputs": "output", "bindings": "binding", "table": "table row"
}  # fmt: skip
_WORDS = {"Input should be": "must be", "a valid dictionary": "an object", "a valid integer": "an integer", "List should": "must"}
_IN_OUR_WORDS = re.compile("|".join([*_WORDS, "valid ", r" or instance of \w+"]))


def _entry(value: Any, step: int | str) -> Any:
    try:
        return value[step]
    except (KeyError, IndexError, TypeError):
        return None


def _name(kind: str, value: Any, number: int) -> str:
    # Names where the data has them, numbers where it is too broken.
    try:
        if kind == "graphs":
            return f"'{value['name']}'" if isinstance(value["name"], str) else str(number)
        if kind in ("inputs", "outputs"):
            return f"'{key_from_json(value['key'])}'"
        return f"{number} ({value['op']})" if isinstance(value["op"], str) else str(number)
    except (KeyError, TypeError, TiduError):
        return str(number)
