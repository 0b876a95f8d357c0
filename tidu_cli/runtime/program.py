"""Programs: a graph compiled to slots and kernels, and their execution on NumPy.

A graph says what depends on what; a program says what to do next and where to put it. It holds only what the chosen
outputs need, computes once what differs only in role, and lets go of each value after its last use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tidu_cli.errors import EvaluationError, TransformError
from tidu_cli.graph.graph import Case, Column, Graph, Input, Output, column
from tidu_cli.graph.keys import Key
from tidu_cli.primitives.contract import Kernel, PrimitiveSet
from tidu_cli.primitives.structural import numpy_dtype
from tidu_cli.primitives.vocabulary import vocabulary
from tidu_cli.watching import watch

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNARY, WIDE = -1, -2
"""What stands in the column `right` for a step of one operand, and for a step whose slots are listed in `wide`."""

SCRATCH = 0
"""The slot that a step clears when it has nothing to clear, so that the loop need not ask."""


@dataclass(frozen=True, slots=True)
class Wide:
    """The slots of a step: those of its operands, of its results, and those it clears in the end."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    clears: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Program:
    """A compiled graph: a step is an entry of each column.

    Step i applies a kernel of case `code[i]` to slots `left[i]` and `right[i]`, puts the result into slot `target[i]`,
    then clears slot `cleared[i]`; `node[i]` is the node of `graph` that it computes. Where `right[i]` is UNARY there is one
    operand; where it is WIDE the slots are those of `wide[left[i]]`. `kernel[i]` is `code[i]`, or -1 - `code[i]` where the kernel
    may make its result in the memory of operand 0, which dies there, was made by an earlier step, and is seen by no other value.
    `input_slots` and `output_slots` belong to `inputs` and `outputs`; the slot of a structural zero is None.
    """

    graph: Graph
    primitives: PrimitiveSet
    inputs: tuple[Input, ...]
    input_slots: tuple[int, ...]
    outputs: tuple[Output, ...]
    output_slots: tuple[int | None, ...]
    n_slots: int
    node: Column[int]
    code: Column[int]
    kernel: Column[int]
    left: Column[int]
    right: Column[int]
    target: Column[int]
    cleared: Column[int]
    wide: tuple[Wide, ...]

    @property
    def n_steps(self) -> int:
        """The number of kernel calls of a run."""
        return len(self.code)

    def slots(self, step: int) -> Wide:
        """The slots of any step, in the one form. A view for analyses: the run walks the columns."""
        left, right = self.left[step], self.right[step]
        if right == WIDE:
            return self.wide[left]
        return Wide((left,) if right == UNARY else (left, right), (self.target[step],), (self.cleared[step],))

    @cached_property
    def kernels(self) -> dict[int, Kernel]:
        """The kernels in use, by the numbers in `kernel`. Built at the first run: constants take their memory only then."""
        import numpy as np

        kernels: dict[int, Kernel] = {}
        for number in set(self.kernel):
            case = self.graph.cases[number if number >= 0 else -1 - number]
            primitive = self.primitives[case.op]
            rule = primitive.kernel if number >= 0 else primitive.reusing
            kernels[number] = rule(np, case.attrs, case.operands, case.results)  # type: ignore[arg-type, misc]
        return kernels

    def run(self, inputs: Mapping[Key, NDArray[Any]]) -> list[NDArray[Any]]:
        """The values of `outputs`, in order, for arrays of the declared types (`evaluate` checks what users give).

        The results belong to the caller: they share no memory with the inputs or one another. Raises EvaluationError
        when memory runs out.
        """
        import numpy as np

        slots: list[Any] = [None] * self.n_slots
        for declared, slot in zip(self.inputs, self.input_slots, strict=True):
            slots[slot] = np.asarray(inputs[declared.key])[()]  # of rank 0 a scalar: NumPy's arithmetic on them is the faster
        try:
            with np.errstate(all="ignore"):
                self._execute(slots)
                found = [None if slot is None else slots[slot] for slot in self.output_slots]
                del slots
                return _owned(np, found, self.outputs)
        except MemoryError:
            raise EvaluationError(f"graph '{self.graph.name}': evaluation ran out of memory") from None

    def _execute(self, slots: list[Any]) -> None:
        numbers = watch("evaluating", self.n_steps)(self.kernel)
        steps = zip(map(self.kernels.__getitem__, numbers), self.left, self.right, self.target, self.cleared, strict=True)
        for kernel, left, right, target, cleared in steps:
            if right >= 0:
                slots[target] = kernel(slots[left], slots[right])
            elif right == UNARY:
                slots[target] = kernel(slots[left])
            else:
                _execute_wide(kernel, self.wide[left], slots)
            slots[cleared] = None


def _execute_wide(kernel: Kernel, wide: Wide, slots: list[Any]) -> None:
    results = kernel(*[slots[k] for k in wide.reads])
    for k, value in zip(wide.writes, results if len(wide.writes) > 1 else (results,), strict=True):
        slots[k] = value
    for k in wide.clears:
        slots[k] = None


def _owned(np: Any, values: list[Any], outputs: Sequence[Output]) -> list[NDArray[Any]]:
    # Kernels may give views, of inputs too, or the same array twice. `values` is overwritten as we go, so that what is
    # copied can be let go.
    taken: set[int] = set()
    for k, output in enumerate(outputs):
        dtype = numpy_dtype(np, output.type.dtype)
        if values[k] is None:
            values[k] = np.zeros(output.type.shape, dtype)
        result = np.asarray(values[k], dtype)
        if not result.flags.owndata or id(result) in taken:
            result = result.copy()
        taken.add(id(result))
        values[k] = result
    return values


def compile_graph(graph: Graph, primitives: PrimitiveSet | None = None, outputs: Sequence[int] | None = None) -> Program:
    """The program that computes these outputs (indices into `graph.outputs`; by default all) of a self-contained graph.

    Linear in the graph's size. Raises TransformError if the graph reads values of other graphs.
    """
    if len(graph.external):
        raise TransformError(f"graph '{graph.name}' reads values of other graphs; run tidu materialize first")
    chosen = tuple(graph.outputs if outputs is None else (graph.outputs[k] for k in outputs))
    distinct = _distinct(graph, _needed(graph, chosen))
    return _allocated(graph, primitives or vocabulary(graph.cases), chosen, distinct)


def _needed(graph: Graph, outputs: Sequence[Output]) -> tuple[bytearray, bytearray]:
    """Of each value and of each node, whether these outputs need it."""
    arity, n_results, args = graph.cases.arity, graph.cases.n_results, graph.args
    values, nodes = bytearray(graph.n_values), bytearray(graph.n_nodes)
    for output in outputs:
        if output.value is not None:
            values[output.value] = 1
    node, end, first = graph.n_nodes, len(args), graph.n_values
    for code in reversed(graph.code):
        node -= 1
        start, last = end - arity[code], first - 1
        first -= n_results[code]
        if values[last] or 1 in values[first:last]:
            nodes[node] = 1
            for a in args[start:end]:
                values[a] = 1
        end = start
    return values, nodes


@dataclass(slots=True)
class _Distinct:
    """The needed nodes without their duplicates. `same[v]` is the value that stands for v; `uses[v]` counts its reads."""

    same: Column[int]
    uses: Column[int]
    needed: bytearray
    node: Column[int]
    args: Column[int]
    first: Column[int]


def _distinct(graph: Graph, needed: tuple[bytearray, bytearray]) -> _Distinct:
    values, nodes = needed
    arity, n_results, args = graph.cases.arity, graph.cases.n_results, graph.args
    # Cases that differ only in mask compute the same.
    cases: dict[Case, int] = {}
    plain = [cases.setdefault(Case(c.op, c.attrs, None, c.operands, c.results), k) for k, c in enumerate(graph.cases.cases)]
    same, uses = column(range(graph.n_values)), column(bytes(4 * graph.n_values))
    found = _Distinct(same, uses, values, column(), column(), column())
    known: dict[tuple[int, ...], int] = {}
    start, value = 0, len(graph.inputs)
    for node, code in enumerate(watch("compiling", graph.n_nodes)(graph.code)):
        end = start + arity[code]
        if nodes[node]:
            reads = [same[a] for a in args[start:end]]
            first = known.setdefault((plain[code], *reads), value)
            if first == value:
                found.node.append(node)
                found.args.extend(reads)
                found.first.append(value)
                for a in reads:
                    uses[a] += 1
            else:
                for k in range(n_results[code]):
                    same[value + k] = first + k
        start, value = end, value + n_results[code]
    return found


def _allocated(graph: Graph, primitives: PrimitiveSet, outputs: tuple[Output, ...], distinct: _Distinct) -> Program:
    arity, n_results, uses = graph.cases.arity, graph.cases.n_results, distinct.uses
    results = [None if o.value is None else distinct.same[o.value] for o in outputs]
    for v in results:
        if v is not None:
            uses[v] += 1  # by the caller: never freed
    inputs = [k for k in range(len(graph.inputs)) if distinct.needed[k]]
    slot = column(bytes(4 * graph.n_values))
    for number, k in enumerate(inputs, start=SCRATCH + 1):
        slot[k] = number
    free: list[int] = []
    n_slots = SCRATCH + 1 + len(inputs)
    code, left, right, target, cleared = column(), column(), column(), column(), column()
    wide: list[Wide] = []
    memory = _Memory(graph, primitives)
    kernel = column()
    start = 0
    for node, first in zip(watch("allocating", len(distinct.node))(distinct.node), distinct.first, strict=True):
        c = graph.code[node]
        end = start + arity[c]
        reads = distinct.args[start:end]
        start = end
        dying = []
        for a in reads:
            uses[a] -= 1
            if not uses[a]:
                dying.append(slot[a])
        kernel.append(-1 - c if memory.reuses(c, reads, first, uses) else c)
        writes = []
        for v in range(first, first + n_results[c]):
            # A result takes the place of a dying operand, which the same step thus overwrites.
            if dying and n_results[c] == 1:
                slot[v] = dying.pop()
            elif free:
                slot[v] = free.pop()
            else:
                slot[v] = n_slots
                n_slots += 1
            writes.append(slot[v])
        code.append(c)
        target.append(writes[0])
        if len(writes) == 1 and 1 <= len(reads) <= 2:
            left.append(slot[reads[0]])
            right.append(slot[reads[1]] if len(reads) == 2 else UNARY)
            cleared.append(dying[0] if dying else SCRATCH)
        else:
            dying += [slot[v] for v in range(first, first + n_results[c]) if not uses[v]]
            left.append(len(wide))
            right.append(WIDE)
            cleared.append(SCRATCH)
            wide.append(Wide(tuple(slot[a] for a in reads), tuple(writes), tuple(dying)))
        free += dying
    return Program(
        graph=graph,
        primitives=primitives,
        inputs=tuple(graph.inputs[k] for k in inputs),
        input_slots=tuple(slot[k] for k in inputs),
        outputs=outputs,
        output_slots=tuple(None if v is None else slot[v] for v in results),
        n_slots=n_slots,
        node=distinct.node,
        code=code,
        kernel=kernel,
        left=left,
        right=right,
        target=target,
        cleared=cleared,
        wide=tuple(wide),
    )


class _Memory:
    """Which values are known to have memory of their own: made by a step, and read only by steps whose results are new arrays.

    Any other kernel may give a view of what it reads, or an array that it keeps.
    """

    def __init__(self, graph: Graph, primitives: PrimitiveSet) -> None:
        self.own = bytearray(graph.n_values)
        self.cases = graph.cases
        self.primitives = primitives
        self._known: dict[int, tuple[bool, bool]] = {}

    def reuses(self, code: int, reads: Sequence[int], first: int, uses: Sequence[int]) -> bool:
        """Whether the next step, of this case, may make its result, value `first`, in the memory of operand 0.

        `uses` counts the reads still to come, without this step's.
        """
        found = self._known.get(code)
        if found is None:
            case = self.cases[code]
            primitive, has_axes = self.primitives[case.op], len(case.results) == 1 and case.results[0].rank > 0
            found = self._known[code] = (primitive.fresh and has_axes, primitive.reusing is not None and has_axes)
        fresh, can_reuse = found
        own = self.own
        if not fresh:
            for a in reads:
                own[a] = 0
            return False
        own[first] = 1
        return can_reuse and own[reads[0]] == 1 and not uses[reads[0]] and reads.count(reads[0]) == 1
