"""JAX, whose MLIR modules of StableHLO are made with: an extra, imported here and where it is known to be there."""

from __future__ import annotations

from types import ModuleType

from tidu_cli.errors import DocumentError


def package() -> ModuleType:
    """The package `jax`. Raises DocumentError, which says what to install, where it is missing."""
    try:
        import jax
        import jax.interpreters.mlir
    except ImportError as error:
        missing = "" if getattr(error, "name", "") in ("jax", None) else f" ({error})"
        raise DocumentError(f"modules of StableHLO are written with JAX{missing}: pip install 'tidu[jax]'") from None
    return jax
