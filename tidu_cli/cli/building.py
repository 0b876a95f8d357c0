"""What a command's argument is, a file, a formula or a function of a file, and documents made of the last two."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from tidu_cli.errors import DocumentError, TypeTextError
from tidu_cli.formats.compression import SUFFIXES
from tidu_cli.formats.files import DOCUMENTS, FORMATS, read_bytes
from tidu_cli.frozen import Frozen
from tidu_cli.installed import source_named

if TYPE_CHECKING:
    from tidu_cli.graph.keys import Key
    from tidu_cli.graph.types import Type


# The option -i: inputs with their types, and constants, of what is built.


F = TypeVar("F", bound=Callable[..., Any])

_INPUTS = "tidu.inputs"
"""Under which click's context holds what -i gives."""


class Declaration(Frozen):
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
    if not key or (colon and not equals) or bracket < len(key) or (" " in text and not equals):
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


def build_option(function: F) -> F:
    """The options -i and --jax of commands that read a document."""
    function = remembered("--jax", is_flag=True, help="FILE.py:FUNCTION is a function of JAX.")(function)
    return inputs_option(
        "Where FILE is FILE.py:FUNCTION, which is run, or a formula: an input and its type, x:f64[3], or a constant, n=5, as JSON "
        "or @FILE; repeats. [default of formulas: numbers, f64[]]"
    )(function)


def remembered(flag: str, *name: str, **how: Any) -> Callable[[F], F]:
    """An option whose value click's context holds under its flag."""

    def remember(ctx: click.Context, param: click.Parameter, value: object) -> None:
        ctx.meta[flag] = value

    return click.option(flag, *name, expose_value=False, callback=remember, **how)


types_option = remembered(
    "--types",
    "type_files",
    multiple=True,
    metavar="FILE",
    help="Values that say the types of what is built, as --inputs does, and are not evaluated at: JSON, npz or msgpack; repeats.",
)
"""The option --types FILE, which repeats."""


def type_files() -> tuple[str, ...]:
    """The files of --types."""
    files: tuple[str, ...] = click.get_current_context().meta.get("--types", ())
    return files


def is_of_jax() -> bool:
    """Whether the running command has --jax."""
    return bool(click.get_current_context().meta.get("--jax"))


def declared() -> list[Declaration]:
    """What the -i of the running command say."""
    declarations: list[Declaration] = click.get_current_context().meta.get(_INPUTS, [])
    return declarations


# What an argument in the place of a file names: a file, FILE.py:FUNCTION, or a formula; and which names that has.


Kind = Literal["file", "function", "formula"]

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
        if not shared and (given := "-i" if declared() else "--types" if type_files() else "--jax" if is_of_jax() else ""):
            takers = "FILE.py:FUNCTION" if given == "--jax" else "FILE.py:FUNCTION and formulas"
            raise click.UsageError(f"{given} is for {takers}, and '{argument}' is a file")
        return "file"
    if is_function(argument):
        file = argument.rpartition(":")[0]
        if not os.path.exists(file):
            raise DocumentError(f"{file}: no such file{_hint(file)}")
        return "function"
    if _is_formula(argument, settings):
        return "formula"
    if hint := _hint(argument):
        raise DocumentError(f"{argument}: no such file{hint}")
    return "file"  # whose reader says why it cannot be read


def is_function(argument: str) -> bool:
    """Whether an argument is FILE.py:FUNCTION."""
    return re.fullmatch(r".*\.py:[A-Za-z_]\w*", argument, re.S) is not None


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


# What was read, and which --set are values.


_READ = "tidu.read"
"""Under which click's context holds what was read of standard input and of pipes."""


def require_once(option: str, keys: Iterable[Key], given: Collection[Key]) -> None:
    """Raises UsageError where an option gives two values to a key."""
    if (twice := next((key for key in keys if key in given), None)) is not None:
        raise click.UsageError(f"{option} gives '{twice}' twice; leave one out")


def bytes_of(file: str) -> bytes:
    """The bytes of a file; those of standard input and of pipes also a second time. Raises DocumentError."""
    if os.path.isfile(file):
        return read_bytes(file)
    read: dict[str, bytes] = click.get_current_context().meta.setdefault(_READ, {})
    if file not in read:
        read[file] = read_bytes(file)
    return read[file]


CONSTANTS = "tidu.constants"
"""Under which click's context holds the keys of --set that became constants."""


def values_of(settings: Sequence[str]) -> tuple[str, ...]:
    """The --set that are values of inputs, without those that are constants of what was built."""
    constants = click.get_current_context().meta.get(CONSTANTS, ())
    return tuple(setting for setting in settings if setting.partition("=")[0] not in constants)
