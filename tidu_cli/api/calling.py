"""Documents and what is compiled of them, called as functions: of inputs by position and by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tidu_cli.arguments import mapping
from tidu_cli.errors import ArgumentError, counted
from tidu_cli.graph.select import listed


def values_given(whose: str, names: Collection[str], positions: tuple[Any, ...], more: Mapping[str, object]) -> dict[Any, object]:
    """Values of the inputs of these names, as a call gives them: in one dict by key, or by position, and by name.

    Of inputs such as params.w a position has all of params. A dict is one by key, unless the first position is for such, and no key
    is an input. Raises ArgumentError.
    """
    parameters = list(dict.fromkeys(name.partition(".")[0] for name in names))
    first = positions[0] if positions else None
    if len(positions) == 1 and isinstance(first, Mapping):
        known = {*names, *parameters}
        if not parameters or parameters[0] in names or any(str(key) in known for key in first):
            return {**first, **more}
    if len(positions) == 1 < len(parameters) and isinstance(first, list | tuple) and not more:
        mapping("inputs", first)
    if len(positions) > len(parameters):
        raise ArgumentError(f"{whose} takes {counted(len(parameters), 'input')} ({listed(parameters)}), not {len(positions)}")
    given = dict(zip(parameters, positions, strict=False))
    if twice := next((name for name in more if name in given), None):
        raise ArgumentError(f"input '{twice}' is given by position and by name")
    return {**given, **more}
