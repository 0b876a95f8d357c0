"""resolve: link documents into one.

Detached references become references wherever some document defines the value, equal graphs become one, and bindings
(`--bind INPUT=KEY`) compose graphs: the input *is* the value.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate

from tidu_cli.errors import Remedy, TransformError, TypeRuleError, UnknownNameError, did_you_mean
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Binding, CaseTable, Detached, Document, Externals, Graph, Place, column
from tidu_cli.graph.identity import PREFIX, digests
from tidu_cli.graph.keys import Key, is_digest
from tidu_cli.graph.select import another_name, find_value, listed, output_hint
from tidu_cli.graph.types import Type
from tidu_cli.lax.vocabulary import joint_vocabulary
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.linking.passes import joint_passes, passes_of, require_linear

Definitions = Sequence[Mapping[bytes, int]]
"""For each graph the local values that detached references may mean, by digest."""


class _Graphs:
    """The graphs of all documents, numbered through."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = documents
        self.first = [0, *accumulate(len(document.graphs) for document in documents)]
        self.graphs = [graph for document in documents for graph in document.graphs]

    def document(self, number: int) -> int:
        """The number of the document that a graph is of."""
        return bisect_right(self.first, number) - 1

    def external(self, number: int) -> Iterator[Place | Detached]:
        """What a graph reads of others."""
        d = self.document(number)
        return (self._value(d, place) for place in self.graphs[number].external)

    def value(self, number: int, argument: int) -> Place | Detached:
        """What an argument of a graph stands for."""
        d = self.document(number)
        return self._value(d, self.graphs[number].place(number - self.first[d], argument))

    def _value(self, d: int, place: Place) -> Place | Detached:
        g, v = place
        return self.documents[d].detached[v] if g == Externals.DETACHED else (self.first[d] + g, v)


def resolve(
    documents: Sequence[Document],
    *,
    bind: Sequence[tuple[Key, Key]] = (),
    one_pass: Collection[int] = (),
    names: Sequence[str] = (),
) -> Document:
    """One document of the graphs of all, each after those that it depends on, else in the order given.

    Graphs of one name and content (leaving meta aside) become one. Of different ones the later get another name, f.2, if no pass
    made them (`renamed` tells which). `bind` pairs an input with the output that it is to be: of the latest graph that has such an
    output (or a value of this digest) and does not declare the input. What no document defines stays detached. Passes that are two
    calls of linearize are refused but for those of `one_pass`, which become one; graphs of these that share a name get another.
    `names` are how messages call the documents. Raises UnknownNameError for keys that do not exist; TransformError for two
    different graphs of one name that a pass made, an input of two types or two bindings, for passes, and for cycles; TypeRuleError
    for two different ops of one name.
    """
    passes = joint_passes(documents, one_pass, names)
    given = _Graphs(documents)
    definitions = _definitions(documents)
    bindings = _bindings(given, bind)
    merging = _Merging(given, definitions, joint_vocabulary(document.cases for document in documents), one_pass)
    for number in _dependency_order(given, definitions, bindings):
        merging.add(number)
    bound = _merged_bindings(merging, bindings)
    _require_agreeing_inputs(merging.graphs)
    _require_agreeing_bindings(merging.graphs, bound)
    meta: dict[str, object] = {}
    for document in documents:
        meta |= document.meta or {}
    resolved = Document(tuple(merging.graphs), merging.cases, tuple(merging.detached), bound, meta or None, passes)
    require_linear(resolved)
    return resolved


def renamed(document: Document, documents: Sequence[Document]) -> Iterator[tuple[str, str]]:
    """The old and the new name of each graph that resolve gave another one, in their order, but for those that a pass made."""
    given = {graph.name for document in documents for graph in document.graphs}
    for graph in document.graphs:
        if graph.name not in given and not passes_of(graph.name):
            yield graph.name.rpartition(".")[0], graph.name


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
    """Which of the digests that the documents want each graph defines, and as which local value."""
    wanted = {_digest(entry) for document in documents for entry in document.detached}
    if not wanted:
        return [{} for document in documents for _ in document.graphs]
    # The first of equal values is entered last.
    return [
        {values[v]: v for v in range(len(values) - 1, -1, -1) if values[v] in wanted}
        for document in documents
        for values in digests(document)
    ]


def _digest(entry: Detached) -> bytes:
    return bytes.fromhex(entry.digest.removeprefix(PREFIX))


def _bindings(given: _Graphs, bind: Sequence[tuple[Key, Key]]) -> dict[Key, list[Place]]:
    """What each bound input is bound to. Several documents may bind it, to what must be one value once graphs are merged."""
    places: dict[Key, list[Place]] = {}
    for first, document in zip(given.first, given.documents, strict=False):
        for b in document.bindings:
            places.setdefault(b.key, []).append((first + b.graph, b.value))
    for key, output in bind:
        places.setdefault(key, []).append(_output(given, key, output))
    return places


def _merged_bindings(merging: _Merging, bindings: Mapping[Key, Sequence[Place]]) -> tuple[Binding, ...]:
    bound = []
    for key, places in bindings.items():
        values = {(merging.number[graph], value) for graph, value in places}
        if len(values) > 1:
            raise TransformError(f"input '{key}' is bound twice, to different values; bind it once")
        bound.append(Binding(key, *values.pop()))
    return tuple(bound)


def _output(given: _Graphs, key: Key, output: Key) -> Place:
    """The value of the latest output of this key, of a graph that does not declare the input `key`."""
    declared = {i.key for graph in given.graphs for i in graph.inputs}
    outputs = {o.key for graph in given.graphs for o in graph.outputs}
    place: Place | None = None
    for number, graph in enumerate(given.graphs):
        for o in graph.outputs:
            if o.key == output and all(i.key != key for i in graph.inputs):
                value = None if o.value is None else given.value(number, o.value)
                if value is None or isinstance(value, Detached):
                    raise TransformError(
                        f"cannot bind '{key}' to output '{output}' of graph '{graph.name}': it is zero or detached"
                    )
                place = value
    if key not in declared:
        raise UnknownNameError(f"no graph has an input '{key}' to bind{did_you_mean(str(key), list(map(str, declared)))}")
    if place is None and output not in outputs and is_digest(output):
        return find_value(given.documents, output, apart_from=key)
    if place is None:
        if output in outputs:
            raise UnknownNameError(f"cannot bind '{key}': only graphs that declare that input have an output '{output}'")
        known = sorted(map(str, outputs))
        hint = f"{output_hint(output, known)} (outputs: {listed(known)})"
        raise UnknownNameError(f"cannot bind '{key}': no graph has an output '{output}'{hint}")
    return place


def _dependency_order(given: _Graphs, definitions: Definitions, bindings: Mapping[Key, Sequence[Place]]) -> Iterator[int]:
    """The graphs, each after those that it reads; among those ready, the one given first.

    A graph waits for the graphs that it refers to and, for each detached digest, for any other graph that defines it. Where
    nothing else is left but graphs that wait for one another's digests, the first goes ahead, and its references stay detached.
    """
    n_definers = Counter(digest for defined in definitions for digest in defined)
    needs: list[set[int | bytes]] = []
    waiting: dict[int | bytes, list[int]] = {}
    for number, graph in enumerate(given.graphs):
        needed: set[int | bytes] = {places[0][0] for i in graph.inputs if (places := bindings.get(i.key))}
        for read in given.external(number):
            if not isinstance(read, Detached):
                needed.add(read[0])
            elif n_definers[digest := _digest(read)] > (digest in definitions[number]):
                needed.add(digest)
        needs.append(needed)
        for need in needed:
            waiting.setdefault(need, []).append(number)
    left = dict.fromkeys(range(len(needs)))
    ready = [number for number in left if not needs[number]]
    while left:
        if not ready:
            ready = [number for number in left if all(isinstance(need, bytes) for need in needs[number])][:1]
        if not ready:
            stuck = ", ".join(f"'{given.graphs[number].name}'" for number in left)
            raise TransformError(f"graphs {stuck} depend on one another in a cycle; check the bindings")
        number = heapq.heappop(ready)
        del left[number]
        yield number
        provisions: list[int | bytes] = [number, *definitions[number]]
        for provided in provisions:
            for reader in waiting.pop(provided, ()):
                needs[reader].discard(provided)
                if not needs[reader] and reader in left:
                    heapq.heappush(ready, reader)


class _Merging:
    """The document to come, graph by graph. `number` is that of each graph given, once it has been added."""

    def __init__(self, given: _Graphs, definitions: Definitions, primitives: PrimitiveSet, one_pass: Collection[int]) -> None:
        self.given = given
        self.definitions = definitions
        self.primitives = primitives
        self.one_pass = one_pass
        self.cases = CaseTable(primitives)
        self.graphs: list[Graph] = []
        self.detached: list[Detached] = []
        self.number: dict[int, int] = {}
        self._named: dict[str, list[int]] = {}
        """The numbers of the graphs that were given under a name."""
        self._taken = {graph.name for graph in given.graphs}
        self._defined: dict[bytes, Place] = {}
        self._detached_number: dict[str, int] = {}
        self._codes = [column(map(self.cases.intern, document.cases.cases)) for document in given.documents]

    def add(self, given_number: int) -> None:
        """Add a graph whose dependencies have been added."""
        graph, codes = self.given.graphs[given_number], self._codes[self.given.document(given_number)]
        external = Externals()
        for read in self.given.external(given_number):
            number, value = self._detached(read) if isinstance(read, Detached) else (self.number[read[0]], read[1])
            external.graph.append(number)
            external.value.append(value)
        code = graph.code if codes == column(range(len(codes))) else column(map(codes.__getitem__, graph.code))
        moved = replace(graph, cases=self.cases, code=code, external=external)
        if Externals.DETACHED in graph.external.graph:
            moved = self._retyped(moved)
        known = next((k for k in self._named.get(graph.name, ()) if self._is_known(k, given_number, moved)), None)
        if known is not None:
            self.number[given_number] = known
        elif graph.name not in self._named:
            self._append(given_number, moved)
        elif passes_of(graph.name).intersection(self.one_pass) or (graph.linear is None and not passes_of(graph.name)):
            self._append(given_number, replace(moved, name=another_name(graph.name, self._taken)))
        else:
            way = Remedy("graphs", function="rename", flag="--graph")
            raise TransformError(f"two different graphs are named '{graph.name}'; rename one of them with ", way)
        for digest, value in self.definitions[given_number].items():
            self._defined.setdefault(digest, (self.number[given_number], value))

    def _append(self, given_number: int, graph: Graph) -> None:
        self.number[given_number] = len(self.graphs)
        self._named.setdefault(self.given.graphs[given_number].name, []).append(len(self.graphs))
        self._taken.add(graph.name)
        self.graphs.append(graph)

    def _is_known(self, earlier: int, given_number: int, graph: Graph) -> bool:
        if _equal(self.graphs[earlier], graph):
            return True
        # Where a document defines a value twice, a detached reference may be linked to the one or to the other.
        first = next(known for known, number in self.number.items() if number == earlier)
        return _values(self.given, first) == _values(self.given, given_number)

    def _detached(self, entry: Detached) -> Place:
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
        g, v = graph.place(0, argument)
        return self.detached[v].type if g == Externals.DETACHED else self.graphs[g].type_of(v)


def _equal(a: Graph, b: Graph) -> bool:
    """Whether two graphs over one table of cases are the same, leaving meta aside."""

    def content(graph: Graph) -> tuple[object, ...]:
        inputs, outputs = [(i.key, i.type) for i in graph.inputs], [(o.key, o.value, o.type) for o in graph.outputs]
        return inputs, outputs, graph.linear, graph.code, graph.args, graph.external

    return content(a) == content(b)


def _values(given: _Graphs, number: int) -> tuple[object, ...]:
    """What a graph is, leaving meta aside, whichever way it refers to the values of others: digests throughout."""
    d, graph = given.document(number), given.graphs[number]
    first, digest_of = given.first[d], digests(given.documents[d])

    def digest(argument: int) -> bytes:
        value = given.value(number, argument)
        return _digest(value) if isinstance(value, Detached) else digest_of[value[0] - first][value[1]]

    inputs = [(i.key, i.type) for i in graph.inputs]
    outputs = [(o.key, o.type, None if o.value is None else digest(o.value)) for o in graph.outputs]
    return graph.linear, inputs, outputs, digest_of[number - first]


def _require_agreeing_inputs(graphs: Sequence[Graph]) -> None:
    seen: dict[Key, tuple[Type, str]] = {}
    for graph in graphs:
        for i in graph.inputs:
            type_, name = seen.setdefault(i.key, (i.type, graph.name))
            if type_ != i.type:
                from tidu_cli.graph.open_sizes import told_apart

                one, other = told_apart(type_, i.type)
                raise TransformError(f"input '{i.key}' is {one} in graph '{name}' and {other} in graph '{graph.name}'; rename one")


def _require_agreeing_bindings(graphs: Sequence[Graph], bindings: Sequence[Binding]) -> None:
    types = {i.key: i.type for graph in graphs for i in graph.inputs}
    for b in bindings:
        type_ = graphs[b.graph].type_of(b.value)
        if types[b.key] != type_:
            raise TransformError(
                f"cannot bind input '{b.key}' of type {types[b.key]} to a value of graph '{graphs[b.graph].name}' of type {type_}"
            )
