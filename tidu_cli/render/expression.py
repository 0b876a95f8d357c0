"""A value as an expression of what it is computed from, cut off where it grows too deep or too long."""

from __future__ import annotations

from tidu_cli.graph.definition import Application, Definitions, Place
from tidu_cli.graph.graph import Case, Input
from tidu_cli.render.text import attrs_text, name

DEPTH = 3
"""How many operations are nested."""

LENGTH = 100
"""How many characters are shown, about."""

_CUT = "..."


def expression(definitions: Definitions, place: Place, depth: int = DEPTH, length: int = LENGTH) -> str:
    """`mul(x, sin(x))`; attrs stand in brackets, and a star marks active operands of linearized nodes: `mul(x, *x@1)`."""
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
            if not found.operands:
                words.append(_applied(found.case))
            elif depth == 0 or left <= 0:
                words.append(_CUT)
            else:
                words.append(f"{_applied(found.case)}(")
                slot = f")[{found.slot}]" if len(found.case.results) > 1 else ")"
                waiting.append(slot)
                for k in range(len(found.operands) - 1, -1, -1):
                    waiting.append((found.operands[k], depth - 1))
                    if found.case.mask is not None and found.case.mask[k]:
                        waiting.append("*")
                    if k:
                        waiting.append(", ")
        elif isinstance(found, Input):
            words.append(name(found.key))
        else:
            words.append(f"{found.digest[:15]}{_CUT}")
        left -= len(words[-1])
    return "".join(words)


def _applied(case: Case) -> str:
    attrs = attrs_text(case)
    if case.op == "constant":
        return attrs.removeprefix("value=")
    return f"{case.op}[{attrs}]" if attrs else case.op
