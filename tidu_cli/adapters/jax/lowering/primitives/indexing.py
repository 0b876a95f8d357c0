"""Windows of arrays at computed places: gather and scatter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

Attrs = dict[str, Any]

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

FUNCTIONS = {"gather": _gather, **{name: _scatter(name) for name in _SCATTERS}}
"""By op, of attrs and arrays."""
