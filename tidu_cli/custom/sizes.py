"""How many nodes custom operations stand for: told from their graphs alone, before anything is written out.

Each op that applies the one before twice doubles what it stands for: thirty of them, in seven kilobytes, are a billion nodes. To
differentiate, batch or run an op takes time as its size, and is refused where that is far beyond what is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from tidu_cli.custom.definitions import OpDefinition, SourceGraph
from tidu_cli.errors import LimitError
from tidu_cli.graph.closed import graphs_within
from tidu_cli.graph.graph import Case, Graph
from tidu_cli.limits import limits, more_than, require

Sizes = Mapping[str, int]
"""By the name of a custom operation, how many nodes it stands for."""


def sizes(definitions: Sequence[OpDefinition], order: Iterable[str]) -> Sizes:
    """The sizes of custom operations: of what they compute, or of the largest graph that says how they are differentiated.

    In `order`, what a `forward` applies comes before the op. Linear in the definitions.
    """
    by_name = {d.name: d for d in definitions}
    values: dict[str, int] = {}  # of what is computed
    largest: dict[str, int] = {}
    for name in order:
        if name in by_name:
            values[name] = _size(by_name[name].graphs["forward"], values)
    for name in values:
        graphs = by_name[name].graphs
        # A derivative through `forward` goes through those of the ops in it; any other computes what its own graph says.
        largest[name] = max(_size(graph, largest if kind == "forward" else values) for kind, graph in graphs.items())
    return largest


def _size(graph: SourceGraph, sizes: Sizes) -> int:
    return sum(sizes.get(op.partition(".")[0], 1) for node in graph.nodes for op in node.ops)


def require_written_out(definitions: Sequence[OpDefinition], sizes: Sizes, graphs: Sequence[Graph]) -> None:
    """Raises LimitError, naming the op, if the custom operations of graphs stand for more nodes than the limit allows.

    Those that are written do not count. All distinct cases do, together, as rules go through each of them node by node; and all
    nodes together, with custom operations written out, are bounded as those of any document.
    """
    allowed = limits().expansion
    written = sum(len(graph.nodes) for d in definitions for graph in d.graphs.values())
    counts = Counter[Case]()
    for code, count in Counter(chain(*(graph.code for graph in graphs))).items():
        counts[graphs[0].cases[code]] += count
    for closed in graphs_within(list(counts)):
        for code, count in Counter(closed.graph.code).items():
            counts[closed.graph.cases[code]] += count
    n_nodes = expanded = 0
    for case, count in counts.items():
        op = case.op.partition(".")[0]
        size = sizes.get(op, 0)
        n_nodes += count * max(size, 1)
        expanded += size
        if expanded > written + allowed:
            others = "" if expanded == size else ", with own ops before it and at other types,"
            raise LimitError(
                f"op '{op}': it is of ops of ops, and{others} stands for {expanded:,} nodes, {more_than('expansion', allowed)}"
            )
    require("nodes", n_nodes, "the document, with its own ops written out")
