"""tidu check: validate documents, and show that rules and derivatives are right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from tidu_cli.cli import options
from tidu_cli.cli.building import build_option
from tidu_cli.cli.evaluation_options import file_values, input_types
from tidu_cli.cli.format_options import FormatCommand, options_read
from tidu_cli.errors import TiduError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import ITEMSIZE
from tidu_cli.installed import runtimes
from tidu_cli.port_data import Asked

if TYPE_CHECKING:
    from tidu_cli.checking.report import Report

_DTYPES = ("f64", "c128")


@click.command(
    cls=FormatCommand,
    after="--against",
    epilog=options.example(
        "tidu check samples/f.json", "tidu linearize samples/f.json --wrt x | tidu check --all", "tidu check --ops mul sin"
    ),
)
@click.argument("subjects", nargs=-1, metavar="[FILES]...")
@click.option("--static", "static", is_flag=True, help="Masks, linearity, dead nodes, unused inputs. The default of documents.")
@click.option("--closure", "closure", is_flag=True, help="Every rule that derivatives of any order need is there.")
@click.option("--numeric", "numeric", is_flag=True, help="Derivatives against difference quotients, and laws among them.")
@click.option("--all", "everything", is_flag=True, help="All three. The default of --ops.")
@click.option("--ops", is_flag=True, help="Check primitives, not documents: those named in place of FILES, or the whole set.")
@click.option(
    "--inputs", "files", multiple=True, metavar="FILE", help="Where to try derivatives; repeats. [default: at random inputs]"
)
@click.option(
    "--dtype",
    "dtypes",
    multiple=True,
    type=click.Choice(list(ITEMSIZE)),
    metavar="DTYPE",
    help="Of --ops --numeric; repeats. [default: f64, c128]",
)
@options.option("against", type=click.Choice(runtimes()), metavar="|".join(runtimes()))
@options.option("seed", type=options.Whole(0), default=0)
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@build_option
@options.plugins_option
@options.plain_option
def command(
    subjects: tuple[str, ...],
    everything: bool,
    ops: bool,
    files: tuple[str, ...],
    dtypes: tuple[str, ...],
    against: str | None,
    seed: int,
    as_json: bool,
    **given: Any,
) -> None:
    """Say whether documents and their derivatives are right.

    Documents are read as every command reads them, up to the first that is not valid. The status is 1 if anything is wrong;
    notes are of what is useless. The numeric part prints the greatest relative error of each law. Ops that a document defines are
    judged as it uses them: the graphs that say how they are differentiated against the one that says what they compute. Those of a
    library, which has ops and no graphs, are judged at small types.

    Of a model of ONNX it says what it holds, and beyond which operators derivatives are zero; derivatives are tried with its floats
    in double precision. Sizes that it leaves open stay open, unless they are chosen with --dim, --input-type and --set.
    """
    from tidu_cli.checking.report import PARTS

    asked = {part: given.pop(part) for part in PARTS}
    none = not any(asked.values())
    parts = [part for part in PARTS if asked[part] or everything or (none and (ops or part == "static"))]
    if ops:
        reports = _of_primitives(subjects, parts, dtypes or _DTYPES)
    else:
        options.require_stdin_once(*subjects, *files)
        reports = _of_files(subjects or ("-",), parts, files, seed, options_read(given), against)
    data, failures = {}, []
    for subject, verdict, report in reports:
        data[subject] = report.to_data()
        failures += [f"{subject}: {failure}" for failure in report.failures]
        if not as_json:
            options.emit_lines([f"{subject}: {verdict}" if verdict else subject, *(f"  {line}" for line in report.lines())])
    if as_json:
        options.emit_json(data, indent=1)
    if failures:
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        raise TiduError(failures[0] + more)


def _of_files(
    paths: tuple[str, ...], parts: list[str], files: tuple[str, ...], seed: int, reading: Mapping[str, Any], against: str | None
) -> Iterator[tuple[str, str, Report]]:
    from tidu_cli.api.checks import check_subject

    options.require_names(paths)
    asked = Asked(parts, against, lambda document: _given(document, files) if files else {}, seed)
    for path in paths:
        subject, name = options.load_subject(path, files, shared=len(paths) > 1)
        where = None if path == "-" else path
        known = options.known_primitives()
        checked = check_subject(subject, name, options.shown(path), asked, known, reading, path=where, plain=options.is_plain())
        if checked.imported is not None:
            options.tell_notes(path, checked.imported)
        yield options.shown(path), checked.title, checked.report


def _of_primitives(names: tuple[str, ...], parts: list[str], dtypes: tuple[str, ...]) -> Iterator[tuple[str, str, Report]]:
    from tidu_cli.checking.report import check_primitive

    known = options.known_primitives()
    for primitive in [known[name] for name in names] or known:
        yield primitive.name, "", check_primitive(primitive, known, parts, dtypes=dtypes)


def _given(document: Document, files: tuple[str, ...]) -> dict[Key, Any]:
    from tidu_cli.runtime.inputs import value_of_input

    types = input_types(document)
    return {key: value_of_input(key, types[key], value) for key, value in file_values(files, types).items() if key in types}
