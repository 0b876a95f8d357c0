"""Documents from bytes: plain data, then its shape (`schema`), then what it means, graph by graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tidu_cli.custom.packages import KNOWN
from tidu_cli.errors import DocumentError, TiduError, did_you_mean
from tidu_cli.formats.json.listed import Listed
from tidu_cli.formats.nodes.claims import check_linear, check_zeros
from tidu_cli.formats.nodes.reader import NodeReader, Numbering, check_value
from tidu_cli.formats.shape.shapes import (
    VERSION,
    BoundInput,
    DeclaredOutput,
    DocumentShape,
    GraphShape,
    Packed,
    TypeReader,
    accepted,
    type_without_names,
)
from tidu_cli.formats.source import Source
from tidu_cli.formats.syntax import one_line, parse, shown
from tidu_cli.graph.columns.garbage_collection import no_collection
from tidu_cli.graph.graph import Binding, Column, Document, Graph, Input, Output, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import RecordType
from tidu_cli.limits import require
from tidu_cli.rules.contract import PrimitiveSet
from tidu_cli.watching import watch


def parse_document(data: bytes | Source, where: str, primitives: PrimitiveSet = KNOWN) -> tuple[Document, str]:
    """Read a document. Returns it and the format found, "json" or "msgpack".

    Raises DocumentError, one line that begins with `where` and names graph, node, input or output; OSError as the source does.
    """
    with _errors_of(where), no_collection():
        plain, found = _parsed(data)
        return _read(plain, primitives), found


def parse_subject(data: bytes | Source, where: str, primitives: PrimitiveSet = KNOWN) -> tuple[Document | PrimitiveSet, str]:
    """Read a document, or a library, which has no graphs: then give `primitives` with what it brings.

    Raises as `parse_document` does.
    """
    with _errors_of(where), no_collection():
        plain, found = _parsed(data)
        return _read_library(plain, where, primitives) if _is_library(plain) else _read(plain, primitives), found


def parse_library(data: bytes | Source, where: str, primitives: PrimitiveSet = KNOWN) -> PrimitiveSet:
    """`primitives` with the record types and ops of a document, which need not have graphs. Raises as `parse_document` does."""
    with _errors_of(where):
        return _read_library(_parsed(data)[0], where, primitives)


@contextmanager
def _errors_of(where: str) -> Iterator[None]:
    try:
        yield
    except TiduError as error:
        raise DocumentError(one_line(f"{where}: {error}")) from None
    except RecursionError:  # of what a message quotes: how deep each part of Python goes differs between versions
        raise DocumentError(one_line(f"{where}: nests too deeply")) from None


def _parsed(data: bytes | Source) -> tuple[object, str]:
    source = data if isinstance(data, Source) else Source(data)
    source.head(1)  # here it is waited for those who write into a pipe
    watch("parsing")
    return parse(source)


def _read(plain: object, primitives: PrimitiveSet) -> Document:
    primitives = _with_types(primitives, plain)
    read_type = _type_reader(primitives.records)
    shape = _shaped(plain, read_type)
    return _document(shape, _with_own(primitives, shape.ops), read_type or type_without_names)


def _read_library(plain: object, where: str, primitives: PrimitiveSet) -> PrimitiveSet:
    from tidu_cli.formats.shape.complaints import library

    primitives = _with_types(primitives, plain, where)
    return _with_own(primitives, library(_checked_version(plain)).ops, where)


def _is_library(plain: object) -> bool:
    return isinstance(plain, dict) and ("ops" in plain or "types" in plain) and "graphs" not in plain


def _with_types(primitives: PrimitiveSet, plain: object, origin: str = "") -> PrimitiveSet:
    """Before all else: types that the rest names may be declared anywhere in a document."""
    if not isinstance(plain, dict) or "types" not in plain or plain.get("tidu") != VERSION:
        return primitives
    from tidu_cli.formats.shape.types import record_types
    from tidu_cli.lax.records.record_types import with_records

    declared = record_types(plain["types"], primitives.records)
    return with_records(primitives, declared, dict.fromkeys(declared, origin) if origin else {})


def _with_own(primitives: PrimitiveSet, ops: Mapping[str, Any], origin: str = "") -> PrimitiveSet:
    if not ops:
        return primitives
    from tidu_cli.custom.library import extended
    from tidu_cli.formats.shape.complaints import own_ops
    from tidu_cli.formats.shape.ops import definitions

    return extended(primitives, definitions(own_ops(ops, primitives.records), origin))


def _checked_version(plain: object) -> dict[str, Any]:
    if not isinstance(plain, dict):
        raise DocumentError("not a tidu document: it is a list, where a document is an object")
    version = plain.get("tidu")
    if "tidu_program" in plain:
        raise DocumentError("a compiled program, which only tidu eval takes; give the document that it was made of")
    if "tidu" not in plain:
        raise DocumentError(f'not a tidu document: the field "tidu", its format version ({VERSION}), is missing')
    if type(version) is not int or version != VERSION:
        raise DocumentError(f"format version {shown(version)} is not one that is read here: that is {VERSION}")
    return plain


def _shaped(plain: object, read_type: TypeReader | None) -> DocumentShape:
    checked = _checked_version(plain)
    if _is_library(checked):
        raise DocumentError(
            f"it has {'ops' if 'ops' in checked else 'types'} and no graphs: a library, for tidu convert --ops FILE and others"
        )
    shape = accepted(checked, read_type or type_without_names)
    if shape is None:
        from tidu_cli.formats.shape.complaints import judged

        shape = judged(checked, read_type)
    return shape


def _type_reader(records: Mapping[str, RecordType]) -> TypeReader | None:
    if not records:
        return None
    from tidu_cli.formats.shape.types import type_reader

    return type_reader(records)


@contextmanager
def _naming(place: str) -> Iterator[None]:
    try:
        yield
    except TiduError as error:
        raise DocumentError(f"{place}{error}") from None


def _document(data: DocumentShape, primitives: PrimitiveSet, read_type: TypeReader) -> Document:
    n_listed = sum(len(graph.nodes) for graph in data.graphs if isinstance(graph.nodes, list))
    numbering = Numbering(primitives, read_type, watch("reading", n_listed))
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
    require("nodes", sum(graph.n_nodes for graph in graphs), "the document")
    bindings = tuple(_bindings(data.bindings, graphs))
    check_zeros(graphs, bindings, numbering.zeros_due, primitives)
    document = Document(tuple(graphs), numbering.cases, tuple(numbering.detached), bindings, data.meta, data.passes)
    _check_passes(document)
    return document


def _check_passes(document: Document) -> None:
    unused = document.passes.keys() - document.used_passes() if document.passes else ()
    if unused:
        raise DocumentError(f"passes: there is an identity of pass {min(unused)}, which no key and no linear graph is of")


def _inputs(graph: GraphShape, declared: dict[Key, tuple[Input, str]]) -> tuple[Input, ...]:
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


def _graph(graph: GraphShape, inputs: tuple[Input, ...], numbering: Numbering, earlier: Sequence[Graph]) -> Graph:
    reader = NodeReader(numbering, earlier, [i.type for i in inputs])
    linear = graph.linear
    node_meta: dict[int, dict[str, Any]] = {}
    if isinstance(graph.nodes, Packed):
        reader.read_packed(graph.nodes)
    elif isinstance(graph.nodes, Listed):
        node_meta = graph.nodes.meta
        if not reader.read_columns(graph.nodes):
            reader = NodeReader(numbering, earlier, [i.type for i in inputs])
            reader.read_listed([*graph.nodes])
    else:
        reader.read_listed(graph.nodes)
        node_meta = {i: node["meta"] for i, node in enumerate(graph.nodes) if "meta" in node}
    numbering.value_types.append(reader.types if isinstance(reader.types, Column) else column(reader.types))
    if linear is not None:
        check_linear(reader.code, reader.args, numbering.cases)
    outputs: dict[Key, Output] = {}
    for declaration in graph.outputs:
        with _naming(f"output '{declaration.key}': "):
            if declaration.key in outputs:
                raise DocumentError("declared twice in this graph")
            outputs[declaration.key] = _output(declaration, reader, linear is not None)
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


def _output(declaration: DeclaredOutput, reader: NodeReader, linear: bool) -> Output:
    key, type_ = declaration.key, declaration.type
    if declaration.value is None:
        if type_ is None:
            raise DocumentError("the value is null (zero), so the type must be given")
        return Output(key, None, type_, declaration.meta)
    argument = reader.argument(declaration.value)
    if linear and argument < 0:
        raise DocumentError("is a value of another graph, not linear in the inputs of this one; zero is null")
    found = reader.type_of(argument)
    if found is None:
        if type_ is None:
            raise DocumentError("is a detached value of unknown type; give the output's type")
        reader.adopt(argument, type_)
        found = type_
    elif type_ is not None and type_ != found:
        raise DocumentError(f"declares type {type_}, but its value has type {found}")
    return Output(key, argument, found, declaration.meta)


def _bindings(bindings: Iterable[BoundInput], graphs: Sequence[Graph]) -> Iterator[Binding]:
    declared: dict[Key, tuple[int, Input]] = {}
    for g, graph in enumerate(graphs):
        for i in graph.inputs:
            declared.setdefault(i.key, (g, i))
    seen: set[Key] = set()
    for binding in bindings:
        key = binding.key
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
