"""How results lie in memory where NumPy computes them, as far as readers can tell by how they round.

Sums over several axes and products of matrices add up in an order that depends on it. So what stands for a node has to lie as that
did, unless no reader of it sums up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.identities.constants import MOVING
from tidu_cli.lax.vocabulary import FAMILIES


class Layout(Frozen):
    """How an array lies: in which order its axes do, and whether its elements fill a stretch of memory without gaps.

    `order` is "C" for row-major, empty where all elements are one in memory, and otherwise an object for each that is another, or
    not known.
    """

    order: object = field(default_factory=object)
    dense: bool = False


ROW_MAJOR, ORDERED, REPEATED = Layout("C", True), Layout("C"), Layout("")

_ELEMENTWISE = frozenset(op for family, ops in FAMILIES.items() if family.startswith("elementwise.") for op in ops.split())
_ELEMENTWISE = _ELEMENTWISE - {"real", "imag", "bitcast_convert_type"} | {"convert_element_type"}
_FRESH = frozenset({"pad", "constant", "concatenate", "reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "dynamic_slice"})
_MOVING = MOVING | {
    "pad",
    "concatenate",
    "split",
    "gather",
    "dynamic_slice",
    "real",
    "imag",
    "optimization_barrier",
    "stop_gradient",
}


def layout(case: Case, operands: Sequence[Layout]) -> Layout:
    """How the results of a case lie, from how its operands do."""
    in_order, attrs, op = all(x.order in ("C", "") for x in operands), cast(Any, case.attrs), case.op
    if not all(isinstance(t, TensorType) for t in case.results):
        return Layout()
    rank = max(len(cast(TensorType, t).shape) for t in case.results)
    if not rank or op == "constant":
        return ROW_MAJOR
    if op in _ELEMENTWISE:
        orders = {x.order for x in operands} - {""} or {"C"}
        return Layout(orders.pop(), True) if len(orders) == 1 else Layout(dense=True)
    if op == "dot_general":
        return ROW_MAJOR if in_order and not attrs.dimension_numbers[1][0] else Layout(dense=True)
    if op in _FRESH:
        return ROW_MAJOR if in_order or rank == 1 or op == "pad" else Layout(dense=True)
    if op == "iota":
        return ROW_MAJOR if rank == 1 else ORDERED
    if op == "broadcast_in_dim" and not cast(TensorType, case.operands[0]).rank:
        return REPEATED
    return _moved(case, *operands[:1]) if op in MOVING or op == "split" else Layout()


def _moved(case: Case, x: Layout) -> Layout:
    """How what is moved lies."""
    if case.op == "copy" or (x is REPEATED and case.op != "slice"):
        return x
    if x.order != "C" or case.op == "rev":
        return Layout()
    if case.op == "transpose":
        shape = cast(TensorType, case.operands[0]).shape
        axes = [k for k in cast(Any, case.attrs).permutation if shape[k] != 1]
        return x if axes == sorted(axes) else Layout()
    if case.op in ("slice", "split"):
        return ROW_MAJOR if x.dense and _is_stretch(case) else ORDERED
    return x if case.op != "broadcast_in_dim" else ORDERED


def passes_on(case: Case) -> bool:
    """Whether a case rounds alike however its operands lie, and at most its result lies otherwise."""
    return case.op in _ELEMENTWISE or case.op in _MOVING or not case.operands


def _is_stretch(case: Case) -> bool:
    """Whether a slice is of neighbours: of the first axis that has more than one element."""
    attrs, operand = cast(Any, case.attrs), cast(TensorType, case.operands[0])
    if any(stride > 1 for stride in getattr(attrs, "strides", None) or ()):
        return False
    first = next((k for k, n in enumerate(operand.shape) if n not in (0, 1)), 0)
    return all(cast(TensorType, t).shape[first + 1 :] == operand.shape[first + 1 :] for t in case.results)
