"""resolve: link documents into one.

Detached references become references wherever some document defines the value, equal graphs become one, and bindings
(`--bind INPUT=KEY`) compose graphs: the input *is* the value.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from tidu_cli.errors import TransformError, TypeRuleError, UnknownNameError, did_you_mean
from tidu_cli.graph.graph import Binding, CaseTable, Detached, Document, Externals, Graph, column
from tidu_cli.graph.identity import PREFIX, digests
from tidu_cli.graph.keys import Key, is_digest
from tidu_cli.graph.select import find_value, output_hint
from tidu_cli.graph.types import Type
from tidu_cli.graph.walk import forwards
from tidu_cli.lax.builtin import joint_vocabulary
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.linking.passes import is_of_pass, joint_passes, require_linear
from tidu_cli.transforms.linking.rename import fresh

Place = tuple[int, int]
"""Document number, graph number."""

Origin = tuple[Place, int]
"""A value: the place of its graph, and its local id there."""

Definitions = dict[Place, dict[bytes, int]]
"""The local values that detached references may mean, by digest."""


def resolve(
    documents: Sequence[Document],
    *,
    bind: Sequence[tuple[Key, Key]] = (),
    one_pass: Collection[int] = (),
    names: Sequence[str] = (),
    primitives: PrimitiveSet | None = None,
) -> Document:
    """One document of the graphs of all, each after those that it depends on, else in the order given.

    Graphs of one name and content (leaving meta aside) become one. `bind` pairs an input with the output that it is to be: of the
    latest graph that has such an output (or a value of this digest) and does not declare the input. What no document defines stays
    detached. Passes that are two calls of linearize are refused but for those of `one_pass`, which become one; graphs of these that
    share a name get another. `names` are how messages call the documents. Raises UnknownNameError for keys that do not exist;
    TransformError for two different graphs of one name, an input of two types or two bindings, for passes, and for cycles;
    TypeRuleError for two different ops of one name.
    """
    passes = joint_passes(documents, one_pass, names)
    places = [(d, g) for d, document in enumerate(documents) for g in range(len(document.graphs))]
    definitions = _definitions(documents)
    bindings = _bindings(documents, places, bind)
    merging = _Merging(documents, definitions, primitives or joint_vocabulary(document.cases for document in documents), one_pass)
    for place in _dependency_order(documents, places, definitions, bindings):
        merging.add(place)
    bound = _merged_bindings(merging, bindings)
    _require_agreeing_inputs(merging.graphs)
    _require_agreeing_bindings(merging.graphs, bound)
    meta: dict[str, object] = {}
    for document in documents:
        meta |= document.meta or {}
    found = Document(tuple(merging.graphs), merging.cases, tuple(merging.detached), bound, meta or None, passes)
    require_linear(found)
    return found


def dangling(document: Document) -> Iterator[tuple[str, str]]:
    """Each detached digest with the name of a graph that reads it."""
    reader: dict[int, str] = {}
    for graph in document.graphs:
        for g, v in graph.external:
            if g == Externals.DETACHED:
                reader.setdefault(v, graph.name)
    for k, name in sorted(reader.items()):
        yield document.detached[k].digest, name


def _definitions(documents: Sequence[Document]) -> Definitions:
    """For each graph, which of the digests that the documents want it defines, and as which local value."""
    wanted = {_digest(entry) for document in documents for entry in document.detached}
    found: Definitions = {}
    for d, document in enumerate(documents if wanted else ()):
        for g, values in enumerate(digests(document)):
            defined: dict[bytes, int] = {}
            for v, digest in enumerate(values):
                if digest in wanted:
                    defined.setdefault(digest, v)
            found[d, g] = defined
    return found


def _digest(entry: Detached) -> bytes:
    return bytes.fromhex(entry.digest.removeprefix(PREFIX))


def _bindings(documents: Sequence[Document], places: Sequence[Place], bind: Sequence[tuple[Key, Key]]) -> dict[Key, list[Origin]]:
    """What each bound input is bound to. Several documents may bind it, to what must be one value once graphs are merged."""
    found: dict[Key, list[Origin]] = {}
    for d, document in enumerate(documents):
        for b in document.bindings:
            found.setdefault(b.key, []).append(((d, b.graph), b.value))
    for key, output in bind:
        found.setdefault(key, []).append(_output(documents, places, key, output))
    return found


def _merged_bindings(merging: _Merging, bindings: dict[Key, list[Origin]]) -> tuple[Binding, ...]:
    bound = []
    for key, origins in bindings.items():
        values = {(merging.number[place], value) for place, value in origins}
        if len(values) > 1:
            raise TransformError(f"input '{key}' is bound twice, to different values; bind it once")
        bound.append(Binding(key, *values.pop()))
    return tuple(bound)


def _output(documents: Sequence[Document], places: Sequence[Place], key: Key, output: Key) -> Origin:
    declared: set[Key] = set()
    outputs: set[Key] = set()
    found: Origin | None = None
    for d, g in places:
        graph = documents[d].graphs[g]
        inputs = [i.key for i in graph.inputs]
        declared.update(inputs)
        outputs.update(o.key for o in graph.outputs)
        for o in graph.outputs:
            if o.key == output and key not in inputs:
                if o.value is None or (o.value < 0 and graph.external.graph[-1 - o.value] == Externals.DETACHED):
                    raise TransformError(
                        f"cannot bind '{key}' to output '{output}' of graph '{graph.name}': it is zero or detached"
                    )
                found = (
                    ((d, g), o.value)
                    if o.value >= 0
                    else ((d, graph.external.graph[-1 - o.value]), graph.external.value[-1 - o.value])
                )
    if key not in declared:
        raise UnknownNameError(f"no graph has an input '{key}' to bind{did_you_mean(str(key), list(map(str, declared)))}")
    if found is None and output not in outputs and is_digest(output):
        d, g, value = find_value(documents, output, apart_from=key)
        return (d, g), value
    if found is None:
        if output in outputs:
            raise UnknownNameError(f"cannot bind '{key}': only graphs that declare that input have an output '{output}'")
        hint = output_hint(output, list(map(str, outputs)))
        raise UnknownNameError(f"cannot bind '{key}': no graph has an output '{output}'{hint}")
    return found


def _dependency_order(
    documents: Sequence[Document], places: Sequence[Place], definitions: Definitions, bindings: dict[Key, list[Origin]]
) -> Iterator[Place]:
    """The places, each after those that it reads; among those ready, the one given first.

    A graph waits for the graphs that it refers to and, for each detached digest, for any other graph that defines it. Where
    nothing else is left but graphs that wait for one another's digests, the first goes ahead, and its references stay detached.
    """
    n_definers = Counter(digest for defined in definitions.values() for digest in defined)
    needs: dict[Place, set[Place | bytes]] = {}
    waiting: dict[Place | bytes, list[Place]] = {}
    for place in places:
        graph, own = documents[place[0]].graphs[place[1]], definitions.get(place, {})
        needs[place] = {origin for i in graph.inputs for origin, _ in bindings.get(i.key, ())[:1]}
        for g, v in graph.external:
            if g != Externals.DETACHED:
                needs[place].add((place[0], g))
            elif n_definers[digest := _digest(documents[place[0]].detached[v])] > (digest in own):
                needs[place].add(digest)
        for need in needs[place]:
            waiting.setdefault(need, []).append(place)
    ready = [place for place in places if not needs[place]]
    heapq.heapify(ready)
    left = dict.fromkeys(places)
    while left:
        if not ready:
            ready = [place for place in left if all(isinstance(need, bytes) for need in needs[place])][:1]
        if not ready:
            stuck = ", ".join(f"'{documents[d].graphs[g].name}'" for d, g in left)
            raise TransformError(f"graphs {stuck} depend on one another in a cycle; check the bindings")
        place = heapq.heappop(ready)
        del left[place]
        yield place
        for provided in (place, *definitions.get(place, ())):
            for reader in waiting.pop(provided, ()):
                needs[reader].discard(provided)
                if not needs[reader] and reader in left:
                    heapq.heappush(ready, reader)


@dataclass
class _Merging:
    """The document to come, graph by graph."""

    documents: Sequence[Document]
    definitions: Definitions
    primitives: PrimitiveSet
    one_pass: Collection[int] = ()

    def __post_init__(self) -> None:
        self.cases = CaseTable(self.primitives)
        self.graphs: list[Graph] = []
        self.detached: list[Detached] = []
        self.number: dict[Place, int] = {}
        self._place: list[Place] = []
        self._by_name: dict[str, int] = {}
        self._defined: dict[bytes, tuple[int, int]] = {}
        self._detached_number: dict[str, int] = {}
        self._codes = [column(map(self.cases.intern, document.cases.cases)) for document in self.documents]

    def add(self, place: Place) -> None:
        """Add a graph whose dependencies have been added."""
        d, g = place
        graph = self.documents[d].graphs[g]
        external = Externals()
        for reference in graph.external:
            number, value = self._reference(d, reference)
            external.graph.append(number)
            external.value.append(value)
        codes = self._codes[d]
        code = graph.code if codes == column(range(len(codes))) else column(map(codes.__getitem__, graph.code))
        moved = replace(graph, cases=self.cases, code=code, external=external)
        if Externals.DETACHED in graph.external.graph:
            moved = self._retyped(moved)
        earlier = self._by_name.get(graph.name)
        if earlier is None:
            self._append(place, moved)
        elif _equal(self.graphs[earlier], moved) or self._same_values(self._place[earlier], place):
            self.number[place] = earlier
        elif is_of_pass(graph.name, self.one_pass):  # tidu named both, and not the user
            taken = {graph.name for document in self.documents for graph in document.graphs}
            self._append(place, replace(moved, name=fresh(graph.name, taken | self._by_name.keys())))
        else:
            raise TransformError(f"two different graphs are named '{graph.name}'; rename one of them")
        for digest, value in self.definitions.get(place, {}).items():
            self._defined.setdefault(digest, (self.number[place], value))

    def _append(self, place: Place, graph: Graph) -> None:
        self.number[place] = self._by_name[graph.name] = len(self.graphs)
        self.graphs.append(graph)
        self._place.append(place)

    def _same_values(self, a: Place, b: Place) -> bool:
        # Where a document defines a value twice, a detached reference may be linked to the one or to the other.
        return _values(self.documents, a) == _values(self.documents, b)

    def _reference(self, d: int, reference: tuple[int, int]) -> tuple[int, int]:
        g, v = reference
        if g != Externals.DETACHED:
            return self.number[d, g], v
        entry = self.documents[d].detached[v]
        if (defined := self._defined.get(_digest(entry))) is not None:
            return defined
        number = self._detached_number.setdefault(entry.digest, len(self.detached))
        if number == len(self.detached):
            self.detached.append(entry)
        elif self.detached[number].type is None:
            self.detached[number] = entry
        elif entry.type not in (None, self.detached[number].type):
            raise TransformError(f"the detached value {entry.digest} is read as {self.detached[number].type} and as {entry.type}")
        return Externals.DETACHED, number

    def _retyped(self, graph: Graph) -> Graph:
        """The graph with the operand types that detached references had hidden filled in, and those they had implied checked."""
        known: dict[tuple[int, tuple[Type | None, ...]], int] = {}
        code = column()
        for node, (number, arguments, _, _) in enumerate(forwards(graph, graph.args)):
            case = self.cases[number]
            types = tuple(
                implied if argument >= 0 else self._external_type(graph, argument) or implied
                for implied, argument in zip(case.operands, arguments, strict=True)
            )
            if (number, types) not in known:
                try:
                    retyped = self.primitives.case(case.op, case.attrs, case.mask, types, case.results)
                except TypeRuleError as error:
                    raise TypeRuleError(f"{graph.describe(node)}: {error}") from None
                known[number, types] = self.cases.intern(retyped)
            code.append(known[number, types])
        return replace(graph, code=code)

    def _external_type(self, graph: Graph, argument: int) -> Type | None:
        g, v = graph.external.graph[-1 - argument], graph.external.value[-1 - argument]
        return self.detached[v].type if g == Externals.DETACHED else self.graphs[g].type_of(v)


def _equal(a: Graph, b: Graph) -> bool:
    """Whether two graphs over one table of cases are the same, leaving meta aside."""
    same_ports = [(i.key, i.type) for i in a.inputs] == [(i.key, i.type) for i in b.inputs] and [
        (o.key, o.value, o.type) for o in a.outputs
    ] == [(o.key, o.value, o.type) for o in b.outputs]
    return same_ports and (a.linear, a.code, a.args, a.external) == (b.linear, b.code, b.args, b.external)


def _values(documents: Sequence[Document], place: Place) -> tuple[object, ...]:
    """What a graph is, leaving meta aside, whichever way it refers to the values of others: digests throughout."""
    d, g = place
    document, graph = documents[d], documents[d].graphs[g]
    found = digests(document)

    def digest(argument: int | None) -> bytes | None:
        if argument is None or argument >= 0:
            return None if argument is None else found[g][argument]
        h, v = graph.external.graph[-1 - argument], graph.external.value[-1 - argument]
        return _digest(document.detached[v]) if h == Externals.DETACHED else found[h][v]

    inputs = [(i.key, i.type) for i in graph.inputs]
    return graph.linear, inputs, [(o.key, o.type, digest(o.value)) for o in graph.outputs], found[g]


def _require_agreeing_inputs(graphs: Sequence[Graph]) -> None:
    seen: dict[Key, tuple[Type, str]] = {}
    for graph in graphs:
        for i in graph.inputs:
            type_, name = seen.setdefault(i.key, (i.type, graph.name))
            if type_ != i.type:
                raise TransformError(
                    f"input '{i.key}' is {type_} in graph '{name}' and {i.type} in graph '{graph.name}'; rename one"
                )


def _require_agreeing_bindings(graphs: Sequence[Graph], bindings: Sequence[Binding]) -> None:
    types = {i.key: i.type for graph in graphs for i in graph.inputs}
    for b in bindings:
        type_ = graphs[b.graph].type_of(b.value)
        if types[b.key] != type_:
            raise TransformError(
                f"cannot bind input '{b.key}' of type {types[b.key]} to a value of graph '{graphs[b.graph].name}' of type {type_}"
            )
