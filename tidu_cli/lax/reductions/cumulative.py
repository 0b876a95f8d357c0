"""Cumulative reductions: at each element of an axis, the reduction of all elements up to it.

But for cumsum, which is linear, their derivatives obey a recurrence d[i] = g[i] d[i-1] + b[i] along the axis. The rules emit its
solution in log₂ n steps, each of which doubles the reach of the sums (W. D. Hillis, G. L. Steele, "Data parallel algorithms",
Communications of the ACM 29 (1986) 1170-1183): no quotient and no difference of sums, so zeros, infinities and NaN stay where
they belong. Along an axis of open length they emit a loop, which computes the recurrence element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import DURATIONS, INEXACT, NUMERIC, REALS, TIMES, real_dtype
from tidu_cli.lax.arrays.dtypes import in_order, ordered_dtype
from tidu_cli.lax.reductions.reduction import shifted
from tidu_cli.rules.analysis import Places, Spread, Spreading, accumulating, adding, multiplying
from tidu_cli.rules.attrs import Axis
from tidu_cli.rules.batching import itself, later
from tidu_cli.rules.contract import JVP, Attrs, Example, Kernel, KernelRule, Primitive, TypeRule, Types
from tidu_cli.rules.families import by_counts, primitive, require_axis, require_dtype
from tidu_cli.rules.terms import Number, Term, op

convert, cumsum, eq, exp, real, select_n = map(op, ("convert_element_type", "cumsum", "eq", "exp", "real", "select_n"))

_GREATEST = {"f16": 65504.0, "bf16": (2 - 2.0**-7) * 2.0**127, "f32": (2 - 2.0**-23) * 2.0**127, "f64": (2 - 2.0**-52) * 2.0**1023}


class CumulativeAttrs(Attrs):
    """`axis`: the axis along which to accumulate; `reverse`: whether from its end, by default false."""

    axis: Axis
    reverse: bool = False


def _types(dtypes: frozenset[str]) -> TypeRule:
    def types(attrs: CumulativeAttrs, operands: Types) -> Types:
        require_dtype(dtypes, operands)
        require_axis("axis", attrs.axis, operands[0])
        return operands

    return types


def _kernel(function: str, *, wide: bool = True) -> KernelRule:
    """The kernel that accumulates with a function of NumPy's, half precision in single where `wide`."""

    def kernel(np: Any, attrs: CumulativeAttrs, operands: Types, results: Types) -> Kernel:
        axis, dtype = attrs.axis, ordered_dtype(np, results[0].dtype)
        along = _complex_logsumexp(np) if operands[0].complex and function == "logaddexp" else getattr(np, function).accumulate
        # In single as XLA does: sums in half precision would stop growing at 2048 (f16) or 256 (bf16).
        through = np.float32 if wide and results[0].dtype in ("f16", "bf16") else dtype

        def forward(x: Any) -> Any:
            return along(x.astype(through, copy=False), axis=axis, dtype=through if wide else None).astype(dtype, copy=False)

        return (lambda x: np.flip(forward(np.flip(x, axis)), axis)) if attrs.reverse else forward

    return kernel


def _complex_logsumexp(np: Any) -> Callable[..., Any]:
    def along(x: Any, axis: int, dtype: Any) -> Any:
        y = np.moveaxis(np.array(x), axis, 0)
        reach = 1
        while reach < len(y):
            y[reach:] = _complex_logaddexp(np, y[:-reach], y[reach:])
            reach *= 2
        return np.moveaxis(y, 0, axis)

    return along


def _complex_logaddexp(np: Any, a: Any, b: Any) -> Any:
    """log(exp a + exp b), with the imaginary part in [-π, π]."""
    first = a.real >= b.real
    great, small = np.where(first, a, b), np.where(first, b, a)
    total = great + np.log1p(np.exp(small - great))
    total = np.where(np.isinf(great.real) & ~np.isnan(small), great, total)
    turns = np.round(total.imag / (2 * np.pi))
    return total - np.where(turns == 0, 0, 1j * (2 * np.pi * turns)).astype(total.dtype)


def _shifted(v: Term, reach: int, attrs: CumulativeAttrs, fill: Number) -> Term:
    return shifted(v, attrs.axis, reach, fill, reverse=attrs.reverse)


def _reaches(x: Term, attrs: CumulativeAttrs) -> list[int]:
    """1, 2, 4, … below the length of the axis."""
    return [2**k for k in range(max(x.type.shape[attrs.axis] - 1, 0).bit_length())]


def _is_open(node: JVP) -> bool:
    """Whether the axis has an open length, so that it is open how often a step doubles: the rules emit the recurrence itself."""
    return isinstance(node.operands[0].type.shape[node.attrs.axis], OpenSize)


def _recurrence(step: Callable[..., Term], xs: Sequence[Term], attrs: CumulativeAttrs) -> Term:
    from tidu_cli.lax.reductions.loops import recurrence  # only where sizes are open

    return recurrence(step, xs, attrs.axis, reverse=attrs.reverse)


def _cumprod_jvp(node: JVP) -> Sequence[Term | None]:
    # d[i] = x[i] d[i-1] + y[i-1] t[i]; d[i - reach] is carried on by the product of the `reach` elements up to x[i].
    (x,), (y,), t, attrs = node.operands, node.results, node.tangent, node.attrs
    window, d = x, _shifted(y, 1, attrs, 1) * t
    if _is_open(node):
        return [_recurrence(lambda d, x, own: own + x * d, [x, d], attrs)]
    for reach in _reaches(x, attrs):
        if reach > 1:
            window = window * _shifted(window, reach // 2, attrs, 1)
        d = d + window * _shifted(d, reach, attrs, 0)
    return [d]


def _extremum_jvp(node: JVP) -> Sequence[Term | None]:
    # Elements with the same y are neighbours: a run. Its elements share in the tangents of those of them, so far, that attain y.
    (x,), (y,), t, attrs = node.operands, node.results, node.tangent, node.attrs
    taken = eq(x, y)
    total, ties = select_n(taken, 0, t), convert(taken, new_dtype=t.type.dtype)
    if _is_open(node):
        same_run = eq(_shifted(y, 1, attrs, 0), y)
        total, ties = (
            _recurrence(lambda before, same, own: own + select_n(same, 0, before), [same_run, own], attrs) for own in (total, ties)
        )
        return [total / ties]
    for reach in _reaches(x, attrs):
        same_run = eq(_shifted(y, reach, attrs, 0), y)
        total = total + select_n(same_run, 0, _shifted(total, reach, attrs, 0))
        ties = ties + select_n(same_run, 0, _shifted(ties, reach, attrs, 0))
    return [total / ties]


def _logsumexp_jvp(node: JVP) -> Sequence[Term | None]:
    # d[i] = exp(y[i-1] - y[i]) d[i-1] + exp(x[i] - y[i]) t[i], and the factors over several steps telescope.
    (x,), (y,), t, attrs = node.operands, node.results, node.tangent, node.attrs
    x, y = _without_infinities(x), _without_infinities(y)
    lowest = -_GREATEST[real_dtype(x.type.dtype)]
    d = exp(x - y) * t
    if _is_open(node):
        factor = exp(_shifted(y, 1, attrs, lowest) - y)
        return [_recurrence(lambda d, factor, own: own + factor * d, [factor, d], attrs)]
    for reach in _reaches(x, attrs):
        d = d + exp(_shifted(y, reach, attrs, lowest) - y) * _shifted(d, reach, attrs, 0)
    return [d]


def _without_infinities(z: Term) -> Term:
    """z with infinite real parts made finite, so that exp(inf - inf) is 1."""
    for sign in (1, -1):
        infinite = eq(real(z) if z.type.complex else z, sign * float("inf"))
        z = select_n(infinite, z, sign * _GREATEST[real_dtype(z.type.dtype)])
    return z


_EXAMPLES = (
    Example(("T[5]",), {"axis": 0}),
    Example(("T[2,3]",), {"axis": 1, "reverse": True}),
    Example(("T[3,2]",), {"axis": 0}),
    Example(("f64[1]",), {"axis": 0}),
)


def _cumulative(name: str, of: str, dtypes: frozenset[str], kernel: KernelRule, *, formula: str, **rest: Any) -> Primitive:
    """A cumulative reduction: the sum, say, `of` elements."""
    told: dict[str, Any] = {"flops": accumulating(), "summary": f"cumulative {of}"}
    return primitive(
        name,
        1,
        _types(dtypes),
        kernel,
        batch=itself(name, axis=later),
        attrs=CumulativeAttrs,
        dtypes=dtypes,
        examples=_EXAMPLES,
        one_type=True,
        formula=f"{formula} up to each element of an axis",
        caption=(f"cumulative {of} of {{0}}", f"the cumulative {of} along axis {{axis}}{{end}}"),
        **(told | rest),
    )


def _extreme(name: str, of: str) -> Primitive:
    kernel = in_order(_kernel(of, wide=False))
    summary, jvp = f"cumulative {of}; its derivative is shared equally among ties", by_counts(_extremum_jvp)
    told: dict[str, Any] = {"formula": f"{name} x", "summary": summary, "jvp": jvp, "integers": "exact", "kinks": _extreme_kinks}
    return _cumulative(f"cum{name}", of, REALS | TIMES, kernel, **told)


def _extreme_kinks(k: Any) -> Sequence[Any]:
    return [k.Kink(k.attained_again, "elements tie", "equal shares", "halves by pairs", "the last of them", "")]


def _spreads(node: Spreading) -> Sequence[Spread]:
    """Along the axis each place depends on those up to it."""
    which: Places = "from" if node.attrs.reverse else "upto"
    return [(k, k, which if k == node.attrs.axis else None) for k in range(node.operand.rank)]


PRIMITIVES = (
    _cumulative(
        "cumsum",
        "sum",
        NUMERIC | DURATIONS,
        _kernel("add"),
        formula="Σ x",
        adjoint=lambda node, ct, type_: cumsum(ct, axis=node.attrs.axis, reverse=not node.attrs.reverse),
        sparsity=_spreads,
    ),
    _cumulative(
        "cumprod", "product", NUMERIC, _kernel("multiply"), formula="Π x", jvp=_cumprod_jvp, flops=accumulating(multiplying)
    ),
    _extreme("max", "maximum"),
    _extreme("min", "minimum"),
    _cumulative(
        "cumlogsumexp",
        "log-sum-exp",
        INEXACT,
        _kernel("logaddexp"),
        formula="log Σ exp x",
        summary="cumulative log-sum-exp, without overflow",
        flops=accumulating(lambda t: 3 * adding(t)),  # an exponential, a sum and a logarithm
        jvp=_logsumexp_jvp,
    ),
)
