"""Data that say the types of what is built: the values of --set and --inputs, as they stand."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tidu_cli.cli.building.declarations import declared
from tidu_cli.cli.building.kinds import Kind
from tidu_cli.cli.messages import note
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.select import listed

if TYPE_CHECKING:
    from tidu_cli.port_data import Data

_READ = "tidu.read"
"""Under which click's context holds what was read of standard input and of pipes."""


def data_of(settings: Sequence[str], files: Sequence[str]) -> Data:
    """The data that types come from. Raises UsageError for an -i without type that they do not have, TiduError."""
    from tidu_cli.port_data import Data

    of_files, of_settings = _plain_values((), files), _plain_values(settings, ())
    untyped = [d for d in declared() if d.type is None and d.constant is None]
    values = of_files | of_settings
    for one in untyped:
        if not any(key == one.key or key.startswith(f"{one.key}.") for key in values):
            raise click.UsageError(f"-i {one.key} says no type, and the data have no '{one.key}': write -i {one.key}:f64[], say")
    first = [one.key for one in untyped if one.key in values]
    return Data({key: values[key] for key in dict.fromkeys([*first, *values])}, frozenset(of_settings))


def _plain_values(settings: Sequence[str], files: Sequence[str]) -> dict[str, object]:
    """The values of --inputs files, then of --set, by names of inputs of unknown types, as they stand. Raises TiduError."""
    from tidu_cli.formats.constants import read_constant
    from tidu_cli.formats.values import parse_assignment, read_values

    found: dict[Key, object] = {}
    for file in files:
        data = bytes_of(file)
        found |= read_values(data, "stdin" if file == "-" else file, None if data[:2] == b"PK" else {})
    for setting in settings:
        text, _, value = setting.partition("=")
        key = parse_key(text)
        holds_objects = "{" in value and not value.startswith("@")
        found[key] = read_constant(value, f"--set {text}") if holds_objects else parse_assignment(setting, [key])[1]
    return {key.name: value for key, value in found.items() if not key.path}


def bytes_of(file: str) -> bytes:
    """The bytes of a file; those of standard input and of pipes also a second time. Raises DocumentError."""
    from tidu_cli.formats.files import read_bytes

    if os.path.isfile(file):
        return read_bytes(file)
    read: dict[str, bytes] = click.get_current_context().meta.setdefault(_READ, {})
    if file not in read:
        read[file] = read_bytes(file)
    return read[file]


def tell(source: str, kind: Kind, data: Data) -> None:
    """Tell what a builder left out, and took for a constant."""
    what = "the formula" if kind == "formula" else source.rpartition(":")[2]
    if data.untaken:
        note(f"{what} does not take {listed(data.untaken)}")
    if data.constants:
        told = listed([f"{key}={value}" for key, value in data.constants.items()])
        note(f"constants of {what}, which are no inputs: {told}; -i {next(iter(data.constants))}:i64[] makes an input")
