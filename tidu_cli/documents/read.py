"""Documents from bytes: plain data, then its shape (`schema`), then what it means, graph by graph."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from tidu_cli.documents.nodes import NodeReader, Numbering, check_value
from tidu_cli.documents.schema import VERSION, BindingData, DocumentData, GraphData, OutputDeclaration
from tidu_cli.documents.syntax import one_line, parse_bytes, shown
from tidu_cli.errors import DocumentError, TiduError, did_you_mean
from tidu_cli.graph.graph import Binding, Document, Graph, Input, Output
from tidu_cli.graph.keys import Key, key_from_json
from tidu_cli.primitives.builtin import BUILTIN
from tidu_cli.primitives.contract import PrimitiveSet
from tidu_cli.watching import watch

if TYPE_CHECKING:
    from tidu_cli.documents.op_schema import LibraryData

M = TypeVar("M", DocumentData, "LibraryData")


def parse_document(data: bytes, where: str, primitives: PrimitiveSet = BUILTIN) -> tuple[Document, str]:
    """Read a document. Returns it and the format found, "json" or "msgpack".

    Raises DocumentError, one line that begins with `where` and names graph, node, input or output.
    """
    try:
        watch("parsing")
        with _no_collection():
            plain, found = parse_bytes(data)
            shaped = _shaped(plain, DocumentData)
            return _document(shaped, _with_own(primitives, shaped.ops)), found
    except TiduError as error:
        raise DocumentError(one_line(f"{where}: {error}")) from None
    except RecursionError:  # of what a message quotes: how deep each part of Python goes differs between versions
        raise DocumentError(one_line(f"{where}: nests too deeply")) from None


def parse_subject(data: bytes, where: str, primitives: PrimitiveSet = BUILTIN) -> tuple[Document | PrimitiveSet, str]:
    """Read a document, or a library, which has ops and no graphs: then give `primitives` with its ops. Raises DocumentError."""
    try:
        plain, found = parse_bytes(data)
    except TiduError as error:
        raise DocumentError(one_line(f"{where}: {error}")) from None
    if isinstance(plain, dict) and "ops" in plain and "graphs" not in plain:
        return parse_library(data, where, primitives), found
    return parse_document(data, where, primitives)


def parse_library(data: bytes, where: str, primitives: PrimitiveSet = BUILTIN) -> PrimitiveSet:
    """`primitives` with the ops of a document, which need not have graphs. Raises DocumentError as `parse_document`."""
    from tidu_cli.documents.op_schema import LibraryData

    try:
        plain, _ = parse_bytes(data)
        return _with_own(primitives, _shaped(plain, LibraryData).ops, where)
    except TiduError as error:
        raise DocumentError(one_line(f"{where}: {error}")) from None
    except RecursionError:
        raise DocumentError(one_line(f"{where}: nests too deeply")) from None


def _with_own(primitives: PrimitiveSet, ops: Mapping[str, Any], origin: str = "") -> PrimitiveSet:
    if not ops:
        return primitives
    from tidu_cli.documents.op_schema import OpData
    from tidu_cli.documents.ops import definitions
    from tidu_cli.primitives.own_set import extended

    shaped = {}
    for name, op in ops.items():
        try:
            shaped[name] = OpData.model_validate(op)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise DocumentError(_complaint({"ops": ops}, ("ops", name, *first["loc"]), first["type"], first["msg"])) from None
    return extended(primitives, definitions(shaped, origin))


@contextmanager
def _no_collection() -> Iterator[None]:
    # Millions of small objects arise and none is in a cycle: looking for cycles among them took most of the time.
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _shaped(plain: object, model: type[M]) -> M:
    if not isinstance(plain, dict):
        raise DocumentError("not a tidu document: it is a list, where a document is an object")
    version = plain.get("tidu")
    if "tidu" not in plain:
        raise DocumentError(f'not a tidu document: the field "tidu", its format version ({VERSION}), is missing')
    if type(version) is not int or version != VERSION:
        raise DocumentError(f"format version {shown(version)} is not one that is read here: that is {VERSION}")
    if model is DocumentData and "ops" in plain and "graphs" not in plain:
        raise DocumentError("it has ops and no graphs: a library, which commands take with --ops")
    try:
        return model.model_validate(plain)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise DocumentError(_complaint(plain, first["loc"], first["type"], first["msg"])) from None


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


@contextmanager
def _naming(place: str) -> Iterator[None]:
    try:
        yield
    except TiduError as error:
        raise DocumentError(f"{place}{error}") from None


def _document(data: DocumentData, primitives: PrimitiveSet) -> Document:
    n_listed = sum(len(graph.nodes) for graph in data.graphs if isinstance(graph.nodes, list))
    numbering = Numbering(primitives, watch("reading", n_listed))
    declared: dict[Key, tuple[Input, str]] = {}
    graphs: list[Graph] = []
    names: set[str] = set()
    for graph in data.graphs:
        with _naming(f"graph '{graph.name}': "):
            if graph.name in names:
                raise DocumentError("an earlier graph has this name too; names are unique in a document")
        names.add(graph.name)
        with _naming(f"graph '{graph.name}', "):
            graphs.append(_graph(graph, _inputs(graph, declared), numbering, graphs))
    bindings = tuple(_bindings(data.bindings, graphs))
    return Document(tuple(graphs), numbering.cases, tuple(numbering.detached), bindings, data.meta)


def _inputs(graph: GraphData, declared: dict[Key, tuple[Input, str]]) -> tuple[Input, ...]:
    inputs: dict[Key, Input] = {}
    for declaration in graph.inputs:
        key, type_ = declaration.key, declaration.type
        with _naming(f"input '{key}': "):
            if key in inputs:
                raise DocumentError("declared twice in this graph")
            inputs[key] = Input(key, type_, declaration.meta)
            first, owner = declared.setdefault(key, (inputs[key], graph.name))
            if first.type != type_:
                raise DocumentError(
                    f"has type {type_}, but {first.type} in graph '{owner}'; a key is one input in the whole document"
                )
    return tuple(inputs.values())


def _graph(graph: GraphData, inputs: tuple[Input, ...], numbering: Numbering, earlier: Sequence[Graph]) -> Graph:
    reader = NodeReader(numbering, earlier, [i.type for i in inputs])
    linear = graph.linear.number if graph.linear is not None else None
    node_meta: dict[int, dict[str, Any]] = {}
    if isinstance(graph.nodes, list):
        reader.read_listed(graph.nodes)
        node_meta = {i: node["meta"] for i, node in enumerate(graph.nodes) if "meta" in node}
    else:
        reader.read_packed(graph.nodes)
    if linear is not None:
        _check_linear(reader)
    outputs: dict[Key, Output] = {}
    for declaration in graph.outputs:
        with _naming(f"output '{declaration.key}': "):
            if declaration.key in outputs:
                raise DocumentError("declared twice in this graph")
            outputs[declaration.key] = _output(declaration, reader)
    return Graph(
        graph.name,
        inputs,
        tuple(outputs.values()),
        numbering.cases,
        reader.code,
        reader.args,
        reader.external,
        linear,
        graph.meta,
        node_meta,
    )


def _check_linear(reader: NodeReader) -> None:
    for number in dict.fromkeys(reader.code):
        case = reader.numbering.cases[number]
        with _naming(f"node {reader.code.index(number)} ({case.op}): "):
            if case.mask is None:
                raise DocumentError("has no role; every node of a linear graph is linearized")
            if not any(case.mask):
                raise DocumentError("has no active input; every node of a linear graph depends on a tangent")


def _output(declaration: OutputDeclaration, reader: NodeReader) -> Output:
    key, type_ = declaration.key, declaration.type
    if declaration.value is None:
        if type_ is None:
            raise DocumentError("the value is null (zero), so the type must be given")
        return Output(key, None, type_, declaration.meta)
    argument = reader.argument(declaration.value)
    found = reader.type_of(argument)
    if found is None:
        if type_ is None:
            raise DocumentError("is a detached value of unknown type; give the output's type")
        reader.adopt(argument, type_)
    elif type_ is not None and type_ != found:
        raise DocumentError(f"declares type {type_}, but its value has type {found}")
    return Output(key, argument, found or type_, declaration.meta)


def _bindings(bindings: Iterable[BindingData], graphs: Sequence[Graph]) -> Iterator[Binding]:
    declared: dict[Key, tuple[int, Input]] = {}
    for g, graph in enumerate(graphs):
        for i in graph.inputs:
            declared.setdefault(i.key, (g, i))
    seen: set[Key] = set()
    for binding in bindings:
        key = binding.input
        with _naming(f"binding of input '{key}': "):
            if key not in declared:
                raise DocumentError(f"no graph declares this input{did_you_mean(str(key), [str(k) for k in declared])}")
            if key in seen:
                raise DocumentError("bound twice")
            seen.add(key)
            if len(binding.value) != 2 or not all(type(part) is int for part in binding.value):
                raise DocumentError(f"malformed value {shown(binding.value)}: it is [graph, value]")
            g, v = binding.value
            check_value(g, v, graphs)
            first, declaration = declared[key]
            if g >= first:
                raise DocumentError(f"value [{g}, {v}] must be of a graph before the first that declares the input, number {first}")
            type_ = graphs[g].type_of(v)
            if type_ != declaration.type:
                raise DocumentError(f"the input has type {declaration.type}, but value [{g}, {v}] has type {type_}")
            yield Binding(key, g, v)
