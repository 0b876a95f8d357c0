"""The adapters that are installed: those of tidu's own table, and those that other packages bring as entry points.

An entry point of the group `tidu.formats` has the name of a format, which is also its suffix; one of `tidu.engines` that of an
engine. To import a package is to run its code, so one that is not tidu's is imported only where the user names what it brings: by
--format, by the suffix of a file, by --engine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, cast

from tidu_cli import adapters
from tidu_cli.entry_points import Package, entry_points
from tidu_cli.errors import PluginError, TiduError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from tidu_cli.port_data import Option
    from tidu_cli.ports import Engine, Format, Readable, Scheduler, Source

OWN_FORMATS = tuple(adapters.FORMATS)
"""The names of the formats of other systems that come with tidu."""

OWN_ENGINES = tuple(adapters.ENGINES)
"""The names of the engines besides NumPy that come with tidu."""

OWN_SUFFIXES = {suffix: name for name, (_, _, suffixes) in adapters.FORMATS.items() for suffix in suffixes}
"""The suffixes of formats that come with tidu."""

_FAMILIAR = {".json", ".msgpack", ".py", *OWN_SUFFIXES}
"""For a file with one of these suffixes nobody looks for what other packages bring."""


def _own(place: tuple[Any, ...]) -> Any:
    module, name = place[:2]
    return getattr(import_module(module), name)


@cache
def _announced(port: str) -> dict[str, list[tuple[Package, EntryPoint]]]:
    """What other packages announce for a port, by name."""
    by_name: dict[str, list[tuple[Package, EntryPoint]]] = {}
    for package, point in entry_points(f"tidu.{port}"):
        by_name.setdefault(point.name, []).append((package, point))
    return by_name


_loaded: dict[tuple[str, str], Any] = {}
"""What packages bring, by port and name, of those that were named."""


def _brought(port: str, name: str) -> Any:
    """What a package brings for a port under a name, None if there is none.

    Raises PluginError for one that is broken or no such thing, and where two packages bring one.
    """
    if name not in _announced(port):
        return None
    if (port, name) not in _loaded:
        (package, point), *others = _announced(port)[name]
        if others:
            raise PluginError(f"'{name}': packages {package} and {others[0][0]} both bring one; uninstall one of them")
        with blaming(name, package, f"{point.value}: "):
            with redirect_stdout(sys.stderr):  # standard output is for documents
                brought = point.load()
            _require_port(brought, port)
        _loaded[port, name] = brought
    return _loaded[port, name]


def _require_port(brought: Any, port: str) -> None:
    """Raises TypeError for an object that lacks a part of the port."""
    from tidu_cli import ports

    protocol: Any = {"formats": ports.Format, "engines": ports.Engine}[port]
    parts = [*protocol.__annotations__, *(name for name in vars(protocol) if not name.startswith("_"))]
    if lacking := [part for part in parts if not hasattr(brought, part)]:
        raise TypeError(f"{type(brought).__name__} has no {', '.join(lacking)}")


@contextmanager
def blaming(name: str, package: Package | None = None, place: str = "", port: str = "formats") -> Iterator[None]:
    """Within the block, what goes wrong in the code of a package that brings a format or an engine is told as that package's.

    Without a package it is that which brings what has this name for the port, if one does. Raises PluginError.
    """
    try:
        yield
    except (TiduError, OSError, MemoryError, RecursionError):
        raise
    except (Exception, SystemExit) as error:
        if package is None and name not in _announced(port):
            raise
        whose = package or _announced(port)[name][0][0]
        reason = " ".join(str(error).split())
        what = f"{place}{type(error).__name__}: {reason}"
        raise PluginError(f"'{name}': package {whose} is broken ({what}); repair or uninstall it") from error


def brought_formats() -> Collection[str]:
    """The names of the formats that other packages bring, which are not imported for that."""
    return _announced("formats")


def brought_engines() -> Collection[str]:
    """Likewise of engines."""
    return _announced("engines")


def format_named(name: str) -> Format | None:
    """The format of another system of this name, None if there is none. Raises PluginError."""
    place = adapters.FORMATS.get(name) or adapters.UNREAD.get(name)
    return cast("Format | None", _own(place) if place else _brought("formats", name))


def is_foreign(name: str | None) -> bool:
    """Whether this is a format of another system."""
    return name in adapters.FORMATS or name in adapters.UNREAD or name in brought_formats()


def load_formats_named_by(words: Iterable[str]) -> None:
    """Import the formats of other packages that words of a command line name, as toy, f.toy and --format=toy do.

    Raises PluginError.
    """
    for word in words:
        value = word.rpartition("=")[2] if word.startswith("-") else word
        name = value if value in brought_formats() else brought_with_suffix(value)
        if name is not None:
            format_named(name)


def brought_with_suffix(path: str) -> str | None:
    """The format of another package that a file has by its last suffix, after which may stand that of a compression."""
    stem, suffix = os.path.splitext(os.path.basename(path).lower())
    if suffix in (".gz", ".zst"):
        suffix = os.path.splitext(stem)[1]
    return suffix[1:] if suffix and suffix not in _FAMILIAR and suffix[1:] in brought_formats() else None


def declared_options(side: Literal["reading", "writing"]) -> dict[str, tuple[Format, Option]]:
    """The options of readers or of writers by name, with the format that has each: of tidu's own, and of those that were named."""
    declared: dict[str, tuple[Format, Option]] = {}
    brought = (one for (port, _), one in _loaded.items() if port == "formats")
    for format_ in (*map(_own, adapters.FORMATS.values()), *brought):
        for option in getattr(format_, side):
            declared.setdefault(option.name, (format_, option))
    return declared


def recognized(source: Readable) -> Format | None:
    """The format of another system that a file has, by its first bytes, which are still to be read; None if it is of none.

    One that another package brings is looked for where the file has its suffix.
    """
    brought = brought_with_suffix(source.path) if source.path else None
    if brought and (format_ := format_named(brought)):
        with blaming(brought):
            if format_.sniff(source):
                return format_
    first = source.head(1)  # here it is waited for those who write into a pipe
    if not first or first[0] > 0x80 or first in b"{[":
        return None
    own: Iterable[Format] = map(_own, (*adapters.FORMATS.values(), *adapters.UNREAD.values()))
    return next((format_ for format_ in own if format_.sniff(source)), None)


def runtimes() -> list[str]:
    """Other programs that run files of formats that come with tidu."""
    return [runtime for place in adapters.FORMATS.values() for runtime in _own(place).runtimes]


def own_engines() -> dict[str, Engine]:
    """The engines besides NumPy that come with tidu, by name."""
    return {name: _own(place) for name, place in adapters.ENGINES.items()}


def engine_named(name: str) -> Engine | None:
    """The engine of this name, None if there is none. Raises PluginError."""
    place = adapters.ENGINES.get(name)
    return cast("Engine | None", _own(place) if place else _brought("engines", name))


def source_named(name: str) -> Source:
    """The source of graphs of this name."""
    return cast("Source", _own(adapters.SOURCES[name]))


def derived(*function: Any) -> Any:
    """The derivative of a function of Python, as `adapters.numpy.derived` makes it."""
    return _own(adapters.DERIVED)(*function)


def scheduler() -> Scheduler:
    """What spreads work over machines."""
    return cast("Scheduler", _own(adapters.SCHEDULERS["dask"]))
