"""Where windows of convolutions and poolings lie: padding, strides and how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.onnx.reading.node import Node, RefusedError, Value
from tidu_cli.frozen import Frozen
from tidu_cli.limits import require


class Windows(Frozen, slots=False):
    """For each spatial axis the size of windows, their strides and dilation, padding, and the number of windows.

    `high` is the padding that all windows need, `given_high` that of the attributes: with ceil_mode the last ones reach further.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    given_high: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def padding(self) -> tuple[tuple[int, int], ...]:
        """Low and high padding of each axis."""
        return tuple(zip(self.low, self.high, strict=True))

    def attrs(self) -> dict[str, Any]:
        """The attrs of reduce_window primitives, for arrays with two axes before the spatial ones."""
        ones = (1,) * (len(self.kernel) + 2)
        return {
            "window_dimensions": (1, 1, *self.kernel),
            "window_strides": (1, 1, *self.strides),
            "padding": ((0, 0), (0, 0), *self.padding),
            "base_dilation": ones,
            "window_dilation": (1, 1, *self.dilations),
        }

    def places(self, axis: int) -> Any:
        """The places that each window of an axis reads, [window, element]; those in the padding are outside of the array."""
        require("memory", self.counts[axis] * self.kernel[axis] * 8, "the places of windows")
        starts = np.arange(self.counts[axis]) * self.strides[axis] - self.low[axis]
        return starts[:, np.newaxis] + np.arange(self.kernel[axis]) * self.dilations[axis]


def spatial(node: Node, name: str, rank: int, default: int) -> tuple[int, ...]:
    """An attribute with a number for each spatial axis. Raises RefusedError for another count, and for numbers below 1."""
    found = tuple(node[name]) if node[name] else (default,) * rank
    if len(found) != rank or min(found, default=1) < (0 if name == "output_padding" else 1):
        raise RefusedError(f"has {name} {list(found)} for {rank} spatial axes")
    return found


def automatic_padding(node: Node) -> str:
    """How padding is chosen. Raises RefusedError for what is no way."""
    found = node["auto_pad"] or "NOTSET"
    if found not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise RefusedError(f"has auto_pad '{found}'")
    return str(found)


def windows(node: Node, x: Value, kernel: Sequence[int]) -> Windows:
    """The windows over the spatial axes of x, those after the first two. Raises RefusedError where none fits."""
    rank = x.ndim - 2
    if rank < 1 or len(kernel) != rank or min(kernel) < 1:
        raise RefusedError(f"has windows {list(kernel)} for an array of shape {list(x.shape)}")
    strides, dilations = spatial(node, "strides", rank, 1), spatial(node, "dilations", rank, 1)
    sizes = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = list(node["pads"] or [0] * (2 * rank))
    if len(pads) != 2 * rank or min(pads, default=0) < 0:
        raise RefusedError(f"has pads {pads} for {rank} spatial axes")
    low, high = pads[:rank], pads[rank:]
    automatic = automatic_padding(node)
    if automatic.startswith("SAME"):
        totals = [max((-(-n // s) - 1) * s + w - n, 0) for n, s, w in zip(x.shape[2:], strides, sizes, strict=True)]
        low = [t // 2 if automatic == "SAME_UPPER" else t - t // 2 for t in totals]
        high = [t - a for t, a in zip(totals, low, strict=True)]
    elif automatic == "VALID":
        low, high = [0] * rank, [0] * rank
    counts, reach = [], []
    for n, s, w, a, b in zip(x.shape[2:], strides, sizes, low, high, strict=True):
        room = n + a + b - w
        count = (-(-room // s) if node["ceil_mode"] else room // s) + 1
        if node["ceil_mode"] and (count - 1) * s >= n + a:  # windows begin in the array or before it
            count -= 1
        if count < 0 or (room < 0 and not node["ceil_mode"]):
            raise RefusedError(f"has windows of {w} elements along an axis of {n}, padded to {n + a + b}")
        counts.append(count)
        reach.append(max((count - 1) * s + w - n - a, b))
    return Windows(tuple(kernel), strides, dilations, tuple(low), tuple(reach), tuple(high), tuple(counts))
