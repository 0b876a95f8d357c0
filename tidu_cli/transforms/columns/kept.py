"""The nodes of large graphs that are kept, renumbered as a whole: those that materialize needs, each once, or all live ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from tidu_cli.frozen import replace
from tidu_cli.graph.dataflow import (
    FIRST,
    SECOND,
    Bools,
    Flow,
    Ints,
    array_of,
    before_each,
    blocks,
    column_of,
    counts,
    distinct,
    has_single_results,
    hashes_of,
    number_by_first_use,
    operands_at,
    peel,
    readers,
    spans,
    within,
)
from tidu_cli.graph.graph import Column, Externals, Graph, Meta, column
from tidu_cli.graph.link import GraphBuilder, LogicalGraph
from tidu_cli.watching import watch

# Equal values of a large graph: hash-consing in bulk.
#
# Two nodes are equal if they are of one case and read equal values. Classes begin as single values. Nodes that read the same
# classes are merged, and the first of them stands for all; from then on only readers of classes that have just grown can have
# become equal to something. So after a first round over all nodes, rounds are as small as what they look at. There are as many as
# equal values build upon equal values; where that is deep, the plain way is the better one.


EFFORT = 16
"""How often, on average, each value may be looked at before the plain way is the better one."""
EFFORT_OF_ROUND = 2**11
"""What the calls of a round are worth, in values that are looked at."""

SEARCHES = 12
"""So often all arguments are looked at for who reads some values, before an index of readers is made."""


def equal_nodes(flow: Flow, is_node: Bools) -> tuple[Ints, Ints] | None:
    """Of these nodes, all that are equal to an earlier one, and for each of them the first that it is equal to.

    None if that takes more effort than it is worth.
    """
    effort = EFFORT * (flow.n_values + EFFORT_OF_ROUND)
    every = (within(is_node, block) for block in blocks(0, flow.n_values))
    pairs = _equal_pairs(flow, every, int(np.count_nonzero(is_node)), None)
    if pairs is None or not len(pairs[1]):
        return pairs
    read_by = _Readers(flow)
    same = np.arange(flow.n_values, dtype=np.int32)
    merged = np.empty(0, np.int32)
    is_kept = is_node.copy()  # whether it is a node that stands for itself
    has_grown = np.zeros(flow.n_values, np.bool_)
    while pairs is not None and len(pairs[1]):
        first, later = pairs
        same[later], is_kept[later] = first, False
        merged = np.concatenate([merged, later])
        same[merged] = same[same[merged]]
        has_grown[first] = True
        read = np.concatenate([distinct(first), merged[has_grown[same[merged]]]])
        has_grown[first] = False
        reading = read_by(read)
        candidates = distinct(reading[is_kept[reading]])
        effort -= len(merged) + len(candidates) + EFFORT_OF_ROUND
        if effort < 0:
            return None
        pieces = (candidates[block] for block in blocks(0, len(candidates)))
        pairs = _equal_pairs(flow, pieces, len(candidates), same)
    return pairs and (merged, same[merged])


class _Readers:
    """Who reads some values: found among all arguments the first few times; then by an index, which takes more time and memory."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._asked = 0
        self._index: tuple[Ints, Ints] | None = None

    def __call__(self, values: Ints) -> Ints:
        self._asked += 1
        if self._asked <= SEARCHES:
            return self._search(values)
        if self._index is None:
            self._index = readers(self.flow)
        start, reader = self._index
        return reader[spans(start[values], start[values + 1])]

    def _search(self, values: Ints) -> Ints:
        is_read = np.zeros(self.flow.n_values, np.bool_)
        is_read[values] = True
        args = self.flow.args
        first = self.flow.start[values.min()]  # who reads a value comes after it
        at = [np.flatnonzero(is_read[args[block]]) + block.start for block in blocks(first, len(args))]
        # A search for other integers would take a copy of what it searches.
        places = np.concatenate([*at, args[:0]]).astype(np.int32)
        return (np.searchsorted(self.flow.start, places, side="right") - 1).astype(np.int32)


def _equal_pairs(flow: Flow, nodes: Iterable[Ints], n: int, same: Ints | None) -> tuple[Ints, Ints] | None:
    """Of n nodes, the first of those that are equal, and each later one that is equal to it.

    `same` says which values are equal so far (None: each to itself). None if two different nodes have the same hashes.
    """
    suspects = _suspects(flow, nodes, n, same)
    # Few are left, and a second hash tells apart what only the cut has made alike.
    hashes = hashes_of(flow, suspects, same, SECOND)
    order = np.lexsort((suspects, hashes))
    suspects, hashes = suspects[order], hashes[order]
    is_later = np.append(False, hashes[1:] == hashes[:-1])[: len(suspects)]
    place = np.arange(len(suspects))
    first = suspects[np.maximum.accumulate(np.where(is_later, 0, place))][is_later]
    later = suspects[is_later]
    return (first, later) if _all_equal(flow, first, later, same) else None


def _suspects(flow: Flow, nodes: Iterable[Ints], n: int, same: Ints | None) -> Ints:
    """Of n nodes, those whose hashes others have, too.

    Hashes are cut to make room for the nodes' own numbers, so that to sort hashes is to sort nodes by their hashes, in place.
    """
    bits = np.uint64(flow.n_values.bit_length())
    hashes = np.empty(n, np.uint64)
    end = 0
    for some in nodes:
        begin, end = end, end + len(some)
        hashes[begin:end] = hashes_of(flow, some, same, FIRST) >> bits << bits | some.astype(np.uint64)
    hashes.sort()
    is_alike = np.zeros(n + 1, np.bool_)  # as the one before it; none is as the first, nor is what is past the end
    for block in blocks(1, n):
        is_alike[block] = hashes[block] ^ hashes[block.start - 1 : block.stop - 1] < np.uint64(1) << bits
    is_alike[:-1] |= is_alike[1:]
    return (hashes[is_alike[:-1]] & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int32)


def _all_equal(flow: Flow, first: Ints, later: Ints, same: Ints | None) -> bool:
    """Whether the nodes of each pair are equal: what no hash is trusted with."""
    a, b = flow.start[first], flow.start[later]
    a_end, b_end = flow.start[first + 1], flow.start[later + 1]
    if not np.array_equal(flow.code[first], flow.code[later]) or not np.array_equal(a_end - a, b_end - b):
        return False
    return np.array_equal(operands_at(flow, spans(a, a_end), same), operands_at(flow, spans(b, b_end), same))


def copy_nodes(
    logical: LogicalGraph, needed: bytearray, builder: GraphBuilder, inputs: Mapping[int, int], node_meta: dict[int, Meta]
) -> Column[int] | None:
    """Copy the nodes that are needed, and give the new ids of all values, as the plain way does.

    None, and nothing done, where that one is better: several results, or equal values that build upon equal values far up.
    """
    flow = logical.flow
    if flow is None:
        return None
    is_kept = np.frombuffer(needed, np.bool_) & (flow.code >= 0)
    equal = equal_nodes(flow, is_kept)
    if equal is None:
        return None
    later, first = equal
    is_kept[later] = False
    new_id = column([0]) * logical.n_values
    for flat, number in inputs.items():
        new_id[flat] = number
    ids, number = array_of(new_id), builder.n_values
    pieces = list(blocks(0, flow.n_values))
    for block in pieces:
        kept = within(is_kept, block)
        ids[kept] = np.arange(number, number + len(kept))
        number += len(kept)
    ids[later] = ids[first]

    for base, graph in zip(logical.base, logical.document.graphs, strict=False):
        for node, meta in graph.node_meta.items():
            flat = base + len(graph.inputs) + node
            if is_kept[flat]:
                node_meta[new_id[flat] - builder.n_values] = meta
    builder.code, builder.args = _written(flow, is_kept, ids, watch("materializing", len(pieces))(pieces))
    builder.n_values += len(builder.code)
    return new_id


def values_of(external: Externals, number: int) -> Column[int]:
    """Those of these externals that are values of the graph of this number."""
    return column_of(array_of(external.value)[array_of(external.graph) == number])


def live_part(graph: Graph, roots: Column[int]) -> tuple[Graph, Column[int] | None] | None:
    """What the plain way does; None if something is dead, and some node has several results."""
    n_inputs, n_external = len(graph.inputs), len(graph.external)
    if _are_all_read(graph, roots):
        return graph, None
    code = np.concatenate([np.full(n_inputs, -1, np.int32), array_of(graph.code)])
    if not has_single_results(graph.cases, code):
        return None
    flow = Flow.of(code, array_of(graph.args), graph.cases)
    is_local = flow.args >= 0
    own = flow.args[is_local]
    held = counts(own, flow.n_values)
    np.add.at(held, array_of(roots)[array_of(roots) >= 0], 1)
    peel(held, before_each(is_local)[flow.start], own)
    is_live = held > 0
    is_live[:n_inputs] = True

    new_id = before_each(is_live)[:-1]
    # Externals, which are negative, count from the end.
    ids = np.concatenate([new_id, np.arange(-n_external, 0, dtype=np.int32)])
    codes, args = _written(flow, is_live & (flow.code >= 0), ids, blocks(0, flow.n_values))
    kept = number_by_first_use(array_of(args), n_external)
    external = Externals(column_of(array_of(graph.external.graph)[kept]), column_of(array_of(graph.external.value)[kept]))
    renumbered = column_of(new_id)
    outputs = tuple(o if o.value is None or o.value < 0 else replace(o, value=renumbered[o.value]) for o in graph.outputs)
    return replace(graph, code=codes, args=args, external=external, outputs=outputs), renumbered


def _are_all_read(graph: Graph, roots: Column[int]) -> bool:
    is_read = np.zeros(graph.n_values + len(graph.external), np.bool_)  # externals, which are negative, count from the end
    for values in (array_of(graph.args), array_of(roots)):
        for block in blocks(0, len(values)):
            is_read[values[block]] = True
    return bool(is_read[len(graph.inputs) : graph.n_values].all())


def _written(flow: Flow, is_kept: Bools, ids: Ints, pieces: Iterable[slice]) -> tuple[Column[int], Column[int]]:
    """The columns `code` and `args` of the nodes that are kept. What they read has these ids; `pieces` are blocks of all values."""
    n_args = sum(int(np.diff(flow.start[b.start : b.stop + 1])[is_kept[b]].sum()) for b in blocks(0, flow.n_values))
    codes, arguments = column([0]) * int(np.count_nonzero(is_kept)), column([0]) * n_args
    code, args, node, arg = array_of(codes), array_of(arguments), 0, 0
    for piece in pieces:
        kept = within(is_kept, piece)
        read = ids[flow.args[spans(flow.start[kept], flow.start[kept + 1])]]
        code[node : node + len(kept)] = flow.code[kept]
        args[arg : arg + len(read)] = read
        node, arg = node + len(kept), arg + len(read)
    return codes, arguments


# The nodes of a large graph by their cases, and by which of their operands are active.


NODES_PER_CASE = 16
"""With fewer nodes than this for each case, the calls that a case costs outweigh what they save."""


def by_code(code: Ints, values: Ints) -> list[tuple[int, Ints]]:
    """The distinct codes of some values, and the values of each in the order given."""
    codes = code[values]
    if len(codes) and codes.max() < 2**16:
        codes = codes.astype(np.uint16)  # which NumPy sorts in linear time
    ordered = values[np.argsort(codes, kind="stable")]
    counts = np.bincount(codes)
    ends = np.cumsum(counts)
    return [(int(c), ordered[ends[c] - counts[c] : ends[c]]) for c in np.flatnonzero(counts)]


def are_few(code: Ints, values: Ints) -> bool:
    """Whether so few different codes occur that work by groups of equal codes pays."""
    return bool(np.count_nonzero(np.bincount(code[values])) * NODES_PER_CASE <= len(values))


def operands(flow: Flow, values: Ints, k: int) -> Ints:
    """The argument number k of each of these values."""
    return flow.args[flow.start[values] + k]


def by_mask(flow: Flow, values: Ints, arity: int, active: Bools) -> Iterator[tuple[tuple[bool, ...], Ints]]:
    """The distinct masks of some values of this arity, which say what operands are active, and the values of each in order."""
    masks = np.empty((len(values), arity), np.bool_)
    for k in range(arity):
        masks[:, k] = active[operands(flow, values, k)]
    if masks.all():
        yield (True,) * arity, values
        return
    packed = np.packbits(masks, axis=1)
    if packed.shape[1] == 1:
        kinds = np.flatnonzero(np.bincount(packed[:, 0]))
        groups = [np.flatnonzero(packed[:, 0] == kind) for kind in kinds]
    else:
        _, inverse = np.unique(packed, axis=0, return_inverse=True)
        order = np.argsort(inverse.reshape(-1), kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(inverse.reshape(-1)))[:-1])
    for group in groups:
        yield tuple(masks[group[0]].tolist()), values[group]
