"""Values of inputs as commands take them: --set KEY=VALUE and --inputs FILE."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidu_cli.cli.options import shown
from tidu_cli.errors import KeyTextError, TransformError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key, parse_key

if TYPE_CHECKING:
    from tidu_cli.graph.literals import Literal

F = TypeVar("F", bound=Callable[..., Any])


def set_option(text: str) -> Callable[[F], F]:
    """The option --set KEY=VALUE, which repeats; `text` is its help."""

    def checked(ctx: click.Context, param: click.Parameter, settings: tuple[str, ...]) -> tuple[str, ...]:
        for setting in settings:
            require_assignment(setting)
        return settings

    return click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", callback=checked, help=text)


def inputs_option(function: F) -> F:
    """The option --inputs FILE, which repeats."""
    text = "Values of inputs by key: JSON, npz or msgpack; repeats."
    return click.option("--inputs", "files", multiple=True, metavar="FILE", help=text)(function)


def require_assignment(setting: str) -> None:
    """Raises BadParameter unless some = has a key to its left: which one it is, the document says, as names may hold one."""
    complaint = f"'{setting}' is not KEY=VALUE, such as x=3 or x=[1,2]"
    for at in reversed([at for at, character in enumerate(setting) if character == "="]):
        try:
            parse_key(setting[:at])
            return
        except KeyTextError as error:
            complaint = str(error)
    raise click.BadParameter(complaint, param_hint="'--set'")


def given_values(
    document: Document, settings: tuple[str, ...], files: tuple[str, ...], *, derived_from: Document | None = None
) -> dict[Key, object]:
    """The values of --inputs files, then of --set, which wins. Raises TiduError for what is malformed, unknown or bound.

    What `document` is `derived_from` may declare more inputs than it needs itself.
    """
    from tidu_cli.documents.files import read_bytes
    from tidu_cli.documents.values import parse_assignment, read_values

    given: dict[Key, object] = {}
    for file in files:
        given.update(read_values(read_bytes(file), shown(file)))
    known = known_keys(document) | (known_keys(derived_from) if derived_from else set())
    assigned = dict(parse_assignment(setting, known) for setting in settings)
    for binding in document.bindings:
        if binding.key in assigned:
            graph = document.graphs[binding.graph].name
            raise TransformError(f"input '{binding.key}' is bound to a value of graph '{graph}', so it cannot be set")
    return given | assigned


def given_literals(document: Document, settings: tuple[str, ...]) -> dict[Key, Literal]:
    """The values of --set as constants of the declared types. Raises TiduError for the malformed, unknown or mistyped."""
    from tidu_cli.documents.values import parse_assignment
    from tidu_cli.runtime.evaluate import input_literal

    declared = {i.key: i.type for graph in document.graphs for i in graph.inputs}
    assigned = dict(parse_assignment(setting, declared) for setting in settings)
    return {key: input_literal(key, declared[key], value) for key, value in assigned.items()}


def known_keys(document: Document) -> set[Key]:
    """The keys that --set takes: declared inputs, and what other keys are tangents or cotangents of.

    The latter since materialize drops inputs that nothing depends on: where x@2 is declared, x is no typing error, only not needed.
    """
    known = {i.key for graph in document.graphs for i in graph.inputs}
    return known | {Key(key.name, key.path[:depth]) for key in document.every_key() for depth in range(len(key.path))}
