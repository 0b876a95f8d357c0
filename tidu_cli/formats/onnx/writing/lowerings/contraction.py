"""Products of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_letters

from tidu_cli.formats.onnx.writing.lowering import WIDE_INTEGERS, Lowering, Rule, widened
from tidu_cli.graph.types import FLOATS


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
    if dtype == "bf16":  # which Einsum does not take
        return low.cast(low.emit("Einsum", low.cast(x, "f32"), low.cast(y, "f32"), equation=_equation(low)), dtype)
    return low.emit("Einsum", x, y, equation=_equation(low))


def _single(rank: int, n: int) -> bool:
    """Whether an array of n batch axes has one axis that is contracted and at most one other."""
    return rank in (n + 1, n + 2) if not n else rank == n + 2


def _swapped(low: Lowering, x: str, rank: int) -> str:
    return low.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def _equation(low: Lowering) -> str:
    (contract_x, contract_y), (batch_x, batch_y) = low.attrs.dimension_numbers
    letters = iter(ascii_letters)
    x = [next(letters) for _ in range(low.operands[0].rank)]
    y = [""] * low.operands[1].rank
    for a, b in (*zip(contract_x, contract_y, strict=True), *zip(batch_x, batch_y, strict=True)):
        y[b] = x[a]
    y = [letter or next(letters) for letter in y]
    batch = [x[a] for a in batch_x]
    rest = [letter for k, letter in enumerate(x) if k not in contract_x and k not in batch_x]
    rest += [letter for k, letter in enumerate(y) if k not in contract_y and k not in batch_y]
    return f"{''.join(x)},{''.join(y)}->{''.join([*batch, *rest])}"


LOWERINGS: Mapping[str, Rule] = {"dot_general": widened(_dot_general, **WIDE_INTEGERS)}
