"""Samples of the primitives that slice, join, gather and scatter; more of them are drawn at random in `test_windows`."""

from __future__ import annotations

import itertools

import numpy as np

from tests.lax.sampling.indexing_references import clamped, element_by_element, gathered, padded, scattered, sliced
from tests.lax.sampling.sample import ORDER, SHAPES, Sample, draw, wrapped
from tidu_cli.graph.types import ALL, COMPLEXES, NUMERIC
from tidu_cli.lax.arrays.structural import numpy_dtype


def plain(x):
    return element_by_element(x.shape, lambda i: x[i].item())


def slices():
    for dtype, shape in itertools.product(ORDER, SHAPES):
        x = draw(dtype, shape)
        for strides in (None, [1] * len(shape), [2] * len(shape), [7] * len(shape)):
            for starts, limits in (
                ([0] * len(shape), shape),
                ([min(1, n) for n in shape], shape),
                ([0] * len(shape), [max(n - 1, 0) for n in shape]),
                ([n // 2 for n in shape], [n // 2 for n in shape]),
            ):
                yield Sample(
                    "slice",
                    [x],
                    {"start_indices": starts, "limit_indices": limits, "strides": strides},
                    lambda x, a=starts, b=limits, s=strides: sliced(x, a, b, s or [1] * x.ndim),
                )
        for axis in range(len(shape)):
            yield Sample("split", [x], {"sizes": [shape[axis]], "axis": axis}, plain)  # several results: test_slicing


INDEX_DTYPES = ("i32", "i64", "u8", "i8", "u64")


def dynamic_slices():
    for (dtype, shape), number in zip(itertools.product(ORDER, SHAPES), itertools.cycle(INDEX_DTYPES), strict=False):
        x = draw(dtype, shape)
        for sizes in {shape, tuple(max(n - 1, 0) for n in shape), tuple(min(n, 1) for n in shape), (0,) * len(shape)}:
            for start in (0, 1, 100) if number[0] == "u" else (-100, 0, 1, 100):
                indices = [np.array(start, numpy_dtype(np, number))] * len(shape)
                at = [clamped(start, n, m) for n, m in zip(sizes, shape, strict=True)]
                yield Sample(
                    "dynamic_slice",
                    [x, *indices],
                    {"slice_sizes": sizes},
                    lambda x, *_, at=at, sizes=sizes: sliced(x, at, [a + n for a, n in zip(at, sizes, strict=True)], [1] * x.ndim),
                )
                update = draw(dtype, sizes, 3)

                def updated(x, update, *_, at=at):
                    out = plain(x)
                    for index in np.ndindex(*update.shape):
                        out[tuple(a + k for a, k in zip(at, index, strict=True))] = update[index].item()
                    return out

                yield Sample("dynamic_update_slice", [x, update, *indices], {}, updated)


def pads():
    for dtype, shape in itertools.product(ORDER, SHAPES):
        x, value = draw(dtype, shape), draw(dtype, (), 5)
        for edges in ((0, 0, 0), (1, 2, 0), (0, 3, 2), (-1, 0, 0), (0, -1, 1), (-2, 4, 0), (7, -3, 3), (-9, 9, 1), (4, 4, 9)):
            config = [edges] * len(shape)
            if all(low + n + max(n - 1, 0) * gap + high >= 0 for n, (low, high, gap) in zip(shape, config, strict=True)):
                yield Sample("pad", [x, value], {"padding_config": config}, lambda x, v, c=config: padded(x, v, c))


def concatenations():
    for dtype, shape in itertools.product(ORDER, SHAPES):
        for axis in range(len(shape)):
            parts = [draw(dtype, (*shape[:axis], n, *shape[axis + 1 :]), n) for n in (shape[axis], 2, 0, 1)]
            for count in (1, 2, 4):
                yield Sample(
                    "concatenate",
                    parts[:count],
                    {"dimension": axis},
                    lambda *xs, axis=axis: np.concatenate([plain(x) for x in xs], axis=axis),
                )


def axes():
    for dtype, shape in itertools.product(ORDER, SHAPES):
        x = draw(dtype, shape)
        yield Sample("copy", [x], {}, plain)
        yield Sample("optimization_barrier", [x], {}, plain)
        ones = [axis for axis, n in enumerate(shape) if n == 1]
        for dims in itertools.chain.from_iterable(itertools.combinations(range(len(shape)), k) for k in range(len(shape) + 1)):
            yield Sample("rev", [x], {"dimensions": dims}, lambda x, dims=dims: _reversed(x, dims))
            if set(dims) <= set(ones):
                target = [n for axis, n in enumerate(shape) if axis not in dims]
                yield Sample("squeeze", [x], {"dimensions": dims}, lambda x, target=target: plain(x).reshape(target))
            longer = list(shape)
            for axis in dims:
                longer.insert(axis, 1)
            yield Sample("expand_dims", [x], {"dimensions": dims}, lambda x, target=longer: plain(x).reshape(target))


def _reversed(x, dims):
    """The array with the order along `dims` reversed."""

    def element(index):
        return x[tuple(n - 1 - i if axis in dims else i for axis, (i, n) in enumerate(zip(index, x.shape, strict=True)))].item()

    return element_by_element(x.shape, element)


def iotas():
    for dtype in sorted(NUMERIC, key=ORDER.index):
        for shape in ((1,), (0,), (300,), (2, 3), (3, 0), (2, 1, 4), (1, 2, 1, 2)):
            for axis in range(len(shape)):
                reference = element_by_element(shape, lambda i, axis=axis: i[axis])
                yield Sample(
                    "iota",
                    [],
                    {"dtype": dtype, "shape": shape, "dimension": axis},
                    lambda r=reference, dtype=dtype: wrapped(r, numpy_dtype(np, dtype)),
                )


def numbers(offset, collapsed, index_map, ours=(), theirs=()):
    return {
        "offset_dims": offset,
        "collapsed_slice_dims": collapsed,
        "start_index_map": index_map,
        "operand_batching_dims": ours,
        "start_indices_batching_dims": theirs,
    }


SCATTER_NAMES = (
    "update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims", "operand_batching_dims",
    "scatter_indices_batching_dims",
)  # fmt: skip


def of_scatter(numbers):
    return dict(zip(SCATTER_NAMES, numbers.values(), strict=True))


WINDOWS = [  # operand shape, indices, dimension numbers, slice sizes
    ((), np.zeros((0,), np.int32), numbers((), (), ()), ()),
    ((), np.zeros((3, 0), np.int64), numbers((), (), ()), ()),
    ((4,), np.array([2], np.int8), numbers((), (0,), (0,)), (1,)),
    ((4,), np.array([[0], [3], [3], [-1], [9]], np.int32), numbers((), (0,), (0,)), (1,)),
    ((4,), np.array([[0], [2], [3], [200]], np.uint8), numbers((1,), (), (0,)), (2,)),
    ((4,), np.array([[1], [2**63 + 5]], np.uint64), numbers((0,), (), (0,)), (2,)),
    ((3, 2), np.array([[0], [2], [0], [5]], np.int32), numbers((1,), (0,), (0,)), (1, 2)),
    ((3, 4), np.array([[[1]], [[-7]]], np.int64), numbers((0,), (1,), (1,)), (3, 1)),
    ((3, 4), np.array([[2, 1], [0, 0], [2, 1], [3, 0]], np.int32), numbers((), (0, 1), (1, 0)), (1, 1)),
    ((3, 4), np.array([[1, 1], [0, 2], [1, 1], [2, 3]], np.int32), numbers((0, 2), (), (0, 1)), (2, 2)),
    ((3, 4), np.zeros((2, 0), np.int32), numbers((1, 2), (), ()), (2, 3)),
    ((2, 3), np.array([[0, 5]], np.int32), numbers((1, 2), (), (0, 1)), (2, 3)),
    ((2, 3), np.zeros((0, 1), np.int32), numbers((1,), (0,), (0,)), (1, 3)),
    ((0, 3), np.zeros((0, 1), np.int32), numbers((1,), (0,), (0,)), (1, 3)),
    ((0, 3), np.zeros((2, 1), np.int32), numbers((1, 2), (), (1,)), (0, 2)),
    ((2, 4), np.array([[1], [3]], np.int16), numbers((), (1,), (1,), (0,), (0,)), (1, 1)),
    ((2, 3, 4), np.array([[[1], [0]], [[3], [-1]], [[2], [2]]], np.int32), numbers((2,), (1,), (2,), (0,), (1,)), (1, 1, 2)),
    ((3, 2, 2), np.arange(6).reshape(2, 3, 1) - 2, numbers((2,), (), (1,), (0, 2), (1, 0)), (1, 2, 1)),
    ((2, 3, 2, 2), np.array([[0, 1], [1, 2], [9, 0]], np.int32), numbers((0, 2), (0, 1), (0, 1)), (1, 1, 2, 2)),
]


def _operand_samples(dtype):
    for shape, indices, dims, sizes in WINDOWS:
        # f64 and c128 are those whose derivatives are tried, which takes long.
        for mode in {"f64": ("clip", "fill"), "c128": ("fill",)}.get(dtype, ("clip", "fill", "promise_in_bounds")):
            yield draw(dtype, shape), indices, dims, sizes, mode


def gathers():
    for dtype in ORDER:
        for x, indices, dims, sizes, mode in _operand_samples(dtype):
            # NaN is no place for difference quotients; the default is tried in test_windows.
            fill = {"fill_value": True if dtype == "bool" else 1} if mode == "fill" else {}
            attrs = {"dimension_numbers": dims, "slice_sizes": sizes, "mode": mode, **fill}
            yield Sample("gather", [x, indices], attrs, lambda x, i, attrs=attrs: gathered(x, i, **attrs))


COMBINE = {
    "scatter": (ALL, lambda old, new: new),
    "scatter-add": (NUMERIC, lambda old, new: old + new),
    "scatter-sub": (NUMERIC, lambda old, new: old - new),
    "scatter-mul": (NUMERIC, lambda old, new: old * new),
    "scatter-max": (ALL - COMPLEXES, max),
    "scatter-min": (ALL - COMPLEXES, min),
}


def scatters():
    for op, (dtypes, combine) in COMBINE.items():
        for dtype in sorted(dtypes, key=ORDER.index):
            for x, indices, dims, sizes, mode in _operand_samples(dtype):
                if not x.size:
                    continue  # in test_windows: there the updates' cotangent is a structural zero
                attrs = {"dimension_numbers": of_scatter(dims), "mode": mode}
                shape = gathered(x, indices, dimension_numbers=dims, slice_sizes=sizes, mode="clip").shape
                updates = draw(dtype, shape, 4)

                def reference(x, i, u, attrs=attrs, combine=combine):
                    return wrapped(scattered(x, i, u, combine, **attrs), x.dtype)

                if op == "scatter-mul":
                    hits = scattered(np.zeros(x.shape, int), indices, np.ones(shape, int), COMBINE["scatter-add"][1], **attrs)
                    attrs = attrs | {"unique_indices": max(hits.ravel(), default=0) <= 1}
                    if dtype in ("f64", "c128") and not attrs["unique_indices"]:
                        continue  # no derivative
                yield Sample(op, [x, indices, updates], attrs, reference)


FAMILIES = (slices, dynamic_slices, pads, concatenations, axes, iotas, gathers, scatters)
