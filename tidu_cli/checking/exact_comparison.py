"""Comparing documents to the letter: graphs, nodes, names, order and meta: all that it says, but not how a file writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from tidu_cli.errors import counted
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import ClosedGraph, closed_graphs, named_graphs
from tidu_cli.graph.graph import Case, Document, Externals, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.open_sizes import has_open_size
from tidu_cli.graph.open_sizes import told_apart as with_bounds
from tidu_cli.graph.types import Type, leaves, spelled_out
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.vocabulary import PrimitiveSet

_OTHER_ATTRS = "other attrs"

Reference = tuple[int, int] | int | str
"""What an argument stands for: a local id, a value of another graph, or a digest."""


def structural_differences(a: Document, b: Document) -> Iterator[str]:
    """What differs between A and B, a line each. Linear in their sizes."""
    if a.meta != b.meta:
        yield "the meta of the document differs"
    yield from _record_types(vocabulary(a.cases), vocabulary(b.cases))
    if len(a.graphs) != len(b.graphs):
        yield f"A has {counted(len(a.graphs), 'graph')}, B has {counted(len(b.graphs), 'graph')}"
    for g, (x, y) in enumerate(zip(a.graphs, b.graphs, strict=False)):
        if x.name != y.name:
            yield f"graph {g} is '{x.name}' in A, '{y.name}' in B"
        for difference in _of_graphs(a, x, b, y):
            yield f"graph {g} '{x.name}': {difference}"
    for key in sorted(str(key) for key in a.bound.keys() | b.bound.keys() if a.bound.get(key) != b.bound.get(key)):
        yield f"the binding of input '{key}' differs"
    for number in sorted(n for n in a.passes.keys() | b.passes.keys() if a.passes.get(n) != b.passes.get(n)):
        sides = [side for side, document in (("A", a), ("B", b)) if number in document.passes]
        yield f"pass {number} " + (
            "is another call of linearize in B" if len(sides) == 2 else f"has an identity in {sides[0]} only"
        )


def _record_types(a: PrimitiveSet, b: PrimitiveSet) -> Iterator[str]:
    for name in dict.fromkeys((*a.records, *b.records)):
        one, other = a.records.get(name), b.records.get(name)
        if one is None or other is None:
            yield f"record type '{name}' is declared in {'A' if other is None else 'B'} only"
        elif one.fields == other.fields and one != other:
            yield f"the views of record type '{name}' differ"
        elif one != other:
            yield f"record type '{name}' is {spelled_out(one)} in A, {spelled_out(other)} in B"


def _of_graphs(a: Document, x: Graph, b: Document, y: Graph) -> Iterator[str]:
    if x.linear != y.linear:
        yield f"it is {_pass(x)} in A, {_pass(y)} in B"
    if x.meta != y.meta:
        yield "its meta differs"
    yield from _ports("inputs", x.inputs, y.inputs)
    references = _references(a, x), _references(b, y)
    yield from _ports("outputs", x.outputs, y.outputs)
    for p, q in zip(x.outputs, y.outputs, strict=False):
        if p.key == q.key and _referred(references[0], p.value) != _referred(references[1], q.value):
            yield f"output '{p.key}' is another value"
    yield from _nodes(x, references[0], y, references[1])


def _pass(graph: Graph) -> str:
    return "not linear" if graph.linear is None else f"linear in pass {graph.linear}"


def _ports(what: str, a: Sequence[Input | Output], b: Sequence[Input | Output]) -> Iterator[str]:
    keys = [[str(port.key) for port in ports] for ports in (a, b)]
    if keys[0] != keys[1]:
        order = " in another order" if sorted(keys[0]) == sorted(keys[1]) else ""
        yield f"its {what} differ{order}"
        return
    for p, q in zip(a, b, strict=True):
        if p.type != q.type:
            yield f"{what[:-1]} '{p.key}' is {told_apart(p.type, q.type)}"
        if p.meta != q.meta:
            yield f"the meta of {what[:-1]} '{p.key}' differs"


def _references(document: Document, graph: Graph) -> list[Reference]:
    """What arguments -1, -2, … stand for, in reverse, so that they index it; before them, local ids are themselves."""
    return [document.detached[v].digest if g == Externals.DETACHED else (g, v) for g, v in reversed(list(graph.external))]


def _referred(references: list[Reference], argument: int | None) -> Reference | None:
    return argument if argument is None or argument >= 0 else references[argument]


def _nodes(x: Graph, of_x: list[Reference], y: Graph, of_y: list[Reference]) -> Iterator[str]:
    if x.n_nodes != y.n_nodes:
        yield f"it has {x.n_nodes} nodes in A, {y.n_nodes} in B"
    unlike: dict[tuple[int, int], str] = {}
    codes = zip(x.code, y.code, strict=False)
    for node, ((c, d), (_, reads_x), (_, reads_y)) in enumerate(zip(codes, x.nodes(), y.nodes(), strict=False)):
        what = unlike.get((c, d))
        if what is None:
            what = unlike[c, d] = _unlike(x.cases[c], y.cases[d])
        pairs = zip_longest(reads_x, reads_y, fillvalue=0)
        if not what and any(p != q if p >= 0 or q >= 0 else of_x[p] != of_y[q] for p, q in pairs):
            what = "other inputs"
        if what == _OTHER_ATTRS:
            yield from (f"node {node} ({x.cases[c].op}){within}" for within in _attrs_unlike(x.cases[c].attrs, y.cases[d].attrs))
        elif what:
            yield f"node {node} ({x.cases[c].op}) has {what} in B"
    metas = {n for n in x.node_meta.keys() | y.node_meta.keys() if x.node_meta.get(n) != y.node_meta.get(n)}
    for node in sorted(metas):
        yield f"the meta of node {node} differs"


def _unlike(a: Case, b: Case) -> str:
    if a == b:
        return ""
    if a.op != b.op:
        return f"op {b.op}"
    if a.attrs != b.attrs:
        return _OTHER_ATTRS
    if a.mask != b.mask:
        return "another role"
    return "other types" if len(a.operands) == len(b.operands) else f"{len(b.operands)} inputs"


def _attrs_unlike(a: object, b: object) -> Iterator[str]:
    """What follows `node 3 (scan)` in what is said of nodes whose attrs differ: of graphs in them, where these do."""
    pairs = list(zip(named_graphs(a), named_graphs(b), strict=False))
    n = len(pairs)
    if not n or len(closed_graphs(a)) != len(closed_graphs(b)) or _but_for_graphs(a) != _but_for_graphs(b):
        yield " has other attrs in B"
    for (name, x), (_, y) in pairs:
        if x != y:
            for difference in _of_graphs(x.document, x.graph, y.document, y.graph):
                yield f", {name}{', ' if difference.startswith('node ') else ': '}{difference}"


def first_within(a: Case, b: Case) -> str:
    """Where the graphs in two nodes' attrs first differ in what they compute: `body, node 7 (mul) has op add in B`; else ''."""
    for (name, x), (_, y) in zip(named_graphs(a.attrs), named_graphs(b.attrs), strict=False):
        ours, theirs = _positional(x), _positional(y)
        for difference in _of_graphs(ours, ours.head, theirs, theirs.head):
            return f"{name}{', ' if difference.startswith('node ') else ': '}{difference}"
    return ""


def _positional(closed: ClosedGraph) -> Document:
    """A graph within a node, whose names and meta do not count."""
    (graph,) = closed.positional.graphs
    inputs = tuple([replace(i, meta=None) for i in graph.inputs])
    outputs = tuple([replace(o, key=Key(str(k)), meta=None) for k, o in enumerate(graph.outputs)])
    return Document((replace(graph, inputs=inputs, outputs=outputs, meta=None, node_meta={}),), graph.cases)


def _but_for_graphs(attrs: object) -> dict[str, object]:
    return {name: value for name, value in vars(attrs).items() if name not in getattr(attrs, "graphs", ())}


def told_apart(a: Type, b: Type) -> str:
    """The types of something in A and in B; of records of one name the first of their arrays that differ."""
    if str(a) != str(b) or has_open_size((a, b)):
        return "{} in A, {} in B".format(*with_bounds(a, b))
    ours, theirs = dict(leaves(a)), dict(leaves(b))
    path = next((path for path in (*ours, *theirs) if ours.get(path) != theirs.get(path)), None)
    if path is None:
        return f"{a} in both, {spelled_out(a)} in A, {spelled_out(b)} in B"
    one, other = (part or "missing" for part in (ours.get(path), theirs.get(path)))
    return f"{a} in both, of which {'.'.join(path)} is {one} in A, {other} in B"


def texts(a: Type, b: Type) -> dict[str, str]:
    """The texts of two types, for programs; of records of one name those of their fields."""
    same = str(a) == str(b)
    return {side: str(spelled_out(type_) if same else type_) for side, type_ in (("a", a), ("b", b))}
