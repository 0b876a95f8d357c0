"""What a primitive's kernel computes, against what else is said of its results: their types, its definition, batches of it.

- *types*: results have the types that the type rule gives;
- *definition*: they are those of the graph of other operations that it is defined as;
- *batch*: three applications at once are three applications.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from tidu_cli.checking.numeric.laws import EXACT, Verdict, least_precision
from tidu_cli.checking.numeric.maps import Map
from tidu_cli.checking.numeric.quotients import relative
from tidu_cli.checking.numeric.sampling import (
    Arrays,
    Drawing,
    apart,
    example_cases,
    leaf_types,
    of_operand,
    one_node_document,
    together,
)
from tidu_cli.errors import MissingRuleError
from tidu_cli.graph.graph import Case, Graph
from tidu_cli.graph.types import leaves, storage_dtype
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.rules.catalogue import Example
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.recording.trace import expanded
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.plans.program import compile_graph
from tidu_cli.transforms.batch import vectorized

_ITEMS = 3


def kernel_verdicts(primitive: Primitive, primitives: PrimitiveSet, dtypes: Container[str]) -> list[Verdict]:
    """The worst verdict on each of these over a primitive's examples, in those of its dtypes."""
    worst: dict[str, Verdict] = {}
    for example, case in example_cases(primitives, primitive):
        arrays = [leaf for t in (*case.operands, *case.results) if t is not None for _, leaf in leaves(t)]
        if all(not t.inexact or storage_dtype(t.dtype) in dtypes for t in arrays):
            for verdict in _verdicts(example, case, primitives):
                worst[verdict.law] = max(worst.get(verdict.law, verdict), verdict, key=lambda v: v.strain)
    return list(worst.values())


def _verdicts(example: Example, case: Case, primitives: PrimitiveSet) -> Iterator[Verdict]:
    import numpy as np

    graph = one_node_document(case).head
    intervals = {i.key: of_operand(example.within, k) for k, i in enumerate(graph.inputs)}
    diagonals = {i.key: of_operand(example.diagonals, k) for k, i in enumerate(graph.inputs)}
    drawing, rng = Drawing(graph.inputs, {}, intervals, diagonals, 0), np.random.default_rng(0)
    f = Map(compile_graph(graph, primitives))
    points = [x for _ in range(_ITEMS) if (x := drawing.finite_point(f, rng)) is not None]
    if len(points) < _ITEMS:
        return
    types = {p: t for o in graph.outputs for p, t in leaf_types(o.key, o.type).items()}
    bound = EXACT[least_precision(types.values())] if any(t.inexact for t in types.values()) else 0.0
    values = [f(x) for x in points]
    yield Verdict("types", 0.0 if _types_agree(graph, case, primitives, points[0]) else 1.0, 0.0)
    if primitives[case.op].evaluation.definition is not None:
        defined = Map(compile_graph(expanded(primitives, case), primitives))
        yield Verdict("definition", relative(values[0], defined(points[0])), bound, points[0])
    if primitives[case.op].rules.batch is not None:
        yield Verdict("batch", _batch_error(graph, primitives, points, values), bound)


def _types_agree(graph: Graph, case: Case, primitives: PrimitiveSet, x: Arrays) -> bool:
    """Whether the kernel itself gives what is declared: programs may convert it."""
    import numpy as np

    kernel = primitives[case.op].evaluation.kernel(np, case.attrs, case.operands, case.results)  # type: ignore[arg-type]
    values = kernel(*[together(x, i.key, i.type) for i in graph.inputs])
    results = apart(graph.outputs, values if len(graph.outputs) != 1 else (values,))
    due = {p: t for o in graph.outputs for p, t in leaf_types(o.key, o.type).items()}
    return all((y.dtype, y.shape) == (numpy_dtype(np, due[p].dtype), due[p].shape) for p, y in results.items())


def _batch_error(graph: Graph, primitives: PrimitiveSet, points: list[Arrays], values: list[Arrays]) -> float | None:
    import numpy as np

    try:
        batched, _ = vectorized(graph, [i.key for i in graph.inputs], _ITEMS, primitives)
    except MissingRuleError:
        return None

    def stacked(some: list[Arrays]) -> Arrays:
        return {p: np.stack([a[p] for a in some]) for p in some[0]}

    return relative(stacked(values), Map(compile_graph(batched, primitives))(stacked(points)))
