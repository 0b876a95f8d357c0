"""What a command's argument is, a file, a formula or a function of a file, and documents made of the last two."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import click

from tidu_cli.cli.messages import note
from tidu_cli.errors import DocumentError, TypeTextError, UnknownNameError
from tidu_cli.formats.compression import SUFFIXES
from tidu_cli.formats.files import DOCUMENTS, FORMATS
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.select import covered, listed
from tidu_cli.installed import source_named

if TYPE_CHECKING:
    from tidu_cli.graph.graph import Document
    from tidu_cli.graph.types import Type
    from tidu_cli.port_data import Data, Given


# The option -i: inputs with their types, and constants, of what is built.


F = TypeVar("F", bound=Callable[..., Any])

_INPUTS = "tidu.inputs"
"""Under which click's context holds what -i gives."""


class Declaration(NamedTuple):
    """What an -i says: of a key the type, or as text a constant, or nothing but the key."""

    key: str
    type: Type | None
    constant: str | None
    written: str


def declaration(text: str) -> Declaration:
    """KEY:TYPE, KEY=VALUE or KEY. Raises TypeTextError."""
    from tidu_cli.graph.text import parse_value_type

    # Keys may hold colons, and types of records do, after a bracket.
    bracket = min(at for at in (text.find("{"), text.find("("), len(text)) if at >= 0)
    typed, colon, _ = text[:bracket].rpartition(":")
    key, equals, value = text.partition("=")
    if typed and colon:
        try:
            return Declaration(typed, parse_value_type(text[len(typed) + 1 :]), None, text)
        except TypeTextError:
            if not equals or ":" in key:
                raise
    if not key or (colon and not equals) or bracket < len(key):
        raise TypeTextError(f"'{text}' is not KEY:TYPE, such as x:f64[3] or x:f64[], or KEY=VALUE, such as n=5")
    return Declaration(key, None, value if equals else None, text)


def inputs_option(text: str) -> Callable[[F], F]:
    """The option -i, which repeats; click's context holds what it gives. `text` is its help."""

    def remember(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> None:
        declarations: dict[str, Declaration] = {}
        for each in texts:
            try:
                one = declaration(each)
            except TypeTextError as error:
                raise click.BadParameter(str(error), ctx, param) from None
            if one.key in declarations:
                raise click.BadParameter(f"'{one.key}' is given twice", param_hint="'-i'")
            declarations[one.key] = one
        ctx.meta[_INPUTS] = list(declarations.values())

    return click.option("-i", "--input", multiple=True, metavar="KEY:TYPE", expose_value=False, callback=remember, help=text)


build_option = inputs_option(
    "Where FILE is FILE.py:FUNCTION, which is run, or a formula: an input and its type, x:f64[3], or a constant, n=5, as JSON or "
    "@FILE; repeats."
)
"""The option -i of commands that read a document."""


def declared() -> list[Declaration]:
    """What the -i of the running command say."""
    declarations: list[Declaration] = click.get_current_context().meta.get(_INPUTS, [])
    return declarations


# What an argument in the place of a file names: a file, FILE.py:FUNCTION, or a formula; and which names that has.


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
            raise DocumentError(f"{file}: no such file{_hint(file)}")
        return "function"
    if _is_formula(argument, settings):
        return "formula"
    if hint := _hint(argument):
        raise DocumentError(f"{argument}: no such file{hint}")
    return "file"  # whose reader says why it cannot be read


def _hint(path: str) -> str:
    from tidu_cli.cli.mistakes import near, way_to_write

    return near(path) or way_to_write(path)


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


# Data that say the types of what is built: the values of --set and --inputs, as they stand.


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
            raise click.UsageError(
                f"no type given for input {one.key}, and the data have no '{one.key}': write -i {one.key}:f64[], say"
            )
    first = [one.key for one in untyped if one.key in values]
    return Data({key: values[key] for key in dict.fromkeys([*first, *values])}, frozenset(of_settings))


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


def require_once(option: str, keys: Iterable[Key], given: Collection[Key]) -> None:
    """Raises UsageError where an option gives two values to a key."""
    if (twice := next((key for key in keys if key in given), None)) is not None:
        raise click.UsageError(f"{option} gives '{twice}' twice; leave one out")


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
        note(f"constants of {what} that are not inputs: {told}; -i {next(iter(data.constants))}:i64[] makes an input")


# Documents that are built where they are asked for: of FILE.py:FUNCTION or of a formula, in the place of a file.


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
        from tidu_cli.formats.files import note_read

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
    from tidu_cli.formats.detect import read_constant
    from tidu_cli.port_data import Static

    names = names_of(source, kind) if shared else None
    given: dict[str, Given] = {}
    for key, type_, constant, _ in declared():
        if names is not None and key.partition(".")[0] not in names:
            continue
        if type_ is not None:
            given[key] = type_
        elif constant is not None:
            from tidu_cli.cli.mistakes import require_no_type

            require_no_type(key, constant)
            given[key] = Static(read_constant(constant, f"-i {key}"))
        elif not settings and not files:
            raise click.UsageError(f"no type given for input {key}, and no data: write -i {key}:f64[], or -i {key}:f64[3], say")
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
