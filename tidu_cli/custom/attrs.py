"""The attrs of custom operations: values by name, passed on to the nodes of their graphs.

In a definition's graph `{"attr": "slope"}` stands for the value of the op's attr `slope`, anywhere within a node's attrs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tidu_cli.errors import TypeRuleError, did_you_mean
from tidu_cli.rules.attrs.fields import Records
from tidu_cli.rules.contract import Attrs

AttrValues = Mapping[str, Any]

REQUIRED = object()
"""The default of an attr that must be given."""


class CustomAttrs(Attrs):
    """Values by name, as canonical JSON: so that they hash, and 1 differs from 1.0 and from true."""

    text: str

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> CustomAttrs:
        """Attrs of these values. Raises TypeRuleError for what JSON or msgpack cannot hold."""
        for name, value in values.items():
            _require_storable(f"attr '{name}'", value)
        try:
            return cls(text=json.dumps(values, sort_keys=True, allow_nan=False))
        except (TypeError, ValueError):
            raise TypeRuleError("attrs hold what is no JSON value") from None

    @property
    def values(self) -> dict[str, Any]:
        """The values by name."""
        found: dict[str, Any] = json.loads(self.text)
        return found

    def to_data(self, *, binary: bool) -> dict[str, object]:
        """The file form."""
        return self.values

    def identity(self, of_graph: object) -> dict[str, object]:
        """Likewise."""
        return self.values


def _require_storable(name: str, value: object) -> None:
    """Raises TypeRuleError for integers at any depth that msgpack, by which nodes are told apart, does not hold."""
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, Mapping):
            pending += one.values()
        elif isinstance(one, list | tuple):
            pending += one
        elif isinstance(one, int) and not -(2**63) <= one < 2**64:
            raise TypeRuleError(f"{name}: holds an integer beyond 64 bits, which msgpack cannot; write it as a string")


def attrs_class(op: str, defaults: AttrValues) -> type[CustomAttrs]:
    """The class of an op's attrs, whose `parse` reads their file form."""

    class Known(CustomAttrs):
        @classmethod
        def parse(cls, data: Mapping[str, object], records: Records) -> CustomAttrs:  # type: ignore[override]
            """Attrs from their file form. Raises TypeRuleError for unknown and missing ones."""
            for name in data:
                if name not in defaults:
                    raise TypeRuleError(f"unknown attr '{name}'{did_you_mean(name, list(defaults))}")
            values = {**defaults, **data}
            for name, value in values.items():
                if value is REQUIRED:
                    raise TypeRuleError(f"missing attr '{name}'")
            return CustomAttrs.of(values)

    Known.__name__ = f"{op.title()}Attrs"
    return Known


def substituted(attrs: Any, values: AttrValues) -> Any:
    """`attrs` with the op's values in place of `{"attr": NAME}`. Raises TypeRuleError for a name that the op does not have."""
    if isinstance(attrs, Mapping):
        if set(attrs) == {"attr"} and isinstance(attrs["attr"], str):
            name = attrs["attr"]
            if name not in values:
                raise TypeRuleError(f"the op has no attr '{name}'{did_you_mean(name, list(values))}")
            return values[name]
        return {k: substituted(v, values) for k, v in attrs.items()}
    return [substituted(v, values) for v in attrs] if isinstance(attrs, list | tuple) else attrs
