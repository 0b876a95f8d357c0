"""What installed packages announce as entry points of a group. Nothing here imports one of them.

As most people have no such packages, the files that would name the group are looked through before `importlib.metadata` is imported
to read them: about 1 ms where 70 packages are installed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

from tidu_cli.frozen import Frozen

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint


class Package(Frozen, slots=False):
    """An installed package. `version` is empty where its metadata do not tell."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}".rstrip()


def normalized(name: str) -> str:
    """A package's name as the index of packages compares it."""
    return name.strip().lower().replace("-", "_").replace(".", "_")


def entry_points(group: str) -> Iterator[tuple[Package, EntryPoint]]:
    """The entry points of a group, each with its package. Passes over metadata that cannot be read."""
    if _may_be_some(group):
        for distribution in _distributions(group):
            for point in _entry_points(distribution, group):
                yield _package(distribution, point), point


def _may_be_some(group: str) -> bool:
    """Whether any package may have entry points of the group: not where none of the files that would announce them names it."""
    finders = (finder for finder in sys.meta_path if finder is not PathFinder)
    return any(hasattr(finder, "find_distributions") for finder in finders) or any(
        _names_group(folder, group) for folder in sys.path
    )


def _names_group(folder: str, group: str) -> bool:
    try:
        with os.scandir(folder or ".") as entries:
            metadata = [entry.path for entry in entries if entry.name.lower().endswith((".dist-info", "egg-info"))]
    except FileNotFoundError:
        return False
    except OSError:  # an archive, perhaps
        return True
    for path in metadata:
        with suppress(OSError), open(f"{path}/entry_points.txt", "rb") as file:
            if group.encode() in file.read():
                return True
    return False


def _distributions(group: str) -> Iterator[Distribution]:
    """Installed packages with entry points of the group; of one name the first on the import path, which is what is imported."""
    from importlib.metadata import distribution, distributions

    seen: set[str] = set()
    for installed in distributions():
        points = _entry_points(installed, group)
        if not points:
            continue
        name = _package(installed, points[0]).name
        if normalized(name) not in seen:
            seen.add(normalized(name))
            try:
                yield distribution(name)
            except Exception:  # its metadata do not tell its name
                yield installed


def _entry_points(distribution: Distribution, group: str) -> list[EntryPoint]:
    try:
        return [point for point in distribution.entry_points if point.group == group]
    except Exception:  # whatever the files of a package hold, commands that do not use it go on
        return []


def _package(distribution: Distribution, point: EntryPoint) -> Package:
    try:
        name, version = distribution.metadata["Name"], distribution.version
    except Exception:
        name = None
    return Package(name, version) if name else Package(point.value.partition(":")[0].strip(), "")
