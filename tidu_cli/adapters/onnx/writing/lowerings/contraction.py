"""Products of arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tidu_cli.adapters.onnx.writing.lowering import WIDE_INTEGERS, Lowering, Rule, widened
from tidu_cli.graph.types import FLOATS, TensorType


def _dot_general(low: Lowering, x: str, y: str) -> str:
    (contract_x, contract_y), (batch_x, batch_y) = low.attrs.dimension_numbers
    left, right, dtype = *low.operands[:2], low.result.dtype
    if not left.size or not right.size:
        return low.filled(0, low.result)
    x, y = (low.cast(v, dtype) if t.dtype != dtype else v for v, t in ((x, left), (y, right)))
    n = len(batch_x)
    in_order = list(batch_x) == list(batch_y) == list(range(n))
    one = len(contract_x) == 1 and in_order
    if one and contract_x[0] == left.rank - 1 and contract_y[0] == n and _single(right.rank, n) and (n == 0 or left.rank == n + 2):
        return low.emit("MatMul", x, y)
    if one and not n and left.rank == right.rank == 2 and dtype in FLOATS:
        turned_x, turned_y = contract_x[0] == 0, contract_y[0] == 1
        return low.emit("Gemm", x, y, transA=1 if turned_x else None, transB=1 if turned_y else None)
    if one and n and left.rank == right.rank == n + 2:
        x = x if contract_x[0] == n + 1 else _swapped(low, x, left.rank)
        y = y if contract_y[0] == n else _swapped(low, y, right.rank)
        return low.emit("MatMul", x, y)
    return _by_matrices(low, x, y)


def _by_matrices(low: Lowering, x: str, y: str) -> str:
    """As one product of matrices: axes of the batch, of the result, and those that are summed, each next to one another."""
    (contract_x, contract_y), (batch_x, batch_y) = low.attrs.dimension_numbers
    left, right = low.operands[:2]
    free_x, free_y = _free(left, contract_x, batch_x), _free(right, contract_y, batch_y)
    batch, m, n, k = (
        [t.shape[a] for a in axes] for t, axes in ((left, batch_x), (left, free_x), (right, free_y), (left, contract_x))
    )
    lead = [math.prod(batch)] if batch else []
    due_x = [*lead, *(m if not batch and len(k) == 1 and m else [math.prod(m)]), math.prod(k)]
    x = _shaped(low, low.transpose(x, [*batch_x, *free_x, *contract_x]), [*batch, *m, *k], due_x)
    y = _shaped(low, low.transpose(y, [*batch_y, *contract_y, *free_y]), [*batch, *k, *n], [*lead, math.prod(k), math.prod(n)])
    return _shaped(low, low.emit("MatMul", x, y), [*due_x[:-1], math.prod(n)], list(low.result.shape))


def _free(type_: TensorType, contract: Sequence[int], batch: Sequence[int]) -> list[int]:
    return [k for k in range(type_.rank) if k not in contract and k not in batch]


def _shaped(low: Lowering, x: str, shape: Sequence[int], due: Sequence[int]) -> str:
    return x if list(shape) == list(due) else low.reshape(x, due)


def _single(rank: int, n: int) -> bool:
    """Whether an array of n batch axes has one axis that is contracted and at most one other."""
    return rank in (n + 1, n + 2) if not n else rank == n + 2


def _swapped(low: Lowering, x: str, rank: int) -> str:
    return low.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


LOWERINGS: Mapping[str, Rule] = {"dot_general": widened(_dot_general, **WIDE_INTEGERS)}
