"""JAX as tidu needs it, whatever its user has set: for a while, and in this thread alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from operator import attrgetter

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


_USUAL = (False, False, False, None, None)
_settings = attrgetter(*[f"jax_{name}" for name in _RUNS][1:])
"""The settings but the first, which are as usual unless the user has changed them."""


def for_runs() -> AbstractContextManager[None]:
    """64 bits, all values and all transfers. Each setting takes some µs of a run that may take ten: only others are changed."""
    if _settings(jax.config) == _USUAL:
        return jax.enable_x64(True)  # type: ignore[no-any-return, unused-ignore]
    return _set({name: value for name, value in _RUNS.items() if getattr(jax.config, f"jax_{name}") not in (value, None)})


def for_traces() -> AbstractContextManager[None]:
    """Likewise, with all digits of products, and NumPy's rules of what goes together."""
    return _set({**_RUNS, **_TRACES})


@contextmanager
def _set(settings: dict[str, bool | str]) -> Iterator[None]:
    with ExitStack() as stack:
        for name, value in settings.items():
            stack.enter_context(getattr(jax, name)(value))
        yield
