"""What the shorthands share: options, running or telling the pipeline, and evaluating its result."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import (
    chosen_format,
    emit,
    emit_bytes,
    emit_text,
    example,
    file_argument,
    load,
    output_keys_option,
    require_printable,
    require_stdin_once,
    result_options,
)
from tidu_cli.cli.value_options import given_values, inputs_option, set_option

if TYPE_CHECKING:
    from tidu_cli.graph.graph import Document
    from tidu_cli.graph.literals import Literal
    from tidu_cli.transforms.shorthands import Pipeline, Stage

F = TypeVar("F", bound=Callable[..., Any])


def shorthand(name: str, shown: str, *options: Callable[[F], F]) -> Callable[[Callable[..., dict[str, Any]]], click.Command]:
    """The command of a transform of `transforms.shorthands`; the function makes arguments of the transform of the options' values.

    `shown` is its example. It has the argument FILE, these options and those of every shorthand.
    """
    shared: tuple[Callable[[Any], Any], ...] = (
        file_argument,
        output_keys_option,
        set_option("An input's value: evaluate, and print values in place of the document; repeats."),
        inputs_option,
        click.option("--pipeline", "tell", is_flag=True, help="Print the pipeline of commands that does the same, and stop."),
        result_options("json", "msgpack", "npz", default="what came in; of values json"),
    )

    def decorate(arguments: Callable[..., dict[str, Any]]) -> click.Command:
        @wraps(arguments)
        def command(**given: Any) -> None:
            from tidu_cli.transforms import shorthands

            how = {key: given.pop(key) for key in ("file", "settings", "files", "tell", "out", "format_")}
            derive: Callable[..., Pipeline] = getattr(shorthands, name)
            _run(lambda document: derive(document, **arguments(**given)), **how)

        decorated: Any = command
        for option in reversed((*options, *shared)):
            decorated = option(decorated)
        return click.command(cls=Command, epilog=example(shown))(decorated)

    return decorate


def value_option(function: F) -> F:
    """The flag --value."""
    return click.option("--value", is_flag=True, help="Give the values of the outputs, too, before the derivative.")(function)


def _run(
    derive: Callable[[Document], Pipeline],
    *,
    file: str,
    settings: tuple[str, ...],
    files: tuple[str, ...],
    tell: bool,
    out: str | None,
    format_: str | None,
) -> None:
    """Read a document, derive, and print the result: the document, values with --set or --inputs, commands with --pipeline."""
    require_stdin_once(file, *files)
    evaluates = bool(settings or files)
    if not evaluates and chosen_format(out, format_, "json") == "npz":
        raise click.UsageError("npz is for values; give them with --set or --inputs, or write the document as json or msgpack")
    if not tell:
        require_printable(out, chosen_format(out, format_, "json"))
    document, came_in = load(file)
    run = derive(document)
    if tell:
        emit_text(_commands(run, file, settings, files, out, format_))
    elif not evaluates:
        emit(run.document, out, format_, came_in)
    else:
        from tidu_cli.formats.values import write_values
        from tidu_cli.runtime.evaluate import evaluate

        values = given_values(run.document, settings, files)
        graph = run.document.head
        types = {o.key: o.type for o in graph.outputs}
        emit_bytes(write_values(evaluate(graph, values), chosen_format(out, format_, "json"), types), out)


def _commands(
    run: Pipeline,
    file: str,
    settings: Sequence[str],
    files: Sequence[str],
    out: str | None,
    format_: str | None,
) -> str:
    commands = [["tidu", *_words(stage)] for stage in run.stages]
    commands[0][2:2] = [] if file == "-" else [file]
    if settings or files:
        commands.append(["tidu", "eval", *_repeated("--set", settings), *_repeated("--inputs", files)])
    commands[-1] += [*_repeated("-o", [out] if out else []), *_repeated("--format", [format_] if format_ else [])]
    return " | ".join(" ".join(map(_quoted, command)) for command in commands)


def _quoted(word: str) -> str:
    """A word for the shell; one that would not print by the numbers of its bytes, as bash, zsh, ksh and POSIX 2024 take it."""
    if word.isprintable():
        return shlex.quote(word)
    spelled = word.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{''.join(c if c.isprintable() else _octal(c) for c in spelled)}'"


def _octal(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(character))


def _words(stage: Stage) -> list[str]:
    """A stage as a command's words."""
    options = stage.options
    settings = [f"{key}={_number(literal)}" for key, literal in options.get("fixed", {}).items()]
    words = [*_repeated("--wrt", options.get("wrt", ())), *_repeated("--output", options.get("outputs", ()))]
    return [stage.transform.__name__, *words, *_repeated("--set", settings), *["--holomorphic"] * options.get("holomorphic", False)]


def _number(literal: Literal) -> str:
    # Shorthands fix real numbers, and those of a complex type: JSON has them as their real part.
    from tidu_cli.graph.literals import literal_to_numbers

    return f"{literal_to_numbers(literal)[0]:g}"


def _repeated(option: str, values: Sequence[object]) -> list[str]:
    return [word for value in values for word in (option, str(value))]
