"""Why a derivative does not exist at a point: what primitives say of the values that they take and give there."""

from __future__ import annotations

from tidu_cli.checking.numeric.arrays import Arrays, together
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Document, Output
from tidu_cli.graph.keys import Key
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.plans.program import compile_graph
from tidu_cli.transforms.linking.inline import inline


def reasons(whole: Document, primitives: PrimitiveSet, x: Arrays) -> list[str]:
    """What nodes of a document of one graph say of its values at x: each with the node, as messages name it."""
    graph = inline(whole, primitives=primitives).head
    asked = [node for node, (case, _) in enumerate(graph.nodes()) if primitives[case.op].rules.singular]
    if not asked:
        return []
    import numpy as np

    values: dict[int, Key] = {}
    for node in asked:
        first = graph.firsts[node]
        for value in (*graph.operands(node), *range(first, first + len(graph.case(node).results))):
            values.setdefault(value, Key(f"value{value}"))
    outputs = tuple(Output(key, value, graph.type_of(value)) for value, key in values.items())
    program = compile_graph(replace(graph, outputs=outputs), primitives)
    arrays = dict(zip(values, program.run({i.key: together(x, i.key, i.type) for i in program.inputs}), strict=True))
    found = []
    for node in asked:
        case, first = graph.case(node), graph.firsts[node]
        rule = primitives[case.op].rules.singular
        assert rule is not None
        operands = [np.asarray(arrays[value]) for value in graph.operands(node)]
        results = [np.asarray(arrays[first + k]) for k in range(len(case.results))]
        with np.errstate(all="ignore"):
            text = rule(np, case.attrs, operands, results)
        if text:
            found.append(f"{graph.describe(node)}: {text}")
    return found
