"""JAX's functions as tests run them: compiled without optimizations, as each runs once and compiling takes most of the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

UNOPTIMIZED = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled as a whole when it is called."""
    import jax

    return jax.jit(function, compiler_options=UNOPTIMIZED)
