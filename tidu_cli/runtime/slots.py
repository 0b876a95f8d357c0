"""Slots for values: a program of the steps of a computation, in which the slot of a value that dies serves the next one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tidu_cli.graph.graph import Column, Output, column
from tidu_cli.graph.types import TensorType
from tidu_cli.primitives.contract import PrimitiveSet
from tidu_cli.runtime.interpreter import SCRATCH, UNARY, WIDE, Program, Wide, is_ufunc, reusing_kernel, reusing_number
from tidu_cli.runtime.steps import Steps, constant_steps
from tidu_cli.watching import watch

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEFT, RIGHT = 1, 2
"""Which operands of a step die in it; both are the sum."""

KEPT = 4
"""What stands there for a step whose result is kept for later runs, whose operands are kept, too."""


def allocated(steps: Steps, primitives: PrimitiveSet, outputs: Sequence[Output]) -> Program:
    """The program of these steps. Linear in their number."""
    import numpy as np

    code, first = steps.code, steps.first
    arity, n_results = np.diff(steps.start), np.diff(first)
    last = steps.last_uses()
    constant = constant_steps(steps)
    last[len(steps.inputs) :][np.repeat(constant, n_results)] = steps.n_steps  # for the next run
    regular = (arity >= 1) & (arity <= 2) & (n_results == 1)
    left, right = _operand(steps, 0, arity), _operand(steps, 1, arity)
    number = np.arange(steps.n_steps)
    dying = LEFT * ((arity > 0) & (last[left] == number)) + RIGHT * ((arity > 1) & (last[right] == number) & (right != left))
    dying[constant] = KEPT
    slot, n_slots, wide = _slots(steps, left, right, dying, regular, last)

    slot_of = np.array([*slot, 0], np.int32)  # one more, so that there is some
    irregular = np.flatnonzero(~regular)
    target = slot_of[first[:-1]]
    lefts = slot_of[left]
    lefts[irregular] = np.arange(len(irregular))
    rights = np.where(arity == 1, UNARY, slot_of[right])
    rights[irregular] = WIDE
    # The result takes the place of the last operand to die; where two do, the other one's is cleared.
    cleared = np.where(regular & (dying == LEFT | RIGHT), slot_of[left], SCRATCH)
    return Program(
        graph=steps.graph,
        primitives=primitives,
        inputs=tuple(steps.graph.inputs[k] for k in steps.inputs),
        input_slots=tuple(slot[: len(steps.inputs)]),
        outputs=tuple(outputs),
        output_slots=tuple(None if v is None else slot[v] for v in steps.outputs),
        n_slots=n_slots,
        node=_column(steps.node),
        code=_column(code),
        kernel=_column(_reuses(steps, primitives, last)),
        left=_column(lefts),
        right=_column(rights),
        target=_column(target),
        cleared=_column(cleared),
        wide=tuple(wide),
        constant=constant.tobytes(),
    )


def _column(values: NDArray[Any]) -> Column[int]:
    import numpy as np

    made = column()
    made.frombytes(values.astype(np.int32).tobytes())
    return made


def _operand(steps: Steps, k: int, arity: NDArray[Any]) -> NDArray[Any]:
    """Operand k of each step; 0 of steps that have none."""
    import numpy as np

    found = np.zeros(steps.n_steps, np.int64)
    has = np.flatnonzero(arity > k)
    found[has] = steps.args[steps.start[has] + k]
    return found


def _slots(
    steps: Steps, left: NDArray[Any], right: NDArray[Any], dying: NDArray[Any], regular: NDArray[Any], last: NDArray[Any]
) -> tuple[list[int], int, list[Wide]]:
    """The slot of each value, how many there are, and the slots of the steps that are not regular."""
    import numpy as np

    n_inputs = len(steps.inputs)
    slot = list(range(SCRATCH + 1, SCRATCH + 1 + n_inputs))
    n_slots = SCRATCH + 1 + n_inputs
    free: list[int] = []
    wide: list[Wide] = []
    watched = watch("allocating", steps.n_steps)
    # Stretches of regular steps, which most are, between others.
    bounds = [-1, *np.flatnonzero(~regular).tolist(), steps.n_steps]
    for before, end in pairwise(bounds):
        if before >= 0:
            reads = steps.args[steps.start[before] : steps.start[before + 1]].tolist()
            reusable = [] if dying[before] == KEPT else free
            n_slots = _irregular(steps, before, reads, last, slot, reusable, n_slots, wide)
        stretch = slice(before + 1, end)
        append = slot.append
        for d, a, b in watched(zip(dying[stretch].tolist(), left[stretch].tolist(), right[stretch].tolist(), strict=True)):
            if d == LEFT:
                append(slot[a])
            elif d == RIGHT:
                append(slot[b])
            elif d == LEFT | RIGHT:
                append(slot[b])
                free.append(slot[a])
            elif free and not d:
                append(free.pop())
            else:
                append(n_slots)
                n_slots += 1
    return slot, n_slots, wide


def _irregular(
    steps: Steps, step: int, reads: list[int], last: NDArray[Any], slot: list[int], free: list[int], n_slots: int, wide: list[Wide]
) -> int:
    """Slots for the results of one step of any number of operands and results. Gives the number of slots there are then."""
    results = range(int(steps.first[step]), int(steps.first[step + 1]))
    dying = [slot[a] for a in dict.fromkeys(reads) if last[a] == step]
    writes = []
    for _ in results:
        if dying and len(results) == 1:
            writes.append(dying.pop())
        elif free:
            writes.append(free.pop())
        else:
            writes.append(n_slots)
            n_slots += 1
    slot += writes
    dying += [slot[v] for v in results if last[v] < 0]
    wide.append(Wide(tuple(slot[a] for a in reads), tuple(writes), tuple(dying)))
    free += dying
    return n_slots


def _reuses(steps: Steps, primitives: PrimitiveSet, last: NDArray[Any]) -> NDArray[Any]:
    """The number of each step's kernel: one that makes its result in the memory of an operand, where it may.

    The operand must die there, and have memory of its own: it was made by a step whose results are new arrays, and read only by
    such steps. Any other kernel may give a view of what it reads, or an array that it keeps.
    """
    import numpy as np

    cases = steps.graph.cases
    fresh, into = np.zeros(len(cases), bool), np.zeros((2, len(cases)), bool)
    for code in np.unique(steps.code).tolist():
        case = cases[code]
        primitive, result = primitives[case.op], case.results[0]
        # A record may pass on arrays that others see, also where its fields are sums: x + 0 is x.
        if len(case.results) == 1 and isinstance(result, TensorType) and result.rank > 0:
            fresh[code] = primitive.fresh or is_ufunc(np, primitive, case)
            into[:, code] = [fresh[code] and reusing_kernel(np, primitive, case, k) is not None for k in (0, 1)]
    kernels = steps.code.copy()
    candidates = np.flatnonzero((into[0] | into[1])[steps.code])
    if not len(candidates):
        return kernels
    own = np.zeros(steps.n_values, bool)
    own[steps.first[:-1][fresh[steps.code]]] = True
    own[steps.args[np.repeat(~fresh[steps.code], np.diff(steps.start))]] = False
    for step in candidates.tolist():
        reads = steps.args[steps.start[step] : steps.start[step + 1]].tolist()
        code = int(steps.code[step])
        for k, a in enumerate(reads[:2]):
            if into[k, code] and own[a] and last[a] == step and reads.count(a) == 1:
                kernels[step] = reusing_number(code, k)
                break
    return kernels
