"""The package `distributed`, which only those have who asked for it, and which is imported when a scheduler is named."""

from __future__ import annotations

from importlib.util import find_spec

from tidu_cli.errors import EvaluationError


def require_dask() -> None:
    """Raises EvaluationError that says what to install, if Dask is missing."""
    if find_spec("distributed") is None:
        raise EvaluationError("clusters need the packages dask and distributed: pip install 'tidu[dask]'")
