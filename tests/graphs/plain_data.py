"""Plain data, as JSON has it: where its parts stand, for tests that change them."""

from __future__ import annotations

from typing import Any


def places(data: Any) -> list[tuple[Any, Any]]:
    """All (container, step) of plain data: `container[step]` is a part of it. Always in the same order for the same data."""
    parts, pending = [], [data]
    while pending:
        value = pending.pop()
        steps = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        for step in steps:
            parts.append((value, step))
            pending.append(value[step])
    return parts
