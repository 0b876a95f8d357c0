"""Maxima and means of the cells of regions of interest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, at
from tidu_cli.adapters.onnx.reading.operators.sampling.sampling import Reading, widened
from tidu_cli.limits import require


def _max_roi_pool(node: Node, x: Value, rois: Value) -> Value:
    """Maxima of the cells of regions, whose bounds are whole numbers (Girshick, 2015)."""
    cells, number = node["pooled_shape"], np.dtype(x.dtype).type
    if x.ndim != 4 or rois.shape[1:] != (5,) or len(cells) != 2 or min(cells) < 1:
        raise RefusedError(f"has regions {list(rois.shape)} in {list(x.shape)}, and pooled_shape {cells}")
    n_rois, (rows, columns) = rois.shape[0], cells
    if 0 in x.shape:
        raise RefusedError(f"has regions in an array of shape {list(x.shape)}")
    size = n_rois * (math.prod(x.shape[1:]) * rows + columns * x.shape[3]) * x.dtype.itemsize
    require("memory", size + 8 * (rows + columns), "the cells of regions")
    within = []
    for k, n, size in zip((2, 1), cells, x.shape[2:], strict=True):
        first, last = (_rounded(rois[:, i] * number(node["spatial_scale"])) for i in (k, k + 2))
        cell = np.maximum(last - first + number(1), number(1)) / number(n)
        steps = np.arange(n + 1).astype(x.dtype)
        low = np.floor(steps[:-1] * cell[:, np.newaxis]) + first[:, np.newaxis]
        high = np.ceil(steps[1:] * cell[:, np.newaxis]) + first[:, np.newaxis]
        places = np.arange(size).astype(x.dtype)
        within.append((places >= low[..., np.newaxis]) & (places < high[..., np.newaxis]))  # [region, cell, element]
    images = at(node, x, rois[:, 0].astype(np.int64))[:, :, np.newaxis]
    least = number(-np.inf)
    bands = np.max(np.where(within[0][:, np.newaxis, :, :, np.newaxis], images, least), 3)  # [region, channel, row, x]
    parts = [np.max(np.where(within[1][:, np.newaxis, np.newaxis, k], bands, least), 3) for k in range(columns)]
    found = np.stack(parts, -1)
    return np.where(found == least, number(0), found)


def _rounded(x: Value) -> Value:
    """Rounded to the nearest whole number, halves away from 0."""
    return np.sign(x) * np.floor(np.abs(x) + np.dtype(x.dtype).type(0.5))


def _roi_align(node: Node, image: Value, regions: Value, batch: Value) -> Value:
    """Means or maxima of points in the cells of regions (He et al., 2017)."""
    x, rois = widened(image), widened(regions).astype(widened(image).dtype)
    if x.ndim != 4 or rois.shape != (*batch.shape, 4) or batch.ndim != 1 or 0 in x.shape[2:]:
        raise RefusedError(f"has regions {list(rois.shape)} and {list(batch.shape)} of an array of shape {list(x.shape)}")
    height, width, scale = node["output_height"], node["output_width"], node["spatial_scale"]
    if min(height, width) < 1 or node["sampling_ratio"] < 0 or node["mode"] not in ("avg", "max"):
        raise RefusedError(f"has cells {[height, width]}, sampling_ratio {node['sampling_ratio']} and mode '{node['mode']}'")
    half = 0.5 if node["coordinate_transformation_mode"] in ("half_pixel",) else 0.0
    number = x.dtype.type
    start = [rois[:, k] * number(scale) - number(half) for k in (1, 0)]
    end = [rois[:, k] * number(scale) - number(half) for k in (3, 2)]
    extent = [b - a for a, b in zip(start, end, strict=True)]
    if not half:
        extent = [np.maximum(e, number(1)) for e in extent]
    places, counts = [], []
    for first, whole, cells in zip(start, extent, (height, width), strict=True):
        n = node["sampling_ratio"] or _points(node, whole, cells)
        require("memory", max(len(rois), 1) * cells * n * 8, "the points of regions")
        parts = (np.arange(cells)[:, np.newaxis] + (np.arange(n) + 0.5) / n).ravel()  # of cells
        places.append(first[:, np.newaxis] + (whole / number(cells))[:, np.newaxis] * parts.astype(x.dtype))
        counts.append(n)
    n_rois, shape = rois.shape[0], (rois.shape[0], height * counts[0], width * counts[1])
    rows = np.broadcast_to(places[0][:, :, np.newaxis], shape)
    columns = np.broadcast_to(places[1][:, np.newaxis, :], shape)
    outside = (rows < -1) | (rows > x.shape[2]) | (columns < -1) | (columns > x.shape[3])
    inner = [np.clip(p, number(0), number(n - 1)) for p, n in ((rows, x.shape[2]), (columns, x.shape[3]))]
    last, images = np.moveaxis(x, 1, -1), np.reshape(batch, (-1, 1, 1))
    taps = _roi_taps(lambda index: at(node, last, images, *index), inner, x.shape[2:])
    cells = (n_rois, height, counts[0], width, counts[1], x.shape[1])
    inside = np.where(outside, number(0), number(1))[..., np.newaxis]
    if node["mode"] == "max":
        greatest = taps[0]
        for tap in taps[1:]:
            greatest = np.maximum(greatest, tap)
        found = np.max((greatest * inside).reshape(cells), (2, 4))
    else:
        found = np.sum((sum(taps[1:], taps[0]) * inside).reshape(cells), (2, 4)) / number(math.prod(counts))
    return np.moveaxis(found.astype(image.dtype), -1, 1)


def _points(node: Node, extent: Value, cells: int) -> int:
    """How many points cells have along an axis where nobody says. Raises RefusedError where regions differ in it."""
    known = np.unique(np.ceil(node.known(extent, "rois (or give sampling_ratio)") / cells))
    if known.size > 1:
        raise RefusedError("has regions of several sizes and sampling_ratio 0; export it with a sampling_ratio")
    return max(int(known.item()), 1) if known.size else 1


def _roi_taps(read: Reading, places: Sequence[Value], sizes: Sequence[int]) -> list[Value]:
    axes = []
    for place, n in zip(places, sizes, strict=True):
        low = np.minimum(np.floor(place), place.dtype.type(max(n - 1, 0))).astype(np.int64)
        rest = place - low.astype(place.dtype)
        axes.append([(low, 1 - rest), (np.minimum(low + 1, n - 1), rest)])
    return [read([a, b]) * (u * v)[..., np.newaxis] for (a, u), (b, v) in product(*axes)]


OPERATORS: Mapping[str, Operator] = {
    "MaxRoiPool": _max_roi_pool,
    "RoiAlign": _roi_align,
}
