"""Calls, branches, and loops as long as a condition holds; those that count are scans (`loops.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from tidu_cli.adapters.stablehlo.reading.site import Reader, Site
from tidu_cli.adapters.stablehlo.reading.special import is_special
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.names import ops_of
from tidu_cli.lax.recipes.counting import loop
from tidu_cli.rules.recording.known import Recording, inlined
from tidu_cli.rules.terms import Term


def _call(site: Site, *operands: Term) -> Sequence[Term]:
    return site.called(site.attribute("callee"), operands)


def _composite(site: Site, *operands: Term) -> Sequence[Term]:
    """What it is decomposed into; or the function of chlo that it is called by, where the two have the same values."""
    results = site.called(site.attribute("decomposition"), operands)
    op = ops_of("chlo").get(str(site.attribute("name")).removeprefix("chlo."), "")
    named = len(operands) == len(results) == 1 and is_special(site.recording, op, *operands, *results)
    return [site.emit(op, *operands)] if named else results


def _if(site: Site, which: Term) -> Sequence[Term]:
    """The first region where the predicate holds, which is number 1 of a cond."""
    return _branches(site, which, [1, 0])


def _case(site: Site, index: Term) -> Sequence[Term]:
    """The region of that number, and the last one for a number that none has, also for negative ones."""
    n = len(site.operation.regions)
    last = site.recording.full(n - 1, TensorType("i32"))
    negative = site.emit("lt", index, 0)
    return _branches(site, site.emit("select_n", negative, index, last), list(range(n)))


def _branches(site: Site, index: Term, regions: Sequence[int]) -> Sequence[Term]:
    branches = [site.region(k) for k in regions]
    outside: dict[int, Term] = {t.slot: t for _, terms in branches for t in terms}
    numbers = {slot: k for k, slot in enumerate(outside)}
    types = [t.type for t in outside.values()]
    graphs = [_widened(site, graph, [numbers[t.slot] for t in terms], types) for graph, terms in branches]
    if not graphs[0].output_types:
        return ()
    return site.emit_all("cond", index, *outside.values(), branches=tuple(graphs))


def _widened(site: Site, graph: ClosedGraph, places: Sequence[int], types: Sequence[TensorType]) -> ClosedGraph:
    """A graph that takes more operands than it needs, of which its own are at these places."""
    recording = Recording(site.recording.primitives, types)
    return recording.closed(inlined(recording, graph, [recording.sources[k] for k in places]))


def _while(site: Site, *operands: Term) -> Sequence[Term]:
    types = [t.type for t in operands]
    condition, of_condition = site.region(0, types)
    body, of_body = site.region(1, types)
    return loop(site.recording, condition, of_condition, body, of_body, operands)


OPERATIONS: dict[str, Reader] = {
    "stablehlo.case": _case,
    "stablehlo.if": _if,
    "stablehlo.while": _while,
    "func.call": _call,
    "stablehlo.composite": _composite,
}
