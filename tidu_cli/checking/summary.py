"""What a document is, in numbers: its graphs, the graphs within their nodes, and what evaluating it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tidu_cli.graph.closed import named_graphs
from tidu_cli.graph.graph import Document, Externals, Graph
from tidu_cli.graph.identity import digest_text, digests
from tidu_cli.graph.passes import kind_of
from tidu_cli.graph.types import RecordType
from tidu_cli.lax.vocabulary import used_records
from tidu_cli.runtime.memory import evaluation, flops


def summary_of(document: Document, *, with_digests: bool = False) -> dict[str, Any]:
    """What there is to say of a document, as plain data; with the digests of all values."""
    cost = evaluation(document)
    summary: dict[str, Any] = {
        "next_pass": document.next_pass(),
        "passes": {str(number): document.passes.get(number) for number in sorted(document.used_passes())},
        "bindings": [str(b.key) for b in document.bindings],
        "detached": [d.digest for d in document.detached],
        "types": {record.name: _record_summary(record) for record in used_records(document)},
        "graphs": [{**_graph_summary(graph), "depth": depth} for graph, depth in zip(document.graphs, cost.depths, strict=True)],
        "evaluation": {
            "nodes": cost.nodes,
            "depth": cost.depth,
            "flops": cost.flops.known,
            "nodes_of_unknown_flops": cost.flops.unknown,
            "peak_bytes": cost.peak,
        },
    }
    if with_digests:
        for graph, values in zip(summary["graphs"], digests(document), strict=True):
            graph["digests"] = list(map(digest_text, values))
    return summary


def _record_summary(record: RecordType) -> dict[str, Any]:
    views = {view.name: {name: str(type_) for name, type_ in view.properties} for view in record.views}
    fields = {"fields": {name: str(type_) for name, type_ in record.fields}, "bytes": record.nbytes}
    return fields | ({"views": views} if views else {})


def _graph_summary(graph: Graph) -> dict[str, Any]:

    ops: Counter[str] = Counter()
    for code, n in Counter(graph.code).items():
        ops[graph.cases[code].op] += n
    operations = flops(graph)
    sources = Counter(graph.external.graph)
    return {
        "name": graph.name,
        "kind": kind_of(graph),
        "linear": graph.linear,
        "inputs": {str(i.key): str(i.type) for i in graph.inputs},
        "outputs": {str(o.key): str(o.type) + (" (zero)" if o.value is None else "") for o in graph.outputs},
        "input_bytes": sum(i.type.nbytes for i in graph.inputs),
        "output_bytes": sum(o.type.nbytes for o in graph.outputs),
        "nodes": graph.n_nodes,
        "externals": len(graph.external),
        "reads": {"detached" if g == Externals.DETACHED else str(g): n for g, n in sorted(sources.items())},
        "flops": operations.known,
        "nodes_of_unknown_flops": operations.unknown,
        "ops": dict(sorted(ops.items(), key=lambda item: (-item[1], item[0]))),
        "within": list(_within(graph)),
    }


def _within(graph: Graph) -> Iterator[dict[str, Any]]:
    """The graphs within nodes: each where it comes first, though many nodes may have it, and in how many."""

    counts = Counter(graph.code)
    for code in (code for code in counts if named_graphs(graph.cases[code].attrs)):
        node = f"node {graph.code.index(code)} ({graph.cases[code].op})"
        for name, closed in named_graphs(graph.cases[code].attrs):
            (depth,) = evaluation(closed.document).depths
            yield {"place": f"{node}, {name}", "nodes_with_it": counts[code], **_graph_summary(closed.graph), "depth": depth}
