"""JAX as tidu needs it, whatever its user has set: for a while, and in this thread alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import jax

_RUNS: dict[str, bool | str] = {
    "enable_x64": True,
    "debug_nans": False,  # NaN and infinities are results like others
    "debug_infs": False,
    "disable_jit": False,
    "transfer_guard_host_to_device": "allow",
    "transfer_guard_device_to_host": "allow",
}
"""What runs need, by the names of JAX's context managers. None is what JAX itself takes, which is the same."""

_TRACES: dict[str, bool | str] = {
    "default_matmul_precision": "highest",
    "numpy_dtype_promotion": "standard",
    "numpy_rank_promotion": "allow",
}
"""What the tracing of graphs needs as well."""


def for_runs() -> AbstractContextManager[None]:
    """64 bits, all values and all transfers. Each setting takes some µs of a run that may take ten: only others are changed."""
    changed = [name for name, value in _RUNS.items() if getattr(jax.config, f"jax_{name}") not in (value, None)]
    return jax.enable_x64(True) if changed in ([], ["enable_x64"]) else _set({name: _RUNS[name] for name in changed})


def for_traces() -> AbstractContextManager[None]:
    """Likewise, with all digits of products, and NumPy's rules of what goes together."""
    return _set({**_RUNS, **_TRACES})


@contextmanager
def _set(settings: dict[str, bool | str]) -> Iterator[None]:
    with ExitStack() as stack:
        for name, value in settings.items():
            stack.enter_context(getattr(jax, name)(value))
        yield
