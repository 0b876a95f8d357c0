"""Which primal values the cotangents in a transposed graph belong to, though the linear graph between the two is gone.

A cotangent of v is the cotangent of an e in v + e. So e is added to every value that depends on the inputs, and the graph is
linearized by all the e and transposed again; what is structurally equal in the new graph and in the given one is the same value.
Where the given graph is not such a transpose, nothing is equal, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence

from tidu_cli.errors import TiduError
from tidu_cli.frozen import replace
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.graph import Binding, Document, Externals, Graph, Input, Output, Place, column
from tidu_cli.graph.identity import digests
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import LogicalGraph, link
from tidu_cli.graph.types import TensorType
from tidu_cli.graph.walk import forwards
from tidu_cli.lax.builtin import BUILTIN
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose


def cotangent_owners(document: Document) -> Mapping[int, Sequence[Place]]:
    """For values of a transposed head, by local id, the values (graph number, local id) whose whole cotangents they are.

    Values of which nothing is known are left out. Linear in the size of the document.
    """
    head = document.head
    seeds = [i.key for i in head.inputs if i.key.path[-1:] == (-(head.linear or 0),)]
    if head.linear is None or not seeds:
        return {}
    outputs = [Key(key.name, key.path[:-1]) for key in seeds]
    earlier = range(len(document.graphs) - 2, -1, -1)
    g = next((g for g in earlier if {o.key for o in document.graphs[g].outputs}.issuperset(outputs)), None)
    if g is None:
        return {}
    wrt = [Key(o.key.name, o.key.path[:-1]) for o in head.outputs]
    added, owners, old = _with_added(document, g, wrt)
    try:
        again = transpose(linearize(added, [*wrt, *owners], outputs=outputs, pass_number=head.linear))
    except TiduError:
        return {}
    found = digests(_without_added(again, document, g, old))[-1]
    known: dict[bytes, list[Place]] = {}
    for output in again.head.outputs:
        if output.value is not None and output.value >= 0 and (e := Key(output.key.name, output.key.path[:-1])) in owners:
            known.setdefault(found[output.value], []).append((g, owners[e]))
    return {value: known[digest] for value, digest in enumerate(digests(document)[-1]) if digest in known}


def _with_added(document: Document, g: int, wrt: Collection[Key]) -> tuple[Document, dict[Key, int], list[int]]:
    """The document up to graph g, with v + e for each value v of its nodes that depends on wrt.

    And the v by the keys of the e; and of each value of the changed graph the one of graph g that it is where all e are 0.
    """
    graph, logical = document.graphs[g], link(document)
    depends = computed_from(logical, wrt, any)[logical.base[g] :]
    first = len(graph.inputs)
    # Not to records: a sum of records is put together, where the given graph may have taken their fields as they come.
    chosen = [v for v in range(first, graph.n_values) if depends[v] and isinstance(t := graph.type_of(v), TensorType) and t.inexact]
    owners = {Key(f"\0{v}"): v for v in chosen}  # no key of a document has such a name but by malice, and then linearize refuses it
    builder = GraphBuilder(document.cases, [*graph.inputs, *(Input(e, graph.type_of(v)) for e, v in owners.items())])
    e_of = {v: first + k for k, v in enumerate(chosen)}
    new = list(range(first))
    old = [*new, *chosen]
    attrs = BUILTIN.parse_attrs(BUILTIN.add, {})

    def moved(argument: int) -> int:
        return new[argument] if argument >= 0 else builder.refer(*graph.place(g, argument))

    for case, arguments in graph.nodes():
        made = builder.append(document.cases.intern(case), [moved(argument) for argument in arguments])
        for slot, type_ in enumerate(case.results):
            v = len(new)
            old.append(v)
            add = document.cases.intern(BUILTIN.case(BUILTIN.add, attrs, None, [type_, type_])) if v in e_of else None
            new.append(made + slot if add is None else builder.append(add, [made + slot, e_of[v]]))
            old += [v] * (add is not None)
    outputs = [Output(o.key, None if o.value is None else moved(o.value), o.type) for o in graph.outputs]
    changed = builder.build(graph.name, outputs)
    bindings = tuple(Binding(b.key, b.graph, new[b.value] if b.graph == g else b.value) for b in document.bindings if b.graph <= g)
    return replace(document, graphs=(*document.graphs[:g], changed), bindings=bindings), owners, old


def _without_added(again: Document, document: Document, g: int, old: Sequence[int]) -> Document:
    """A document derived of the changed one, as if derived of the given one: what it reads of the changed graph is of graph g."""

    def reading_given(graph: Graph) -> Graph:
        values = column(old[v] if of == g else v for of, v in graph.external)
        return replace(graph, external=Externals(graph.external.graph, values))

    graphs = (*document.graphs[: g + 1], *map(reading_given, again.graphs[g + 1 :]))
    return replace(again, graphs=graphs, bindings=tuple(b for b in document.bindings if b.graph <= g))


def computed_from(logical: LogicalGraph, inputs: Container[Key], how: Callable[[Iterable[int]], bool]) -> bytearray:
    """For each flat id whether it is computed from one of these inputs (`any`), or from them and constants alone (`all`)."""
    found = bytearray(logical.n_values)
    for key, flat in logical.source.items():
        found[flat] |= key in inputs
    for g, graph in enumerate(logical.document.graphs):
        for _, operands, first, after in forwards(graph, logical.args[g], logical.base[g]):
            found[first:after] = bytes([how(found[operand] for operand in operands)]) * (after - first)
    return found
