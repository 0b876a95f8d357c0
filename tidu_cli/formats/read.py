"""Documents from bytes: plain data, then its shape, then what it means, graph by graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tidu_cli.custom.packages import KNOWN
from tidu_cli.errors import DocumentError, Remedy, TiduError, did_you_mean
from tidu_cli.formats.files import Source, is_msgpack_map, naming, one_line, shown
from tidu_cli.formats.nodes.listed import Listed, accepted, judged
from tidu_cli.formats.nodes.numbering import Numbering
from tidu_cli.formats.nodes.reader import NodeReader, check_linear, check_own_tangents, check_value, check_zeros
from tidu_cli.formats.shape import (
    VERSION,
    BindingData,
    ClosedGraphData,
    DocumentData,
    GraphData,
    LibraryData,
    OutputDeclaration,
    shaped,
    type_reader,
)
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import MAX_GRAPH_NESTING, ClosedGraph, nodes_written_out
from tidu_cli.graph.graph import Binding, Column, Document, Graph, Input, Output, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.large import no_collection
from tidu_cli.installed import blaming, declared_options, recognized
from tidu_cli.lax.vocabulary import vocabulary, with_records
from tidu_cli.limits import require
from tidu_cli.port_data import STOP, Imported
from tidu_cli.rules.contract import Attrs
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.watching import Watched, watch


def parse_document(data: bytes | Source, where: str, primitives: PrimitiveSet = KNOWN) -> tuple[Document, str]:
    """Read a document. Returns it and the name of its format, "json", "msgpack" or one of another system.

    Raises DocumentError, one line that begins with `where` and names graph, node, input or output; OSError as the source does.
    """
    imported, name = parse_imported(data, where, primitives)
    return imported.document, name


def parse_imported(
    data: bytes | Source,
    where: str,
    primitives: PrimitiveSet = KNOWN,
    options: Mapping[str, Any] | None = None,
    *,
    plain: bool = False,
    sizes: Mapping[str, int | str] | None = None,
) -> tuple[Imported, str]:
    """Likewise, with what else a file of another system has. `options` are of its format, by their names in Python.

    With `plain` such a file is read by what it runs, whatever document it claims to be. `sizes` are put in the place of open ones:
    what is undecided without them is not asked then. Raises as `parse_document` does, also for options that the format has not.
    """
    source = as_source(data)
    if format_ := recognized(source):
        known = {option.name for option in format_.reading}
        _require_options(options, {*known, STOP}, f"{where}: is {format_.title}")
        watch("parsing")
        with no_collection(), blaming(format_.name):
            from_plain = None if plain else lambda data: _read(data, primitives).document
            own = {name: value for name, value in (options or {}).items() if name in known}
            imported = format_.read(source, where, own, from_plain)
        with _errors_of(where):
            return as_asked(imported, {} if STOP in known else options, sizes), format_.name
    with _errors_of(where), no_collection():
        content, name = parse(source)
        _require_options(options, (STOP,), f"is {name}")
        if not sizes:
            return as_asked(_read(content, primitives), options, None), name
        from tidu_cli.graph.sizes.reading import giving

        with giving(sizes) as met:
            try:
                imported = _read(content, primitives)
            finally:
                for refused in filter(None, met.values()):  # which no place in the document is to blame for
                    raise refused
        return as_asked(imported, options, sizes, met), name


def as_asked(
    imported: Imported, options: Mapping[str, Any] | None, sizes: Mapping[str, int | str] | None, known: Collection[str] = ()
) -> Imported:
    """What was read, with sizes for open ones, and the option of readers done that every document takes. Raises TiduError."""
    names, document = (options or {}).get(STOP, ()), imported.document
    if sizes:
        from tidu_cli.runtime.sizing import specialized

        others = {name: size for name, size in sizes.items() if name not in known}  # which do not stand for their names yet
        document = specialized(document, others, vocabulary(document.cases))
    if names:
        from tidu_cli.formats.stopping import stopped

        document = stopped(document, [names] if isinstance(names, str) else names)
    return replace(imported, document=document)


def _require_options(options: Mapping[str, Any] | None, known: Collection[str], what: str) -> None:
    """Raises DocumentError for an option that another format has."""
    for name in options or ():
        if name not in known:
            owner, option = declared_options("reading")[name]
            called = Remedy(name, flag=option.flag, python=f"argument '{name}'")
            raise DocumentError(f"{what}, and {called} is for {owner.subject}; leave it out")


def parse_subject(data: bytes | Source, where: str, primitives: PrimitiveSet = KNOWN) -> tuple[Imported | PrimitiveSet, str]:
    """Read a document, or a library, which has no graphs: then give `primitives` with what it brings.

    It is JSON or msgpack. Raises as `parse_document` does.
    """
    source = as_source(data)
    with _errors_of(where), no_collection():
        plain, format_ = parse(source)
        return _read_library(plain, where, primitives) if _is_library(plain) else _read(plain, primitives), format_


def parse_library(data: bytes | Source, where: str, primitives: PrimitiveSet = KNOWN) -> PrimitiveSet:
    """`primitives` with the record types and ops of a document, which need not have graphs. Raises as `parse_document` does."""
    source = as_source(data)
    with _errors_of(where):
        if format_ := recognized(source):
            raise DocumentError(f"is {format_.title}, which brings no ops; convert it to JSON first: tidu convert")
        return _read_library(parse(source)[0], where, primitives)


def as_source(data: bytes | Source) -> Source:
    """What is read, of bytes or as it is."""
    return data if isinstance(data, Source) else Source(data)


@contextmanager
def _errors_of(where: str) -> Iterator[None]:
    try:
        yield
    except TiduError as error:
        raise DocumentError(one_line(f"{where}: {error}")) from None
    except RecursionError:  # of what a message quotes: how deep each part of Python goes differs between versions
        raise DocumentError(one_line(f"{where}: nests too deeply")) from None


def parse(data: bytes | Source) -> tuple[object, str]:
    """The plain data of what is read, read to its end, and its format: "json" or "msgpack".

    What there may be millions of is compact: `Listed` nodes, and `columns` of packed ones. Raises DocumentError if it is neither
    format, or malformed.
    """
    source = as_source(data)
    watch("parsing")
    if is_msgpack_map(source.head(1)):  # which no text in UTF-8 begins as
        from tidu_cli.formats.msgpack import unpacked

        return unpacked(source), "msgpack"
    from tidu_cli.formats.json import parsed

    return parsed(source), "json"


def _read(plain: object, primitives: PrimitiveSet) -> Imported:
    if not isinstance(plain, dict) or "sizes" not in plain:
        return Imported(_read_sized(plain, primitives), {})
    from tidu_cli.graph.sizes.reading import declaring, names_from_file

    with declaring(names_from_file(plain["sizes"])) as unread:
        document = _read_sized(plain, primitives)
    from tidu_cli.graph.open_sizes import without_use

    return Imported(document, {}, without_use(document, unread))


def _read_sized(plain: object, primitives: PrimitiveSet) -> Document:
    primitives = _with_types(primitives, plain)
    read_type = type_reader(primitives.records)
    checked = _checked_version(plain)
    if _is_library(checked):
        way = Remedy("ops", "FILE", command="convert", python="load(file, ops=FILE)")
        raise DocumentError(f"it has {'ops' if 'ops' in checked else 'types'} and no graphs: a library, for ", way)
    watched = columns_for_lists(checked)
    shape = accepted(checked, read_type) or judged(checked, read_type)
    nodes = [graph["nodes"] for graph in checked["graphs"]]
    numbering = Numbering(_with_ops(primitives, shape.ops or {}), read_type, watched, _closed)
    return _document(shape, nodes, numbering)


def columns_for_lists(plain: dict[str, Any]) -> Watched:
    """Make columns of lists of nodes, where they are as they must be."""
    graphs = plain.get("graphs")
    owners = [g for g in graphs if isinstance(g, dict) and isinstance(g.get("nodes"), list)] if isinstance(graphs, list) else []
    watched = watch("reading", sum(len(owner["nodes"]) for owner in owners))
    for owner in owners:
        owner["nodes"] = Listed.of(owner["nodes"], watched) or owner["nodes"]
    return watched


def _read_library(plain: object, where: str, primitives: PrimitiveSet) -> PrimitiveSet:
    primitives = _with_types(primitives, plain, where)
    return _with_ops(primitives, shaped(LibraryData, _checked_version(plain), None).ops or {}, where)


def _is_library(plain: object) -> bool:
    return isinstance(plain, dict) and ("ops" in plain or "types" in plain) and "graphs" not in plain


def _with_types(primitives: PrimitiveSet, plain: object, origin: str = "") -> PrimitiveSet:
    """Before all else: types that the rest names may be declared anywhere in a document."""
    if not isinstance(plain, dict) or "types" not in plain or plain.get("tidu") != VERSION:
        return primitives
    from tidu_cli.formats.declarations import record_types

    declared = record_types(plain["types"], primitives.records, _closed)
    return with_records(primitives, declared, dict.fromkeys(declared, origin) if origin else {})


def _with_ops(primitives: PrimitiveSet, ops: Mapping[str, Any], origin: str = "") -> PrimitiveSet:
    if not ops:
        return primitives
    from tidu_cli.custom.library import extended
    from tidu_cli.formats.declarations import definitions

    return extended(primitives, definitions(ops, primitives.records, _node_attrs, origin))


def _checked_version(plain: object) -> dict[str, Any]:
    if not isinstance(plain, dict):
        raise DocumentError("not a tidu document: it is a list, where a document is an object")
    version = plain.get("tidu")
    if "tidu" not in plain:
        raise DocumentError(f'not a tidu document: the field "tidu", its format version ({VERSION}), is missing')
    if type(version) is not int or version != VERSION:
        raise DocumentError(f"format version {shown(version)} is not one that is read here: that is {VERSION}")
    return plain


def _document(data: DocumentData, nodes: Sequence[Any], numbering: Numbering) -> Document:
    declared: dict[Key, tuple[Input, str]] = {}
    graphs: list[Graph] = []
    names: set[str] = set()
    for graph, its_nodes in zip(data.graphs, nodes, strict=True):
        if graph.name in names:
            raise DocumentError(f"graph '{graph.name}': an earlier graph has this name too; names are unique in a document")
        names.add(graph.name)
        with naming(f"graph '{graph.name}', "):
            graphs.append(_graph(graph, its_nodes, _inputs(graph, declared), numbering, graphs))
    require("nodes", sum(nodes_written_out(graph.code, graph.cases) for graph in graphs), "the document")
    bindings = tuple(_bindings(data.bindings or (), graphs))
    document = Document(tuple(graphs), numbering.cases, tuple(numbering.detached), bindings, data.meta, data.passes or {})
    check_own_tangents(document)
    check_zeros(document, numbering.zeros_due, numbering.primitives)
    if unused := (document.passes.keys() - document.used_passes() if document.passes else ()):
        raise DocumentError(f"passes: there is an identity of pass {min(unused)}, which no key and no linear graph is of")
    return document


def _inputs(graph: GraphData | ClosedGraphData, declared: dict[Key, tuple[Input, str]]) -> tuple[Input, ...]:
    inputs: dict[Key, Input] = {}
    for declaration in graph.inputs:
        key, type_ = declaration.key, declaration.type
        with naming(f"input '{key}': "):
            if key in inputs:
                raise DocumentError("declared twice in this graph")
            inputs[key] = Input(key, type_, declaration.meta)
            first, owner = declared.setdefault(key, (inputs[key], graph.name))
            if first.type != type_:
                other = f"{first.type} in graph '{owner}'"
                raise DocumentError(f"has type {type_}, but {other}; a key is one input in the whole document")
    return tuple(inputs.values())


def _closed(data: object, place: str, around: Numbering) -> ClosedGraph:
    """A graph within a node. Raises DocumentError."""
    depth = around.depth + 1
    if depth > MAX_GRAPH_NESTING:
        raise DocumentError(f"{place}: graphs within graphs nest deeper than {MAX_GRAPH_NESTING} levels")
    with naming(f"{place}: "):
        if not isinstance(data, dict):
            raise DocumentError("is a graph: an object of inputs, nodes and outputs")
        shape = shaped(ClosedGraphData, data, around.read_type)
        numbering = Numbering(around.primitives, around.read_type, around.watched, _closed, depth)
        nodes = data["nodes"]
        listed = Listed.of(nodes, iter) if isinstance(nodes, list) else nodes
        inputs = _inputs(shape, {})
    with naming(f"{place}, "):
        graph = _graph(shape, nodes if listed is None else listed, inputs, numbering, ())
        _check_closed(graph)
    return ClosedGraph.of(graph)


def _check_closed(graph: Graph) -> None:
    may_be_open = len(graph.external) or any(case.mask is not None for case in graph.cases.cases)
    for number, (case, args) in enumerate(graph.nodes() if may_be_open else ()):
        place = f"node {number} ({case.op})"
        if any(a < 0 for a in args):
            raise DocumentError(
                f"{place}: refers to a value of another graph, but a graph within a node is closed: make it an operand"
            )
        if case.mask is not None:
            raise DocumentError(f"{place}: has a role; within a node's graph they have none, so leave it out")
    for output in graph.outputs:
        if output.value is None:
            raise DocumentError(f"output '{output.key}': is null; within a node's graph zeros are written as a value")
        if output.value < 0:
            raise DocumentError(f"output '{output.key}': is a value of another graph, but a graph within a node is closed")


def _node_attrs(primitives: PrimitiveSet, op: str, attrs: Mapping[str, Any]) -> Attrs:
    """The attrs of a node of a custom operation's graph. Raises TiduError."""
    return Numbering(primitives, type_reader(primitives.records), iter, _closed).attrs(op, attrs)


def _graph(
    graph: GraphData | ClosedGraphData, nodes: Any, inputs: tuple[Input, ...], numbering: Numbering, earlier: Sequence[Graph]
) -> Graph:
    input_types = [i.type for i in inputs]
    reader = NodeReader(numbering, earlier, input_types)
    if isinstance(nodes, dict):
        reader.read_packed(nodes)
    elif not (isinstance(nodes, Listed) and reader.read_columns(nodes)):
        reader = NodeReader(numbering, earlier, input_types)
        reader.read_listed(nodes)  # which says what is wrong
    linear = None if not isinstance(graph, GraphData) or graph.linear is None else dict(graph.linear)["pass"]
    numbering.value_types.append(reader.types if isinstance(reader.types, Column) else column(reader.types))
    if linear is not None:
        check_linear(inputs, reader.code, reader.args, numbering.cases)
    outputs: dict[Key, Output] = {}
    for declaration in graph.outputs:
        with naming(f"output '{declaration.key}': "):
            if declaration.key in outputs:
                raise DocumentError("declared twice in this graph")
            outputs[declaration.key] = _output(declaration, reader, linear is not None)
    columns = numbering.cases, reader.code, reader.args, reader.external
    node_meta = nodes.meta if isinstance(nodes, Listed) else {}
    return Graph(graph.name, inputs, tuple(outputs.values()), *columns, linear, graph.meta, node_meta)


def _output(declaration: OutputDeclaration, reader: NodeReader, linear: bool) -> Output:
    key, type_ = declaration.key, declaration.type
    if declaration.value is None:
        if type_ is None:
            raise DocumentError("the value is null (zero), so the type must be given")
        return Output(key, None, type_, declaration.meta)
    argument = reader.argument(declaration.value)
    if linear and argument < 0:
        raise DocumentError("is a value of another graph, not linear in the inputs of this one; zero is null")
    actual = reader.type_of(argument)
    if actual is None:
        if type_ is None:
            raise DocumentError("is a detached value of unknown type; give the output's type")
        reader.adopt(argument, type_)
        actual = type_
    elif type_ is not None and type_ != actual:
        raise DocumentError(f"declares type {type_}, but its value has type {actual}")
    return Output(key, argument, actual, declaration.meta)


def _bindings(bindings: Iterable[BindingData], graphs: Sequence[Graph]) -> Iterator[Binding]:
    declared: dict[Key, tuple[int, Input]] = {}
    for g, graph in enumerate(graphs):
        for i in graph.inputs:
            declared.setdefault(i.key, (g, i))
    seen: set[Key] = set()
    for binding in bindings:
        key = binding.input
        with naming(f"binding of input '{key}': "):
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
