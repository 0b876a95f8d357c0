"""Products as plain loops; factorizations and triangular systems likewise, matrix by matrix, with LAPACK's signs and edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tidu_cli.adapters.c.elements import suffix
from tidu_cli.adapters.c.kernel import Kernel, Lines
from tidu_cli.adapters.c.views import CTYPES, View, indices, loops
from tidu_cli.graph.graph import Case


def dot(k: Kernel) -> Lines:
    """Products, summed over contracted axes."""
    (x, y), (r,) = k.reads, k.results
    (xc, yc), (xb, yb) = k.attrs.dimension_numbers
    add, mul = k.fold("add", r.dtype), k.fold("mul", r.dtype)
    batch, contracted = indices("b", [x.shape[a] for a in xb]), indices("j", [x.shape[a] for a in xc])
    xf = [a for a in range(len(x.shape)) if a not in xc and a not in xb]
    yf = [a for a in range(len(y.shape)) if a not in yc and a not in yb]
    rows, columns = indices("m", [x.shape[a] for a in xf]), indices("n", [y.shape[a] for a in yf])
    xi = dict(zip((*xb, *xc, *xf), (*batch, *contracted, *rows), strict=True))
    yi = dict(zip((*yb, *yc, *yf), (*batch, *contracted, *columns), strict=True))
    left, right = (k.converted(n, [i[a] for a in range(len(i))], r.dtype) for n, i in ((0, xi), (1, yi)))
    out = k.to(0, [*batch, *rows, *columns])
    over_b, over_c = _along_all(batch, x.shape, xb), _along_all(contracted, x.shape, xc)
    over_m, over_n = _along_all(rows, x.shape, xf), _along_all(columns, y.shape, yf)
    ctype = CTYPES[r.dtype]
    wide = _in_rows(y, (*yb, *yc), yf) if x.size and y.size else None
    if wide is None or wide.strides[-1] != 1:
        step = loops(over_c, [f"a = {add('a', mul(left, right))};"]) if x.size and y.size else []
        return loops([*over_b, *over_m, *over_n], [f"{ctype} a = 0;", *step, f"{out} = a;"])
    # Some columns at a time, so that their sums stay in registers and neighbours are added to neighbours.
    n = wide.shape[-1]
    result = r.reshaped((*r.shape[: len(batch) + len(rows)], n))

    def columns_from(begin: str, many: int) -> Lines:
        def every(line: str) -> Lines:
            return loops([("q", many)], [line])

        column = "q" if begin == "0" else f"{begin} + q"
        one = k.unit.at(wide, [*batch, *contracted, column])
        one = one if y.dtype == r.dtype else f"(({ctype}){one})"
        step = loops(over_c, [f"const {ctype} x = {left};", *every(f"a[q] = {add('a[q]', mul('x', one))};")])
        put = every(f"{k.unit.at(result, [*batch, *rows, column])} = a[q];")
        return loops(over_m, [f"{ctype} a[{many}];", *every("a[q] = 0;"), *step, *put])

    whole = n // _COLUMNS * _COLUMNS
    lines = [f"for (long c = 0; c < {whole}; c += {_COLUMNS}) {{", *(f"    {line}" for line in columns_from("c", _COLUMNS)), "}"]
    return loops(over_b, [*(lines if whole else []), *(columns_from(str(whole), n - whole) if n > whole else [])])


_COLUMNS = 8
"""So many columns of a product are computed at a time."""


def _in_rows(y: View, first: Sequence[int], free: Sequence[int]) -> View | None:
    """The right factor of a product with its free axes as one, the last; None where no strides say that."""
    order = [*first, *free]
    moved = y.moved([y.shape[a] for a in order], [y.strides[a] for a in order])
    return moved.reshaped((*moved.shape[: len(first)], prod(moved.shape[len(first) :])))


def laid_product(unit: Any, case: Case, reads: list[View]) -> list[View]:
    """A product, its right factor copied row by row where it lies otherwise and each row is read often."""
    (x, y), ((_, yc), (_, yb)) = reads, case.attrs.dimension_numbers  # type: ignore[attr-defined]
    free = [a for a in range(len(y.shape)) if a not in yc and a not in yb]
    n = prod([y.shape[a] for a in free])
    if y.root >= 0 and y.size and min(n, x.size * n // y.size) >= _COLUMNS:
        wide = _in_rows(y, (*yb, *yc), free)
        if wide is None or wide.strides[-1] != 1:
            order = [*yb, *yc, *free]
            rows = unit.dense(y.moved([y.shape[a] for a in order], [y.strides[a] for a in order]))
            back = [order.index(a) for a in range(len(order))]
            y = rows.moved([rows.shape[k] for k in back], [rows.strides[k] for k in back])
    views: list[View] = unit.kernel(case, [x, y])
    return views


def _along_all(ix: Sequence[str], shape: Sequence[int], axes: Sequence[int]) -> list[tuple[str, int]]:
    return [(i, shape[a]) for i, a in zip(ix, axes, strict=True)]


def each(k: Kernel, lines: Callable[[Callable[..., str]], Sequence[str]]) -> Lines:
    """The lines for one matrix, within loops over the batch. They are given what names an element, of operands and `results`."""
    x = k.reads[0]
    batch = indices("b", x.shape[:-2])

    def at(where: str, *ix: str) -> str:
        number = int(where[1:])
        return k.at(number, [*batch, *ix]) if where[0] == "x" else k.to(number, [*batch, *ix])

    return loops(zip(batch, x.shape[:-2], strict=True), list(lines(at)))


def _cholesky(k: Kernel) -> Lines:
    n, s, ctype = k.reads[0].shape[-1], suffix(k.reads[0].dtype), CTYPES[k.reads[0].dtype]
    return each(
        k,
        lambda at: [
            "int fails = 0;",
            f"for (long j = 0; j < {n}; ++j) {{",
            f"    for (long i = 0; i < {n}; ++i) {{",
            f"        {ctype} a = 0;",
            "        if (i >= j) {",
            f"            a = {at('x0', 'i', 'j')};",
            f"            for (long l = 0; l < j; ++l) a -= {at('r0', 'i', 'l')} * {at('r0', 'j', 'l')};",
            "        }",
            f"        {at('r0', 'i', 'j')} = a;",
            "    }",
            f"    if (!({at('r0', 'j', 'j')} > 0)) fails = 1;",
            f"    {at('r0', 'j', 'j')} = sqrt{s}({at('r0', 'j', 'j')});",
            f"    for (long i = j + 1; i < {n}; ++i) {at('r0', 'i', 'j')} /= {at('r0', 'j', 'j')};",
            "}",
            f"if (fails) for (long i = 0; i < {n}; ++i) for (long j = 0; j <= i; ++j) {at('r0', 'i', 'j')} = NAN;",
        ],
    )


def _triangular_solve(k: Kernel) -> Lines:
    a, (_, b) = k.attrs, k.reads
    n, m = k.reads[0].shape[-1], b.shape[-1 if a.left_side else -2]
    turned = a.transpose_a is a.left_side  # whether unknown i goes with column i of a
    lower = (a.lower is not a.transpose_a) is a.left_side

    def lines(at: Callable[..., str]) -> Lines:
        factor = at("x0", *(("l", "i") if turned else ("i", "l")))
        place = (lambda i: (i, "c")) if a.left_side else (lambda i: ("c", i))
        ahead = "for (long l = 0; l < i; ++l)" if lower else f"for (long l = i + 1; l < {n}; ++l)"
        order = f"for (long i = 0; i < {n}; ++i)" if lower else f"for (long i = {n - 1}; i >= 0; --i)"
        own = at("r0", *place("i"))
        return [
            f"for (long c = 0; c < {m}; ++c) {order} {{",
            f"    {CTYPES[b.dtype]} s = {at('x1', *place('i'))};",
            f"    {ahead} s -= {factor} * {at('r0', *place('l'))};",
            f"    {own} = {'s' if a.unit_diagonal else 's / ' + at('x0', 'i', 'i')};",
            "}",
        ]

    return each(k, lines)


def _eliminated(at: Callable[..., str], m: int, n: int, dtype: str, swapped: Sequence[str]) -> Lines:
    """Gaussian elimination of r0 in place. `swapped` is done where rows j and p are exchanged, `p` being where the pivot was."""
    s, ctype = suffix(dtype), CTYPES[dtype]
    return [
        f"for (long j = 0; j < {min(m, n)}; ++j) {{",
        "    long p = j;",
        f"    for (long i = j + 1; i < {m}; ++i) if (fabs{s}({at('r0', 'i', 'j')}) > fabs{s}({at('r0', 'p', 'j')})) p = i;",
        *(f"    {line}" for line in swapped),
        f"    if (p != j) for (long l = 0; l < {n}; ++l) {{",
        f"        const {ctype} t = {at('r0', 'j', 'l')};",
        f"        {at('r0', 'j', 'l')} = {at('r0', 'p', 'l')};",
        f"        {at('r0', 'p', 'l')} = t;",
        "    }",
        f"    if ({at('r0', 'j', 'j')} == 0) continue;",
        f"    for (long i = j + 1; i < {m}; ++i) {{",
        f"        {at('r0', 'i', 'j')} /= {at('r0', 'j', 'j')};",
        f"        for (long l = j + 1; l < {n}; ++l) {at('r0', 'i', 'l')} -= {at('r0', 'i', 'j')} * {at('r0', 'j', 'l')};",
        "    }",
        "}",
    ]


def _lu(k: Kernel) -> Lines:
    m, n = k.reads[0].shape[-2:]

    def lines(at: Callable[..., str]) -> Lines:
        swapped = [
            f"{at('r1', 'j')} = (int32_t)p;",
            f"{{ const int32_t q = {at('r2', 'j')}; {at('r2', 'j')} = {at('r2', 'p')}; {at('r2', 'p')} = q; }}",
        ]
        numbered = f"for (long i = 0; i < {m}; ++i) {at('r2', 'i')} = (int32_t)i;"
        return [numbered, *_eliminated(at, m, n, k.reads[0].dtype, swapped)]

    return [*k.copy(0, k.results[0]), *each(k, lines)]


def _permutation(k: Kernel) -> Lines:
    (x,), n = k.reads, k.attrs.permutation_size
    batch = indices("b", x.shape[:-1])
    own, other = k.to(0, [*batch, "j"]), k.to(0, [*batch, "p"])
    return loops(
        zip(batch, x.shape[:-1], strict=True),
        [
            f"for (long j = 0; j < {n}; ++j) {own} = (int32_t)j;",
            f"for (long j = 0; j < {x.shape[-1]}; ++j) {{",
            f"    const int32_t g = {k.at(0, [*batch, 'j'])}, p = g < 0 ? 0 : g < {n} ? g : {n - 1}, t = {own};",
            f"    {own} = {other};",
            f"    {other} = t;",
            "}",
        ],
    )


def _qr(k: Kernel) -> Lines:
    """Householder's reflections: R is made in the first scratch, whose lower part keeps them, and Q of these from the last on."""
    (x,), dtype = k.reads, k.reads[0].dtype
    m, n = x.shape[-2:]
    columns, rows, s, ctype = k.results[0].shape[-1], k.results[1].shape[-2], suffix(dtype), CTYPES[dtype]
    a, tau = (k.row(v) for v in k.scratch)

    def lines(at: Callable[..., str]) -> Lines:
        def reflect(element: Callable[[str], str], first: str, end: int) -> Lines:
            return [
                f"    for (long l = {first}; l < {end}; ++l) {{",
                f"        {ctype} d = {element('j')};",
                f"        for (long i = j + 1; i < {m}; ++i) d += a[i * {n} + j] * {element('i')};",
                "        d *= tau[j];",
                f"        {element('j')} -= d;",
                f"        for (long i = j + 1; i < {m}; ++i) {element('i')} -= a[i * {n} + j] * d;",
                "    }",
            ]

        return [
            f"{ctype} *const a = {a}, *const tau = {tau};",
            f"for (long i = 0; i < {m}; ++i) for (long j = 0; j < {n}; ++j) a[i * {n} + j] = {at('x0', 'i', 'j')};",
            f"for (long j = 0; j < {min(m, n)}; ++j) {{",
            f"    const {ctype} alpha = a[j * {n} + j];",
            f"    {ctype} below = 0, beta = alpha;",
            f"    for (long i = j + 1; i < {m}; ++i) below = hypot{s}(below, a[i * {n} + j]);",
            "    tau[j] = 0;",
            "    if (below != 0) {",
            f"        beta = -copysign{s}(hypot{s}(alpha, below), alpha);",
            "        tau[j] = (beta - alpha) / beta;",
            f"        for (long i = j + 1; i < {m}; ++i) a[i * {n} + j] /= alpha - beta;",
            "    }",
            f"    a[j * {n} + j] = beta;",
            *reflect(lambda i: f"a[{i} * {n} + l]", "j + 1", n),
            "}",
            f"for (long i = 0; i < {m}; ++i) for (long j = 0; j < {columns}; ++j) {at('r0', 'i', 'j')} = i == j ? 1 : 0;",
            f"for (long j = {min(m, n) - 1}; j >= 0; --j) {{",
            *reflect(lambda i: at("r0", i, "l"), "0", columns),
            "}",
            f"for (long i = 0; i < {rows}; ++i) for (long j = 0; j < {n}; ++j) {at('r1', 'i', 'j')} = i <= j ? a[i * {n} + j] : 0;",
        ]

    return each(k, lines)


def _det(k: Kernel) -> Lines:
    (x,), n, ctype = k.reads, k.reads[0].shape[-1], CTYPES[k.reads[0].dtype]
    batch = indices("b", x.shape[:-2])
    a = k.row(k.scratch[0])

    def at(where: str, *ix: str) -> str:
        return f"a[{ix[0]} * {n} + {ix[1]}]"

    body = [
        f"{ctype} *const a = {a}, d = 1;",
        f"for (long i = 0; i < {n}; ++i) for (long j = 0; j < {n}; ++j) {at('r0', 'i', 'j')} = {k.at(0, [*batch, 'i', 'j'])};",
        *_eliminated(at, n, n, x.dtype, ["if (p != j) d = -d;"]),
        f"for (long j = 0; j < {n}; ++j) d *= {at('r0', 'j', 'j')};",
        f"{k.to(0, batch)} = d;",
    ]
    return loops(zip(batch, x.shape[:-2], strict=True), body)


MATRICES: dict[str, Callable[[Kernel], Lines]] = {
    "dot_general": dot, "cholesky": _cholesky, "triangular_solve": _triangular_solve, "lu": _lu,
    "lu_pivots_to_permutation": _permutation, "qr": _qr, "det": _det,
}  # fmt: skip
