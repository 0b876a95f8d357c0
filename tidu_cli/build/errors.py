"""What can go wrong while a graph is built from a formula or a function."""

from __future__ import annotations

from tidu_cli.errors import TiduError


class BuildError(TiduError):
    """A formula or a function cannot be made into a graph."""


class UntraceableError(BuildError, TypeError):
    """A traced function asks for something that has no value yet. A TypeError, too, as NumPy and Python expect of conversions."""


class UnknownFunctionError(BuildError, AttributeError):
    """A function of NumPy or of the array API that has no counterpart in graphs. An AttributeError, too, for `hasattr`."""
