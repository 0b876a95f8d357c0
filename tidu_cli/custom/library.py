"""Sets of primitives with custom ones: what definitions must be, whatever the types that they are used at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from graphlib import CycleError, TopologicalSorter

from tidu_cli.custom.definitions import CustomAttrs, OpDefinition, SourceNode, substituted
from tidu_cli.custom.graphs import check_references, require_written_out, sizes, typed_graph
from tidu_cli.custom.packages import refuse_clash
from tidu_cli.custom.patterns import instance, variables_of
from tidu_cli.custom.rules import JVP_SUFFIX, Sets, custom_primitives
from tidu_cli.errors import PluginError, TiduError, TypeRuleError, UnknownNameError, did_you_mean
from tidu_cli.frozen import replace
from tidu_cli.rules.vocabulary import PrimitiveSet

MAX_NESTING = 64
"""How deep definitions may nest, ops that are made of ops: rules and types recurse as deep."""


def extended(base: PrimitiveSet, definitions: Sequence[OpDefinition]) -> PrimitiveSet:
    """`base` with custom operations; one that it has already, in the same words, is no second one.

    Raises UnknownNameError and TypeRuleError for definitions that cannot be, and PluginError.
    """
    new = [d for d in definitions if not _is_known(base, d)]
    if not new:
        return base
    every = (*base.definitions, *new)
    sets = Sets()
    custom = {p.name: p for d in every for p in custom_primitives(d, sets)}
    sets.whole = replace(base, primitives={**base.primitives, **custom}, definitions=every, extended=extended)
    for definition in new:
        _check_names(definition, sets.whole)
    counted = sizes(every, _check_uses(every))
    sets.whole = replace(sets.whole, require_written_out=partial(require_written_out, every, counted))
    for definition in new:
        _check_concrete(definition, sets.whole)
    return sets.whole


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
        taken, given = map(dict.fromkeys, definition.ports_of(kind))
        for key in graph.inputs:
            if key not in taken:
                known = list(map(str, taken))
                raise UnknownNameError(f"{place} takes '{key}'{did_you_mean(str(key), known)} (it may take {', '.join(known)})")
        outputs = dict.fromkeys(key for key, _ in graph.outputs)
        if kind == "transpose" and not given:
            first = next(iter(definition.inputs))
            raise UnknownNameError(f"{place} gives no cotangent of an input, such as '{first.cotangent(1)}'")
        for key in given:
            if key not in outputs:
                way_out = "" if kind == "forward" else "; write null if it is zero"
                raise UnknownNameError(f"{place} does not give '{key}'{way_out}")
        for key in outputs:
            if key not in given:
                raise UnknownNameError(f"{place} gives '{key}', which is none of {', '.join(map(str, given))}")
        n_values: int | None = len(graph.inputs)
        for number, node in enumerate(graph.nodes):
            try:
                refuse_clash(node.op, primitives.plugins)
                primitives[node.op]
            except (UnknownNameError, PluginError) as error:
                raise type(error)(f"{place}, node {number}: {error}") from None
            if n_values is not None:
                check_references(f"{place}, node {number} ({node.op})", node.inputs, n_values)
                n_results = _n_results(definition, node, primitives)
                n_values = None if n_results is None else n_values + n_results
        for key, value in graph.outputs:
            if value is not None and n_values is not None:
                check_references(f"{place}, output '{key}'", [value], n_values)


def _n_results(definition: OpDefinition, node: SourceNode, primitives: PrimitiveSet) -> int | None:
    """How many results a node has; None where its attrs are wrong, wait for those of the op, or hold graphs."""
    if primitives[node.op].domain.attrs.graphs:  # which may be of ops that are not looked at yet
        return None
    try:
        attrs = primitives.parse_attrs(node.op, substituted(node.attrs, definition.attrs))
    except TiduError:
        return None
    return primitives[node.op].domain.n_results(attrs, len(node.inputs))


def _check_uses(definitions: Sequence[OpDefinition]) -> Iterable[str]:
    """Whether no op is defined by itself, nor by more than MAX_NESTING ops of one another. Gives their names, each after its uses.

    Only what an op stands for counts: its `forward`, and of a derivative `backward`. A `jvp` may use the op itself, and others that
    use it (sin and cos): each order of differentiation goes through it once.
    """
    uses: dict[str, list[str]] = {}
    for d in definitions:
        uses[d.name] = list(dict.fromkeys(d.graphs["forward"].ops))
        if "backward" in d.graphs:
            uses[d.name + JVP_SUFFIX] = list(dict.fromkeys([d.name, *d.graphs["backward"].ops]))
    try:
        order = list(TopologicalSorter({name: [op for op in ops if op in uses] for name, ops in uses.items()}).static_order())
    except CycleError as error:
        names: list[str] = error.args[1][:0:-1]  # each uses the next, and the last the first
        start = names.index(next(name for name in uses if name in names))
        first, *rest = [*names[start:], *names[:start]]
        base = first.removesuffix(JVP_SUFFIX)
        kind = "forward" if base == first else "backward"
        cycle = " of ".join([*rest, first])
        raise TypeRuleError(f"op '{base}': its {kind} is of {cycle}; an op may not be defined by itself") from None
    depth: dict[str, int] = {}
    for name in order:
        depth[name] = 1 + max((depth[op] for op in uses[name] if op in uses), default=0)
        if depth[name] > MAX_NESTING:
            raise TypeRuleError(f"op '{name}': it is of ops of ops, more than {MAX_NESTING} deep; write some of them out")
    return order


def _check_concrete(definition: OpDefinition, primitives: PrimitiveSet) -> None:
    """Type the graphs of an op whose types have no variables and whose attrs have defaults. Others wait for their use."""
    patterns = definition.inputs.values()
    if any(map(variables_of, patterns)):
        return
    try:
        parsed = primitives.parse_attrs(definition.name, {})
    except TypeRuleError:
        return
    assert isinstance(parsed, CustomAttrs)
    for kind in definition.graphs:
        try:
            typed_graph(definition, kind, primitives, parsed, tuple(instance(pattern, {}) for pattern in patterns))
        except TiduError as error:
            raise TypeRuleError(f"op '{definition.name}': {error}") from None
