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
    words: list[str] = []
    left = length

    def say(word: str) -> None:
        nonlocal left
        words.append(word)
        left -= len(word)

    def spell(place: Place, depth: int) -> None:  # recurses as deep as that, and as types nest, whatever the graph
        found = definitions[place]
        if isinstance(found, Input):
            say(name(found.key))
        elif not isinstance(found, Application):
            say(f"{found.digest[:15]}{_CUT}")
        elif not found.operands:
            say(_applied(found.case))
        elif left <= 0 or (depth == 0 and found.case.op != "field"):
            say(_CUT)
        else:
            below = depth if found.case.op == "field" else depth - 1  # a field is as short as a name: it takes no depth
            for piece in _pieces(found.case, found.slot):
                if isinstance(piece, str):
                    say(piece)
                else:
                    spell(found.operands[piece], below)

    spell(place, depth)
    return "".join(words)


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
        active = case.mask is not None and case.mask[k]
        yield ", " * (k > 0) + "*" * active
        yield k
    yield f")[{slot}]" if len(case.results) > 1 else ")"


def _applied(case: Case) -> str:
    attrs = attrs_text(case)
    if case.op == "constant":
        return attrs.removeprefix("value=")
    return f"{case.op}[{attrs}]" if attrs else case.op
