"""What is said of a function's arguments: types of arrays, and constants of Python. Nothing here needs NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidu_cli.graph.types import Type


@dataclass(frozen=True, eq=False)
class Static:
    """An argument that is no input of the graph: the function is called with this value."""

    value: Any


Given = Type | Static
"""What is said of an argument, or of a part of one."""


@dataclass
class Data:
    """Values that names and types are taken from, by key. Those that are `asked` for must have a parameter.

    A builder fills in what became of them: names that it has no place for, and integers that became constants, as a default is one.
    """

    values: Mapping[str, object] = field(default_factory=dict)
    asked: frozenset[str] = frozenset()
    untaken: list[str] = field(default_factory=list)
    constants: dict[str, int] = field(default_factory=dict)
