"""Programs of many scalars: steps of one case that do not wait for one another run as one array operation.

Every step has a level, one more than the greatest of those it reads. Steps of one level and one case are a group. Scalars of a
dtype are elements of one flat array, numbered so that the results of a group lie side by side; its operands are gathered by their
numbers, or are a slice where they lie side by side, too. What a case does to many operands at once, its batch rule says: it is
grouped if that is the same operation, of the same attrs, of arrays. All else runs one by one, as in any program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import getitem
from typing import TYPE_CHECKING, Any

from tidu_cli.errors import EvaluationError, MissingRuleError
from tidu_cli.graph.graph import Case, CaseTable, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import ALL, TensorType, Type
from tidu_cli.primitives.contract import Kernel, PrimitiveSet
from tidu_cli.primitives.structural import numpy_dtype
from tidu_cli.primitives.trace import batch_template
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
    no entries there.
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

    def run(self, inputs: Mapping[Key, Any]) -> list[Any]:
        """The values of `outputs`, as `Program.run` gives them, bit for bit. Raises EvaluationError when memory runs out."""
        import numpy as np

        try:
            # A run has arrays of its own, which a later one takes over.
            space = self._idle.pop() if self._idle else Workspace(self)
            found = owned(np, space.run(inputs), self.outputs)
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

    With `items` each scalar is so many: the flat arrays have a second axis, along which are the items of a batch.
    """

    def __init__(self, program: GroupedProgram, items: tuple[int, ...] = ()) -> None:
        import numpy as np

        self.program = program
        self.flat = [
            np.empty((n, *items), numpy_dtype(np, dtype)) for n, dtype in zip(program.lengths, program.dtypes, strict=True)
        ]
        self.calls: list[tuple[Any, ...]] = []
        number = {dtype: k for k, dtype in enumerate(program.dtypes)}
        next_operand = [0] * len(program.operands)
        kernels: dict[int, tuple[Any, ...]] = {}
        alone = iter(program.singles)
        self.entries: list[Any] = [None] * program.n_entries
        known: set[Place] = set()
        room = MOST_KEPT
        for code, size, begin in zip(program.code.tolist(), program.size.tolist(), program.begin.tolist(), strict=True):
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
                    self.calls.append((0, kernel, single, None, None, None, None))
                continue
            out = made[begin : begin + size]
            places: list[Any] = []
            for k in range(len(read)):
                at = program.operands[k][next_operand[k] : next_operand[k] + size]
                next_operand[k] += size
                places += _view_or_numbers(np, read[k], at)
            if is_ufunc and len(read) == 2:
                self.calls.append((2, kernel, out, *places))
            elif is_ufunc and len(read) == 1:
                self.calls.append((1, kernel, out, *places, None, None))
            else:
                self.calls.append((3, kernel, out, list(pairwise(places))[::2], None, None, None))
        self.entries = [kept(np, value) for value in self.entries]

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
            for kind, kernel, out, x, i, y, j in watch("evaluating", len(self.calls))(self.calls):
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
    cases = steps.graph.cases
    used = np.unique(steps.code).tolist()
    groupable = np.zeros(len(cases), bool)
    groupable[used] = [vector_kernel(np, primitives, cases[c]) is not None for c in used]
    in_group = groupable[steps.code]
    if 2 * np.count_nonzero(in_group) < max(steps.n_steps, 1) or _bytes_alone(steps, groupable) > MOST_BYTES:
        return None
    order, bounds = _sorted(steps, in_group)
    is_group = in_group[order[bounds[:-1]]]
    if np.count_nonzero(in_group) < SMALLEST_GROUP * np.count_nonzero(is_group) and not always:
        return None
    return _laid_out(steps, primitives, tuple(outputs), order, bounds, is_group)


def _bytes_alone(steps: Steps, groupable: NDArray[Any]) -> int:
    import numpy as np

    counts = np.bincount(steps.code, minlength=len(groupable))
    alone = np.flatnonzero((counts > 0) & ~groupable).tolist()
    return sum(int(counts[c]) * sum(t.nbytes for t in steps.graph.cases[c].results) for c in alone)


def _sorted(steps: Steps, in_group: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The steps by level and, if grouped, by case; and where each group begins, and the last one ends."""
    import numpy as np

    n, n_cases = steps.n_steps, len(steps.graph.cases)
    kinds = np.where(in_group, steps.code + 1, 0).astype(np.int64)
    level = np.array(levels(steps), np.int64)
    if (int(level.max()) + 1) * (n_cases + 1) * n < 2**63:  # one sort of numbers is several times faster than that of an index
        keys = (level * (n_cases + 1) + kinds) * n + np.arange(n)
        keys.sort()
        order, keys = keys % n, keys // n
    else:
        keys = level * (n_cases + 1) + kinds
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
    begins = np.ones(n + 1, bool)
    begins[1:-1] = (keys[1:] != keys[:-1]) | ~in_group[order[1:]]
    return order, np.flatnonzero(begins)


def levels(steps: Steps) -> list[int]:
    """Of each step the number of steps on the longest path that ends in it, less one; constants are at 0."""
    import numpy as np

    arity, n_results = np.diff(steps.start), np.diff(steps.first)
    # Operands of the ordinary steps, of one to three; the number of the first stands in for those that are not there.
    first = steps.start[:-1]
    args = steps.args if len(steps.args) else np.zeros(1, np.int32)
    columns = [args[np.where(arity > k, first + k, np.where(arity > 0, first, 0))].tolist() for k in range(3)]
    ordinary = (arity >= 1) & (arity <= 3) & (n_results == 1)
    level = [-1] * len(steps.inputs)
    append = level.append
    watched = watch("planning", steps.n_steps)
    for before, end in pairwise([-1, *np.flatnonzero(~ordinary).tolist(), steps.n_steps]):
        if before >= 0:
            reads = steps.args[steps.start[before] : steps.start[before + 1]].tolist()
            level += [max((level[a] for a in reads), default=-1) + 1] * int(n_results[before])
        stretch = slice(before + 1, end)
        for a, b, c in watched(zip(*[column[stretch] for column in columns], strict=True)):
            deepest, other, third = level[a], level[b], level[c]
            if other > deepest:
                deepest = other
            if third > deepest:
                deepest = third
            append(deepest + 1)
    found: list[int] = np.array(level, np.int32)[steps.first[:-1]].tolist()
    return found


def _laid_out(
    steps: Steps,
    primitives: PrimitiveSet,
    outputs: tuple[Output, ...],
    order: NDArray[Any],
    bounds: NDArray[Any],
    is_group: NDArray[Any],
) -> GroupedProgram:
    """Numbers for the elements: the inputs, then the results in the order of the steps, with a gap before each group.

    Where a result begins right where an operand ends, NumPy takes that for an overlap, and goes another way, which may round
    otherwise.
    """
    import numpy as np

    cases, n_inputs = steps.graph.cases, len(steps.inputs)
    # The values in their new order, and the array of each: that of its dtype, or the list.
    counts = np.diff(steps.first)[order]
    ends = np.cumsum(counts)
    results = np.repeat(steps.first[order] - (ends - counts), counts) + np.arange(int(counts.sum()))
    values = np.concatenate([np.arange(n_inputs), results])
    array = np.full(steps.n_values, LIST, np.int16)
    array[:n_inputs] = [_array_of(steps.graph.inputs[k].type) for k in steps.inputs]
    for code in np.unique(steps.code).tolist():
        first = steps.first[:-1][steps.code == code]
        for k, type_ in enumerate(cases[code].results):
            array[first + k] = _array_of(type_)
    group = np.concatenate(
        [np.zeros(n_inputs, np.int64), np.repeat(1 + np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)), counts)]
    )
    place = np.zeros(steps.n_values, np.int32)
    present = np.unique(array).tolist()
    lengths = {}
    for number in present:
        own = array[values] == number
        gaps = np.cumsum(np.diff(group[own], prepend=0) != 0)
        place[values[own]] = np.arange(len(gaps)) + gaps
        lengths[number] = len(gaps) + int(gaps[-1])
    numbers = [number for number in present if number != LIST]
    compact = {number: k for k, number in enumerate(numbers)} | {LIST: LIST}

    def at(value: int) -> Place:
        return compact[int(array[value])], int(place[value])

    code = steps.code[order[bounds[:-1]]]
    size = np.where(is_group, np.diff(bounds), 0)
    singles = []
    for step in order[bounds[:-1][~is_group]].tolist():
        reads = steps.args[steps.start[step] : steps.start[step + 1]].tolist()
        made = range(int(steps.first[step]), int(steps.first[step + 1]))
        singles.append(Single(tuple(map(at, reads)), tuple(map(at, made))))
    in_groups = order[np.repeat(is_group, np.diff(bounds))]
    arity, start = np.diff(steps.start)[in_groups], steps.start[in_groups]
    operands = []
    for k in range(int(arity.max())):
        operands.append(place[steps.args[start[arity > k] + k]])
    return GroupedProgram(
        graph=steps.graph,
        primitives=primitives,
        inputs=tuple(steps.graph.inputs[k] for k in steps.inputs),
        input_places=tuple(at(v) for v in range(n_inputs)),
        outputs=outputs,
        output_places=tuple(None if v is None else at(v) for v in steps.outputs),
        dtypes=tuple(SCALARS[number] for number in numbers),
        lengths=tuple(lengths[number] for number in numbers),
        n_entries=lengths.get(LIST, 0),
        code=code.astype(np.int32),
        size=size.astype(np.int32),
        begin=place[steps.first[:-1][order[bounds[:-1]]]],
        operands=tuple(operands),
        singles=tuple(singles),
    )


def _array_of(type_: Type) -> int:
    return SCALARS.index(type_.dtype) if isinstance(type_, TensorType) and _is_flat(type_) else LIST
