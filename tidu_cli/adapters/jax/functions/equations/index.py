"""Which function reads which equation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidu_cli.adapters.jax.functions.equations.arrays import ARRAYS, ELEMENTWISE, REDUCTIONS, SPREADING
from tidu_cli.adapters.jax.functions.equations.calls import CALLS as _CALLS
from tidu_cli.adapters.jax.functions.equations.equation import LOOPS, cond
from tidu_cli.adapters.jax.functions.equations.library import CHOICES
from tidu_cli.adapters.jax.functions.equations.matrices import MATRICES, SYSTEMS
from tidu_cli.adapters.jax.functions.equations.random import RANDOM, of_keys, random_gamma
from tidu_cli.adapters.jax.functions.places import REFUSED

CALLS: dict[str, Callable[..., Any]] = {**_CALLS, **SYSTEMS, "cond": cond, "random_gamma": random_gamma}
"""Those that take values, known ones, too, and give values."""

OPERATIONS: dict[str, Callable[..., Any]] = {**ELEMENTWISE, **ARRAYS, **LOOPS, **RANDOM, **REDUCTIONS, **MATRICES}
"""Those that take arrays and give arrays. All others are operations of graphs of the same name."""

TAKE_KEYS = frozenset({*LOOPS, *RANDOM})
"""Of those, what keys of random numbers may be operands of; all others only arrange them, `of_keys`."""

__all__ = ["CALLS", "CHOICES", "LOOPS", "OPERATIONS", "REFUSED", "SPREADING", "TAKE_KEYS", "of_keys"]
