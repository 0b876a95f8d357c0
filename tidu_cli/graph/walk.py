"""Walking a graph node by node: what each is, what it reads, and what it makes.

Walks are chains of iterators in C, which take half the time of a generator and are as lazy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from itertools import chain, compress, repeat
from operator import itemgetter

from tidu_cli.graph.graph import Graph

Numbers = tuple[int, ...]
Node = tuple[int, Numbers, int, int]
"""The number of a node's case, its arguments, its first result, and the first value that comes after its results."""


def forwards(graph: Graph, args: Iterable[int], base: int = 0) -> Iterator[Node]:
    """The nodes in order. `args` are the graph's, or what stands for them; its first value has the number `base`.

    What stands for them is asked for as nodes come: `map(new_id.__getitem__, graph.args)` finds what earlier nodes have entered.
    """
    firsts = first_results(graph, base)
    return zip(graph.code, operands(graph, graph.code, args), firsts, firsts[1:], strict=False)


def backwards(graph: Graph, args: Sequence[int], base: int = 0) -> Iterator[Node]:
    """Likewise, from the last node to the first."""
    firsts = first_results(graph, base)
    reads = map(_turned_round, operands(graph, reversed(graph.code), reversed(args)))
    return zip(reversed(graph.code), reads, firsts[-2::-1], firsts[:0:-1], strict=False)


def operands(graph: Graph, codes: Iterable[int], args: Iterable[int]) -> Iterator[Numbers]:
    """The arguments of nodes of these cases, from these, which `forwards` takes, too. The graph has all of the cases."""
    rest = iter(args)
    return _taken(graph, codes, lambda _, arity: zip(*[rest] * arity, strict=False) if arity else repeat(()))


def whole_nodes(graph: Graph, args: Iterable[int]) -> Iterator[Numbers]:
    """Of each node in order the number of its case and its arguments, as one tuple. `args` are as `forwards` takes them."""
    rest = iter(args)
    return _taken(graph, graph.code, lambda code, arity: zip(repeat(code), *[rest] * arity, strict=False))


def mark_dependencies(graph: Graph, marked: MutableSequence[int]) -> None:
    """Mark with 1 what marked arguments depend on. `marked` has a place for each: values, then externals, the last one first."""
    firsts = first_results(graph)
    reads = operands(graph, reversed(graph.code), reversed(graph.args))
    for argument in chain.from_iterable(compress(reads, are_marked(marked, firsts[-2::-1], firsts[:0:-1]))):
        marked[argument] = 1


def are_marked(marked: Sequence[int], firsts: Sequence[int], ends: Sequence[int]) -> Iterator[object]:
    """For each node with these results whether one of them is marked, at the time when that is asked."""
    if isinstance(firsts, range):
        return map(marked.__getitem__, firsts)
    return map(any, map(marked.__getitem__, map(slice, firsts, ends)))


def first_results(graph: Graph, base: int = 0) -> Sequence[int]:
    """The graph's `firsts`, where its first value has the number `base`."""
    firsts = graph.firsts
    return range(base + firsts[0], base + firsts[-1] + 1) if isinstance(firsts, range) else [base + v for v in firsts]


_turned_round: Callable[[Numbers], Numbers] = itemgetter(slice(None, None, -1))


def _taken(graph: Graph, codes: Iterable[int], take: Callable[[int, int], Iterator[Numbers]]) -> Iterator[Numbers]:
    """For each of these nodes the next that `take` gives for its case and arity."""
    takers = {code: take(code, graph.cases.arity[code]) for code in set(graph.code)}
    return map(next, map(takers.__getitem__, codes))
