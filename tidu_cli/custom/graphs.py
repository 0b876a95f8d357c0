"""The graphs of a definition at types and attrs: typed, and found to be what they should.

Each is a closed graph whose inputs are all that a graph of its kind may take, and is differentiated as any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidu_cli.custom.attrs import AttrValues, CustomAttrs, substituted
from tidu_cli.custom.definitions import PASS, AttrsReader, OpDefinition, SourceGraph
from tidu_cli.custom.patterns import Pattern, Variables, fits, match_all
from tidu_cli.errors import MissingRuleError, TiduError, TypeRuleError, UnknownNameError, placed
from tidu_cli.graph.columns.garbage_collection import no_collection
from tidu_cli.graph.graph import CaseTable, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import Type, tangent_type
from tidu_cli.rules.contract import ValueTypes
from tidu_cli.rules.recording.graphs import recorded
from tidu_cli.rules.recording.linearity import require_linear
from tidu_cli.rules.recording.trace import Trace
from tidu_cli.rules.tangents.conversion import converted, converted_cotangent
from tidu_cli.rules.tangents.types import admits
from tidu_cli.rules.terms import Term
from tidu_cli.rules.vocabulary import PrimitiveSet


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
    variables = match_all(definition.inputs, operands)
    types: dict[Key, Type] = dict(zip(definition.inputs, operands, strict=True))
    if kind != "forward":
        forward = typed_graph(definition, "forward", primitives, attrs, operands)
        types |= {o.key: o.type for o in forward.outputs}
        for key, type_ in list(types.items()):
            types[key.tangent(PASS)] = types[key.cotangent(PASS)] = tangent_type(type_)
    taken, due = definition.ports_of(kind)
    trace = Trace(primitives, CaseTable())
    inputs = [Input(key, types[key]) for key in taken]
    sources = {i.key: trace.source(i.type, linear=False) for i in inputs}
    try:
        found = _emitted(trace, definition.graphs[kind], definition.read_attrs, attrs.values, sources)
    except TiduError as error:
        raise TypeRuleError(f"its {kind}: {error}") from None
    if kind == "forward":
        outputs = [_output(key, pattern, found[key], variables) for key, pattern in definition.outputs.items()]
    else:
        outputs = [_natural_output(kind, key, found[key], types) for key in due]
    graph = recorded(trace, f"{kind} of {definition.name}", inputs, outputs)
    if kind != "forward":
        n_moving = len(definition.inputs if kind == "jvp" else definition.outputs)
        active = [k >= len(taken) - n_moving for k in range(len(taken))]
        _check_linear(kind, primitives, graph, active, "tangents" if kind == "jvp" else "cotangents")
    if kind == "transpose":
        names = [key.name for key, is_linear in zip(definition.inputs, definition.linear_in, strict=True) if is_linear]
        _check_linear("forward", primitives, forward, definition.linear_in, f"input{'s' * (len(names) > 1)} {', '.join(names)}")
    return graph


def _emitted(
    trace: Trace, source: SourceGraph, read_attrs: AttrsReader, attrs: AttrValues, sources: Mapping[Key, Term]
) -> dict[Key, Term | None]:
    """The outputs of a graph, whose nodes are recorded. Raises TiduError naming the node."""
    values = [sources[key] for key in source.inputs]
    plain: dict[tuple[object, ...], int] = {}  # the cases of nodes without attrs
    for number, node in enumerate(source.nodes):
        try:
            check_references("it", node.inputs, len(values))
            operands = [values[k] for k in node.inputs]
            kind = (node.op, *[t.known_type for t in operands])
            if kind in plain and not node.attrs:
                values += trace.append(plain[kind], operands)
                continue
            values += trace.apply(node.op, read_attrs(trace.primitives, node.op, substituted(node.attrs, attrs)), operands)
            if not node.attrs:
                plain[kind] = trace.nodes[-1].code
        except TiduError as error:
            raise TypeRuleError(placed(f"node {number} ({node.op})", error)) from None
    for key, value in source.outputs:
        check_references(f"output '{key}'", [] if value is None else [value], len(values))
    return {key: None if value is None else values[value] for key, value in source.outputs}


def _output(key: Key, pattern: Pattern, found: Term | None, variables: Variables) -> Output:
    """An output of `forward`. Raises TypeRuleError for one that is zero, or of a type that does not fit."""
    if found is None:
        raise TypeRuleError(f"its forward gives null for the output '{key.name}'; write the zeros as a value")
    if not fits(pattern, found.value_type, variables):
        raise TypeRuleError(f"its forward gives '{key.name}' the type {found.value_type}, which does not fit {pattern}")
    return Output(key, found.slot, found.value_type)


def _natural_output(kind: str, key: Key, found: Term | None, types: Mapping[Key, Type]) -> Output:
    """A tangent or cotangent of its natural type, made of any that is admitted. Raises TypeRuleError for others."""
    if found is not None and found.value_type != types[key]:
        if not admits(types[Key(key.name)], found.value_type):
            raise TypeRuleError(f"its {kind} gives '{key}' the type {found.value_type}, which must be {types[key]}")
        found = (converted if kind == "jvp" else converted_cotangent)(found, types[key])
    return Output(key, None if found is None else found.slot, types[key])


def _check_linear(kind: str, primitives: PrimitiveSet, graph: Graph, active: Sequence[bool], what: str) -> None:
    try:
        require_linear(primitives, graph, active, what)
    except MissingRuleError as error:
        raise TypeRuleError(f"its {kind}: {error}") from None


def check_references(place: str, references: Sequence[int], n_values: int) -> None:
    """Raises UnknownNameError for a local id that is not there."""
    for k in references:
        if not 0 <= k < n_values:
            raise UnknownNameError(f"{place}: refers to value {k}, but only {n_values} values come before it")
