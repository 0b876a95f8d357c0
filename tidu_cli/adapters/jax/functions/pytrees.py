"""Names of the leaves of pytrees: the path to them, `params.w`, `layers.0.b`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from tidu_cli.adapters.numpy.errors import BuildError


def flattened(tree: Any) -> tuple[list[tuple[tuple[Any, ...], Any]], Callable[[Iterable[Any]], Any]]:
    """The leaves of a pytree with the paths to them, and the function that puts others in their place."""
    from jax.tree_util import tree_flatten_with_path, tree_unflatten

    leaves, structure = tree_flatten_with_path(tree)
    return leaves, lambda some: tree_unflatten(structure, some)


def dotted(path: Iterable[Any]) -> list[str]:
    """The parts of the path to a leaf: keys of dicts, names of attributes, numbers of items."""
    return [str(next(getattr(part, a) for a in ("key", "name", "idx") if hasattr(part, a))) for part in path]


def is_leaf(value: Any) -> bool:
    """Whether it is one array."""
    found = flattened(value)[0]
    return len(found) == 1 and not found[0][0]


def leaves_of(result: Any, alone: str) -> dict[str, Any]:
    """The leaves of what a function returned, by the keys of outputs: one array is called `alone`, items `alone.0`.

    Dataclasses that JAX does not know as pytrees are taken apart, too. Raises BuildError for two of one key.
    """
    found: dict[str, Any] = {}
    pending: list[tuple[list[str], Any]] = [([], result)]
    while pending:
        before, value = pending.pop()
        inner = []
        for path, leaf in flattened(value)[0]:
            parts = [*before, *dotted(path)]
            if not before and (not path or hasattr(path[0], "idx") or type(path[0]).__name__ == "FlattenedIndexKey"):
                parts = [alone, *parts]
            if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type) and not hasattr(leaf, "aval"):
                here = parts if path else parts[:-1]
                inner += [([*here, f.name], getattr(leaf, f.name)) for f in dataclasses.fields(leaf)]
                continue
            key = ".".join(parts)
            if key in found:
                raise BuildError(f"two outputs are called '{key}'")
            found[key] = leaf
        pending += inner[::-1]
    if not found:
        raise BuildError("the function returns nothing; it must return what it computes")
    return found
