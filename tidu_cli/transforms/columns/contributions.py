"""Contributions to cotangents, in the order in which they arise, and the adds that add them up.

First come those of the head's outputs, the *seeds*; then those of each item, for one operand after the other. The first that a
value gets is its cotangent so far; each one more makes an add of that and of itself, right after what its item emits. So the
cotangent is the last add, or the only contribution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.columns.blocks import Ints, array_of, before_each
from tidu_cli.graph.columns.dataflow import in_order, owners
from tidu_cli.graph.types import Type
from tidu_cli.transforms.columns.stamps import Places, follow


class Contributions:
    """Item i makes the contributions from number `first[i]` to before `first[i + 1]`; before all come seeds.

    Those are given as (input of the new graph, target, type).
    """

    def __init__(self, seeds: Sequence[tuple[int, int, Type]], n_of_item: Ints) -> None:
        self.first = before_each(n_of_item)
        self.first += len(seeds)
        n = int(self.first[-1])
        self._target = np.empty(n, np.int32)
        self._given = np.empty(n, np.int32)
        self._type = np.empty(n, np.int32)
        self._types: dict[Type, int] = {}
        for k, (given, target, type_) in enumerate(seeds):
            self._given[k], self._target[k], self._type[k] = given, target, self._number(type_)

    def enter(self, items: Ints, place: int, targets: Ints, type_: Type) -> None:
        """The contribution in this place of each item goes to a target of this type."""
        at = self.first[items] + place
        self._target[at] = targets
        self._type[at] = self._number(type_)

    def give(self, items: Ints, place: int, given: Ints) -> None:
        """It is a local value of the new graph; or, where it is -2-v, the cotangent of value v."""
        self._given[self.first[items] + place] = given

    def find_adds(self, n_values: int) -> Ints:
        """Once all are entered: the number of adds that are made before each item, and in the end the total."""
        target = self._target
        number = np.arange(len(target), dtype=np.int32)
        first_to = np.empty(n_values, np.int32)
        first_to[target[::-1]] = number[::-1]  # the last assignment stays
        is_add = first_to[target] != number
        del first_to, number
        self._adds = np.flatnonzero(is_add).astype(np.int32)
        self._adds_before = before_each(is_add)

        is_added_to = np.zeros(n_values, np.bool_)
        is_added_to[target[self._adds]] = True
        several = np.flatnonzero(is_added_to[target]).astype(np.int32)
        previous = np.empty(len(target), np.int32)
        for places in in_order(target[several], n_values):
            previous[several[places[1:]]] = several[places[:-1]]
        self._previous = previous[self._adds]  # of each add the contribution before it to the same target
        return self._adds_before[self.first]

    def add_up(self, linear: GraphBuilder, places: Places, add_code: Callable[[Type], int], cotangent: Ints) -> None:
        """Once all are given: enter the cotangents of all values, and write the adds into a graph whose columns are long enough.

        `places` are those of all items. The adds between two items stand right before the later one.
        """
        adds, given = self._adds, self._given
        after = owners(self.first)[adds] + 1
        after[adds < self.first[0]] = 0  # those of seeds stand before all items
        to_go = self._adds_before[self.first[after]] - self._adds_before[adds]
        node = places.node[after] - to_go
        arg = places.arg[after] - 2 * to_go
        del after, to_go
        right = given[adds]
        given[adds] = node + len(linear.inputs)  # from here on: the sum so far
        cotangent[self._target] = given  # the last assignment stays
        follow(cotangent, np.flatnonzero(cotangent < -1))
        for values in (given, right):
            pointers = np.flatnonzero(values < -1)
            values[pointers] = cotangent[-2 - values[pointers]]

        codes = np.zeros(len(self._types), np.int32)
        present = np.bincount(self._type[adds], minlength=len(codes))
        for type_, number in self._types.items():
            if present[number]:
                codes[number] = add_code(type_)
        code, args = map(array_of, linear.columns())
        code[node] = codes[self._type[adds]]
        args[arg] = given[self._previous]
        args[arg + 1] = right

    def _number(self, type_: Type) -> int:
        return self._types.setdefault(type_, len(self._types))
