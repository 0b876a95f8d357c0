"""Reductions, also of windows, where the region tells what is computed; products, transforms and factorizations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from tidu_cli.adapters.stablehlo.reading.reducers import SIMPLE, comparison, pair_reducer, reducer, separate
from tidu_cli.adapters.stablehlo.reading.site import Reader, RefusedError, Site, adjoint
from tidu_cli.graph.closed import ClosedGraph, forwards
from tidu_cli.graph.types import COMPLEXES, FLOATS, TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.rules.terms import Term

COMBINING = {kind: op for op, kind in SIMPLE.items()}
"""By what a start that is not neutral is added to the result."""

CUMULATIVE = {"sum": "cumsum", "prod": "cumprod", "max": "cummax", "min": "cummin", "logsumexp": "cumlogsumexp"}

WINDOWED = ("sum", "max", "min")


def region_of(site: Site, number: int, what: str) -> ClosedGraph:
    """The graph of a region that reads nothing around it but constants. Raises RefusedError."""
    graph, outside = site.region(number)
    if outside:
        raise RefusedError(f"its {what} reads values from around it, which no operation of a graph does")
    return graph


def neutral(kind: str, dtype: str) -> Any:
    """The number that changes no result."""
    if kind in ("sum", "or", "xor"):
        return 0
    if kind == "prod":
        return 1
    if kind == "and":
        return True if dtype == "bool" else -1 if dtype[0] == "i" else 2 ** int(dtype[1:]) - 1
    high = kind == "min"
    if dtype in FLOATS or dtype in COMPLEXES:
        return np.inf if high else -np.inf
    if dtype == "bool":
        return high
    info = np.iinfo(numpy_dtype(np, dtype))
    return info.max if high else info.min


def is_neutral(site: Site, start: Term, kind: str) -> bool:
    """Whether a start is known, and the number that changes nothing."""
    number = site.known(start)
    if number is None:
        return False
    due = neutral(kind, start.type.dtype)
    return bool(number.real == due and (start.type.dtype not in COMPLEXES or kind in ("max", "min") or number.imag == 0))


def started(site: Site, kind: str, start: Term, result: Term) -> Term:
    """A result with its start, unless that is neutral."""
    if is_neutral(site, start, kind):
        return result
    if kind not in COMBINING:
        raise RefusedError(f"its start is not the number that changes nothing, which is due for {kind}")
    return site.emit(COMBINING[kind], site.spread(start, result.type.shape), result)


def _kinds(graph: ClosedGraph, n: int, known: str) -> list[str]:
    """What a region of n pairs computes of each. Raises RefusedError for others than what is `known`."""
    parts = [graph] if n == 1 else separate(graph)
    kinds = [kind for part in parts or () if (kind := reducer(part))]
    if not kinds or len(kinds) < n:
        raise RefusedError(f"its reducer is none of {known}")
    return kinds


def _reduce(site: Site, *operands: Term) -> Sequence[Term]:
    n = len(operands) // 2
    arrays, starts = operands[:n], operands[n:]
    axes, graph = tuple(site.ints("dimensions")), region_of(site, 0, "reducer")
    if n == 2:
        kind = pair_reducer(graph)
        if kind in ("argmax", "argmin"):
            return _place(site, kind, arrays, starts, axes)
    kinds = _kinds(graph, n, "sum, product, maximum, minimum, and, or, xor, argmax and argmin")
    return [_reduced(site, k, x, start, axes) for k, x, start in zip(kinds, arrays, starts, strict=True)]


def _reduced(site: Site, kind: str, x: Term, start: Term, axes: tuple[int, ...]) -> Term:
    if kind == "logsumexp":
        raise RefusedError("its reducer is a logarithm of sums of exponentials, which is read of cumulative sums only")
    op = f"reduce_{kind}"
    if x.type.dtype in COMPLEXES and kind in ("max", "min"):
        raise RefusedError("takes maxima of complex numbers, which have no order here; compare their magnitudes")
    if x.type.dtype == "bool" and kind in ("max", "min"):
        op = {"max": "reduce_or", "min": "reduce_and"}[kind]
    return started(site, kind, start, site.emit(op, x, axes=axes))


def _place(site: Site, kind: str, arrays: Sequence[Term], starts: Sequence[Term], axes: tuple[int, ...]) -> Sequence[Term]:
    """The extremum along one axis and its place, if the second array counts along that axis from 0."""
    x, places = arrays
    counted = site.recording.made_by(places)
    if counted is None or counted.op != "iota" or axes != (counted.attrs.dimension,):  # type: ignore[attr-defined]
        raise RefusedError(f"its {kind} is of places that are not counted along the one axis")
    start = {"argmax": "max", "argmin": "min"}[kind]
    if not is_neutral(site, starts[0], start) or not is_neutral(site, starts[1], "sum"):
        raise RefusedError(f"its {kind} begins with a number that may be the result")
    return [site.emit(f"reduce_{start}", x, axes=axes), site.emit(kind, x, axes=axes, index_dtype=places.type.dtype)]


def _window(site: Site, x: TensorType) -> dict[str, Any]:
    """The attrs of a sliding window."""
    n = x.rank
    return {
        "window_dimensions": tuple(site.ints("window_dimensions")),
        "window_strides": tuple(site.ints("window_strides", [1] * n)),
        "padding": tuple(site.pairs("padding", n)),
        "base_dilation": tuple(site.ints("base_dilations", [1] * n)),
        "window_dilation": tuple(site.ints("window_dilations", [1] * n)),
    }


def _cumulative(window: dict[str, Any], x: TensorType) -> tuple[int, bool] | None:
    """The axis along which a window takes all before an element, or all after it, and which of them; None if it does not."""
    if any(s != 1 for name in ("window_strides", "base_dilation", "window_dilation") for s in window[name]):
        return None
    long = [a for a, (size, low_high) in enumerate(zip(window["window_dimensions"], window["padding"], strict=True))
            if size != 1 or low_high != (0, 0)]  # fmt: skip
    if len(long) != 1:
        return None
    (axis,), n = long, x.shape[long[0]]
    if window["window_dimensions"][axis] != n:
        return None
    reverse = {(n - 1, 0): False, (0, n - 1): True}.get(window["padding"][axis])
    return None if reverse is None else (axis, reverse)


def _cumulative_or_moved(window: dict[str, Any]) -> bool:
    """Whether windows are not those at each element, one by one."""
    return any(pair != (0, 0) for pair in window["padding"]) or any(
        s != 1 for name in ("window_strides", "base_dilation") for s in window[name]
    )


def _reduce_window(site: Site, *operands: Term) -> Sequence[Term]:
    n = len(operands) // 2
    arrays, starts = operands[:n], operands[n:]
    window, graph = _window(site, arrays[0].type), region_of(site, 0, "reducer")
    if n == 2:
        choice = pair_reducer(graph)
        if choice in ("ge", "le"):
            return _gathered(site, choice, arrays, starts, window)
    kinds = _kinds(graph, n, "sum, product, maximum and minimum")
    return [_windowed(site, k, x, start, window) for k, x, start in zip(kinds, arrays, starts, strict=True)]


def _windowed(site: Site, kind: str, x: Term, start: Term, window: dict[str, Any]) -> Term:
    along = _cumulative(window, x.type)
    if along is not None and kind in CUMULATIVE:
        axis, reverse = along
        if kind == "logsumexp" and not is_neutral(site, start, "max"):
            raise RefusedError("its start is not -inf")
        result = site.emit(CUMULATIVE[kind], x, axis=axis, reverse=reverse)
        return result if kind == "logsumexp" else started(site, kind, start, result)
    if set(window["window_dimensions"]) <= {1} and not _cumulative_or_moved(window):
        return started(site, kind, start, x)
    if kind in WINDOWED and x.type.dtype != "bool":
        return started(site, kind, start, site.emit(f"reduce_window_{kind}", x, **window))
    raise RefusedError(f"takes windows by {kind}, which is read of sums, maxima and minima of numbers")


def _gathered(site: Site, choice: str, arrays: Sequence[Term], starts: Sequence[Term], window: dict[str, Any]) -> Sequence[Term]:
    """The extrema of windows, and what another array has in their places."""
    kind = {"ge": "max", "le": "min"}[choice]
    if not is_neutral(site, starts[0], kind) or not is_neutral(site, starts[1], "sum"):
        raise RefusedError("its windows begin with a number that may be the result")
    x, tangents = arrays
    return [
        site.emit(f"reduce_window_{kind}", x, **window),
        site.emit("select_and_gather_add", tangents, x, select_prim=choice, **window),
    ]


def _select_and_scatter(site: Site, x: Term, source: Term, start: Term) -> Term:
    chosen, added = region_of(site, 0, "selection"), region_of(site, 1, "sum")
    if reducer(added) != "sum":
        raise RefusedError("scatters otherwise than by a sum")
    choice = comparison(chosen)
    if choice is None:
        raise RefusedError("selects otherwise than by ≥ and ≤")
    window = _window(site, x.type)
    del window["base_dilation"], window["window_dilation"]
    return started(site, "sum", start, site.emit("select_and_scatter_add", source, x, select_prim=choice, **window))


def _map(site: Site, *arrays: Term) -> Term:
    """A region on each element: its operations, on whole arrays."""
    graph = region_of(site, 0, "region")
    inner, values, shape = graph.graph, list(arrays), site.result.shape
    for code, args, _, _ in forwards(inner, inner.args):
        case = inner.cases[code]
        if case.op == "constant":
            terms = [
                site.emit("broadcast_in_dim", *site.recording.apply(case.op, case.attrs, []), shape=shape, broadcast_dimensions=())
            ]
        else:
            terms = list(site.recording.apply(case.op, case.attrs, [values[a] for a in args]))
        if any(t.value_type != r.with_shape(shape) for t, r in zip(terms, case.results, strict=True) if isinstance(r, TensorType)):
            raise RefusedError(f"its region has {case.op}, which is not an elementwise operation")
        values += terms
    (output,) = inner.outputs
    return values[cast(int, output.value)]


_REDUCTIONS: dict[str, Reader] = {
    "stablehlo.map": _map,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.select_and_scatter": _select_and_scatter,
}


# Products of arrays: dot_general, convolutions, Fourier transforms, factorizations that are operations of their own.


def _dot_general(site: Site, x: Term, y: Term) -> Term:
    numbers = site.attribute("dot_dimension_numbers")
    contracting = (tuple(numbers["lhs_contracting_dimensions"]), tuple(numbers["rhs_contracting_dimensions"]))
    batch = (tuple(numbers["lhs_batching_dimensions"]), tuple(numbers["rhs_batching_dimensions"]))
    return _dot(site, x, y, (contracting, batch))


def _dot_of_ranks(site: Site, x: Term, y: Term) -> Term:
    """The dot of older modules: the last axis of x with the first of y."""
    return _dot(site, x, y, (((x.type.rank - 1,), (0,)), ((), ())))


def _dot(site: Site, x: Term, y: Term, numbers: object) -> Term:
    due = site.result.dtype
    preferred = None if due == x.type.dtype == y.type.dtype else due
    return site.emit("dot_general", x, y, dimension_numbers=numbers, preferred_element_type=preferred)


def _convolution(site: Site, x: Term, kernel: Term) -> Term:
    numbers = site.attribute("dimension_numbers")
    n = len(numbers["input_spatial_dimensions"])
    if any(site.ints("window_reversal")):
        axes = tuple(a for a, r in zip(numbers["kernel_spatial_dimensions"], site.ints("window_reversal"), strict=True) if r)
        kernel = site.emit("rev", kernel, dimensions=axes)
    due = site.result.dtype
    return site.emit(
        "conv_general_dilated",
        x,
        kernel,
        window_strides=tuple(site.ints("window_strides", [1] * n)),
        padding=tuple(site.pairs("padding", n)),
        lhs_dilation=tuple(site.ints("lhs_dilation", [1] * n)),
        rhs_dilation=tuple(site.ints("rhs_dilation", [1] * n)),
        dimension_numbers={
            "lhs_spec": _axes(numbers, "input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"),
            "rhs_spec": _axes(
                numbers, "kernel_output_feature_dimension", "kernel_input_feature_dimension", "kernel_spatial_dimensions"
            ),
            "out_spec": _axes(numbers, "output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"),
        },
        feature_group_count=site.attribute("feature_group_count", 1),
        batch_group_count=site.attribute("batch_group_count", 1),
        preferred_element_type=None if due == x.type.dtype else due,
    )


def _axes(numbers: dict[str, Any], first: str, second: str, others: str) -> tuple[int, ...]:
    return (numbers[first], numbers[second], *numbers[others])


def _fft(site: Site, x: Term) -> Term:
    return site.emit("fft", x, fft_type=site.attribute("fft_type"), fft_lengths=tuple(site.ints("fft_length")))


def _cholesky(site: Site, x: Term) -> Term:
    """The lower factor, or the upper one, which is its adjoint and made of the upper triangle."""
    if site.attribute("lower", False):
        return site.emit("cholesky", x)
    return adjoint(site, site.emit("cholesky", adjoint(site, x)))


def _triangular_solve(site: Site, a: Term, b: Term) -> Term:
    turned = site.attribute("transpose_a")
    if turned not in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"):
        raise RefusedError(f"has transpose_a {turned}, which is none of NO_TRANSPOSE, TRANSPOSE and ADJOINT")
    return site.emit(
        "triangular_solve",
        a,
        b,
        left_side=site.attribute("left_side", False),
        lower=site.attribute("lower", False),
        transpose_a=turned != "NO_TRANSPOSE",
        conjugate_a=turned == "ADJOINT",
        unit_diagonal=site.attribute("unit_diagonal", False),
    )


_PRODUCTS: dict[str, Reader] = {
    "stablehlo.cholesky": _cholesky,
    "stablehlo.convolution": _convolution,
    "stablehlo.dot": _dot_of_ranks,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.fft": _fft,
    "stablehlo.triangular_solve": _triangular_solve,
}

OPERATIONS: dict[str, Reader] = {**_REDUCTIONS, **_PRODUCTS}
