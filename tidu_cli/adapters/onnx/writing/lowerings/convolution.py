"""Convolutions: Conv, or ConvTranspose where the operand is dilated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidu_cli.adapters.onnx.writing.lowering import Lowering, Rule, widened
from tidu_cli.adapters.onnx.writing.lowerings.arrays import reversed_along
from tidu_cli.graph.types import FLOATS


def _conv(low: Lowering, x: str, w: str) -> str:
    attrs, numbers = low.attrs, low.attrs.dimension_numbers
    left, right = (list(t.shape) for t in low.operands)
    dtype = low.result.dtype
    through = dtype if dtype in FLOATS else "f64"  # ONNX convolves floats; doubles hold sums of products of 32 bits
    if dtype in ("i64", "u64"):
        raise low.refuse(f"of {dtype} has no operator in ONNX; convert to floats")
    x, w = (low.cast(v, through) if t.dtype != through else v for v, t in zip((x, w), low.operands, strict=True))
    x, left = _arranged(low, x, left, numbers.lhs_spec)
    groups, batches = attrs.feature_group_count or 1, attrs.batch_group_count or 1
    plain = not any(d > 1 for d in attrs.lhs_dilation)
    if batches > 1:  # groups of the batch become groups of features
        n = left[0] // batches
        x = low.transpose(low.reshape(x, [batches, n, *left[1:]]), [1, 0, *range(2, len(left) + 1)])
        left = [n, batches * left[1], *left[2:]]
        x, groups = low.reshape(x, left), batches
    if plain or any(s > 1 for s in attrs.window_strides):
        w, right = _arranged(low, w, right, numbers.rhs_spec)
        y = _windowed(low, x, left, w, groups)
    else:
        y = _transposed(low, x, left, w, right, groups)
    inverse = sorted(range(len(numbers.out_spec)), key=numbers.out_spec.__getitem__)
    y = low.transpose(y, inverse)
    return low.cast(y, dtype) if through != dtype else y


def _arranged(low: Lowering, x: str, shape: list[int], spec: Sequence[int]) -> tuple[str, list[int]]:
    return low.transpose(x, spec), [shape[k] for k in spec]


def cropped(low: Lowering, x: str, pads: Sequence[tuple[int, int]], value: str | None = None) -> tuple[str, list[int]]:
    """x, cut where spatial pads are negative; and the pads that are left, as ONNX has them."""
    if any(a < 0 or b < 0 for a, b in pads):
        starts, ends = [max(-a, 0) for a, _ in pads], [min(b, 0) or 2**62 for _, b in pads]
        axes = range(2, len(pads) + 2)
        x = low.emit("Slice", x, low.ints(starts), low.ints(ends), low.ints(axes))
    return x, [*[max(a, 0) for a, _ in pads], *[max(b, 0) for _, b in pads]]


def _windowed(low: Lowering, x: str, shape: Sequence[int], w: str, groups: int) -> str:
    attrs = low.attrs
    if len(shape) == 2:  # Conv has one spatial axis at least
        found = low.emit("Conv", low.emit("Unsqueeze", x, low.ints([2])), low.emit("Unsqueeze", w, low.ints([2])), group=groups)
        return low.emit("Squeeze", found, low.ints([2]))
    for k, d in enumerate(attrs.lhs_dilation):
        if d > 1 and shape[k + 2] > 1:
            x, shape = _dilated(low, x, shape, k + 2, d)
    x, pads = cropped(low, x, attrs.padding)
    return low.emit("Conv", x, w, pads=pads, strides=list(attrs.window_strides), dilations=list(attrs.rhs_dilation), group=groups)


def _dilated(low: Lowering, x: str, shape: Sequence[int], axis: int, d: int) -> tuple[str, list[int]]:
    """x with d - 1 zeros between elements of an axis."""
    n, split = shape[axis], [*shape[: axis + 1], 1, *shape[axis + 1 :]]
    pads = [0] * (2 * len(split))
    pads[len(split) + axis + 1] = d - 1
    wide = low.emit("Pad", low.reshape(x, split), low.ints(pads))
    flat = low.reshape(wide, [*shape[:axis], n * d, *shape[axis + 1 :]])
    due = (n - 1) * d + 1
    return low.emit("Slice", flat, low.ints([0]), low.ints([due]), low.ints([axis])), [*shape[:axis], due, *shape[axis + 1 :]]


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
    more, after = [], []
    for (a, b), s, d in zip(cut, attrs.lhs_dilation, attrs.rhs_dilation, strict=True):
        fits = -b if 0 < -b < max(s, d) else 0  # what output_padding may add
        more.append(fits)
        after.append((max(-a, 0), max(-b, 0) - fits))
    y = low.emit(
        "ConvTranspose",
        x,
        w,
        pads=[*[max(a, 0) for a, _ in cut], *[max(b, 0) for _, b in cut]],
        output_padding=more if any(more) else None,
        strides=list(attrs.lhs_dilation),
        dilations=list(attrs.rhs_dilation),
        group=groups,
    )
    if any(a or b for a, b in after):
        y = low.emit("Pad", y, low.ints([0, 0, *[a for a, _ in after], 0, 0, *[b for _, b in after]]))
    return y


LOWERINGS: Mapping[str, Rule] = {"conv_general_dilated": widened(_conv, bf16="f32", f16="f32")}
