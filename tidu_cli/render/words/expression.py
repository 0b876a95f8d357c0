"""A value as an expression of what it is computed from, cut off where it grows too deep or too long."""

from __future__ import annotations

from collections.abc import Iterator

from tidu_cli.graph.graph import Case, Input, Place
from tidu_cli.graph.link import Application, Definitions
from tidu_cli.lax.records.records import FieldAttrs, RecordAttrs, record_pieces
from tidu_cli.render.text import attrs_text, name

DEPTH = 3
"""How many operations are nested."""

LENGTH = 100
"""How many characters are shown, about."""

_CUT = "..."


def expression(definitions: Definitions, place: Place, depth: int = DEPTH, length: int = LENGTH) -> str:
    """`mul(x, sin(x))`; attrs stand in brackets, and a star marks active operands of linearized nodes: `mul(x, *x@1)`.

    Fields and records are written as such: `p.x`, `{x: sin(x), y: 0}`.
    """
    # Words, and places to be spelt out, in reverse: what comes next is popped. No recursion, though depth would bound it.
    waiting: list[str | tuple[Place, int]] = [(place, depth)]
    words: list[str] = []
    left = length
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, str):
            words.append(entry)
            left -= len(entry)
            continue
        found, depth = definitions[entry[0]], entry[1]
        if isinstance(found, Application):
            taken = found.case.op == "field"  # as short as a name: it takes no depth
            if not found.operands:
                words.append(_applied(found.case))
            elif left <= 0 or (depth == 0 and not taken):
                words.append(_CUT)
            else:
                waiting += _spelled(found, depth if taken else depth - 1)
                continue
        elif isinstance(found, Input):
            words.append(name(found.key))
        else:
            words.append(f"{found.digest[:15]}{_CUT}")
        left -= len(words[-1])
    return "".join(words)


def _spelled(found: Application, depth: int) -> list[str | tuple[Place, int]]:
    """The words of an application and its operands, which are to be spelt out to this depth, in reverse."""
    case, words = found.case, list[str | tuple[Place, int]]()
    for piece in _pieces(case, found.slot):
        if isinstance(piece, str):
            words.append(piece)
            continue
        if case.mask is not None and case.mask[piece]:
            words.append("*")
        words.append((found.operands[piece], depth))
    return words[::-1]


def _pieces(case: Case, slot: int) -> Iterator[str | int]:
    """What is said of an application, with numbers in the places of operands: `mul(`, 0, `, `, 1, `)`."""
    if isinstance(case.attrs, RecordAttrs):
        yield from record_pieces(case.attrs)
        return
    if isinstance(case.attrs, FieldAttrs):
        yield from (0, f".{case.attrs.name}")
        return
    yield f"{_applied(case)}("
    for k in range(len(case.operands)):
        if k:
            yield ", "
        yield k
    yield f")[{slot}]" if len(case.results) > 1 else ")"


def _applied(case: Case) -> str:
    attrs = attrs_text(case)
    if case.op == "constant":
        return attrs.removeprefix("value=")
    return f"{case.op}[{attrs}]" if attrs else case.op
