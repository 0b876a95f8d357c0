"""How files are known that tidu wrote."""

from __future__ import annotations

from types import ModuleType

MARK = "Written by tidu: a function of NumPy arrays."
"""Their docstring."""


def is_written(module: ModuleType | None) -> bool:
    """Whether tidu wrote the file of a module."""
    return getattr(module, "__doc__", None) == MARK
