"""Open sizes made numbers, or other sizes: those that users name, and those that the inputs of an evaluation have.

They are put into types, into attrs and into graphs within these, case by case. Inputs have shapes, and these say what names stand
for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

from tidu_cli.errors import EvaluationError, TiduError, TransformError, UnknownNameError, did_you_mean
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Case, CaseTable, Document, Graph, Input, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Literal, filled
from tidu_cli.graph.open_sizes import has_open_size, names_in, open_names
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import RecordType, TensorType, Type
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.attrs import Attrs
from tidu_cli.rules.fields import made
from tidu_cli.rules.vocabulary import PrimitiveSet

Sizes = Mapping[str, Any]
"""Numbers, or sizes, by the names that they are put in the place of."""


def specialized(document: Document, given: Sizes, primitives: PrimitiveSet) -> Document:
    """A document with sizes, or their texts, for names, in which names have its bounds. Values have other identities then.

    Raises UnknownNameError for a name that it has not, TypeTextError, TransformError for what cannot be.
    """
    from tidu_cli.graph.sizes.reading import declaring, size_for

    names = open_names(document)
    for name in given:
        if name not in names:
            there = ", ".join(sorted(names)) or "none"
            raise UnknownNameError(f"no open size '{name}'{did_you_mean(name, sorted(names))} (open sizes: {there})")
    with declaring(names):
        sizes = {name: size_for(names[name], size) for name, size in given.items()}
    change = _Change(primitives, sizes, document.cases)
    graphs = tuple([change.graph(graph) for graph in document.graphs])
    detached = tuple([replace(d, type=change.value(d.type)) for d in document.detached])
    return replace(document, graphs=graphs, cases=change.cases, detached=detached, passes={})


def specialized_graph(graph: Graph, sizes: Sizes, primitives: PrimitiveSet) -> Graph:
    """Likewise, of a graph without references to others."""
    from tidu_cli.graph.sizes.reading import size_for

    names = names_in(graph)
    for name, size in sizes.items():
        if name in names:
            size_for(names[name], size)
    return _Change(primitives, sizes, graph.cases).graph(graph)


def types_with(types: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    """Types, by any keys, with these sizes for the names in them. Raises TransformError for a size that is below 1."""
    from tidu_cli.graph.sizes.algebra import Name
    from tidu_cli.graph.sizes.reading import size_for

    for name, size in sizes.items():
        if (changed := {key: _with_size(type_, {name: size}) for key, type_ in types.items()}) != types:
            size_for(Name(name), size)
        types = changed
    return dict(types)


def _with_size(type_: Any, sizes: Sizes) -> Any:
    from tidu_cli.graph.sizes.names import substituted

    if isinstance(type_, RecordType):
        return replace(type_, fields=tuple([(name, _with_size(field, sizes)) for name, field in type_.fields]))
    return type_.with_shape(tuple([substituted(n, sizes) for n in type_.shape])) if isinstance(type_, TensorType) else type_


class _Change:
    """Sizes put in the place of names, in cases of one table."""

    def __init__(self, primitives: PrimitiveSet, sizes: Sizes, old: CaseTable) -> None:
        self.primitives, self.sizes, self.old = primitives, sizes, old
        self.cases = CaseTable(old.vocabulary)
        self.numbers: dict[int, int] = {}

    def graph(self, graph: Graph) -> Graph:
        """A graph over the new table. Raises TransformError for a node that takes no such sizes."""
        for code in dict.fromkeys(graph.code):
            if code not in self.numbers:
                try:
                    self.numbers[code] = self.cases.intern(self.case(self.old[code]))
                except TiduError as error:
                    node = graph.code.index(code)
                    given = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
                    raise TransformError(f"{graph.describe(node)}: of sizes {given}: {error}") from None
        return replace(
            graph,
            cases=self.cases,
            code=column(map(self.numbers.__getitem__, graph.code)),
            inputs=tuple([replace(i, type=self.value(i.type)) for i in graph.inputs]),
            outputs=tuple([replace(o, type=self.value(o.type)) for o in graph.outputs]),
        )

    def case(self, case: Case) -> Case:
        """The case of a node with these sizes. Raises TypeRuleError."""
        operands, results = self.value(case.operands), self.value(case.results)
        attrs = self.value(case.attrs)
        if case.op == self.primitives.size and not isinstance(attrs.expression, OpenSize):
            (type_,) = results
            constant = self.primitives.parse_attrs(self.primitives.constant, {"value": filled(type_, attrs.expression)})
            return self.primitives.case(self.primitives.constant, constant, case.mask, operands)
        if attrs is case.attrs and operands is case.operands and results is case.results:
            return case
        return self.primitives.case(case.op, attrs, case.mask, operands, results)

    def value(self, value: Any) -> Any:
        """What a type, an attr or a graph within one becomes: itself where it has no such name."""
        if not has_open_size(value):
            return value
        if isinstance(value, OpenSize):
            from tidu_cli.graph.sizes.names import substituted

            return substituted(value, self.sizes)
        if isinstance(value, TensorType | RecordType):
            return _with_size(value, self.sizes)
        if isinstance(value, ClosedGraph):
            return ClosedGraph(_Change(self.primitives, self.sizes, value.graph.cases).graph(value.graph))
        if isinstance(value, Attrs):
            return made(type(value), {name: self.value(part) for name, part in value})
        return tuple(map(self.value, cast(Sequence[Any], value)))


Numbers = Mapping[str, int]

T = TypeVar("T")


def as_given(graph: Graph, given: Mapping[Key, Any], batch: Mapping[Key, int] | None = None) -> Graph:
    """A graph without references, of the sizes that these inputs have; itself where no size is open.

    `batch` is the axis of inputs that have one more than declared. Raises EvaluationError where inputs disagree on a size, or say
    nothing of it; TransformError where the graph does not take it.
    """
    names = names_in(graph)
    if not names:
        return graph
    from tidu_cli.graph.sizes.names import require_known
    from tidu_cli.runtime.evaluate import require_given
    from tidu_cli.runtime.plans.program import needed_inputs

    needed = needed_inputs(graph)
    require_given([i for i in graph.inputs if i.key in needed], given)
    numbers = sizes_given(graph.inputs, given, batch)
    if not names.keys() <= numbers.keys():
        for i in graph.inputs:
            _require_rank(i, given, batch)
    require_known(names, numbers)
    return specialized_graph(graph, {name: numbers[name] for name in names}, vocabulary(graph.cases))


def document_as_given(document: Document, given: Mapping[Key, Any]) -> Document:
    """Likewise, of a document; sizes of which inputs say nothing stay open."""
    names = open_names(document)
    if not names:
        return document
    numbers = sizes_given(list(document.inputs.values()), given)
    known = {name: numbers[name] for name in names if name in numbers}
    return specialized(document, known, vocabulary(document.cases))


def document_of_sizes(document: Document, given: Mapping[Key, Any]) -> Document:
    """Likewise; raises EvaluationError where a size stays open, with the inputs that are missing."""
    document = document_as_given(document, given)
    if names := open_names(document):
        from tidu_cli.graph.sizes.names import require_known
        from tidu_cli.runtime.evaluate import require_given

        declared = [i for i in document.inputs.values() if has_open_size(i.type)]
        require_given(declared, given)
        for i in declared:
            _require_rank(i, given, None)
        require_known(names, {})
    return document


def _require_rank(declared: Input, given: Mapping[Key, Any], batch: Mapping[Key, int] | None) -> None:
    """Raises EvaluationError for an array of another number of axes than is declared, which says nothing of sizes."""
    axis = (batch or {}).get(declared.key)
    for due, shape in _shapes(declared.type, given[declared.key], axis) if declared.key in given else ():
        if len(due) != len(shape):
            where = "" if axis is None else " in each row of the batch; the batch is one more axis"
            raise EvaluationError(f"input {declared.key}: expected {declared.type}, got an array of shape {list(shape)}{where}")


class Plans(Generic[T]):
    """What is made of a graph with open sizes, for the sizes that inputs have: that of the last few sizes is kept."""

    MOST = 16

    def __init__(self, graph: Graph, make: Callable[[Graph], T]) -> None:
        self._graph, self._make = graph, make
        self._kept: dict[tuple[tuple[str, int], ...], T] = {}

    @property
    def last(self) -> T | None:
        """What was asked for last; None before."""
        return next(reversed(self._kept.values()), None)

    def of(self, given: Mapping[Key, Any], batch: Mapping[Key, int] | None = None) -> T:
        """What is made of the graph with the sizes of these inputs. Raises as `as_given`."""
        sizes = tuple(sorted(sizes_given(self._graph.inputs, given, batch).items()))
        made = self._kept.pop(sizes, None)
        if made is None:
            made = self._make(as_given(self._graph, given, batch))
        self._kept[sizes] = made  # as the last one
        if len(self._kept) > self.MOST:
            del self._kept[next(iter(self._kept))]
        return made


def sizes_given(inputs: Sequence[Input], given: Mapping[Key, Any], batch: Mapping[Key, int] | None = None) -> Numbers:
    """What names stand for, by the shapes of inputs. Raises EvaluationError where two disagree."""
    from tidu_cli.graph.sizes.names import numbers_of

    pairs = [
        (f"input {i.key}", *leaf)
        for i in inputs
        if i.key in given and has_open_size(i.type)
        for leaf in _shapes(i.type, given[i.key], None if batch is None else batch.get(i.key))
    ]
    return numbers_of(pairs, {})


def _shapes(type_: Type, value: Any, axis: int | None) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Declared shapes and those that a value has."""
    if isinstance(type_, RecordType):
        fields = dict(zip(type_.names, value, strict=False)) if isinstance(value, tuple | list) else value
        for name, field in type_.fields:
            if isinstance(fields, Mapping) and fields.get(name) is not None:
                yield from _shapes(field, fields[name], axis)
        return
    shape = shape_of(value)
    if axis is not None and -len(shape) <= axis < len(shape):
        shape = shape[: axis % len(shape)] + shape[axis % len(shape) + 1 :]
    yield type_.shape, shape


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of what a user gave for an array: of nested lists as far as they go."""
    if isinstance(value, Literal):
        return value.type.shape
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return shape
    sizes: list[int] = []
    while isinstance(value, list | tuple):
        sizes.append(len(value))
        value = value[0] if value else None
    return tuple(sizes)
