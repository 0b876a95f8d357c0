"""Commands that tell in text what a document is.

tidu show: a document as text that one can read.
tidu info: summarise a document.
tidu sparsity: where a derivative can be other than zero.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any
from unicodedata import combining, east_asian_width

import click

from tidu_cli.cli import options
from tidu_cli.cli.main import Command
from tidu_cli.cli.messages import coloured
from tidu_cli.cli.out_option import result_options
from tidu_cli.errors import counted, printable
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import listed
from tidu_cli.installed import source_named
from tidu_cli.limits import format_size
from tidu_cli.streams import data_stream

_PARTS = re.compile(
    r"(?P<cotangent>[^\s(),:=]+@[-\d@]*-\d+'?)|(?P<tangent>[^\s(),:=]+@\d[\d@]*'?)|(?P<remark>  # .*)"
    r"|(?P<type>: [A-Za-z]\w*(?:\[[^\]]*\])*)|(?P<op>(?<=[^n] = )[a-z]\w*)"
)
_COLOURS: dict[str, dict[str, Any]] = {
    "cotangent": {"fg": "magenta"},
    "tangent": {"fg": "yellow"},
    "remark": {"dim": True},
    "type": {"dim": True},
    "op": {"fg": "cyan"},
}


@click.command(cls=Command, epilog=options.example("tidu linearize samples/f.json --wrt x | tidu transpose | tidu show"))
@options.file_argument
@options.option("all")
@options.option("formula")
def show(file: str, all: bool, formula: bool) -> None:
    """Show a document as text.

    Each value has a line: its name, its type, and the op that gives it, with attrs in brackets and operands. Inputs go by their
    keys, results of nodes by letters, numbers without axes as they are. In derivatives an operand with a prime is one that moves:
    c = mul b x@1' is linear in x@1. Graphs within loops and branches stand below their nodes. Of a graph of more than 60 nodes the
    first and the last are shown.
    """
    document, _ = options.load(file)
    if formula:
        options.emit_lines([source_named("formula").written(document)])
    else:
        from tidu_cli.render.listing import listing

        options.emit_lines(listing(document, every=all), _coloured if coloured(data_stream()) else str)


def _coloured(line: str) -> str:
    """A line for a terminal: tangents yellow, cotangents magenta, ops cyan, types and remarks dim, headers bold."""
    if line.lstrip().startswith("return "):
        return _PARTS.sub(lambda m: m[0] if m.lastgroup == "op" else _styled(m), line)
    head, bracket, rest = line.partition("(") if line.endswith(":") or ":  # " in line else ("", "", line)
    return (click.style(head, bold=True) if head else "") + bracket + _PARTS.sub(_styled, rest)


def _styled(token: re.Match[str]) -> str:
    return click.style(token[0], **_COLOURS[str(token.lastgroup)])


_NAME = 32  # how much of a name the table shows
_OPS = 4  # and how many ops
_TYPE = 80  # how much of a type
_WITHIN = 20  # how many graphs within nodes of each graph are listed
_TYPES = 20  # how many record types are listed
_PREFIXES = ("", " k", " M", " G", " T", " P", " E")


@click.command(cls=Command, epilog=options.example("tidu linearize samples/f.json --wrt x | tidu info"))
@options.file_argument
@options.option("digests")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs, with exact numbers.")
def info(file: str, digests: bool, as_json: bool) -> None:
    """Summarise a document.

    A table tells of each graph what it is, how many inputs, outputs and nodes it has, the bytes of the former two, the depth (the
    most nodes on a path that ends in it, those of graphs that it reads included), the operations that its nodes take, and its
    most frequent ops; below it, indented, the same of the graphs in its loops and branches, of one step. A star marks the head.
    Then come the record types of the document, what evaluating the head takes, and each graph's inputs and outputs.
    """
    from tidu_cli.api.checks import info

    document, format_ = options.load(file)
    summary = {"format": format_, **info(document, digests)}
    if as_json:
        options.emit_json(summary)
    else:
        options.emit_lines(_lines(summary, document))


def _lines(summary: dict[str, Any], document: Document) -> Iterable[str]:
    graphs, cost = summary["graphs"], summary["evaluation"]
    yield f"{summary['format']}, {counted(len(graphs), 'graph')}, next pass {summary['next_pass']}"
    if summary["bindings"]:
        yield f"bound inputs: {', '.join(summary['bindings'])}"
    if summary["detached"]:
        yield f"detached values: {len(summary['detached'])}"
    yield ""
    yield from _table(graphs)
    if summary["sizes"]:
        yield ""
        yield f"open sizes: {', '.join(map(_bounded, summary['sizes'].items()))}"
    if summary["types"]:
        yield ""
        yield from _types(summary["types"])
    yield ""
    peak = ("open" if summary["sizes"] else "unknown") if cost["peak_bytes"] is None else format_size(cost["peak_bytes"])
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
        if "digests" in graph:
            yield "  digests:"
            yield from (
                f"    {digest}  {of}" for digest, of in zip(graph["digests"], _values(document.graphs[number]), strict=True)
            )


def _values(graph: Graph) -> Iterable[str]:
    """What the local values of a graph are: inputs, and the results of nodes by number and op."""
    yield from (f"input {i.key}" for i in graph.inputs)
    for node, code in enumerate(graph.code):
        n = graph.cases.n_results[code]
        yield from (f"node {node} ({graph.cases[code].op})" + (f", result {slot}" if n > 1 else "") for slot in range(n))


def _table(graphs: Sequence[dict[str, Any]]) -> Iterable[str]:
    from tidu_cli.render.folding import short

    rows: list[tuple[str, ...]] = [
        ("", "#", "graph", "kind", "inputs", "bytes", "outputs", "bytes", "nodes", "depth", "flops", "ops")
    ]
    for number, graph in enumerate(graphs):
        kind = graph["kind"] if graph["linear"] is None else f"{graph['kind']}, pass {graph['linear']}"
        name = short(printable(graph["name"]), _NAME)
        rows.append(("*" if number == len(graphs) - 1 else "", str(number), name, kind, *_figures(graph)))
        within = list(_nested(graph, 1))
        for level, inner in within[:_WITHIN]:
            rows.append(("", "", f"{'  ' * level}{inner['place']}", "", *_figures(inner)))
        if len(within) > _WITHIN:
            rows.append(("", "", f"  ... {len(within)} within nodes in all", "", *[""] * 8))
    for star, *cells in _aligned(rows, left=(0, 2, 3, 11)):
        yield f"{star} {'  '.join(cells)}".rstrip()


def _bounded(size: tuple[str, dict[str, int]]) -> str:
    name, bounds = size
    words = {"min": "at least", "max": "at most", "multiple_of": "a multiple of"}
    return name + (f" ({', '.join(f'{words[kind]} {n}' for kind, n in bounds.items())})" if bounds else "")


def _bytes(size: int | None) -> str:
    return "open" if size is None else format_size(size)


def _figures(graph: dict[str, Any]) -> tuple[str, ...]:
    return (
        str(len(graph["inputs"])),
        _bytes(graph["input_bytes"]),
        str(len(graph["outputs"])),
        _bytes(graph["output_bytes"]),
        _count(graph["nodes"]),
        _count(graph["depth"]),
        _operations(graph),
        _ops(graph["ops"], _OPS),
    )


def _nested(graph: dict[str, Any], level: int) -> Iterator[tuple[int, dict[str, Any]]]:
    for inner in graph["within"]:
        yield level, inner
        yield from _nested(inner, level + 1)


def _types(types: dict[str, Any]) -> Iterable[str]:
    """A table of the record types: what they are of, and the bytes that a value takes."""
    from tidu_cli.render.folding import short

    rows = [("type", "fields", "bytes")]
    for name, known in list(types.items())[:_TYPES]:
        fields = _typed_parts(known["fields"])
        rows.append((short(name, _NAME), short(fields, _TYPE), format_size(known["bytes"])))
        rows += [
            (f"  view {short(view, _NAME)}", short(_typed_parts(parts), _TYPE), "")
            for view, parts in known.get("views", {}).items()
        ]
    for cells in _aligned(rows, left=(0, 1)):
        yield ("  " + "  ".join(cells)).rstrip()
    if len(types) > _TYPES:
        yield f"  ... {len(types)} in all"


def _typed_parts(parts: dict[str, str]) -> str:
    return ", ".join(f"{name}: {type_}" for name, type_ in parts.items())


def _aligned(rows: Sequence[Sequence[str]], left: Container[int]) -> Iterator[list[str]]:
    """The cells of a table, all of a column of one width; text stands on the left in the columns `left`."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = [(cell, " " * (width - _width(cell))) for cell, width in zip(row, widths, strict=True)]
        yield [cell + space if k in left else space + cell for k, (cell, space) in enumerate(padded)]


def _ops(ops: dict[str, int], shown: int) -> str:
    return listed([f"{_count(n)} {op}" for op, n in ops.items()], shown) if ops else ""


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
    from tidu_cli.render.folding import short

    return listed([f"{key}: {short(type_, _TYPE)}" for key, type_ in ports.items()])


@click.command(cls=Command, epilog=options.example("tidu sparsity samples/vector.json --wrt x"))
@options.file_argument
@options.option("wrt")
@options.option("output")
@options.option("second")
@result_options("text", "json", "npz", "mtx", "svg", "png", default="text")
def sparsity(file: str, out: str | None, format_: str | None, wrt: tuple[Key, ...], **given: Any) -> None:
    """Say which outputs depend on which inputs, element by element.

    That is the pattern of the Jacobian, where it may be other than 0, whatever the inputs are. Rows go through the outputs in
    order, and columns through the --wrt inputs. As text it is counts and a picture; npz is what scipy.sparse.load_npz reads, mtx
    is Matrix Market. tidu jacobian --sparse and tidu hessian --sparse derive just these entries.
    """
    from tidu_cli.api.derivatives import sparsity as pattern_of
    from tidu_cli.sparse.patterns import written

    chosen = options.chosen_format(out, format_, "text")
    options.require_printable(out, chosen)
    options.emit_bytes(written(pattern_of(options.load(file).document, wrt or None, **given), chosen), out)
