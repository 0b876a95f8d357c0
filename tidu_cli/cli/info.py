"""tidu info: summarise a document."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import counted, emit_json, emit_text, example, file_argument, load
from tidu_cli.graph.graph import Document, Graph


@click.command(cls=Command, epilog=example("tidu linearize samples/f.json --wrt x | tidu info"))
@file_argument
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
def command(file: str, as_json: bool) -> None:
    """Summarise a document.

    It tells the graphs with their inputs, outputs, and how many nodes of each op they have.
    """
    document, format_ = load(file)
    summary = _summary(document, format_)
    if as_json:
        emit_json(summary)
    else:
        emit_text(_text(summary))


def _summary(document: Document, format_: str) -> dict[str, Any]:
    return {
        "format": format_,
        "next_pass": document.next_pass(),
        "bindings": [str(b.key) for b in document.bindings],
        "detached": [d.digest for d in document.detached],
        "graphs": [_graph_summary(graph) for graph in document.graphs],
    }


def _graph_summary(graph: Graph) -> dict[str, Any]:
    ops = Counter(graph.cases[code].op for code in graph.code)
    return {
        "name": graph.name,
        "linear": graph.linear,
        "inputs": {str(i.key): str(i.type) for i in graph.inputs},
        "outputs": {str(o.key): str(o.type) + (" (zero)" if o.value is None else "") for o in graph.outputs},
        "nodes": graph.n_nodes,
        "externals": len(graph.external),
        "ops": dict(sorted(ops.items(), key=lambda item: (-item[1], item[0]))),
    }


def _text(summary: dict[str, Any]) -> str:
    lines = [f"{summary['format']}, {counted(len(summary['graphs']), 'graph')}, next pass {summary['next_pass']}"]
    if summary["bindings"]:
        lines.append(f"bound inputs: {', '.join(summary['bindings'])}")
    if summary["detached"]:
        lines.append(f"detached values: {len(summary['detached'])}")
    for number, graph in enumerate(summary["graphs"]):
        kind = "" if graph["linear"] is None else f" (linear, pass {graph['linear']})"
        head = ", the head" if number == len(summary["graphs"]) - 1 else ""
        lines.append(f"graph {number} '{graph['name']}'{kind}{head}")
        lines.append(f"  inputs:  {_typed(graph['inputs'])}")
        lines.append(f"  outputs: {_typed(graph['outputs'])}")
        ops = ", ".join(f"{count} {op}" for op, count in graph["ops"].items())
        lines.append(f"  nodes:   {graph['nodes']}" + (f" ({ops})" if ops else ""))
        if graph["externals"]:
            lines.append(f"  reads:   {counted(graph['externals'], 'value')} of other graphs")
    return "\n".join(map(_printable, lines))


def _printable(line: str) -> str:
    """Names may hold line ends and what steers a terminal: escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def _typed(ports: dict[str, str]) -> str:
    shown = [f"{key}: {type_}" for key, type_ in list(ports.items())[:8]]
    return ", ".join(shown) + (f", ... {len(ports)} in all" if len(ports) > 8 else "") or "none"
