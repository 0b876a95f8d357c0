"""Special functions that a module has written out, as polynomials and choices: known by their values, and read as what they are.

`jax.export` writes the functions of chlo out, and so do other programs: erfc is a hundred operations. Their values are those of
the function, and their derivatives those of the pieces: for asinh log1p(a + a² / (1 + √(1 + a²))) of a = |x| with the sign of x,
whose slope at 0 is 0. Nothing says which piece is which. But that a value is a function of one other, element by element, can be
seen, and that it is one of these is tried at points all over its domain, at its poles and ends, too. What differs anywhere is read
as it is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tidu_cli.adapters.stablehlo.reading.guards import is_elementwise
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import literal_array, numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import Types
from tidu_cli.rules.recording.known import Recording
from tidu_cli.rules.recording.trace import Emitted
from tidu_cli.rules.terms import Term

if TYPE_CHECKING:
    from numpy.typing import NDArray

ENDS = {"stablehlo.select", "stablehlo.multiply", "stablehlo.clamp"}
"""Operations that may be the last of a special function: pieces are chosen, a sign comes back, or rounding is cut off."""

DOMAINS = {
    "acos": (1e-3, 0.99),
    "acosh": (1.01, 1e3),
    "asin": (1e-3, 0.99),
    "asinh": (1e-3, 1e3),
    "atanh": (1e-3, 0.99),
    "bessel_i0e": (1e-3, 50.0),
    "bessel_i1e": (1e-3, 50.0),
    "cosh": (1e-3, 20.0),
    "digamma": (0.01, 50.0),
    "erf": (1e-3, 6.0),
    "erfc": (1e-3, 26.0),
    "erf_inv": (1e-3, 0.999),
    "lgamma": (0.01, 50.0),
    "sinh": (1e-3, 20.0),
}
"""The functions, and between which sizes they are tried; negative, too."""

CROSSING = {"digamma", "lgamma"}
"""Those with zeros at which they are not 0 to rounding."""

POINTS = 40
"""How many points of each sign are tried."""

QUICK = (0.37, -0.62, 1.7)
"""What is not the same here is no such function."""

SPECIAL = (0.0, 0.5, 1.0, 2.0, 1e2, 1e4, 1e8, 1e20, 1e200, float("inf"), float("nan"), *(1 - 10.0**-k for k in range(2, 16)))
"""Where there are poles, ends of domains, and pieces of their own next to these; and -x."""

TOLERANCE = {"f32": 5e-6, "f64": 1e-13}
"""By dtype, how far values may differ, relative to them: some roundings, which grow in the tails."""

COARSE = {"f32": 1e-5, "f64": 5e-11}
"""Likewise for erf_inv, of which XLA has 11 digits next to 1."""

FEWEST, MOST = 12, 700
"""The fewest and the most operations of a function that is written out."""

STEPS, STEPS_A_NODE = 20_000, 30
"""Bounds on the steps of the search: for a module, and in addition for each of its nodes."""

Nodes = Sequence[tuple[int, Emitted]]
"""The nodes from a value down to one that it is a function of, its own first: with the slots of their results."""


def recognised(recording: Recording, y: Term) -> Term:
    """A value as the special function that it is, if it is one of another value; else, and where looking took long, as it is."""
    if not _may_end(recording, y):
        return y
    tried = False
    for source, nodes in _cones(recording, y):
        ops = {recording.cases[node.code].op for _, node in nodes}
        if len(nodes) < FEWEST and ops.isdisjoint(DOMAINS):  # but for what was recognised and has its ends chosen
            continue
        if tried and recording.cases[nodes[-1][1].code].op not in ("abs", "clamp"):  # what only these read is nearer than x
            break
        if op := _match(recording, y.type.dtype, source, nodes, DOMAINS):
            return recording.emit(op, Term(recording, source, y.type, False))
        tried = True
    return y


def is_special(recording: Recording, op: str, x: Term, y: Term) -> bool:
    """Whether y is this function of x, as it is said to be."""
    cone = next((nodes for source, nodes in _cones(recording, y) if source == x.slot), None)
    return bool(cone and op in DOMAINS and _match(recording, y.type.dtype, x.slot, cone, [op]))


def _may_end(recording: Recording, y: Term) -> bool:
    node = recording.maker(y.slot)
    op = node and recording.cases[node.code].op
    if node is None or op != "mul":
        return op in ("select_n", "clamp")
    makers = [recording.maker(s) for s in node.reads]
    return any(m and recording.cases[m.code].op == "select_n" for m in makers)


def _cones(recording: Recording, y: Term) -> Iterator[tuple[int, Nodes]]:
    """The values of which another is a function, element by element, the nearest first; none where looking took long."""
    looked = recording.looked > STEPS + STEPS_A_NODE * len(recording.nodes)
    if looked or not isinstance(y.value_type, TensorType) or y.type.dtype not in TOLERANCE:
        return
    heap, seen, nodes = [-y.slot], {y.slot}, list[tuple[int, Emitted]]()
    while heap and len(nodes) < MOST:
        if nodes and len(heap) == 1:  # every way goes through it
            yield -heap[0], nodes
        slot = -heappop(heap)
        node = recording.maker(slot)
        recording.looked += 1
        if node is None or not is_elementwise(recording.cases[node.code]):
            return
        nodes.append((slot, node))
        for read in node.reads:
            if read not in seen and _number(recording, read) is None:
                seen.add(read)
                heappush(heap, -read)


def _number(recording: Recording, slot: int) -> Any:
    """The number that all elements of a value are, None if that is not plain to see."""
    node = recording.maker(slot)
    while node is not None and recording.cases[node.code].op == "broadcast_in_dim":
        node = recording.maker(node.reads[0])
    if node is None or recording.cases[node.code].op != "constant":
        return None
    value = cast(Any, recording.cases[node.code].attrs).value
    return literal_array(np, value).ravel()[0] if value.type.size == 1 else None


def _match(recording: Recording, dtype: str, source: int, nodes: Nodes, ops: Iterable[str]) -> str | None:
    """The function whose values a value has wherever it is tried."""
    types = [t for _, node in nodes for t, s in zip(recording.cases[node.code].operands, node.reads, strict=True) if s == source]
    if not all(isinstance(t, TensorType) and t.dtype == dtype for t in types):
        return None
    quick = np.array(QUICK, numpy_dtype(np, dtype))
    near = _values(recording, source, nodes, quick)
    for op in ops:
        if _agree(op, dtype, near, _reference(op, dtype, QUICK), only_finite=True):
            points = _points(op)
            with np.errstate(over="ignore"):
                values = _values(recording, source, nodes, np.array(points, quick.dtype))
            if _agree(op, dtype, values, _reference(op, dtype, points), only_finite=False):
                return op
    return None


def _values(recording: Recording, source: int, nodes: Nodes, points: NDArray[Any]) -> NDArray[Any]:
    """What the nodes make of these elements."""

    def wide(types: Sequence[Any]) -> Types:
        return tuple(TensorType(t.dtype, points.shape) for t in types)

    values = {source: points}
    recording.looked += len(nodes)
    with np.errstate(all="ignore"):
        for slot, node in reversed(nodes):
            case = recording.cases[node.code]
            kernel = recording.primitives[case.op].evaluation.kernel(np, case.attrs, wide(case.operands), wide(case.results))
            operands = [values[s] if s in values else np.broadcast_to(_number(recording, s), points.shape) for s in node.reads]
            values[slot] = np.asarray(kernel(*operands))
    return values[nodes[0][0]]


@cache
def _points(op: str) -> tuple[float, ...]:
    sizes = np.geomspace(*DOMAINS[op], POINTS).tolist()
    below = [min(x, 5 + x / 100) if op in CROSSING else x for x in sizes]  # between poles, which are ever nearer to zeros
    return (*sizes, *SPECIAL, *(-x for x in (*below, *SPECIAL)))


@cache
def _reference(op: str, dtype: str, points: tuple[float, ...]) -> NDArray[Any]:
    types = (TensorType(dtype, (len(points),)),)
    kernel = BUILTIN[op].evaluation.kernel(np, BUILTIN.parse_attrs(op, {}), types, types)
    with np.errstate(all="ignore"):
        return np.asarray(kernel(np.array(points, numpy_dtype(np, dtype))))


def _agree(op: str, dtype: str, values: NDArray[Any], reference: NDArray[Any], *, only_finite: bool) -> bool:
    bound = (COARSE if op == "erf_inv" else TOLERANCE)[dtype]
    least = bound if op in CROSSING else float(np.finfo(values.dtype).tiny)
    with np.errstate(all="ignore"):
        close = np.abs(values - reference) <= bound * np.abs(reference) + least
    same = close | (values == reference) | (np.isnan(values) & np.isnan(reference))
    return bool((same | ~np.isfinite(reference)).all() if only_finite else same.all())
