"""The numbers of values in JSON: rounded once where a shorter float than a double is due, and none that is beyond all of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable

from tidu_cli.errors import DocumentError
from tidu_cli.graph.text.decimals import to_be_shortened
from tidu_cli.graph.types import Type, leaves

SHORT = frozenset({"f16", "bf16", "f32", "c64"})
"""The dtypes for whose sake a reader of JSON looks at the text of numbers, which takes it longer."""


def wants_text(text: str | bytes, types: Iterable[Type | None]) -> bool:
    """Whether values of these types may want the text of their numbers, or typed data among them may."""
    if ('"type"' if isinstance(text, str) else b'"type"') in text:  # type: ignore[operator]
        return True
    return any(leaf.dtype in SHORT for type_ in types if type_ is not None for _, leaf in leaves(type_))


def settled(value: object) -> object:
    """Plain data with plain floats, where some may be `Beside`: in constant data those that round to its dtype."""
    if isinstance(value, float):
        return float(value)
    if isinstance(value, list):
        return [settled(x) for x in value]
    if not isinstance(value, dict):
        return value
    type_, data = value.get("type"), value.get("data")
    if isinstance(type_, str) and isinstance(data, list) and type_.partition("[")[0] in SHORT:
        value = {**value, "data": [to_be_shortened(x) if isinstance(x, float) else x for x in data]}
    return {key: settled(x) for key, x in value.items()}


def require_finite(value: object, place: str, text: str | bytes) -> None:
    """Raises DocumentError if some number of a value that was read from this JSON is beyond every float."""

    def refuse_infinite(digits: str) -> float:
        if math.isinf(float(digits)):
            shown = digits if len(digits) <= 40 else f"{digits[:37]}..."
            raise DocumentError(f'{place}: the number {shown} is beyond every float; if it is meant, write "Infinity"')
        return 0.0

    if not _is_finite(value):
        json.loads(text, parse_float=refuse_infinite)


def _is_finite(value: object) -> bool:
    """Whether no float in nested lists and objects is infinite: such as JSON has come from numbers too great."""
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if not isinstance(value, list):
        return value not in (math.inf, -math.inf)
    try:
        if math.isfinite(sum(value)):  # which takes no time beside reading them
            return True
    except (TypeError, OverflowError):
        pass  # lists, text, integers that are no floats: one by one
    return all(map(_is_finite, value))
