"""Finding groups: the steps of a computation, in an order in which those of one case and level stand together.

Every step has a level, one more than the greatest of those it reads. Steps of one level and one case do not wait for one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidu_cli.graph.dataflow import array_of, blocks, counts, spans, taken
from tidu_cli.graph.graph import Graph, Output, column
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.plans.groups import LIST, SCALARS, Cell, GroupedProgram, Single, is_flat, vector_kernel
from tidu_cli.runtime.plans.steps import Steps
from tidu_cli.watching import watch

FEWEST_STEPS = 512
"""Below, planning costs more than it saves."""

SMALLEST_GROUP = 6.0
"""How many steps a group must have on average; see `benchmarks/execution.py crossover`."""

MOST_BYTES = 2**26
"""Graphs with more bytes of arrays than this run one by one, in their own order, since groups change it and hold what they read."""

KEY_BITS = 63
"""Steps are sorted by numbers of so many bits. Only graphs of millions of levels and as many cases need more."""


def grouped(steps: Steps, primitives: PrimitiveSet, outputs: Sequence[Output], *, always: bool = False) -> GroupedProgram | None:
    """The program of these steps in groups; None where there are too few steps, or too few to a group. Linear in their number.

    With `always`, however few they are.
    """
    if steps.n_steps < FEWEST_STEPS and not always:
        return None
    cases, n = steps.graph.cases, counts(steps.code, len(steps.graph.cases))
    groupable, used = np.zeros(len(cases), bool), np.flatnonzero(n).tolist()
    groupable[used] = [vector_kernel(np, primitives, cases[c]) is not None for c in used]
    n_in_groups = int(n[groupable].sum())
    n_alone = steps.n_steps - n_in_groups
    bytes_alone = sum(int(n[c]) * sum(t.nbytes for t in cases[c].results) for c in used if not groupable[c])
    if 2 * n_in_groups < max(steps.n_steps, 1) or bytes_alone > MOST_BYTES:
        return None
    # A level has a group, or steps by themselves alone. So on too long a path there are too many groups.
    level = levels(steps, steps.n_steps if always else n_alone + int(n_in_groups / SMALLEST_GROUP))
    if level is None or (int(level.max(initial=0)) + 1) * (len(cases) + 1) << steps.n_steps.bit_length() > 2**KEY_BITS:
        return None
    order, begins = _sorted(steps, groupable, level)
    del level
    is_group = groupable[steps.code[order[begins]]]
    if n_in_groups < SMALLEST_GROUP * np.count_nonzero(is_group) and not always:
        return None
    return _laid_out(steps, primitives, tuple(outputs), groupable, order, begins)


def levels(steps: Steps, most: int) -> NDArray[Any] | None:
    """Of each step its level: the number of steps on the longest path that ends in it, less one; of constants 0.

    None if there are more than `most`.
    """
    level = column([-1]) * len(steps.inputs)
    append = level.append
    watched = watch("planning", steps.n_steps)
    for block in blocks(0, steps.n_steps):
        arity = steps.arity(block)
        ordinary = (arity >= 1) & (arity <= 3) & (steps.n_results(block) == 1)
        columns = [steps.operand(k, block, arity).tolist() for k in range(3 if arity.max() > 2 else 2)]
        for before, end in pairwise([-1, *np.flatnonzero(~ordinary).tolist(), len(arity)]):
            if before >= 0:
                step = block.start + before
                deepest = max([level[a] for a in steps.reads(step)], default=-1)
                level.extend([deepest + 1] * int(steps.first[step + 1] - steps.first[step]))
            stretch = watched(zip(*[operands[before + 1 : end] for operands in columns], strict=True))
            if len(columns) == 2:
                for a, b in stretch:
                    deepest, other = level[a], level[b]
                    append((other if other > deepest else deepest) + 1)
            else:
                for a, b, c in stretch:
                    deepest, other, third = level[a], level[b], level[c]
                    if other > deepest:
                        deepest = other
                    if third > deepest:
                        deepest = third
                    append(deepest + 1)
        if array_of(level)[steps.first[block.start] :].max() >= most:
            return None
    array = array_of(level)
    return array[len(steps.inputs) :] if steps.single else taken(array, steps.first[:-1])


def _sorted(steps: Steps, groupable: NDArray[Any], level: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The steps by level and, if of a case that is grouped, by case; and of each whether it begins a group, or runs by itself."""
    n, n_cases = steps.n_steps, len(groupable)
    kinds = np.where(groupable, np.arange(1, n_cases + 1), 0)
    bits = n.bit_length()
    # One sort of numbers, whose lower bits say which step it is, is several times faster than that of an index.
    keys = np.empty(n, np.int64)
    for block in blocks(0, n):
        key = level[block] * np.int64(n_cases + 1) + kinds[steps.code[block]]
        keys[block] = (key << bits) + np.arange(block.start, block.stop)
    keys.sort()
    order, begins = np.empty(n, np.int32), np.ones(n, bool)
    for block in blocks(0, n):
        order[block] = keys[block] & (2**bits - 1)
    del keys
    last_level = last_kind = -1
    for block in blocks(0, n):
        step = order[block]
        depth, kind = level[step], kinds[steps.code[step]]
        begins[block] = (np.diff(depth, prepend=last_level) != 0) | (np.diff(kind, prepend=last_kind) != 0) | (kind == 0)
        last_level, last_kind = depth[-1], kind[-1]
    return order, begins


def _laid_out(
    steps: Steps,
    primitives: PrimitiveSet,
    outputs: tuple[Output, ...],
    groupable: NDArray[Any],
    order: NDArray[Any],
    begins: NDArray[Any],
) -> GroupedProgram:
    """Numbers for the elements: the inputs, then the results in the order of the steps, with a gap before each group.

    Where a result begins right where an operand ends, NumPy takes that for an overlap, and goes another way, which may round
    otherwise.
    """
    graph, cases = steps.graph, steps.graph.cases
    array, place, lengths = _elements(steps, order, begins)
    numbers = sorted(lengths.keys() - {LIST})
    compact = {number: k for k, number in enumerate(numbers)} | {LIST: LIST}

    def at(value: int) -> Cell:
        return compact[int(array[value])], int(place[value])

    first = order[begins]
    code = steps.code[first]
    is_group = groupable[code]
    size = np.where(is_group, np.diff(np.flatnonzero(begins), append=steps.n_steps), 0)
    singles = []
    for step in first[~is_group].tolist():
        made = range(int(steps.first[step]), int(steps.first[step + 1]))
        node = step if steps.kept is None else int(steps.kept[step])
        singles.append(Single(node, tuple(map(at, steps.reads(step))), tuple(map(at, made))))
    arity = np.array(cases.arity, np.int32)
    operands = [np.empty(int(size[arity[code] > k].sum()), np.int32) for k in range(int(arity[code[is_group]].max()))]
    ends = [0] * len(operands)
    for block in blocks(0, steps.n_steps):
        step = order[block]
        step = step[groupable[steps.code[step]]]
        start, n_read = steps.start[step], arity[steps.code[step]]
        for k, numbers_of_operand in enumerate(operands):
            places = place[steps.args[start[n_read > k] + k]]
            begin, ends[k] = ends[k], ends[k] + len(places)
            numbers_of_operand[begin : ends[k]] = places
    return GroupedProgram(
        graph=Graph(graph.name, graph.inputs, graph.outputs, cases),
        primitives=primitives,
        inputs=tuple(graph.inputs[k] for k in steps.inputs),
        input_places=tuple(at(v) for v in range(len(steps.inputs))),
        outputs=outputs,
        output_places=tuple(None if v is None else at(v) for v in steps.outputs),
        dtypes=tuple(SCALARS[number] for number in numbers),
        lengths=tuple(lengths[number] for number in numbers),
        n_entries=lengths.get(LIST, 0),
        code=code,
        size=size.astype(np.int32),
        begin=place[steps.first[first]],
        operands=tuple(operands),
        singles=tuple(singles),
    )


def _elements(steps: Steps, order: NDArray[Any], begins: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], dict[int, int]]:
    """Of each value the array that it is in, the number of a dtype or LIST, and its number there; and the length of each array."""
    array, place = np.empty(steps.n_values, np.int8), np.empty(steps.n_values, np.int32)
    length: dict[int, int] = {}
    last: dict[int, int] = {}

    def put(values: NDArray[Any], arrays: NDArray[Any], group: NDArray[Any]) -> None:
        array[values] = arrays
        for number in np.unique(arrays).tolist():
            own = np.flatnonzero(arrays == number)
            # One for the element, and one for the gap before its group.
            after = np.cumsum(1 + (np.diff(group[own], prepend=last.get(number, 0)) != 0)) + length.get(number, 0)
            place[values[own]] = after - 1
            length[number], last[number] = int(after[-1]), int(group[own[-1]])

    inputs = [_array_of(steps.graph.inputs[k].type) for k in steps.inputs]
    put(np.arange(len(inputs)), np.array(inputs, np.int8), np.zeros(len(inputs), np.int32))
    cases = steps.graph.cases
    made = np.array([_array_of(t) for case in cases.cases for t in case.results], np.int8)
    n_results = np.array(cases.n_results, np.int32)
    row = np.cumsum(n_results) - n_results  # of `made`, where those of a case begin
    n_groups = 0
    for block in blocks(0, steps.n_steps):
        step = order[block]
        code, group = steps.code[step], np.cumsum(begins[block]) + n_groups
        n_groups = int(group[-1])
        if steps.single:
            put(steps.first[step], made[row[code]], group)
        else:
            n = n_results[code]
            put(spans(steps.first[step], steps.first[step + 1]), made[spans(row[code], row[code] + n)], np.repeat(group, n))
    return array, place, length


def _array_of(type_: Type) -> int:
    return SCALARS.index(type_.dtype) if isinstance(type_, TensorType) and is_flat(type_) else LIST
