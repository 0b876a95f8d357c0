"""Nodes that take less in another form, for what is beside or before them.

Choices that comparisons of floats make, as `relu` and its derivative do, by operators that do not branch at each element. Sums of
what is scattered, which is added to the others in place. What bounds allow, whatever inputs are: gates of recurrent networks and
their slopes are small, and places that were clipped fit an integer. Values that are computed again where the way back reads them,
instead of held until then.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate, product
from typing import Any

import numpy as np

from tidu_cli.adapters.onnx.writing.stages import Form, Stages, is_all
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Case, Graph
from tidu_cli.graph.open_sizes import has_open_size
from tidu_cli.graph.sizes.open import surely
from tidu_cli.graph.types import FLOATS, INTEGERS, TensorType
from tidu_cli.lax.arrays.structural import literal_array

LEAST = 2**14
"""Choices of fewer elements are Where: what else they take is more than they save."""


def choices(graph: Graph) -> tuple[Mapping[int, str], Mapping[int, int]]:
    """The nodes that are written in another form, by the names of `templates.FORMS`; and comparisons behind Relu.

    Masks that come in, or that places decide, are in runs, at which Where is quick. What Relu gives is compared with 0 instead of
    what it takes, so that it is the one reader of a convolution, which runtimes make it a part of. It has the number of Relu.
    """
    forms: dict[int, str] = {}
    behind: dict[int, int] = {}
    made: dict[int, tuple[Case, Sequence[int]]] = {}
    node_of: dict[int, int] = {}
    read: set[int] = set()
    for node, (code, args, first, _) in enumerate(forwards(graph, graph.args)):
        case = graph.cases[code]
        if case.op == "select_n" and len(args) == 3 and args[0] in made:
            comparison, compared = made[args[0]]
            if comparison.op in ("lt", "le", "gt", "ge") and _floats(comparison.operands[0]) and _floats(case.results[0]):
                zeros = [is_all(made, value, 0) for value in (args[1], args[2], compared[1])]
                if comparison.op == "le" and compared[0] == args[1] and zeros[1] and zeros[2] and args[2]:
                    forms[node] = "relu"
                    if args[0] not in read and compared[0] > 0:
                        behind[node_of[args[0]]] = node
                elif _is_large(case.results[0]):
                    forms[node] = "others kept" if zeros[1] else "kept" if zeros[0] else "by products"
        made[first], node_of[first] = (case, args), node
        read.update(args)
    return forms, behind


def _is_large(type_: Any) -> bool:
    return surely(lambda: type_.size >= LEAST)


def _floats(type_: object) -> bool:
    return isinstance(type_, TensorType) and type_.dtype == "f32"


def additions(graph: Graph, kept: Collection[int]) -> tuple[Mapping[int, str], Mapping[int, int]]:
    """The forms of sums of a value and of what is scattered to zeros for this alone; and those scatters, which add to the value.

    What they give is the sum already. `kept` are values that are read outside of the graph.
    """
    forms: dict[int, str] = {}
    onto: dict[int, int] = {}
    made: dict[int, tuple[Case, Sequence[int]]] = {}
    node_of: dict[int, int] = {}
    uses = Counter([*graph.args, *kept])
    for node, (code, args, first, _) in enumerate(forwards(graph, graph.args)):
        case = graph.cases[code]
        if case.op == "add" and args[0] != args[1] and min(args) >= 0:
            last = max(args)
            scatter, operands = made.get(last, (case, ()))
            if scatter.op == "scatter-add" and uses[last] == 1 and is_all(made, operands[0], 0) and scatter.results == case.results:
                onto[node_of[last]] = min(args)
                forms[node] = "first" if args[0] == last else "second"
        made[first], node_of[first] = (case, args), node
    return forms, onto


def joinings(graph: Graph, kept: Collection[int]) -> Mapping[int, str]:
    """The forms of sums of arrays that zeros pad along one axis, so that each element is of one of them: they are joined.

    Cotangents of the parts of an array are such sums. A pad is then written as its operand, and a sum as two operands joined.
    """
    forms: dict[int, str] = {}
    parts: dict[int, tuple[int, int, int, Mapping[int, str]]] = {}  # by values: axis, begin, end, and forms of the nodes so far
    made: dict[int, tuple[Case, Sequence[int]]] = {}
    uses = Counter([*graph.args, *kept])
    for node, (code, args, first, _) in enumerate(forwards(graph, graph.args)):
        case = graph.cases[code]
        result: Any = case.results[0] if case.results else None
        if case.op == "pad" and is_all(made, args[1], 0) and not has_open_size(result):
            axes = [(k, low, high) for k, (low, high, within) in enumerate(_padding(case)) if low or high or within]
            if len(axes) == 1 and min(_padding(case)[axes[0][0]]) >= 0 and not _padding(case)[axes[0][0]][2]:
                ((axis, low, high),) = axes
                parts[first] = axis, low, result.shape[axis] - high, {node: "unpadded"}
        elif case.op == "add" and args[0] in parts and args[1] in parts and all(uses[a] == 1 for a in args):
            (axis, begin, end, before), (other, later, last, after) = sorted((parts[a] for a in args), key=lambda part: part[:3])
            if axis == other and end == later:
                is_turned = parts[args[0]][1] != begin
                parts[first] = axis, begin, last, {**before, **after, node: f"joined {axis}{' turned' * is_turned}"}
                if (begin, last) == (0, result.shape[axis]):
                    forms |= parts.pop(first)[3]
        made[first] = case, args
    return forms


def _padding(case: Case) -> Sequence[tuple[int, int, int]]:
    return case.attrs.padding_config  # type: ignore[attr-defined, no-any-return]


SMALL = 16.0
"""Products by elements so large at most are as good in another order: none overflows that does not nearly do so else."""

Bounds = tuple[float, float]
"""The least and the greatest an element may be, if it is not NaN."""

_ANY: Bounds = (-math.inf, math.inf)
_OF_OP: Mapping[str, Bounds] = {"logistic": (0.0, 1.0), **dict.fromkeys(("tanh", "sin", "cos", "erf"), (-1.0, 1.0))}
_SAME = frozenset({"reshape", "transpose", "broadcast_in_dim", "slice", "split", "expand_dims", "squeeze", "rev", "copy"})


def by_bounds(graph: Graph, kept: Collection[int]) -> Mapping[int, str | Form]:
    """The nodes of a graph that bounds allow to write in another form: scans, and conversions.

    Scans may rely on small operands, on those that are zero in all steps but the first, and on results that the scan of a way back
    only multiplies by one another. `kept` are the values that are read outside of the graph.
    """
    bounds, fits, scans = [_ANY] * len(graph.inputs), dict[int, str](), dict[int, Form]()
    place: dict[int, tuple[int, int]] = {}  # of stacked results of scans: the node, and the number among them
    alone: dict[int, tuple[int, int]] = {}  # of arrays that are zero but for one slice: the axis, and where on it
    made: dict[int, tuple[Case, Sequence[int]]] = {}
    uses = Counter([*graph.args, *kept])
    for node, (code, args, first, end) in enumerate(forwards(graph, graph.args)):
        case, operands = graph.cases[code], [bounds[a] if a >= 0 else _ANY for a in args]
        if case.op == "scan":
            begins = (0, case.attrs.length - 1 if case.attrs.reverse else 0)  # type: ignore[attr-defined]
            small = frozenset(k for k, (low, high) in enumerate(operands) if low >= -SMALL and high <= SMALL)
            scans[node] = Form(small, frozenset(k for k, a in enumerate(args) if alone.get(a) == begins))
            for j, k in Stages(case.attrs, scans[node]).multiplied if not place.keys().isdisjoint(args) else ():
                (maker, row), (other, column) = place.get(args[j], (-1, 0)), place.get(args[k], (-2, 0))
                if maker == other and uses[args[j]] == uses[args[k]] == 1:
                    scans[maker] = scans[maker]._replace(factors=(*scans[maker].factors, (row, column)))
            place |= {v: (node, k) for k, v in enumerate(range(first + case.attrs.num_carry, end))}  # type: ignore[attr-defined]
        elif case.op == "convert_element_type" and _fits(case, *operands):
            fits[node] = "fits"
        elif (case.op != "pad" or is_all(made, args[1], 0)) and args and (only := _alone(case, alone.get(args[0]))):
            alone[first] = only
        made[first] = case, args
        bounds += _of_results(case, operands)
    return {**fits, **{node: form for node, form in scans.items() if any(form)}}


def _alone(case: Case, before: tuple[int, int] | None) -> tuple[int, int] | None:
    """The axis and the place of the one slice that is not zero, of an array that is padded, or moved after that."""
    if case.op == "pad" and not has_open_size(case.results[0]):
        sizes = zip(case.operands[0].shape, _padding(case), strict=True)  # type: ignore[union-attr]
        padded = ((k, low) for k, (n, (low, high, _)) in enumerate(sizes) if n == 1 and min(low, high) >= 0 < low + high)
        return next(padded, None)
    if before is None or case.op not in ("reshape", "transpose"):
        return None
    axis, place = before
    if case.op == "transpose":
        return case.attrs.permutation.index(axis), place  # type: ignore[attr-defined]
    operand, result = (t.shape for t in (case.operands[0], case.results[0]))  # type: ignore[union-attr]
    lead, n = math.prod(operand[:axis]), operand[axis]
    return next(((k, place) for k, size in enumerate(result) if size == n and math.prod(result[:k]) == lead), None)


def _fits(case: Case, bounds: Bounds) -> bool:
    """Whether floats are within the range of an integer, with much room for rounding."""
    source, target = case.operands[0].dtype, case.results[0].dtype  # type: ignore[union-attr]
    if source not in FLOATS or target not in INTEGERS:
        return False
    most = 2.0 ** (int(target[1:]) - 2)
    return (-most if target[0] == "i" else 0.0) <= bounds[0] and bounds[1] <= most


def _of_results(case: Case, operands: Sequence[Bounds]) -> Sequence[Bounds]:
    if case.op == "scan":
        return _of_steps(case.attrs, operands)
    return [_of_result(case, operands)] * len(case.results)


def _of_result(case: Case, operands: Sequence[Bounds]) -> Bounds:
    if getattr(case.results[0], "dtype", "") not in FLOATS:  # integers wrap round
        return _ANY
    op, (x, y, *_) = case.op, (*operands, _ANY, _ANY)
    if op == "constant":
        array = literal_array(np, case.attrs.value)  # type: ignore[attr-defined]
        return (float(array.min()), float(array.max())) if array.size else _ANY
    if op == "add":
        return x[0] + y[0], x[1] + y[1]
    if op == "sub":
        return x[0] - y[1], x[1] - y[0]
    if op == "mul" and all(map(math.isfinite, (*x, *y))):
        products = [a * b for a, b in product(x, y)]
        return min(products), max(products)
    if op in ("max", "min"):
        chosen = max if op == "max" else min
        return chosen(x[0], y[0]), chosen(x[1], y[1])
    return x if op in _SAME else _OF_OP.get(op, _ANY)


def _of_steps(attrs: Any, operands: Sequence[Bounds]) -> Sequence[Bounds]:
    """What is carried may be anything."""
    graph, n, end = attrs.body.graph, attrs.num_consts, attrs.num_consts + attrs.num_carry
    bounds = [*operands[:n], *[_ANY] * (end - n), *operands[end:]]
    for code, args, _, _ in forwards(graph, graph.args):
        bounds += _of_results(graph.cases[code], [bounds[a] for a in args])
    return [_ANY if k < end - n else bounds[o.value] for k, o in enumerate(graph.outputs)]


CHEAP = frozenset({"add", "sub", "mul", "div", "erf"})
"""Operations that take little beside a product of matrices, and give the same bits whenever they are computed."""

MOST_COPIES, SMALL_PART, NEAR = 3, 16, 8
"""At most `MOST_COPIES` operations are repeated for one value. They may hold 1/`SMALL_PART` of its bytes in small operands, and
other operands for `NEAR` nodes longer."""


def computed_again(graph: Graph, kept: Collection[int], forms: Mapping[int, object]) -> tuple[Mapping[int, int], Collection[int]]:
    """The nodes to compute twice, each with its small operand, or -1 if it reads another copy; and the nodes that read the copies.

    A value is chosen if it is alive where most memory is taken, and can be computed from others that are alive there. `kept` are
    the values that are read outside of the graph, `forms` the nodes that are written in another form.
    """
    if any(has_open_size(t) for case in graph.cases.cases for t in case.results):
        return {}, ()  # nobody knows where most memory is taken
    largest = max((t.nbytes for case in graph.cases.cases for t in case.results), default=0)
    return _Held(graph, kept, forms).copies() if largest >= 4 * LEAST else ({}, ())


class _Held:
    """What is alive at the peak, in the order in which onnxruntime executes the nodes of a graph."""

    def __init__(self, graph: Graph, kept: Collection[int], forms: Mapping[int, object]) -> None:
        self.kept, self.forms = kept, forms
        self.nodes = [(graph.cases[code], args, range(first, end)) for code, args, first, end in forwards(graph, graph.args)]
        self.maker = {v: node for node, (_, _, results) in enumerate(self.nodes) for v in results}
        self.origin, self.size = list(range(len(graph.inputs))), [0] * len(graph.inputs)
        self.readers: dict[int, list[int]] = {}
        for node, (case, args, results) in enumerate(self.nodes):
            is_view = case.op == "reshape" or forms.get(node) == "aligned"
            self.origin += [self.origin[args[0]]] if is_view else results
            self.size += [0 if is_view or case.op == "constant" else t.nbytes for t in case.results]
            for a in {*args}:
                self.readers.setdefault(a, []).append(node)
        self.place = {node: k for k, node in enumerate(self._order())}
        self.last = self._last()
        self.peak = self._peak()
        self.alive = {v for v, end in self.last.items() if self.place[self.maker[v]] <= self.peak < end}

    def _order(self) -> Iterable[int]:
        """Depth first from the outputs: of what a node reads, what the last node in the file makes comes first."""
        pending = [node for node, (_, _, results) in enumerate(self.nodes) if self.readers.keys().isdisjoint(results)]
        entered, order = set[int](), dict[int, None]()
        while pending:
            node = pending[-1]
            if node in entered:
                order[pending.pop()] = None
                continue
            entered.add(node)
            made = {self.maker[a] for a in self.nodes[node][1] if a in self.maker}
            pending += sorted(made - entered)
        return order

    def _last(self) -> dict[int, int]:
        """Where each value is read last, or a view of it."""
        last: dict[int, int] = {}
        for v, readers in self.readers.items():
            origin = self.origin[v]
            if origin in self.maker:
                last[origin] = max(last.get(origin, 0), *[self.place[r] for r in readers])
        return last

    def _peak(self) -> int:
        """Where most bytes are alive."""
        change = Counter[int]()
        for v, end in self.last.items():
            change[self.place[self.maker[v]]] += self.size[v]
            change[end + 1] -= self.size[v]
        total = list(accumulate(change[k] for k in range(len(self.nodes))))
        return total.index(max(total)) if total else 0

    def copies(self) -> tuple[Mapping[int, int], Collection[int]]:
        """What `computed_again` gives."""
        copied: dict[int, int] = {}
        for v in sorted(self.alive - {*self.kept}):
            read = [self.place[r] for r in self.readers[v]]
            again = min(place for place in read if place > self.peak) if max(read) > self.peak else 0
            before = max([self.place[self.maker[v]], *[place for place in read if place <= self.peak]])
            if self.size[v] < 4 * LEAST or again - before <= NEAR or any(map(self._reads_otherwise, self.readers[v])):
                continue
            chain = self._chain(v, copied, again, MOST_COPIES)
            if chain and len(chain) <= MOST_COPIES:
                copied |= chain
                self.alive.discard(v)
        return copied, {node for node, place in self.place.items() if place > self.peak}

    def _reads_otherwise(self, node: int) -> bool:
        return node in self.forms or self.nodes[node][0].op == "reshape"

    def _chain(self, v: int, copied: Mapping[int, int], place: int, most: int) -> dict[int, int] | None:
        """The nodes to repeat at a place for a value that is not copied yet. None if these are many, or lack operands."""
        node = self.maker[v]
        case, args, _ = self.nodes[node]
        if not most or case.op not in CHEAP or not _floats(case.results[0]) or node in self.forms:
            return None
        chain: dict[int, int] = {}
        small = [k for k, a in enumerate(args) if SMALL_PART * self.size[self.origin[a]] <= self.size[v]]
        is_first = True
        for k, a in enumerate(args):
            if k in small or (self.origin[a] in self.alive and self.last[self.origin[a]] + NEAR >= place):
                continue
            is_first = False
            if self.maker[a] not in copied:
                before = self._chain(a, copied, place, most - 1)
                if before is None:
                    return None
                chain |= before
        return None if is_first and not small else {**chain, node: small[-1] if is_first else -1}
