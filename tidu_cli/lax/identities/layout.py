"""How results lie in memory where NumPy computes them, as far as readers can tell by how they round.

Sums of several axes and products of matrices add up in an order that depends on it. So what stands for a node must lie as that did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.builtin import FAMILIES
from tidu_cli.lax.identities.constants import MOVING

UNKNOWN, ORDERED, ROW_MAJOR = range(3)
"""Nothing is known; axes in order, with gaps or repeated; row-major, one element beside the other."""

_ELEMENTWISE = frozenset(
    op for family, ops in FAMILIES.items() if family.startswith("elementwise.") for op in ops.split()
) - {"real", "imag", "bitcast_convert_type"} | {"convert_element_type"}
_FRESH = frozenset({"pad", "constant", "concatenate", "reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "dynamic_slice"})
_MOVING = MOVING | {"pad", "concatenate", "split", "gather", "dynamic_slice", "real", "imag", "optimization_barrier", "stop_gradient"}


def layout(case: Case, operands: Sequence[int]) -> int:
    """How the results of a case lie, from how its operands do."""
    least = min(operands, default=ROW_MAJOR)
    if all(isinstance(t, TensorType) and not t.rank for t in case.results):
        return ROW_MAJOR
    if case.op in _ELEMENTWISE or case.op in _FRESH:
        return ROW_MAJOR if least else UNKNOWN
    if case.op in ("reshape", "expand_dims", "squeeze", "copy"):
        return least
    if case.op == "dot_general":
        (_, (batch, _)) = cast(Any, case.attrs).dimension_numbers
        return ROW_MAJOR if least and not batch else UNKNOWN
    if case.op == "broadcast_in_dim":
        return least and ORDERED
    if case.op == "iota":
        return ROW_MAJOR if len(cast(Any, case.attrs).shape) == 1 else ORDERED
    if case.op in ("slice", "split"):
        return ROW_MAJOR if least == ROW_MAJOR and _is_stretch(case) else least and ORDERED
    return UNKNOWN


def passes_on(case: Case) -> bool:
    """Whether a case rounds alike however its operands lie, and at most its result lies otherwise."""
    return case.op in _ELEMENTWISE or case.op in _MOVING or not case.operands


def _is_stretch(case: Case) -> bool:
    """Whether a slice is of neighbours: of the first axis that has more than one element."""
    attrs, operand = cast(Any, case.attrs), cast(TensorType, case.operands[0])
    if any(stride > 1 for stride in getattr(attrs, "strides", None) or ()):
        return False
    first = next((k for k, n in enumerate(operand.shape) if n > 1), 0)
    return all(
        cast(TensorType, t).shape[k + 1 :] == operand.shape[k + 1 :] for t in case.results for k in range(first, first + 1)
    )
