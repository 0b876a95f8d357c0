"""Which function reads an operation: found by its name in the files of families."""

from __future__ import annotations

from importlib import import_module

from tidu_cli.adapters.stablehlo.reading.operations.refused import reason_for
from tidu_cli.adapters.stablehlo.reading.site import Reader, RefusedError

FAMILIES = (
    "elementwise",
    "arrays",
    "products",
    "indexing",
    "calls",
    "custom_calls",
    "reductions",
    "sorting",
    "scattering",
    "control_flow",
    "older",
)
"""The files of families, each with OPERATIONS by name."""

_readers: dict[str, Reader] = {}


def reader_of(name: str) -> Reader:
    """The reader of an operation. Raises RefusedError, which says why there is none."""
    if not _readers:
        for family in FAMILIES:
            _readers.update(import_module(f"{__package__}.{family}").OPERATIONS)
    found = _readers.get(name)
    if found is None:
        raise RefusedError(reason_for(name))
    return found
