"""Which cases the machine runs by itself."""

from __future__ import annotations

from functools import lru_cache

from tidu_cli.adapters.native.arrays import FOLDS, MOST_INSTRUCTIONS, MOVES
from tidu_cli.adapters.native.layout import MOST_ELEMENTS
from tidu_cli.adapters.native.loops import LOOPS
from tidu_cli.adapters.native.selecting import elementwise, is_native
from tidu_cli.graph.closed import closed_graphs
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import TensorType, Type


@lru_cache(maxsize=2**12)
def is_own(case: Case) -> bool:
    """Whether a case takes instructions of the machine alone; of loops and branches, whether their graphs do."""
    types = (*case.operands, *case.results)
    if not all(map(is_native, types)):
        return False
    largest = max([_size(t) for t in types], default=0)
    if largest > MOST_ELEMENTS:
        return False
    if case.op in LOOPS:
        return all(is_own(inner) for graph in closed_graphs(case.attrs) for inner in graph.graph.cases.cases)
    if case.op in MOVES or case.op == "constant":
        return True
    return largest <= MOST_INSTRUCTIONS and (case.op in FOLDS or elementwise(case) is not None)


def _size(type_: Type | None) -> int:
    return type_.size if isinstance(type_, TensorType) else 0
