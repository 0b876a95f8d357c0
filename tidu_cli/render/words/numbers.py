"""Values as short texts, for edges and captions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidu_cli.graph.text.instants import instant_to_text
from tidu_cli.graph.types import DATETIMES, DURATIONS, RecordType, TensorType, Type, unit_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHORT = 4
"""How many elements of an array are told where there is little room."""

_WIDTH = 10
"""About as many characters as an element takes: as many elements as are shown, so many times these may a record take."""


def value_text(value: Any, type_: Type, shown: int = SHORT, room: int | None = None) -> str:
    """A value of a type, as evaluation gives it: `[3, 4.5]`, `{x: 1.2, y: [0, 1, …]}`, `2.5 h`, `2026-01-01T12:00`.

    Of arrays and records the first `shown` elements, of datetimes half as many; of records what takes `room` characters or so.
    """
    if isinstance(type_, RecordType):
        return _record(value, type_, shown, shown * _WIDTH if room is None else room)
    return _array(value, type_, shown)


def summary_text(value: Any) -> str:
    """Of an array of several numbers the least, the mean and the greatest, and how many are no number; '' of all else."""
    if isinstance(value, dict | tuple) or value.dtype.kind not in "iuf" or value.size < 2:
        return ""
    finite = value[value == value] if value.dtype.kind == "f" else value
    n_nan = value.size - finite.size
    told = [f"min {finite.min():.6g}, mean {finite.mean(dtype='f8'):.6g}, max {finite.max():.6g}"] if finite.size else []
    return "; ".join([*told, *([f"{n_nan} of {value.size} are NaN"] if n_nan else [])])


def _record(values: Any, type_: RecordType, shown: int, room: int) -> str:
    opening, closing = "()" if type_.is_tuple else "{}"
    texts: list[str] = []
    for k, (label, field) in enumerate(type_.fields):
        before = "" if type_.is_tuple else f"{label}: "
        room -= len(before) + 2
        if len(texts) == shown or (texts and room < 0):
            texts.append("…")
            break
        text = value_text(values[k if type_.is_tuple else label], field, shown, room)
        text = text if len(text) <= room or not texts else "…"
        room -= len(text)
        texts.append(before + text)
    return f"{opening}{', '.join(texts)}{',' if type_.is_tuple and len(texts) == 1 else ''}{closing}"


def _array(array: NDArray[Any], type_: TensorType, shown: int) -> str:
    if type_.dtype in DATETIMES:
        shown = max(1, shown // 2)  # they are long
    unit = f" {unit_of(type_.dtype)}" if type_.dtype in DURATIONS else ""
    if not type_.shape:
        return _one(array[()], type_.dtype) + unit
    first = [_one(x, type_.dtype) for x in array.reshape(-1)[:shown]]
    if array.size > shown:
        return f"[{', '.join(first)}, …]{unit}"
    return _nested(first, array.shape) + unit


def _nested(texts: list[str], shape: tuple[int, ...]) -> str:
    for n in reversed(shape[1:]):
        texts = [f"[{', '.join(texts[k : k + n])}]" for k in range(0, len(texts), n)] if n else []
    return f"[{', '.join(texts)}]"


def _one(x: Any, dtype: str) -> str:
    if dtype in DATETIMES:
        count = int(x.view("i8"))
        return instant_to_text(count, unit_of(dtype)) or str(count)
    if x.dtype.kind == "c":
        return f"{x.real:.6g}{x.imag:+.6g}i"
    return str(bool(x)).lower() if x.dtype.kind == "b" else str(int(x)) if x.dtype.kind in "iu" else f"{float(x):.6g}"
