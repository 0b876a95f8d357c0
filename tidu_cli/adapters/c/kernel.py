"""A step that is a kernel, and what reductions and their like are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidu_cli.adapters.c.complexes import PARTS
from tidu_cli.adapters.c.elements import bounds, literal
from tidu_cli.adapters.c.views import CTYPES, HALVES, View, indices, loops, row_major
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import FLOATS, SIGNED

Lines = list[str]
Views = Sequence[View]


class Kernel:
    """A step that is a kernel: its operands and results, scratch memory, and functions of graphs that it holds."""

    def __init__(self, unit: Any, case: Case, reads: Views, results: Views, scratch: Views, children: Any, pools: Any) -> None:
        self.unit, self.case, self.reads, self.results = unit, case, reads, results
        self.scratch, self.children, self.pools = scratch, children, pools
        self.attrs: Any = case.attrs
        self.node: int = unit.node

    def at(self, k: int, ix: Sequence[str]) -> str:
        """An element of operand k."""
        return str(self.unit.at(self.reads[k], ix))

    def to(self, k: int, ix: Sequence[str]) -> str:
        """An element of result k."""
        return str(self.unit.at(self.results[k], ix))

    def put(self, k: int, ix: Sequence[str], value: str) -> str:
        """The statement that sets an element of result k."""
        return str(self.unit.put(self.results[k], ix, value))

    def row(self, view: View) -> str:
        """The address of an array in a row."""
        return str(self.unit.pointer(view))

    def fold(self, op: str, dtype: str) -> Callable[..., str]:
        """What an operation makes of two operands. A file has what is called, and compilers complain of what is not."""
        return lambda a, b: str(self.unit.module.fold(op, dtype).format(a, b))

    def called(self, name: str, dtype: str) -> Callable[..., str]:
        """What a function makes of operands."""
        return lambda *a: f"{self.unit.module.use(name, dtype)}({', '.join(a)})"

    def converted(self, k: int, ix: Sequence[str], dtype: str) -> str:
        """An element of operand k in another dtype."""
        return str(self.unit.module.convert(self.reads[k].dtype, dtype).format(self.at(k, ix)))

    def copy(self, k: int, target: View) -> Lines:
        """Operand k put into an array of its shape."""
        ix = indices("i", target.shape)
        return loops(zip(ix, target.shape, strict=True), [self.unit.put(target, ix, self.at(k, ix))])

    def sums(self) -> tuple[View, Lines]:
        """Where the sums of a result grow, and what puts them there in the end: those of halves are rounded then."""
        (result,) = self.results
        if not self.scratch:
            return result, []
        sums, ix = self.scratch[0].moved(result.shape, row_major(result.shape)), indices("i", result.shape)
        return sums, loops(zip(ix, sums.shape, strict=True), [self.put(0, ix, self.unit.at(sums, ix))])


def zero(dtype: str) -> str:
    """What sums begin with."""
    return literal(dtype, 0) if dtype in PARTS else "0"


def summed_in(dtype: str) -> str:
    """The dtype in which sums of a dtype's numbers grow: halves would stop growing at 2048 or 256."""
    return "f32" if dtype in HALVES else dtype


def _first(op: str, dtype: str) -> str:
    """What a reduction begins with."""
    if op == "and":
        return "1" if dtype == "bool" else literal(dtype, -1 if dtype in SIGNED else bounds(dtype)[1])
    if op == "min":
        return "INFINITY" if dtype in FLOATS else literal(dtype, bounds(dtype)[1])
    if op not in ("max", "logaddexp"):
        return literal(dtype, int(op == "mul"))
    if dtype in PARTS:
        return literal(dtype, complex(float("-inf"), 0))
    return "(-INFINITY)" if dtype in FLOATS else literal(dtype, bounds(dtype)[0])


REDUCED = {
    "reduce_sum": "add", "reduce_prod": "mul", "reduce_max": "max", "reduce_min": "min", "reduce_and": "and", "reduce_or": "or",
    "reduce_xor": "xor", "cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min", "reduce_window_sum": "add",
    "reduce_window_max": "max", "reduce_window_min": "min", "scatter-add": "add", "scatter-sub": "sub", "scatter-mul": "mul",
    "scatter-max": "max", "scatter-min": "min", "cumlogsumexp": "logaddexp",
}  # fmt: skip
"""What reductions, sums up to each element and scatters combine by."""


def folding(k: Kernel, dtype: str) -> tuple[Callable[..., str], str]:
    """How a reduction combines two numbers, and what it begins with."""
    op, dtype = REDUCED[k.case.op], summed_in(dtype)
    if 0 in k.reads[0].shape:
        return lambda a, b: a, _first(op, dtype)
    return (k.called if op == "logaddexp" else k.fold)(op, dtype), _first(op, dtype)


def reduced(fold: Callable[..., str], first: str, dtype: str, element: str) -> tuple[Lines, str]:
    """What declares `a`, and what puts an element to it. The product of 1 and a complex number with an infinite part is NaN."""
    if dtype in PARTS:
        return [f"{CTYPES[dtype]} a = {first};", "int begun = 0;"], f"a = begun++ ? {fold('a', element)} : {element};"
    return [f"{CTYPES[dtype]} a = {first};"], f"a = {fold('a', element)};"


def along(ix: Sequence[str], shape: Sequence[int], axes: Sequence[int]) -> list[tuple[str, int]]:
    """The loops over some axes."""
    return [(ix[a], shape[a]) for a in axes]
