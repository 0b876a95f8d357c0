"""Windows: their reductions, choices of their elements, and convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tidu_cli.adapters.onnx.writing.arrays import reversed_along, spread
from tidu_cli.adapters.onnx.writing.lowering import WIDE_INTEGERS, Lowering, Rule, greatest, least, widened
from tidu_cli.graph.open_sizes import has_open_size
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import FLOATS, TensorType

_HALF = {"bf16": "f32", "f16": "f32"}
"""What is computed of halves, which the operators do not take, or runtimes have no kernels for."""

_INTEGERS = {"bool": "i32", **WIDE_INTEGERS, "u64": "u64"}
"""In which dtypes windows of integers are reduced, and convolved: the lowest bits of the results are the same."""


class Flat:
    """An array whose axes with windows are spatial ones, after one of channels and one for all others before it."""

    def __init__(self, low: Lowering, operand: TensorType, attrs: Any) -> None:
        self.low, rank, ones = low, operand.rank, (1,) * operand.rank
        base, dilation = attrs.base_dilation or ones, attrs.window_dilation or ones
        along = enumerate(zip(attrs.window_dimensions, attrs.window_strides, attrs.padding, base, strict=True))
        moved = [k for k, (size, stride, pads, d) in along if size > 1 or stride > 1 or any(pads) or d > 1]
        self.axes = moved or list(range(rank))[-1:]
        self.others = [k for k in range(rank) if k not in self.axes]
        self.shape = operand.shape
        self.kernel, self.strides, self.pads = (
            [given[k] for k in self.axes] for given in (attrs.window_dimensions, attrs.window_strides, attrs.padding)
        )
        self.dilations, self.base = [dilation[k] for k in self.axes], [base[k] for k in self.axes]
        self.order = [*self.others, *self.axes]
        self.channels = self.shape[self.others[-1]] if self.others else 1
        self.is_folded = isinstance(self.channels, OpenSize)  # weights have a number of channels
        self.channels = 1 if self.is_folded else self.channels

    def flat(self, x: str, shape: Sequence[int] | None = None) -> str:
        """x, of the operand's shape or another one, in that form."""
        shape = self.shape if shape is None else shape
        due, x = self.flat_shape(shape), self.low.transpose(x, self.order)
        return x if due == [shape[k] for k in self.order] else self.low.reshape(x, due)

    def flat_shape(self, shape: Sequence[int]) -> list[int]:
        """The shape of that form."""
        sizes, n = [shape[k] for k in self.order], len(self.others)
        return [math.prod(sizes[: n if self.is_folded else max(n - 1, 0)]), self.channels, *sizes[n:]]

    def restored(self, y: str, shape: Sequence[int], is_vector: bool = False) -> str:
        """A result of this shape from that form, or from a vector of its elements."""
        back = sorted(range(len(self.order)), key=self.order.__getitem__)
        is_whole = len(self.others) == 2 and not is_vector and not self.is_folded
        return self.low.transpose(y if is_whole else self.low.reshape(y, [shape[k] for k in self.order]), back)

    @property
    def is_apart(self) -> bool:
        """Whether no element is in two windows, and the last one ends where the operand does: so MaxUnpool knows its size."""
        sizes = [self.shape[k] for k in self.axes]
        whole = zip(sizes, self.kernel, self.strides, self.dilations, self.pads, strict=True)
        return all(step >= n and (size - n) % step == 0 and d == 1 and not any(pads) for size, n, step, d, pads in whole)

    @property
    def is_pooled(self) -> bool:
        """Whether runtimes have pooling of such windows: of floats, each with an element of the operand."""
        plain = all(n > 0 for n in self.shape) and not any(d > 1 for d in self.base) and 0 < len(self.axes) <= 3
        plain, along = plain and self.low.operands[-1].dtype in FLOATS, zip(self.kernel, self.dilations, self.pads, strict=True)
        return plain and all((d == 1 or not any(pads)) and all(0 <= p < n for p in pads) for n, d, pads in along)


def _along_axes(op_type: str, nothing: Callable[[str], object], low: Lowering, x: str) -> str | Sequence[str]:
    """Windows axis by axis: the elements of each as an axis, which is reduced."""
    value = nothing(low.operand.dtype)
    return widened(lambda inner, wide: _reduced(inner, wide, op_type, value), **_INTEGERS)(low, x)


def _reduced(low: Lowering, x: str, op_type: str, nothing: object) -> str:
    attrs, shape, dtype = low.attrs, list(low.operand.shape), low.operand.dtype
    rank = len(shape)
    for axis in range(rank):
        places, n = _elements(attrs, shape, axis)
        if places.shape[1] == 1 and np.array_equal(places[:, 0], np.arange(n)):
            continue
        if np.any(places == n):  # an element after the last one
            one = TensorType(dtype, tuple(1 if k == axis else m for k, m in enumerate(shape)))
            x = low.emit("Concat", x, low.filled(nothing, one), axis=axis)
        x = low.emit("Gather", x, low.body.constant(places), axis=axis)
        x = low.emit(op_type, x, low.ints([axis + 1]), keepdims=0)
        shape[axis] = len(places)
    return low.emit("Identity", x)


def _elements(attrs: Any, shape: Sequence[int], axis: int) -> tuple[Any, int]:
    """For each window of an axis the numbers of its elements, [windows, size]; and how many there are, which counts as none."""
    n, size, stride = shape[axis], attrs.window_dimensions[axis], attrs.window_strides[axis]
    (before, after), base = attrs.padding[axis], attrs.base_dilation[axis] if attrs.base_dilation else 1
    dilation = attrs.window_dilation[axis] if attrs.window_dilation else 1
    width = (max(n - 1, 0) * base + 1 if n else 0) + before + after
    count = max((width - (size - 1) * dilation - 1) // stride + 1, 0)
    at = np.arange(count)[:, None] * stride + np.arange(size) * dilation - before
    return np.where((at >= 0) & (at % base == 0) & (at // base < n), at // base, n).astype(np.int64), n


def _sum(low: Lowering, x: str) -> str | Sequence[str]:
    """A convolution by ones."""
    flat, dtype = Flat(low, low.operand, low.attrs), low.operand.dtype
    if not flat.is_pooled:
        return partial(_along_axes, "ReduceSum", lambda _: 0)(low, x)
    ones = low.body.constant(np.ones((flat.channels, 1, *flat.kernel)), dtype)
    x, pads = cropped(low, flat.flat(x), flat.pads)
    y = low.emit("Conv", x, ones, pads=pads, strides=flat.strides, dilations=flat.dilations, group=flat.channels)
    return flat.restored(y, low.result.shape)


def _pooled(low: Lowering, flat: Flat, x: str, n: int) -> list[str]:
    given = {"kernel_shape": flat.kernel, "pads": _sides(flat.pads), "strides": flat.strides, "dilations": flat.dilations}
    return low.emit_all("MaxPool", [x], n, **given)


def _extreme(op_type: str, nothing: Callable[[str], object], low: Lowering, x: str) -> str | Sequence[str]:
    flat = Flat(low, low.operand, low.attrs)
    if not flat.is_pooled:
        return partial(_along_axes, op_type, nothing)(low, x)
    wide = low.emit("Neg", x) if op_type == "ReduceMin" else x
    y = flat.restored(_pooled(low, flat, flat.flat(wide), 1)[0], low.result.shape)
    return low.emit("Neg", y) if op_type == "ReduceMin" else y


def _places(low: Lowering, flat: Flat, x: str) -> str:
    """The numbers of the elements that windows choose, in the flat form of the operand."""
    if low.operands[1].dtype in _HALF:
        x = low.cast(x, "f32")
    if not flat.is_pooled:
        return _chosen(low, flat, x)
    numbers = _numbers(low, flat, x)
    # Runtimes count elements of the whole array, or of each image: so what is told of the image is taken off, and put on.
    size = math.prod(flat.shape[k] for k in flat.axes)
    local = low.emit("Mod", numbers, low.number(size, "i64"))
    n = math.prod(flat.shape[k] for k in flat.others)
    images = low.counted(n, [-1, flat.channels, *[1] * len(flat.axes)], size)
    return low.emit("Add", local, images)


def _numbers(low: Lowering, flat: Flat, x: str) -> str:
    """The numbers that MaxPool has for the elements that it chooses, and MaxUnpool takes."""
    wide = low.emit("Neg", x) if low.attrs.select_prim == "le" else x
    return _pooled(low, flat, flat.flat(wide), 2)[1]


MOST_ELEMENTS = 2**22
"""Windows of more elements are not written one by one."""


def _chosen(low: Lowering, flat: Flat, x: str) -> str:
    """Likewise, by the elements of each window one by one, of which the first is chosen among equals."""
    operand = low.operands[1]
    among: Any = np.zeros((1,) * (2 * operand.rank), np.int64)
    is_there: Any = np.ones((1,) * (2 * operand.rank), bool)
    for axis in range(operand.rank):
        places, n = _elements(low.attrs, operand.shape, axis)
        step = math.prod(operand.shape[k] for k in flat.order[flat.order.index(axis) + 1 :])
        form = [m for k in range(operand.rank) for m in (places.shape if k == axis else (1, 1))]
        among, is_there = among + places.reshape(form) * step, is_there & (places < n).reshape(form)
        if among.size > MOST_ELEMENTS:
            raise low.refuse(f"has windows of more than {MOST_ELEMENTS:,} elements, which ONNX has no operator for")
    turned = [2 * k for k in flat.order] + [2 * k + 1 for k in flat.order]
    among, is_there = (np.transpose(v, turned).reshape(-1, math.prod(low.attrs.window_dimensions)) for v in (among, is_there))
    at = np.argsort(~is_there, 1, kind="stable")  # what is there comes first
    among, is_there = (np.take_along_axis(v, at, 1) for v in (among, is_there))
    if operand.size == 0 or not is_there.any(1).all():
        raise low.refuse("has windows without an element, which no element is chosen of")
    wide = low.cast(x, "u8") if operand.dtype == "bool" else x
    of_windows = low.emit("Gather", low.reshape(flat.flat(wide), [-1]), low.body.constant(np.where(is_there, among, 0)), axis=0)
    is_greatest = low.attrs.select_prim != "le"
    dtype = {"bool": "u8", **_HALF}.get(operand.dtype, operand.dtype)
    nothing = low.number((least if is_greatest else greatest)(dtype), dtype)
    if not is_there.all():
        of_windows = low.emit("Where", low.body.constant(is_there), of_windows, nothing)
    first = low.emit("ArgMax" if is_greatest else "ArgMin", of_windows, axis=1, keepdims=1)
    return low.emit("GatherElements", low.body.constant(among), first, axis=1)


def _scatter_selected(low: Lowering, source: str, operand: str) -> str:
    flat = Flat(low, low.operands[1], low.attrs)
    if not flat.axes or low.operand.size == 0:
        return low.emit("Identity", source) if not flat.axes else low.filled(0, low.result)
    if flat.is_pooled and flat.is_apart and {t.dtype for t in low.operands} == {"f32"}:
        taken, shape = flat.flat(source, low.operands[0].shape), low.ints(flat.flat_shape(flat.shape))
        numbers = _numbers(low, flat, operand)
        scattered = low.emit("MaxUnpool", taken, numbers, shape, kernel_shape=flat.kernel, strides=flat.strides)
        return flat.restored(scattered, low.result.shape)
    places, size = low.reshape(_places(low, flat, operand), [-1]), low.operands[1].size
    blank = low.emit("Expand", low.number(0), low.ints([size]))
    updates = low.reshape(flat.flat(source, low.operands[0].shape), [-1])
    return flat.restored(low.emit("ScatterElements", blank, places, updates, axis=0, reduction="add"), low.result.shape, True)


def _gather_selected(low: Lowering, source: str, operand: str) -> str:
    flat = Flat(low, low.operands[1], low.attrs)
    if not flat.axes:
        return low.emit("Identity", source)
    places = _places(low, flat, operand)
    gathered = low.emit("Gather", low.reshape(flat.flat(source), [-1]), low.reshape(places, [-1]), axis=0)
    return flat.restored(gathered, low.result.shape, True)


def _padded_first(rule: Rule) -> Rule:
    """The rule on what is padded, where padding is open: places are those in it. What is scattered is cropped."""

    def through(low: Lowering, *operands: str) -> str | Sequence[str]:
        op, pads, (*others, type_), (*given, x) = low.case.op, low.attrs.padding, low.operands, operands
        if not has_open_size(pads) or any(d > 1 for d in low.attrs.base_dilation or ()):
            return rule(low, *operands)
        wide = type_.with_shape(tuple(n + a + b for n, (a, b) in zip(type_.shape, pads, strict=True)))
        nothing = greatest if op == "reduce_window_min" or getattr(low.attrs, "select_prim", "") == "le" else least
        widths, is_scatter = _sides(pads), op == "select_and_scatter_add"
        x = low.emit("Pad", x, low.ints(widths), low.number(nothing(type_.dtype), type_.dtype))
        if not is_scatter:
            given, others = [low.emit("Pad", y, low.ints(widths)) for y in given], [wide for _ in others]
        attrs = type(low.attrs)(**{**vars(low.attrs), "padding": ((0, 0),) * type_.rank})
        (y,) = low.of(low.body, low.primitives.case(op, attrs, None, [*others, wide])).written([*given, x])
        return low.emit("Pad", y, low.ints([-n for n in widths])) if is_scatter else y

    return through


# Convolutions: Conv, or ConvTranspose where the operand is dilated.


def _conv(low: Lowering, x: str, w: str) -> str:
    attrs, numbers = low.attrs, low.attrs.dimension_numbers
    left, right = (list(t.shape) for t in low.operands)
    dtype = low.result.dtype
    through = _INTEGERS.get(dtype, dtype)
    x, w = (low.cast(v, through) if t.dtype != through else v for v, t in zip((x, w), low.operands, strict=True))
    x, left = _arranged(low, x, left, numbers.lhs_spec)
    groups, batches = attrs.feature_group_count or 1, attrs.batch_group_count or 1
    plain = not any(d > 1 for d in attrs.lhs_dilation)
    if batches > 1:  # groups of the batch become groups of features
        n = left[0] // batches
        x = low.transpose(low.reshape(x, [batches, n, *left[1:]]), [1, 0, *range(2, len(left) + 1)])
        left = [n, batches * left[1], *left[2:]]
        x, groups = low.reshape(x, left), batches
    if dtype not in FLOATS:
        w, right = _arranged(low, w, right, numbers.rhs_spec)
        y = _multiplied(low, x, left, w, right, groups)
    elif plain or any(s > 1 for s in attrs.window_strides):
        w, right = _arranged(low, w, right, numbers.rhs_spec)
        y = _windowed(low, x, left, w, groups)
    else:
        y = _transposed(low, x, left, w, right, groups)
    inverse = sorted(range(len(numbers.out_spec)), key=numbers.out_spec.__getitem__)
    y = low.transpose(y, inverse)
    return low.cast(y, dtype) if through != dtype else y


def _arranged(low: Lowering, x: str, shape: list[int], spec: Sequence[int]) -> tuple[str, list[int]]:
    return low.transpose(x, spec), [shape[k] for k in spec]


def _sides(pads: Iterable[Sequence[int]]) -> list[int]:
    """Pads of axes as ONNX has them: those before each, then those after each."""
    return [n for side in zip(*pads, strict=True) for n in side]


def _padded(low: Lowering, x: str, pads: Iterable[Sequence[int]]) -> str:
    """x with zeros around it on its spatial axes; a negative number takes elements off."""
    return low.emit("Pad", x, low.ints(_sides([(0, 0), (0, 0), *pads])))


def cropped(low: Lowering, x: str, pads: Sequence[tuple[int, int]]) -> tuple[str, list[int]]:
    """x, cut where spatial pads are negative, and padded where they are open; and the pads that are left, as ONNX has them."""
    if has_open_size(pads):
        return _padded(low, x, pads), [0] * (2 * len(pads))
    if any(a < 0 or b < 0 for a, b in pads):
        starts, ends = [max(-a, 0) for a, _ in pads], [min(b, 0) or 2**62 for _, b in pads]
        x = low.emit("Slice", x, low.ints(starts), low.ints(ends), low.ints(range(2, len(pads) + 2)))
    return x, _sides([(max(a, 0), max(b, 0)) for a, b in pads])


def _multiplied(low: Lowering, x: str, shape: Sequence[int], w: str, w_shape: Sequence[int], groups: int) -> str:
    """A convolution of integers, which Conv does not take: the elements of all windows, times the weights as a matrix."""
    attrs = low.attrs
    for k, d in enumerate(attrs.lhs_dilation):
        if d > 1 and shape[k + 2] > 1:
            x, shape = _dilated(low, x, shape, k + 2, d)
    x, pads = cropped(low, x, attrs.padding)
    rank = len(pads) // 2
    x = low.emit("Pad", x, low.ints([0, 0, *pads[:rank], 0, 0, *pads[rank:]])) if any(pads) else x
    sizes = [n + a + b for n, (a, b) in zip(shape[2:], attrs.padding, strict=True)]
    (n, c), (features, depth, *kernel) = shape[:2], w_shape
    counts = tuple(low.result.shape[k] for k in attrs.dimension_numbers.out_spec[2:])
    places = np.zeros((*kernel, *counts), np.int64)  # of elements in the flat image, for each tap of each window
    for k, (size, step, apart) in enumerate(zip(sizes, attrs.window_strides, attrs.rhs_dilation, strict=True)):
        along = np.arange(kernel[k])[:, None] * apart + np.arange(counts[k]) * step
        layout = [1] * (2 * rank)
        layout[k], layout[rank + k] = along.shape
        places = places * size + along.reshape(layout)
    taps, windows = math.prod(kernel), math.prod(counts)
    flat = low.reshape(x, [n, c, math.prod(sizes)])
    read = low.emit("Gather", flat, low.body.constant(places.reshape(taps, windows)), axis=2)
    columns = low.reshape(read, [n, groups, depth * taps, windows])
    y = low.emit("MatMul", low.reshape(w, [groups, features // groups, depth * taps]), columns)
    return low.reshape(y, [n, features, *counts])


def _windowed(low: Lowering, x: str, shape: Sequence[int], w: str, groups: int) -> str:
    attrs = low.attrs
    if len(shape) == 2:  # Conv has one spatial axis at least
        convolved = low.emit("Conv", low.emit("Unsqueeze", x, low.ints([2])), low.emit("Unsqueeze", w, low.ints([2])), group=groups)
        return low.emit("Squeeze", convolved, low.ints([2]))
    for k, d in enumerate(attrs.lhs_dilation):
        if d > 1 and shape[k + 2] != 1:
            x, shape = _dilated(low, x, shape, k + 2, d)
    x, pads = cropped(low, x, attrs.padding)
    return low.emit("Conv", x, w, pads=pads, strides=list(attrs.window_strides), dilations=list(attrs.rhs_dilation), group=groups)


def _dilated(low: Lowering, x: str, shape: Sequence[int], axis: int, d: int) -> tuple[str, list[int]]:
    """x with d - 1 zeros between elements of an axis."""
    return spread(low, x, shape, axis, d - 1), [*shape[:axis], (shape[axis] - 1) * d + 1, *shape[axis + 1 :]]


def _transposed(low: Lowering, x: str, shape: Sequence[int], w: str, w_shape: Sequence[int], groups: int) -> str:
    """By ConvTranspose, whose weights are turned round and have their features swapped."""
    attrs, spec = low.attrs, low.attrs.dimension_numbers.rhs_spec
    spatial = list(spec[2:])
    w = reversed_along(low, w, spatial)
    features, channels = w_shape[spec[0]], w_shape[spec[1]]
    kernel = [w_shape[k] for k in spatial]
    if groups == 1:
        w = low.transpose(w, [spec[1], spec[0], *spatial])
    else:
        w = low.reshape(low.transpose(w, [spec[0], spec[1], *spatial]), [groups, features // groups, channels, *kernel])
        w = low.transpose(w, [0, 2, 1, *range(3, 3 + len(kernel))])
        w = low.reshape(w, [groups * channels, features // groups, *kernel])
    reach = [(k - 1) * d for k, d in zip(kernel, attrs.rhs_dilation, strict=True)]
    cut = [(r - a, r - b) for r, (a, b) in zip(reach, attrs.padding, strict=True)]
    if any(isinstance(n, OpenSize) for pair in cut for n in pair):
        return _transposed_open(low, x, w, cut, groups)
    more, after = [], []
    for (a, b), s, d in zip(cut, attrs.lhs_dilation, attrs.rhs_dilation, strict=True):
        fits = -b if 0 < -b < max(s, d) else 0  # what output_padding may add
        more.append(fits)
        after.append((max(-a, 0), max(-b, 0) - fits))
    y = low.emit(
        "ConvTranspose",
        x,
        w,
        pads=_sides([(max(a, 0), max(b, 0)) for a, b in cut]),
        output_padding=more if any(more) else None,
        strides=list(attrs.lhs_dilation),
        dilations=list(attrs.rhs_dilation),
        group=groups,
    )
    if any(a or b for a, b in after):
        y = _padded(low, y, after)
    return y


def _transposed_open(low: Lowering, x: str, w: str, cut: Sequence[tuple[int, int]], groups: int) -> str:
    """Likewise, where what is to be cut off is open: ConvTranspose takes off as much as is sure, and Pad the rest, or adds it."""
    from tidu_cli.graph.sizes.polynomials import bounds

    sure = [tuple(max(int(bounds(n)[0]), 0) if bounds(n)[0] > -math.inf else 0 for n in pair) for pair in cut]
    strides, dilations = list(low.attrs.lhs_dilation), list(low.attrs.rhs_dilation)
    y = low.emit("ConvTranspose", x, w, pads=_sides(sure), strides=strides, dilations=dilations, group=groups)
    return _padded(low, y, [(a - c, b - d) for (a, b), (c, d) in zip(sure, cut, strict=True)])


LOWERINGS: Mapping[str, Rule] = {
    "conv_general_dilated": widened(_conv, **_HALF),
    "reduce_window_max": widened(_padded_first(partial(_extreme, "ReduceMax", least)), **_HALF),
    "reduce_window_min": widened(_padded_first(partial(_extreme, "ReduceMin", greatest)), **_HALF),
    "reduce_window_sum": widened(_sum, **_HALF),
    "select_and_gather_add": _padded_first(_gather_selected),
    "select_and_scatter_add": widened(_padded_first(_scatter_selected), **_HALF),
}
