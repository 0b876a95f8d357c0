"""What slides windows over arrays: convolutions, reductions and selections; and Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jax import lax
from jax._src.lax import windowed_reductions  # the primitives: the public functions take reducers, not their names

from tidu_cli.runtime.jax.primitives.arrays import dtype_of

Attrs = dict[str, Any]


def _conv(attrs: Attrs, lhs: Any, rhs: Any) -> Any:
    numbers = lax.ConvDimensionNumbers(**dict(attrs["dimension_numbers"]))
    preferred = dtype_of(attrs["preferred_element_type"])
    return lax.conv_general_dilated(lhs, rhs, **(attrs | {"dimension_numbers": numbers, "preferred_element_type": preferred}))


def _reduce_window(name: str) -> Callable[..., Any]:
    primitive = getattr(windowed_reductions, f"{name}_p")
    return lambda attrs, x: primitive.bind(x, **attrs)


def _select(name: str) -> Callable[..., Any]:
    primitive = getattr(windowed_reductions, f"{name}_p")

    def select(attrs: Attrs, values: Any, operand: Any) -> Any:
        # JAX's select_and_scatter_add has no dilation.
        given = {k: v for k, v in attrs.items() if not ("scatter" in name and "dilation" in k and max(v or (1,)) == 1)}
        given["select_prim"] = lax.ge_p if attrs["select_prim"] == "ge" else lax.le_p
        return primitive.bind(values, operand, **given)

    return select


FUNCTIONS = {
    "fft": lambda attrs, x: lax.fft(x, attrs["fft_type"], attrs["fft_lengths"]),
    "conv_general_dilated": _conv,
    **{name: _reduce_window(name) for name in ("reduce_window_sum", "reduce_window_max", "reduce_window_min")},
    **{name: _select(name) for name in ("select_and_gather_add", "select_and_scatter_add")},
}
"""By op, of attrs and arrays."""
