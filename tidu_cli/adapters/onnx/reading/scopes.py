"""Names of values in a model's graph, in graphs within its nodes, and in functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidu_cli.adapters.onnx.reading.node import Value
from tidu_cli.frozen import Frozen, field


class Definition(Frozen, slots=False):
    """What nodes are part of, the model's graph or a function: versions of operator sets by domain, and given attributes."""

    versions: Mapping[str, int]
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, opsets: Iterable[Any], attributes: Mapping[str, Any]) -> Definition:
        """The definition with these imports of operator sets."""
        return cls({domain_name(o.domain): o.version for o in opsets}, attributes)


def domain_name(domain: str) -> str:
    """A domain by its one name: the default one has two."""
    return "" if domain == "ai.onnx" else domain


class Scope:
    """The values of names in a graph, and of those around it."""

    def __init__(self, definition: Definition, around: Scope | None = None) -> None:
        self.definition = definition
        self.values: dict[str, Value] = {}
        self.around = around

    def get(self, name: str) -> Value | None:
        """The value of a name, None if there is none."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.around
        return None
