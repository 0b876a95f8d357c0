"""What `tidu check` says of a model of ONNX: what it holds, where derivatives end, and whether they and its values are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidu_cli.adapters.onnx.choices import Choices, as_key
from tidu_cli.adapters.onnx.holdings import holdings, listed_counts
from tidu_cli.adapters.onnx.read import opened
from tidu_cli.checking.against import VERIFIED, Agreement
from tidu_cli.errors import counted
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Document
from tidu_cli.graph.types import FLOATS
from tidu_cli.port_data import Asked, Imported, Remarks
from tidu_cli.ports import Readable


def remarks(source: Readable, where: str, imported: Imported, options: Mapping[str, Any], asked: Asked) -> Remarks:
    """What `check` says of a model. Raises TiduError."""
    data = source.read()
    held = holdings(opened(data, where, source.path))
    facts = held.facts() | _derivatives(imported.document)
    if imported.claim == "verified":
        facts["claims"] = VERIFIED
    holds = counted(held.operators.total(), "node")
    if asked.against is None:
        return Remarks(facts, (), holds)
    name, agreements = _compared(data, source.path, where, imported.document, Choices.of(**options), asked)
    return Remarks(facts, (), holds, name, agreements)


def in_double(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with all floats in double precision."""
    types = Choices.of(**options).types
    return {
        **options,
        "input_types": {name: replace(t, dtype="f64") if t.dtype in FLOATS else t for name, t in types.items()},
        "cast": "f64",
    }


def _derivatives(document: Document) -> dict[str, str]:
    """Where derivatives end, or would lack a rule."""
    from tidu_cli.checking.static import activity
    from tidu_cli.lax.vocabulary import vocabulary

    if len(document.graphs) > 1 or document.head.linear is not None:
        return {}
    active = activity(document.head, vocabulary(document.cases))
    told = [f"zero beyond {listed_counts(active.ending)}"] if active.ending else []
    told += [f"none of {listed_counts(active.lacking)}: {'; '.join(active.reasons)}"] if active.lacking else []
    if not active.moving:
        told.append("no output has one by an input")
    return {"derivatives": "; ".join(told) or "through every operator"}


def _compared(
    data: bytes, path: str | None, where: str, document: Document, choices: Choices, asked: Asked
) -> tuple[str, Sequence[Agreement]]:
    """The runtime with its version, and how its values agree with the document's."""
    from tidu_cli.adapters.onnx.reading.inputs import fixed, input_types
    from tidu_cli.adapters.onnx.runtime import against_onnxruntime, version

    graph = opened(data, where, path).graph
    declared = [i for i in graph.input if i.name not in {t.name for t in graph.initializer}]
    types = input_types(declared, choices)
    values = {name: fixed(name, value, types[name]) for name, value in choices.values.items()}
    names = {port.name: as_key(port.name) for port in (*graph.input, *graph.output)}
    agreements = against_onnxruntime(document, path or data, names, asked.given(document), values, asked.seed)
    return f"onnxruntime {version()}", agreements
