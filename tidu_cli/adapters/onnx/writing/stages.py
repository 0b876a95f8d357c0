"""The nodes of a scan's body by when they are computed: once before the loop, in each step, or for all steps at once.

A derivative's scan stores much that is elementwise in what it stores besides: that is computed behind the loop. And its transpose
multiplies by one slice after the other: these products are computed before, of factors that the first scan may choose. One
operation on the stacked arrays takes less than one in each step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tidu_cli.adapters.onnx.writing.elementwise import BROADCASTING, LOWERINGS, is_one_operator
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Case
from tidu_cli.graph.sizes.open import least, surely
from tidu_cli.graph.types import TensorType, Type, of_batch
from tidu_cli.lax.arrays.structural import literal_array

Node = tuple[Case, Sequence[int], Sequence[int]]
"""Its case, operands and results."""

Makers = Mapping[int, tuple[Case, Sequence[int]]]
"""By the first results of nodes: their cases and operands."""

LARGE = 2**14
"""Of more elements one operation takes long enough for it not to matter how many there are."""


class Form(NamedTuple):
    """What a scan may rely on: operands by their numbers, and pairs of stacked results by theirs."""

    bounded: frozenset[int] = frozenset()
    """Operands whose elements are all small: products with them do not overflow."""
    begins: frozenset[int] = frozenset()
    """Operands that are zero in all steps but the first that runs."""
    factors: tuple[tuple[int, int], ...] = ()
    """Results that are only read to multiply them by one another."""


class Stages:
    """The kinds of nodes, and what reaches the last of them. Values have the numbers of the body's graph; products have others."""

    def __init__(self, attrs: Any, form: Form) -> None:
        """`attrs` are a scan's."""
        graph, self.types = attrs.body.graph, list(attrs.body.input_types)
        self.n_inputs = len(self.types)
        self.nodes: list[Node] = []
        for code, operands, first, end in forwards(graph, graph.args):
            self.nodes.append((graph.cases[code], operands, range(first, end)))
            self.types += graph.cases[code].results
        outputs = [o.value for o in graph.outputs]
        self.carried, self.rows = outputs[: attrs.num_carry], outputs[attrs.num_carry :]
        self.carry = range(attrs.num_consts, attrs.num_consts + attrs.num_carry)
        """What comes in from the step before."""
        self.slices = dict.fromkeys(range(self.carry.stop, self.n_inputs))
        self.fixed = set(range(self.carry.start))
        """The values that are the same in all steps."""
        for _, args, results in self.nodes:
            if self.fixed.issuperset(args):
                self.fixed.update(results)
        self.begun: dict[int, int] = {}
        """By what is carried: the slice to add to it in the first step that runs."""
        self._begin(form.begins)
        self._products: list[Node] = []
        """What is computed of slices before the loop."""
        self._multiply({*form.bounded})
        self._join()
        self._square()
        self._exchange(form.factors)
        self.behind: set[int] = set()
        """The nodes that are computed behind the loop."""
        self.stacked: dict[int, None] = {}
        """The values of which steps give slices."""
        self._divide()
        needed = self._needed((*self.carried, *self.stacked))
        self.within = [node for node in self.nodes if not self.fixed.issuperset(node[2]) and not needed.isdisjoint(node[2])]
        self.scanned = [v for v in self.slices if v in needed]
        self.scalars = self._scalars()
        """The scalars of broadcasts that need not be written, by the broadcasts: all their readers broadcast themselves."""

    @property
    def multiplied(self) -> Iterator[tuple[int, int]]:
        """Slices that are only read to multiply them by one another before the loop."""
        uses = self._uses() + Counter(v for _, args, _ in self._products for v in args)
        for case, args, _ in self._products:
            if case.op == "mul" and max(args) < self.n_inputs and [uses[v] for v in args] == [1, 1]:
                yield args[0], args[1]

    @property
    def before(self) -> Iterator[Node]:
        """The nodes that are computed before the loop."""
        return (node for node in self.nodes if self.fixed.issuperset(node[2]))

    def _begin(self, slices: Collection[int]) -> None:
        """Leave out sums of these slices and of what is carried, where nothing else reads either."""
        uses, same = self._uses(), dict[int, int]()
        for case, args, results in self.nodes:
            for x, y in (args, args[::-1]) if _is_of_floats(case, "add") else ():
                if x in self.carry and y in slices and uses[x] == uses[y] == 1:
                    self.begun[x], same[results[0]] = y, x
        self.nodes = [(case, [same.get(v, v) for v in args], r) for case, args, r in self.nodes if r[0] not in same]
        self.carried, self.rows = ([same.get(v, v) for v in due] for due in (self.carried, self.rows))

    def _square(self) -> None:
        """Make 1 - t t of (1 - t) (1 + t), where t is a tanh: the error is below what rounding of t makes of either."""
        makers, nodes = self._makers(), list[Node]()
        for case, args, results in self.nodes:
            made = sorted([makers[v] for v in args if v in makers], key=lambda node: node[0].op)
            if _is_of_floats(case) and [c.op for c, _ in made] == ["add", "sub"]:
                (_, summed), (less, (one, t)) = made
                is_tanh = t in makers and makers[t][0].op == "tanh" and t not in self.fixed
                if is_tanh and sorted(summed) == sorted((one, t)) and is_all(makers, one, 1):
                    square = len(self.types)
                    self.types.append(case.results[0])
                    nodes.append((case, (t, t), (square,)))
                    case, args = less, (one, square)
            nodes.append((case, args, results))
        self.nodes = nodes

    def _exchange(self, factors: Iterable[tuple[int, int]]) -> None:
        """Store w and y instead of (u w) and x, where w is made of u alone, and steps compute y = u x anyway.

        So nothing carried is copied, and one operation less is left of such slopes as u (1 - u).
        """
        products = {frozenset(args): results[0] for case, args, results in self.nodes if case.op == "mul"}
        makers, needed = self._makers(), self._needed(self.carried).difference(self.carried)
        for j, k in (pair for factor in factors for pair in (factor, factor[::-1])):
            case, args = makers.get(self.rows[j], (None, ()))
            for u, w in (args, args[::-1]) if case and _is_of_floats(case) else ():
                y = products.get(frozenset((u, self.rows[k])))
                if y in needed and w in makers and {*makers[w][1]} - self.fixed == {u}:
                    self.rows[j], self.rows[k] = w, y
                    break

    def _multiply(self, bounded: set[int]) -> None:
        """Make (x a) b, of slices a and b, one of which is bounded, x (a b)."""
        uses, nodes = self._uses(), dict[int, Node]()
        for case, args, results in self.nodes:
            x, b = self._by_slice(case, args)
            if x in nodes and uses[x] == 1:
                y, a = self._by_slice(*nodes[x][:2])
                if not bounded.isdisjoint((a, b)) and y >= 0:
                    product = len(self.types)
                    self.types.append(case.results[0])
                    self.slices[product] = None
                    self._products.append((case, (a, b), (product,)))
                    if bounded.issuperset((a, b)):
                        bounded.add(product)
                    args = y, product
                    del nodes[x]
            nodes[results[0]] = case, args, results
        self.nodes = [*nodes.values()]

    def _join(self) -> None:
        """Multiply what is joined at once, where all of it are products by slices: by these, joined."""
        uses, makers = self._uses(), self._makers()
        joined, gone = list[Node](), set[int]()
        for node in self.nodes:
            case, args, results = node
            joined.append(node)
            parts = [self._by_slice(*makers[v]) if v in makers and uses[v] == 1 else (-1, -1) for v in args]
            type_: Any = case.results[0]
            if case.op != "concatenate" or len(parts) < 2 or (-1, -1) in parts or least(type_.size) > LARGE:
                continue
            whole, slices = len(self.types), len(self.types) + 1
            self.types += [type_, type_]
            self.slices[slices] = None
            self._products.append((case, [a for _, a in parts], (slices,)))
            product = replace(makers[args[0]][0], operands=(type_, type_), results=(type_,))
            joined[-1:] = [(case, [x for x, _ in parts], (whole,)), (product, (whole, slices), results)]
            gone.update(args)
        self.nodes = [node for node in joined if gone.isdisjoint(node[2])]

    def _needed(self, values: Iterable[int]) -> set[int]:
        """These values, and all that they are computed of."""
        needed = {*values}
        for _, args, results in reversed(self.nodes):
            needed.update(() if needed.isdisjoint(results) else args)
        return needed

    def _makers(self) -> Makers:
        return {results[0]: (case, args) for case, args, results in self.nodes}

    def _uses(self) -> Counter[int]:
        return Counter([*self.carried, *self.rows, *[v for _, args, _ in self.nodes for v in args]])

    def _by_slice(self, case: Case, args: Sequence[int]) -> tuple[int, int]:
        """What a product of floats multiplies by a slice, and that slice; -1 where there are none."""
        if _is_of_floats(case):
            for x, a in (args, args[::-1]):
                if a in self.slices and x not in self.slices and x not in self.fixed:
                    return x, a
        return -1, -1

    def _scalars(self) -> Mapping[int, int]:
        scalars = {
            results[0]: args[0]
            for case, args, results in self.nodes
            if case.op == "broadcast_in_dim" and not case.operands[0].shape  # type: ignore[union-attr]
        }
        for case, args, _ in self.nodes:
            at = [v for v in args if v in scalars]
            if not (len(at) == 1 < len(args) and case.op in BROADCASTING and is_one_operator(case)):
                for v in at:
                    scalars.pop(v, None)
        return {v: scalar for v, scalar in scalars.items() if v not in (*self.carried, *self.rows)}

    def _divide(self) -> None:
        """Results go behind the loop if what they are computed of takes no more memory than they do."""
        movable, needed, maker = set[int](), set(self.carried), dict[int, int]()
        for k in reversed(range(len(self.nodes))):
            case, args, results = self.nodes[k]
            if needed.isdisjoint(results) and self._is_movable(case, args):
                movable.add(k)
            else:
                needed.update(args)
            maker.update(dict.fromkeys(results, k))
        there = {v for v in self.rows if maker.get(v) not in movable}
        self._stack(there)
        for row in self.rows:
            if row in there or maker[row] in self.behind:
                continue
            nodes, leaves, due = set[int](), dict[int, None](), [row]
            while due:
                v = due.pop()
                k = maker.get(v, -1)
                if k in movable and v not in there:
                    if k not in nodes and k not in self.behind:
                        nodes.add(k)
                        due += reversed(self.nodes[k][1])
                elif v not in there and v not in self.fixed and v not in self.slices:
                    leaves[v] = None
            if surely(lambda leaves=leaves, row=row: sum(map(self._size, leaves)) <= self._size(row)):  # type: ignore[misc]
                self.behind |= nodes
            else:
                movable -= nodes
                leaves = {row: None}
            self._stack(leaves)
            there.update(leaves)

    def _stack(self, values: Iterable[int]) -> None:
        self.stacked.update((v, None) for v in values if v not in self.fixed and v not in self.slices)

    def _size(self, value: int) -> int:
        return self.types[value].nbytes  # type: ignore[no-any-return]

    def _is_movable(self, case: Case, args: Sequence[int]) -> bool:
        """Whether a node is elementwise, which is written likewise for arrays of which some have an axis of steps in front."""
        if case.op not in LOWERINGS or len(case.results) != 1 or self.fixed.issuperset(args):
            return False
        return len({t.shape if isinstance(t, TensorType) else None for t in (*case.operands, *case.results)}) == 1

    def products(self, length: int) -> Iterator[Node]:
        """The products of slices, for arrays of all steps."""
        return self._of_all_steps(self._products, length)

    def of_all_steps(self, length: int) -> Iterator[Node]:
        """The nodes behind the loop, in order, for arrays of all steps."""
        return self._of_all_steps([self.nodes[k] for k in sorted(self.behind)], length)

    def _of_all_steps(self, nodes: Sequence[Node], length: int) -> Iterator[Node]:
        for case, args, results in nodes:
            operands = [t if v in self.fixed else _stacked(t, length) for t, v in zip(case.operands, args, strict=True)]
            wide = replace(case, operands=tuple(operands), results=tuple(_stacked(t, length) for t in case.results))
            if case.op == "concatenate":
                attrs: Any = case.attrs
                wide = replace(wide, attrs=type(attrs)(dimension=attrs.dimension + 1))
            yield wide, args, results


def _is_of_floats(case: Case, op: str = "mul") -> bool:
    """Whether a node multiplies floats, or adds them."""
    return case.op == op and len({*case.operands, *case.results}) == 1 and getattr(case.results[0], "dtype", "") in ("f32", "f64")


def is_all(makers: Makers, value: int, number: int) -> bool:
    """Whether all elements of a value are this number, as it is a constant."""
    while value in makers and makers[value][0].op == "broadcast_in_dim":
        value = makers[value][1][0]
    case: Any = makers[value][0] if value in makers else None
    return case is not None and case.op == "constant" and bool(np.all(literal_array(np, case.attrs.value) == number))


def _stacked(type_: Type | None, length: int) -> Type | None:
    return type_ and of_batch(type_, length)
