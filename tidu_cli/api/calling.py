"""Documents and what is compiled of them, called as functions: of inputs by position and by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tidu_cli.arguments import mapping
from tidu_cli.errors import ArgumentError, counted
from tidu_cli.graph.graph import Document
from tidu_cli.graph.select import listed


def values_given(document: Document, positions: tuple[Any, ...], more: Mapping[str, object]) -> dict[Any, object]:
    """Values of a document's inputs as a call gives them, also in one dict. Raises ArgumentError."""
    if len(positions) == 1 and isinstance(positions[0], Mapping):
        return {**positions[0], **more}
    return by_position("Document", [str(i.key) for i in document.free_inputs], positions, more)


def by_position(whose: str, names: Collection[str], positions: Collection[Any], more: Mapping[str, object]) -> dict[Any, object]:
    """Values of inputs by position, in their order, and by name. Of inputs such as params.w a position has all of params.

    Raises ArgumentError.
    """
    parameters = list(dict.fromkeys(name.partition(".")[0] for name in names))
    if len(positions) == 1 < len(parameters) and isinstance(next(iter(positions)), list | tuple) and not more:
        mapping("inputs", *positions)
    if len(positions) > len(parameters):
        raise ArgumentError(f"{whose} takes {counted(len(parameters), 'input')} ({listed(parameters)}), not {len(positions)}")
    given = dict(zip(parameters, positions, strict=False))
    if twice := next((name for name in more if name in given), None):
        raise ArgumentError(f"input '{twice}' is given by position and by name")
    return {**given, **more}
