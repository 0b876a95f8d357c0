"""What loops and branches take and give: arrays in dicts, lists, tuples and dataclasses; None holds none."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, Record
from tidu_cli.adapters.numpy.buffers.memory import resolved
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.pytree import MAX_LEVELS

LEAVES = (Array, np.ndarray, np.generic, bool, int, float, complex)
"""What stands at the leaves."""

Leaf = Any
Named = tuple[str, Leaf]
"""A leaf and its path, such as `carry.x`."""


def leaves(tree: Any, path: str, level: int = 0) -> Iterator[Named]:
    """The leaves of a tree with their paths, which begin with `path`. Raises BuildError for what is no array."""
    if level > MAX_LEVELS:
        raise BuildError(f"'{path[:60]}' nests deeper than {MAX_LEVELS} levels")
    members = members_of(tree)
    if members is not None:
        for name, member in members:
            yield from leaves(member, f"{path}.{name}", level + 1)
    elif isinstance(tree, LEAVES):
        yield path, resolved(tree)
    else:
        told = str(tree) if isinstance(tree, Record) else f"a {type(tree).__name__}"
        raise BuildError(f"'{path}' is {told}; loops and branches take and give arrays, in dicts, lists, tuples or dataclasses")


def members_of(tree: Any) -> list[tuple[Any, Any]] | None:
    """What a tree holds, by name or number; None for what is no tree."""
    if tree is None:
        return []
    if isinstance(tree, dict):
        return list(tree.items())
    if isinstance(tree, list | tuple):
        return list(zip(getattr(tree, "_fields", range(len(tree))), tree, strict=True))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return [(f.name, getattr(tree, f.name)) for f in dataclasses.fields(tree) if f.init]
    return None


def rebuilt(tree: Any, values: Iterable[Leaf]) -> Any:
    """A tree like this with other leaves, in the order in which `leaves` gives them."""
    return _rebuilt(tree, iter(values))


def _rebuilt(tree: Any, values: Iterator[Leaf]) -> Any:
    members = members_of(tree)
    if members is None:
        return next(values)
    if tree is None:
        return None
    found = {name: _rebuilt(member, values) for name, member in members}
    if isinstance(tree, dict):
        return found
    if isinstance(tree, list | tuple):
        parts = list(found.values())
        return parts if isinstance(tree, list) else type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return dataclasses.replace(tree, **found)


def leaves_as(model: Any, tree: Any, path: str, whence: str) -> Iterator[Leaf]:
    """The leaves of a tree in the order of those of `model`. Raises BuildError where it is built otherwise.

    `whence` says who gives the tree.
    """
    if kind_of_tree(model) != kind_of_tree(tree):
        raise BuildError(f"'{path}' is {kind_of_tree(tree)} as {whence} gives it, where {kind_of_tree(model)} is due")
    due, given = members_of(model), dict(members_of(tree) or ())
    if due is None:
        yield resolved(tree)
        return
    if given.keys() != dict(due).keys():
        names = [", ".join(map(str, some)) or "nothing" for some in (given, dict(due))]
        raise BuildError(f"'{path}' holds {names[0]} as {whence} gives it, where {names[1]} is due")
    for name, member in due:
        yield from leaves_as(member, given[name], f"{path}.{name}", whence)


def kind_of_tree(tree: Any) -> str:
    """What a tree is, with its article."""
    if tree is None or isinstance(tree, LEAVES):
        return "None" if tree is None else "an array"
    return f"a {type(tree).__name__}"
