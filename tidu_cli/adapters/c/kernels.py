"""Array operations as loops: what is neither computed element by element nor only moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tidu_cli.adapters.c.complexes import PARTS
from tidu_cli.adapters.c.elements import bounds, literal
from tidu_cli.adapters.c.kernel import REDUCED, Kernel, Lines, along, folding, reduced, summed_in
from tidu_cli.adapters.c.matrices import MATRICES, laid_product
from tidu_cli.adapters.c.sliding import SLIDING, fourier_room, window_reduction
from tidu_cli.adapters.c.views import CTYPES, HALVES, STORED, View, indices, loops
from tidu_cli.graph.graph import Case
from tidu_cli.graph.sizes.open import OpenSize, smaller, surely
from tidu_cli.graph.types import FLOATS, INEXACT, SIGNED
from tidu_cli.lax.arrays.windows import gather_windows, scatter_windows


def _reduce(k: Kernel) -> Lines:
    (x,), axes = k.reads, k.attrs.axes
    fold, first = folding(k, x.dtype)
    ix = indices("i", x.shape)
    kept = [a for a in range(len(x.shape)) if a not in axes]
    out = [ix[a] for a in kept]
    inner = next((a for a in reversed(range(len(ix))) if ix[a] != "0"), None)
    if inner is None or inner in axes or 0 in x.shape or x.dtype in PARTS or x.dtype in HALVES:
        empty = any(x.shape[a] == 0 for a in axes)
        start, step = reduced(fold, first, x.dtype, "0" if empty else k.at(0, ix))
        steps = [] if empty else loops(along(ix, x.shape, axes), [step])
        return loops(along(ix, x.shape, kept), [*(start[:1] if empty else start), *steps, k.put(0, out, "a")])
    # Row by row, so that neighbours are added to neighbours.
    start = loops(along(ix, x.shape, kept), [k.put(0, out, first)])
    everywhere = along(ix, x.shape, range(len(ix)))
    return [*start, *loops(everywhere, [k.put(0, out, fold(k.to(0, out), k.at(0, ix)))])]


def _position(k: Kernel) -> Lines:
    (x,), (r,), (axis,) = k.reads, k.results, k.attrs.axes
    ix = indices("i", x.shape)
    ix[axis] = "j"
    kept = [a for a in range(len(ix)) if a != axis]
    sign = ">" if k.case.op == "argmax" else "<"
    nan = " || (x != x && a == a)" if x.dtype in FLOATS else ""
    ctype = CTYPES[x.dtype]
    search = loops(
        [("j", x.shape[axis])], [f"const {ctype} x = {k.at(0, ix)};", f"if (j == 0 || x {sign} a{nan}) {{ a = x; p = j; }}"]
    )
    body = ["long p = 0;", f"{ctype} a = 0;", *search, k.put(0, [ix[a] for a in kept], f"({CTYPES[r.dtype]})p")]
    return loops(along(ix, x.shape, kept), body)


def _cumulative(k: Kernel) -> Lines:
    (x,), axis = k.reads, k.attrs.axis
    fold, first = folding(k, x.dtype)
    ix = indices("i", x.shape)
    others = along(ix, x.shape, [a for a in range(len(ix)) if a != axis])
    n = x.shape[axis]
    ix[axis] = "p"
    start, step = reduced(fold, first, x.dtype, k.at(0, ix))
    steps = [f"const long p = {f'{n - 1} - j' if k.attrs.reverse else 'j'};", step, k.put(0, ix, "a")]
    return loops(others, [*start, *loops([("j", n)], steps)])


def _concatenate(k: Kernel) -> Lines:
    lines, begin = Lines(), 0
    for n, x in enumerate(k.reads):
        if 0 not in x.shape:
            ix = indices("i", x.shape)
            out = list(ix)
            out[k.attrs.dimension] = _sum(out[k.attrs.dimension], begin)
            lines += loops(zip(ix, x.shape, strict=True), [k.put(0, out, k.at(n, ix))])
        begin += x.shape[k.attrs.dimension]
    return lines


def _sum(index: str, offset: int) -> str:
    return index if offset == 0 else f"{offset}" if index == "0" else f"({index} + {offset})"


def _pad(k: Kernel) -> Lines:
    (x, _), (r,) = k.reads, k.results
    ox, ix = indices("i", r.shape), indices("i", x.shape)
    fill = loops(zip(ox, r.shape, strict=True), [k.put(0, ox, k.at(1, ()))])
    if 0 in x.shape:
        return fill
    out, tests = [], []
    for i, (low, high, gap), n in zip(ix, k.attrs.padding_config, r.shape, strict=True):
        at = f"({low} + {gap + 1} * {i})" if i != "0" else f"{low}"
        out.append(at)
        if not surely(lambda low=low, high=high: low >= 0 and high >= 0):  # type: ignore[misc]
            tests.append(f"{at} >= 0 && {at} < {n}")
    put = k.put(0, out, k.at(0, ix))
    return [*fill, *loops(zip(ix, x.shape, strict=True), [f"if ({' && '.join(tests)}) {put}" if tests else put])]


def _clipped(x: str, dtype: str, most: int) -> str:
    """An index, moved into 0 … most."""
    if x.rstrip("UL") == "0":  # of which compilers say that it is never less, or more
        return "0"
    low = f"{x} < 0 ? 0 : " if dtype in SIGNED else ""
    end = f"(uint64_t){most}" if isinstance(most, OpenSize) else most
    return f"({low}(uint64_t){x} > {end} ? {most} : (long){x})"


def _starts(k: Kernel, first: int, sizes: Sequence[int]) -> tuple[Lines, list[str]]:
    names = [f"s{a}" for a in range(len(sizes))]
    lines = [
        f"const long {name} = {_clipped(k.at(operand, ()), k.reads[operand].dtype, n - size)};"
        for operand, (name, n, size) in enumerate(zip(names, k.reads[0].shape, sizes, strict=True), first)
    ]
    return lines, names


def _dynamic_slice(k: Kernel) -> Lines:
    (r,) = k.results
    lines, starts = _starts(k, 1, r.shape)
    ix = indices("i", r.shape)
    place = [f"({s} + {i})" for s, i in zip(starts, ix, strict=True)]
    return [*lines, *loops(zip(ix, r.shape, strict=True), [k.put(0, ix, k.at(0, place))])]


def _dynamic_update(k: Kernel) -> Lines:
    update = k.reads[1]
    lines, starts = _starts(k, 2, update.shape)
    ix = indices("i", update.shape)
    place = [f"({s} + {i})" for s, i in zip(starts, ix, strict=True)]
    put = loops(zip(ix, update.shape, strict=True), [k.put(0, place, k.at(1, ix))]) if 0 not in update.shape else []
    return [*lines, *(f"(void){s};" for s in starts), *k.copy(0, k.results[0]), *put]


def _windows(k: Kernel, windows: Any, put: Callable[[list[str], list[str]], Lines], *, fill: bool) -> Lines:
    """What is `put` for each element of windows: from indices of the operand and of the array of windows."""
    batch, shape = indices("b", windows.batch), k.reads[0].shape
    inner = {axis: (f"m{axis}" if windows.sizes[axis] != 1 else "0") for axis in windows.kept}
    lines, place = Lines(), ["0"] * len(shape)
    for axis, of_batch in windows.in_step:
        place[axis] = batch[of_batch]
    fits = []
    for n, axis in enumerate(windows.index_map):
        given = k.at(1, [*batch, str(n)])
        lines.append(f"const long s{axis} = {_clipped(given, k.reads[1].dtype, shape[axis] - windows.sizes[axis])};")
        lines.append(f"(void)s{axis};")
        fits.append(f"s{axis} == (long){given}" if k.reads[1].dtype != "u64" else f"(uint64_t)s{axis} == {given}")
        place[axis] = f"s{axis}"
    for axis, name in inner.items():
        place[axis] = name if place[axis] == "0" else place[axis] if name == "0" else f"({place[axis]} + {name})"
    ends, names = iter(batch), iter(inner.values())
    own = [next(names) if axis in windows.window_dims else next(ends) for axis in range(len(windows.shape))]
    if fill:
        lines.append(f"const int fits = {' && '.join(fits) or '1'};")
    body = loops([(inner[a], windows.sizes[a]) for a in windows.kept], put(place, own))
    return loops(zip(batch, windows.batch, strict=True), [*lines, *body])


def _gather(k: Kernel) -> Lines:
    x, a = k.reads[0], k.attrs
    windows = gather_windows(a.dimension_numbers, a.slice_sizes, *k.case.operands)  # type: ignore[arg-type]
    if a.mode != "fill":
        return _windows(k, windows, lambda place, own: [k.put(0, own, k.at(0, place))], fill=False)
    value = a.fill_value
    if value is None:
        value = "NaN" if x.dtype in INEXACT else bounds(x.dtype)[0 if x.dtype in SIGNED else 1]
    number = literal(x.dtype, float(str(value).replace("Infinity", "inf")) if x.dtype in INEXACT else int(value))
    return _windows(k, windows, lambda place, own: [k.put(0, own, f"fits ? {k.at(0, place)} : {number}")], fill=True)


def _scatter(k: Kernel) -> Lines:
    windows = scatter_windows(k.attrs.dimension_numbers, *k.case.operands)  # type: ignore[arg-type]
    fold = k.fold(REDUCED[k.case.op], summed_in(k.reads[0].dtype)) if k.case.op in REDUCED else lambda old, new: new
    test = "if (fits) " if k.attrs.mode == "fill" else ""
    if 0 in (*k.reads[2].shape, *k.reads[0].shape):
        return k.copy(0, k.results[0])
    target, end = k.sums()

    def put(place: list[str], own: list[str]) -> Lines:
        return [test + k.unit.put(target, place, fold(k.unit.at(target, place), k.at(2, own)))]

    return [*k.copy(0, target), *_windows(k, windows, put, fill=bool(test)), *end]


def _sorted(k: Kernel) -> Lines:
    """A stable merge sort of positions along the axis, lane by lane."""
    top = k.case.op == "top_k"
    axis = k.attrs.axis if top else k.attrs.dimension
    x, n = k.reads[0], k.reads[0].shape[axis]
    order, spare = (k.row(s) for s in k.scratch)
    ix = indices("i", x.shape)

    def key(m: int, position: str) -> str:
        return k.at(m, [position if a == axis else i for a, i in enumerate(ix)])

    def before(a: str, b: str) -> str:
        """Whether the element at position a comes before that at b."""
        test = ""
        for m in reversed(range(1 if top else k.attrs.num_keys)):
            less = k.called("less", k.reads[m].dtype)
            one, other = key(m, a), key(m, b)
            ahead, behind = (less(p, q) for p, q in (((other, one), (one, other)) if top else ((one, other), (other, one))))
            test = f"({ahead} || (!{behind} && {test}))" if test else ahead
        return test

    merge = [
        "const long middle = lo + width < N ? lo + width : N, hi = middle + width < N ? middle + width : N;",
        "long a = lo, b = middle;",
        f"for (long p = lo; p < hi; ++p) t[p] = b < hi && (a >= middle || {before('o[b]', 'o[a]')}) ? o[b++] : o[a++];",
    ]
    length = k.results[0].shape[axis]
    out = ["p" if a == axis else i for a, i in enumerate(ix)]
    put = [k.put(m, out, key(m, "o[p]")) for m in range(1 if top else len(k.reads))]
    put += [k.put(1, out, "(int32_t)o[p]")] if top else []
    lane = [
        f"int64_t *o = {order}, *t = {spare};",
        *loops([("j", n)], ["o[j] = j;"]),
        f"for (long width = 1; width < {n}; width *= 2) {{",
        "    int64_t *const swapped = o;",
        f"    for (long lo = 0; lo < {n}; lo += 2 * width) {{",
        *(f"        {line.replace('N', f'{n}') if 'middle =' in line else line}" for line in merge),
        "    }",
        "    o = t;",
        "    t = swapped;",
        "}",
        *[f"for (long p = 0; p < {length}; ++p) {{", *(f"    {line}" for line in put), "}"],
    ]
    return loops([(i, m) for a, (i, m) in enumerate(zip(ix, x.shape, strict=True)) if a != axis], lane)


def _bitcast(k: Kernel) -> Lines:
    return [f"memcpy({k.row(k.results[0])}, {k.row(k.reads[0])}, {k.reads[0].size} * sizeof({STORED[k.reads[0].dtype]}));"]


# Graphs within graphs.


def _called(k: Kernel, child: Any, inputs: Sequence[str], outputs: Sequence[str]) -> str:
    pools = [k.row(k.pools[dtype]) for dtype in sorted(child.pools)]
    steps = [k.unit.steps()] if child.has_while else []
    return f"{child.name}({', '.join([*child.names, *inputs, *outputs, *pools, *steps])});"


def _call(k: Kernel) -> Lines:
    return [_called(k, k.children[0], _rows(k, k.reads), _rows(k, k.results))]


def _rows(k: Kernel, views: Sequence[View]) -> list[str]:
    """The addresses of arrays, null for empty ones."""
    return [k.row(v) if v.root >= 0 else "NULL" for v in views]


def _cond(k: Kernel) -> Lines:
    index, inputs, lines = k.at(0, ()), _rows(k, k.reads[1:]), Lines()
    for n, child in enumerate(k.children):
        test = "" if n == len(k.children) - 1 else f"if ({index} < {n + 1}) "
        lines.append(f"{'else ' if n else ''}{test}{_called(k, child, inputs, _rows(k, k.results))}")
    return lines


def _carried(k: Kernel, n: int, first: int) -> tuple[Lines, list[str], list[str], Lines]:
    """What sets what a loop carries to the operands from `first` on, the addresses of it, of where a step puts the next of it, and
    what puts that back.
    """
    start = [line for m in range(n) if 0 not in k.results[m].shape for line in k.copy(first + m, k.results[m])]
    now, new = _rows(k, k.results[:n]), _rows(k, k.scratch[:n])
    moved = [
        f"memcpy({a}, {b}, {v.size} * sizeof *{a});" for a, b, v in zip(now, new, k.results[:n], strict=True) if 0 not in v.shape
    ]
    return start, now, new, moved


def _scan(k: Kernel) -> Lines:
    a, n = k.attrs, k.attrs.num_consts
    end = n + a.num_carry
    start, now, new, moved = _carried(k, a.num_carry, n)

    def slices(views: Sequence[View]) -> list[str]:
        rows = zip(_rows(k, views), views, strict=True)
        return [f"{row} + t * {prod(v.shape[1:])}" if 0 not in v.shape else row for row, v in rows]

    inputs = [*_rows(k, k.reads[:n]), *now, *slices(k.reads[end:])]
    step = _called(k, k.children[0], inputs, [*new, *slices(k.results[a.num_carry :])])
    count = f"for (long t = {a.length - 1}; t >= 0; --t)" if a.reverse else f"for (long t = 0; t < {a.length}; ++t)"
    return [*start, f"{count} {{", *(f"    {line}" for line in (step, *moved)), "}"]


def _while(k: Kernel) -> Lines:
    n, m = k.attrs.cond_consts, k.attrs.cond_consts + k.attrs.body_consts
    start, now, new, moved = _carried(k, len(k.results), m)
    flag = k.row(k.scratch[len(k.results)])
    test = _called(k, k.children[0], [*_rows(k, k.reads[:n]), *now], [flag])
    step = _called(k, k.children[1], [*_rows(k, k.reads[n:m]), *now], new)
    # Where no steps are left, loops end one after the other, and what called them goes on to its end with what there is.
    left = f"if (!*{flag} || --*{k.unit.steps()} < 0) break;"
    return [*start, "for (;;) {", *(f"    {line}" for line in (test, left, step, *moved)), "}"]


def _windowed(k: Kernel) -> Lines:
    return window_reduction(k, *folding(k, k.reads[0].dtype))


def _of_reduced(op: str) -> Callable[[Kernel], Lines]:
    if "window" in op:
        return _windowed
    return _reduce if op.startswith("reduce") else _cumulative if op.startswith("cum") else _scatter


KERNELS: dict[str, Callable[[Kernel], Lines]] = {
    **{op: _of_reduced(op) for op in REDUCED}, **SLIDING, **MATRICES,
    "argmax": _position, "argmin": _position, "concatenate": _concatenate, "pad": _pad,
    "dynamic_slice": _dynamic_slice, "dynamic_update_slice": _dynamic_update, "gather": _gather, "scatter": _scatter,
    "sort": _sorted, "top_k": _sorted, "bitcast_convert_type": _bitcast, "scan": _scan, "while": _while, "cond": _cond,
}  # fmt: skip
"""What writes each operation."""


def written(k: Kernel) -> Lines:
    """The lines of a kernel; none if all its results are empty."""
    kernels: dict[str, Callable[[Kernel], Lines]] = k.unit.module.library.kernels
    return kernels.get(k.case.op, _call)(k) if any(0 not in r.shape for r in k.results) else []


def _lanes(case: Case) -> list[tuple[str, int]]:
    axis: int = case.attrs.axis if case.op == "top_k" else case.attrs.dimension  # type: ignore[attr-defined]
    n = case.operands[0].shape[axis]  # type: ignore[union-attr]
    return [("i64", n)] * 2


def _sums(case: Case) -> list[tuple[str, int]]:
    type_: Any = case.results[0]
    return [(summed_in(type_.dtype), type_.size)] if type_.dtype in HALVES else []


def _of_qr(case: Case) -> list[tuple[str, int]]:
    type_: Any = case.operands[0]
    return [(type_.dtype, type_.size), (type_.dtype, smaller(*type_.shape[-2:]))]


LAID: dict[str, Callable[[Any, Case, list[View]], list[View]]] = {"dot_general": laid_product}
"""How operands are laid for kernels, where that is not as they are."""

SCRATCH: dict[str, Callable[[Case], list[tuple[str, int]]]] = {
    **dict.fromkeys((op for op in (*REDUCED, "select_and_scatter_add") if "scatter" in op), _sums),
    "sort": _lanes,
    "top_k": _lanes,
    "scan": lambda case: [(t.dtype, t.size) for t in case.results[: case.attrs.num_carry]],  # type: ignore
    "while": lambda case: [*[(t.dtype, t.size) for t in case.results], ("bool", 1)],  # type: ignore
    "fft": fourier_room,
    "qr": _of_qr,
    "det": lambda case: [(case.operands[0].dtype, case.operands[0].shape[-1] ** 2)],  # type: ignore
}
"""The dtypes and sizes of memory that kernels need besides."""

WHOLE = frozenset({"bitcast_convert_type"})
"""Kernels that take operands in a row, besides those that hold graphs."""
