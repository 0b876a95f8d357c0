"""Ways out of mistakes on the command line that many make. It is imported where one was made."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import click

from tidu_cli.errors import did_you_mean, printable

_MEANT = {
    "plot draw graph render": "tidu view opens a page, and tidu dot -o f.svg writes a picture",
    "run evaluate call predict": "tidu eval evaluates",
    "gradient differentiate backward reverse": "tidu grad derives a gradient, and tidu vjp reverse mode",
    "forward tangent": "tidu jvp derives forward mode",
    "print cat list": "tidu show prints a document",
    "trace import": "tidu build makes a document of a formula or a function",
    "export save": "tidu convert -o FILE writes another format",
    "fit train solve": "tidu minimize fits inputs, and tidu step makes a training step",
    "simplify optimize": "tidu materialize --simplify simplifies",
    "validate verify test": "tidu check checks",
    "merge join link": "tidu compose puts documents together",
}
"""What people call commands that have another name."""


def meant(word: str, commands: Sequence[str]) -> str:
    """What follows a word that is no command."""
    if hint := did_you_mean(word, list(commands)):
        return hint
    return next((f"; {way}" for words, way in _MEANT.items() if word.lower() in words.split()), "; tidu --help lists them")


def with_way_out(failure: click.UsageError) -> click.UsageError:
    """The failure with what its words allow to guess. These are of the command line, and are made printable."""
    message = failure.message
    if isinstance(failure, click.NoSuchOption) and failure.possibilities and (hint := _closest(failure)):
        failure.possibilities = [hint]  # type: ignore[misc]  # final by annotation
    elif (extra := re.fullmatch(r"Got unexpected extra arguments? \((\S+=\S*).*\)", message, re.S)) and failure.ctx:
        flags = {flag for parameter in failure.ctx.command.params for flag in parameter.opts}
        message += f"; a value is --set {extra[1]}" if "--set" in flags else ""
    elif isinstance(failure, click.MissingParameter) and failure.param and "--wrt" in failure.param.opts:
        message = "Write which input to differentiate by: --wrt x, or --wrt '*' for all"
    failure.message = "\n".join(map(printable, message.split("\n")))  # type: ignore[misc]  # final by annotation
    return failure


def _closest(failure: click.NoSuchOption) -> str:
    """The option that differs least from the one that was written: by letters that changed places, then by letters."""
    written = sorted(failure.option_name)
    same = [option for option in failure.possibilities or () if sorted(option) == written]
    return same[0] if same else did_you_mean(failure.option_name, list(failure.possibilities or ())).partition("'")[2][:-2]


def near(path: str) -> str:
    """A hint of a file of nearly that name."""
    folder, name = os.path.split(path)
    stem = os.path.splitext(name)[0]
    try:
        files = {os.path.splitext(entry.name)[0]: entry.name for entry in os.scandir(folder or ".") if entry.is_file()}
    except (OSError, ValueError):
        return ""
    close = did_you_mean(stem, sorted(files)).partition("'")[2][:-2]
    return f"; did you mean '{os.path.join(folder, files[close])}'?" if close in files else ""


def way_to_write(text: str) -> str:
    """What follows a text that names no file, and may be meant as a formula."""
    if product := re.fullmatch(r"([0-9.]+)([A-Za-z_]\w*)", text):
        return f"; in a formula the product is {product[1]}*{product[2]}"
    return f"; as a formula write '({text})'" if re.fullmatch(r"[0-9.]+([/-][0-9.]+)+", text) else ""


def require_no_type(key: str, constant: str) -> None:
    """Raises UsageError for -i x=f64[3] or x=float64[3], which are meant as x:f64[3]."""
    from tidu_cli.graph.types import type_hint

    text = constant.strip()
    hint = type_hint(text).partition("did you mean '")[2].removesuffix("'?")
    if hint or re.fullmatch(r"[a-z]+[0-9]*\[[0-9, ]*\]", text):
        raise click.UsageError(f"-i {key}={constant} gives a constant; a type follows a colon: -i {key}:{hint or text}")


def axis_instead(setting: str) -> str:
    """What --batch is given where there is no axis: a key alone, or a number."""
    if setting.isdecimal():
        return f"'{setting}' is not KEY=AXIS, such as x=0: an input, and the axis along which there are many values of it"
    return f"'{setting}' is without an axis; write --batch {setting}=0 for values along the first axis"
