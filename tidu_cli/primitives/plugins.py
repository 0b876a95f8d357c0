"""Primitives of other packages: those that installed packages announce as entry points of the group `tidu.primitives`.

An entry point's name is that of its op, and its object a `Primitive`. A package is only imported for an op that occurs: one that is
broken stops nobody who does not use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from tidu_cli.errors import PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from tidu_cli.primitives.contract import Primitive

GROUP = "tidu.primitives"
"""The group of entry points."""


@dataclass(frozen=True)
class Announced:
    """An op that packages announce; `packages` is more than one where they clash."""

    op: str
    packages: tuple[str, ...]


@lru_cache(maxsize=1)
def _entry_points() -> dict[str, list[EntryPoint]]:
    from importlib.metadata import entry_points  # slow to import, and rarely wanted

    found: dict[str, list[EntryPoint]] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda p: (p.name, _package(p))):
        known = found.setdefault(point.name, [])
        # The same package may be found twice along the import path.
        if (_package(point), point.value) not in [(_package(p), p.value) for p in known]:
            known.append(point)
    return found


def announced() -> Iterator[Announced]:
    """Every op that packages announce, by name. Imports none of them."""
    for name, points in _entry_points().items():
        yield Announced(name, tuple(_package(p) for p in points))


@cache
def installed(op: str) -> Primitive | None:
    """The primitive of that name that a package brings, or None. Raises PluginError for a clash and for a broken package."""
    from tidu_cli.primitives.contract import Primitive

    points = _entry_points().get(op, [])
    if not points:
        return None
    if len(points) > 1:
        raise PluginError(f"op '{op}': packages {' and '.join(map(_package, points))} both bring one; uninstall one of them")
    (point,) = points
    try:
        primitive = point.load()
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise PluginError(
            f"op '{op}': package {_package(point)} is broken ({point.value}: {reason}); mend or uninstall it"
        ) from None
    if not isinstance(primitive, Primitive) or primitive.name != op:
        what = (
            f"a primitive named '{primitive.name}'" if isinstance(primitive, Primitive) else f"of type {type(primitive).__name__}"
        )
        raise PluginError(f"op '{op}': package {_package(point)} is broken ({point.value} is {what}); mend or uninstall it")
    return primitive


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value
