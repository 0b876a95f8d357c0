"""Sets of primitives that are wrong on purpose, and documents of one op."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.graphs.sketch import function, op
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.graph import Document
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules import families
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.vocabulary import PrimitiveSet

ROOT = Path(__file__).parents[2]
SAMPLES = sorted((ROOT / "samples").glob("*.json"))


def without(*names: str) -> PrimitiveSet:
    """The built-in set less some primitives."""
    return PrimitiveSet.of([p for p in BUILTIN if p.name not in names])


def changed(name: str, **told: Any) -> PrimitiveSet:
    """The built-in set with some fields of one primitive replaced."""
    return PrimitiveSet.of([families.changed(p, **told) if p.name == name else p for p in BUILTIN])


def including(*primitives: Primitive) -> PrimitiveSet:
    """The built-in set and more."""
    return PrimitiveSet.of([*BUILTIN, *primitives])


def applied(name: str, *types: str, primitives: PrimitiveSet = BUILTIN, **attrs: object) -> Document:
    """A document `name(x0, x1, ...)` of one node."""
    inputs = {f"x{k}": type_ for k, type_ in enumerate(types)}
    return function("f", inputs, lambda *xs: op(name)(*xs, **attrs), primitives=primitives)


def sample(name: str) -> Document:
    """A document of samples/."""
    return parse_document((ROOT / "samples" / f"{name}.json").read_bytes(), name)[0]
