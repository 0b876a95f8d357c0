"""Elements at computed places: slices, gathers and scatters as integers that index, sorting."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tidu_cli.adapters.python_source.arrays import Results, Write, placed
from tidu_cli.adapters.python_source.elements import dtype_text, extreme, scalar
from tidu_cli.adapters.python_source.text import ATOM, SUM, Text, broadcast, call, shape_text, size_text, slice_text, tuple_text
from tidu_cli.adapters.source_code import UnwrittenError
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import COMPLEXES, FLOATS
from tidu_cli.lax.arrays.gather import filling
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.arrays.windows import gather_windows, scatter_windows

_LONGEST = 32
"""Longer indices have names."""


def _clipped(code: str, most: Any, dtype: str) -> str:
    wide = ".astype(np.int64)"
    if isinstance(most, OpenSize):
        return f"np.clip({code}{'' if dtype in ('i32', 'i64') else wide}, 0, {size_text(most)})"
    own = wide if dtype == "u64" else ""  # which with integers that have signs would become floats
    return f"np.clip({code}, 0, {min(most, np.iinfo(dtype_text(dtype)[3:]).max)}){own}"


def _dynamic_slice(unit: Any, case: Any, xs: list[Text]) -> Results:
    x, *starts = (unit.full(x, t) for x, t in zip(xs, case.operands, strict=True))
    sizes = ", ".join(map(size_text, case.attrs.slice_sizes))
    return call(f"{unit.module.use('_slice')}({x}, [{', '.join(starts)}], [{sizes}])", case.results[0].shape)


def _dynamic_update(unit: Any, case: Any, xs: list[Text]) -> Results:
    x, part, *starts = (unit.full(x, t) for x, t in zip(xs, case.operands, strict=True))
    return call(f"{unit.module.use('_updated')}({x}, {part}, [{', '.join(starts)}])", case.results[0].shape)


def _copied(unit: Any, x: Text, type_: Any) -> Text:
    code = unit.full(x, type_, ATOM)
    fresh = code.startswith(("np.zeros(", "np.full("))
    return call(code if fresh else f"np.array({code})", type_.shape)


class _Places(NamedTuple):
    """Integers that index the windows of an array, as they meet in the windowed one, which has `rest` after the axes of `shape`."""

    parts: list[Text]
    fits: Text | None
    shape: tuple[int, ...]
    order: tuple[int, ...]
    """The axes of `shape`, first those of the batch."""

    @property
    def met(self) -> tuple[int, ...]:
        """The shape in which the integers meet."""
        return broadcast(*[x.shape for x in self.parts])

    def code(self) -> str:
        return ", ".join(x.code for x in self.parts)


def _places(unit: Any, windows: Any, indices: Text, type_: Any, mode: str) -> _Places:
    n_batch, n_axes = len(windows.batch), len(windows.operand)
    place = dict(zip(windows.layout, range(len(windows.shape)), strict=True))
    batch_axes = [place[k] for k in range(n_batch)]
    of_window = {axis: place[n_batch + k] for k, axis in enumerate(windows.kept)}
    whole = n_axes  # from there on axes are taken whole, and are the last of the windowed array
    rank = len(windows.shape)
    moved = {*windows.index_map, *dict(windows.in_step)}
    while (
        whole
        and whole - 1 not in moved
        and windows.sizes[whole - 1] == windows.operand[whole - 1]
        and of_window.get(whole - 1) == rank - 1
    ):
        whole, rank = whole - 1, rank - 1
    at = unit.simple(call(unit.full(indices, type_), type_.shape)).code
    index: list[Text] = []
    fits: list[str] = []
    for axis, (n, size) in enumerate(zip(windows.operand[:whole], windows.sizes, strict=False)):
        parts = []
        if axis in windows.index_map:
            given = f"{at}[..., {windows.index_map.index(axis)}]"
            start = call(_clipped(given, n - size, type_.dtype), windows.batch)
            if mode == "fill":
                start = unit.assign(start)
                fits.append(f"{start.code} == {given}")
            parts.append(placed(start, batch_axes, rank))
        parts += [placed(call(f"np.arange({size_text(n)})", (n,)), [place[j]], rank) for i, j in windows.in_step if i == axis]
        if axis in of_window and (size != 1 or not parts or of_window[axis] < min(batch_axes, default=rank)):
            parts.append(placed(call(f"np.arange({size_text(size)})", (size,)), [of_window[axis]], rank))
        code = " + ".join(p.code for p in parts) or "0"
        x = Text(code, SUM if len(parts) > 1 else ATOM, broadcast(*[p.shape for p in parts]))
        index.append(x if len(code) <= _LONGEST else unit.assign(x))
    met = fits[0] if len(fits) == 1 else " & ".join(f"({fit})" for fit in fits)
    fit = placed(unit.assign(call(met, windows.batch)), batch_axes, rank) if fits else None
    order = (*batch_axes, *(k for k in range(rank) if k not in batch_axes))
    return _Places(index, fit, windows.shape[:rank], order)


def _gather(unit: Any, case: Any, xs: list[Text]) -> Results:
    (type_, indices), (result,), a = case.operands, case.results, case.attrs
    windows = gather_windows(a.dimension_numbers, a.slice_sizes, type_, indices)
    places = _places(unit, windows, xs[1], indices, a.mode)
    n_rest = len(result.shape) - len(places.shape)
    x = call(f"{unit.full(xs[0], type_, ATOM)}[{places.code() or '...'}]", (*places.met, *result.shape[len(places.shape) :]))
    if places.fits is None:
        return x
    fits = placed(places.fits, range(len(places.shape)), len(result.shape)) if n_rest else places.fits
    fill = np.asarray(filling(np, result.dtype, a.fill_value), numpy_dtype(np, result.dtype))
    return call(f"np.where({fits.code}, {x.code}, {scalar(result.dtype, fill[()])[0]})", result.shape)


_AT = {
    "scatter-add": "add", "scatter-sub": "subtract", "scatter-mul": "multiply", "scatter-max": "maximum",
    "scatter-min": "minimum",
}  # fmt: skip


def _scatter(unit: Any, case: Any, xs: list[Text]) -> Results:
    type_, indices, updates = case.operands
    if updates.size == 0:
        return xs[0]
    windows = scatter_windows(case.attrs.dimension_numbers, type_, indices, updates)
    places = _places(unit, windows, xs[1], indices, case.attrs.mode)
    if places.met != places.shape:
        raise UnwrittenError("NumPy source has no windows that all are at one place; write it with dynamic_update_slice")
    index, new, op = places.code() or "...", unit.full(xs[2], updates), case.op
    out: Text = unit.assign(_copied(unit, xs[0], type_), 0)
    wide = type_.dtype == "f16" and op in _AT
    if wide:
        unit.emit(f"{out.code} = {out.code}.astype(np.float32)")
    if places.fits is not None and op == "scatter":
        fits = unit.assign(_in_a_row(places, places.fits.code)).code
        index = ", ".join(f"{unit.assign(_in_a_row(places, x.code)).code}[{fits}]" for x in places.parts)
        new = f"{unit.assign(_in_a_row(places, new, updates.shape)).code}[{fits}]"
    elif op == "scatter" and len(places.shape) > 1 and not case.attrs.unique_indices:
        index = ", ".join(unit.assign(_in_a_row(places, x.code)).code for x in places.parts)
        new = unit.assign(_in_a_row(places, new, updates.shape)).code
    elif places.fits is not None:
        fits = placed(places.fits, range(len(places.shape)), len(updates.shape)).code
        new = f"np.where({fits}, {new}, {_neutral(op, type_.dtype)})"
    if op in _AT:
        unit.emit(f"np.{_AT[op]}.at({out.code}, {f'({index})' if len(places.parts) > 1 else index}, {new})")
    else:
        unit.emit(f"{out.code}[{index}] = {new}")
    return call(f"{out.code}.astype(np.float16)", out.shape) if wide else out


def _in_a_row(places: _Places, code: str, shape: Sequence[int] = ()) -> Text:
    """What there is for each place, along one axis: of equal places NumPy then takes the last."""
    shape = tuple(shape) or places.shape
    rest = shape[len(places.shape) :]
    whole, order = f"np.broadcast_to({code}, {shape_text(shape)})", (*places.order, *range(len(places.shape), len(shape)))
    if list(order) != sorted(order):
        whole = f"np.transpose({whole}, {tuple_text(map(str, order))})"
    return call(f"np.reshape({whole}, {shape_text((-1, *rest))})", (prod(places.shape), *rest))


def _neutral(op: str, dtype: str) -> str:
    """What changes nothing."""
    return extreme(dtype, low=op == "scatter-max") if op in ("scatter-max", "scatter-min") else "1" if op == "scatter-mul" else "0"


def _sort(unit: Any, case: Any, xs: list[Text]) -> Results:
    a, first = case.attrs, case.operands[0]
    texts = [unit.full(x, t) for x, t in zip(xs, case.operands, strict=True)]
    if len(xs) == 1 and first.dtype not in COMPLEXES:
        kind = ', kind="stable"' if first.dtype in FLOATS else ""
        return call(f"np.sort({texts[0]}, axis={a.dimension}{kind})", first.shape)
    texts = [unit.simple(Text(text, ATOM, ())).code for text in texts]
    order = _order(unit, texts[: a.num_keys], first, a.dimension)
    return [call(f"np.take_along_axis({text}, {order}, {a.dimension})", first.shape) for text in texts]


def _order(unit: Any, keys: Sequence[str], type_: Any, axis: int) -> str:
    if len(keys) == 1 and type_.dtype not in COMPLEXES:
        code = f'np.argsort({keys[0]}, axis={axis}, kind="stable")'
    else:
        code = f"{unit.module.use('_argsort')}([{', '.join(keys)}], {axis})"
    return str(unit.assign(call(code, type_.shape)).code)


def _top_k(unit: Any, case: Any, xs: list[Text]) -> Results:
    (type_,), a = case.operands, case.attrs
    n = type_.shape[a.axis]
    x = unit.simple(call(unit.full(xs[0], type_), type_.shape)).code
    order = _order(unit, [f"np.flip({x}, {a.axis})"], type_, a.axis)
    first = f"[{', '.join([*[':'] * a.axis, slice_text(0, a.k)])}]"
    places = unit.assign(call(f"({size_text(n - 1)} - np.flip({order}, {a.axis})){first}", case.results[0].shape)).code
    taken = call(f"np.take_along_axis({x}, {places}, {a.axis})", case.results[0].shape)
    return [taken, call(f"{places}.astype(np.int32)", case.results[1].shape)]


INDEXING: dict[str, Write] = {
    "dynamic_slice": _dynamic_slice, "dynamic_update_slice": _dynamic_update, "gather": _gather, "sort": _sort, "top_k": _top_k,
    **dict.fromkeys(["scatter", *_AT], _scatter),
}  # fmt: skip
"""By op."""
