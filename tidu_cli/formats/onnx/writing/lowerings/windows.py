"""Reductions of windows, and what chooses elements of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.formats.onnx.writing.lowering import Lowering, Rule
from tidu_cli.formats.onnx.writing.lowerings.convolution import cropped
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

    def require_plain(self) -> None:
        """Raises NoMeaningError for operands that are dilated."""
        if any(d > 1 for d in self.base):
            raise self.low.refuse("of a dilated operand has no operator in ONNX")
        if len(self.axes) > 3:
            raise self.low.refuse("has windows over more than three axes, which runtimes of ONNX have no operator for")


def _sum(low: Lowering, x: str) -> str:
    """A convolution by ones."""
    flat = Flat(low, low.operand, low.attrs)
    flat.require_plain()
    dtype = low.operand.dtype
    through = dtype if dtype in FLOATS else "f64"
    if dtype in ("i64", "u64"):
        raise low.refuse(f"of {dtype} has no operator in ONNX; convert to floats")
    wide = low.cast(x, through) if through != dtype else x
    y, pads = cropped(low, flat.flat(wide), flat.pads)
    ones = low.body.constant(np.ones((1, 1, *flat.kernel)), through)
    y = low.emit("Conv", y, ones, pads=pads, strides=flat.strides, dilations=flat.dilations)
    y = flat.restored(y, low.result.shape)
    return low.cast(y, dtype) if through != dtype else y


def _pooled(low: Lowering, flat: Flat, x: str, n: int) -> list[str]:
    flat.require_plain()
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
        y = flat.restored(_pooled(low, flat, flat.flat(wide), 1)[0], low.result.shape)
        y = low.emit("Neg", y) if sign < 0 else y
        return low.cast(y, dtype) if through != dtype else y

    return rule


def _places(low: Lowering, flat: Flat, x: str) -> str:
    """The numbers of the elements that windows choose, in the flat form of the operand."""
    if any(a < 0 or b < 0 for a, b in flat.pads) or low.operands[1].dtype not in FLOATS:
        raise low.refuse("of cut windows, or of integers, has no operator in ONNX")
    wide = low.emit("Neg", x) if low.attrs.select_prim == "le" else x
    return _pooled(low, flat, flat.flat(wide), 2)[1]


def _scatter_selected(low: Lowering, source: str, operand: str) -> str:
    flat = Flat(low, low.operands[1], low.attrs)
    places = low.reshape(_places(low, flat, operand), [-1])
    size = low.operands[1].size
    blank = low.emit("Expand", low.number(0), low.ints([size]))
    updates = low.reshape(flat.flat(source, low.operands[0].shape), [-1])
    return flat.restored(low.emit("ScatterElements", blank, places, updates, axis=0, reduction="add"), low.result.shape)


def _gather_selected(low: Lowering, source: str, operand: str) -> str:
    flat = Flat(low, low.operands[1], low.attrs)
    places = _places(low, flat, operand)
    found = low.emit("Gather", low.reshape(flat.flat(source), [-1]), low.reshape(places, [-1]), axis=0)
    return flat.restored(found, low.result.shape)


LOWERINGS: Mapping[str, Rule] = {
    "reduce_window_max": _extreme(1),
    "reduce_window_min": _extreme(-1),
    "reduce_window_sum": _sum,
    "select_and_gather_add": _gather_selected,
    "select_and_scatter_add": _scatter_selected,
}
