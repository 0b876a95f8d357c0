"""The adapters that are installed: those of tidu's own table, and those that other packages bring as entry points.

An entry point of the group `tidu.formats` has the name of a format, which is also its suffix; one of `tidu.engines` that of an
engine. To import a package is to run its code, so one that is not tidu's is imported only where the user names what it brings: by
--format, by the suffix of a file, by --engine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable
from contextlib import redirect_stdout
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, cast

from tidu_cli import adapters
from tidu_cli.entry_points import Package, entry_points
from tidu_cli.errors import PluginError

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


_FAMILIAR = {"json", "msgpack", "gz", "zst", "py", *(suffix[1:] for suffix in OWN_SUFFIXES)}
"""For a file with one of these suffixes nobody looks for what other packages bring."""


def _own(place: tuple[Any, ...]) -> Any:
    module, name = place[:2]
    return getattr(import_module(module), name)


@cache
def _announced(port: str) -> dict[str, tuple[Package, EntryPoint]]:
    """What other packages announce for a port, by name."""
    return {point.name: (package, point) for package, point in entry_points(f"tidu.{port}")}


@cache
def _brought(port: str, name: str) -> Any:
    """What a package brings for a port under a name, None if there is none. Raises PluginError for one that is broken."""
    if name not in _announced(port):
        return None
    package, point = _announced(port)[name]
    try:
        with redirect_stdout(sys.stderr):  # standard output is for documents
            return point.load()
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split())
        raise PluginError(
            f"'{name}': package {package} is broken ({point.value}: {type(error).__name__}: {reason}); mend or uninstall it"
        ) from None


def brought_formats() -> Collection[str]:
    """The names of the formats that other packages bring, which are not imported for that."""
    return _announced("formats")


def brought_engines() -> Collection[str]:
    """Likewise of engines."""
    return _announced("engines")


def format_named(name: str) -> Format | None:
    """The format of another system of this name, None if there is none. Raises PluginError."""
    place = adapters.FORMATS.get(name)
    return cast("Format | None", _own(place) if place else _brought("formats", name))


def is_foreign(name: str | None) -> bool:
    """Whether this is a format of another system."""
    return name in adapters.FORMATS or name in brought_formats()


def formats_named_by(words: Iterable[str]) -> list[Format]:
    """The formats of other packages that words of a command line name: as they are, or as suffixes of files. Raises PluginError."""
    brought = brought_formats()
    names = [name for name in brought for word in words if word == name or brought_with_suffix(word) == name]
    return [found for name in dict.fromkeys(names) if (found := format_named(name))]


def brought_with_suffix(path: str) -> str | None:
    """The format of another package that a file has by its suffix, before which may stand that of a compression."""
    suffixes = [suffix for suffix in os.path.basename(path).lower().split(".")[1:][-2:] if suffix not in _FAMILIAR]
    return next((suffix for suffix in reversed(suffixes) if suffix in brought_formats()), None)


def declared_options(side: Literal["reading", "writing"], more: Iterable[Format] = ()) -> dict[str, tuple[Format, Option]]:
    """The options of readers or of writers by name, with the format that has each: of tidu's own formats, and of these."""
    found: dict[str, tuple[Format, Option]] = {}
    for format_ in (*map(_own, adapters.FORMATS.values()), *more):
        for option in getattr(format_, side):
            found.setdefault(option.name, (format_, option))
    return found


def recognized(source: Readable) -> Format | None:
    """The format of another system that a file has, by its first bytes, which are still to be read; None if it is of none.

    One that another package brings is looked for where the file has its suffix.
    """
    if source.path and (name := brought_with_suffix(source.path)):
        found = format_named(name)
        return found if found and found.sniff(source) else None
    first = source.head(1)  # here it is waited for those who write into a pipe
    if not first or first[0] >= 0x80 or first in b"{[":
        return None
    own: Iterable[Format] = map(_own, adapters.FORMATS.values())
    return next((found for found in own if found.sniff(source)), None)


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


def scheduler() -> Scheduler:
    """What spreads work over machines."""
    return cast("Scheduler", _own(adapters.SCHEDULERS["dask"]))
