"""Reductions of windows: sums, maxima and minima of those that slide over an array (StableHLO's reduce_window)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

from tidu_cli.graph.types import INTEGERS, NUMERIC, REALS, TensorType
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.lax.arrays.slicing import require_one_per_axis, zeros
from tidu_cli.lax.signal.sliding import Counts, Padding, Sliding, Window, laid_out, most_places, slid, slidings, spread
from tidu_cli.rules.analysis import Spread, Spreading, adding
from tidu_cli.rules.batching import AttrShift, itself, preceded
from tidu_cli.rules.contract import JVP, Attrs, Example, Kernel, KernelRule, Primitive, Transposition, Types
from tidu_cli.rules.families import primitive, require_dtype
from tidu_cli.rules.terms import Term, op

pad, reduce_window_sum, select_and_gather_add = map(op, ("pad", "reduce_window_sum", "select_and_gather_add"))

COMPARED = REALS | {"bool"}
"""The dtypes of which there are maxima and minima of windows."""

SHIFTS: dict[str, AttrShift] = {
    **dict.fromkeys(("window_dimensions", "window_strides", "base_dilation", "window_dilation"), preceded(1)),
    "padding": preceded((0, 0)),
}
"""The attrs of a batch."""


class WindowAttrs(Attrs):
    """`window_dimensions`: the shape of windows; `window_strides`: from one to the next; `padding`: [low, high], what goes before
    and after, negative to take elements away; `base_dilation`, `window_dilation`: how far elements, and places in a window, are
    apart.

    Each has an entry per axis. What is put in, padding and between elements, does not change a reduction.
    """

    window_dimensions: Window
    window_strides: Counts
    padding: Padding
    base_dilation: Counts
    window_dilation: Counts


def windows_of(attrs: Any, operand: TensorType) -> tuple[Sliding, ...]:
    """The windows along each axis of an operand; an attr of None is 1 on all. Raises TypeRuleError."""
    for name in ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation"):
        if getattr(attrs, name) is not None:
            require_one_per_axis(name, getattr(attrs, name), operand)
    ones = (1,) * operand.rank
    base, dilation = attrs.base_dilation or ones, attrs.window_dilation or ones
    windows, strides, padding = attrs.window_dimensions, attrs.window_strides, attrs.padding
    return slidings(operand.shape, windows, strides, padding, base, dilation, "the operand")


def _types(dtypes: frozenset[str], attrs: WindowAttrs, operands: Types) -> Types:
    require_dtype(dtypes, operands)
    (operand,) = operands
    return (operand.with_shape(tuple(along.count for along in windows_of(attrs, operand))),)


def lowest(np: Any, dtype: str) -> Any:
    """What is no more than any number of a dtype."""
    return np.iinfo(numpy_dtype(np, dtype)).min if dtype in INTEGERS else False if dtype == "bool" else -np.inf


def highest(np: Any, dtype: str) -> Any:
    """What is no less than any number of a dtype."""
    return np.iinfo(numpy_dtype(np, dtype)).max if dtype in INTEGERS else True if dtype == "bool" else np.inf


def _kernel(function: str, identity: Callable[[Any, str], Any], *, wide: bool = False) -> KernelRule:
    """The kernel that folds with a function of NumPy's; half precision in single if `wide`."""

    def kernel(np: Any, attrs: WindowAttrs, operands: Types, results: Types) -> Kernel:
        axes, (operand,) = windows_of(attrs, operands[0]), operands
        dtype, fill, fold = numpy_dtype(np, operand.dtype), identity(np, operand.dtype), getattr(np, function)
        through = np.float32 if wide and operand.dtype in ("f16", "bf16") else dtype

        def reduced(x: Any) -> Any:
            y = laid_out(np, np.asarray(x, through), axes, fill)
            for axis, along in enumerate(axes):
                (y,) = slid((y,), lambda one, other: (fold(one[0], other[0]),), axis, along)
            # Where windows are of one element, that is a view.
            return y.astype(dtype)

        return reduced

    return kernel


def _work(attrs: WindowAttrs, operands: Types, results: Types) -> int:
    (operand,) = operands
    each = max(TensorType(operand.dtype).nbytes, 4)  # half precision may be single within
    return each * (most_places(windows_of(attrs, operand)) + operand.size)


def _sum_adjoint(node: Transposition, ct: Term, type_: TensorType) -> Term | None:
    if ct.type.size == 0:
        return None
    attrs, axes = node.attrs, windows_of(node.attrs, type_)
    config = tuple((*along.adjoint_padding, along.stride - 1) for along in axes)
    if any(n != 0 for entry in config for n in entry):
        ct = pad(ct, zeros(TensorType(type_.dtype), ct), padding_config=config)
    return reduce_window_sum(
        ct,
        window_dimensions=attrs.window_dimensions,
        window_strides=attrs.base_dilation,
        padding=((0, 0),) * type_.rank,
        base_dilation=(1,) * type_.rank,
        window_dilation=attrs.window_dilation,
    )


def ties(least: Callable[[Any], bool]) -> Callable[[Any], Sequence[Any]]:
    """The kinks of windows of the last operand: those of which several elements are the greatest, or the least if attrs say so."""

    def tied(np: Any, attrs: Any, operands: Sequence[Any], results: Sequence[Any]) -> Any:
        x = operands[-1]
        axes = windows_of(attrs, TensorType("f64", x.shape))
        if not x.size or not prod(along.count for along in axes):
            return np.zeros([along.count for along in axes], bool)
        places = laid_out(np, x, axes, np.nan)
        views = np.lib.stride_tricks.sliding_window_view(places, [spread(along.window, along.dilation) for along in axes])
        starts = [slice(None, spread(along.count, along.stride), along.stride) for along in axes]
        elements = views[(*starts, *[slice(None, None, along.dilation) for along in axes])]
        within = tuple(range(x.ndim, 2 * x.ndim))
        best = (np.fmin if least(attrs) else np.fmax).reduce(elements, axis=within, keepdims=True)
        return (elements == best).sum(axis=within) > 1

    return lambda k: [k.Kink(tied, "elements of a window tie", "the first of them")]


def flops(attrs: Any, operands: Types, results: Types) -> int:
    """Windows of n places take n - 1 combinations, as XLA counts, padding among them."""
    windows, places = prod(along.count for along in windows_of(attrs, operands[-1])), prod(attrs.window_dimensions)
    return adding(operands[0]) * windows * (int(places) - 1)


def spreads(node: Spreading) -> Sequence[Spread]:
    """Each window depends on the elements in it."""
    return [(k, k, along.pairs) for k, along in enumerate(windows_of(node.attrs, node.operand))]


def window(dimensions: Sequence[int], **attrs: Any) -> dict[str, Any]:
    """Attrs of windows, one place apart and without padding or dilations but for what is told."""
    ones, rank = [1] * len(dimensions), len(dimensions)
    plain = {"window_strides": ones, "padding": [[0, 0]] * rank, "base_dilation": ones, "window_dilation": ones}
    return {"window_dimensions": list(dimensions), **plain, **attrs}


EXAMPLES = (
    ("[5]", window([2])),
    ("[4,6]", window([2, 3], window_strides=[2, 3])),
    ("[3,5]", window([2, 3], padding=[[1, 0], [2, -1]], window_strides=[1, 2])),
    ("[4,3]", window([2, 3], base_dilation=[2, 1], window_dilation=[1, 2], padding=[[0, 1], [2, 1]])),
)
"""A shape, and attrs of windows over it."""


def _reduction(name: str, of: str, dtypes: frozenset[str], kernel: KernelRule, formula: str, **rest: Any) -> Primitive:
    return primitive(
        f"reduce_window_{name}",
        1,
        partial(_types, dtypes),
        kernel,
        batch=itself(f"reduce_window_{name}", **SHIFTS),
        attrs=WindowAttrs,
        dtypes=dtypes,
        examples=tuple(Example((f"T{shape}",), attrs) for shape, attrs in EXAMPLES),
        fresh=True,
        flops=flops,
        work=_work,
        formula=f"{formula} over each window",
        caption=(f"{name} of windows of {{0}}", f"the {of} of each window of {{window_dimensions}}"),
        **rest,
    )


def _extreme(name: str, of: str, function: str, identity: Callable[[Any, str], Any], select_prim: str) -> Primitive:
    def jvp(node: JVP) -> Sequence[Term | None]:
        return [select_and_gather_add(node.tangent, node.operands[0], select_prim=select_prim, **dict(node.attrs))]

    summary = f"{of} of each window that slides over the operand; its derivative is that of the first of ties"
    rest = {"jvp": jvp, "integers": "exact", "summary": summary, "kinks": ties(lambda attrs: select_prim == "le")}
    return _reduction(name, of, COMPARED, _kernel(function, identity), f"{name} x", **rest)


PRIMITIVES = (
    _reduction(
        "sum",
        "sum",
        NUMERIC,
        _kernel("add", lambda np, dtype: 0, wide=True),
        "Σ x",
        adjoint=_sum_adjoint,
        sparsity=spreads,
        summary="sum of each window that slides over the operand, with strides, padding and dilations",
    ),
    _extreme("max", "maximum", "maximum", lowest, "ge"),
    _extreme("min", "minimum", "minimum", highest, "le"),
)
