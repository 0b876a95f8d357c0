"""Calls of BLAS and LAPACK, which a file declares itself, so that it needs no header of theirs.

Integers are int32_t, as these libraries have them unless they were built otherwise. Functions of Fortran take addresses, and after
all others the length of each text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tidu_cli.adapters.c.kernel import Kernel, Lines
from tidu_cli.adapters.c.views import CTYPES, View
from tidu_cli.graph.graph import Case
from tidu_cli.graph.sizes.open import OpenSize, surely

Scratch = list[tuple[str, int]]

REALS = frozenset({"f32", "f64"})
"""The dtypes of what they are called with."""


class Library(NamedTuple):
    """What a library changes: what writes operations, the memory that they need besides, and how operands are laid for them."""

    kernels: dict[str, Callable[[Kernel], Lines]]
    scratch: dict[str, Callable[[Case], Scratch]]
    laid: dict[str, Callable[[Any, Case, list[View]], list[View]]]


def joined(*libraries: Library) -> Library:
    """What is in any of them, or in the last of several."""
    return Library(*({op: one for table in tables for op, one in table.items()} for tables in zip(*libraries, strict=True)))


_PARAMETERS = {
    "c": "const char *",
    "i": "const int32_t *",
    "t": "const {0} *",
    "I": "int32_t *",
    "T": "{0} *",
    "n": "int32_t",
    "x": "{0}",
}

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
