"""A step that is a kernel, and what reductions and their like are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidu_cli.adapters.c.elements import FLOATS, bounds, literal
from tidu_cli.adapters.c.views import CTYPES, View, indices, loops
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import SIGNED

Lines = list[str]


class Kernel:
    """A step that is a kernel: its operands and results, scratch memory, and functions of graphs that it holds."""

    def __init__(
        self,
        unit: Any,
        case: Case,
        reads: Sequence[View],
        results: Sequence[View],
        scratch: Sequence[View],
        children: Any,
        pools: Any,
    ) -> None:
        self.unit, self.case, self.reads, self.results = unit, case, reads, results
        self.scratch, self.children, self.pools = scratch, children, pools
        self.attrs: Any = case.attrs

    def at(self, k: int, ix: Sequence[str]) -> str:
        """An element of operand k."""
        text: str = self.unit.at(self.reads[k], ix)
        return text

    def to(self, k: int, ix: Sequence[str]) -> str:
        """An element of result k."""
        text: str = self.unit.at(self.results[k], ix)
        return text

    def row(self, view: View) -> str:
        """The address of an array in a row."""
        text: str = self.unit.pointer(view)
        return text

    def fold(self, op: str, dtype: str) -> Callable[..., str]:
        """What an operation makes of two operands."""
        text: str = self.unit.module.fold(op, dtype)
        return text.format

    def converted(self, k: int, ix: Sequence[str], dtype: str) -> str:
        """An element of operand k in another dtype."""
        own = self.reads[k].dtype
        return self.at(k, ix) if own == dtype else f"(({CTYPES[dtype]}){self.at(k, ix)})"

    def copy(self, k: int, target: View) -> Lines:
        """Operand k put into an array of its shape."""
        ix = indices("i", target.shape)
        return loops(zip(ix, target.shape, strict=True), [f"{self.unit.at(target, ix)} = {self.at(k, ix)};"])


def _lowest(dtype: str) -> str:
    return "(-INFINITY)" if dtype in FLOATS else literal(dtype, bounds(dtype)[0])


def _highest(dtype: str) -> str:
    return "INFINITY" if dtype in FLOATS else literal(dtype, bounds(dtype)[1])


def _first(op: str, dtype: str) -> str:
    """What a reduction begins with."""
    if op == "and":
        return "1" if dtype == "bool" else literal(dtype, -1 if dtype in SIGNED else bounds(dtype)[1])
    begin = {"max": _lowest, "min": _highest, "logaddexp": _lowest}.get(op)
    return begin(dtype) if begin else literal(dtype, int(op == "mul"))


REDUCED = {
    "reduce_sum": "add", "reduce_prod": "mul", "reduce_max": "max", "reduce_min": "min", "reduce_and": "and", "reduce_or": "or",
    "reduce_xor": "xor", "cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min", "reduce_window_sum": "add",
    "reduce_window_max": "max", "reduce_window_min": "min", "scatter-add": "add", "scatter-sub": "sub", "scatter-mul": "mul",
    "scatter-max": "max", "scatter-min": "min", "cumlogsumexp": "logaddexp",
}  # fmt: skip
"""What reductions, sums up to each element and scatters combine by."""


def folding(k: Kernel, dtype: str) -> tuple[Callable[..., str], str]:
    """How a reduction combines two numbers, and what it begins with."""
    op = REDUCED[k.case.op]
    if not k.reads[0].size:
        return lambda a, b: a, _first(op, dtype)
    if op == "logaddexp":
        called = k.unit.module.use(op, dtype)
        return lambda a, b: f"{called}({a}, {b})", _first(op, dtype)
    return k.fold(op, dtype), _first(op, dtype)


def along(ix: Sequence[str], shape: Sequence[int], axes: Sequence[int]) -> list[tuple[str, int]]:
    """The loops over some axes."""
    return [(ix[a], shape[a]) for a in axes]
