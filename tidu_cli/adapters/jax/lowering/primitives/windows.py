"""What slides windows over arrays: convolutions, reductions and selections; and Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax
from jax import numpy as jnp
from jax._src.lax import windowed_reductions  # the primitives: the public functions take reducers, not their names

from tidu_cli.adapters.jax.lowering.primitives.arrays import dtype_of
from tidu_cli.lax.arrays.structural import dtype_name
from tidu_cli.lax.signal.window_reduction import highest, lowest

Attrs = dict[str, Any]


def _conv(attrs: Attrs, lhs: Any, rhs: Any) -> Any:
    numbers = lax.ConvDimensionNumbers(**dict(attrs["dimension_numbers"]))
    preferred = dtype_of(attrs["preferred_element_type"])
    return lax.conv_general_dilated(lhs, rhs, **(attrs | {"dimension_numbers": numbers, "preferred_element_type": preferred}))


def _fft(attrs: Attrs, x: Any) -> Any:
    # The primitive: the public function is a call of it.
    return lax.fft_p.bind(x, fft_type=lax.FftType[attrs["fft_type"]], fft_lengths=attrs["fft_lengths"])


def _reduce_window(name: str) -> Callable[..., Any]:
    primitive = getattr(windowed_reductions, f"{name}_p")
    return lambda attrs, x: primitive.bind(x, **attrs)


def is_plain(attrs: Attrs) -> bool:
    """Whether windows are neither dilated nor cut off: of others JAX's selections have no transposes, or none that it computes."""
    dilations = [*(attrs["base_dilation"] or ()), *(attrs["window_dilation"] or ())]
    return max(dilations, default=1) == 1 and all(edge >= 0 for edges in attrs["padding"] for edge in edges)


def _gather_selected(attrs: Attrs, values: Any, x: Any) -> Any:
    if values.dtype == x.dtype and is_plain(attrs):
        select = lax.ge_p if attrs["select_prim"] == "ge" else lax.le_p
        return windowed_reductions.select_and_gather_add_p.bind(values, x, **(attrs | {"select_prim": select}))
    return lax.reshape(values, (values.size,)).at[_chosen(attrs, x)].get(mode="fill", fill_value=0, wrap_negative_indices=False)


def _scatter_selected(attrs: Attrs, source: Any, x: Any) -> Any:
    if source.dtype == x.dtype and is_plain(attrs):
        given = {k: v for k, v in attrs.items() if "dilation" not in k}
        given["select_prim"] = lax.ge_p if attrs["select_prim"] == "ge" else lax.le_p
        return windowed_reductions.select_and_scatter_add_p.bind(source, x, **given)
    return (
        jnp.zeros(x.size, source.dtype).at[_chosen(attrs, x)].add(source, mode="drop", wrap_negative_indices=False).reshape(x.shape)
    )


def _chosen(attrs: Attrs, x: Any) -> Any:
    """The row-major place of the element that each window chooses, the first of ties and NaN first; of padding x.size."""
    x = lax.stop_gradient(x)
    greatest = attrs["select_prim"] == "ge"
    worst = (lowest if greatest else highest)(np, dtype_name(x.dtype))
    places = jnp.arange(x.size, dtype=np.int32 if x.size < 2**31 else np.int64).reshape(x.shape)

    def better(one: Any, other: Any) -> Any:
        (x, i), (y, k) = one, other
        beats = (y > x if greatest else y < x) | ((y != y) & (x == x))
        ties = (y == x) | ((y != y) & (x != x))
        # Padding is the worst there is, and of ties it is the last.
        taken = beats | (ties & (k < i))
        return jnp.where(taken, y, x), jnp.where(taken, k, i)

    init = jnp.asarray(worst, x.dtype), jnp.asarray(x.size, places.dtype)
    windows = [attrs[name] or (1,) * x.ndim for name in ("base_dilation", "window_dilation")]
    dimensions, strides = attrs["window_dimensions"], attrs["window_strides"]
    return lax.reduce_window((x, places), init, better, dimensions, strides, attrs["padding"], *windows)[1]


FUNCTIONS = {
    "fft": _fft,
    "conv_general_dilated": _conv,
    **{name: _reduce_window(name) for name in ("reduce_window_sum", "reduce_window_max", "reduce_window_min")},
    "select_and_gather_add": _gather_selected,
    "select_and_scatter_add": _scatter_selected,
}
"""By op, of attrs and arrays."""
