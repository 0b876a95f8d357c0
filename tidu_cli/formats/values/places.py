"""Values in files of which parts are read: those of a batch stay there, for whoever needs some of it; others are read."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

from tidu_cli.errors import DocumentError, LimitError, TiduError
from tidu_cli.formats.chunks.npy import Compressed
from tidu_cli.formats.chunks.sources import Source, absolute, source_of, sources_of, whole
from tidu_cli.formats.values.members import field_of
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import listed
from tidu_cli.graph.types import RecordType, Type


def values_at(path: str, declared: Mapping[Key, Type], in_parts: Collection[Key]) -> dict[Key, object]:
    """The values of inputs in a directory or an npz file: arrays, those of `in_parts` where they lie.

    What has the name of no input, or of no field of one, is left out. Raises DocumentError, LimitError.
    """
    texts = {str(key): key for key in declared}
    records = {text: key for text, key in texts.items() if isinstance(declared[key], RecordType)}
    found = sources_of(path)
    values: dict[Key, Any] = {}
    for text, source in found.items():
        owner, fields = (text, []) if text in texts else field_of(text, records)
        if not owner:
            continue
        *way, last = (texts[owner], *fields)
        place: Any = values
        for step in way:
            place = place.setdefault(step, {})
        place[last] = _value(source, texts[owner] in in_parts)
    if not values and os.path.isdir(path):
        raise DocumentError(f"{path}: holds {listed(list(found))}, and no input is called so; name one with --set KEY=@{path}")
    return values


def is_place(path: str, *, in_parts: bool) -> bool:
    """Whether `value_at` reads an array there: of what holds several or is in several files, or only some `in_parts`."""
    place = path if os.path.exists(path) or ":" not in path else path.rpartition(":")[0]
    return os.path.isdir(place) or place.endswith((".npz", ".npy") if in_parts else ".npz")


def value_at(path: str, where: str, *, in_parts: bool) -> object:
    """The array at a place as `source_of` has it; where it lies, if `in_parts`. Raises DocumentError, LimitError."""
    try:
        return _value(source_of(path), in_parts)
    except LimitError:
        raise
    except TiduError as error:
        raise DocumentError(f"{where}: {error}") from None


def _value(source: Source, in_parts: bool) -> object:
    # What is compressed as one is read as one: all before a part is decompressed to read it.
    return absolute(source) if in_parts and not isinstance(source, Compressed) else whole(source)
