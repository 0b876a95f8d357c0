"""Programs of many scalars: steps of one case that do not wait for one another run as one array operation.

Such steps are a group; `grouping` finds them. Scalars of a dtype are elements of one flat array, numbered so that
the results of a group lie side by side; its operands are gathered by their numbers, or are a slice where they lie side by side,
too. What a case does to many operands at once, its batch rule says: it is grouped if that is the same operation, of the same
attrs, of arrays. All else runs one by one, as in any program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from operator import getitem
from typing import TYPE_CHECKING, Any

from tidu_cli.errors import EvaluationError, MissingRuleError, StepsError, placed
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.graph import Case, CaseTable, Graph, Input, Output
from tidu_cli.graph.types import ALL, TensorType, Type
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.limits import StepCounting
from tidu_cli.rules.contract import Kernel
from tidu_cli.rules.recording.templates import batch_template
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.plans.interpreter import MOST_KEPT, Runnable, entering, kept, kept_bytes, owned
from tidu_cli.watching import watch

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCALARS = tuple(dtype for dtype in ("bool", *sorted(ALL - {"bool", "bf16"})))
"""The dtypes whose scalars lie in flat arrays: those that NumPy has itself."""

Cell = tuple[int, int]
"""Where a value is: the number of a flat array and of its element; or LIST and the number of an entry."""

LIST = -1


class Single(Frozen):
    """A step that runs by itself: the node that it computes, and where its operands and its results are."""

    node: int

    reads: tuple[Cell, ...]
    writes: tuple[Cell, ...]


@dataclass(frozen=True, eq=False)
class GroupedProgram(Runnable):
    """A compiled graph whose scalars run in groups.

    Group g is of case `code[g]`, and of `size[g]` steps, whose results are elements from `begin[g]` on. Where `size[g]` is 0 it is
    the next one of `singles`. The flat arrays are of `dtypes`, and of `lengths` elements. `operands[k]` holds, for operand k of
    the steps in groups, one after the other, the number of its element in the flat array of its dtype; steps of fewer operands have
    no entries there. `graph` is without its nodes, whose place this takes.
    """

    graph: Graph
    primitives: PrimitiveSet
    inputs: tuple[Input, ...]
    input_places: tuple[Cell, ...]
    outputs: tuple[Output, ...]
    output_places: tuple[Cell | None, ...]
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

    def run_in_order(self, values: Sequence[Any], *, once: bool = False) -> list[Any]:
        """The values of `outputs`, as `Program` gives them, bit for bit.

        With `once` the program keeps nothing for a later run, and a first one takes a third of the memory.
        """
        import numpy as np

        try:
            # A run has arrays of its own, which a later one takes over.
            with StepCounting():
                space = self._idle.pop() if self._idle else Workspace(self, once=once)
                results = owned(np, space.run(values), self.outputs)
            if not once:
                self._idle.append(space)
            return results
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
        known: set[Cell] = set()
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
            rule = self.program.primitives[case.op].evaluation.kernel
            return (rule(np, case.attrs, case.operands, case.results), False, None)  # type: ignore[arg-type]
        kernel = vector_kernel(np, self.program.primitives, case)
        flat = [self.flat[number[t.dtype]] for t in (*case.results, *case.operands)]  # type: ignore[union-attr]
        return (kernel, isinstance(kernel, np.ufunc), *flat)

    def run(self, values: Sequence[Any]) -> list[Any]:
        """The values of the program's outputs for those of its inputs, in order, None for structural zeros.

        Those of scalars may change with the next run.
        """
        import numpy as np

        program, flat = self.program, self.flat
        entries = self.entries.copy()
        for given, (array, k) in zip(values, program.input_places, strict=True):
            value = entering(np, given)
            if array == LIST:
                entries[k] = value
            else:
                flat[array][k] = value
        # Of whole rows faster than array[at], of single elements slower.
        gather = (lambda array, at: array.take(at, 0)) if self.flat and self.flat[0].ndim > 1 else getitem
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

    def _value(self, place: Cell, entries: list[Any]) -> Any:
        array, k = place
        return entries[k] if array == LIST else self.flat[array][k]

    def _single(self, kernel: Kernel, step: Single, entries: list[Any]) -> None:
        try:
            results = kernel(*[self._value(place, entries) for place in step.reads])
        except StepsError as error:
            raise StepsError(placed(f"graph '{self.program.graph.name}', node {step.node}", error)) from None
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
    from tidu_cli.graph.dataflow import blocks  # and with it NumPy

    parts = (zip(*[values[block].tolist() for values in columns], strict=True) for block in blocks(0, len(columns[0])))
    return chain.from_iterable(parts)


def vector_kernel(np: Any, primitives: PrimitiveSet, case: Case) -> Kernel | None:
    """The kernel that applies a case of scalars to arrays of one axis, element by element; None if there is none.

    It is that of the case's batch rule, if this emits the case's own operation with the same attrs and nothing else. It will be
    given arrays of any length, which tidu's own are fit for; those of packages are told their shapes, and need keep to no others.
    """
    if (
        case.op not in BUILTIN.primitives
        or len(case.results) != 1
        or not case.operands
        or not all(map(is_flat, (*case.operands, *case.results)))
    ):
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
    return primitives[case.op].evaluation.kernel(np, batched.attrs, batched.operands, batched.results)  # type: ignore[arg-type]


def is_flat(type_: Type | None) -> bool:
    """Whether values of this type are elements of a flat array."""
    return isinstance(type_, TensorType) and not type_.shape and type_.dtype in SCALARS
