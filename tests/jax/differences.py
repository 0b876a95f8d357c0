"""Where tidu differs from JAX on purpose, or cannot help it: one table, for the tests and for docs/differences.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.jax.primitives.derivatives import Problem

COMPARED_WITH = "0.10.2"
"""The version of JAX that the table is about. With it, a row that explains nothing is an error."""

Where = Callable[[Problem], Any]


@dataclass(frozen=True)
class Difference:
    """That some primitives differ at some points, in some of the things compared (`tests.jax.primitives.derivatives.KINDS`).

    `where` is a mask over the elements of the results (or of the operands, for cotangents), or one bool for the whole problem.
    `refusal` is the name of the exception with which JAX refuses.
    """

    ops: tuple[str, ...]
    at: str
    tidu: str
    jax: str
    reason: str
    where: Where
    kinds: tuple[str, ...] = ("jvp", "vjp", "second")
    refusal: str = ""


def real(condition: Callable[..., Any]) -> Where:
    """A condition on the operands, where they are real."""
    return lambda p: not any(t.complex for t in p.case.operands) and condition(*p.operands)


def complex_(condition: Callable[..., Any]) -> Where:
    """A condition on the operands, where they are complex."""
    return lambda p: all(t.complex for t in p.case.operands) and condition(*p.operands)


def _ties(p: Problem) -> bool:
    """Whether two elements of a line are equal, or NaN."""
    axis = p.case.attrs.axis
    ascending = np.moveaxis(np.sort(p.operands[0], axis=axis), axis, 0)
    return bool((ascending[1:] == ascending[:-1]).any() or np.isnan(ascending).any())


def _cut(p: Problem) -> bool:
    """Whether padding takes elements away."""
    return any(edge < 0 for edges in p.case.attrs.padding for edge in edges)


def _on_cut(z: Any) -> Any:
    return (z.imag == 0) & (np.abs(z.real) > 1)


ALL_KINDS = ("value", "jvp", "vjp", "second")

DIFFERENCES = (
    Difference(
        ("abs",),
        "real 0, NaN",
        "derivative 0, NaN",
        "one-sided: 1, -1",
        "0 is the subgradient that both sides agree on, and what PyTorch has; NaN stays NaN",
        real(lambda x: (x == 0) | np.isnan(x)),
    ),
    Difference(
        ("sign",),
        "complex numbers",
        "the derivative of z/|z|",
        "0",
        "the phase turns with z; 0 is right for real numbers only",
        complex_(lambda z: True),
    ),
    Difference(
        ("acosh",),
        "complex, Re z < 0",
        "1/(√(z-1) √(z+1))",
        "1/√(z²-1), which has the wrong sign there",
        "difference quotients tell",
        complex_(lambda z: np.signbit(z.real)),
    ),
    Difference(
        ("sqrt", "asin", "acos", "asinh", "acosh"),
        "complex, on branch cuts",
        "values and derivatives from the side that the sign of the zero part says, as C99 has it",
        "-0 counts as 0, in derivatives not always",
        "Kahan's rule; NumPy's functions follow it",
        lambda p: (
            {
                "sqrt": lambda z: (z.imag == 0) & (z.real < 0),
                "asinh": lambda z: (z.real == 0) & (np.abs(z.imag) > 1),
                "acosh": lambda z: (z.imag == 0) & (z.real < 1),
            }.get(p.case.op, _on_cut)(p.operands[0])
            & p.case.operands[0].complex
        ),
        ALL_KINDS,
    ),
    Difference(
        ("acosh",),
        "real -1",
        "derivative -∞ times the sign of zero",
        "the other infinity",
        "the value is NaN: -1 is outside of the domain",
        real(lambda x: x == -1),
    ),
    Difference(
        ("max", "min"),
        "0 and -0",
        "either",
        "max gives 0, min -0",
        "NumPy takes either; the two are equal",
        real(lambda x, y: (x == 0) & (y == 0)),
        ("value",),
    ),
    Difference(
        ("pow",),
        "exponent 0 of floats at base 0, NaN",
        "derivatives 0, forward and reverse",
        "NaN",
        "x⁰ is 1 at every x",
        lambda p: (
            p.case.operands[0] == p.case.operands[1] and (p.operands[1] == 0) & ((p.operands[0] == 0) | np.isnan(p.operands[0]))
        ),
    ),
    Difference(
        ("pow",),
        "exponent 1 at base 0, NaN",
        "second derivative in the base 0",
        "NaN",
        "x¹ is straight",
        lambda p: (p.operands[1] == 1) & ((p.operands[0] == 0) | np.isnan(p.operands[0])),
        ("second",),
    ),
    Difference(
        ("rem",),
        "divisor 0, dividend ±∞",
        "derivative NaN",
        "±∞",
        "the value is NaN",
        lambda p: (p.operands[1] == 0) | np.isinf(p.operands[0]),
    ),
    Difference(
        ("lgamma", "digamma", "polygamma", "zeta"),
        "±∞",
        "limits, NaN where there is none",
        "NaN, ∞",
        "SciPy's values",
        lambda p: np.any([np.isinf(x) for x in p.operands], axis=0),
        ALL_KINDS,
    ),
    Difference(
        ("zeta",),
        "x ≤ 1, outside of the domain",
        "NaN, but ∞ at 1",
        "∞ at some points",
        "there is no value",
        lambda p: ~(p.operands[0] > 1),
        ("value",),
    ),
    Difference(
        ("zeta",),
        "everywhere",
        "derivatives in both operands",
        "no derivative",
        "the second is -x ζ(x + 1, y), the first a function of its own",
        lambda p: True,
        refusal="NotImplementedError",
    ),
    Difference(
        ("igamma", "igammac"),
        "everywhere",
        "second derivatives in the order",
        "none",
        "they are functions of their own",
        lambda p: True,
        ("second",),
        refusal="NotImplementedError",
    ),
    Difference(
        ("igamma", "igammac"),
        "±∞",
        "derivative in the order 0, its limit",
        "NaN",
        "the functions are constant there",
        lambda p: np.any([np.isinf(x) for x in p.operands], axis=0),
    ),
    Difference(
        ("igamma", "igammac"),
        "0",
        "derivative from the right",
        "NaN",
        "it is the density there",
        lambda p: p.operands[1] == 0,
        ("jvp", "vjp"),
    ),
    Difference(
        ("bessel_i1e",),
        "NaN",
        "derivative NaN",
        "that near 0",
        "the value is NaN",
        lambda p: np.isnan(p.operands[0]),
    ),
    Difference(
        ("igamma_grad_a",),
        "the edges of the domain, and beyond them",
        "limits, and NaN",
        "0",
        "to_jax masks what it computes by jnp.where",
        lambda p: ~np.all([(x > 0) & np.isfinite(x) for x in p.operands], axis=0),
        ("jvp", "vjp", "second"),
    ),
    Difference(
        ("regularized_incomplete_beta",),
        "everywhere",
        "derivatives in the first and second operand",
        "none",
        "they are functions of their own",
        lambda p: True,
        refusal="ValueError",
    ),
    Difference(
        ("igamma", "igammac"),
        "order 0, ∞",
        "limits, NaN where there is none",
        "NaN, and 1 or 0 where both are ∞",
        "SciPy's values",
        lambda p: (p.operands[0] == 0) | np.isinf(p.operands[0]),
        ("value",),
    ),
    Difference(
        ("abs",),
        "unsigned integers",
        "the identity",
        "refused",
        "it costs nothing",
        lambda p: p.case.operands[0].dtype.startswith("u"),
        ALL_KINDS,
        refusal="TypeError",
    ),
    Difference(
        ("clamp",),
        "bounds that meet or cross; NaN",
        "derivative 1 in the upper bound; 0",
        "0 below it; 1 in the upper bound where the lower one is NaN",
        "the value is the upper bound's; NaN is none's, as of max",
        lambda p: ~(p.operands[0] < p.operands[2]),
    ),
    Difference(
        ("clamp",),
        "bounds of rank 0",
        "has derivatives in them",
        "refused",
        "the sum of the tangent's masked elements",
        lambda p: p.case.operands[0] != p.case.operands[1],
        refusal="TypeError",
    ),
    Difference(
        ("convert_element_type",),
        "complex to bool",
        "whether z ≠ 0",
        "whether Re z ≠ 0",
        "as NumPy has it",
        lambda p: p.case.operands[0].complex and p.case.attrs.new_dtype == "bool" and (p.operands[0].real == 0),
        ("value",),
    ),
    Difference(
        ("select_n",),
        "selector out of range",
        "the cotangent goes to the case that was taken",
        "it goes nowhere",
        "the adjoint of the JVP",
        lambda p: p.case.operands[0].dtype == "i32" and ((p.operands[0] < 0) | (p.operands[0] > len(p.operands) - 2)),
        ("vjp",),
    ),
    Difference(
        ("reduce_max", "reduce_min"),
        "NaN among the elements",
        "cotangent NaN",
        "0, though the tangent is NaN",
        "the adjoint of the JVP",
        lambda p: bool(np.isnan(p.operands[0]).any()),
        ("vjp",),
    ),
    Difference(
        ("cummax", "cummin"),
        "ties, NaN",
        "equal shares, NaN",
        "halves by pairs, as its scan happens to pair; 0 at NaN",
        "the rule of reduce_max",
        _ties,
        ("jvp", "vjp"),
    ),
    Difference(
        ("cumlogsumexp",),
        "infinities and NaN among the elements",
        "the limit: softmax of infinities is shared equally",
        "NaN or arbitrary",
        "masks of -∞ are common",
        lambda p: not np.isfinite(p.operands[0]).all(),
    ),
    Difference(
        ("top_k",),
        "0 and -0",
        "equal: the first comes first",
        "0 above -0",
        "sort has them equal, in JAX too",
        lambda p: bool((p.operands[0] == 0).sum() > 1),
        ALL_KINDS,
    ),
    Difference(
        ("scatter-max", "scatter-min"),
        "windows that do not fit, mode clip",
        "the derivative of the value",
        "NaN, infinities",
        "JAX's rule reads them back in another mode",
        lambda p: p.case.attrs.mode == "clip",
    ),
    Difference(
        ("cholesky",),
        "tangents that are not Hermitian",
        "the derivative of the value, which the lower triangle makes",
        "that of a Hermitian tangent, taken from all of it",
        "difference quotients tell; of (x + xᴴ)/2 both are the same",
        lambda p: True,
    ),
    Difference(
        ("select_and_gather_add", "select_and_scatter_add"),
        "operands of two dtypes",
        "of integers the tangents are floats",
        "refused",
        "one has values, the other is compared",
        lambda p: p.case.operands[0].dtype != p.case.operands[1].dtype,
        ALL_KINDS,
        refusal="TypeError",
    ),
    Difference(
        ("reduce_window_max", "reduce_window_min"),
        "NaN among the elements; windows of -∞ (of minima: ∞) and padding",
        "NaN is chosen, and never padding",
        "passed over; padding may be chosen",
        "NaN is the value, too",
        lambda p: not np.isfinite(p.operands[0]).all(),
        ("jvp", "vjp"),
    ),
    Difference(
        ("select_and_gather_add", "select_and_scatter_add"),
        "NaN among the elements; windows of -∞ (of minima: ∞) and padding",
        "NaN is chosen, and never padding",
        "passed over; padding may be chosen",
        "NaN is the value, too",
        lambda p: not np.isfinite(p.operands[1]).all(),
        ("value", "jvp", "vjp"),
    ),
    Difference(
        ("reduce_window_max", "reduce_window_min", "select_and_gather_add"),
        "windows that are dilated",
        "have cotangents",
        "refused",
        "JAX's select_and_scatter_add has no dilation",
        lambda p: max(p.case.attrs.window_dilation, default=1) > 1,
        ("vjp", "second"),
        refusal="NotImplementedError",
    ),
    Difference(
        ("reduce_window_max", "reduce_window_min", "select_and_gather_add"),
        "negative padding",
        "has cotangents",
        "refused on the CPU",
        "it takes elements away, whose cotangents are 0",
        _cut,
        ("vjp", "second"),
        refusal="TypeError",
    ),
    Difference(
        ("select_and_scatter_add",),
        "negative padding",
        "takes elements away",
        "refused on the CPU",
        "the adjoint of select_and_gather_add",
        _cut,
        ALL_KINDS,
        refusal="TypeError",
    ),
)


def to_markdown() -> str:
    """The table as docs/differences.md shows it."""
    lines = ["| where | tidu | JAX | why |", "|---|---|---|---|"]
    for row in DIFFERENCES:
        where = f"{', '.join(f'`{op}`' for op in row.ops)}: {row.at}"
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in (where, row.tidu, row.jax, row.reason)) + " |")
    return "\n".join(lines)
