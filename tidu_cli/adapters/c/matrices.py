"""Products as plain loops; factorizations and triangular systems likewise, matrix by matrix, with LAPACK's signs and edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tidu_cli.adapters.c.complexes import PARTS
from tidu_cli.adapters.c.elements import literal, suffix
from tidu_cli.adapters.c.kernel import Kernel, Lines, summed_in, zero
from tidu_cli.adapters.c.views import CTYPES, HALVES, View, indices, loops
from tidu_cli.graph.graph import Case
from tidu_cli.graph.sizes.open import OpenSize, smaller


def dot(k: Kernel) -> Lines:
    """Products, summed over contracted axes."""
    (x, y), (r,) = k.reads, k.results
    (xc, yc), (xb, yb) = k.attrs.dimension_numbers
    dtype = summed_in(r.dtype)
    add, mul = k.fold("add", dtype), k.fold("mul", dtype)
    batch, contracted = indices("b", [x.shape[a] for a in xb]), indices("j", [x.shape[a] for a in xc])
    xf = [a for a in range(len(x.shape)) if a not in xc and a not in xb]
    yf = [a for a in range(len(y.shape)) if a not in yc and a not in yb]
    rows, columns = indices("m", [x.shape[a] for a in xf]), indices("n", [y.shape[a] for a in yf])
    xi = dict(zip((*xb, *xc, *xf), (*batch, *contracted, *rows), strict=True))
    yi = dict(zip((*yb, *yc, *yf), (*batch, *contracted, *columns), strict=True))
    over_b, over_c = _along_all(batch, x.shape, xb), _along_all(contracted, x.shape, xc)
    over_m, over_n = _along_all(rows, x.shape, xf), _along_all(columns, y.shape, yf)
    left, ctype, nothing = k.converted(0, [xi[a] for a in range(len(xi))], dtype), CTYPES[dtype], zero(dtype)
    wide = _in_rows(y, (*yb, *yc), yf) if 0 not in (*x.shape, *y.shape) and dtype == r.dtype else None
    if wide is None or wide.strides[-1] != 1:
        right = k.converted(1, [yi[a] for a in range(len(yi))], dtype)
        step = loops(over_c, [f"a = {add('a', mul(left, right))};"]) if 0 not in (*x.shape, *y.shape) else []
        put = k.put(0, [*batch, *rows, *columns], "a")
        return loops([*over_b, *over_m, *over_n], [f"{ctype} a = {nothing};", *step, put])
    # Some columns at a time, so that their sums stay in registers and neighbours are added to neighbours.
    n = wide.shape[-1]
    result = r.reshaped((*r.shape[: len(batch) + len(rows)], n))
    convert = k.unit.module.convert(y.dtype, dtype)

    def columns_from(begin: str, many: int) -> Lines:
        def every(*lines: str) -> Lines:
            return loops([("q", many)], lines)

        column = "q" if begin == "0" else f"{begin} + q"
        one = convert.format(k.unit.at(wide, [*batch, *contracted, column]))
        room = _COLUMNS if isinstance(many, OpenSize) else many
        if dtype not in PARTS:
            declared, begun, total = f"{ctype} a[{room}];", f"a[q] = {nothing};", "a[q]"
            sums = [f"a[q] = {add('a[q]', mul('x', one))};"]
        else:  # apart, as compilers vectorize sums of parts, and not of pairs
            declared, begun = f"{CTYPES[PARTS[dtype]]} a[{room}], b[{room}];", "a[q] = b[q] = 0;"
            sums = [f"const {ctype} y = {one};", "a[q] += x.re * y.re - x.im * y.im;", "b[q] += x.re * y.im + x.im * y.re;"]
            total = k.called("complex", dtype)("a[q]", "b[q]")
        step = loops(over_c, [f"const {ctype} x = {left};", *every(*sums)])
        return loops(over_m, [declared, *every(begun), *step, *every(k.unit.put(result, [*batch, *rows, column], total))])

    rest = n % _COLUMNS
    whole = n - rest
    lines = [f"for (long c = 0; c < {whole}; c += {_COLUMNS}) {{", *(f"    {line}" for line in columns_from("c", _COLUMNS)), "}"]
    return loops(over_b, [*(lines if whole != 0 else []), *(columns_from(f"{whole}", rest) if rest != 0 else [])])


_COLUMNS = 8
"""So many columns of a product are computed at a time."""


def _in_rows(y: View, first: Sequence[int], free: Sequence[int]) -> View | None:
    """The right factor of a product with its free axes as one, the last; None where no strides say that."""
    moved = y.transposed([*first, *free])
    return moved.reshaped((*moved.shape[: len(first)], prod(moved.shape[len(first) :])))


def laid_product(unit: Any, case: Case, reads: list[View]) -> list[View]:
    """A product, its right factor copied row by row where it lies otherwise and each row is read often."""
    (x, y), ((xc, yc), (xb, yb)) = reads, case.attrs.dimension_numbers  # type: ignore[attr-defined]
    free = [a for a in range(len(y.shape)) if a not in yc and a not in yb]
    n = prod([y.shape[a] for a in free])
    rows = prod([n for a, n in enumerate(x.shape) if a not in (*xc, *xb)])
    in_rows = (
        y.root >= 0 and 0 not in y.shape and unit.module.dtype(case.results[0]) not in HALVES
    )  # as sums of halves are taken otherwise
    if in_rows and all(isinstance(size, OpenSize) or size >= _COLUMNS for size in (rows, n)):
        wide = _in_rows(y, (*yb, *yc), free)
        if wide is None or wide.strides[-1] != 1:
            order = [*yb, *yc, *free]
            y = unit.dense(y.transposed(order)).transposed([order.index(a) for a in range(len(order))])
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


def _signs(k: Kernel, dtype: str) -> tuple[Callable[..., str], ...]:
    """Difference, product, quotient and conjugate of numbers of a dtype."""
    conj = k.called("conj", dtype) if dtype in PARTS else str
    return k.fold("sub", dtype), k.fold("mul", dtype), k.fold("div", dtype), conj


def _cholesky(k: Kernel) -> Lines:
    n, dtype = k.reads[0].shape[-1], k.reads[0].dtype
    (sub, mul, div, conj), s, ctype = _signs(k, dtype), suffix(dtype), CTYPES[dtype]
    part = ".re" if dtype in PARTS else ""

    def lines(at: Callable[..., str]) -> Lines:
        own, pivot = at("r0", "i", "j"), at("r0", "j", "j")
        root = f"sqrt{s}({pivot}{part})"
        return [
            "int fails = 0;",
            f"for (long j = 0; j < {n}; ++j) {{",
            f"    for (long i = 0; i < {n}; ++i) {{",
            f"        {ctype} a = {zero(dtype)};",
            "        if (i >= j) {",
            f"            a = {at('x0', 'i', 'j')};",
            f"            for (long l = 0; l < j; ++l) a = {sub('a', mul(at('r0', 'i', 'l'), conj(at('r0', 'j', 'l'))))};",
            "        }",
            f"        {own} = a;",
            "    }",
            f"    if (!({pivot}{part} > 0)) fails = 1;",
            f"    {pivot} = {k.unit.module.convert(PARTS.get(dtype, dtype), dtype).format(root)};",
            f"    for (long i = j + 1; i < {n}; ++i) {own} = {div(own, pivot)};",
            "}",
            f"if (fails) for (long i = 0; i < {n}; ++i) for (long j = 0; j <= i; ++j) {own} = {literal(dtype, math.nan)};",
        ]

    return each(k, lines)


def _triangular_solve(k: Kernel) -> Lines:
    a, (_, b) = k.attrs, k.reads
    n, m = k.reads[0].shape[-1], b.shape[-1 if a.left_side else -2]
    turned = a.transpose_a is a.left_side  # whether unknown i goes with column i of a
    lower = (a.lower is not a.transpose_a) is a.left_side

    sub, mul, div, conj = _signs(k, b.dtype)
    conj = conj if a.conjugate_a else str

    def lines(at: Callable[..., str]) -> Lines:
        factor = conj(at("x0", *(("l", "i") if turned else ("i", "l"))))
        place = (lambda i: (i, "c")) if a.left_side else (lambda i: ("c", i))
        ahead = "for (long l = 0; l < i; ++l)" if lower else f"for (long l = i + 1; l < {n}; ++l)"
        order = f"for (long i = 0; i < {n}; ++i)" if lower else f"for (long i = {n - 1}; i >= 0; --i)"
        own = at("r0", *place("i"))
        return [
            f"for (long c = 0; c < {m}; ++c) {order} {{",
            f"    {CTYPES[b.dtype]} s = {at('x1', *place('i'))};",
            f"    {ahead} s = {sub('s', mul(factor, at('r0', *place('l'))))};",
            f"    {own} = {'s' if a.unit_diagonal else div('s', conj(at('x0', 'i', 'i')))};",
            "}",
        ]

    return each(k, lines)


def _eliminated(k: Kernel, at: Callable[..., str], m: int, n: int, swapped: Sequence[str]) -> Lines:
    """Gaussian elimination of r0 in place. `swapped` is done where rows j and p are exchanged, `p` being where the pivot was."""
    dtype = k.reads[0].dtype
    s, ctype, (sub, mul, div, _) = suffix(dtype), CTYPES[dtype], _signs(k, dtype)
    own, pivot, other = at("r0", "i", "j"), at("r0", "j", "j"), at("r0", "i", "l")

    def size(element: str) -> str:
        """By which pivots are chosen, as LAPACK does."""
        return f"(fabs{s}({element}.re) + fabs{s}({element}.im))" if dtype in PARTS else f"fabs{s}({element})"

    return [
        f"for (long j = 0; j < {smaller(m, n)}; ++j) {{",
        "    long p = j;",
        f"    for (long i = j + 1; i < {m}; ++i) if ({size(own)} > {size(at('r0', 'p', 'j'))}) p = i;",
        *(f"    {line}" for line in swapped),
        f"    if (p != j) for (long l = 0; l < {n}; ++l) {{",
        f"        const {ctype} t = {at('r0', 'j', 'l')};",
        f"        {at('r0', 'j', 'l')} = {at('r0', 'p', 'l')};",
        f"        {at('r0', 'p', 'l')} = t;",
        "    }",
        f"    if ({size(pivot)} == 0) continue;",
        f"    for (long i = j + 1; i < {m}; ++i) {{",
        f"        {own} = {div(own, pivot)};",
        f"        for (long l = j + 1; l < {n}; ++l) {other} = {sub(other, mul(own, at('r0', 'j', 'l')))};",
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
        return [numbered, *_eliminated(k, at, m, n, swapped)]

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
    real, (sub, mul, div, conj), add = PARTS.get(dtype, dtype), _signs(k, dtype), k.fold("add", dtype)
    one, nothing = literal(dtype, 1) if dtype in PARTS else "1", zero(dtype)
    below, nan = f"a[i * {n} + j]", literal(dtype, math.nan)
    odd = " + ".join(f"{below}{part} - {below}{part}" for part in ((".re", ".im") if dtype in PARTS else ("",)))

    def lines(at: Callable[..., str]) -> Lines:
        def reflect(element: Callable[[str], str], first: str, end: int, factor: str) -> Lines:
            return [
                f"    for (long l = {first}; l < {end}; ++l) {{",
                f"        {ctype} d = {element('j')};",
                f"        for (long i = j + 1; i < {m}; ++i) d = {add('d', mul(conj(below), element('i')))};",
                f"        d = {mul('d', factor)};",
                f"        {element('j')} = {sub(element('j'), 'd')};",
                f"        for (long i = j + 1; i < {m}; ++i) {element('i')} = {sub(element('i'), mul(below, 'd'))};",
                "    }",
            ]

        def size(of: str) -> str:
            return f"hypot{s}({of}.re, {of}.im)" if dtype in PARTS else of

        # LAPACK's: R has a real diagonal, and a column that is real and 0 below is left as it is.
        part, turned = (".re", " || alpha.im != 0") if dtype in PARTS else ("", "")
        beta = k.unit.module.convert(real, dtype).format("beta")
        return [
            f"{ctype} *const a = {a}, *const tau = {tau};",
            f"{CTYPES[real]} odd = 0; /* NaN where a number is not finite, and so are all results */",
            f"for (long i = 0; i < {m}; ++i) for (long j = 0; j < {n}; ++j) {below} = {at('x0', 'i', 'j')};",
            f"for (long i = 0; i < {m}; ++i) for (long j = 0; j < {n}; ++j) odd += {odd};",
            f"for (long j = 0; j < {smaller(m, n)}; ++j) {{",
            f"    const {ctype} alpha = a[j * {n} + j];",
            f"    {CTYPES[real]} below = 0, beta = alpha{part};",
            f"    for (long i = j + 1; i < {m}; ++i) below = hypot{s}(below, {size(below)});",
            f"    tau[j] = {nothing};",
            f"    if (below != 0{turned}) {{",
            f"        beta = -copysign{s}(hypot{s}({size('alpha')}, below), alpha{part});",
            f"        tau[j] = {div(sub(beta, 'alpha'), beta)};",
            f"        for (long i = j + 1; i < {m}; ++i) {below} = {div(below, sub('alpha', beta))};",
            "    }",
            f"    a[j * {n} + j] = {beta};",
            *reflect(lambda i: f"a[{i} * {n} + l]", "j + 1", n, conj("tau[j]")),
            "}",
            f"for (long i = 0; i < {m}; ++i) for (long j = 0; j < {columns}; ++j)",
            f"    {at('r0', 'i', 'j')} = i == j ? {one} : {nothing};",
            f"for (long j = {smaller(m, n) - 1}; j >= 0; --j) {{",
            *reflect(lambda i: at("r0", i, "l"), "0", columns, "tau[j]"),
            "}",
            f"for (long i = 0; i < {rows}; ++i) for (long j = 0; j < {n}; ++j)",
            f"    {at('r1', 'i', 'j')} = i <= j ? {below} : {nothing};",
            f"if (odd != 0) for (long i = 0; i < {m}; ++i) for (long j = 0; j < {columns}; ++j) {at('r0', 'i', 'j')} = {nan};",
            f"if (odd != 0) for (long i = 0; i < {rows}; ++i) for (long j = 0; j < {n}; ++j) {at('r1', 'i', 'j')} = {nan};",
        ]

    return each(k, lines)


def _det(k: Kernel) -> Lines:
    (x,), n, ctype = k.reads, k.reads[0].shape[-1], CTYPES[k.reads[0].dtype]
    batch = indices("b", x.shape[:-2])
    a, negated = k.row(k.scratch[0]), k.called("neg", x.dtype)("d") if x.dtype in PARTS else "-d"

    def at(where: str, *ix: str) -> str:
        return f"a[{ix[0]} * {n} + {ix[1]}]"

    body = [
        f"{ctype} *const a = {a}, d = {literal(x.dtype, 1) if x.dtype in PARTS else 1};",
        f"for (long i = 0; i < {n}; ++i) for (long j = 0; j < {n}; ++j) {at('r0', 'i', 'j')} = {k.at(0, [*batch, 'i', 'j'])};",
        *_eliminated(k, at, n, n, [f"if (p != j) d = {negated};"]),
        f"for (long j = 0; j < {n}; ++j) d = {k.fold('mul', x.dtype)('d', at('r0', 'j', 'j'))};",
        f"{k.to(0, batch)} = d;",
    ]
    return loops(zip(batch, x.shape[:-2], strict=True), body)


MATRICES: dict[str, Callable[[Kernel], Lines]] = {
    "dot_general": dot, "cholesky": _cholesky, "triangular_solve": _triangular_solve, "lu": _lu,
    "lu_pivots_to_permutation": _permutation, "qr": _qr, "det": _det,
}  # fmt: skip
