"""Values that nest as the arguments of a function do, by the dotted names of inputs: `params.w` of a dict or a dataclass."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tidu_cli.errors import EvaluationError


def by_inputs(values: Mapping[str, Any], declared: Collection[str]) -> Mapping[str, Any]:
    """Values by name, with those taken apart of which only parts are among the inputs. All else is as it stands.

    Raises EvaluationError where a part is given by itself, too.
    """
    if all(name in declared for name in values):
        return values
    owners = {name[:at] for name in declared for at, character in enumerate(name) if character == "."}
    found: dict[str, Any] = {}
    for name, value in values.items():
        for part, inner in _parts(name, value, owners, declared):
            if part in found:
                raise EvaluationError(f"the key '{part}' occurs twice: by itself and within '{name}'")
            found[part] = inner
    return found


def _parts(name: str, value: Any, owners: Collection[str], declared: Collection[str]) -> Iterator[tuple[str, Any]]:
    members = _members(value) if name in owners and name not in declared else None
    if members is None:
        yield name, value
    else:
        for k, inner in members:
            yield from _parts(f"{name}.{k}", inner, owners, declared)  # no deeper than names of inputs nest


def _members(value: Any) -> list[tuple[object, Any]] | None:
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, list | tuple):
        return list(zip(getattr(value, "_fields", range(len(value))), value, strict=True))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
    return None
