"""Writes tidu_cli/lax/index.py: which family has an op. Those that are new come last, and may be put where they belong."""

from __future__ import annotations

from pathlib import Path

import tidu_cli.lax.index
from tidu_cli.lax.vocabulary import FAMILIES, family

INDEX = Path(tidu_cli.lax.index.__file__)
HEAD = '''"""Which family has an op, in the order of the catalogue. This file is generated: `make generated` writes it."""

from __future__ import annotations

from collections.abc import Mapping

FAMILIES: Mapping[str, str] = {
'''
TAIL = '''}
"""The ops of each family, a module of this package by its path."""
'''


def families() -> list[str]:
    """Every module of the package that has a table of primitives."""
    lax, package = INDEX.parent, INDEX.parents[1]
    paths = {path: path.relative_to(lax) for path in lax.rglob("*.py")}
    paths |= {path: path.relative_to(package) for path in (package / "control_flow").rglob("*.py")}
    holding = [place for path, place in paths.items() if "\nPRIMITIVES = (" in path.read_text()]
    modules = {".".join(place.with_suffix("").parts) for place in holding}
    return [name for name in FAMILIES if name in modules] + sorted(modules - FAMILIES.keys())


def index() -> str:
    """The text of the index."""
    ops = {name: " ".join(p.name for p in family(name).PRIMITIVES) for name in families()}
    rows = [f'    "{name}": "{text}",' for name, text in ops.items()]
    return HEAD + "".join(f"{row}{'  # noqa: E501' * (len(row) > 132)}\n" for row in rows) + TAIL


if __name__ == "__main__":
    INDEX.write_text(index())
