"""What of a graph has to be computed, as arrays: the nodes that outputs need, each once, and which values they read.

Programs are made from this (`tidu_cli.runtime.slots`, `tidu_cli.runtime.groups`). Graphs that come from materialize have neither
dead nor equal nodes, which takes a few passes over arrays to see; of others they are dropped one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidu_cli.graph.graph import Case, Column, Graph, Output, column
from tidu_cli.graph.types import TensorType
from tidu_cli.watching import watch

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """The steps of a computation, in a valid order. Values are numbered: the inputs that are needed, then the steps' results.

    `inputs` are indices into the graph's; `outputs` are values, None for structural zeros. Step i computes node `node[i]`, of case
    `code[i]`; it reads the values `args[start[i]:start[i + 1]]` and makes `first[i]` up to before `first[i + 1]`.
    """

    graph: Graph
    inputs: tuple[int, ...]
    outputs: tuple[int | None, ...]
    node: NDArray[Any]
    code: NDArray[Any]
    start: NDArray[Any]
    args: NDArray[Any]
    first: NDArray[Any]

    @property
    def n_steps(self) -> int:
        """The number of steps."""
        return len(self.code)

    @property
    def n_values(self) -> int:
        """The number of values: inputs and results."""
        return int(self.first[-1])

    def last_uses(self) -> NDArray[Any]:
        """For each value the last step that reads it: `n_steps` for outputs, -1 for what no step reads."""
        import numpy as np

        last = np.full(self.n_values, -1, np.int32)
        # The last one of several assignments to one place holds.
        last[self.args] = np.repeat(np.arange(self.n_steps, dtype=np.int32), np.diff(self.start))
        last[[v for v in self.outputs if v is not None]] = self.n_steps
        return last


def needed_steps(graph: Graph, outputs: Sequence[Output]) -> Steps:
    """The steps that these outputs of a self-contained graph need. Nodes that differ in their masks alone compute the same."""
    import numpy as np

    code = np.frombuffer(graph.code, np.int32)
    args = np.frombuffer(graph.args, np.int32)
    arity = np.array(graph.cases.arity, np.int32)
    n_results = np.array(graph.cases.n_results, np.int32)
    n_inputs = len(graph.inputs)
    start = _sums(arity[code])
    first = _sums(n_results[code]) + n_inputs
    results = [o.value for o in outputs]
    read = np.zeros(graph.n_values, bool)
    read[args] = True
    read[[v for v in results if v is not None]] = True
    plain = _without_masks(graph)
    node = np.arange(len(code), dtype=np.int32)
    same = None
    if not _all_read(read, first) or _any_equal(plain[code], args, start):
        node, args, same, read = _distinct(graph, plain, _needed(graph, outputs))
        code = code[node]
        start = _sums(arity[code])
        made = _ranges(first[node], n_results[code])
        first = _sums(n_results[code])
    else:
        made = np.arange(n_inputs, graph.n_values)
        first = first - n_inputs
    inputs = np.flatnonzero(read[:n_inputs])
    number = np.zeros(graph.n_values, np.int32)
    number[inputs] = np.arange(len(inputs))
    number[made] = np.arange(len(inputs), len(inputs) + len(made))
    if same is not None:
        results = [None if v is None else int(same[v]) for v in results]
    found = tuple(None if v is None else int(number[v]) for v in results)
    return Steps(graph, tuple(inputs.tolist()), found, node, code, start, number[args], first + len(inputs))


MOST_KEPT = 2**20
"""The bytes of results that a program may keep from its first run on."""

DEEPEST_KEPT = 8
"""How many steps after one another, at most, are looked through for what depends on no input."""


def constant_steps(steps: Steps) -> NDArray[Any]:
    """Of each step whether it depends on no input, and its results may be kept, which are of `MOST_KEPT` bytes together.

    A few are not found: see `DEEPEST_KEPT`. Linear in the number of steps.
    """
    import numpy as np

    arity, cases = np.diff(steps.start), steps.graph.cases
    constant, known, room = np.zeros(steps.n_steps, bool), np.zeros(steps.n_values, bool), MOST_KEPT
    sizes, reading, new = np.zeros(len(cases), np.int64), np.flatnonzero(arity), np.flatnonzero(arity == 0)
    used = np.unique(steps.code).tolist()
    sizes[used] = [kept_bytes(cases[c]) for c in used]
    for _ in range(DEEPEST_KEPT):
        new = new[sizes[steps.code[new]] <= room]  # what is too large by itself keeps out no other
        new = new[np.cumsum(sizes[steps.code[new]]) <= room]
        if not len(new):
            break
        room -= int(sizes[steps.code[new]].sum())
        constant[new] = True
        known[_ranges(steps.first[new], np.diff(steps.first)[new])] = True
        if not len(reading):
            break
        new = reading[np.logical_and.reduceat(known[steps.args], steps.start[reading]) & ~constant[reading]]
    return constant


def kept_bytes(case: Case) -> int:
    """What it takes to keep the results of a case, in bytes: too many for records, whose fields may be arrays that others see."""
    return sum(t.nbytes if isinstance(t, TensorType) else MOST_KEPT + 1 for t in case.results)


def _sums(counts: NDArray[Any]) -> NDArray[Any]:
    """How many come before each, and one more entry for their total."""
    import numpy as np

    sums = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=sums[1:])
    return sums


def _ranges(first: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
    """The numbers from each `first` on, so many, one range after the other."""
    import numpy as np

    before = _sums(counts)
    return np.repeat(first - before[:-1], counts) + np.arange(before[-1])


def _without_masks(graph: Graph) -> NDArray[Any]:
    """For each case the first one that computes the same: it may have another mask."""
    import numpy as np

    cases: dict[Case, int] = {}
    numbers = [cases.setdefault(Case(c.op, c.attrs, None, c.operands, c.results), k) for k, c in enumerate(graph.cases.cases)]
    return np.array(numbers, np.int32)


def _all_read(read: NDArray[Any], first: NDArray[Any]) -> bool:
    """Whether of each node some result is read or an output: then, as paths end in outputs, all are needed."""
    import numpy as np

    made = read[first[0] :]
    return (
        bool((made if len(made) == len(first) - 1 else np.logical_or.reduceat(made, first[:-1] - first[0])).all())
        if len(made)
        else True
    )


def _any_equal(plain: NDArray[Any], args: NDArray[Any], start: NDArray[Any]) -> bool:
    """Whether two nodes might be of one case and read the same: True also, very rarely, where none are."""
    import numpy as np

    if not len(plain):
        return False
    digest = _mixed(plain.astype(np.uint64) | np.uint64(1 << 63))  # no operand has this bit
    arity = np.diff(start)
    # An operand counts by its number and its place, so that x - y is not y - x.
    places = np.arange(len(args), dtype=np.uint64) - np.repeat(start[:-1], arity).astype(np.uint64)
    mixed = _mixed((places << np.uint64(40)) + args.astype(np.uint64) + np.uint64(1))
    reading = np.flatnonzero(arity)
    if len(reading):
        digest[reading] += np.add.reduceat(mixed, start[reading])
    digest.sort()
    return bool((digest[1:] == digest[:-1]).any())


def _mixed(x: NDArray[Any]) -> NDArray[Any]:
    """SplitMix64's finalizer (Steele, Lea and Flood 2014): 64 bits to 64 bits, one to one, in no order. Overwrites x."""
    import numpy as np

    x += np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


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


def _distinct(graph: Graph, plain: NDArray[Any], needed: tuple[bytearray, bytearray]) -> tuple[NDArray[Any], ...]:
    """The needed nodes without those that compute what an earlier one does: their numbers, and the values that they read.

    Then, of each value, the one that stands for it, and whether it is needed.
    """
    import numpy as np

    values, nodes = needed
    arity, n_results, args = graph.cases.arity, graph.cases.n_results, graph.args
    plain_code = plain.tolist()
    same: Column[int] = column(range(graph.n_values))
    kept, reads_of_kept = column(), column()
    known: dict[tuple[int, ...], int] = {}
    start, value = 0, len(graph.inputs)
    for node, code in enumerate(watch("compiling", graph.n_nodes)(graph.code)):
        end = start + arity[code]
        if nodes[node]:
            reads = [same[a] for a in args[start:end]]
            first = known.setdefault((plain_code[code], *reads), value)
            if first == value:
                kept.append(node)
                reads_of_kept.extend(reads)
            else:
                for k in range(n_results[code]):
                    same[value + k] = first + k
        start, value = end, value + n_results[code]
    integers = [np.frombuffer(found, np.int32) for found in (kept, reads_of_kept, same)]
    return (*integers, np.frombuffer(values, np.uint8).astype(bool))
