"""Primitives of tidu as functions of JAX: op and attr names are lax's, so most calls need no word of translation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tidu_cli.graph.graph import Case
from tidu_cli.lax.arrays.structural import literal_array, numpy_dtype

ALIASES = {
    "not": "bitwise_not",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "regularized_incomplete_beta": "betainc",
}


def jax_function(case: Case) -> Callable[..., tuple[Any, ...]]:
    """From JAX arrays to the tuple of results, without derivative rules of ours."""
    from jax import lax

    attrs = dict(case.attrs)
    special = SPECIAL.get(case.op)
    if special is not None:
        return lambda *xs: _tuple(special(lax, attrs, *xs))
    name = ALIASES.get(case.op, case.op).replace("-", "_")
    # Older versions export some operations as primitives only.
    function = getattr(lax, name, None) or getattr(lax, f"{name}_p").bind
    return lambda *xs: _tuple(function(*xs, **attrs))


def _tuple(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, tuple | list) else (results,)


def _dtype(name: str | None) -> Any:
    return None if name is None else numpy_dtype(np, name)


def _constant(lax: Any, attrs: dict[str, Any]) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(literal_array(np, attrs["value"]))


def _gather(lax: Any, attrs: dict[str, Any], operand: Any, indices: Any) -> Any:
    numbers = lax.GatherDimensionNumbers(**dict(attrs["dimension_numbers"]))
    fill = attrs["fill_value"]
    if fill is not None:
        fill = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}.get(fill, fill)
    return lax.gather(operand, indices, numbers, attrs["slice_sizes"], mode=attrs["mode"], fill_value=fill)


def _scatter(name: str) -> Callable[..., Any]:
    def scatter(lax: Any, attrs: dict[str, Any], operand: Any, indices: Any, updates: Any) -> Any:
        numbers = lax.ScatterDimensionNumbers(**dict(attrs["dimension_numbers"]))
        unique = attrs.get("unique_indices", False)
        return getattr(lax, name)(operand, indices, updates, numbers, mode=attrs["mode"], unique_indices=unique)

    return scatter


SPECIAL: dict[str, Callable[..., Any]] = {
    "constant": _constant,
    "iota": lambda lax, attrs: lax.broadcasted_iota(_dtype(attrs["dtype"]), attrs["shape"], attrs["dimension"]),
    "copy": lambda lax, attrs, x: lax.copy_p.bind(x),
    "optimization_barrier": lambda lax, attrs, *xs: lax.optimization_barrier(xs),
    "convert_element_type": lambda lax, attrs, x: lax.convert_element_type_p.bind(
        x, new_dtype=_dtype(attrs["new_dtype"]), weak_type=False, sharding=None
    ),
    "dot_general": lambda lax, attrs, x, y: lax.dot_general(
        x, y, attrs["dimension_numbers"], preferred_element_type=_dtype(attrs["preferred_element_type"])
    ),
    # The primitives: the public functions count negative indices from the end.
    "dynamic_slice": lambda lax, attrs, x, *indices: lax.dynamic_slice_p.bind(x, *indices, slice_sizes=attrs["slice_sizes"]),
    "dynamic_update_slice": lambda lax, attrs, x, update, *indices: lax.dynamic_update_slice_p.bind(x, update, *indices),
    "argmax": lambda lax, attrs, x: lax.argmax(x, attrs["axes"][0], _dtype(attrs["index_dtype"])),
    "argmin": lambda lax, attrs, x: lax.argmin(x, attrs["axes"][0], _dtype(attrs["index_dtype"])),
    "round": lambda lax, attrs, x: lax.round(x, lax.RoundingMethod[attrs["rounding_method"]]),
    "sort": lambda lax, attrs, *xs: lax.sort(xs, **attrs),
    "concatenate": lambda lax, attrs, *xs: lax.concatenate(xs, **attrs),
    "top_k": lambda lax, attrs, x: lax.top_k(x, attrs["k"], axis=attrs["axis"]),
    "gather": _gather,
    # The primitive leaves above the diagonal what it found there; the function takes that away.
    "cholesky": lambda lax, attrs, x: lax.linalg.cholesky(x, symmetrize_input=False),
    "triangular_solve": lambda lax, attrs, a, b: lax.linalg.triangular_solve(a, b, **attrs),
    "igamma_grad_a": lambda lax, attrs, a, x: lax.igamma_grad_a(a, x),
    "lu": lambda lax, attrs, x: lax.linalg.lu(x),
    **{f"scatter{kind}": _scatter(f"scatter{kind.replace('-', '_')}") for kind in ("", "-add", "-sub", "-mul", "-max", "-min")},
}
"""The calls that need more than a name: lax (the module), attrs and operands."""
