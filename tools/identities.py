"""docs/identities.md: the table by which `materialize --simplify` works, from the table itself."""

from __future__ import annotations

from itertools import groupby

from tidu_cli.lax.identities import elementwise, movement
from tidu_cli.rules.terms import Identity

_TITLES = {
    "Arithmetic": elementwise.IDENTITIES,
    "Movement of elements": movement.IDENTITIES,
    "Parts of arrays": movement.PARTS,
    "Conversions": elementwise.CONVERSIONS,
    "Choices and logic": elementwise.CHOICES,
}

_BEGIN = """# Identities

By these `tidu materialize --simplify` [simplifies](howto/simplify.md): a node of the op is what is said of it, x, y and z being its
operands, n integers and c a number. All of them hold bit for bit, as IEEE 754 defines arithmetic and as tidu evaluates, with
infinities, NaNs and signed zeros, for every dtype that the op takes; only which bits a NaN has is left open, as it is by the
standard. Where something is assumed, they are applied if `--assume` grants it. Each line is a law of the tests, which draw operands
that break what is nearly an identity. This page is generated: `make generated` writes it.
"""


def to_markdown() -> str:
    """The page: a table for each part."""
    lines = [_BEGIN.rstrip()]
    for title, identities in _TITLES.items():
        lines += ["", f"## {title}", "", "| op | identity | assumes |", "|---|---|---|"]
        for _, same in groupby(identities, key=lambda i: (i.statement, i.assumes)):
            lines.append(_row(list(same)))
    return "\n".join(lines) + "\n"


def _row(identities: list[Identity]) -> str:
    ops = ", ".join(f"`{i.op}`" for i in identities)
    assumed = ", ".join(f"`{a}`" for a in sorted(identities[0].assumes, reverse=True))
    return f"| {ops} | {identities[0].statement.replace('|', chr(92) + '|')} | {assumed} |"


if __name__ == "__main__":
    print(to_markdown(), end="")
