"""What `tidu check` says of a model of ONNX: what it holds, where derivatives end, and whether they and its values are right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidu_cli.cli.module_report import VERIFIED
from tidu_cli.cli.options import is_plain, known_primitives, shown
from tidu_cli.cli.value_options import file_values, input_types
from tidu_cli.errors import counted
from tidu_cli.formats.onnx.choices import Choices, Imported, as_key
from tidu_cli.graph.types import FLOATS

if TYPE_CHECKING:
    from tidu_cli.checking.report import Report
    from tidu_cli.graph.graph import Document
    from tidu_cli.graph.keys import Key


def report_on_model(
    data: bytes, path: str, choices: Choices, parts: Container[str], against: str | None, files: tuple[str, ...], seed: int
) -> tuple[str, Report, Imported]:
    """In a few words what a model is, the report on it, and how it was read. Raises TiduError for one that is not read."""
    from tidu_cli.checking.report import Report, check_document
    from tidu_cli.formats.onnx.holdings import holdings
    from tidu_cli.formats.onnx.read import opened
    from tidu_cli.lax.builtin import vocabulary

    found = holdings(opened(data, shown(path), path))
    imported = _read(data, path, choices)
    document = imported.document
    nodes = sum(graph.n_nodes for graph in document.graphs)
    report = Report()
    if rest := [part for part in ("static", "closure") if part in parts]:
        report = check_document(document, vocabulary(document.cases), rest)
    report.facts = found.facts() | _derivatives(document)
    if imported.claim == "verified":
        report.facts["claims"] = VERIFIED
    if "numeric" in parts:
        double = _read(data, path, _in_double(choices)).document
        given = _given(double, files)
        verdicts = check_document(double, vocabulary(double.cases), ("numeric",), given=given, seed=seed)
        report.numeric, report.own = verdicts.numeric, verdicts.own
        report.failures += verdicts.failures
    if against is not None:
        _compare(report, data, path, document, choices, _given(document, files), seed)
    return f"valid onnx, {counted(found.operators.total(), 'node')}, here {counted(nodes, 'node')}", report, imported


def _read(data: bytes, path: str, choices: Choices) -> Imported:
    from tidu_cli.formats.files import Source
    from tidu_cli.formats.read import parse_imported

    source = Source(data, None if path == "-" else path)
    return parse_imported(source, shown(path), known_primitives(), choices, plain=is_plain())[0]


def _in_double(choices: Choices) -> Choices:
    types = {name: replace(t, dtype="f64") if t.dtype in FLOATS else t for name, t in choices.types.items()}
    return replace(choices, types=types, cast="f64")


def _derivatives(document: Document) -> dict[str, str]:
    """Where derivatives end, or would lack a rule."""
    from tidu_cli.checking.activity import activity
    from tidu_cli.lax.builtin import vocabulary

    if len(document.graphs) > 1 or document.head.linear is not None:
        return {}
    found = activity(document.head, vocabulary(document.cases))
    told = [f"zero beyond {_counts(found.ending)}"] if found.ending else []
    told += [f"none of {_counts(found.lacking)}: {'; '.join(found.reasons)}"] if found.lacking else []
    if not found.moving:
        told.append("no output has one by an input")
    return {"derivatives": "; ".join(told) or "through every operator"}


def _counts(found: Counter[str]) -> str:
    return ", ".join(f"{n} {name}" for name, n in found.most_common())


def _given(document: Document, files: tuple[str, ...]) -> dict[Key, Any]:
    from tidu_cli.runtime.inputs import value_of_input

    types = input_types(document)
    return {key: value_of_input(key, types[key], value) for key, value in file_values(files, types).items() if key in types}


def _compare(
    report: Report, data: bytes, path: str, document: Document, choices: Choices, given: Mapping[Key, Any], seed: int
) -> None:
    from tidu_cli.checking.against import against_onnxruntime, version
    from tidu_cli.checking.report import add_agreements
    from tidu_cli.formats.onnx.read import opened
    from tidu_cli.formats.onnx.reading.inputs import fixed, input_types

    graph = opened(data, shown(path), path).graph
    declared = [i for i in graph.input if i.name not in {t.name for t in graph.initializer}]
    types = input_types(declared, choices)
    values = {name: fixed(name, value, types[name]) for name, value in choices.values.items()}
    names = {port.name: as_key(port.name) for port in (*graph.input, *graph.output)}
    runtime = f"onnxruntime {version()}"
    add_agreements(report, runtime, against_onnxruntime(document, data if path == "-" else path, names, given, values, seed))
