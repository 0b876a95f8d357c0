"""The options of commands that evaluate: values of inputs, tangents along which they move, and what evaluates.

Values are given by --set KEY=VALUE and --inputs FILE. Of the others, engine and device say what evaluates, and the rest how work
is spread over processes or machines.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from tidu_cli.cli.building import bytes_of, require_once, values_of
from tidu_cli.cli.messages import detail, error, is_quiet
from tidu_cli.cli.options import Parsed, emit_bytes, option, shown
from tidu_cli.cli.out_option import OpenChoice
from tidu_cli.errors import KeyTextError, TransformError
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.types import Type
from tidu_cli.installed import OWN_ENGINES, brought_engines
from tidu_cli.streams import is_stdout

if TYPE_CHECKING:
    from tidu_cli.api.streaming import Results
    from tidu_cli.runtime.choosing import Choice

F = TypeVar("F", bound=Callable[..., Any])


def set_option(text: str) -> Callable[[F], F]:
    """The option --set KEY=VALUE, which repeats; `text` is its help."""
    return _assignments("--set", "settings", "KEY=VALUE", "x=3 or x=[1,2]", text)


def move_options(function: F) -> F:
    """The options --move KEY=TANGENT and --moves FILE, which repeat."""
    text = 'Evaluate at an input moved along a tangent: 0.5, or {"type": "duration[h][]", "data": [2]}, ...; repeats.'
    function = click.option(
        "--moves",
        "move_files",
        multiple=True,
        metavar="FILE",
        help="Such tangents by key, that of an input x or one such as x@-1, as vjp gives it: JSON, npz or msgpack; repeats.",
    )(function)
    return _assignments("--move", "moves", "KEY=TANGENT", "x=0.5", text)(function)


def _assignments(option: str, name: str, metavar: str, such: str, text: str) -> Callable[[F], F]:
    """An option that repeats. That some = has a key to its left is seen at once; which one it is, the document says."""

    def checked(setting: str) -> str:
        complaint = f"'{setting}' is not {metavar}, such as {such}"
        if option == "--batch" and "=" not in setting:
            from tidu_cli.cli.mistakes import axis_instead

            raise KeyTextError(axis_instead(setting))
        for at in reversed([at for at, character in enumerate(setting) if character == "="]):
            try:
                parse_key(setting[:at])
                return setting
            except KeyTextError as error:
                complaint = str(error)
        raise KeyTextError(complaint)

    return click.option(option, name, multiple=True, metavar=metavar, type=Parsed("assignment", checked), help=text)


batch_option = _assignments(
    "--batch",
    "batches",
    "KEY=AXIS",
    "x=0",
    "An input of which a batch is given, along this axis of it (0 the first, -1 the last); repeats.",
)
"""The option --batch KEY=AXIS, which repeats."""

inputs_option = click.option(
    "--inputs",
    "files",
    multiple=True,
    metavar="FILE",
    help="Values of inputs by key: JSON, npz, msgpack, csv, or a directory of zarr or of npy and npz files; repeats.",
)
"""The option --inputs FILE, which repeats."""


def list_kinks(rows: Sequence[Mapping[str, Any]]) -> None:
    """Say on stderr which nodes are at a kink."""
    from tidu_cli.checking.kinks import table

    for line in () if is_quiet() else table(rows) if rows else ["no node is at a kink here"]:
        click.echo(line, err=True)


def given_values(
    document: Document, settings: tuple[str, ...], files: tuple[str, ...], in_parts: Collection[Key] = ()
) -> dict[Key, object]:
    """The values of --inputs files, then of --set, which wins. Raises TiduError for what is malformed, unknown or bound.

    Of `in_parts`, arrays in files of which parts can be read are given as where they lie.
    """
    types = input_types(document)
    whole, nested = list[str](), dict[Key, object]()
    for setting in values_of(settings):
        key, _, value = setting.partition("=")
        if _nests(key, types):
            from tidu_cli.formats.values import read_values

            parts = read_values(f"{{{json.dumps(key)}: {value}}}".encode(), f"--set {key}", types)
            require_once("--set", parts, nested)
            nested |= parts
        else:
            whole.append(setting)
    return file_values(files, types, in_parts) | nested | assigned(document, whole, types, "--set", "set", in_parts)


def sized_by_values(document: Document, settings: tuple[str, ...], files: tuple[str, ...]) -> Document:
    """A document of the sizes that values have. Raises as `given_values`, and EvaluationError for a size that stays open."""
    from tidu_cli.runtime.sizing import document_of_sizes

    return document_of_sizes(document, given_values(document, settings, files))


def name_directories(settings: tuple[str, ...], files: tuple[str, ...]) -> bool:
    """Whether some value of --set or --inputs is in a directory."""
    return any(map(os.path.isdir, [*files, *(setting.rpartition("=@")[2] for setting in settings)]))


def _nests(name: str, types: Mapping[Key, Type]) -> bool:
    """Whether it is no input, but what inputs are parts of: `params` of `params.w`."""
    texts = set(map(str, types))
    return name not in texts and any(text.startswith(f"{name}.") for text in texts)


def given_moves(document: Document, settings: tuple[str, ...], files: tuple[str, ...]) -> dict[Key, object]:
    """The tangents of --moves files, then of --move, which wins, by the inputs that they move. Raises as `given_values`."""
    if not settings and not files:
        return {}
    from tidu_cli.runtime.retraction import moved_inputs

    types = input_types(document)
    passes = {abs(step) for key in document.every_key() for step in key.path} | {1, document.next_pass()}
    steps = {Key(key.name, (*key.path, sign * p)): type_ for key, type_ in types.items() for p in passes for sign in (1, -1)}
    of_files = {key: tangent for file in files for key, tangent in moved_inputs(types, file_values((file,), steps | types)).items()}
    return of_files | assigned(document, settings, types, "--move", "moved")


def given_axes(document: Document, settings: tuple[str, ...]) -> dict[Key, int]:
    """The axes of --batch, by input. Raises TiduError for keys that are unknown or bound, and for what is no number."""
    for setting in settings:
        key, _, axis = setting.rpartition("=")
        if not re.fullmatch("-?[0-9]{1,18}", axis):
            raise TransformError(f"--batch {key}: the axis is a whole number, such as 0 for the first one or -1 for the last")
    return {key: int(str(axis)) for key, axis in assigned(document, settings, {}, "--batch", "a batch").items()}


def input_types(document: Document) -> dict[Key, Type]:
    """The types of a document's inputs, by key."""
    return {key: declared.type for key, declared in document.inputs.items()}


def file_values(files: tuple[str, ...], types: Mapping[Key, Type], in_parts: Collection[Key] = ()) -> dict[Key, object]:
    """The values that files hold by key, the last one where several have one; `in_parts` as in `given_values`. Raises TiduError."""
    from tidu_cli.formats.values import read_values, values_at

    values: dict[Key, object] = {}
    for file in files:
        if os.path.isdir(file) or (in_parts and file.endswith(".npz")):
            values |= values_at(file, types, in_parts)
        else:
            values |= read_values(bytes_of(file), shown(file), types)
    return values


def assigned(
    document: Document,
    settings: Sequence[str],
    types: Mapping[Key, Type],
    option: str,
    what: str = "",
    in_parts: Collection[Key] = (),
) -> dict[Key, object]:
    """What the values of an option assign to inputs, once each; where it says `what` these are to be, they must not be bound."""
    from tidu_cli.formats.values import parse_assignment

    declared, by_key = document.inputs, dict[Key, object]()
    for setting in dict.fromkeys(settings):  # the same one again changes nothing
        key, value = parse_assignment(setting, declared, types, option=option, in_parts=in_parts)
        require_once(option, [key], by_key)
        by_key[key] = value
    for key, (g, _) in document.bound.items():
        if what and key in by_key:
            raise TransformError(f"input '{key}' is bound to a value of graph '{document.graphs[g].name}', so it cannot be {what}")
    return by_key


ENGINES = ("auto", "numpy", *OWN_ENGINES)
"""The names of engines, those of `runtime.choosing`, which is not imported for a command that evaluates nothing."""


def engine_options(function: F) -> F:
    """The options --engine and --device, which `chosen_engine` takes."""
    function = option("device")(function)
    choice = OpenChoice(ENGINES, brought_engines)
    return option("engine", type=choice, default="auto", envvar="TIDU_ENGINE", show_envvar=True)(function)


def chosen_engine(graph: Graph, engine: str, device: str | None, **runs: int) -> Choice:
    """Which engine runs a graph, told if --verbose was given."""
    from tidu_cli.runtime.choosing import chosen

    choice = chosen(graph, engine, device=device, **runs)
    detail(f"engine {choice.name}, {choice.reason}")
    return choice


def engine_words(engine: str, device: str | None) -> list[str]:
    """The options --engine and --device as words of a command that says the same."""
    return [*(["--engine", engine] if engine != "auto" else []), *(["--device", device] if device else [])]


class Spread(NamedTuple):
    """What the options say of how work is spread."""

    scheduler: str | None = None
    chunk: int | None = None
    reduce: str | None = None
    resume: bool = False
    out: str | None = None

    def __bool__(self) -> bool:
        return any((self.scheduler, self.chunk, self.reduce, self.resume))

    def require_out(self) -> None:
        """Raises UsageError for --resume without a file beside which something may be."""
        if self.resume and not self.is_file():
            raise click.UsageError("--resume goes on from what is beside OUT; give the -o OUT of the run that broke off")

    def is_file(self) -> bool:
        """Whether results go to a file, beside which chunks may be kept."""
        if self.out is None or is_stdout(self.out):
            return False
        return not os.path.exists(self.out) or os.path.isfile(self.out) or os.path.isdir(self.out)

    def to(self, format_: str) -> dict[str, Any]:
        """Where chunks are computed, and the file for their results, as `cluster.collecting.spread` takes it."""
        out = self.out if self.is_file() else None
        return {"scheduler": self.scheduler, "out": out, "resume": self.resume, "format_": format_, "quiet": True}

    def how(self) -> dict[str, Any]:
        """How a batch is cut and computed, as `cluster.run.batch_of` takes it."""
        plugins = tuple(click.get_current_context().meta.get("--plugins", ()))
        return {"chunk": self.chunk, "reduction": self.reduce, "plugins": plugins}


def emit_chunks(compute: Callable[..., Results], spread: Spread, format_: str) -> None:
    """Have values computed by chunks, by a function of `api.streaming`, and written to OUT or standard output."""
    from tidu_cli.formats.values import write_values

    with interruptible():
        values, types = compute(to=spread.to(format_), **spread.how())
    if not spread.is_file():
        emit_bytes(write_values(values, format_, types), spread.out)


@contextmanager
def interruptible() -> Iterator[None]:
    """Within the block Ctrl-C is KeyboardInterrupt, not the end of the process, so that what is under way elsewhere is cancelled.

    A second one ends the process. Where interrupts are ignored, they stay so. What one says of chunks that are kept is printed.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except KeyboardInterrupt as interrupt_:
        if interrupt_.args:
            error(f"interrupted; {interrupt_}")
        raise
    finally:
        signal.signal(signal.SIGINT, before)
