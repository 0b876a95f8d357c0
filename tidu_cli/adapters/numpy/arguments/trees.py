"""Arguments that nest, put together of parts by dotted names: dicts, lists, tuples, named tuples and dataclasses."""

from __future__ import annotations

import contextlib
import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.pytree import MAX_LEVELS
from tidu_cli.port_data import Given, Static

MISSING = object()
"""Where there is no value."""


@dataclass
class Node:
    """What is given at and below a place of an argument: the whole key at it, and by the next part of their names what is below."""

    key: str | None = None
    below: dict[str, Node] = field(default_factory=dict)


def tree_of(given: Mapping[str, Given]) -> Node:
    """The tree of keys. A constant may have parts that are given, too. Raises BuildError where an array would hold others."""
    root = Node()
    for key, value in given.items():
        path = key.split(".")
        if len(path) > MAX_LEVELS + 1:
            raise BuildError(f"input '{key[:60]}' nests deeper than {MAX_LEVELS} levels")
        node = root
        for part in path:
            if node.key is not None and not isinstance(given[node.key], Static):
                raise BuildError(f"input '{key}' is inside of '{node.key}', which is an array")
            node = node.below.setdefault(part, Node())
        if node.key is not None or (node.below and not isinstance(value, Static)):
            raise BuildError(f"input '{key}' is given twice, or holds others")
        node.key = key
    return root


def filled(node: Node, hint: Any, values: Mapping[str, Any], base: Any = MISSING, path: str = "") -> Any:
    """What becomes of a tree of keys: the value of its key, or of `base`, a default, with the parts that are given.

    Without these it is what the annotation `hint` says, and else a list if its keys count from 0, or a dict.
    """
    if node.key is not None:
        base = shaped(values[node.key], hint)
    if not node.below:
        return base
    hint, members = annotated_class(hint), members_of(base)
    if base is MISSING or (members is None and node.key is None):
        parts = {k: filled(below, hint_below(hint, k), values, path=f"{path}.{k}") for k, below in node.below.items()}
        return _made(parts, hint)
    if members is None:
        told = f"{base!r}"[:60]
        raise BuildError(f"input '{path}.{next(iter(node.below))}' is inside of '{path}', which is {told}")
    hint = hint or type(base)
    parts = {
        k: filled(below, hint_below(hint, k), values, members.get(k, MISSING), f"{path}.{k}") for k, below in node.below.items()
    }
    return _changed(base, parts, members, path)


def _made(parts: dict[str, Any], hint: Any) -> Any:
    """A structure of these parts."""
    origin = typing.get_origin(hint) or hint
    if _has_fields(origin):
        try:
            return origin(**_by_field(parts, origin))
        except TypeError as error:
            raise BuildError(f"{origin.__name__}: {error}") from None
    if origin is not dict and sorted(parts) == sorted(map(str, range(len(parts)))):
        items = [parts[str(k)] for k in range(len(parts))]
        return tuple(items) if origin is tuple else items
    of_integers = origin is dict and typing.get_args(hint)[:1] == (int,) and all(k.isdecimal() for k in parts)
    return {int(k): v for k, v in parts.items()} if of_integers else parts


def _by_field(parts: dict[str, Any], origin: Any) -> dict[str, Any]:
    """Parts of a named tuple by the names of its fields, where they are given by number."""
    names = {str(k): name for k, name in enumerate(getattr(origin, "_fields", ()))}
    return {names.get(k, k): v for k, v in parts.items()}


def _changed(base: Any, parts: dict[str, Any], members: Mapping[str, Any], path: str) -> Any:
    """A structure with some parts replaced. Only dicts may have new ones."""
    if isinstance(base, dict):
        names = {str(k): k for k in base}
        return {**base, **{names.get(k, k): v for k, v in parts.items()}}
    parts = _by_field(parts, base)
    for k in parts:
        if k not in members:
            raise BuildError(f"input '{path}.{k}': '{path}' has no part '{k}' (parts: {', '.join(members)})")
    if dataclasses.is_dataclass(base) and not isinstance(base, type):
        return dataclasses.replace(base, **parts)
    if hasattr(base, "_replace"):
        return base._replace(**parts)
    return type(base)(parts.get(str(k), x) for k, x in enumerate(base))


def shaped(value: Any, hint: Any) -> Any:
    """A constant with the dicts and lists that JSON has as what the annotation says: dataclasses, named tuples, tuples."""
    hint = annotated_class(hint)
    origin = typing.get_origin(hint) or hint
    if isinstance(value, dict):
        parts = {k: shaped(x, hint_below(hint, str(k))) for k, x in value.items()}
        return _made(parts, hint) if _has_fields(origin) else parts
    if isinstance(value, list) and origin is not None:
        items = [shaped(x, hint_below(hint, str(k))) for k, x in enumerate(value)]
        if _has_fields(origin):
            return _made({str(k): x for k, x in enumerate(items)}, hint)
        return tuple(items) if origin is tuple else items
    return value


def members_of(value: Any) -> dict[str, Any] | None:
    """The parts of a structure by their names; None for what is none."""
    if isinstance(value, dict):
        return {str(k): v for k, v in value.items()}
    if isinstance(value, list | tuple):
        return dict(zip(map(str, getattr(value, "_fields", range(len(value)))), value, strict=True))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
    return None


# Annotations.


def hints_of(annotated: Any) -> dict[str, Any]:
    """The annotations of a class or a function, none if they cannot be read."""
    with contextlib.suppress(Exception):
        return typing.get_type_hints(annotated)
    return {}


def annotated_class(hint: Any) -> Any:
    """The class that an annotation asks for, with its parameters: of a union the first one that is not None."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return next((arm for arm in typing.get_args(hint) if arm is not types.NoneType), None)
    return hint


def hint_below(hint: Any, name: str) -> Any:
    """The annotation of a part of that name, None if it has none."""
    hint = annotated_class(hint)
    origin, parts = typing.get_origin(hint) or hint, typing.get_args(hint)
    if _has_fields(origin):
        fields, hints = getattr(origin, "_fields", ()), hints_of(origin) or hints_of(origin.__init__)
        return hints.get(fields[int(name)] if name.isdecimal() and int(name) < len(fields) else name)
    if origin is tuple and name.isdecimal() and parts[1:] != (...,):
        return parts[int(name)] if int(name) < len(parts) else None
    if len(parts) == 2 and origin is not tuple:  # of a mapping
        return parts[1]
    return parts[0] if parts else None


def _has_fields(origin: Any) -> bool:
    """Whether it is the class of a named tuple, or one whose `__init__` is written in Python, as a dataclass's is."""
    written = isinstance(getattr(origin, "__init__", None), types.FunctionType) and not getattr(origin, "_is_protocol", False)
    return isinstance(origin, type) and (written or hasattr(origin, "_fields")) and not issubclass(origin, dict | list)
