"""What a document says before its graphs: record types, custom operations, passes."""

from __future__ import annotations

from itertools import chain

from tidu_cli.formats.nodes.writer import with_meta
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import key_to_json, passes_to_json
from tidu_cli.graph.types import RecordType
from tidu_cli.lax.builtin import used_definitions
from tidu_cli.lax.vocabulary import used_records
from tidu_cli.rules.tangents.views import view_data


def heading(document: Document) -> dict[str, object]:
    """The fields before the graphs."""
    fields = with_meta({"tidu": 1}, document.meta)
    if types := {r.name: _declaration(r) for r in used_records(document)}:
        fields["types"] = types
    codes = chain.from_iterable(graph.code for graph in document.graphs)
    if ops := {d.name: with_meta(d.to_data(), d.meta) for d in used_definitions(document.cases, codes)}:
        fields["ops"] = ops
    if document.passes:
        fields["passes"] = passes_to_json(document.passes)
    return fields


def _declaration(record: RecordType) -> dict[str, object]:
    fields: dict[str, object] = {name: str(field) for name, field in record.fields}
    return {"fields": fields, "views": {v.name: view_data(v) for v in record.views}} if record.views else fields


def bindings(document: Document) -> dict[str, object]:
    """The field after the graphs, if there are bindings."""
    found = [{"input": key_to_json(b.key), "value": [b.graph, b.value]} for b in document.bindings]
    return {"bindings": found} if found else {}
