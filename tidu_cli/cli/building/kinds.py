"""What an argument in the place of a file names: a file, FILE.py:FUNCTION, or a formula; and which names that has."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from typing import Literal

import click

from tidu_cli.cli.building.declarations import declared
from tidu_cli.errors import DocumentError, UnknownNameError, did_you_mean
from tidu_cli.formats.compression import SUFFIXES
from tidu_cli.formats.suffixes import DOCUMENTS, FORMATS
from tidu_cli.installed import source_named

Kind = Literal["file", "function", "formula"]

FUNCTION = re.compile(r".*\.py:[A-Za-z_]\w*", re.S)
"""FILE.py:FUNCTION."""

_FORMULAS = frozenset("()[]*+=;,<>%&|^~ \n\t")
"""What formulas have, and names of files seldom."""

FILES = (*(suffix for suffix, name in FORMATS.items() if name in DOCUMENTS), ".npz", ".npy", ".py", *SUFFIXES)
"""What ends like this is no formula."""


def kind_of(argument: str, settings: Sequence[str] = (), *, shared: bool = False) -> Kind:
    """What an argument names: a file that is there, else FILE.py:FUNCTION, else a formula unless it looks like a file.

    Without signs that only formulas have, a formula is what reads names that -i or --set give. Raises DocumentError for a file of
    Python without a function, and for one that is not there but nearly; UsageError where -i has no use, as it is not `shared` by
    several documents.
    """
    if not argument:  # as of "$FILE" that no one has set
        raise DocumentError("the name of the file is empty; give a file, a formula, or - for standard input")
    if argument == "-" or os.path.exists(argument):
        if argument.endswith(".py"):
            raise DocumentError(f"{argument}: is a file of Python; name a function of it, {argument}:{_some_function(argument)}")
        if declared() and not shared:
            raise click.UsageError(f"-i is for FILE.py:FUNCTION and formulas, and '{argument}' is a file")
        return "file"
    if FUNCTION.fullmatch(argument):
        file = argument.rpartition(":")[0]
        if not os.path.exists(file):
            raise DocumentError(f"{file}: no such file{_near(file)}")
        return "function"
    if _is_formula(argument, settings):
        return "formula"
    if near := _near(argument):
        raise DocumentError(f"{argument}: no such file{near}")
    return "file"  # whose reader says why it cannot be read


def _is_formula(text: str, settings: Sequence[str]) -> bool:
    if text.lower().endswith(FILES) or "\0" in text:
        return False
    if _FORMULAS & set(text):
        return True
    known = {d.key for d in declared()} | {setting.partition("=")[0] for setting in settings}
    names = source_named("formula").names(text) or ()
    return bool(names) and known >= set(names)


def _some_function(file: str) -> str:
    return next((name for name in source_named("function").functions(file) if not name.startswith("_")), "FUNCTION")


def _near(path: str) -> str:
    """A hint of a file of nearly that name."""
    folder, name = os.path.split(path)
    stem = os.path.splitext(name)[0]
    try:
        files = {os.path.splitext(entry.name)[0]: entry.name for entry in os.scandir(folder or ".") if entry.is_file()}
    except (OSError, ValueError):
        return ""
    close = did_you_mean(stem, sorted(files)).partition("'")[2][:-2]
    return f"; did you mean '{os.path.join(folder, files[close])}'?" if close in files else ""


def names_of(source: str, kind: Kind) -> Collection[str] | None:
    """The names that a source has for inputs, None if any may be one."""
    names: Collection[str] | None = source_named(kind).names(source)
    return names


def require_all_taken(sources: Sequence[tuple[str, Kind]]) -> None:
    """Raises UnknownNameError for an -i that none of several documents has a name for."""
    known = [names_of(source, kind) for source, kind in sources if kind != "file"]
    for one in declared():
        if all(names is not None and one.key.partition(".")[0] not in names for names in known):
            raise UnknownNameError(f"none of the documents has an input '{one.key}'")
