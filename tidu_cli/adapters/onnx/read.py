"""Models of ONNX as documents: those that tidu wrote as they were, others by tracing.

Each node of a model that tidu wrote says in its `metadata_props` which node of a document it stands for, and the model which graphs
there are. These are claims, which another program may have made wrong in changing the model: so the document is written again, and
if the model is another one, it is read as any other.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tidu_cli.adapters.onnx.contents import Choices
from tidu_cli.adapters.onnx.loading import DTYPES, loaded
from tidu_cli.adapters.onnx.writing.model import MARK, onnx_model
from tidu_cli.errors import DocumentError, LimitError, TiduError
from tidu_cli.formats.files import one_line
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import key_from_json
from tidu_cli.port_data import FromPlain, Imported

_MALFORMED = (KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError, StopIteration)
"""What reading claims that nobody checked may raise."""


def claims(model: Any) -> bool:
    """Whether a model says which document it was written of."""
    return _props(model.metadata_props) is not None


def claimed(model: Any) -> dict[str, Any] | None:
    """The plain data of the document that a model claims to be, None if it makes no claim, or none that can be followed."""
    try:
        return _document(model, json.loads(_props(model.metadata_props) or ""))
    except _MALFORMED:
        return None


def is_written(document: Document, model: Any, opset: int) -> bool:
    """Whether a model is what is written of a document: its inputs, outputs, nodes, functions and claims."""
    try:
        written = onnx_model(document, opset)
    except TiduError:
        return False
    for proto in (written, model):
        for tensor in proto.graph.initializer:
            tensor.ClearField("doc_string")
            tensor.ClearField("data_location")  # of data that was beside the model, and is in it now
    return bool(
        written.graph.SerializeToString(deterministic=True) == model.graph.SerializeToString(deterministic=True)
        and [f.SerializeToString(deterministic=True) for f in written.functions]
        == [f.SerializeToString(deterministic=True) for f in model.functions]
    )


def _props(entries: Sequence[Any]) -> str | None:
    return next((entry.value for entry in entries if entry.key == MARK), None)


def _document(model: Any, outline: dict[str, Any]) -> dict[str, Any]:
    claims = iter([(json.loads(text), node) for node in model.graph.node if (text := _props(node.metadata_props)) is not None])
    initializers = {t.name: t for t in model.graph.initializer}
    places: dict[str, tuple[int, int]] = {}
    graphs = [_graph(number, told, claims, initializers, places) for number, told in enumerate(outline["graphs"])]
    if next(claims, None) is not None:
        raise ValueError("there are more nodes than graphs have")
    return {**outline, "graphs": graphs}


def _graph(
    number: int,
    told: dict[str, Any],
    claims: Iterator[tuple[dict[str, Any], Any]],
    initializers: Mapping[str, Any],
    places: dict[str, tuple[int, int]],
) -> dict[str, Any]:
    """A graph as a document has it. `places` are the values of graphs by their names in the model."""
    own: dict[str, int] = {}

    def put(name: str, value: int) -> None:
        own[name] = value
        places.setdefault(name, (number, value))

    constants, input_names, node_meta = told.pop("constants"), told.pop("names"), told.pop("node_meta", {})
    for k, i in enumerate(told["inputs"]):
        put(input_names.get(str(k)) or str(key_from_json(i["key"])), k)
    nodes: dict[int, dict[str, Any]] = {}
    behind: dict[str, int] = told.pop("behind", {})
    first_values: dict[int, int] = {}
    n_values = len(told["inputs"])

    def take(node: int, first: int) -> int:
        """The next node in the file is the one of this number. Gives how many values it has, which begin with `first`."""
        if str(node) in constants:
            tensor = initializers[constants[str(node)]]
            data: dict[str, Any] = {"op": "constant", "inputs": [], "attrs": {"value": _literal(tensor)}}
            names = [tensor.name]
        else:
            claim, proto = next(claims)
            elsewhere = claim.pop("elsewhere", {})
            names_read = [proto.input[at] for at in claim.pop("at")]
            read = [
                elsewhere[str(k)] if str(k) in elsewhere else own[name] if name in own else list(places[name])
                for k, name in enumerate(names_read)
            ]
            data, names = {"op": claim.pop("op"), "inputs": read, **claim}, list(proto.output)
        if str(node) in node_meta:
            data["meta"] = node_meta[str(node)]
        for k, name in enumerate(names):
            put(name, first + k)
        nodes[node] = data
        return len(names)

    late = set(behind.values())
    for node in range(told["nodes"]):
        if node in late:
            first_values[node] = n_values
            n_values += 1
            continue
        n_values += take(node, n_values)
        if str(node) in behind:
            take(behind[str(node)], first_values[behind[str(node)]])
    return {**told, "nodes": [nodes[node] for node in range(told["nodes"])]}


def _literal(tensor: Any) -> dict[str, Any]:
    sizes = ",".join(map(str, tensor.dims))
    return {"type": f"{DTYPES[tensor.data_type]}[{sizes}]", "base64": base64.b64encode(tensor.raw_data).decode()}


CHANGED = "it is not what is written of the document that it claims to be, so it is read by what it runs, without roles and passes"


def read_onnx(
    data: bytes, where: str, path: str | None = None, choices: Choices | None = None, from_plain: FromPlain | None = None
) -> Imported:
    """The document of a model. `path` is its file, beside which external data lies.

    With `from_plain` a model that tidu wrote is the document that it was, unless there are choices. Raises DocumentError, one line
    that begins with `where` and names graph, node and operator; LimitError.
    """
    with _errors_of(where):
        model = loaded(data, path)
        if from_plain is None or choices not in (None, Choices()) or not claims(model):
            return _traced(model, choices or Choices())
        if own := _own(model, from_plain):
            return own
        plain = _traced(model, Choices())
        return replace(plain, notes=(*plain.notes, CHANGED), claim="changed")


def _traced(model: Any, choices: Choices) -> Imported:
    from tidu_cli.adapters.onnx.reading.importer import import_model

    return import_model(model, choices)


def opened(data: bytes, where: str, path: str | None = None) -> Any:
    """The ModelProto of a model. Raises as `read_onnx` does."""
    with _errors_of(where):
        return loaded(data, None if path == "-" else path)


@contextmanager
def _errors_of(where: str) -> Iterator[None]:
    try:
        yield
    except TiduError as error:
        kind = type(error) if isinstance(error, LimitError) else DocumentError
        raise kind(one_line(f"{where}: {error}")) from error


def _own(model: Any, from_plain: FromPlain) -> Imported | None:
    plain = claimed(model)
    if plain is None:
        return None
    try:
        document = from_plain(plain)
    except TiduError:
        return None
    opset = next((o.version for o in model.opset_import if not o.domain), 0)
    return Imported(document, {}, claim="verified") if is_written(document, model, opset) else None
