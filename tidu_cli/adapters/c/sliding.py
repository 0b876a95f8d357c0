"""Windows that slide over an array: convolutions, reductions of windows, and what their extrema choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tidu_cli.adapters.c.kernel import summed_in, zero
from tidu_cli.adapters.c.views import CTYPES, indices, loops, place, row_major
from tidu_cli.graph.types import FLOATS
from tidu_cli.lax.signal.sliding import Sliding, slidings
from tidu_cli.lax.signal.window_reduction import windows_of


def _met(axes: Sequence[Sliding], outer: Sequence[str], inner: Sequence[str], body: Sequence[str]) -> list[str]:
    """A body for each place `t…` of a window that falls on an element, whose indices are `q…`."""
    lines, tests = [], []
    for a, (along, o, t) in enumerate(zip(axes, outer, inner, strict=True)):
        lines.append(f"const long p{a} = {along.stride} * {o} + {along.dilation} * {t} - {along.low}, q{a} = p{a} / {along.base};")
        tests.append(f"p{a} >= 0 && q{a} < {along.n}" + (f" && p{a} % {along.base} == 0" if along.base > 1 else ""))
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
    sample = f"({group} * {shape[0]} + o0)" if a.batch_group_count > 1 else "o0"
    feature = f"({group} * {window[1]} + c)" if a.feature_group_count > 1 else "c"
    left = _placed(ls, [sample, feature, *(f"q{d}" for d in range(len(axes)))])
    right = _placed(rs, ["o1", "c", *inner])
    dtype = summed_in(r.dtype)
    product = k.fold("mul", dtype)(k.converted(0, left, dtype), k.converted(1, right, dtype))
    step = loops([("c", window[1])], _met(axes, outer[2:], inner, [f"a = {k.fold('add', dtype)('a', product)};"]))
    body = [f"{CTYPES[dtype]} a = {zero(dtype)};", *(step if x.size and y.size else []), k.put(0, _placed(os, outer), "a")]
    return loops(zip(outer, shape, strict=True), body)


def _placed(spec: Sequence[int], ix: Sequence[str]) -> list[str]:
    by_axis = dict(zip(spec, ix, strict=True))
    return [by_axis[d] for d in range(len(ix))]


def window_reduction(k: Any, fold: Callable[..., str], first: str) -> list[str]:
    """Each window reduced, beginning with `first`."""
    (x,), (r,) = k.reads, k.results
    axes = windows_of(k.attrs, k.case.operands[0])
    outer, inner, met = ([f"{letter}{d}" for d in range(len(axes))] for letter in "otq")
    step = _met(axes, outer, inner, [f"a = {fold('a', k.at(0, met))};"]) if x.size else []
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
    search = ["long best = -1;", f"{ctype} a = 0;", *_met(axes, outer, inner, body)] if x.size else []
    at = [f"(best / {s} % {max(n, 1)})" for s, n in zip(strides, x.shape, strict=True)] if x.size else []
    if not adding:
        chosen = f"best < 0 ? {zero(operand)} : {k.at(0, at)}" if x.size else zero(operand)
        return loops(zip(outer, k.results[0].shape, strict=True), [*search, k.put(0, outer, chosen)])
    ix = indices("i", x.shape)
    target, end = k.results[0], []
    if k.scratch:  # sums of halves, which are rounded in the end
        target = k.scratch[0]._replace(shape=target.shape, strides=strides)
        end = loops(zip(ix, x.shape, strict=True), [k.put(0, ix, k.unit.at(target, ix))])
    cleared = loops(zip(ix, x.shape, strict=True), [k.unit.put(target, ix, zero(target.dtype))])
    put = k.unit.put(target, at, k.fold("add", target.dtype)(k.unit.at(target, at), k.at(0, outer)))
    sizes = [along.count for along in axes]
    return [*cleared, *(loops(zip(outer, sizes, strict=True), [*search, f"if (best >= 0) {put}"]) if prod(sizes) else []), *end]


SLIDING: dict[str, Callable[[Any], list[str]]] = {
    "conv_general_dilated": _conv,
    "select_and_gather_add": _selected,
    "select_and_scatter_add": _selected,
}
