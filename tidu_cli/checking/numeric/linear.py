"""linear graphs, tried: at zero they are exactly zero, and they are additive in their inputs.

Readers see that each node is linear by what its primitive says of itself. Here that is put to the test, as a primitive of a package
may say what is not so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidu_cli.checking.numeric.arrays import leaf_types
from tidu_cli.checking.numeric.laws import EXACT, Verdict, least_precision
from tidu_cli.checking.numeric.maps import compiled
from tidu_cli.checking.numeric.quotients import cast, relative
from tidu_cli.checking.numeric.sampling import Drawing, draw_all, shown
from tidu_cli.errors import StepsError
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.limits import limited_steps
from tidu_cli.rules.vocabulary import PrimitiveSet


def linear_verdicts(
    document: Document, primitives: PrimitiveSet, *, given: Mapping[Key, Any] | None = None, seed: int = 0
) -> list[Verdict]:
    """The worst verdicts on the linear graphs of a document: *zero*, L 0 = 0, and *additive*, L (2 a - 3 b) = 2 L a - 3 L b.

    None if it has no such graph. Inputs are as `given`, or drawn. Raises what materialize raises.
    """
    worst: dict[str, Verdict] = {}
    for g, graph in enumerate(document.graphs):
        if graph.linear is None or all(o.value is None for o in graph.outputs):
            continue
        graphs = document.graphs[: g + 1]
        declared = {i.key for other in graphs for i in other.inputs}
        part = replace(document, graphs=graphs, bindings=tuple(b for b in document.bindings if b.key in declared))
        try:
            with limited_steps(None, drawn=True):
                verdicts = _of_head(part, primitives, given or {}, seed)
        except StepsError as error:
            verdicts = [Verdict(law, None, 0.0, why=(str(error),)) for law in ("zero", "additive")]
        for verdict in verdicts:
            worst[verdict.law] = min(worst.get(verdict.law, verdict), verdict, key=lambda v: v.ok)
    return [*worst.values()]


def _of_head(document: Document, primitives: PrimitiveSet, given: Mapping[Key, Any], seed: int) -> list[Verdict]:
    import numpy as np

    f = compiled(document, primitives)
    free = [i for i in f.program.inputs if i.key in {own.key for own in document.head.inputs}]
    types = {p: t for i in free for p, t in leaf_types(i.key, i.type).items()}
    results = [t for o in f.outputs for _, t in leaf_types(o.key, o.type).items()]
    bound = EXACT[least_precision([*types.values(), *results])]
    rng = np.random.default_rng([seed, len(document.graphs)])
    x = Drawing(f.program.inputs, given, {}, {}, seed).finite_point(f, rng)
    if x is None or len(free) < len(document.head.inputs):  # what is bound cannot be moved
        return [Verdict("zero", None, 0.0), Verdict("additive", None, bound)]
    a, b = draw_all(rng, types), draw_all(rng, types)
    at_zero = f(x | {p: np.zeros_like(t) for p, t in a.items()})
    of_a, of_b = f(x | a), f(x | b)
    mixed = f(x | {p: cast(2 * a[p] - 3 * b[p], a[p]) for p in a})
    verdicts = [
        Verdict("zero", relative(at_zero, {p: np.zeros_like(y) for p, y in at_zero.items()}), 0.0),
        Verdict("additive", relative(mixed, {p: 2 * of_a[p] - 3 * of_b[p] for p in mixed}), bound),
    ]
    return [v if v.ok else replace(v, at=shown(x, f.program.inputs)) for v in verdicts]
