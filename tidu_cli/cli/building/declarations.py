"""The option -i: inputs with their types, and constants, of what is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from tidu_cli.errors import TypeTextError

if TYPE_CHECKING:
    from tidu_cli.graph.types import Type

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
    from tidu_cli.graph.text.types import parse_value_type

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
        found: dict[str, Declaration] = {}
        for each in texts:
            try:
                one = declaration(each)
            except TypeTextError as error:
                raise click.BadParameter(str(error), ctx, param) from None
            if one.key in found:
                raise click.BadParameter(f"'{one.key}' is given twice", param_hint="'-i'")
            found[one.key] = one
        ctx.meta[_INPUTS] = list(found.values())

    return click.option("-i", "--input", multiple=True, metavar="KEY:TYPE", expose_value=False, callback=remember, help=text)


build_option = inputs_option(
    "Where FILE is FILE.py:FUNCTION, which is run, or a formula: an input and its type, x:f64[3], or a constant, n=5, as JSON or "
    "@FILE; repeats."
)
"""The option -i of commands that read a document."""


def declared() -> list[Declaration]:
    """What the -i of the running command say."""
    found: list[Declaration] = click.get_current_context().meta.get(_INPUTS, [])
    return found
