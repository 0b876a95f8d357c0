"""Constants, conversions, slices at computed places, and joins."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax
from jax import numpy as jnp

from tidu_cli.lax.arrays.structural import literal_array, numpy_dtype

Attrs = dict[str, Any]


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


FUNCTIONS = {
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
}
"""By op, of attrs and arrays."""
