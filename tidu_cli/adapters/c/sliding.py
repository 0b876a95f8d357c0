"""Signals: convolutions, reductions of windows and what their extrema choose; and Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from tidu_cli.adapters.c.complexes import PARTS
from tidu_cli.adapters.c.functions import convolution_length, is_written_out, room, roots_of_unity
from tidu_cli.adapters.c.kernel import summed_in, zero
from tidu_cli.adapters.c.views import CTYPES, View, indices, loops, place, row_major
from tidu_cli.graph.graph import Case
from tidu_cli.graph.sizes.open import larger
from tidu_cli.graph.types import FLOATS
from tidu_cli.lax.signal.sliding import Sliding, slidings
from tidu_cli.lax.signal.window_reduction import windows_of


def _met(axes: Sequence[Sliding], outer: Sequence[str], inner: Sequence[str], body: Sequence[str]) -> list[str]:
    """A body for each place `t…` of a window that falls on an element, whose indices are `q…`."""
    lines, tests = [], []
    for a, (along, o, t) in enumerate(zip(axes, outer, inner, strict=True)):
        lines.append(f"const long p{a} = {along.stride} * {o} + {along.dilation} * {t} - {along.low}, q{a} = p{a} / {along.base};")
        tests.append(f"p{a} >= 0 && q{a} < {along.n}" + (f" && p{a} % {along.base} == 0" if along.base != 1 else ""))
    test = [f"if ({' && '.join(tests)}) {{", *(f"    {line}" for line in body), "}"] if tests else list(body)
    return loops([(t, along.window) for t, along in zip(inner, axes, strict=True)], [*lines, *test])


def _conv(k: Any) -> list[str]:
    (x, y), (r,), a = k.reads, k.results, k.attrs
    ls, rs, os = a.dimension_numbers.lhs_spec, a.dimension_numbers.rhs_spec, a.dimension_numbers.out_spec
    sizes, window = [x.shape[d] for d in ls], [y.shape[d] for d in rs]
    axes = slidings(sizes[2:], window[2:], a.window_strides, a.padding, a.lhs_dilation, a.rhs_dilation, "lhs")
    shape = [r.shape[d] for d in os]
    outer, inner = [f"o{d}" for d in range(len(shape))], [f"t{d}" for d in range(len(axes))]
    group = f"(o1 / {window[0] // (a.feature_group_count * a.batch_group_count)})"
    sample = f"({group} * {shape[0]} + o0)" if a.batch_group_count != 1 else "o0"
    feature = f"({group} * {window[1]} + c)" if a.feature_group_count != 1 else "c"
    left = _placed(ls, [sample, feature, *(f"q{d}" for d in range(len(axes)))])
    right = _placed(rs, ["o1", "c", *inner])
    dtype = summed_in(r.dtype)
    product = k.fold("mul", dtype)(k.converted(0, left, dtype), k.converted(1, right, dtype))
    step = loops([("c", window[1])], _met(axes, outer[2:], inner, [f"a = {k.fold('add', dtype)('a', product)};"]))
    body = [
        f"{CTYPES[dtype]} a = {zero(dtype)};",
        *(step if 0 not in (*x.shape, *y.shape) else []),
        k.put(0, _placed(os, outer), "a"),
    ]
    return loops(zip(outer, shape, strict=True), body)


def _placed(spec: Sequence[int], ix: Sequence[str]) -> list[str]:
    by_axis = dict(zip(spec, ix, strict=True))
    return [by_axis[d] for d in range(len(ix))]


def window_reduction(k: Any, fold: Callable[..., str], first: str) -> list[str]:
    """Each window reduced, beginning with `first`."""
    (x,), (r,) = k.reads, k.results
    axes = windows_of(k.attrs, k.case.operands[0])
    outer, inner, met = ([f"{letter}{d}" for d in range(len(axes))] for letter in "otq")
    step = _met(axes, outer, inner, [f"a = {fold('a', k.at(0, met))};"]) if 0 not in x.shape else []
    return loops(zip(outer, r.shape, strict=True), [f"{CTYPES[x.dtype]} a = {first};", *step, k.put(0, outer, "a")])


def _selected(k: Any) -> list[str]:
    """The element of each window that is extreme, the first of ties: read, or added to."""
    adding = k.case.op == "select_and_scatter_add"
    x, operand = k.reads[1], k.reads[0].dtype
    axes = windows_of(k.attrs, k.case.operands[1])
    outer, inner, met = ([f"{letter}{d}" for d in range(len(axes))] for letter in "otq")
    nan = " || (x != x && a == a)" if x.dtype in FLOATS else ""
    sign = ">" if k.attrs.select_prim == "ge" else "<"
    strides = row_major(x.shape)
    ctype = CTYPES[x.dtype]
    body = [f"const {ctype} x = {k.at(1, met)};", f"if (best < 0 || x {sign} a{nan}) {{ a = x; best = {place(0, strides, met)}; }}"]
    search = ["long best = -1;", f"{ctype} a = 0;", *_met(axes, outer, inner, body)] if 0 not in x.shape else []
    at = [f"(best / {s} % {larger(n, 1)})" for s, n in zip(strides, x.shape, strict=True)] if 0 not in x.shape else []
    if not adding:
        chosen = f"best < 0 ? {zero(operand)} : {k.at(0, at)}" if 0 not in x.shape else zero(operand)
        return loops(zip(outer, k.results[0].shape, strict=True), [*search, k.put(0, outer, chosen)])
    ix = indices("i", x.shape)
    target, end = k.sums()
    cleared = loops(zip(ix, x.shape, strict=True), [k.unit.put(target, ix, zero(target.dtype))])
    put = k.unit.put(target, at, k.fold("add", target.dtype)(k.unit.at(target, at), k.at(0, outer)))
    sizes = [along.count for along in axes]
    return [*cleared, *(loops(zip(outer, sizes, strict=True), [*search, f"if (best >= 0) {put}"]) if 0 not in sizes else []), *end]


def fourier_room(case: Case) -> list[tuple[str, int]]:
    """The memory of an fft: that of a line, and of one of real numbers over several axes what comes before the last."""
    (x,), (r,), a = case.operands, case.results, case.attrs
    dtype: Any = x.dtype if x.dtype in PARTS else r.dtype  # type: ignore[union-attr]
    lines = [(dtype, max(map(room, map(index, a.fft_lengths))))]  # type: ignore[attr-defined]
    between = a.fft_type == "IRFFT" and len(a.fft_lengths) > 1  # type: ignore[attr-defined]
    return [*lines, (dtype, x.size)] if between else lines  # type: ignore[union-attr]


def _fft(k: Any) -> list[str]:
    """Axis by axis, line by line: in place, but for the first."""
    (x,), (r,), lengths, kind = k.reads, k.results, k.attrs.fft_lengths, k.attrs.fft_type
    axes = range(len(x.shape) - len(lengths), len(x.shape))
    passes = list(zip(axes, lengths, strict=True))
    passes = passes if kind == "IRFFT" else passes[::-1]  # the last axis is where the numbers become complex, or real
    between = k.scratch[1]._replace(shape=x.shape, strides=row_major(x.shape)) if len(k.scratch) > 1 else r
    lines, source = [], x
    for axis, n in passes:
        of_real = kind in ("RFFT", "IRFFT") and axis == axes[-1]
        target = r if of_real else between
        lines += _line_by_line(k, source, target, axis, n, of_real=of_real)
        source = target
    return lines


def _line_by_line(k: Any, source: View, target: View, axis: int, n: int, *, of_real: bool) -> list[str]:
    """The transforms of all lines along an axis. Inverse ones are those of conjugates."""
    inverse = k.attrs.fft_type in ("IFFT", "IRFFT")
    dtype = k.scratch[0].dtype
    m = convolution_length(n)
    ctype, length = CTYPES[dtype], m or n
    complex_, conj = k.called("complex", dtype), k.called("conj", dtype)
    ix = indices("i", target.shape)
    ix[axis] = "j"
    element, value = k.unit.at(source, ix), complex_(f"x[j].re / {n}", f"-x[j].im / {n}") if inverse else "x[j]"
    load = [f"for (long j = 0; j < {n}; ++j) x[j] = {conj(element) if inverse else element};"]
    if of_real and inverse:  # the half of the line that is there stands for the other
        value = f"x[j].re / {n}"
        load = [f"for (long j = 0; j < {n // 2 + 1}; ++j) x[j] = {conj(element)};"]
        load += [f"for (long j = {n // 2 + 1}; j < {n}; ++j) x[j] = {conj(f'x[{n} - j]')};"] if n > 2 else []
        load += [f"x[{j}].im = 0;" for j in sorted({0, n // 2 if n % 2 == 0 else 0})]
    elif of_real:
        load = [f"for (long j = 0; j < {n}; ++j) x[j] = {complex_(element, '0')};"]
    start, after = [f"{ctype} *const x = {k.row(k.scratch[0])}, *const spare = x + {length};"], f"spare + {length}"
    if is_written_out(length):
        start += [f"const {ctype} *const roots = {k.unit.module.constant(dtype, np.array(roots_of_unity(length)))};"]
    else:
        start += [f"{ctype} *const roots = {after};"]
        start += [f"for (long j = 0; j < {length}; ++j) roots[j] = {k.called('root', dtype)('j', str(length))};"]
        after = f"roots + {length}"
    done = k.called("fft", dtype)("x", "spare", "roots", str(n))
    if m:
        start += [f"{ctype} *const f = {after}, *const c = f + {m};"]
        start += [f"{k.called('chirp', dtype)('f', 'c', 'spare', 'roots', str(n), str(m))};"]
        done = k.called("convolved", dtype)("x", "spare", "roots", "f", "c", str(n), str(m))
    put = f"for (long j = 0; j < {target.shape[axis]}; ++j) {k.unit.put(target, ix, value)}"
    others = [(i, size) for a, (i, size) in enumerate(zip(ix, target.shape, strict=True)) if a != axis]
    return ["{", *(f"    {line}" for line in (*start, *loops(others, [*load, f"{done};", put]))), "}"]


SLIDING: dict[str, Callable[[Any], list[str]]] = {
    "fft": _fft,
    "conv_general_dilated": _conv,
    "select_and_gather_add": _selected,
    "select_and_scatter_add": _selected,
}
