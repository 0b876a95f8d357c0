"""Sets of primitives with own ones: what definitions must be, whatever the types that they are used at."""

from __future__ import annotations

from collections.abc import Sequence

from tidu_cli.errors import TiduError, TypeRuleError, UnknownNameError, did_you_mean
from tidu_cli.primitives.contract import PrimitiveSet
from tidu_cli.primitives.definitions import OpDefinition, SourceNode, check_references
from tidu_cli.primitives.own_attrs import OwnAttrs, substituted
from tidu_cli.primitives.own_rules import own_primitives


def extended(base: PrimitiveSet, definitions: Sequence[OpDefinition]) -> PrimitiveSet:
    """`base` with own primitives; one that it has already, in the same words, is no second one.

    Raises UnknownNameError and TypeRuleError for definitions that cannot be.
    """
    new = [d for d in definitions if not _is_known(base, d)]
    if not new:
        return base
    found: list[PrimitiveSet] = []
    every = (*base.definitions, *new)
    own = {p.name: p for d in every for p in own_primitives(d, lambda: found[0])}
    found.append(PrimitiveSet({**base.primitives, **own}, base.add, base.constant, every))
    for definition in new:
        _check_names(definition, found[0])
    _check_no_recursion(every)
    for definition in new:
        _check_concrete(definition, found[0])
    return found[0]


def _is_known(base: PrimitiveSet, definition: OpDefinition) -> bool:
    if definition.name not in base.primitives:
        return False
    known = base.definition_of(definition.name)
    if known is None:
        raise TypeRuleError(f"op '{definition.name}': there is a primitive of this name already; choose another")
    if known.to_data() != definition.to_data():
        where = known.origin or "the document"
        raise TypeRuleError(f"op '{definition.name}': {where} defines an op of this name otherwise; rename one of them")
    return True


def _check_names(definition: OpDefinition, primitives: PrimitiveSet) -> None:
    """Whether the definition's graphs can be: the ops they use, what they take and give, and their references."""
    for kind, graph in definition.graphs.items():
        place = f"op '{definition.name}': its {kind}"
        taken, given = definition.ports_of(kind)
        for key in graph.inputs:
            if key not in taken:
                known = list(map(str, taken))
                raise UnknownNameError(f"{place} takes '{key}'{did_you_mean(str(key), known)} (it may take {', '.join(known)})")
        outputs = [key for key, _ in graph.outputs]
        for key in given:
            if key not in outputs:
                raise UnknownNameError(f"{place} does not give '{key}'; write null if it is zero")
        for key in outputs:
            if key not in given:
                raise UnknownNameError(f"{place} gives '{key}', which is none of {', '.join(map(str, given))}")
        n_values: int | None = len(graph.inputs)
        for number, node in enumerate(graph.nodes):
            try:
                primitives[node.op]
            except UnknownNameError as error:
                raise UnknownNameError(f"{place}, node {number}: {error}") from None
            if n_values is not None:
                check_references(f"{place}, node {number} ({node.op})", node.inputs, n_values)
                n_results = _n_results(definition, node, primitives)
                n_values = None if n_results is None else n_values + n_results
        for key, value in graph.outputs:
            if value is not None and n_values is not None:
                check_references(f"{place}, output '{key}'", [value], n_values)


def _n_results(definition: OpDefinition, node: SourceNode, primitives: PrimitiveSet) -> int | None:
    """How many results a node has; None where its attrs are wrong, or wait for those of the op."""
    try:
        attrs = primitives.parse_attrs(node.op, substituted(node.attrs, definition.attrs))
    except TiduError:
        return None
    return primitives[node.op].n_results(attrs, len(node.inputs))


def _check_no_recursion(definitions: Sequence[OpDefinition]) -> None:
    uses = {d.name: [n.op for n in d.graphs["forward"].nodes] for d in definitions}
    state: dict[str, int] = {}
    for start in uses:
        path = [(start, iter(uses[start]))]
        if state.get(start):
            continue
        state[start] = 1
        while path:
            name, rest = path[-1]
            step = next((op for op in rest if op in uses and state.get(op) != 2), None)
            if step is None:
                state[name] = 2
                path.pop()
            elif state.get(step) == 1:
                names = [n for n, _ in path]
                cycle = " of ".join([*names[names.index(step) + 1 :], step])
                raise TypeRuleError(f"op '{step}': its forward is of {cycle}; an op may not be defined by itself")
            else:
                state[step] = 1
                path.append((step, iter(uses[step])))


def _check_concrete(definition: OpDefinition, primitives: PrimitiveSet) -> None:
    """Type the graphs of an op whose types have no variables and whose attrs have defaults. Others wait for their use."""
    types = [p.pattern.concrete for p in definition.inputs]
    attrs = primitives[definition.name].attrs
    try:
        parsed = primitives.parse_attrs(definition.name, {})
    except TypeRuleError:
        return
    known = tuple(t for t in types if t is not None)
    if len(known) < len(types):
        return
    assert issubclass(attrs, OwnAttrs) and isinstance(parsed, OwnAttrs)
    for kind in definition.graphs:
        try:
            definition.body(kind, primitives, parsed, known)
        except TiduError as error:
            raise TypeRuleError(f"op '{definition.name}': {error}") from None
