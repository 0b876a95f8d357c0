"""Primitives of other packages: those that installed packages announce as entry points of the group `tidu.primitives`.

An entry point's name is that of its op, and its object a `Primitive`. A package is only imported for an op that occurs: one that is
broken stops nobody who does not use it. Which packages there are is asked once a process, when a document is read, so that one
which announces a built-in op is not silently passed over. As most people have none, the files that would name the group are looked
through before `importlib.metadata` is imported to read them: about 1 ms where 70 packages are installed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

from tidu_cli.errors import PluginError

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

    from tidu_cli.primitives.contract import Primitive

GROUP = "tidu.primitives"
"""The group of entry points."""


@dataclass(frozen=True)
class Package:
    """An installed package. `version` is empty where its metadata do not tell."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}".rstrip()


@dataclass(frozen=True)
class Announced:
    """An op that packages announce, each by its entry point. More than one clash."""

    op: str
    by: tuple[tuple[Package, EntryPoint], ...]

    @property
    def packages(self) -> tuple[Package, ...]:
        """The packages that announce it."""
        return tuple(package for package, _ in self.by)


@cache
def announced() -> dict[str, Announced]:
    """The ops that packages announce, sorted by name. Imports no package, and passes over metadata that cannot be read."""
    found: dict[str, list[tuple[Package, EntryPoint]]] = {}
    if not _may_be_some():
        return {}
    for distribution in _distributions():
        for point in _entry_points(distribution):
            found.setdefault(point.name, []).append((_package(distribution, point), point))
    return {op: Announced(op, tuple(sorted(found[op], key=lambda by: str(by[0])))) for op in sorted(found)}


def installed(op: str) -> Primitive | None:
    """The primitive of that name that a package brings, or None. Raises PluginError for a clash and for a broken package."""
    known = announced().get(op)
    if known is None:
        return None
    if len(known.by) > 1:
        raise PluginError(_clash(known))
    return _loaded(op)


@cache
def _loaded(op: str) -> Primitive:
    from tidu_cli.primitives.contract import Primitive
    from tidu_cli.primitives.guarding import guarded

    ((package, point),) = announced()[op].by
    broken = f"op '{op}': package {package} is broken"
    try:
        with redirect_stdout(sys.stderr):  # standard output is for documents
            primitive = point.load()
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split())
        raise PluginError(f"{broken} ({point.value}: {type(error).__name__}: {reason}); mend or uninstall it") from None
    if not isinstance(primitive, Primitive):
        raise PluginError(f"{broken} ({point.value} is no Primitive but of type {type(primitive).__name__}); mend or uninstall it")
    if primitive.name != op:
        raise PluginError(f"{broken} ({point.value} is a Primitive of another name, '{primitive.name}'); mend or uninstall it")
    return guarded(primitive, str(package))


def clashes(built_in: Collection[str]) -> Iterator[tuple[str, str]]:
    """The ops that more than one package brings, or a package and tidu; and what to say of each."""
    for op, known in announced().items():
        if op in built_in:
            yield op, _clash_with_built_in(known)
        elif len(known.by) > 1:
            yield op, _clash(known)


def refuse_clash(op: str) -> None:
    """Raises PluginError if a package announces this op, which tidu has built in."""
    if op in announced():
        raise PluginError(_clash_with_built_in(announced()[op]))


def _clash(known: Announced) -> str:
    return f"op '{known.op}': {_listed(known)} both bring one of this name; uninstall all but one of them"


def _clash_with_built_in(known: Announced) -> str:
    several = len(known.by) > 1
    return (
        f"op '{known.op}': {_listed(known)} bring{'' if several else 's'} one, but tidu has one of this name; uninstall the former"
    )


def _listed(known: Announced) -> str:
    return f"package{'s' if len(known.by) > 1 else ''} {' and '.join(map(str, known.packages))}"


def _may_be_some() -> bool:
    """Whether any package may have entry points of the group: not where none of the files that would announce them names it."""
    finders = (finder for finder in sys.meta_path if finder is not PathFinder)
    return any(hasattr(finder, "find_distributions") for finder in finders) or any(map(_names_group, sys.path))


def _names_group(folder: str) -> bool:
    try:
        with os.scandir(folder or ".") as entries:
            metadata = [entry.path for entry in entries if entry.name.lower().endswith((".dist-info", "egg-info"))]
    except FileNotFoundError:
        return False
    except OSError:  # an archive, perhaps
        return True
    for path in metadata:
        with suppress(OSError), open(f"{path}/entry_points.txt", "rb") as file:
            if GROUP.encode() in file.read():
                return True
    return False


def _distributions() -> Iterator[Distribution]:
    """Installed packages with entry points of the group; of one name the first on the import path, which is what is imported."""
    from importlib.metadata import distribution, distributions

    seen: set[str] = set()
    for found in distributions():
        points = _entry_points(found)
        if not points:
            continue
        name = _package(found, points[0]).name
        normalized = name.lower().replace("-", "_").replace(".", "_")
        if normalized not in seen:
            seen.add(normalized)
            try:
                yield distribution(name)
            except Exception:  # its metadata do not tell its name
                yield found


def _entry_points(distribution: Distribution) -> list[EntryPoint]:
    try:
        return [point for point in distribution.entry_points if point.group == GROUP]
    except Exception:  # whatever the files of a package hold, commands that do not use it go on
        return []


def _package(distribution: Distribution, point: EntryPoint) -> Package:
    try:
        name, version = distribution.metadata["Name"], distribution.version
    except Exception:
        name = None
    return Package(name, version) if name else Package(point.value.partition(":")[0].strip(), "")
