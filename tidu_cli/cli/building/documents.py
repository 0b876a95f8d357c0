"""Documents that are built where they are asked for: of FILE.py:FUNCTION or of a formula, in the place of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tidu_cli.cli.building.data import data_of, tell
from tidu_cli.cli.building.declarations import declared
from tidu_cli.cli.building.kinds import Kind, names_of
from tidu_cli.graph.select import covered
from tidu_cli.installed import source_named

if TYPE_CHECKING:
    from tidu_cli.graph.graph import Document
    from tidu_cli.port_data import Given

_CONSTANTS = "tidu.constants"
"""Under which click's context holds the keys of --set that became constants."""


def built(
    source: str,
    kind: Kind,
    settings: Sequence[str] = (),
    files: Sequence[str] = (),
    /,
    *,
    shared: bool = False,
    jax: bool = False,
    **how: Any,
) -> Document:
    """The document of FILE.py:FUNCTION or of a formula, with the -i of the command; data says the types of what they leave out.

    Where -i is `shared` by several documents, each takes what it has names for. Raises what builders raise.
    """
    if kind == "function":
        from tidu_cli.formats.occupants import note_read

        note_read(source.rpartition(":")[0])
    given = _given(source, kind, settings, files, shared)
    data = data_of(settings, files) if settings or files else None
    how = {"name": None, "outputs": ()} | how
    document: Document = source_named("jax" if jax else kind).build(source, given, data=data, **how)
    if data is not None:
        inputs = {str(key) for key in document.inputs}
        keys = {setting.partition("=")[0] for setting in settings}
        constants = {key for key in keys if key not in inputs and "@" not in key and not covered(key, inputs)}
        click.get_current_context().meta[_CONSTANTS] = constants
        tell(source, kind, data)
    return document


def _given(source: str, kind: Kind, settings: Sequence[str], files: Sequence[str], shared: bool) -> dict[str, Given]:
    """What -i says of a source, without the keys whose types data says. Raises UsageError, DocumentError."""
    from tidu_cli.formats.constants import read_constant
    from tidu_cli.port_data import Static

    names = names_of(source, kind) if shared else None
    given: dict[str, Given] = {}
    for key, type_, constant, _ in declared():
        if names is not None and key.partition(".")[0] not in names:
            continue
        if type_ is not None:
            given[key] = type_
        elif constant is not None:
            given[key] = Static(read_constant(constant, f"-i {key}"))
        elif not settings and not files:
            raise click.UsageError(f"-i {key} says no type, and there are no data: write -i {key}:f64[], or -i {key}:f64[3], say")
    return given


def values_of(settings: Sequence[str]) -> tuple[str, ...]:
    """The --set that are values of inputs, without those that are constants of what was built."""
    constants = click.get_current_context().meta.get(_CONSTANTS, ())
    return tuple(setting for setting in settings if setting.partition("=")[0] not in constants)


def words_of(document: Document, source: str, settings: Sequence[str], files: Sequence[str]) -> list[str]:
    """The command that builds what a command has built, as its words."""
    types = {str(key): declared.type for key, declared in document.inputs.items()}
    written = [d.written for d in declared() if d.type is not None or d.constant is not None]
    known = {d.key for d in declared() if d.type is not None or d.constant is not None}
    for setting in settings:
        key = setting.partition("=")[0]
        if key not in known and "@" not in key:
            several = [key] if key in types else covered(key, types)
            written += [f"{each}:{types[each]}" for each in several] or [setting]
    words = [["-i", one] for one in written] + [["--inputs", file] for file in files]
    return ["tidu", "build", source, *(word for pair in words for word in pair)]
