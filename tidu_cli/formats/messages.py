"""The words of errors in files: one printable line, with no more of a broken file than a few words."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tidu_cli.errors import DocumentError, TiduError, placed, printable

T = TypeVar("T", bound=Hashable)

MAX_MESSAGE = 600
"""Messages are cut to this length: they quote names, which may be of any length in a broken file."""


def one_line(message: str) -> str:
    """`message` as one printable line of limited length: other characters are escaped, and of a long one the middle is left out."""
    if len(message) <= MAX_MESSAGE and len(line := printable(message)) <= MAX_MESSAGE:
        return line
    start, end = printable(message[:MAX_MESSAGE])[: 2 * MAX_MESSAGE // 3], printable(message[-MAX_MESSAGE:])
    return f"{start} ... {end[5 - MAX_MESSAGE // 3 :]}"


def shown(value: object) -> str:
    """A part of a broken file as a message quotes it: as JSON, and no longer than a few words."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (RecursionError, ValueError):
        return "that"
    return text if len(text) <= 80 else text[:77] + "..."


@contextmanager
def naming(place: str) -> Iterator[None]:
    """What goes wrong in the block is told with its place before it, as a DocumentError.

    An error that begins with a place of its own, within the node of `place`, has both in one: `node 3 (scan), body, node 7`.
    """
    try:
        yield
    except TiduError as error:
        raise DocumentError(placed(place.removesuffix(": "), error) if place.endswith(": ") else f"{place}{error}") from None


def repeated(keys: Iterable[T]) -> T | None:
    """The first key that occurs before: in one walk, as objects may have a million keys. None if there is none."""
    seen: set[T] = set()
    for key in keys:
        if key in seen:
            return key
        seen.add(key)
    return None
