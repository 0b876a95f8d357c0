"""What commands share: reading the document, writing the result, keys as parameters, and examples in the help."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial, wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from tidu_cli.cli.building import build_option, kind_of, remembered
from tidu_cli.cli.messages import detail, is_terminal, is_verbose, note, paused
from tidu_cli.cli.out_option import result_options
from tidu_cli.errors import DocumentError, TiduError, counted, printable
from tidu_cli.formats.files import DOCUMENTS, OWN, Source, format_of, reading
from tidu_cli.graph.graph import Document
from tidu_cli.installed import declared_options, format_named, is_foreign, recognized
from tidu_cli.options import OPTIONS
from tidu_cli.port_data import STOP, Imported, Option
from tidu_cli.streams import data_stream

if TYPE_CHECKING:
    from tidu_cli.rules.vocabulary import PrimitiveSet

F = TypeVar("F", bound=Callable[..., Any])

BINARY = frozenset({"msgpack", "npy", "npz", "png", "pdf"})
"""Formats of tidu's own that are not printed to a terminal."""

_PRIMITIVES = "tidu.primitives"
"""Under which click's context holds the primitives of `known_primitives`."""

_TOLD = 6  # how many graphs --verbose tells of, the last ones


class Parsed(click.ParamType[Any]):
    """A parameter that a function reads from its text. What it refuses, with a TiduError, is wrong usage."""

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the text."""
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except TiduError as error:
            self.fail(str(error), param, ctx)


class Whole(click.IntRange):
    """A whole number from `min` on, or to `max`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the text."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(
                f"'{value}' is not a whole number from {self.min} {'on' if self.max is None else f'to {self.max}'}", param, ctx
            )


def option(name: str, **more: Any) -> Callable[[F], F]:
    """The option of the table `OPTIONS` with this name in Python; `more` is what click takes besides or instead."""
    return click.option(OPTIONS[name].flag, name, **_settings(OPTIONS[name]) | more)


def click_option(known: Option) -> click.Option:
    """An option that a format declares."""
    return click.Option([known.flag, known.name], **_settings(known))


def _settings(known: Option) -> dict[str, Any]:
    kind = click.Choice(known.choices) if known.choices else None if known.parse is str else Parsed(known.name, known.parse)
    how: dict[str, Any] = {"is_flag": True} if known.is_flag else {"type": kind, "multiple": known.pairs or known.repeats}
    return {**how, "metavar": known.metavar or None, "help": known.help}


class Loaded(NamedTuple):
    """A document that was read, and the format it came in."""

    document: Document
    format: str


def file_argument(function: F) -> F:
    """The argument FILE: a document, by default standard input. With it come the options -i, --ops, --plugins and --plain."""
    return click.argument("file", default="-", metavar="[FILE]")(build_option(ops_option(plain_option(function))))


def ops_option(function: F) -> F:
    """The options --ops FILE and --plugins NAME, which repeat: where documents that `load` reads find ops besides their own."""
    return _remembered("ops")(plugins_option(function))


def _remembered(name: str) -> Callable[[F], F]:
    """The option of the table with this name, whose value click's context holds under its flag."""
    return remembered(OPTIONS[name].flag, name, **_settings(OPTIONS[name]))


plugins_option = _remembered("plugins")
"""The option --plugins NAME, which repeats: the packages that may be imported for ops of documents that `load` reads."""

plain_option = _remembered("plain")
"""The flag --plain, of which `is_plain` tells."""


def is_plain() -> bool:
    """Whether files of other systems are read by what they run."""
    return bool(click.get_current_context().meta.get("--plain"))


document_output_options = result_options(*DOCUMENTS, default="what came in")
"""The options -o and --format of commands that write a document."""


def example(*lines: str) -> str:
    """The epilog that shows a runnable example."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


def load(file: str, settings: Sequence[str] = (), files: Sequence[str] = (), *, shared: bool = False) -> Loaded:
    """Read and check a document, with the ops of --ops, or build it of FILE.py:FUNCTION or a formula. Raises TiduError.

    What is built takes types that -i does not say from the values of `settings` and `files`, those of --set and --inputs; where -i
    is `shared` by several documents, each takes what it has names for.
    """
    imported, format_ = load_imported(file, None, settings, files, shared=shared)
    return Loaded(imported.document, format_)


def load_imported(
    file: str,
    options: Mapping[str, Any] | None = None,
    settings: Sequence[str] = (),
    files: Sequence[str] = (),
    *,
    shared: bool = False,
    sizes: Mapping[str, str] | None = None,
) -> tuple[Imported, str]:
    """Likewise, with weights and notes of a file of another system, and options of its format. Prints notes. Raises as `load`."""
    kind = kind_of(file, settings, shared=shared)
    if kind == "file":
        return _imported(file, options, sizes)
    for name in (name for name in options or () if name != STOP):
        owner, option = declared_options("reading")[name]
        raise DocumentError(f"{file} is a {kind}, and {option.flag} is for {owner.subject}; leave it out")
    from tidu_cli.cli.sources import built

    document = built(file, kind, settings, files, shared=shared)
    detail(f"built {file}: {_told(document)}")
    imported = Imported(document, {})
    if options or sizes:
        from tidu_cli.formats.read import as_asked

        imported = as_asked(imported, options, sizes)
    return imported, "json"


def _imported(file: str, options: Mapping[str, Any] | None = None, sizes: Mapping[str, str] | None = None) -> tuple[Imported, str]:
    from tidu_cli.formats.read import parse_imported

    imported, format_ = _read(file, partial(parse_imported, options=options, plain=is_plain(), sizes=sizes))
    tell_notes(file, imported)
    return imported, format_


def tell_notes(file: str, imported: Imported) -> None:
    """Tell what the reader of a model notes."""
    for text in imported.notes:
        note(f"{shown(file)}: {text}")


def load_all(files: Sequence[str]) -> tuple[list[Document], list[str], str]:
    """Read several documents: with how messages name them, and the format of the first. Raises as `load`, and UsageError."""
    require_stdin_once(*files)
    require_names(files)
    sources = [load(file, shared=len(files) > 1) for file in files]
    return [source.document for source in sources], list(map(shown, files)), sources[0].format


def require_names(files: Sequence[str]) -> None:
    """Raises UnknownNameError for an -i that none of several documents has a name for."""
    if len(files) > 1:
        from tidu_cli.cli.sources import require_all_taken

        require_all_taken([(file, kind_of(file, shared=True)) for file in files])


def load_subject(
    file: str, files: Sequence[str] = (), *, shared: bool = False
) -> tuple[Document | Imported | PrimitiveSet | bytes, str]:
    """Read a document, or a library: then its ops with the built-in ones; of a file of another system its bytes. And the format.

    What is built, is built as `load` says. Raises TiduError.
    """
    from tidu_cli.formats.read import parse_subject

    kind = kind_of(file, shared=shared)
    if kind != "file":
        from tidu_cli.cli.sources import built

        return built(file, kind, (), files, shared=shared), kind

    def parse(source: Source, where: str, primitives: PrimitiveSet) -> tuple[Any, str]:
        if format_ := recognized(source):
            return source.read(), format_.name
        return parse_subject(source, where, primitives)

    return _read(file, parse)


def _read(file: str, parse: Callable[[Source, str, PrimitiveSet], tuple[Any, str]]) -> tuple[Any, str]:
    with reading(file, "document") as source:
        subject, format_ = parse(source, shown(file), known_primitives())
    if is_verbose():
        read = subject.document if isinstance(subject, Imported) else subject
        told = f", {_told(read)}" if isinstance(read, Document) else ""
        told = told if isinstance(read, Document | bytes) else f", {counted(len(read.definitions), 'op')}"
        detail(f"read {shown(file)}: {format_}, {counted(source.n_read, 'byte')}{told}")
    return subject, format_


def known_primitives() -> PrimitiveSet:
    """The built-in primitives, and those of --ops and --plugins. Raises DocumentError, UnknownNameError."""
    from tidu_cli.custom.packages import known_with

    meta = click.get_current_context().meta
    if _PRIMITIVES not in meta:  # once, also where a command loads several documents
        primitives = known_with(meta.get("--plugins", ()))
        if libraries := meta.get("--ops", ()):
            from tidu_cli.formats.read import parse_library

            for library in libraries:
                with reading(library) as source:
                    primitives = parse_library(source, shown(library), primitives)
        meta[_PRIMITIVES] = primitives
    known: PrimitiveSet = meta[_PRIMITIVES]
    return known


def _told(document: Document) -> str:
    """What --verbose says of a document."""
    graphs = [
        f"'{graph.name}' of {counted(graph.n_nodes, 'node')}{'' if graph.linear is None else f', linear in pass {graph.linear}'}"
        for graph in document.graphs[-_TOLD:]
    ]
    return "; ".join([counted(len(document.graphs), "graph"), *(["..."] if len(document.graphs) > _TOLD else []), *graphs])


def shown(file: str) -> str:
    """How messages name a file."""
    return "stdin" if file == "-" else file


def require_stdin_once(*files: str) -> None:
    """Raises UsageError if two of these files are standard input, which can be read once only."""
    if files.count("-") > 1:
        raise click.UsageError("standard input (-) can be read once only")


def chosen_format(out: str | None, format_: str | None, default: str) -> str:
    """The format that OUT's suffix stands for, else --format, else the default."""
    return format_of(out) or format_ or default


def emit(document: Document, out: str | None, format_: str | None, came_in: str, **how: Any) -> None:
    """Write a document to OUT or standard output."""
    from tidu_cli.formats.write import write_document

    chosen = chosen_format(out, format_, came_in)
    require_printable(out, chosen)
    _written(lambda: write_document(document, out, chosen, **how), out, f"result: {chosen}, {_told(document)}")


def on_document(function: Callable[..., Document]) -> Callable[..., None]:
    """A function from document to document as one from FILE to OUT: for commands that have `document_output_options`."""

    @wraps(function)
    def transform(file: str, out: str | None, format_: str | None, **given: Any) -> None:
        document, came_in = load(file, given.get("settings", ()), given.get("files", ()))
        emit(function(document, **given), out, format_, came_in)

    return transform


def require_printable(out: str | None, format_: str) -> None:
    """Raises TiduError if a binary format would go to a terminal. Called before the work, where that is possible."""
    if out in (None, "-") and _is_binary(format_) and is_terminal(data_stream()):
        raise TiduError(f"{format_} is not printed to a terminal; redirect it, or give -o FILE")


def _is_binary(name: str) -> bool:
    return name in BINARY or (name not in OWN and is_foreign(name) and getattr(format_named(name), "binary", False))


def emit_bytes(data: bytes, out: str | None) -> None:
    """Write finished data to OUT or standard output."""
    from tidu_cli.formats.write import write_pieces

    _written(lambda: write_pieces((data,), out), out)


def _written(write: Callable[[], int], out: str | None, *details: str) -> None:
    with paused() if is_terminal(data_stream()) else nullcontext():
        length = write()
    for told in (*details, f"wrote {'stdout' if out in (None, '-') else out}: {counted(length, 'byte')}"):
        detail(told)


def emit_text(text: str) -> None:
    """Write a line of text or more to standard output, in UTF-8."""
    emit_bytes(f"{text}\n".encode(), None)


_LINES = 4096
"""So many lines are written at once."""


def emit_lines(lines: Iterable[str], styled: Callable[[str], str] = str) -> None:
    """Write lines to standard output as they come, in UTF-8. What names in them would do to lines and to a terminal is escaped.

    `styled` gives escaped lines their colours.
    """
    from tidu_cli.formats.write import write_pieces

    printed = (f"{styled(printable(line))}\n" for line in lines)
    _written(lambda: write_pieces(iter(lambda: "".join(islice(printed, _LINES)).encode(), b""), None), None)


def emit_json(value: object, out: str | None = None, indent: int | None = None) -> None:
    """Write JSON to OUT or standard output."""
    from tidu_cli.formats.json import json_text

    emit_bytes(f"{json_text(value, indent)}\n".encode(), out)
