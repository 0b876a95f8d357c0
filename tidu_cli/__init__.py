"""tidu: automatic differentiation for computation graphs that live in files."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tidu_cli.api import evaluate, linearize, load, materialize, resolve, save, to_dot, trace, transpose

__all__ = ["evaluate", "linearize", "load", "materialize", "resolve", "save", "to_dot", "trace", "transpose"]


def __getattr__(name: str) -> Any:
    # The functions of tidu_cli.api, imported when first asked for: `tidu --version` imports nothing but click.
    if name in __all__:
        import importlib

        return getattr(importlib.import_module("tidu_cli.api"), name)
    raise AttributeError(f"module 'tidu_cli' has no attribute '{name}'")
