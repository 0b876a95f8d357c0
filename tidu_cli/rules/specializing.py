"""Open sizes made numbers, or other sizes: in types, in attrs and in graphs within these, case by case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from tidu_cli.errors import TiduError, TransformError, UnknownNameError, did_you_mean
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Case, CaseTable, Document, Graph, column
from tidu_cli.graph.literals import filled
from tidu_cli.graph.open_sizes import has_open_size, names_in, open_names
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import RecordType, TensorType
from tidu_cli.rules.attrs.attrs import Attrs
from tidu_cli.rules.attrs.fields import made
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
    from tidu_cli.graph.sizes.values import substituted

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
            from tidu_cli.graph.sizes.values import substituted

            return substituted(value, self.sizes)
        if isinstance(value, TensorType | RecordType):
            return _with_size(value, self.sizes)
        if isinstance(value, ClosedGraph):
            return ClosedGraph(_Change(self.primitives, self.sizes, value.graph.cases).graph(value.graph))
        if isinstance(value, Attrs):
            return made(type(value), {name: self.value(part) for name, part in value})
        return tuple(map(self.value, cast(Sequence[Any], value)))
