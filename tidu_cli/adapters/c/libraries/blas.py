"""Calls of BLAS and LAPACK, and large products by cblas: of matrices, and of matrices and vectors.

A file declares what it calls itself, so that it needs no header of theirs. Integers are int32_t, as these libraries have them
unless they were built otherwise. Functions of Fortran take addresses, and after all others the length of each text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import Any, NamedTuple

from tidu_cli.adapters.c.kernel import Kernel, Lines
from tidu_cli.adapters.c.matrices import dot, laid_product
from tidu_cli.adapters.c.views import CTYPES, View, indices, loops
from tidu_cli.graph.graph import Case
from tidu_cli.graph.sizes.open import OpenSize, surely

Scratch = list[tuple[str, int]]

REALS = frozenset({"f32", "f64"})
"""The dtypes of what libraries are called with."""


class Library(NamedTuple):
    """What a library changes: what writes operations, the memory that they need besides, and how operands are laid for them."""

    kernels: dict[str, Callable[[Kernel], Lines]]
    scratch: dict[str, Callable[[Case], Scratch]]
    laid: dict[str, Callable[[Any, Case, list[View]], list[View]]]


def joined(*libraries: Library) -> Library:
    """What is in any of them, or in the last of several."""
    return Library(*({op: one for table in tables for op, one in table.items()} for tables in zip(*libraries, strict=True)))


_PARAMETERS = {
    "c": "const char *", "i": "const int32_t *", "t": "const {0} *", "I": "int32_t *", "T": "{0} *", "n": "int32_t", "x": "{0}",
}  # fmt: skip

_FUNCTIONS = {
    "gemm": "nnnnnnxtntnxTn", "gemv": "nnnnxtntnxTn", "trsm": "cccciittiTi", "potrf": "ciTiI", "getrf": "iiTiII",
    "gelqf": "iiTiTTiI", "orglq": "iiiTitTiI", "syevd": "cciTiTTiIiI", "gesdd": "ciiTiTTiTiTiII",
}  # fmt: skip
"""The parameters of each, by letters of the table above."""


def call(k: Kernel, name: str, dtype: str, *arguments: Any) -> str:
    """A call, where the file declares what is called. Of functions of Fortran integers become addresses, and words are texts."""
    letters, in_fortran = _FUNCTIONS[name], name[:3] != "gem"
    called = f"{'s' if dtype == 'f32' else 'd'}{name}{'_' if in_fortran else ''}"
    types = [_PARAMETERS[letter].format(CTYPES[dtype]) for letter in letters]
    if k.unit.module.sizes:
        k.unit.module.sizes.narrow |= dict.fromkeys(value for value in arguments if isinstance(value, OpenSize))
    values = [_argument(letter, value) for letter, value in zip(letters, arguments, strict=True)]
    lengths = letters.count("c")
    called = called if in_fortran else f"cblas_{called}"
    k.unit.module.external[called] = f"void {called}({', '.join([*types, *['size_t'] * lengths])});"
    return f"{called}({', '.join([*values, *['1'] * lengths])});"


def _argument(letter: str, value: Any) -> str:
    if letter == "c":
        return f'"{value}"'
    if isinstance(value, OpenSize):
        value = f"(int32_t){value}"
        return f"&(const int32_t){{{value}}}" if letter == "i" else value
    return f"&(const int32_t){{{value}}}" if letter == "i" and isinstance(value, int) else str(value)


def are_there_surely(sizes: Iterable[int]) -> bool:
    """Whether open sizes among these are 1 or more: libraries refuse steps from row to row of 0."""
    return all(surely(lambda n=n: n >= 1) for n in sizes if isinstance(n, OpenSize))  # type: ignore[misc]


def rows_of(view: View) -> tuple[int, bool] | None:
    """How far the rows of matrices are apart, or, where those of the transposed ones lie in a row, these, and whether they do.

    None where neither do.
    """
    (m, n), (down, along) = view.shape[-2:], view.strides[-2:]
    if view.root < 0:
        return None
    if (along == 1 or n == 1) and (m == 1 or surely(lambda: down >= n)):
        return (down if m != 1 else n), False
    if (down == 1 or m == 1) and (n == 1 or surely(lambda: along >= m)):
        return (along if n != 1 else m), True
    return None


def address(element: str) -> str:
    """Where an element is; NULL for one of an empty array."""
    return f"&{element}" if element.endswith("]") else "NULL"


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
    moved = view.transposed(order)
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
