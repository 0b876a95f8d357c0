"""Which function reads which equation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidu_cli.adapters.jax.functions.arrays import ARRAYS, ELEMENTWISE, REDUCTIONS, SPREADING
from tidu_cli.adapters.jax.functions.calls import CALLS as _CALLS
from tidu_cli.adapters.jax.functions.equation import LOOPS, cond
from tidu_cli.adapters.jax.functions.library import CHOICES
from tidu_cli.adapters.jax.functions.matrices import MATRICES, SYSTEMS
from tidu_cli.adapters.jax.functions.places import REFUSED
from tidu_cli.adapters.jax.functions.random import RANDOM, of_keys, random_gamma

CALLS: dict[str, Callable[..., Any]] = {**_CALLS, **SYSTEMS, "cond": cond, "random_gamma": random_gamma}
"""Those that take values, known ones, too, and give values."""


def _dim_as_value(eq: Any) -> Any:
    from tidu_cli.adapters.jax.functions.dims import as_value  # which functions of fixed sizes do without

    return as_value(eq)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "dim_as_value": _dim_as_value,
    **ELEMENTWISE,
    **ARRAYS,
    **LOOPS,
    **RANDOM,
    **REDUCTIONS,
    **MATRICES,
}
"""Those that take arrays and give arrays. All others are operations of graphs of the same name."""

TAKE_KEYS = frozenset({*LOOPS, *RANDOM})
"""Of those, what keys of random numbers may be operands of; all others only arrange them, `of_keys`."""

__all__ = ["CALLS", "CHOICES", "LOOPS", "OPERATIONS", "REFUSED", "SPREADING", "TAKE_KEYS", "of_keys"]
