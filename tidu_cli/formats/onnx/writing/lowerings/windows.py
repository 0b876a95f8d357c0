"""Reductions of windows, and what chooses elements of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.formats.onnx.writing.lowering import Lowering, Rule, widened
from tidu_cli.formats.onnx.writing.lowerings.arrays import spread
from tidu_cli.formats.onnx.writing.lowerings.convolution import cropped
from tidu_cli.formats.onnx.writing.lowerings.reductions import greatest, least
from tidu_cli.graph.types import FLOATS, TensorType


class Flat:
    """An array whose axes with windows are spatial ones, after one for all others and one of one channel."""

    def __init__(self, low: Lowering, operand: TensorType, attrs: Any) -> None:
        self.low = low
        rank = operand.rank
        ones = (1,) * rank
        base, dilation = attrs.base_dilation or ones, attrs.window_dilation or ones
        moved = [
            k
            for k in range(rank)
            if attrs.window_dimensions[k] > 1 or attrs.window_strides[k] > 1 or any(attrs.padding[k]) or base[k] > 1
        ]
        self.axes = moved or [rank - 1]
        self.others = [k for k in range(rank) if k not in self.axes]
        self.shape = operand.shape
        self.kernel, self.strides, self.pads = (
            [given[k] for k in self.axes] for given in (attrs.window_dimensions, attrs.window_strides, attrs.padding)
        )
        self.dilations, self.base = [dilation[k] for k in self.axes], [base[k] for k in self.axes]
        self.order = [*self.others, *self.axes]

    def flat(self, x: str, shape: Sequence[int] | None = None) -> str:
        """x, of the operand's shape or another one, in that form."""
        sizes = self.shape if shape is None else shape
        n = math.prod(sizes[k] for k in self.others)
        return self.low.reshape(self.low.transpose(x, self.order), [n, 1, *[sizes[k] for k in self.axes]])

    def restored(self, y: str, shape: Sequence[int]) -> str:
        """A result of this shape from that form."""
        back = sorted(range(len(self.order)), key=self.order.__getitem__)
        return self.low.transpose(self.low.reshape(y, [shape[k] for k in self.order]), back)

    def widened(self, x: str, value: str) -> str:
        """x in that form, dilated, and padded where pads are as large as windows, which operators do not take."""
        shape = [1, 1, *[self.shape[k] for k in self.axes]]
        shape[0] = math.prod(self.shape[k] for k in self.others)
        for axis, d in enumerate(self.base, 2):
            if d > 1 and shape[axis] > 1:
                x = spread(self.low, x, shape, axis, d - 1, value)
                shape[axis] = (shape[axis] - 1) * d + 1
        self.base = [1] * len(self.base)
        if any(max(pads) >= n for pads, n in zip(self.pads, self.kernel, strict=True)):
            starts, ends = ([max(pads[k], 0) for pads in self.pads] for k in (0, 1))
            x = self.low.emit("Pad", x, self.low.ints([0, 0, *starts, 0, 0, *ends]), value)
            self.pads = [(min(a, 0), min(b, 0)) for a, b in self.pads]
        return x

    def require_plain(self) -> None:
        """Raises NoMeaningError for operands that are dilated."""
        if any(d > 1 for d in self.base):
            raise self.low.refuse("of a dilated operand has no operator in ONNX")
        if any(max(pads) >= n for pads, n in zip(self.pads, self.kernel, strict=True)):
            raise self.low.refuse("with windows of padding alone has no operator in ONNX")

    def require_few(self) -> None:
        """Raises NoMeaningError for windows over many axes."""
        if len(self.axes) > 3:
            raise self.low.refuse("has windows over more than three axes, which runtimes of ONNX have no operator for")


def _sum(low: Lowering, x: str) -> str:
    """A convolution by ones."""
    flat = Flat(low, low.operand, low.attrs)
    flat.require_few()
    dtype = low.operand.dtype
    through = dtype if dtype in FLOATS else "f64"
    if dtype in ("i64", "u64"):
        raise low.refuse(f"of {dtype} has no operator in ONNX; convert to floats")
    wide = low.cast(x, through) if through != dtype else x
    y, pads = cropped(low, flat.widened(flat.flat(wide), low.number(0, through)), flat.pads)
    ones = low.body.constant(np.ones((1, 1, *flat.kernel)), through)
    y = low.emit("Conv", y, ones, pads=pads, strides=flat.strides, dilations=flat.dilations)
    y = flat.restored(y, low.result.shape)
    return low.cast(y, dtype) if through != dtype else y


def _pooled(low: Lowering, flat: Flat, x: str, n: int) -> list[str]:
    flat.require_few()
    y, pads = cropped(low, x, flat.pads)
    return low.emit_all("MaxPool", [y], n, kernel_shape=flat.kernel, pads=pads, strides=flat.strides, dilations=flat.dilations)


def _extreme(sign: int) -> Rule:
    def rule(low: Lowering, x: str) -> str:
        flat, dtype = Flat(low, low.operand, low.attrs), low.operand.dtype
        through = dtype if dtype in FLOATS else "f64"
        if dtype in ("i64", "u64"):
            raise low.refuse(f"of {dtype} has no operator in ONNX; convert to floats")
        wide = low.cast(x, through) if through != dtype else x
        wide = low.emit("Neg", wide) if sign < 0 else wide
        bound = low.number(least(dtype) if sign > 0 else greatest(dtype), dtype)
        bound = low.cast(bound, through) if through != dtype else bound
        bound = low.emit("Neg", bound) if sign < 0 else bound
        x = flat.widened(flat.flat(wide), bound)
        y = flat.restored(_pooled(low, flat, x, 1)[0], low.result.shape)
        y = low.emit("Neg", y) if sign < 0 else y
        return low.cast(y, dtype) if through != dtype else y

    return rule


def _places(low: Lowering, flat: Flat, x: str) -> tuple[str, list[int], list[tuple[int, int]]]:
    """The numbers of the elements that windows choose, in the flat form of the operand; its shape; and what is cut off of it."""
    if low.operands[1].dtype not in FLOATS:
        raise low.refuse("of integers has no operator in ONNX")
    flat.require_plain()
    wide = low.emit("Neg", x) if low.attrs.select_prim == "le" else x
    cut = [(min(a, 0), min(b, 0)) for a, b in flat.pads]
    sizes = [flat.shape[k] + a + b for k, (a, b) in zip(flat.axes, cut, strict=True)]
    n, size = math.prod(flat.shape[k] for k in flat.others), math.prod(sizes)
    numbers = _pooled(low, flat, flat.flat(wide), 2)[1]
    # Runtimes count elements of the whole array, or of each image: so what is told of the image is taken off, and put on.
    local = low.emit("Mod", numbers, low.number(size, "i64"))
    images = low.body.constant((np.arange(n) * size).reshape(-1, *[1] * (len(sizes) + 1)))
    return low.emit("Add", local, images), [n, 1, *sizes], cut


def _scatter_selected(low: Lowering, source: str, operand: str) -> str:
    flat = Flat(low, low.operands[1], low.attrs)
    places, shape, cut = _places(low, flat, operand)
    blank = low.emit("Expand", low.number(0), low.ints([math.prod(shape)]))
    updates = low.reshape(flat.flat(source, low.operands[0].shape), [-1])
    found = low.emit("ScatterElements", blank, low.reshape(places, [-1]), updates, axis=0, reduction="add")
    if any(a or b for a, b in cut):
        found = low.reshape(found, shape)
        found = low.emit("Pad", found, low.ints([0, 0, *[-a for a, _ in cut], 0, 0, *[-b for _, b in cut]]))
    return flat.restored(found, low.result.shape)


def _gather_selected(low: Lowering, source: str, operand: str) -> str:
    flat = Flat(low, low.operands[1], low.attrs)
    places, _, cut = _places(low, flat, operand)
    kept, _ = cropped(low, flat.flat(source), cut)
    found = low.emit("Gather", low.reshape(kept, [-1]), low.reshape(places, [-1]), axis=0)
    return flat.restored(found, low.result.shape)


LOWERINGS: Mapping[str, Rule] = {
    "reduce_window_max": widened(_extreme(1), bf16="f32"),
    "reduce_window_min": widened(_extreme(-1), bf16="f32"),
    "reduce_window_sum": widened(_sum, bf16="f32"),
    "select_and_gather_add": widened(_gather_selected, bf16="f32"),
    "select_and_scatter_add": widened(_scatter_selected, f16="f32", bf16="f32"),
}
