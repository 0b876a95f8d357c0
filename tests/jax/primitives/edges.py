"""Edges of primitives: kinks, ties, poles, branch points, signed zeros, infinities, NaN, and indices out of range."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.graphs.templates import make_case, type_of
from tests.jax.lowering import signal_edges
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import COMPLEXES, INTEGERS
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN

INF, NAN = math.inf, math.nan

REAL = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 2.0, -2.0, 2.5, 30.0, -30.0, INF, -INF, NAN)
PARTS = (0.0, -0.0, 0.5, 1.0, -1.0, -2.0, 30.0)
"""Of complex numbers: 0, the branch points ±1 and ±i, and both sides of the cuts. Infinite parts are left out: what
arithmetic makes of them differs wherever one looks."""

PAIRS = (0.0, -0.0, 0.5, 1.0, -1.0, 2.0, -2.0, 3.0, INF, -INF, NAN)
COMPLEX_PAIRS = (0j, complex(-0.0, 0.0), 1 + 0j, -1 + 0j, 1j, 2 - 1j, complex(-2.0, -0.0), 0.5 + 0.5j)


def elementwise(op: str) -> bool:
    """Whether a primitive works element by element, on operands of one type or on scalars."""
    primitive = BUILTIN[op]
    return (
        primitive.domain.one_type
        and bool(primitive.domain.arity)
        and any(set(e.operands) <= {"T[]", "f64[]"} for e in primitive.catalogue.examples)
    )


def grid(values: Any, count: int, dtype: str) -> list[Any]:
    """All combinations of the values, an array per operand."""
    points = list(itertools.product(values, repeat=count))
    with np.errstate(all="ignore"):
        return [np.array([p[k] for p in points]).astype(numpy_dtype(np, dtype)) for k in range(count)]


def integers(dtype: str) -> list[int]:
    """0, small numbers, and the ends of the range."""
    info = np.iinfo(numpy_dtype(np, dtype))
    return sorted({int(info.min), int(info.max), *(n for n in (-9, -2, -1, 0, 1, 2, 3, 7, 8, 9, 70) if info.min <= n <= info.max)})


def points(op: str, dtype: str) -> list[Any]:
    """The operands of an elementwise primitive at its edges."""
    arity = BUILTIN[op].domain.arity
    assert arity is not None
    if dtype == "bool":
        return grid((False, True), arity, dtype)
    if dtype in INTEGERS:
        return [
            np.array([p[k] for p in itertools.product(integers(dtype), repeat=arity)], numpy_dtype(np, dtype)) for k in range(arity)
        ]
    if dtype in COMPLEXES:
        if arity == 1:
            return [np.array([complex(a, b) for a in PARTS for b in PARTS], numpy_dtype(np, dtype))]
        return grid(COMPLEX_PAIRS, arity, dtype)
    return grid(REAL if arity == 1 else PAIRS if arity == 2 else (0.0, 0.5, 1.0, 2.0, -1.0, INF, NAN), arity, dtype)


def edges(op: str) -> Iterator[tuple[Case, list[Any]]]:
    """Cases of a primitive with operands at its edges."""
    primitive = BUILTIN[op]
    if elementwise(op):
        for dtype in sorted(primitive.domain.dtypes - {"f16", "bf16"}):
            for attrs in {"integer_pow": [{"y": y} for y in (0, 1, 2, 3, -1, -2)]}.get(
                op, [dict(primitive.catalogue.examples[0].attrs)]
            ):
                if dtype in INTEGERS and attrs.get("y", 0) < 0:
                    continue
                operands = points(op, dtype)
                yield make_case(op, attrs, map(type_of, operands)), operands
    for attrs, *operands in OTHERS.get(op, ()):
        yield make_case(op, attrs, map(type_of, operands)), operands


def _f(values: Any, dtype: str = "f64") -> Any:
    return np.asarray(values).astype(numpy_dtype(np, dtype))


def _i(values: Any, dtype: str = "i32") -> Any:
    return np.asarray(values, numpy_dtype(np, dtype))


_TIES = [[1.0, 2.0, 2.0, -1.0], [0.0, -0.0, 0.0, -0.0], [3.0, 3.0, 3.0, 3.0], [INF, 1.0, INF, -INF], [-INF, -INF, -INF, -INF]]
_NANS = [[1.0, NAN, 2.0, NAN], [NAN, INF, -INF, 0.0]]
_ROWS = np.array(_TIES + _NANS)
_ZEROS = np.array([[2.0, 0.0, 3.0, 4.0], [0.0, 5.0, 0.0, 2.0], [-0.0, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 0.0]])

_LINES = {"offset_dims": [1], "collapsed_slice_dims": [0], "start_index_map": [0]}
_SCATTERED = {"update_window_dims": [1], "inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0]}
_WIDE = {"offset_dims": [1], "collapsed_slice_dims": [], "start_index_map": [0]}
_WIDE_SCATTERED = {"update_window_dims": [1], "inserted_window_dims": [], "scatter_dims_to_operand_dims": [0]}
_PLACES = [[0], [2], [2], [-1], [5], [100], [-100]]


def _reductions(op: str) -> Iterator[tuple[Any, ...]]:
    for dtype in ("f32", "f64"):
        for rows in (_TIES, _NANS) if op in ("reduce_max", "reduce_min") else (_TIES[:3],):
            for axes in ([1], [0], [0, 1], []):
                yield {"axes": axes}, _f(rows, dtype)
    for dtype in ("f64", "i8", "u8", "bool") if op != "reduce_sum" and op != "reduce_prod" else ("f64", "c128", "i8"):
        for axes in ([0], [1], [0, 1]):
            yield {"axes": axes}, _f(np.zeros((0, 2)), dtype)


def _gathers() -> Iterator[tuple[Any, ...]]:
    x = np.arange(1.0, 13).reshape(4, 3)
    for dtype, mode in itertools.product(("f64", "c64", "i8", "u8", "bool"), ("clip", "fill")):
        for fill in (None, 0, 1) if mode == "fill" else (None,):
            fill = bool(fill) if dtype == "bool" and fill is not None else fill
            for numbers, sizes in ((_LINES, [1, 3]),):
                yield (
                    {"dimension_numbers": numbers, "slice_sizes": sizes, "mode": mode, "fill_value": fill},
                    _f(x, dtype),
                    _i(_PLACES),
                )
    for mode in ("clip", "fill"):
        attrs = {"dimension_numbers": _WIDE, "slice_sizes": [3], "mode": mode}
        yield attrs, np.arange(6.0), _i(_PLACES)
        yield attrs, np.arange(6.0), _i([[0], [3], [4], [255]], "u8")
        yield attrs, np.arange(6.0), _i([[0], [-128], [127]], "i8")
    attrs = {"dimension_numbers": _LINES, "slice_sizes": [1, 3], "mode": "promise_in_bounds"}
    yield attrs, x, _i([[3], [0], [3], [3]])


def _scatters(op: str) -> Iterator[tuple[Any, ...]]:
    rng = np.random.default_rng(5)
    for mode in ("clip", "fill"):
        for dtype in ("f64", "c64", "i8"):
            if op in ("scatter-max", "scatter-min") and dtype == "c64":
                continue
            places = [[0], [2], [-1], [5]] if op in ("scatter-mul", "scatter-max", "scatter-min") else _PLACES
            unique = {"unique_indices": True} if op == "scatter-mul" else {}
            # Where indices are said to be unique, those that are clipped must be so too.
            places = [[0], [2], [5]] if unique and mode == "clip" else places
            x = _f(rng.integers(1, 9, (4, 3)), dtype)
            attrs = {"dimension_numbers": _SCATTERED, "mode": mode, **unique}
            yield attrs, x, _i(places), _f(rng.integers(1, 9, (len(places), 3)), dtype)
    if op == "scatter-mul":
        return  # with windows that overlap it has no derivative
    # Repeated indices, overlapping windows, and ties.
    attrs = {"dimension_numbers": _SCATTERED, "mode": "fill"}
    yield attrs, _f([[1.0, 2.0], [3.0, 4.0]]), _i([[0], [0], [1], [0]]), _f([[1.0, 5.0], [1.0, 5.0], [0.0, 9.0], [0.0, 5.0]])
    yield (
        {"dimension_numbers": _WIDE_SCATTERED, "mode": "fill"},
        np.arange(6.0),
        _i([[0], [1], [3], [4]]),
        _f(rng.integers(1, 9, (4, 3))),
    )


def _cumulatives(op: str) -> Iterator[tuple[Any, ...]]:
    rows = {"cumsum": _TIES[:3], "cumprod": _ZEROS, "cumlogsumexp": [*_TIES, [-INF, 1.0, 2.0, 700.0], [700.0, 800.0, -800.0, 1.0]]}
    for dtype, reverse in itertools.product(("f32", "f64"), (False, True)):
        for axis in (0, 1):
            yield {"axis": axis, "reverse": reverse}, _f(rows.get(op, _TIES), dtype)
    for reverse in (False, True):
        # Without ties, NaN and infinities: there everybody agrees.
        yield {"axis": 1, "reverse": reverse}, _f([[1.0, 3.0, -2.0, 2.0, 4.0], [700.0, 800.0, -800.0, 1.0, 705.0]])
    if op not in ("cumsum", "cumprod"):
        yield {"axis": 1}, _f(_NANS)
    yield {"axis": 0}, _f(np.zeros((0, 2)))
    yield {"axis": 1}, _f([[2.0], [NAN]])


def _sorts() -> Iterator[tuple[Any, ...]]:
    for dtype in ("f32", "f64"):
        for axis in (0, 1):
            yield {"dimension": axis}, _f(_ROWS, dtype)
    yield {"dimension": 1, "num_keys": 1}, _f(_ROWS), np.arange(28.0).reshape(7, 4)
    yield {"dimension": 0, "num_keys": 2}, _i([1, 0, 1, 0, 1]), _f([2.0, 1.0, 2.0, NAN, -0.0]), _f([1.0, 2.0, 3.0, 4.0, 5.0])
    yield {"dimension": 0}, np.array([1 + 1j, 1 - 1j, 0j, complex(NAN, 0), complex(1, NAN), complex(-0.0, 3)])
    yield {"dimension": 0}, _i([127, -128, 0, -1, 127], "i8")
    yield {"dimension": 0}, np.array([True, False, True])
    yield {"dimension": 0}, np.zeros((0, 2))


def _tops() -> Iterator[tuple[Any, ...]]:
    for dtype, k in itertools.product(("f32", "f64"), (0, 1, 3, 4)):
        yield {"k": k, "axis": 1}, _f(_ROWS, dtype)
    yield {"k": 2, "axis": 0}, _i([127, -128, 0, -1, 127], "i8")
    yield {"k": 2, "axis": 0}, _f(_ROWS)


def _conversions() -> Iterator[tuple[Any, ...]]:
    reals = [
        0.0,
        -0.0,
        0.9,
        -0.9,
        1.5,
        -1.5,
        127.5,
        128.0,
        255.9,
        300.0,
        -129.0,
        2.0**31,
        -(2.0**31),
        2.0**63,
        2.0**64,
        INF,
        -INF,
        NAN,
    ]
    for new in ("bool", *sorted(INTEGERS), "f16", "bf16", "f32", "f64", "c64", "c128"):
        for old in ("f32", "f64"):
            yield {"new_dtype": new}, _f(reals, old)
        for old in sorted(INTEGERS):
            yield {"new_dtype": new}, _i(integers(old), old)
        yield {"new_dtype": new}, np.array([0j, 1j, 1.5 - 2j, -3 + 0j])
        yield {"new_dtype": new}, np.array([False, True])


def _powers() -> Iterator[tuple[Any, ...]]:
    base = [0.0, -0.0, 0.0, 0.0, 2.0, -2.0, -2.0, INF, -INF, NAN, NAN, 1.0]
    yield {}, _f(base), _i([0, 1, 2, 3, 0, 3, 31, 2, 3, 0, 1, 2**31 - 1])
    yield {}, _f([0.0, 0.0, 2.0, -2.0]), _i([0, 1, 7, 255], "u8")
    yield {}, _f([0.0, 0.0, -2.0, 2.0]), _i([-1, -2, -3, 0], "i64")
    yield {}, *grid((0.0, -0.0, 1.0, 2.0, -2.0, 0.5, NAN), 2, "f64")


def _clamps() -> Iterator[tuple[Any, ...]]:
    for dtype in ("f32", "f64"):
        yield {}, *grid((-1.0, 0.0, 1.0, NAN), 3, dtype)
    yield {}, *grid((0, 1, 200), 3, "u8")
    yield {}, np.int8(-3), _i([-4, -3, 0, 7], "i8"), np.int8(2)
    yield {}, np.float64(-1), _f([-1.0, 1.0, 0.0, 3.0, -3.0, NAN]), np.float64(1)


def _selections() -> Iterator[tuple[Any, ...]]:
    yield {}, _i([-1, 0, 1, 2, 9]), np.arange(5.0), np.arange(5.0) + 10, np.arange(5.0) + 20
    yield {}, np.array([True, False, True]), _f([1.0, NAN, INF]), _f([NAN, 2.0, 3.0])
    yield {}, np.array(True), _f([1.0, NAN]), _f([3.0, 2.0])


def _slices(op: str) -> Iterator[tuple[Any, ...]]:
    x = np.arange(12.0).reshape(3, 4)
    for i, j in ((-5, 1), (9, -1), (2, 3)):
        if op == "dynamic_slice":
            yield {"slice_sizes": [2, 2]}, x, np.int32(i), np.int32(j)
        else:
            yield {}, x, np.ones((2, 2)), np.int32(i), np.int32(j)


def _pads() -> Iterator[tuple[Any, ...]]:
    for config in ([[-1, 0, 0], [0, -1, 1]], [[2, -3, 1], [-2, 4, 2]], [[-2, 0, 0], [0, 0, 0]], [[0, 0, 3], [-3, 3, 0]]):
        yield {"padding_config": config}, np.arange(1.0, 7).reshape(2, 3), np.float64(9)


def _products() -> Iterator[tuple[Any, ...]]:
    matrices = {"dimension_numbers": [[[1], [0]], [[], []]]}
    yield matrices, np.zeros((2, 0)), np.zeros((0, 3))
    yield matrices, _i([[127, 127]], "i8"), _i([[2], [3]], "i8")
    yield {"dimension_numbers": [[[0], [0]], [[], []]]}, _f([INF, 0.0]), _f([0.0, 1.0])


def _roundings(op: str) -> Iterator[tuple[Any, ...]]:
    for dtype in ("f32", "f64"):
        if op == "round":
            for method in ("AWAY_FROM_ZERO", "TO_NEAREST_EVEN"):
                yield {"rounding_method": method}, _f([*REAL, 3.5, -2.5, 0.49999999999999994, 2.0**53 - 1], dtype)
        else:
            for exponent, mantissa in ((5, 10), (8, 7), (4, 3)):
                x = _f([*REAL, 1 + 2.0**-8, 70000.0, 1e-6], dtype)
                yield {"exponent_bits": exponent, "mantissa_bits": mantissa}, x


def _bits() -> Iterator[tuple[Any, ...]]:
    for x in (_i([[5, 3], [7, -1]]), np.zeros((0, 2), np.int8), np.zeros((0, 2), bool)):
        yield {"axes": [0]}, x


def _positions(index_dtype: str) -> Iterator[tuple[Any, ...]]:
    for axis, dtype in itertools.product((0, 1), ("f32", "f64")):
        yield {"axes": [axis], "index_dtype": index_dtype}, _f(_ROWS, dtype)


_INDEFINITE = _f([[[4.0, 9.0], [2.0, 3.0]], [[1.0, 9.0], [2.0, 3.0]], [[0.0, 0.0], [0.0, 0.0]]])


def _triangular_systems() -> Iterator[tuple[Any, ...]]:
    a, b = _f([[2.0, 7.0, 8.0], [1.0, 4.0, 9.0], [3.0, -1.0, 5.0]], "c128"), _f([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "c128")
    a = a + 1j * a[::-1] / 4
    for left, lower, turned, conjugated, unit in itertools.product((False, True), repeat=5):
        attrs = {"left_side": left, "lower": lower, "transpose_a": turned, "conjugate_a": conjugated, "unit_diagonal": unit}
        yield attrs, a, b if left else b.T
    yield {"left_side": True}, np.zeros((0, 0)), np.zeros((0, 2))
    yield {"left_side": True}, np.ones((2, 2)), np.zeros((2, 0))


def _factorizations() -> Iterator[tuple[Any, ...]]:
    x = _f([[0.0, 1.0, 2.0, 5.0], [3.0, -4.0, 1.0, 0.5], [-6.0, 2.0, 2.0, 1.0], [1.5, 1.0, -3.0, 2.0]])
    yield from (({}, x[rows, columns]) for rows in (slice(4), slice(2)) for columns in (slice(4), slice(1, 3), slice(3)))
    yield {}, np.stack([x, x[::-1], x.T])
    yield {}, np.zeros((0, 0))


OTHERS: dict[str, list[tuple[Any, ...]]] = {
    **signal_edges.OTHERS,
    "cholesky": [({}, _INDEFINITE), ({}, np.zeros((0, 0)))],
    "triangular_solve": list(_triangular_systems()),
    "lu": list(_factorizations()),
    **{op: list(_reductions(op)) for op in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")},
    **{op: list(_bits()) for op in ("reduce_and", "reduce_or", "reduce_xor")},
    **{op: list(_cumulatives(op)) for op in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")},
    **{op: list(_scatters(op)) for op in ("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-max", "scatter-min")},
    **{op: list(_slices(op)) for op in ("dynamic_slice", "dynamic_update_slice")},
    **{op: list(_roundings(op)) for op in ("round", "reduce_precision")},
    "argmax": list(_positions("i32")),
    "argmin": list(_positions("i64")),
    "sort": list(_sorts()),
    "top_k": list(_tops()),
    "gather": list(_gathers()),
    "convert_element_type": list(_conversions()),
    "pow": list(_powers()),
    "clamp": list(_clamps()),
    "select_n": list(_selections()),
    "pad": list(_pads()),
    "dot_general": list(_products()),
    "concatenate": [({"dimension": 0}, np.zeros(0), np.arange(2.0), np.zeros(0))],
    "slice": [
        ({"start_indices": [1], "limit_indices": [1]}, np.arange(3.0)),
        ({"start_indices": [0], "limit_indices": [3], "strides": [7]}, np.arange(3.0)),
    ],
    "split": [({"sizes": [0, 3], "axis": 0}, np.arange(3.0))],
    "rev": [({"dimensions": [0, 1]}, np.zeros((0, 2)))],
    "broadcast_in_dim": [
        ({"shape": [0, 3], "broadcast_dimensions": [1]}, np.arange(3.0)),
        ({"shape": [2, 3], "broadcast_dimensions": [0, 1]}, np.ones((1, 1))),
    ],
}
"""Attrs and operands of primitives that are not elementwise, or have edges besides."""
