"""Documents that are built where they are asked for: of FILE.py:FUNCTION or of a formula, in the place of a file.

It is imported where one is built.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import click

from tidu_cli.cli.building import CONSTANTS, Kind, bytes_of, declared, is_of_jax, require_once, type_files
from tidu_cli.cli.messages import note
from tidu_cli.errors import UnknownNameError
from tidu_cli.formats.files import note_read
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.select import covered, listed
from tidu_cli.graph.sizes.open import are_there_open_sizes
from tidu_cli.installed import source_named

if TYPE_CHECKING:
    from tidu_cli.port_data import Data, Given


def names_of(source: str, kind: Kind) -> Collection[str] | None:
    """The names that a source has for inputs, None if any may be one."""
    return source_named(kind).names(source)


def require_all_taken(sources: Sequence[tuple[str, Kind]]) -> None:
    """Raises UnknownNameError for an -i that none of several documents has a name for."""
    known = [names_of(source, kind) for source, kind in sources if kind != "file"]
    for one in declared():
        if all(names is not None and one.key.partition(".")[0] not in names for names in known):
            raise UnknownNameError(f"none of the documents has an input '{one.key}'")


# Data that say the types of what is built: the values of --set and --inputs, as they stand.


def data_of(settings: Sequence[str], files: Sequence[str]) -> Data:
    """The data that types come from. Raises UsageError for an -i without type that they do not have, TiduError."""
    from tidu_cli.port_data import Data

    of_files, of_settings = _plain_values((), files), _plain_values(settings, ())
    for key, axis in _axes().items():
        for values in (of_files, of_settings):
            if key in values:
                values[key] = _item(values[key], axis)
    untyped = [d for d in declared() if d.type is None and d.constant is None]
    values = of_files | of_settings
    for one in untyped:
        if not any(key == one.key or key.startswith(f"{one.key}.") for key in values):
            raise click.UsageError(
                f"no type given for input {one.key}, and the data have no '{one.key}': write -i {one.key}:f64[], say"
            )
    first = [one.key for one in untyped if one.key in values]
    return Data({key: values[key] for key in dict.fromkeys([*first, *values])}, frozenset(of_settings))


def _axes() -> dict[str, int]:
    """The axes of --batch, which the types of what is built do not have."""
    pairs = [setting.rpartition("=") for setting in click.get_current_context().params.get("batches", ())]
    return {key: int(axis) for key, _, axis in pairs if axis.removeprefix("-").isdecimal()}


def _item(values: Any, axis: int) -> Any:
    """One of a batch of values along an axis; all of them where there is no such axis, of which evaluation tells."""
    if isinstance(values, Literal):
        import numpy as np

        from tidu_cli.lax.arrays.dtypes import literal_array

        values = literal_array(np, values)
    if hasattr(values, "shape"):
        return values.take(0, axis) if -values.ndim <= axis < values.ndim and values.size else values
    if not isinstance(values, list) or not values:
        return values
    depth, level = 0, values
    while isinstance(level, list) and level:
        depth, level = depth + 1, level[0]
    axis += depth if axis < 0 else 0
    return values[0] if axis == 0 else [_item(part, axis - 1) for part in values] if axis > 0 else values


def _plain_values(settings: Sequence[str], files: Sequence[str]) -> dict[str, object]:
    """The values of --inputs files, then of --set, by names of inputs of unknown types, as they stand. Raises TiduError."""
    from tidu_cli.formats.detect import read_constant
    from tidu_cli.formats.values import parse_assignment, read_values

    values: dict[Key, object] = {}
    for file in files:
        data = bytes_of(file)
        values |= read_values(data, "stdin" if file == "-" else file, None if data[:2] == b"PK" else {})
    assigned: set[Key] = set()
    for setting in dict.fromkeys(settings):
        text, _, value = setting.partition("=")
        key = parse_key(text)
        require_once("--set", [key], assigned)
        assigned.add(key)
        holds_objects = "{" in value and not value.startswith("@")
        values[key] = read_constant(value, f"--set {text}") if holds_objects else parse_assignment(setting, [key])[1]
    return {key.name: value for key, value in values.items() if not key.path}


def tell(source: str, kind: Kind, data: Data) -> None:
    """Tell what a builder left out, and took for a constant."""
    what = "the formula" if kind == "formula" else source.rpartition(":")[2]
    if data.untaken:
        note(f"{what} does not take {listed(data.untaken)}")
    if data.constants:
        told = listed([f"{key}={value}" for key, value in data.constants.items()])
        note(f"constants of {what} that are not inputs: {told}; -i {next(iter(data.constants))}:i64[] makes an input")


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
        note_read(source.rpartition(":")[0])
    evaluates = bool(settings or files)  # which tells itself what has no value
    if (jax := jax or (is_of_jax() and (kind == "function" or not shared))) and kind != "function":
        raise click.UsageError(f"--jax takes FILE.py:FUNCTION, not '{source}'")
    files = (*type_files(), *files)
    given = _given(source, kind, settings, files, shared)
    data = data_of(settings, files) if settings or files else None
    how = {"name": None, "outputs": ()} | how
    document: Document = source_named("jax" if jax else kind).build(source, given, data=data, **how)
    if kind == "formula" and (given or data) and not evaluates:
        known = {*given, *(data.values if data else ())}
        if numbers := [str(key) for key in document.inputs if str(key) not in known]:
            note(f"no type is given of {listed(numbers)}: a number each, f64[]; -i {numbers[0]}:TYPE says otherwise")
    if data is not None:
        inputs = {str(key) for key in document.inputs}
        keys = {setting.partition("=")[0] for setting in settings}
        constants = {key for key in keys if key not in inputs and "@" not in key and not covered(key, inputs)}
        click.get_current_context().meta[CONSTANTS] = constants
        tell(source, kind, data)
    return document


def _given(source: str, kind: Kind, settings: Sequence[str], files: Sequence[str], shared: bool) -> dict[str, Given]:
    """What -i says of a source, without the keys whose types data says. Raises UsageError, DocumentError."""
    from tidu_cli.formats.detect import read_constant
    from tidu_cli.port_data import Static

    names = names_of(source, kind) if shared else None
    given: dict[str, Given] = {}
    for one in declared():
        key, type_, constant = one.key, one.type, one.constant
        if type_ is not None:
            given[key] = type_
        elif constant is not None:
            from tidu_cli.cli.mistakes import require_no_type

            require_no_type(key, constant)
            given[key] = Static(read_constant(constant, f"-i {key}"))
        elif not settings and not files and (names is None or key.partition(".")[0] in names):
            raise click.UsageError(f"no type given for input {key}, and no data: write -i {key}:f64[], or -i {key}:f64[3], say")
    given = _with_sizes(given) if are_there_open_sizes() else given
    return given if names is None else {key: x for key, x in given.items() if key.partition(".")[0] in names}


def _with_sizes(given: dict[str, Given]) -> dict[str, Given]:
    """Types with sizes that constants say: with -i x:f64[n] -i n=5, x is f64[5]. Raises TransformError for a size below 1."""
    from tidu_cli.port_data import Static
    from tidu_cli.runtime.sizing import types_with

    numbers = {key: x.value for key, x in given.items() if isinstance(x, Static) and type(x.value) is int}
    return given | types_with({key: x for key, x in given.items() if not isinstance(x, Static)}, numbers)


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
    written += [f"{key}:{types[key]}" for key in _axes() if key in types and not any(one.startswith(f"{key}:") for one in written)]
    words = [["-i", one] for one in written] + [["--types", file] for file in type_files()] + [["--inputs", file] for file in files]
    return ["tidu", "build", source, *["--jax"] * is_of_jax(), *(word for pair in words for word in pair)]
