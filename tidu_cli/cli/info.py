"""tidu info: summarise a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from unicodedata import combining, east_asian_width

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import counted, emit_json, emit_text, example, file_argument, load, printable
from tidu_cli.graph.graph import Document, Externals, Graph

_NAME = 32  # how much of a name the table shows
_OPS = 4  # and how many ops
_PORTS = 8  # how many inputs and outputs a graph's lines name
_PREFIXES = ("", " k", " M", " G", " T", " P", " E")


@click.command(cls=Command, epilog=example("tidu linearize samples/f.json --wrt x | tidu info"))
@file_argument
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs, with exact numbers.")
def command(file: str, as_json: bool) -> None:
    """Summarise a document.

    A table tells of each graph what it is, how many inputs, outputs and nodes it has, the bytes of the former two, the depth (the
    most nodes on a path that ends in it, those of graphs that it reads included), the operations that its nodes take, and its
    most frequent ops. A star marks the head. What evaluating the head takes comes next, then each graph's inputs and outputs.
    """
    document, format_ = load(file)
    summary = _summary(document, format_)
    if as_json:
        emit_json(summary)
    else:
        emit_text("\n".join(map(printable, _lines(summary))))


def _summary(document: Document, format_: str) -> dict[str, Any]:
    from tidu_cli.runtime.cost import depths, evaluation

    cost = evaluation(document)
    return {
        "format": format_,
        "next_pass": document.next_pass(),
        "bindings": [str(b.key) for b in document.bindings],
        "detached": [d.digest for d in document.detached],
        "graphs": [
            {**_graph_summary(graph), "depth": depth} for graph, depth in zip(document.graphs, depths(document), strict=True)
        ],
        "evaluation": {
            "nodes": cost.nodes,
            "depth": cost.depth,
            "flops": cost.flops.known,
            "nodes_of_unknown_flops": cost.flops.unknown,
            "peak_bytes": cost.peak,
        },
    }


def _graph_summary(graph: Graph) -> dict[str, Any]:
    from tidu_cli.graph.kind import kind_of
    from tidu_cli.runtime.cost import flops

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
    }


def _lines(summary: dict[str, Any]) -> Iterable[str]:
    from tidu_cli.runtime.memory import format_size

    graphs, cost = summary["graphs"], summary["evaluation"]
    yield f"{summary['format']}, {counted(len(graphs), 'graph')}, next pass {summary['next_pass']}"
    if summary["bindings"]:
        yield f"bound inputs: {', '.join(summary['bindings'])}"
    if summary["detached"]:
        yield f"detached values: {len(summary['detached'])}"
    yield ""
    yield from _table(graphs)
    yield ""
    peak = "unknown" if cost["peak_bytes"] is None else format_size(cost["peak_bytes"])
    nodes = counted(cost["nodes"], "node")
    yield f"evaluating the head: {nodes}, depth {cost['depth']}, {_operations(cost)} flops, peak memory {peak}"
    for number, graph in enumerate(graphs):
        yield ""
        yield f"graph {number} '{graph['name']}'{', the head' if number == len(graphs) - 1 else ''}"
        yield f"  inputs:  {_typed(graph['inputs'])}"
        yield f"  outputs: {_typed(graph['outputs'])}"
        if len(graph["ops"]) > _OPS:
            yield f"  ops:     {_ops(graph['ops'], len(graph['ops']))}"
        if graph["reads"]:
            yield f"  reads:   {', '.join(_read(*read) for read in graph['reads'].items())}"


def _table(graphs: Sequence[dict[str, Any]]) -> Iterable[str]:
    from tidu_cli.render.text import short
    from tidu_cli.runtime.memory import format_size

    rows = [("", "#", "graph", "kind", "inputs", "bytes", "outputs", "bytes", "nodes", "depth", "flops", "ops")]
    for number, graph in enumerate(graphs):
        rows.append(
            (
                "*" if number == len(graphs) - 1 else "",
                str(number),
                printable(short(graph["name"], _NAME)),
                graph["kind"] if graph["linear"] is None else f"{graph['kind']}, pass {graph['linear']}",
                str(len(graph["inputs"])),
                format_size(graph["input_bytes"]),
                str(len(graph["outputs"])),
                format_size(graph["output_bytes"]),
                _count(graph["nodes"]),
                _count(graph["depth"]),
                _operations(graph),
                _ops(graph["ops"], _OPS),
            )
        )
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell + " " * (width - _width(cell)) if k in (0, 2, 3, 11) else " " * (width - _width(cell)) + cell
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield f"{cells[0]} {'  '.join(cells[1:])}".rstrip()


def _ops(ops: dict[str, int], shown: int) -> str:
    listed = [f"{_count(n)} {op}" for op, n in list(ops.items())[:shown]]
    return ", ".join(listed) + (f", ... {len(ops)} in all" if len(ops) > shown else "")


def _read(source: str, n: int) -> str:
    return counted(n, "detached value") if source == "detached" else f"{counted(n, 'value')} of graph {source}"


def _operations(cost: dict[str, Any]) -> str:
    """Operations for people; `>=` where some nodes' are unknown."""
    return f"{'>= ' if cost['nodes_of_unknown_flops'] else ''}{_count(cost['flops'])}"


def _count(n: int) -> str:
    """A number for people: exact below 10,000, else three digits, `12.3 k`."""
    if n < 10_000:
        return str(n)
    power = min((len(str(n)) - 1) // 3, len(_PREFIXES) - 1)
    shown = f"{n / 1000**power:.3g}"
    if shown == "1e+03" and power < len(_PREFIXES) - 1:
        shown, power = "1", power + 1
    return shown + _PREFIXES[power]


def _width(text: str) -> int:
    """How many columns a terminal gives the text: two to a wide character, none to a combining one."""
    return len(text) if text.isascii() else sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def _typed(ports: dict[str, str]) -> str:
    shown = [f"{key}: {type_}" for key, type_ in list(ports.items())[:_PORTS]]
    return ", ".join(shown) + (f", ... {len(ports)} in all" if len(ports) > _PORTS else "") or "none"
