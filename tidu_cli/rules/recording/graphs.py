"""Graphs within rules: spliced into the recording of a rule, made of one, and evaluated.

Operations that are defined by graphs are derived by the transforms. What these give is a document, whose nodes a rule emits as its
own: `spliced` goes over them. The way back, from what a rule emits to a graph, is `recorded`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import cast

from tidu_cli.errors import MissingRuleError
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Case, CaseTable, Document, Graph, Input, Output, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import Type
from tidu_cli.graph.walk import backwards, forwards
from tidu_cli.rules.recording.trace import Template, Trace
from tidu_cli.rules.terms import Recorder, Term
from tidu_cli.rules.vocabulary import PrimitiveSet


def spliced(trace: Recorder, document: Document, sources: Mapping[Key, Term]) -> list[Term | None]:
    """Emit the nodes of a document's graphs for these sources by input key. Gives the head's outputs, None for zeros.

    Nodes are linear where they depend on a source that is. An input without a source is one whose value is not there: what depends
    on it is left out. Raises MissingRuleError where an output does.
    """
    cases = document.cases
    numbers: dict[tuple[int, ...], int] = {}
    values: list[list[Term | None]] = []
    for graph in document.graphs:
        found: list[Term | None] = [sources.get(i.key) for i in graph.inputs]
        outside = [values[g][v] for g, v in graph.external]
        for code, args, _, _ in forwards(graph, graph.args):
            operands = [found[a] if a >= 0 else outside[~a] for a in args]
            if None in operands:
                found += [None] * cases.n_results[code]
                continue
            terms = cast(list[Term], operands)
            key = (code, *[t.linear for t in terms])
            number = numbers.get(key)
            if number is None:
                mask = tuple([t.linear for t in terms])
                number = numbers[key] = trace.cases.intern(replace(cases[code], mask=mask if any(mask) else None))
            found += trace.append(number, terms)
        values.append(found)
    results: list[Term | None] = []
    for output in document.head.outputs:
        value = output.value
        results.append(None if value is None else found[value] if value >= 0 else outside[~value])
        if value is not None and results[-1] is None:
            raise MissingRuleError(f"its '{output.key}' depends on a value that is not there")
    return results


def stamped(trace: Recorder, cases: CaseTable, template: Template, sources: Sequence[Term | None]) -> list[Term | None]:
    """Emit the nodes of a template, none of them as linear, for these sources; None where it reads none. Gives its results."""
    values = [*sources]
    for node in (*template.closed, *template.nodes):
        number = trace.cases.intern(replace(cases[node.code], mask=None))
        values += trace.append(number, cast(list[Term], [values[slot] for slot in node.reads]))
    return [None if slot is None else values[slot] for slot in template.results]


def emitted(trace: Recorder, graph: Graph, known: Mapping[int, Term], wanted: Sequence[int]) -> list[Term]:
    """Emit those nodes of a closed graph that these values of it need, where some are known. Gives the terms of the values."""
    nodes = nodes_for(graph, known, wanted)
    found = dict(known)
    for node, (code, args, first, end) in enumerate(forwards(graph, graph.args)):
        if node in nodes:
            case = graph.cases[code]
            results = trace.apply(case.op, case.attrs, [found[a] for a in args])
            found.update((v, t) for v, t in zip(range(first, end), results, strict=True) if v not in known)
    return [found[v] for v in wanted]


def nodes_for(graph: Graph, known: Container[int], wanted: Iterable[int]) -> dict[int, Sequence[int]]:
    """The nodes of a closed graph that these values need where some are known, with what they read."""
    needed = {v for v in wanted if v not in known}
    nodes: dict[int, Sequence[int]] = {}
    node = graph.n_nodes
    for _, args, first, end in backwards(graph, graph.args):
        node -= 1
        if not needed.isdisjoint(range(first, end)):
            nodes[node] = args
            needed.update(a for a in args if a not in known)
    return nodes


def recorded(trace: Trace, name: str, inputs: Sequence[Input], outputs: Sequence[Output]) -> Graph:
    """A recording whose sources are these inputs, as a graph: its values have the numbers of their slots."""
    reads = column(slot for node in trace.nodes for slot in node.reads)
    return Graph(name, tuple(inputs), tuple(outputs), trace.cases, column(node.code for node in trace.nodes), reads)


def as_output(name: str, term: Term) -> Output:
    """A value of a recording as an output of its graph."""
    return Output(Key(name), term.slot, term.value_type)


def expanded(primitives: PrimitiveSet, case: Case) -> Graph:
    """What a case of a custom operation stands for, one level deep."""
    rule = primitives[case.op].rules.inlined
    assert rule is not None
    trace = Trace(primitives, CaseTable())
    inputs = [Input(Key(f"x{k}"), cast(Type, t)) for k, t in enumerate(case.operands)]
    results = rule(case.attrs, [trace.source(i.type, linear=False) for i in inputs])
    return recorded(trace, case.op, inputs, [as_output(f"y{k}", t) for k, t in enumerate(results)])
