"""Programs of many scalars: steps of one case that do not wait for one another run as one array operation.

Every step has a level, one more than the greatest of those it reads. Steps of one level and one case are a group. Scalars of a
dtype are elements of one flat array, numbered so that the results of a group lie side by side; its operands are gathered by their
numbers, or are a slice where they lie side by side, too. What a case does to many operands at once, its batch rule says: it is
grouped if that is the same operation, of the same attrs, of arrays. All else runs one by one, as in any program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from operator import getitem
from typing import TYPE_CHECKING, Any

from tidu_cli.errors import EvaluationError, MissingRuleError
from tidu_cli.graph.graph import Case, CaseTable, Graph, Input, Output, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import ALL, TensorType, Type
from tidu_cli.primitives.contract import Kernel, PrimitiveSet
from tidu_cli.primitives.structural import numpy_dtype
from tidu_cli.primitives.trace import batch_template
from tidu_cli.runtime.columns import array_of, blocks, counts, ranges, taken
from tidu_cli.runtime.interpreter import entering, kept, owned
from tidu_cli.runtime.steps import MOST_KEPT, Steps, kept_bytes
from tidu_cli.watching import watch

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCALARS = tuple(dtype for dtype in ("bool", *sorted(ALL - {"bool", "bf16"})))
"""The dtypes whose scalars lie in flat arrays: those that NumPy has itself."""

FEWEST_STEPS = 512
"""Below, planning costs more than it saves."""

SMALLEST_GROUP = 6.0
"""How many steps a group must have on average; see `benchmarks/execution.py crossover`."""

MOST_BYTES = 2**26
"""Graphs with more bytes of arrays than this run one by one, in their own order, since groups change it and hold what they read."""

KEY_BITS = 63
"""Steps are sorted by numbers of so many bits, if these are enough."""

Place = tuple[int, int]
"""Where a value is: the number of a flat array and of its element; or LIST and the number of an entry."""

LIST = -1


@dataclass(frozen=True, slots=True)
class Single:
    """A step that runs by itself: where its operands and its results are."""

    reads: tuple[Place, ...]
    writes: tuple[Place, ...]


@dataclass(frozen=True, eq=False)
class GroupedProgram:
    """A compiled graph whose scalars run in groups.

    Group g is of case `code[g]`, and of `size[g]` steps, whose results are elements from `begin[g]` on. Where `size[g]` is 0 it is
    the next one of `singles`. The flat arrays are of `dtypes`, and of `lengths` elements. `operands[k]` holds, for operand k of
    the steps in groups, one after the other, the number of its element in the flat array of its dtype; steps of fewer operands have
    no entries there. `graph` is without its nodes, whose place this takes.
    """

    graph: Graph
    primitives: PrimitiveSet
    inputs: tuple[Input, ...]
    input_places: tuple[Place, ...]
    outputs: tuple[Output, ...]
    output_places: tuple[Place | None, ...]
    dtypes: tuple[str, ...]
    lengths: tuple[int, ...]
    n_entries: int
    code: NDArray[Any]
    size: NDArray[Any]
    begin: NDArray[Any]
    operands: tuple[NDArray[Any], ...]
    singles: tuple[Single, ...]
    _idle: list[Workspace] = field(default_factory=list)

    @property
    def n_steps(self) -> int:
        """The number of nodes that a run computes."""
        return int(self.size.sum()) + len(self.singles)

    @property
    def told(self) -> str:
        """The plan in words."""
        n_groups = len(self.code) - len(self.singles)
        return f"{n_groups} groups of scalars, and {len(self.singles)} steps by themselves"

    def run(self, inputs: Mapping[Key, Any], *, once: bool = False) -> list[Any]:
        """The values of `outputs`, as `Program.run` gives them, bit for bit. Raises EvaluationError when memory runs out.

        With `once` the program keeps nothing for a later run, and a first one takes a third of the memory.
        """
        import numpy as np

        try:
            # A run has arrays of its own, which a later one takes over.
            space = self._idle.pop() if self._idle else Workspace(self, once=once)
            found = owned(np, space.run(inputs), self.outputs)
            if not once:
                self._idle.append(space)
            return found
        except MemoryError:
            raise EvaluationError(f"graph '{self.graph.name}': evaluation ran out of memory") from None

    def of_scalars(self) -> bool:
        """Whether all is grouped but constants, so that each scalar may be a batch of them."""
        return (
            LIST not in {array for array, _ in self.input_places} and not self.n_entries and not any(s.reads for s in self.singles)
        )

    def nbytes(self) -> int:
        """The bytes that a run takes, with inputs and results; work space within kernels is not counted."""
        flat = sum(n * TensorType(dtype).nbytes for n, dtype in zip(self.lengths, self.dtypes, strict=True))
        ends = sum(i.type.nbytes for i in self.inputs) + sum(o.type.nbytes for o in self.outputs)
        alone = self.code[self.size == 0].tolist()
        return flat + ends + sum(t.nbytes for code in alone for t in self.graph.cases[code].results)


class Workspace:
    """What a run works on, and the calls that it makes. One run at a time. Steps by themselves that depend on no input have run.

    With `items` each scalar is so many: the flat arrays have a second axis, along which are the items of a batch. With `once`, for
    one run alone, a call is made up when its turn comes, and let go: all of them take several times the memory of the program.
    """

    def __init__(self, program: GroupedProgram, items: tuple[int, ...] = (), *, once: bool = False) -> None:
        import numpy as np

        self.program = program
        self.flat = [
            np.empty((n, *items), numpy_dtype(np, dtype)) for n, dtype in zip(program.lengths, program.dtypes, strict=True)
        ]
        self.entries: list[Any] = [None] * program.n_entries
        self.calls: Iterable[tuple[Any, ...]] = self._made_up(-1) if once else list(self._made_up(MOST_KEPT))
        self.entries = [kept(np, value) for value in self.entries]

    def _made_up(self, room: int) -> Iterator[tuple[Any, ...]]:
        """The calls in order, without what depends on no input: that runs at once, if its results are of `room` bytes together."""
        import numpy as np

        program = self.program
        number = {dtype: k for k, dtype in enumerate(program.dtypes)}
        next_operand = [0] * len(program.operands)
        kernels: dict[int, tuple[Any, ...]] = {}
        alone = iter(program.singles)
        known: set[Place] = set()
        for code, size, begin in _rows_of(program.code, program.size, program.begin):
            case = program.graph.cases[code]
            if code not in kernels:
                kernels[code] = self._kernel(np, case, size > 0, number)
            kernel, is_ufunc, made, *read = kernels[code]
            if not size:
                single = next(alone)
                if (nbytes := kept_bytes(case)) <= room and known.issuperset(single.reads):
                    room -= nbytes
                    known.update(single.writes)
                    with np.errstate(all="ignore"):
                        self._single(kernel, single, self.entries)
                else:
                    yield 0, kernel, single, None, None, None, None
                continue
            out = made[begin : begin + size]
            places: list[Any] = []
            for k in range(len(read)):
                at = program.operands[k][next_operand[k] : next_operand[k] + size]
                next_operand[k] += size
                places += _view_or_numbers(np, read[k], at)
            if is_ufunc and len(read) == 2:
                yield 2, kernel, out, *places
            elif is_ufunc and len(read) == 1:
                yield 1, kernel, out, *places, None, None
            else:
                yield 3, kernel, out, list(pairwise(places))[::2], None, None, None

    def _kernel(self, np: Any, case: Case, grouped: bool, number: Mapping[str, int]) -> tuple[Any, ...]:
        if not grouped:
            rule = self.program.primitives[case.op].kernel
            return (rule(np, case.attrs, case.operands, case.results), False, None)  # type: ignore[arg-type]
        kernel = vector_kernel(np, self.program.primitives, case)
        flat = [self.flat[number[t.dtype]] for t in (*case.results, *case.operands)]  # type: ignore[union-attr]
        return (kernel, isinstance(kernel, np.ufunc), *flat)

    def run(self, inputs: Mapping[Key, Any]) -> list[Any]:
        """The values of the program's outputs, None for structural zeros. Those of scalars may change with the next run."""
        import numpy as np

        program, flat = self.program, self.flat
        entries = self.entries.copy()
        for declared, (array, k) in zip(program.inputs, program.input_places, strict=True):
            value = entering(np, declared.type, inputs[declared.key])
            if array == LIST:
                entries[k] = value
            else:
                flat[array][k] = value
        gather = _rows if self.flat and self.flat[0].ndim > 1 else getitem
        with np.errstate(all="ignore"):
            for kind, kernel, out, x, i, y, j in watch("evaluating", len(program.code))(self.calls):
                if kind == 2:
                    kernel(x if i is None else gather(x, i), y if j is None else gather(y, j), out=out)
                elif kind == 1:
                    kernel(x if i is None else gather(x, i), out=out)
                elif kind:
                    out[...] = kernel(*[array if at is None else gather(array, at) for array, at in x])
                else:
                    self._single(kernel, out, entries)
        return [None if at is None else self._value(at, entries) for at in program.output_places]

    def _value(self, place: Place, entries: list[Any]) -> Any:
        array, k = place
        return entries[k] if array == LIST else self.flat[array][k]

    def _single(self, kernel: Kernel, step: Single, entries: list[Any]) -> None:
        results = kernel(*[self._value(place, entries) for place in step.reads])
        for (array, k), value in zip(step.writes, results if len(step.writes) > 1 else (results,), strict=True):
            if array == LIST:
                entries[k] = value
            else:
                self.flat[array][k] = value


def _view_or_numbers(np: Any, array: Any, at: Any) -> tuple[Any, Any]:
    """The elements of these numbers, if they lie side by side; else the array and the numbers."""
    first, last = int(at[0]), int(at[-1])
    if last - first == len(at) - 1 and (len(at) < 3 or bool((at[1:] - at[:-1] == 1).all())):
        return array[first : last + 1], None
    return array, at.astype(np.intp)


def _rows_of(*columns: NDArray[Any]) -> Iterator[tuple[int, ...]]:
    parts = (zip(*[values[block].tolist() for values in columns], strict=True) for block in blocks(len(columns[0])))
    return chain.from_iterable(parts)


def _rows(array: Any, at: Any) -> Any:
    return array.take(at, 0)  # of whole rows faster than array[at], of single elements slower


def vector_kernel(np: Any, primitives: PrimitiveSet, case: Case) -> Kernel | None:
    """The kernel that applies a case of scalars to arrays of one axis, element by element; None if there is none.

    It is that of the case's batch rule, if this emits the case's own operation with the same attrs and nothing else.
    """
    if not is_scalar_case(case):
        return None
    table = CaseTable(primitives)
    code = table.intern(replace(case, mask=None))
    n = len(case.operands)
    try:
        template = batch_template(primitives, table, code, (True,) * n, 2)
    except MissingRuleError:
        return None
    if len(template.nodes) != 1 or template.closed or template.results != (n,):
        return None
    (node,) = template.nodes
    batched = table[node.code]
    if tuple(node.reads) != tuple(range(n)) or (batched.op, batched.attrs) != (case.op, case.attrs):
        return None
    return primitives[case.op].kernel(np, batched.attrs, batched.operands, batched.results)  # type: ignore[arg-type]


def is_scalar_case(case: Case) -> bool:
    """Whether all operands, one at least, and the one result are scalars that lie in flat arrays."""
    return len(case.results) == 1 and len(case.operands) > 0 and all(map(_is_flat, (*case.operands, *case.results)))


def _is_flat(type_: Type | None) -> bool:
    return isinstance(type_, TensorType) and not type_.shape and type_.dtype in SCALARS


def grouped(steps: Steps, primitives: PrimitiveSet, outputs: Sequence[Output], *, always: bool = False) -> GroupedProgram | None:
    """The program of these steps in groups; None where there are too few steps, or too few to a group. Linear in their number.

    With `always`, however few they are.
    """
    import numpy as np

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
    if level is None:
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
    import numpy as np

    level = column([-1]) * len(steps.inputs)
    append = level.append
    watched = watch("planning", steps.n_steps)
    for block in blocks(steps.n_steps):
        arity = steps.arity(block)
        ordinary = (arity >= 1) & (arity <= 3) & (steps.n_results(block) == 1)
        columns = [steps.operand(k, block, arity).tolist() for k in range(min(int(arity.max()), 3))]
        for before, end in pairwise([-1, *np.flatnonzero(~ordinary).tolist(), len(arity)]):
            if before >= 0:
                step = block.start + before
                deepest = max([level[a] for a in steps.reads(step)], default=-1)
                level.extend([deepest + 1] * int(steps.first[step + 1] - steps.first[step]))
            stretch = watched(zip(*[operands[before + 1 : end] for operands in columns], strict=True))
            if len(columns) == 1:
                for (a,) in stretch:
                    append(level[a] + 1)
            elif len(columns) == 2:
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
    found = array_of(level)
    return found[len(steps.inputs) :] if steps.single else taken(found, steps.first[:-1])


def _sorted(steps: Steps, groupable: NDArray[Any], level: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The steps by level and, if of a case that is grouped, by case; and of each whether it begins a group, or runs by itself."""
    import numpy as np

    n, n_cases = steps.n_steps, len(groupable)
    kinds = np.where(groupable, np.arange(1, n_cases + 1), 0)
    bits = n.bit_length()
    order, begins = np.empty(n, np.int32), np.ones(n, bool)
    if (int(level.max()) + 1) * (n_cases + 1) << bits < 2**KEY_BITS:
        # One sort of numbers, whose lower bits say which step it is, is several times faster than that of an index.
        keys = np.empty(n, np.int64)
        for block in blocks(n):
            key = level[block] * np.int64(n_cases + 1) + kinds[steps.code[block]]
            keys[block] = (key << bits) + np.arange(block.start, block.stop)
        keys.sort()
        for block in blocks(n):
            order[block] = keys[block] & (2**bits - 1)
        del keys
    else:
        order[:] = np.lexsort((kinds[steps.code], level))
    last_level = last_kind = -1
    for block in blocks(n):
        step = order[block]
        levels_, kind = level[step], kinds[steps.code[step]]
        begins[block] = (np.diff(levels_, prepend=last_level) != 0) | (np.diff(kind, prepend=last_kind) != 0) | (kind == 0)
        last_level, last_kind = levels_[-1], kind[-1]
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
    import numpy as np

    graph, cases = steps.graph, steps.graph.cases
    array, place, lengths = _elements(steps, order, begins)
    numbers = sorted(lengths.keys() - {LIST})
    compact = {number: k for k, number in enumerate(numbers)} | {LIST: LIST}

    def at(value: int) -> Place:
        return compact[int(array[value])], int(place[value])

    first = order[begins]
    code = steps.code[first]
    is_group = groupable[code]
    size = np.where(is_group, np.diff(np.flatnonzero(begins), append=steps.n_steps), 0)
    singles = []
    for step in first[~is_group].tolist():
        made = range(int(steps.first[step]), int(steps.first[step + 1]))
        singles.append(Single(tuple(map(at, steps.reads(step))), tuple(map(at, made))))
    arity = np.array(cases.arity, np.int32)
    operands = [np.empty(int(size[arity[code] > k].sum()), np.int32) for k in range(int(arity[code[is_group]].max()))]
    ends = [0] * len(operands)
    for block in blocks(steps.n_steps):
        step = order[block]
        step = step[groupable[steps.code[step]]]
        start, n_read = steps.start[step], arity[steps.code[step]]
        for k, numbers_of_operand in enumerate(operands):
            found = place[steps.args[start[n_read > k] + k]]
            begin, ends[k] = ends[k], ends[k] + len(found)
            numbers_of_operand[begin : ends[k]] = found
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
    import numpy as np

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
    for block in blocks(steps.n_steps):
        step = order[block]
        code, group = steps.code[step], np.cumsum(begins[block]) + n_groups
        n_groups = int(group[-1])
        if steps.single:
            put(steps.first[step], made[row[code]], group)
        else:
            n = n_results[code]
            put(ranges(steps.first[step], n), made[ranges(row[code], n)], np.repeat(group, n))
    return array, place, length


def _array_of(type_: Type) -> int:
    return SCALARS.index(type_.dtype) if isinstance(type_, TensorType) and _is_flat(type_) else LIST
