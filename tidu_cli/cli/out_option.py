"""The options -o and --format: what the name of a result says of its format, and that nothing else is written over."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import click

from tidu_cli.errors import TiduError
from tidu_cli.formats.compression import CompressionError, require_library
from tidu_cli.formats.files import DOCUMENTS, format_of, of_formats, split
from tidu_cli.installed import brought_formats, is_foreign
from tidu_cli.streams import is_stdout

F = TypeVar("F", bound=Callable[..., Any])

_SHOWN = 30
"""As many characters of formats stand beside the option --format in the help; more stand in its text."""


class OpenChoice(click.Choice[str]):
    """Tidu's own formats or engines, and those that other packages bring, which `known` has, too."""

    def __init__(self, own: Sequence[str], brought: Callable[[], Collection[str]]) -> None:
        super().__init__(own)
        self._brought = brought

    @property
    def known(self) -> list[str]:
        """All that may be chosen."""
        return [*self.choices, *self._brought()]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name of a format or an engine."""
        return value if value in self.choices or value in self._brought() else super().convert(value, param, ctx)


def _has_documents(formats: tuple[str, ...]) -> bool:
    return set(DOCUMENTS) <= set(formats)


def result_options(*formats: str, default: str) -> Callable[[F], F]:
    """The options -o and --format, for these formats."""

    def decorate(function: F) -> F:
        shown, names = "|".join(formats), ""
        if len(shown) > _SHOWN:
            shown, names = "FORMAT", f": {', '.join(formats)}"
        text = f"The format, where OUT has no suffix that says it{names}. [default: {default}]"
        # Read first, as it decides which names -o takes.
        choice = OpenChoice(formats, lambda: brought_formats() if _has_documents(formats) else ())
        function = click.option("--format", "format_", type=choice, is_eager=True, metavar=shown, help=text)(function)
        return out_option(*formats)(function)

    return decorate


def out_option(*formats: str) -> Callable[[F], F]:
    """The option -o of a command that writes these formats: its name has the suffix of one of them, or none.

    Another suffix that is of no format at all goes where --format is given, and of what is there and no file, such as a pipe.
    """

    def fitting(ctx: click.Context, param: click.Parameter, out: str | None) -> str | None:
        if out in (None, "-"):
            return out
        chosen = ctx.params.get("format_")
        complaint = _complaint(out, chosen, formats, "format_" in ctx.params)
        if complaint is None and not is_stdout(out) and not ctx.meta.get("--force"):
            complaint = _not_to_lose(out, chosen, formats)
        if complaint:
            raise click.BadParameter(complaint, ctx, param)
        return out

    def force(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        ctx.meta["--force"] = value

    text = f"Write to this file, whole or not at all: {of_formats(formats)}; .gz and .zst after it compress. "
    out_option = click.option("-o", "out", metavar="OUT", callback=fitting, help=f"{text}[default: standard output]")
    text = "Write over OUT whatever it is: also what the command reads, and files that are not results."
    force_option = click.option("--force", is_flag=True, is_eager=True, expose_value=False, callback=force, help=text)
    return lambda function: out_option(force_option(function))


def _complaint(out: str, chosen: str | None, formats: tuple[str, ...], has_format: bool) -> str | None:
    """What is wrong with the name of a file for a result of these formats; `chosen` is that of --format."""
    if not out:
        return "the name is empty"  # as of "$OUT" that no one has set
    (suffix, compression), kind = split(out), format_of(out)
    try:
        require_library(compression)
    except CompressionError as error:
        return f"'{out}': {error}"
    if out.endswith(os.sep) and kind != "zarr":
        return f"'{out}' ends in a slash, which means a folder, and a file is written; leave out the slash"
    if not suffix:
        return None
    if kind in formats or (is_foreign(kind) and _has_documents(formats)):
        return None if chosen in (None, kind) else f"'{out}' ends in '{suffix}', and --format says {chosen}; leave out one of them"
    if kind == "table":
        kind = None  # text may be of many kinds
    if kind is None and (chosen or _is_special(out)):
        return None
    way = ", or give --format" if kind is None and has_format else f"; {_ELSEWHERE[kind]}" if kind in _ELSEWHERE else ""
    return f"'{out}' ends in '{suffix}', which is not a format of the result; end it in {of_formats(formats)}{way}"


_ELSEWHERE = {
    "html": "pages are what tidu view makes",
    **dict.fromkeys(("dot", "svg", "png", "pdf"), "pictures are what tidu dot draws"),
    **dict.fromkeys(("csv", "npy", "npz", "mtx", "zarr"), "values are what tidu eval writes"),
    **dict.fromkeys(DOCUMENTS, "documents are what tidu convert writes"),
}
"""Who writes a format."""


def _not_to_lose(out: str, chosen: str | None, formats: tuple[str, ...]) -> str | None:
    """Why a file that is there is not to be written over: its contents do not say that it is a result. Any text is CSV."""
    named = by_suffix if (by_suffix := format_of(out)) in formats or is_foreign(by_suffix) else None
    if named == "csv" or _is_special(out) or not os.path.exists(out):
        return None
    from tidu_cli.formats.detect import format_found

    try:
        there = format_found(out)
    except (OSError, TiduError):
        there = None
    if there is None:
        return f"'{out}' exists, and is not a document or other result, so it is not written over; give another name, or --force"
    result = chosen or named
    if is_foreign(there) and result not in (None, there):
        return f"'{out}' is there, and is a model ({there}), which {result} does not replace; give another name, or --force"
    return None


def _is_special(out: str) -> bool:
    return os.path.exists(out) and not os.path.isfile(out)
