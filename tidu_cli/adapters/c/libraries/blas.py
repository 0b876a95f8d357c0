"""Large products by cblas: of matrices, and of matrices and vectors."""

from __future__ import annotations

from math import prod
from typing import Any

from tidu_cli.adapters.c.kernel import Kernel, Lines
from tidu_cli.adapters.c.libraries.calls import REALS, Library, address, are_there_surely, call, rows_of
from tidu_cli.adapters.c.matrices import dot, laid_product
from tidu_cli.adapters.c.views import View, indices, loops
from tidu_cli.graph.graph import Case
from tidu_cli.graph.sizes.open import OpenSize

FROM = 512
"""Products of fewer multiplications, for each element of the batch, are loops, which compilers see through. Open sizes: always."""

_MOST = 2**31 - 1

_ROWS, _AS_IT_IS, _TRANSPOSED = 101, 111, 112
"""The numbers that cblas has for these words."""


class _Axes:
    """The axes of both operands of a product, by what becomes of them, and the sizes of the matrices that they make."""

    def __init__(self, case: Case) -> None:
        x, y = (t.shape for t in case.operands)  # type: ignore[union-attr]
        (xc, yc), (xb, yb) = case.attrs.dimension_numbers  # type: ignore[attr-defined]
        xf, yf = ([a for a in range(len(s)) if a not in (*c, *b)] for s, c, b in ((x, xc, xb), (y, yc, yb)))
        self.batch = [x[a] for a in xb]
        self.m, self.k, self.n = prod([x[a] for a in xf]), prod([x[a] for a in xc]), prod([y[a] for a in yf])
        self.left, self.right = (*xb, *xf, *xc), (*yb, *yc, *yf)


def _by_call(module: Any, case: Case) -> _Axes | None:
    dtypes = {module.dtype(t) for t in (*case.operands, *case.results)}
    axes = _Axes(case)
    sizes = axes.m, axes.k, axes.n
    numbers = [n for n in sizes if not isinstance(n, OpenSize)]
    large = (len(numbers) < 3 or prod(numbers) >= FROM) and axes.k != 1 and 0 not in sizes and max(numbers, default=0) <= _MOST
    large = large and are_there_surely(sizes)
    return axes if large and len(dtypes) == 1 and dtypes <= REALS else None


def _laid(unit: Any, case: Case, reads: list[View]) -> list[View]:
    """The operands as batches of matrices that cblas takes, copied only where they lie otherwise."""
    axes = _by_call(unit.module, case)
    if axes is None:
        return laid_product(unit, case, reads)
    both = ((reads[0], axes.left, (axes.m, axes.k)), (reads[1], axes.right, (axes.k, axes.n)))
    views: list[View] = unit.kernel(case, [_matrices(unit, view, order, (*axes.batch, *sizes)) for view, order, sizes in both])
    return views


def _matrices(unit: Any, view: View, order: tuple[int, ...], shape: tuple[int, ...]) -> View:
    moved = view.moved([view.shape[a] for a in order], [view.strides[a] for a in order])
    matrices = moved.reshaped(shape)
    if matrices is None or rows_of(matrices) is None:
        matrices = unit.dense(moved).reshaped(shape)
    return matrices


def _product(k: Kernel) -> Lines:
    axes = _by_call(k.unit.module, k.case)
    if axes is None:
        return dot(k)
    (x, y), (r,), batch = k.reads, k.results, indices("b", axes.batch)
    at = [*batch, "0", "0"]
    out = r.reshaped((*axes.batch, axes.m, axes.n))
    a, b, c = (address(k.unit.at(view, at)) for view in (x, y, out))
    left, right = rows_of(x), rows_of(y)
    assert left and right
    if axes.n == 1 or axes.m == 1:
        matrix, vector = ((a, left), (b, right)) if axes.n == 1 else ((b, (right[0], not right[1])), (a, left))
        m, n = (axes.m, axes.k) if axes.n == 1 else (axes.n, axes.k)
        text = _on_vector(k, r.dtype, m, n, *matrix, vector[0], _step(*vector[1], row=axes.n != 1), c)
    else:
        turned = [_TRANSPOSED if t else _AS_IT_IS for _, t in (left, right)]
        text = call(k, "gemm", r.dtype, _ROWS, *turned, axes.m, axes.n, axes.k, 1, a, left[0], b, right[0], 0, c, axes.n)
    return loops(zip(batch, axes.batch, strict=True), [text])


def _step(apart: int, transposed: bool, row: bool) -> int:
    """How far elements of a matrix of one row, or of one column, are apart."""
    return apart if transposed == row else 1


def _on_vector(k: Kernel, dtype: str, m: int, n: int, a: str, lies: tuple[int, bool], x: str, step: int, y: str) -> str:
    """A matrix of m rows times a vector."""
    apart, transposed = lies
    rows, columns, word = (n, m, _TRANSPOSED) if transposed else (m, n, _AS_IT_IS)
    return call(k, "gemv", dtype, _ROWS, word, rows, columns, 1, a, apart, x, step, 0, y, 1)


BLAS = Library({"dot_general": _product}, {}, {"dot_general": _laid})
