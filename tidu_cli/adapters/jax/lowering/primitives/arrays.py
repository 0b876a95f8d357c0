"""Primitives that lax has under another name, with other attrs, or not for every dtype: of elements, places, and orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax
from jax import numpy as jnp

from tidu_cli.lax.arrays.structural import literal_array, numpy_dtype

Attrs = dict[str, Any]


def magnitude(attrs: Attrs, x: Any) -> Any:
    """|x|, which lax has not got for unsigned integers."""
    return lax.abs(x) if x.dtype.kind != "u" else x


def _round(attrs: Attrs, x: Any) -> Any:
    return lax.round(x, lax.RoundingMethod[attrs["rounding_method"]])


def _strong(x: Any, result: Any) -> Any:
    """The result, but for 0 where it is NaN and x is 0."""
    return jnp.where((x == 0) & (result != result), 0, result)


_SPELLED = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}


def _gather(attrs: Attrs, operand: Any, indices: Any) -> Any:
    numbers = lax.GatherDimensionNumbers(**dict(attrs["dimension_numbers"]))
    fill = _SPELLED.get(attrs["fill_value"], attrs["fill_value"])
    return lax.gather(operand, indices, numbers, attrs["slice_sizes"], mode=attrs["mode"], fill_value=fill)


def _scatter(name: str) -> Callable[..., Any]:
    function = getattr(lax, name.replace("-", "_"))

    def scatter(attrs: Attrs, operand: Any, indices: Any, updates: Any) -> Any:
        numbers = lax.ScatterDimensionNumbers(**dict(attrs["dimension_numbers"]))
        unique = attrs.get("unique_indices", False)
        return function(operand, indices, updates, numbers, mode=attrs["mode"], unique_indices=unique)

    return scatter


_SCATTERS = ("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-max", "scatter-min")


def dtype_of(name: str | None) -> Any:
    """The dtype of arrays that hold values of one of tidu's."""
    return None if name is None else numpy_dtype(np, name)


def _constant(attrs: Attrs) -> Any:
    return jnp.asarray(literal_array(np, attrs["value"]))


def convert(attrs: Attrs, x: Any) -> Any:
    """x in another dtype: of complex numbers the real part, or as bools whether they are not 0."""
    new = dtype_of(attrs["new_dtype"])
    if x.dtype.kind == "c" and new.kind != "c":
        if new.kind == "b":
            return lax.ne(x, lax.full_like(x, 0))
        x = lax.real(x)  # which JAX would warn of
    return lax.convert_element_type(x, new)


def _dot_general(attrs: Attrs, x: Any, y: Any) -> Any:
    return lax.dot_general(x, y, attrs["dimension_numbers"], preferred_element_type=dtype_of(attrs["preferred_element_type"]))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "constant": _constant,
    "iota": lambda attrs: lax.broadcasted_iota(dtype_of(attrs["dtype"]), attrs["shape"], attrs["dimension"]),
    "copy": lambda attrs, x: lax.copy_p.bind(x),
    "convert_element_type": convert,
    "bitcast_convert_type": lambda attrs, x: lax.bitcast_convert_type(x, dtype_of(attrs["new_dtype"])),
    "dot_general": _dot_general,
    "concatenate": lambda attrs, *xs: lax.concatenate(xs, attrs["dimension"]),
    # The primitives: the public functions count negative indices from the end.
    "dynamic_slice": lambda attrs, x, *indices: lax.dynamic_slice_p.bind(x, *indices, slice_sizes=attrs["slice_sizes"]),
    "dynamic_update_slice": lambda attrs, x, update, *indices: lax.dynamic_update_slice_p.bind(x, update, *indices),
    "argmax": lambda attrs, x: lax.argmax(x, attrs["axes"][0], dtype_of(attrs["index_dtype"])),
    "argmin": lambda attrs, x: lax.argmin(x, attrs["axes"][0], dtype_of(attrs["index_dtype"])),
    "sort": lambda attrs, *xs: lax.sort(xs, **attrs),
    "top_k": lambda attrs, x: lax.top_k(x, attrs["k"], axis=attrs["axis"]),
    "gather": _gather,
    **{name: _scatter(name) for name in _SCATTERS},
    "abs": magnitude,
    "round": _round,
    "regularized_incomplete_beta": lambda attrs, a, b, x: lax.betainc(a, b, x),
    "strong_mul": lambda attrs, x, y: _strong(y, lax.mul(x, y)),
    "strong_div": lambda attrs, x, y: _strong(x, lax.div(x, y)),
    "optimization_barrier": lambda attrs, *xs: lax.optimization_barrier(xs),
}
"""By op, of attrs and arrays."""
