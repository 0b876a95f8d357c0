"""Files of documents, models and values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, cast

from tidu_cli.arguments import at_least, names_by_name, values_by_key
from tidu_cli.custom.packages import known_with
from tidu_cli.errors import ArgumentError, did_you_mean
from tidu_cli.formats.files import DOCUMENTS, OWN, format_of, of_formats, read_bytes, reading, split
from tidu_cli.formats.read import parse_imported, parse_library
from tidu_cli.formats.values import FORMATS, read_values, write_values
from tidu_cli.formats.write import write_document, write_pieces
from tidu_cli.graph.graph import Document
from tidu_cli.installed import declared_options, format_named, is_foreign
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.options import checked
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.inputs import type_of_value


@checked()
def load(
    file: str | PurePath,
    plugins: str | Sequence[str] = (),
    ops: str | PurePath | Sequence[str | PurePath] = (),
    plain: bool = False,
    size: Mapping[str, int | str] | None = None,
    **options: Any,
) -> Document:
    """Read and check a document, JSON or msgpack, or a model of another system. Raises DocumentError, ArgumentError.

    `options` are those of the model's format: what it leaves open, such as `dims={"n": 3}` of ONNX (`load_onnx` lists them, and
    gives the weights, too). With `plain` such a file is read by what it runs, and not as the document that it claims to be. `size`
    are numbers, or other sizes, for open ones, as `specialize` takes them, also where a node is refused without.

    `plugins` names the packages that may be imported for ops of the document; so does the environment variable TIDU_PLUGINS. `ops`
    are files of documents whose own ops may be used, too. Raises UnknownNameError for a package that is not installed.
    """
    how = reading_options("load", options, ("plugins", "ops", "plain", "size"))
    with reading(str(file)) as source:
        return parse_imported(source, str(file), vocabulary_with(plugins, ops), how, plain=plain, sizes=size)[0].document


def reading_options(function: str, given: Mapping[str, Any], others: Iterable[str]) -> dict[str, Any]:
    """Options of readers of other systems, checked. Raises ArgumentError for what none has; the function has `others`, too."""
    checks = {name: option.check for name, (_, option) in declared_options("reading").items()}
    for name in given.keys() - checks.keys():
        raise ArgumentError(f"{function} has no argument '{name}'{did_you_mean(name, [*checks, *others])}")
    return {name: checks[name](name, value) for name, value in given.items() if value is not None}


def vocabulary_with(plugins: str | Sequence[str], ops: str | PurePath | Sequence[str | PurePath]) -> PrimitiveSet:
    """The built-in primitives, and those of packages and of files of libraries. Raises UnknownNameError, DocumentError."""
    primitives = known_with(plugins)
    for library in map(str, cast("list[str | PurePath]", ops)):
        with reading(library) as source:
            primitives = parse_library(source, library, primitives)
    return primitives


@checked()
def save(
    document: Document,
    file: str | PurePath,
    format: str | None = None,
    types: bool = False,
    nodes: str | None = None,
    **options: Any,
) -> None:
    """Write a document as its suffix says, .json, .msgpack, .onnx, .mlir or .mlirbc, without one as JSON, or in this format.

    After these, .gz and .zst compress. `types` gives every node its types, `nodes` are a "list" or "packed". Other options are of
    formats of other systems: `opset` is the operator set of a model of ONNX, and `target_version` the version of StableHLO that
    programs read which get a .mlirbc file. Raises DocumentError, ArgumentError.
    """
    named, suffix = format_of(str(file)), split(str(file))[0]
    if suffix and named not in DOCUMENTS and not is_foreign(named) and (format is None or named is not None):
        raise ArgumentError(f"'{file}' ends in '{suffix}', which is not a format of documents; end it in {of_formats(DOCUMENTS)}")
    if format is not None and named not in (None, format):
        raise ArgumentError(f"'{file}' ends in '{suffix}', and argument 'format' says {format!r}; leave out one of them")
    chosen = named or format or "json"
    if chosen in OWN:
        how: dict[str, Any] = {"types": types, "listed": None if nodes is None else nodes == "list"}
    elif types or nodes is not None:
        raise ArgumentError(f"argument '{'types' if types else 'nodes'}' is for {' and '.join(OWN)}, and the result is {chosen}")
    else:
        how = {}
    if types and nodes == "packed":
        raise ArgumentError("packed nodes have no place for types; leave out one of them")
    write_document(document, str(file), chosen, **how, **_options(options, chosen))


def _options(given: Mapping[str, Any], to: str) -> dict[str, Any]:
    """The options of the writer of a format. Raises ArgumentError for those of another writer, and for those of none."""
    known, writer = declared_options("writing"), format_named(to)
    own = {option.name for option in writer.writing} if writer else set()
    for name in given:
        if name not in known:
            raise ArgumentError(f"save has no argument '{name}'{did_you_mean(name, [*known, 'format', 'types', 'nodes'])}")
        if name not in own and given[name] is not None:
            raise ArgumentError(f"argument '{name}' is for {known[name][0].name}, and the result is {to}")
    return {name: known[name][1].check(name, value) for name, value in given.items() if value is not None}


@checked()
def load_values(file: str | PurePath, document: Document | None = None) -> dict[str, Any]:
    """The values that a file holds, JSON, npz or msgpack, by the text of their keys, as `evaluate` takes them.

    With a document its types say what is a record; without, what is nested is an array. Raises DocumentError.
    """
    declared = None if document is None else {key: i.type for key, i in document.inputs.items()}
    values = read_values(read_bytes(str(file)), str(file), declared)
    return {str(key): value for key, value in values.items()}


@checked(values=values_by_key)
def save_values(values: Mapping[Any, object], file: str | PurePath) -> None:
    """Write values by key, such as `evaluate` gives, as the suffix says: .json, .npz, .msgpack, .csv, .npy, or .txt for a table.

    Raises DocumentError, ArgumentError.
    """
    format_, suffix = format_of(str(file)), split(str(file))[0]
    if format_ not in FORMATS:
        raise ArgumentError(f"'{file}' ends in '{suffix}', which is not a format of values; end it in {of_formats(FORMATS)}")
    types = {key: type_of_value(f"value of {key}", value) for key, value in values.items()}
    write_pieces((write_values(values, str(format_), types),), str(file))


# What `tidu convert` and `tidu rename` change of a document.


@checked()
def renumber(document: Document, passes: Mapping[int, int]) -> Document:
    """Give passes other numbers, as `tidu convert --pass` does: {1: 2}. Raises UnknownNameError, TransformError."""
    from tidu_cli.transforms.linking.passes import renumber

    return renumber(document, passes)


@checked()
def specialize(document: Document, size: Mapping[str, int | str]) -> Document:
    """Put numbers, or other sizes, in the place of open ones, as `tidu convert --size` does: {"N": 32}, {"M": "N"}.

    Calls of linearize have no identity then. Raises UnknownNameError for a size that the document does not have, TypeTextError, and
    TransformError for one that bounds do not admit or that a node does not take.
    """
    from tidu_cli.runtime.sizing import specialized

    return specialized(document, size, vocabulary(document.cases))


@checked(steps=at_least(1, optional=False))
def bound_loops(document: Document, steps: int) -> Document:
    """Make each while of a document a scan of this number of steps, as `tidu convert --bound-loops` does: it has a reverse mode.

    Steps after the condition has ended do nothing. Where it still holds after the last one, what the loop gives is NaN, and
    integers are the least of their type. Solvers in `root` and the like stay. Raises TransformError for a document of several
    graphs: materialize it first.
    """
    from tidu_cli.transforms.linking.rename import bound_loops

    return bound_loops(document, steps)


@checked(keys=names_by_name, graphs=names_by_name)
def rename(document: Document, keys: Mapping[str, str] | None = None, graphs: Mapping[str, str] | None = None) -> Document:
    """Give inputs and outputs, by their keys, and graphs other names: {"x": "t"}. What is derived of them follows.

    All change at once. Raises UnknownNameError for a name that the document has not; TransformError where two would be one.
    """
    from tidu_cli.transforms.linking.rename import renamed

    return renamed(document, keys or {}, graphs or {})
