"""What a word of a command line may become: commands, options, choices, files, and the keys of the file that is named.

Nothing here fails: where a file is missing, broken or large, there are no candidates.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain, product
from typing import Any, NamedTuple

import click

from tidu_cli.cli.building import FILES
from tidu_cli.cli.cursor import Cursor, find, tangent_texts
from tidu_cli.errors import TiduError
from tidu_cli.formats.files import DOCUMENTS, Source, compressed_too
from tidu_cli.formats.files import FORMATS as SUFFIXES
from tidu_cli.graph.keys import key_from_json
from tidu_cli.graph.select import is_movable
from tidu_cli.graph.types import RecordType, Type, moves
from tidu_cli.installed import recognized, source_named

LARGEST = 2**25
"""Documents of more bytes than this are not read: a key is to be there at once."""

_DOCUMENTS = compressed_too(*(suffix for suffix, name in SUFFIXES.items() if name in DOCUMENTS))
_VALUES = compressed_too(".json", ".npz", ".msgpack")


class Candidate(NamedTuple):
    """A word that may be meant. Where it `goes_on`, as KEY= does, no space follows it."""

    word: str
    help: str = ""
    goes_on: bool = False
    is_path: bool = False

    @property
    def kind(self) -> str:
        """What the scripts of shells call it."""
        return "path" if self.is_path else "part" if self.goes_on else "word"


def candidates(group: click.Group, words: Sequence[str], at: int) -> list[Candidate]:
    """What word `at` of the command line may become; `words` begin after the name of the program."""
    ctx = click.Context(group, info_name="tidu", resilient_parsing=True)
    first = next((k for k, word in enumerate(words) if not word.startswith("-")), at)
    if at <= first:
        if words[at].startswith("-"):
            return _options(group, words[at])
        return [Candidate(name, _abouts()[name]) for name in group.list_commands(ctx) if name.startswith(words[at])]
    command = group.get_command(ctx, words[first])
    if command is None:
        return []
    if take := getattr(command, "with_options_of", None):  # of a `FormatCommand`
        with suppress(TiduError):
            take(words)
    place = find(command, words[first + 1 :], at - first - 1)
    if place.parameter is not None:
        return [candidate._replace(word=place.before + candidate.word) for candidate in _of_parameter(place)]
    return _options(command, place.incomplete) if place.incomplete.startswith("-") else []


@cache
def _abouts() -> dict[str, str]:
    # A line at the top of each command's module, unread otherwise: to import them all takes longer than one waits for a TAB.
    folder = os.path.join(os.path.dirname(__file__), "commands")
    abouts: dict[str, str] = {}
    for file in filter(lambda file: file.endswith(".py"), os.listdir(folder)):
        with open(os.path.join(folder, file), encoding="utf-8") as source:
            abouts |= re.findall(r'^(?:""")?tidu (\w+): (.*?)(?:""")?$', source.read(), re.MULTILINE)
    return abouts


def _options(command: click.Command, incomplete: str) -> list[Candidate]:
    ctx = click.Context(command, resilient_parsing=True)
    params = [param for param in command.get_params(ctx) if isinstance(param, click.Option) and not param.hidden]
    return [Candidate(name, param.help or "") for param in params for name in param.opts if name.startswith(incomplete)]


def _of_parameter(place: Cursor) -> Iterable[Candidate]:
    param = place.parameter
    assert param is not None
    if isinstance(param.type, click.Choice):
        choices = getattr(param.type, "known", param.type.choices)  # those that other packages bring are known, too
        return [Candidate(str(choice)) for choice in choices if str(choice).startswith(place.incomplete)]
    offer = _OFFERS.get(param.opts[0] if isinstance(param, click.Option) else param.name or "")
    try:
        offered = [] if offer is None else list(offer(place))
        begun = place.incomplete
        return [c for c in offered if c.is_path or (c.word.startswith(begun) and not (c.goes_on and c.word == begun))]
    except (TiduError, OSError, ValueError, LookupError, TypeError, AttributeError, SyntaxError, RecursionError, MemoryError):
        return []


# Keys of files.


def _documents(place: Cursor) -> Iterator[dict[str, Any]]:
    for path in place.arguments:
        path = os.path.expanduser(path)
        if os.path.isfile(path) and os.path.getsize(path) <= LARGEST:
            with open(path, "rb") as file:
                data = Source(file, unpacked=True).read(LARGEST + 1)
            if len(data) <= LARGEST:
                yield _plain(data, path)


def _plain(data: bytes, path: str) -> dict[str, Any]:
    # Without the checks of a reader, which take most of its time.
    if format_ := recognized(Source(data, path)):
        plain = format_.outline(data)
    elif data[:1].isspace() or data[:1] == b"{":
        plain = json.loads(data)
    else:
        import msgpack

        plain = msgpack.unpackb(data, strict_map_key=False)
    if not isinstance(plain, dict) or not isinstance(plain.get("graphs"), list):
        raise ValueError("not a document")
    return plain


def _ports(place: Cursor, *kinds: str) -> Iterator[tuple[str, str]]:
    """Text and type of each input or output of these kinds, once each, the head's first."""
    seen = set()
    for kind, document in product(kinds, _documents(place)):
        bound = [binding["input"] for binding in document.get("bindings", ())] if kind == "inputs" else []
        for port in (port for graph in reversed(document["graphs"]) for port in graph[kind] if port["key"] not in bound):
            text = str(key_from_json(port["key"]))
            if text not in seen and text.isprintable():
                seen.add(text)
                yield text, str(port.get("type", ""))


def _keys(*kinds: str) -> Callable[[Cursor], Iterator[Candidate]]:
    """Those of these kinds that the option does not have yet."""
    return lambda place: (Candidate(text, type_) for text, type_ in _ports(place, *kinds) if text not in place.taken)


def _typed_inputs(place: Cursor) -> Iterator[tuple[str, Type]]:
    """Text and type of each input."""
    from tidu_cli.formats.declarations import record_types
    from tidu_cli.graph.text import parse_value_type

    records: dict[str, RecordType] = {}
    for document in _documents(place):
        records |= record_types(document.get("types", {}), {})
    return ((text, parse_value_type(type_, records)) for text, type_ in _ports(place, "inputs"))


def _differentiable(place: Cursor) -> Iterator[Candidate]:
    """Inputs of which a part is no integer: by integers one may differentiate, but one seldom means to."""
    typed = ((text, str(type_)) for text, type_ in _typed_inputs(place) if is_movable(type_))
    return (Candidate(*port) for port in chain(typed, _built_inputs(place)) if port[0] not in place.taken)


def _tangents(place: Cursor) -> Iterator[Candidate]:
    wrt = place.values("--wrt")
    for text, type_ in _typed_inputs(place):
        before = f"{text}="
        if place.incomplete.startswith(before):
            for tangent, about, goes_on in tangent_texts(type_, place.incomplete[len(before) :]):
                yield Candidate(before + tangent, about, goes_on)
        elif moves(type_) and (text in wrt or not wrt) and not any(given.startswith(before) for given in place.taken):
            yield Candidate(before, str(type_), goes_on=True)


def _dimensions(place: Cursor) -> Iterator[Candidate]:
    taken = [setting.rpartition("=")[0] for setting in place.taken]
    names = dict.fromkeys(name for document in _documents(place) for name in document.get("dimensions", ()))
    return (Candidate(f"{name}=", goes_on=True) for name in names if name not in taken)


def _inner_values(place: Cursor) -> Iterator[Candidate]:
    names = dict.fromkeys(name for document in _documents(place) for name in document.get("values", ()))
    return (Candidate(name) for name in names if name not in place.taken)


def _policies(place: Cursor) -> Iterator[Candidate]:
    yield Candidate("sqrt", "recompute all but some √n checkpoints")
    yield Candidate("cheap", "recompute what takes at most 1 operation for each byte")
    yield Candidate("cheap=", "at most N", goes_on=True)
    if place.incomplete.startswith("value="):
        yield from (Candidate(f"value={text}", type_) for text, type_ in _ports(place, "outputs"))
    elif place.incomplete.startswith("graph="):
        names = dict.fromkeys(graph["name"] for document in _documents(place) for graph in document["graphs"])
        yield from (Candidate(f"graph={name}") for name in names if name.isprintable())
    else:
        yield Candidate("value=", "recompute an output", goes_on=True)
        yield Candidate("graph=", "recompute the values of a graph", goes_on=True)


def _assigned(place: Cursor, ports: Iterable[tuple[str, str]]) -> Iterator[Candidate]:
    for text, type_ in ports:
        if place.incomplete.startswith(f"{text}=@"):
            yield from _files(place.incomplete[len(text) + 2 :], (*compressed_too(".npy"), ".npz"), before=f"{text}=@")
        elif not any(setting.startswith(f"{text}=") for setting in place.taken):
            yield Candidate(f"{text}=", type_, goes_on=True)


def _bindings(place: Cursor) -> Iterator[Candidate]:
    for text, type_ in _ports(place, "inputs"):
        if place.incomplete.startswith(f"{text}="):
            yield from (Candidate(f"{text}={output}", of) for output, of in _ports(place, "outputs") if of in (type_, ""))
        else:
            yield Candidate(f"{text}=", type_, goes_on=True)


# What is to be built.


def _declarations(place: Cursor) -> Iterator[Candidate]:
    taken = [declaration.partition("=")[0].partition(":")[0] for declaration in place.taken]
    for source in place.arguments[:1]:
        yield from (Candidate(f"{name}:", goes_on=True) for name in _names(source) if name not in taken)


def _names(source: str) -> Iterable[str]:
    """The names for inputs that a formula or FILE.py:FUNCTION has."""
    kind = "function" if source.rpartition(":")[0].endswith(".py") else "formula"
    return source_named(kind).names(os.path.expanduser(source)) or ()


def _built_inputs(place: Cursor) -> Iterator[tuple[str, str]]:
    """Names and, where -i says them, types of what a function or a formula in the place of a file takes."""
    declared = {key: type_ for key, _, type_ in (each.partition(":") for each in place.values("-i") if "=" not in each)}
    constants = {each.partition("=")[0] for each in place.values("-i") if "=" in each}
    for source in place.arguments[:1]:
        if not source.lower().endswith(FILES) and not os.path.isfile(os.path.expanduser(source)):
            names = dict.fromkeys([*declared, *_names(source)])
            yield from ((name, declared.get(name, "")) for name in names if name not in constants)


def _sources(place: Cursor) -> Iterator[Candidate]:
    file, colon, _ = place.incomplete.rpartition(":")
    if colon and file.endswith(".py"):
        functions = source_named("function").functions(os.path.expanduser(file))
        yield from (Candidate(f"{file}:{name}", text) for name, text in functions.items())
    else:
        yield from (_of_python(candidate) for candidate in _files(place.incomplete, (".py",)))


def _of_python(candidate: Candidate) -> Candidate:
    """A file of Python, of which a function is to be named; any other as it is."""
    return Candidate(f"{candidate.word}:", goes_on=True) if candidate.word.endswith(".py") else candidate


def _documents_and_sources(place: Cursor) -> Iterator[Candidate]:
    if ".py:" in place.incomplete:
        return _sources(place)
    return map(_of_python, _files(place.incomplete, (*_DOCUMENTS, ".py")))


# Files and names.


def _files(incomplete: str, suffixes: tuple[str, ...], before: str = "") -> Iterator[Candidate]:
    """Folders, and the files with these suffixes, or all files where there are none such."""
    folder, start = os.path.split(incomplete)
    folder = os.path.expanduser(folder)
    with os.scandir(folder or ".") as entries:
        listing = sorted(
            (entry.name, entry.is_dir())
            for entry in entries
            if entry.name.startswith(start) and entry.name.startswith(".") <= start.startswith(".") and entry.name.isprintable()
        )
    fitting = [name for name, is_folder in listing if not is_folder and name.lower().endswith(suffixes)]
    for name, is_folder in listing:
        path = before + os.path.join(folder, name)
        if is_folder:
            yield Candidate(f"{path}/", goes_on=True, is_path=True)
        elif not fitting or name in fitting:
            yield Candidate(path, is_path=True)


def _with_suffix(*suffixes: str) -> Callable[[Cursor], Iterator[Candidate]]:
    return lambda place: _files(place.incomplete, suffixes)


def _primitives(place: Cursor) -> Iterator[Candidate]:
    from tidu_cli.custom.packages import announced
    from tidu_cli.lax.vocabulary import BUILTIN

    built_in = [Candidate(primitive.name, primitive.catalogue.summary) for primitive in BUILTIN]
    installed = [Candidate(op, f"of {known.packages[0]}") for op, known in announced().items() if op not in BUILTIN.primitives]
    return (candidate for candidate in (*built_in, *installed) if candidate.word not in place.arguments)


def _plugins(place: Cursor) -> Iterator[Candidate]:
    from tidu_cli.custom.packages import announced

    packages = {package.name: str(package) for known in announced().values() for package in known.packages}
    return (Candidate(name, text) for name, text in sorted(packages.items()) if name not in place.taken)


_OFFERS: dict[str, Callable[[Cursor], Iterator[Candidate]]] = {
    "--wrt": _differentiable,
    "--tangent": _tangents,
    "--recompute": _policies,
    "--output": _keys("outputs"),
    "--share": _keys("inputs"),
    "--set": lambda place: _assigned(place, chain(_ports(place, "inputs"), _built_inputs(place))),
    "--move": lambda place: _assigned(place, ((text, str(type_)) for text, type_ in _typed_inputs(place) if moves(type_))),
    "--highlight": _keys("inputs", "outputs"),
    "--bind": _bindings,
    **dict.fromkeys(("--moves", "--inputs"), _with_suffix(*_VALUES)),
    "--weights": _with_suffix(".npz"),
    "--dim": _dimensions,
    "--input-type": lambda place: _assigned(place, _ports(place, "inputs")),
    **dict.fromkeys(("--cut", "--stop"), _inner_values),
    "--ops": _with_suffix(*_DOCUMENTS),
    "--plugins": _plugins,
    "-o": _with_suffix(*compressed_too(*SUFFIXES)),
    "-i": _declarations,
    **dict.fromkeys(("file", "files", "a", "b"), _documents_and_sources),
    "subjects": lambda place: _primitives(place) if "--ops" in place.given else _documents_and_sources(place),
    "source": _sources,
    "names": _primitives,
}
"""What is offered for an option, by its first name, or an argument: of whichever command, since the same name means the same."""
