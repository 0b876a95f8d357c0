"""Make inputs constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidu_cli.errors import TransformError
from tidu_cli.frozen import replace
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.graph import Binding, CaseTable, Document, Externals, Graph, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Constant, Literal
from tidu_cli.graph.select import fresh_name, require_inputs
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.lax.builtin import vocabulary


def bind_constants(document: Document, values: Mapping[Key, Constant]) -> Document:
    """Bind inputs to constants, which are a new first graph; those of records are put together of constants.

    Raises UnknownNameError for a key that no graph declares, TransformError for an input that is bound and for a constant of
    another type than the declared one.
    """
    if not values:
        return document
    require_inputs(document, values)
    constants = _Constants(document.cases)
    bindings = []
    for key, constant in values.items():
        if key in document.bound:
            graph = document.graphs[document.bound[key][0]].name
            raise TransformError(f"input '{key}' is bound to a value of graph '{graph}', so it cannot be set")
        bindings.append(Binding(key, 0, constants.append(f"input '{key}'", document.inputs[key].type, constant)))
    bindings += [replace(b, graph=b.graph + 1) for b in document.bindings]
    graphs = (constants.builder.build(fresh_name(document, "constants"), ()), *map(_moved, document.graphs))
    return replace(document, graphs=graphs, bindings=tuple(bindings))


class _Constants:
    """The graph of the constants."""

    def __init__(self, cases: CaseTable) -> None:
        self.builder = GraphBuilder(cases)
        self.primitives = vocabulary(cases)

    def append(self, name: str, type_: Type, constant: Constant) -> int:
        """The local id of a constant of this type. Raises TransformError for one of another type."""
        if isinstance(type_, TensorType):
            if not isinstance(constant, Literal) or constant.type != type_:
                raise TransformError(f"{name} is {type_}, and cannot be set to a constant {_type_text(constant)}")
            return self._node(self.primitives.constant, {"value": constant}, (), ())
        if isinstance(constant, Literal) or len(constant) != len(type_.fields):
            raise TransformError(f"{name} is {type_}, and cannot be set to a constant {_type_text(constant)}")
        given = {field: (t, value) for (field, t), value in zip(type_.fields, constant, strict=True) if value is not None}
        if not given:  # a record has one field at least
            field, t = type_.fields[0]
            given[field] = t, _zero(t)
        reads = [self.append(f"{name}, field '{field}'", t, value) for field, (t, value) in given.items()]
        names = None if len(given) == len(type_.fields) else tuple(given)
        attrs = {"type": type_} if names is None else {"type": type_, "fields": names}
        return self._node(self.primitives.record, attrs, [t for t, _ in given.values()], reads)

    def _node(self, op: str, attrs: Mapping[str, object], types: Sequence[Type], reads: Sequence[int]) -> int:
        case = self.primitives.case(op, self.primitives.parse_attrs(op, attrs), None, types)
        return self.builder.append(self.builder.cases.intern(case), reads)


def _zero(type_: Type) -> Constant:
    return Literal(type_, bytes(type_.nbytes)) if isinstance(type_, TensorType) else (None,) * len(type_.fields)


def _type_text(constant: Constant) -> str:
    return str(constant.type) if isinstance(constant, Literal) else f"record of {len(constant)} fields"


def _moved(graph: Graph) -> Graph:
    """A graph whose references are to graphs of one number more."""
    numbers = column(g if g == Externals.DETACHED else g + 1 for g in graph.external.graph)
    return replace(graph, external=Externals(numbers, graph.external.value))
