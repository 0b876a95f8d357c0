"""The graphs of a definition at types and attrs: typed, and found to be what they should.

Each is a closed graph whose inputs are all that a graph of its kind may take, and is differentiated as any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tidu_cli.custom.attrs import AttrValues, CustomAttrs, substituted
from tidu_cli.custom.definitions import PASS, OpDefinition, SourceGraph
from tidu_cli.custom.patterns import Variables, fits, match_all
from tidu_cli.errors import MissingRuleError, TiduError, TypeRuleError, UnknownNameError
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.columns.garbage_collection import no_collection
from tidu_cli.graph.graph import CaseTable, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import Type, tangent_type
from tidu_cli.rules.contract import PrimitiveSet, ValueTypes
from tidu_cli.rules.conversion import converted, converted_cotangent
from tidu_cli.rules.linearity import require_linear
from tidu_cli.rules.recording import Trace
from tidu_cli.rules.tangents import admits
from tidu_cli.transforms.batch import Appender


def typed_graph(definition: OpDefinition, kind: str, primitives: PrimitiveSet, attrs: CustomAttrs, operands: ValueTypes) -> Graph:
    """A graph of a definition where the op has operands of these types.

    Raises TypeRuleError naming the graph and its node where types do not fit, and where a graph that says how to differentiate
    is not linear in tangents or cotangents.
    """
    identity = kind, attrs, operands
    known = definition.typed.get(identity)
    if known is None:
        known = definition.typed[identity] = _typed(definition, kind, primitives, attrs, operands)
    return known


@no_collection()
def _typed(definition: OpDefinition, kind: str, primitives: PrimitiveSet, attrs: CustomAttrs, operands: ValueTypes) -> Graph:
    variables = match_all([p.name for p in definition.inputs], [p.pattern for p in definition.inputs], operands)
    types: dict[Key, Type] = dict(zip(definition.input_keys, operands, strict=True))
    if kind != "forward":
        forward = typed_graph(definition, "forward", primitives, attrs, operands)
        types |= {o.key: o.type for o in forward.outputs}
        for key, type_ in list(types.items()):
            types[key.tangent(PASS)] = types[key.cotangent(PASS)] = tangent_type(type_)
    taken, due = definition.ports_of(kind)
    nodes = _Nodes([Input(key, types[key]) for key in taken])
    try:
        values = nodes.append(definition.graphs[kind], primitives, attrs.values)
    except TiduError as error:
        raise TypeRuleError(f"its {kind}: {error}") from None
    if kind == "forward":
        return nodes.graph(definition, kind, _outputs(definition, nodes, values, variables))
    outputs = []
    for key in due:
        value, natural = values[key], types[key]
        if value is not None and nodes.types[value] != natural:
            if not admits(types[Key(key.name)], nodes.types[value]):
                raise TypeRuleError(f"its {kind} gives '{key}' the type {nodes.types[value]}, which must be {natural}")
            value = nodes.append_conversion(value, natural, primitives, cotangent=kind != "jvp")
        outputs.append(Output(key, value, natural))
    graph = nodes.graph(definition, kind, outputs)
    n_moving = len(definition.inputs if kind == "jvp" else definition.outputs)
    active = [k >= len(taken) - n_moving for k in range(len(taken))]
    _check_linear(kind, primitives, graph, active, "tangents" if kind == "jvp" else "cotangents")
    if kind == "transpose":
        names = [p.name for p, is_linear in zip(definition.inputs, definition.linear_in, strict=True) if is_linear]
        _check_linear("forward", primitives, forward, definition.linear_in, f"input{'s' * (len(names) > 1)} {', '.join(names)}")
    return graph


def _outputs(definition: OpDefinition, nodes: _Nodes, values: Mapping[Key, int | None], variables: Variables) -> Iterator[Output]:
    """The outputs of `forward`. Raises TypeRuleError for one that is zero, or of a type that does not fit."""
    for key, port in zip(definition.output_keys, definition.outputs, strict=True):
        value = values[key]
        if value is None:
            raise TypeRuleError(f"its forward gives null for the output '{key}'; write the zeros as a value")
        if not fits(port.pattern, nodes.types[value], variables):
            raise TypeRuleError(f"its forward gives '{key}' the type {nodes.types[value]}, which does not fit {port.pattern}")
        yield Output(key, value, nodes.types[value])


def _check_linear(kind: str, primitives: PrimitiveSet, graph: Graph, active: Sequence[bool], what: str) -> None:
    try:
        require_linear(primitives, graph, active, what)
    except MissingRuleError as error:
        raise TypeRuleError(f"its {kind}: {error}") from None


class _Nodes:
    """A graph under construction, and the types of its values."""

    def __init__(self, inputs: Sequence[Input]) -> None:
        self.builder = GraphBuilder(CaseTable(), inputs)
        self.types = [i.type for i in inputs]

    def append(self, source: SourceGraph, primitives: PrimitiveSet, attrs: AttrValues) -> dict[Key, int | None]:
        """Append the nodes of a graph, typed. Gives its outputs. Raises TiduError naming the node."""
        builder, types = self.builder, self.types
        position = {i.key: k for k, i in enumerate(builder.inputs)}
        ids = [position[key] for key in source.inputs]  # of what the graph numbers by itself
        plain: dict[tuple[object, ...], int] = {}  # the cases of nodes without attrs
        for number, node in enumerate(source.nodes):
            try:
                check_references("it", node.inputs, len(ids))
                args = [ids[k] for k in node.inputs]
                operands = [types[a] for a in args]
                code = None if node.attrs else plain.get((node.op, *operands))
                if code is None:
                    parsed = primitives.parse_attrs(node.op, substituted(node.attrs, attrs))
                    code = builder.cases.intern(primitives.case(node.op, parsed, None, operands))
                    if not node.attrs:
                        plain[node.op, *operands] = code
            except TiduError as error:
                raise TypeRuleError(f"node {number} ({node.op}): {error}") from None
            ids += range(len(types), len(types) + builder.cases.n_results[code])
            types += builder.cases[code].results
            builder.append(code, args)
        for key, value in source.outputs:
            check_references(f"output '{key}'", [] if value is None else [value], len(ids))
        return {key: None if value is None else ids[value] for key, value in source.outputs}

    def append_conversion(self, value: int, natural: Type, primitives: PrimitiveSet, *, cotangent: bool) -> int:
        """Append what makes of a tangent or cotangent of another type that is admitted one of the natural type."""
        trace = Trace(primitives, self.builder.cases)
        given = trace.source(self.types[value], linear=False)
        found = converted_cotangent(given, natural) if cotangent else converted(given, natural)
        return Appender(self.builder).append(trace.template(1, [found]), [value])[0]

    def graph(self, definition: OpDefinition, kind: str, outputs: Iterable[Output]) -> Graph:
        """The finished graph."""
        return self.builder.build(f"{kind} of {definition.name}", outputs)


def check_references(place: str, references: Sequence[int], n_values: int) -> None:
    """Raises UnknownNameError for a local id that is not there."""
    for k in references:
        if not 0 <= k < n_values:
            raise UnknownNameError(f"{place}: refers to value {k}, but only {n_values} values come before it")
