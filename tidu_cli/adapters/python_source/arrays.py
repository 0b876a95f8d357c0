"""What moves elements, reduces them, or multiplies matrices: functions from a unit, a case and its operands to results."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from tidu_cli.adapters.python_source import text as python
from tidu_cli.adapters.python_source.elements import dtype_text, extreme, filled, scalar
from tidu_cli.adapters.source_code import UnwrittenError
from tidu_cli.graph.sizes.open import OpenSize, larger, least, smaller
from tidu_cli.graph.types import INTEGERS
from tidu_cli.lax.arrays.joining import size_literal
from tidu_cli.lax.arrays.structural import literal_array

Results = python.Text | list[python.Text]
Write = Callable[[Any, Any, list[python.Text]], Results]

_INLINE = 12
"""Constants of more elements have a name."""


def number(dtype: str, value: Any) -> python.Text:
    """A number, which is of its dtype where it meets an array."""
    return python.Text(*scalar(dtype, value), (), True)


def zeros(type_: Any) -> python.Text:
    """An array of zeros."""
    return python.call(f"np.zeros({python.shape_text(type_.shape)}, dtype={dtype_text(type_.dtype)})", type_.shape)


def _constant(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    dtype, a = case.results[0].dtype, case.attrs
    if case.op == "size" and isinstance(a.expression, OpenSize):
        text = python.size_text(a.expression)
        return python.Text(text, python.ATOM if text.isidentifier() else python.SUM, (), True)
    array = literal_array(np, size_literal(a) if case.op == "size" else a.value)
    flat = array.reshape(-1)
    if flat.size and flat.tobytes() == flat[:1].tobytes() * flat.size:
        return number(dtype, flat[0])
    if not flat.size:
        return zeros(case.results[0])
    if flat.size > _INLINE:
        return python.call(unit.module.constant(dtype, array), array.shape)

    def nested(part: Any) -> str:
        return f"[{', '.join(map(nested, part))}]" if part.ndim else scalar(dtype, part[()])[0]

    return python.call(f"np.array({nested(array)}, dtype={dtype_text(dtype)})", array.shape)


def _iota(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    a = case.attrs
    n = a.shape[a.dimension]
    counted = python.call(f"np.arange({python.size_text(n)}, dtype={dtype_text(a.dtype)})", (n,))
    return placed(counted, [a.dimension], len(a.shape))


def placed(x: python.Text, axes: Sequence[int], rank: int) -> python.Text:
    """x with its axes as these of a result, which NumPy broadcasts along all others."""
    axes = list(axes)[len(axes) - len(x.shape) :]
    if not axes or axes == list(range(rank - len(axes), rank)):
        return x
    aligned = dict(zip(axes, x.shape, strict=True))
    shape = tuple(aligned.get(k, 1) for k in range(axes[0], rank))
    index = ", ".join(":" if k in aligned else "None" for k in range(axes[0], rank))
    return python.call(f"{x.within(python.ATOM)}[{index}]", shape)


def _broadcast(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    return placed(xs[0], case.attrs.broadcast_dimensions, len(case.attrs.shape))


def _expand(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    rank = len(case.results[0].shape)
    return placed(xs[0], [k for k in range(rank) if k not in case.attrs.dimensions], rank)


def _reshape(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    (x,), shape = xs, case.results[0].shape
    if not x.shape or x.shape == shape:
        return x
    return python.call(f"np.reshape({unit.full(x, case.operands[0])}, {python.shape_text(shape)})", shape)


def _transpose(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    order, shape = case.attrs.permutation, case.results[0].shape
    if not xs[0].shape or list(order) == list(range(len(order))):
        return xs[0]
    x = unit.full(xs[0], case.operands[0], python.ATOM)
    return python.call(f"{x}.T" if order == (1, 0) else f"np.transpose({x}, {python.tuple_text(map(str, order))})", shape)


def _rev(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    axes = case.attrs.dimensions
    return python.call(f"np.flip({unit.full(xs[0], case.operands[0])}, {python.tuple_text(map(str, axes))})", case.results[0].shape)


def _slices(ends: Sequence[tuple[int, int, int]], shape: Sequence[int]) -> str:
    """[begin:end:step] on each axis."""
    texts = [python.slice_text(begin, None if end == n else end, step) for (begin, end, step), n in zip(ends, shape, strict=True)]
    while texts and texts[-1] == ":":
        texts.pop()
    return f"[{', '.join(texts)}]" if texts else ""


def _slice(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    a, shape = case.attrs, case.operands[0].shape
    ends = list(zip(a.start_indices, a.limit_indices, a.strides or (1,) * len(shape), strict=True))
    return python.call(unit.full(xs[0], case.operands[0], python.ATOM) + _slices(ends, shape), case.results[0].shape)


def _split(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    axis, shape = case.attrs.axis, case.operands[0].shape
    x = unit.simple(python.call(unit.full(xs[0], case.operands[0]), shape)).code
    begins = accumulate(case.attrs.sizes, initial=0)
    cuts = [[(b, b + n, 1) if k == axis else (0, m, 1) for k, m in enumerate(shape)] for b, n in zip(begins, case.attrs.sizes)]  # noqa: B905
    return [python.call(x + _slices(cut, shape), t.shape) for cut, t in zip(cuts, case.results, strict=True)]


def _concatenate(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    parts = ", ".join(unit.full(x, t) for x, t in zip(xs, case.operands, strict=True))
    axis = f", axis={case.attrs.dimension}" if case.attrs.dimension else ""
    return python.call(f"np.concatenate([{parts}]{axis})", case.results[0].shape)


def _pad(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    (type_, _), (result,), config = case.operands, case.results, case.attrs.padding_config
    shape = result.shape
    if all(gap == 0 for *_, gap in config) and xs[1].is_number:
        cuts = [(larger(-low, 0), n - larger(-high, 0), 1) for n, (low, high, _) in zip(type_.shape, config, strict=True)]
        if all(begin <= end for begin, end, _ in cuts):
            widths = [f"({python.size_text(larger(low, 0))}, {python.size_text(larger(high, 0))})" for low, high, _ in config]
            x = unit.full(xs[0], type_, python.ATOM) + _slices(cuts, type_.shape)
            value = "" if xs[1].code in ("0.0", "0", "False") else f", constant_values={xs[1].code}"
            return python.call(f"np.pad({x}, {python.tuple_text(widths)}{value})", shape) if shape else python.call(x, ())
    if unit.module.sizes and not all(isinstance(n, int) for n in shape):
        padding = python.tuple_text(f"({python.size_text(low)}, {python.size_text(high)})" for low, high, _ in config)
        steps = python.tuple_text(str(gap + 1) for *_, gap in config)
        fill = xs[1].code
        return python.call(f"{unit.module.use('_spread')}({unit.full(xs[0], type_)}, {fill}, {padding}, {steps})", shape)
    source, target = [], []
    for n, size, (low, _, gap) in zip(type_.shape, shape, config, strict=True):
        step = gap + 1  # element k goes to low + k step
        first, end = larger(-(low // step), 0), smaller(-((low - size) // step), n)
        end = larger(end, first)
        source.append((first, end, 1))
        target.append((low + first * step, low + (end - 1) * step + 1, step) if end > first else (0, 0, 1))
    new = filled(xs[1], result) if xs[1].is_number else f"np.broadcast_to({xs[1].code}, {python.shape_text(shape)}).copy()"
    out: python.Text = unit.assign(python.call(new, shape), 0)
    unit.emit(
        f"{out.code}{_slices(target, shape) or '[...]'} = {unit.full(xs[0], type_, python.ATOM)}{_slices(source, type_.shape)}"
    )
    return out


def _axis(axes: Sequence[int], rank: int) -> str:
    """The argument of a reduction: nothing if it is over all axes."""
    return "" if len(axes) == rank else f", axis={axes[0] if len(axes) == 1 else python.tuple_text(map(str, axes))}"


_FOLDS = {"reduce_sum": "sum", "reduce_prod": "prod", "reduce_max": "max", "reduce_min": "min"}


def _reduce(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    (type_,), (result,), axes = case.operands, case.results, case.attrs.axes
    x, axis, dtype = unit.full(xs[0], type_), _axis(axes, type_.rank), type_.dtype
    name = _FOLDS.get(case.op)
    if not axes:
        return xs[0]
    if case.op in ("reduce_max", "reduce_min"):
        most = extreme(dtype, low=case.op == "reduce_max")
        if 0 in [type_.shape[k] for k in axes]:
            return python.Text(most, python.SIGN, (), True)
        if not all(least(type_.shape[k]) for k in axes):
            axis += f", initial={most}"
    if name is None:
        if dtype == "bool" and case.op != "reduce_xor":
            return python.call(f"np.{'all' if case.op == 'reduce_and' else 'any'}({x}{axis})", result.shape)
        function = f"np.bitwise_{case.op.removeprefix('reduce_')}.reduce"
        return python.call(f"{function}({x}, axis={python.tuple_text(map(str, axes))})", result.shape)
    if name in ("sum", "prod") and dtype == "f16":
        return python.call(f"np.{name}({x}{axis}, dtype=np.float32).astype(np.float16)", result.shape)
    wide = f", dtype={dtype_text(dtype)}" if dtype in INTEGERS - {"i64", "u64"} and name in ("sum", "prod") else ""
    return python.call(f"np.{name}({x}{axis}{wide})", result.shape)


def _position(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    dtype = case.attrs.index_dtype
    code = f"np.{case.op}({unit.full(xs[0], case.operands[0])}, axis={case.attrs.axes[0]})"
    return python.call(code if dtype == "i64" else f"{code}.astype({dtype_text(dtype)})", case.results[0].shape)


_CUMULATIVE = {"cummax": "maximum", "cummin": "minimum", "cumlogsumexp": "logaddexp"}


def _cumulate(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    (type_,), a, dtype = case.operands, case.attrs, case.operands[0].dtype
    x = unit.full(xs[0], type_)
    if a.reverse:
        x = f"np.flip({x}, {a.axis})"
    if case.op in _CUMULATIVE:
        if type_.complex:
            raise UnwrittenError(f"NumPy has no {case.op} of complex numbers")
        code = f"np.{_CUMULATIVE[case.op]}.accumulate({x}, axis={a.axis})"
    else:
        wide = ", dtype=np.float32" if dtype == "f16" else f", dtype={dtype_text(dtype)}" if dtype in INTEGERS else ""
        code = f"np.{case.op}({x}, axis={a.axis}{wide})" + (".astype(np.float16)" if dtype == "f16" else "")
    return python.call(f"np.flip({code}, {a.axis})" if a.reverse else code, type_.shape)


def _dot(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    (lhs, rhs), (result,) = case.operands, case.results
    (lc, rc), (lb, rb) = case.attrs.dimension_numbers
    through = "f32" if result.dtype == "f16" else result.dtype
    if not lc and lhs.rank == rhs.rank == 1 and through == lhs.dtype and not lb:
        return python.call(f"np.outer({unit.full(xs[0], lhs)}, {unit.full(xs[1], rhs)})", result.shape)
    if not lc and not lb and through == lhs.dtype:
        left = placed(xs[0], range(lhs.rank), lhs.rank + rhs.rank)
        return python.Text(
            f"{left.within(python.PRODUCT)} * {xs[1].within(python.SIGN)}",
            python.PRODUCT,
            python.broadcast(left.shape, xs[1].shape),
        )
    x, y = (
        unit.full(x, t, python.ATOM) + (f".astype({dtype_text(through)})" if through != t.dtype else "")
        for x, t in zip(xs, case.operands, strict=True)
    )
    back = f".astype({dtype_text(result.dtype)})" if through != result.dtype else ""
    if len(lc) == 1 and not lb and lhs.rank <= 2 and rhs.rank <= 2:
        x, y = x if lc[0] == lhs.rank - 1 else f"{x}.T", y if rc[0] == 0 else f"{y}.T"
        return (
            python.call(f"np.matmul({x}, {y}){back}", result.shape)
            if back
            else python.Text(f"{x} @ {y}", python.PRODUCT, result.shape)
        )
    first = tuple(range(len(lb)))
    if len(lc) == 1 and lb == rb == first and lhs.rank == rhs.rank == len(lb) + 2:
        x = x if lc[0] == lhs.rank - 1 else f"np.swapaxes({x}, -1, -2)"
        y = y if rc[0] == rhs.rank - 2 else f"np.swapaxes({y}, -1, -2)"
        return python.call(f"np.matmul({x}, {y}){back}", result.shape)
    if not lb:
        axes = f"({python.tuple_text(map(str, lc))}, {python.tuple_text(map(str, rc))})"
        return python.call(f"np.tensordot({x}, {y}, axes={axes}){back}", result.shape)
    if lhs.rank + rhs.rank > 26:
        raise UnwrittenError("NumPy has no products over more than 26 axes; reshape first")
    letters = iter(string.ascii_lowercase)
    a = [next(letters) for _ in range(lhs.rank)]
    b = [a[lc[rc.index(k)]] if k in rc else a[lb[rb.index(k)]] if k in rb else next(letters) for k in range(rhs.rank)]
    out = [a[k] for k in lb]
    out += [c for k, c in enumerate(a) if k not in (*lb, *lc)] + [c for k, c in enumerate(b) if k not in (*rb, *rc)]
    text = f"{''.join(a)},{''.join(b)}->{''.join(out)}"
    return python.call(f'np.einsum("{text}", {x}, {y}){back}', result.shape)


def _itself(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    return xs


def _held(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    if xs[0].is_number:
        return xs
    return python.call(f"{unit.module.use('_constant')}({xs[0].code})", xs[0].shape)


ARRAYS: dict[str, Write] = {
    "constant": _constant, "size": _constant, "iota": _iota,
    "broadcast_in_dim": _broadcast, "expand_dims": _expand, "reshape": _reshape,
    "squeeze": _reshape, "transpose": _transpose, "rev": _rev, "slice": _slice, "split": _split, "concatenate": _concatenate,
    "pad": _pad, "dot_general": _dot, "copy": _itself, "stop_gradient": _held, "optimization_barrier": _itself,
    **dict.fromkeys([*_FOLDS, "reduce_and", "reduce_or", "reduce_xor"], _reduce), "argmax": _position, "argmin": _position,
    **dict.fromkeys([*_CUMULATIVE, "cumsum", "cumprod"], _cumulate),
}  # fmt: skip
"""By op."""
