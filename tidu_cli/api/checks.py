"""Whether a document is right, how it differs from another, and what a file holds: a document, ops, or another system's model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from tidu_cli import arguments
from tidu_cli.api.files import reading_options, vocabulary_with
from tidu_cli.arguments import KeyTexts, a_key, op_name
from tidu_cli.checking.numeric.trials import example_cases
from tidu_cli.checking.report import PARTS, Report, add_remarks, check_document, check_library, summary_of
from tidu_cli.errors import ArgumentError, PluginError, Remedy, TiduError, counted
from tidu_cli.formats.files import Source, reading
from tidu_cli.formats.read import parse_imported, parse_subject
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Case, Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import require_inputs
from tidu_cli.installed import OWN_FORMATS, declared_options, format_named, own_engines, recognized, source_named
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.options import checked
from tidu_cli.port_data import Asked, Imported
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.evaluate import require_given
from tidu_cli.runtime.inputs import value_of_input

if TYPE_CHECKING:
    from tidu_cli.checking.catalogue import Listed


@checked(document=arguments.anything, parts=arguments.several_names)
def check(
    document: Document | str | PurePath,
    parts: str | Sequence[str] = ("static",),
    inputs: Mapping[Any, object] | None = None,
    seed: int = 0,
    against: str | None = None,
    plugins: str | Sequence[str] = (),
    ops: str | PurePath | Sequence[str | PurePath] = (),
    plain: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Whether a document and its derivatives are right, as `tidu check --json` tells it: "ok", and what was found.

    `parts` are any of "static", "closure" and "numeric", or "all"; derivatives are tried at `inputs`, and else at random ones. The
    document may be a file, also one of a library of ops or a model of another system, of which the report says what it holds. Files
    are read with `plugins`, `ops`, `plain` and `options` as by `load`, and `against` names a runtime to compare a model's values
    with. Raises UnknownNameError, EvaluationError for values that do not fit, DocumentError, ArgumentError.
    """
    if not isinstance(document, str | PathLike):
        arguments.document("document", document)
    for part in parts:
        arguments.one_of(*PARTS, "all")("parts", part)

    def given(document: Document) -> Mapping[Key, Any]:
        require_inputs(document, inputs or {})
        return {key: value_of_input(key, document.inputs[key].type, value) for key, value in (inputs or {}).items()}

    asked = Asked(PARTS if "all" in parts else [part for part in PARTS if part in parts], against, given, seed)
    how = reading_options("check", options, ("parts", "inputs", "seed", "against", "plugins", "ops", "plain"))
    if isinstance(document, Document):
        primitives = vocabulary(document.cases)
        return check_subject(document, "in memory", "the document", asked, primitives, how).report.to_data()
    file, primitives = str(document), vocabulary_with(plugins, ops)
    with reading(file) as source:
        foreign = recognized(source)
        subject, name = (source.read(), foreign.name) if foreign else parse_subject(source, file, primitives)
    return check_subject(subject, name, file, asked, primitives, how, path=file, plain=plain).report.to_data()


_ELSEWHERE = " is for files of other systems; leave it out"


class Checked(NamedTuple):
    """In a few words what a file holds, the report on it, and what was read of it, with notes."""

    title: str
    report: Report
    imported: Imported | None = None


class _Taker(Protocol):
    """What an engine or a format that comes with tidu has besides what its port says."""

    def takes(self, case: Case, primitives: PrimitiveSet) -> str:
        """By what it computes a node of a case, in a few words. Raises TiduError, which says why it does not."""


def taken_by(primitive: Primitive, primitives: PrimitiveSet) -> dict[str, str]:
    """By what each engine and format that comes with tidu computes a primitive, or why it does not, by name.

    Asked of each of the primitive's examples, in f64 where it takes that; of several answers the first and the first refusal.
    """
    cases: dict[int, Case] = {}
    for example, case in example_cases(primitives, primitive):
        if id(example) not in cases or any(getattr(t, "dtype", None) == "f64" for t in case.operands):
            cases[id(example)] = case
    formats = {format_.title: format_ for format_ in map(format_named, OWN_FORMATS) if format_}
    ways = {}
    for name, taker in cast("dict[str, _Taker]", {**own_engines(), **formats}).items():
        taken, refused = [], []
        for case in cases.values():
            try:
                taken.append(taker.takes(case, primitives))
            except TiduError as error:
                refused.append(str(error))
            except ModuleNotFoundError as error:
                refused.append(f"not known here, as the package {error.name} is not installed")
        ways[name] = "; or ".join([*taken[:1], *refused[:1]])
    return ways


def check_subject(
    subject: Document | Imported | PrimitiveSet | bytes,
    name: str,
    where: str,
    asked: Asked,
    primitives: PrimitiveSet,
    options: Mapping[str, Any],
    *,
    path: str | None = None,
    plain: bool = False,
) -> Checked:
    """The report on what a file holds in the format `name`, as messages call it `where`.

    It is a document, a set of primitives with the library's own, or the bytes of a file of another system, which `path` names and
    `options` of its format read. Raises DocumentError, ArgumentError for options of other files.
    """
    if isinstance(subject, bytes):
        source = partial(Source, subject, path)

        def read(options: Mapping[str, Any]) -> Imported:
            return parse_imported(source(), where, primitives, options, plain=plain)[0]

        return _check_foreign(name, where, asked, options, source, read)
    for option in (*options, *(["against"] if asked.against else [])):
        flag = "" if option == "against" else declared_options("reading")[option][1].flag
        raise ArgumentError(f"{where} is {name}, and ", Remedy(option, flag=flag, python=option), _ELSEWHERE)
    if isinstance(subject, PrimitiveSet):
        title = f"valid {name}, a library of {counted(len(subject.definitions), 'op')}"
        return Checked(title, check_library(subject, asked.parts, seed=asked.seed))
    imported = subject if isinstance(subject, Imported) else Imported(subject, {})
    document = imported.document
    report = check_document(document, vocabulary(document.cases), asked.parts, given=asked.given(document), seed=asked.seed)
    return Checked(f"valid {name}, {_size(document)}", report, imported)


def _check_foreign(
    name: str, where: str, asked: Asked, options: Mapping[str, Any], source: Callable[[], Source], read: Callable[..., Imported]
) -> Checked:
    format_ = format_named(name)
    assert format_ is not None
    if asked.against is not None and asked.against not in format_.runtimes:
        raise ArgumentError(
            f"{where} is {name}, which {asked.against} does not run; leave out ", Remedy("against", python="against")
        )
    imported = read(options)
    document, double = imported.document, format_.double(options)
    first = [part for part in asked.parts if part != "numeric"] if double is not None else asked.parts
    report = check_document(document, vocabulary(document.cases), first, given=asked.given(document), seed=asked.seed)
    remarks = format_.remarks(source(), where, imported, options, asked)
    add_remarks(report, remarks)
    if double is not None and "numeric" in asked.parts:
        wide = read(double).document
        verdicts = check_document(wide, vocabulary(wide.cases), ("numeric",), given=asked.given(wide), seed=asked.seed)
        report.numeric, report.untried, report.own = verdicts.numeric, verdicts.untried, verdicts.own
        report.failures += verdicts.failures
    size = f"{remarks.holds}, here {_size(document, graphs=False)}" if remarks.holds else _size(document)
    told = imported if "claims" not in remarks.facts else None  # a fact that has the notes of a module
    return Checked(f"valid {name}, {size}", report, told)


def _size(document: Document, *, graphs: bool = True) -> str:
    nodes = counted(sum(graph.n_nodes for graph in document.graphs), "node")
    return f"{counted(len(document.graphs), 'graph')}, {nodes}" if graphs else nodes


@checked()
def info(document: Document, digests: bool = False) -> dict[str, Any]:
    """What a document is, as `tidu info --json` tells it: its graphs, and what evaluating it takes; with the digests of values."""
    return summary_of(document, with_digests=digests)


@checked()
def diff(a: Document, b: Document, exact: bool = False) -> dict[str, Any]:
    """How two documents differ in structure, as `tidu diff --json` tells it: "same", and where they differ.

    With `exact` graphs are also compared one by one: names, order, nodes, roles and meta.
    """
    from tidu_cli.checking.comparison import difference

    return difference(a, b, exact=exact)[1]


@checked()
def kinks(document: Document, inputs: Mapping[Any, object] | None = None, output: KeyTexts = ()) -> list[dict[str, Any]]:
    """Where the evaluation of the head's outputs (or of `output`) at these inputs meets kinks, as `tidu eval --kinks` lists them.

    Each is a dict: the "node", "at" what its operands are, as in "operands tie", and what the derivative is taken to be there, by
    "tidu", "jax", "pytorch" and "onnx". "index" is the first element of "elements" that are at the kink; in loops, which are run
    step by step, "step" is the first and "times" how often. Raises EvaluationError for inputs that do not fit or are missing.
    """
    from tidu_cli.api.evaluation import nested
    from tidu_cli.checking.kinks import kinks_at
    from tidu_cli.runtime.plans.program import needed_inputs
    from tidu_cli.runtime.sizing import document_as_given
    from tidu_cli.transforms.linking.rename import inline
    from tidu_cli.transforms.materialize import materialize

    given = nested({a_key(k): v for k, v in (inputs or {}).items()}, document.inputs)
    document = document_as_given(document, given)
    head = materialize(document, outputs=arguments.parsed(output)).head
    named = {o.key for o in head.outputs}
    chosen = tuple([o for o in document.head.outputs if o.key in named])
    if len(document.graphs) == 1 and not document.head.external and not document.bindings and len(chosen) == len(head.outputs):
        head = replace(document.head, outputs=chosen)  # whose nodes have the numbers that the file gives them
    primitives = vocabulary(document.cases)
    graph = inline(replace(document, graphs=(head,), bindings=()), primitives=primitives).head
    needed = needed_inputs(graph)
    declared = [i for i in graph.inputs if i.key in needed]
    require_given(declared, given)
    return kinks_at(graph, primitives, {i.key: value_of_input(i.key, i.type, given[i.key]) for i in declared})


@checked()
def schema() -> dict[str, Any]:
    """The JSON Schema of documents."""
    from tidu_cli.formats.schema import json_schema

    return json_schema()


@checked()
def show(document: Document, all: bool = False, formula: bool = False) -> str:
    """A document as text that people read, all nodes of it if `all`; or the head, a graph of numbers, as a formula.

    Raises BuildError for a graph that no formula has.
    """
    if formula:
        return str(source_named("formula").written(document))
    from tidu_cli.render.listing import listing

    return "\n".join(listing(document, every=all))


@checked(names=op_name)
def ops(
    *names: str, backends: bool = False, plugins: str | Sequence[str] = (), ops: str | PurePath | Sequence[str | PurePath] = ()
) -> list[dict[str, Any]]:
    """What is known of all primitives, or of those of these names, as `tidu ops --json` tells it.

    With `backends` also by what each engine and format computes them, or why it does not, for which JAX and onnx are imported.
    `plugins` names packages that may be imported for theirs, `ops` are files of libraries. Raises UnknownNameError; PluginError for
    one that two of these bring.
    """
    from tidu_cli.checking.catalogue import known_ops

    primitives = vocabulary_with(plugins, ops)
    chosen, wrong = known_ops(names, primitives)
    if wrong:
        raise PluginError(wrong)
    return [op_data(op, primitives, backends) for op in chosen]


def op_data(op: Listed, primitives: PrimitiveSet, backends: bool) -> dict[str, Any]:
    """What is known of an op, by what backends compute it included if that is asked for."""
    from tidu_cli.checking.catalogue import data_of

    data = data_of(op, primitives)
    if backends and op.primitive is not None and op.definition is None:
        data["backends"] = taken_by(op.primitive, primitives)
    return data
