"""Primitives of other packages: those that installed packages announce as entry points of the group `tidu.primitives`.

An entry point's name is that of its op, and its object a `Primitive`. To import a package is to run its code, so only packages are
imported that the user has named (`--plugins`, TIDU_PLUGINS), and of these only such as have an op that occurs: one that is broken
stops nobody who does not use it. What the others bring is known from their metadata, so that messages can tell of it. Metadata are
read where a package has been named or an op is unknown, once a process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import redirect_stdout
from functools import cache
from typing import TYPE_CHECKING

from tidu_cli.entry_points import Package, entry_points, normalized
from tidu_cli.errors import PluginError, Remedy, UnknownNameError, did_you_mean
from tidu_cli.frozen import Frozen, replace
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.vocabulary import PrimitiveSet

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "tidu.primitives"
"""The group of entry points."""

VARIABLE = "TIDU_PLUGINS"
"""The environment variable of packages that may be imported: their names, with commas between."""

Named = frozenset[str]
"""The packages that may be imported, by their normalized names."""


class Announced(Frozen, slots=False):
    """An op that packages announce, each by its entry point. More than one that are named clash."""

    by: tuple[tuple[Package, EntryPoint], ...]

    @property
    def packages(self) -> tuple[Package, ...]:
        """The packages that announce it."""
        return tuple(package for package, _ in self.by)

    def among(self, named: Named) -> tuple[Package, ...]:
        """Those of the packages that may be imported."""
        return tuple(package for package in self.packages if normalized(package.name) in named)


@cache
def announced() -> dict[str, Announced]:
    """The ops that packages announce, sorted by name. Imports no package, and passes over metadata that cannot be read."""
    by_op: dict[str, list[tuple[Package, EntryPoint]]] = {}
    for package, point in entry_points(GROUP):
        by_op.setdefault(point.name, []).append((package, point))
    return {op: Announced(tuple(sorted(by_op[op], key=lambda by: str(by[0])))) for op in sorted(by_op)}


def known_with(plugins: Iterable[str] = ()) -> PrimitiveSet:
    """The built-in primitives, and those of these packages and of TIDU_PLUGINS. Raises UnknownNameError for one not installed."""
    return replace(KNOWN, plugins=named(plugins))


def named(names: Iterable[str]) -> Named:
    """The packages of these names, and those of the variable. Raises UnknownNameError if there is none of one of these names."""
    chosen = set(filter(None, map(normalized, os.environ.get(VARIABLE, "").split(","))))
    for name in names:
        known = sorted({package.name for ops in announced().values() for package in ops.packages})
        if normalized(name) not in map(normalized, known):
            hint = did_you_mean(name, known)
            raise UnknownNameError(
                f"no package '{name}' with primitives is installed{hint} (", Remedy(function="ops"), " lists what is)"
            )
        chosen.add(normalized(name))
    return frozenset(chosen)


def installed(op: str, named: Named) -> Primitive | None:
    """The primitive of that name that a package brings, or None. Raises PluginError for a clash and for a broken package.

    And where all packages that bring it are none of those that may be imported.
    """
    if op not in announced():
        return None
    known = announced()[op]
    if not (among := known.among(named)):
        raise PluginError(f"op '{op}': {not_named(known)}")
    if clash := _clash(op, among, is_built_in=False):
        raise PluginError(clash)
    return _loaded(op, among[0])


KNOWN = replace(BUILTIN, announced=announced, installed=installed)
"""The built-in primitives, where it is known what installed packages would bring."""


def not_named(known: Announced) -> str:
    """What to say of an op whose packages may not be imported."""
    names = dict.fromkeys(package.name for package in known.packages)
    ways = " or ".join(str(Remedy("plugins", name)) for name in names)
    return f"{_bringing(known.packages)}, and a package is imported only if it is named; add {ways}, or set {VARIABLE}"


@cache
def _loaded(op: str, package: Package) -> Primitive:
    from tidu_cli.custom.graphs import guarded

    point = dict(announced()[op].by)[package]
    broken = f"op '{op}': package {package} is broken"
    try:
        with redirect_stdout(sys.stderr):  # standard output is for documents
            primitive = point.load()
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split())
        raise PluginError(f"{broken} ({point.value}: {type(error).__name__}: {reason}); repair or uninstall it") from None
    if not isinstance(primitive, Primitive):
        raise PluginError(
            f"{broken} ({point.value} is of type {type(primitive).__name__}, not a Primitive); repair or uninstall it"
        )
    if primitive.name != op:
        raise PluginError(f"{broken} ({point.value} is a Primitive of another name, '{primitive.name}'); repair or uninstall it")
    return guarded(primitive, str(package))


def clashes(built_in: Collection[str], named: Named) -> Iterator[tuple[str, str]]:
    """The ops that more than one of these packages brings, or one of them and tidu; and what to say of each."""
    for op, known in announced().items():
        if clash := _clash(op, known.among(named), is_built_in=op in built_in):
            yield op, clash


def refuse_clash(op: str, named: Named) -> None:
    """Raises PluginError if one of these packages announces an op that tidu has built in."""
    known = announced().get(op) if named and op in BUILTIN.primitives else None
    if known and (clash := _clash(op, known.among(named), is_built_in=True)):
        raise PluginError(clash)


def _clash(op: str, packages: tuple[Package, ...], *, is_built_in: bool) -> str | None:
    """What to say of an op that these packages bring; None where it is but one."""
    if is_built_in and packages:
        return f"op '{op}': {_bringing(packages)}, but tidu has one of this name; uninstall the former"
    if len(packages) > 1:
        names = " and ".join(map(str, packages))
        return f"op '{op}': packages {names} both bring one of this name; name one of them only"
    return None


def _bringing(packages: tuple[Package, ...]) -> str:
    names = " and ".join(map(str, packages))
    return f"packages {names} bring one" if len(packages) > 1 else f"package {names} brings one"
