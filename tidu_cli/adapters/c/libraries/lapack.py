"""Factors, systems, eigenvalues and singular values by LAPACK, matrix by matrix.

It has matrices column by column: what is a row to C is a column to it. Where the factors of the transposed matrix are those that
are asked for (A = Uᵀ U for L Lᵀ; Aᵀ = L Q for Q R) nothing is turned; else matrices are, on the way in and out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

from tidu_cli.adapters.c.kernel import Kernel, Lines
from tidu_cli.adapters.c.kernels import KERNELS, SCRATCH
from tidu_cli.adapters.c.libraries.blas import REALS, Library, Scratch, address, are_there_surely, call, rows_of
from tidu_cli.adapters.c.matrices import each
from tidu_cli.adapters.c.views import CTYPES, View, indices, loops
from tidu_cli.graph.graph import Case
from tidu_cli.graph.sizes.open import OpenSize

FROM = 32
"""Smaller matrices, by rows or columns, whichever are fewer, are factored and solved with by loops, which take as long or less."""

_BLOCK = 64
"""For the blocks in which LAPACK goes through a matrix there is as much room per row."""

At = Callable[..., str]


def _start(at: At, where: str, axes: int = 2) -> str:
    return address(at(where, *["0"] * axes))


def _nan_where_it_fails(k: Kernel, at: At) -> Lines:
    """As results of what has infinities or NaN in it, and of iterations without an end."""
    lines = Lines()
    for n, view in enumerate(k.results):
        sizes = view.shape[len(k.reads[0].shape) - 2 :]
        ix = indices("n", sizes)
        lines += loops(zip(ix, sizes, strict=True), [f"{at(f'r{n}', *ix)} = NAN;"]) if view.size else []
    return ["if (fails || info) {", *(f"    {line}" for line in lines), "}"]


def _both(m: int, n: int, line: str) -> Lines:
    return loops([("i", m), ("j", n)], [line])


def _cholesky(k: Kernel) -> Lines:
    n, dtype = k.reads[0].shape[-1], k.reads[0].dtype

    def lines(at: At) -> Lines:
        factored = call(k, "potrf", dtype, "U", n, _start(at, "r0"), n, "&info")
        return [
            "int32_t info = 0;",
            *_both(n, n, f"{at('r0', 'i', 'j')} = j <= i ? {at('x0', 'i', 'j')} : 0;"),
            factored,
            f"for (long i = 0; i < {n}; ++i) if (!({at('r0', 'i', 'i')} > 0)) info = 1;",
            f"if (info) for (long i = 0; i < {n}; ++i) for (long j = 0; j <= i; ++j) {at('r0', 'i', 'j')} = NAN;",
        ]

    return each(k, lines)


def _laid(unit: Any, case: Case, reads: list[View]) -> list[View]:
    a, b = reads
    if _is_large(case) and rows_of(a) is None:
        a = unit.dense(a)
    views: list[View] = unit.kernel(case, [a, b])
    return views


def _triangular_solve(k: Kernel) -> Lines:
    a, (x, b) = k.attrs, k.reads
    lies = rows_of(x)
    assert lies
    apart, turned = lies
    side, triangle = "R" if a.left_side else "L", "U" if a.lower is not turned else "L"
    transposed, diagonal = "T" if a.transpose_a is not turned else "N", "U" if a.unit_diagonal else "N"
    rows, columns = b.shape[-2:]

    def lines(at: At) -> Lines:
        one = f"&(const {CTYPES[b.dtype]}){{1}}"
        words = (side, triangle, transposed, diagonal, columns, rows, one)
        return [call(k, "trsm", b.dtype, *words, _start(at, "x0"), apart, _start(at, "r0"), columns)]

    return [*k.copy(1, k.results[0]), *each(k, lines)]


def _lu(k: Kernel) -> Lines:
    (m, n), dtype, a = k.reads[0].shape[-2:], k.reads[0].dtype, k.row(k.scratch[0])

    def lines(at: At) -> Lines:
        return [
            f"{CTYPES[dtype]} *const a = {a};",
            "int32_t info = 0;",
            *_both(m, n, f"a[j * {m} + i] = {at('x0', 'i', 'j')};"),
            call(k, "getrf", dtype, m, n, "a", m, _start(at, "r1", 1), "&info"),
            *_both(m, n, f"{at('r0', 'i', 'j')} = a[j * {m} + i];"),
            f"for (long i = 0; i < {m}; ++i) {at('r2', 'i')} = (int32_t)i;",
            f"for (long j = 0; j < {min(m, n)}; ++j) {{",
            f"    const int32_t p = --{at('r1', 'j')}, q = {at('r2', 'j')};",
            f"    {at('r2', 'j')} = {at('r2', 'p')};",
            f"    {at('r2', 'p')} = q;",
            "}",
        ]

    return each(k, lines)


def _det(k: Kernel) -> Lines:
    """Of the transposed matrix, which is the same."""
    (x,), n, ctype = k.reads, k.reads[0].shape[-1], CTYPES[k.reads[0].dtype]
    batch, a, pivots = indices("b", x.shape[:-2]), k.row(k.scratch[0]), k.row(k.scratch[1])
    body = [
        f"{ctype} *const a = {a}, d = 1;",
        f"int32_t *const p = {pivots}, info = 0;",
        *_both(n, n, f"a[i * {n} + j] = {k.at(0, [*batch, 'i', 'j'])};"),
        call(k, "getrf", x.dtype, n, n, "a", n, "p", "&info"),
        f"for (long j = 0; j < {n}; ++j) d *= p[j] == j + 1 ? a[j * {n + 1}] : -a[j * {n + 1}];",
        f"{k.to(0, batch)} = d;",
    ]
    return loops(zip(batch, x.shape[:-2], strict=True), body)


def _orthonormal(k: Kernel, m: int, n: int, names: Sequence[str], columns: int, at: Callable[[str, str], str]) -> Lines:
    """Factors the rows a into R and reflections, and makes Q of these. `names` are those of a, of tau, of room and of Q."""
    a, tau, room, q = names
    dtype, p, size = k.reads[0].dtype, min(m, n), _BLOCK * max(columns, n)
    return [
        call(k, "gelqf", dtype, n, m, a, max(n, 1), tau, room, size, "&info"),
        *_both(m, p, f"{at('i', 'j')} = {a}[i * {n} + j];"),
        call(k, "orglq", dtype, columns, m, p, q, columns, tau, room, size, "&info"),
    ]


def _qr(k: Kernel) -> Lines:
    (x,), dtype = k.reads, k.reads[0].dtype
    m, n = x.shape[-2:]
    columns, rows = k.results[0].shape[-1], k.results[1].shape[-2]
    a, tau, room = (k.row(v) for v in k.scratch)

    def lines(at: At) -> Lines:
        return [
            f"{CTYPES[dtype]} *const a = {a};",
            "int32_t info = 0, fails = 0;",
            *_both(m, n, f"fails |= !isfinite(a[i * {n} + j] = {at('x0', 'i', 'j')});"),
            *_orthonormal(k, m, n, ("a", tau, room, _start(at, "r0")), columns, lambda i, j: at("r0", i, j)),
            *_both(rows, n, f"{at('r1', 'i', 'j')} = i <= j ? a[i * {n} + j] : 0;"),
            *_nan_where_it_fails(k, at),
        ]

    return each(k, lines)


def _eigh(k: Kernel) -> Lines:
    n, dtype = k.reads[0].shape[-1], k.reads[0].dtype
    room, integers = k.scratch

    def lines(at: At) -> Lines:
        own, other = at("r0", "i", "j"), at("r0", "j", "i")
        words = "V", "L" if k.attrs.lower else "U", n, _start(at, "r0"), n, _start(at, "r1", 1)
        solved = call(k, "syevd", dtype, *words, k.row(room), room.size, k.row(integers), integers.size, "&info")
        return [
            "int32_t info = 0, fails = 0;",
            *_both(n, n, f"fails |= !isfinite({other} = {at('x0', 'i', 'j')});"),
            f"if (!fails) {solved}",
            f"for (long i = 0; i < {n}; ++i) for (long j = 0; j < i; ++j) {{",
            f"    const {CTYPES[dtype]} t = {own};",
            f"    {own} = {other};",
            f"    {other} = t;",
            "}",
            *_nan_where_it_fails(k, at),
        ]

    return each(k, lines)


def _svd(k: Kernel) -> Lines:
    (x,), dtype = k.reads, k.reads[0].dtype
    m, n = x.shape[-2:]
    p, vectors = min(m, n), k.attrs.compute_uv
    full = vectors and k.attrs.full_matrices
    a, u, v, room, integers, tau, q = (k.row(s) for s in k.scratch)
    size = k.scratch[3].size

    def lines(at: At) -> Lines:
        words = "S" if vectors else "N", m, n, "a", m, _start(at, "r0", 1), "u", m, "v", p
        body = [
            f"{CTYPES[dtype]} *const a = {a}, *const u = {u}, *const v = {v};",
            "int32_t info = 0, fails = 0;",
            *_both(m, n, f"fails |= !isfinite(a[j * {m} + i] = {at('x0', 'i', 'j')});"),
            f"if (!fails) {call(k, 'gesdd', dtype, *words, room, size, integers, '&info')}" if p else "(void)a, (void)u, (void)v;",
            "fails |= info;",
        ]
        # Vectors that complete a basis are those that the factors Q R of the others have, as where tidu evaluates.
        if full and m > p:
            body += _both(m, p, f"a[i * {p} + j] = u[j * {m} + i];")
            body += _orthonormal(k, m, p, ("a", tau, room, _start(at, "r1")), m, lambda i, j: at("r1", i, j))
        if vectors:
            body += _both(m, p, f"{at('r1', 'i', 'j')} = u[j * {m} + i];")
            body += _both(p, n, f"{at('r2', 'i', 'j')} = v[j * {p} + i];")
        if full and n > p:
            body += _orthonormal(k, n, p, ("v", tau, room, q), n, lambda i, j: f"{q}[{i} * {n} + {j}]")
            body += loops([("i", n - p), ("j", n)], [f"{at('r2', f'({p} + i)', 'j')} = {q}[j * {n} + {p} + i];"])
        return [*body, *_nan_where_it_fails(k, at)]

    return each(k, lines)


# When they are called, and the memory that they need.


def _sizes(case: Case) -> tuple[int, int]:
    m, n = case.operands[0].shape[-2:]  # type: ignore[union-attr]
    return m, n


def _is_large(case: Case) -> bool:
    """Whether a case is LAPACK's, which is called of real matrices, of sizes that are numbers."""
    operands: Any = case.operands
    sizes = _sizes(case)
    if any(isinstance(n, OpenSize) for n in sizes) or not are_there_surely(n for t in operands for n in t.shape):
        return False
    return min(sizes) >= FROM and operands[0].dtype in REALS


def _where_large(op: str, kernel: Callable[[Kernel], Lines]) -> Callable[[Kernel], Lines]:
    return lambda k: (kernel if _is_large(k.case) else KERNELS[op])(k)


def _scratch_where_large(op: str, scratch: Callable[[str, int, int], Scratch]) -> Callable[[Case], Scratch]:
    return lambda case: _scratch(scratch)(case) if _is_large(case) else SCRATCH[op](case) if op in SCRATCH else []


def _scratch(scratch: Callable[[str, int, int], Scratch]) -> Callable[[Case], Scratch]:
    return lambda case: scratch(case.operands[0].dtype, *map(index, _sizes(case)))  # type: ignore[union-attr]


def _of_eigh(dtype: str, m: int, n: int) -> Scratch:
    return [(dtype, 1 + _BLOCK * n + 2 * n * n), ("i32", 3 + 5 * n)]


def _of_svd(dtype: str, m: int, n: int) -> Scratch:
    """The matrix, U, V, and room as versions of LAPACK ask for that ask for most; and what completes a basis."""
    p = min(m, n)
    arrays = [(dtype, size) for size in (m * n, m * p, p * n, 7 * p * p + 10 * p + _BLOCK * (m + n))]
    return [*arrays, ("i32", 8 * p), (dtype, p), (dtype, n * n if n > p else 0)]


_LARGE = {"cholesky": _cholesky, "triangular_solve": _triangular_solve, "lu": _lu, "qr": _qr, "det": _det}
_SCRATCH: dict[str, Callable[[str, int, int], Scratch]] = {
    "lu": lambda dtype, m, n: [(dtype, m * n)],
    "qr": lambda dtype, m, n: [(dtype, m * n), (dtype, min(m, n)), (dtype, _BLOCK * max(m, n))],
    "det": lambda dtype, m, n: [(dtype, n * n), ("i32", n)],
}

LAPACK = Library(
    {**{op: _where_large(op, kernel) for op, kernel in _LARGE.items()}, "eigh": _eigh, "svd": _svd},
    {
        **{op: _scratch_where_large(op, scratch) for op, scratch in _SCRATCH.items()},
        "eigh": _scratch(_of_eigh),
        "svd": _scratch(_of_svd),
    },
    {"triangular_solve": _laid},
)
