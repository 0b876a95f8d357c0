"""Writing graphs by hand, for tests: arithmetic on `Value`s, and the text of a graph to compare with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidu_cli.graph.graph import Binding, CaseTable, Document, Externals, Graph, Input, Output
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.literals import filled
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.vocabulary import PrimitiveSet

Mask = tuple[bool, ...]
F, T = False, True


def key(text: str | Key) -> Key:
    return text if isinstance(text, Key) else parse_key(text)


def type_of(text: str | Type, primitives: PrimitiveSet = BUILTIN) -> Type:
    return parse_value_type(text, primitives.records) if isinstance(text, str) else text


@dataclass(frozen=True, eq=False)
class Value:
    """A value of a graph under construction. `bound` is an upper bound of its magnitude, for those who keep one."""

    sketch: Sketch
    id: int
    type: Type
    bound: float = 1.0

    def __add__(self, other: Value | float) -> Value:
        return self.sketch.apply("add", self, other)

    def __sub__(self, other: Value | float) -> Value:
        return self.sketch.apply("sub", self, other)

    def __mul__(self, other: Value | float) -> Value:
        return self.sketch.apply("mul", self, other)

    def __rmul__(self, other: float) -> Value:
        return self.sketch.apply("mul", other, self)

    def __truediv__(self, other: Value | float) -> Value:
        return self.sketch.apply("div", self, other)

    def __neg__(self) -> Value:
        return self.sketch.apply("neg", self)


class Sketch:
    """A graph under construction, to be graph number `number` of its document."""

    def __init__(
        self,
        inputs: Mapping[str | Key, str | Type],
        *,
        cases: CaseTable | None = None,
        number: int = 0,
        primitives: PrimitiveSet = BUILTIN,
    ) -> None:
        self.primitives, self.number = primitives, number
        declared = [Input(key(k), type_of(t, primitives)) for k, t in inputs.items()]
        self.builder = GraphBuilder(CaseTable(primitives) if cases is None else cases, declared)
        self.inputs = [Value(self, k, i.type) for k, i in enumerate(self.builder.inputs)]

    def argument(self, value: Value) -> int:
        return value.id if value.sketch is self else self.builder.refer(value.sketch.number, value.id)

    def apply(self, op: str, *values: Value | float, mask: Mask | None = None, bound: float = 1.0, **attrs: object) -> Value:
        return self.apply_all(op, *values, mask=mask, bound=bound, **attrs)[0]

    def apply_all(
        self, op: str, *values: Value | float, mask: Mask | None = None, bound: float = 1.0, **attrs: object
    ) -> list[Value]:
        like = next((v.type for v in values if isinstance(v, Value)), None)
        operands = [v if isinstance(v, Value) else self.full(v, like) for v in values]
        case = self.primitives.case(op, self.primitives.parse_attrs(op, attrs), mask, [v.type for v in operands])
        code = self.builder.cases.intern(case)
        first = self.builder.append(code, [self.argument(v) for v in operands])
        return [Value(self, first + k, t, bound) for k, t in enumerate(case.results)]

    def full(self, number: complex, type_: TensorType) -> Value:
        scalar = self.apply("constant", value=filled(TensorType(type_.dtype), number), bound=abs(number))
        if not type_.shape:
            return scalar
        return self.apply("broadcast_in_dim", scalar, shape=type_.shape, broadcast_dimensions=(), bound=abs(number))

    def output(self, name: str | Key, value: Value | None, type_: Type | None = None) -> Output:
        if value is None:
            assert type_ is not None
            return Output(key(name), None, type_)
        return Output(key(name), self.argument(value), value.type)

    def build(self, name: str, outputs: Mapping[str | Key, Value], *, linear: int | None = None) -> Graph:
        return self.builder.build(name, [self.output(k, v) for k, v in outputs.items()], linear=linear)


def document(*graphs: Graph, bindings: tuple[Binding, ...] = ()) -> Document:
    return Document(graphs, graphs[-1].cases, bindings=bindings)


def function(
    name: str,
    inputs: Mapping[str, str],
    body: Callable[..., Value | Mapping[str, Value]],
    *,
    primitives: PrimitiveSet = BUILTIN,
) -> Document:
    """A document of one graph: `body` makes the outputs (`y`, if it gives but one value) from the inputs."""
    sketch = Sketch(inputs, primitives=primitives)
    made = body(*sketch.inputs)
    return document(sketch.build(name, {"y": made} if isinstance(made, Value) else made))


def op(name: str) -> Callable[..., Value]:
    return lambda *values, **attrs: next(v for v in values if isinstance(v, Value)).sketch.apply(name, *values, **attrs)


def listing(graph: Graph) -> list[str]:
    """The nodes of a graph as text, `mul([0,1], 2) FT`; masks as T and F."""

    def argument(a: int) -> str:
        if a >= 0:
            return str(a)
        g, v = graph.external.graph[-1 - a], graph.external.value[-1 - a]
        return f"detached {v}" if g == Externals.DETACHED else f"[{g},{v}]"

    def node(n: int) -> str:
        case = graph.case(n)
        mask = "" if case.mask is None else " " + "".join("FT"[a] for a in case.mask)
        return f"{case.op}({', '.join(map(argument, graph.operands(n)))}){mask}"

    return [node(n) for n in range(graph.n_nodes)]


def ports(graph: Graph) -> tuple[list[str], dict[str, int | None]]:
    """The keys of the inputs, and the outputs: their values by key."""
    return [str(i.key) for i in graph.inputs], {str(o.key): o.value for o in graph.outputs}


def names(doc: Document) -> list[str]:
    return [g.name for g in doc.graphs]


def structure(doc: Document) -> object:
    """Everything of a document but meta, comparable across tables of cases."""
    return (
        [
            (
                g.name,
                [(i.key, i.type) for i in g.inputs],
                [(o.key, o.value, o.type) for o in g.outputs],
                [(g.case(n), tuple(g.operands(n))) for n in range(g.n_nodes)],
                list(g.external),
                g.linear,
            )
            for g in doc.graphs
        ],
        [d.digest for d in doc.detached],
        doc.bindings,
    )
