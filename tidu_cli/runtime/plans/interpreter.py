"""What runs: the interface that all engines give a graph, and the plain interpreter.

A graph says what depends on what; a program says what to do next and where to put it. The interpreter's programs are of slots and
kernels, executed on NumPy, step by step. A program holds only what the chosen outputs need, computes once what differs only in
role, and lets go of each value after its last use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any

from tidu_cli.errors import EvaluationError, StepsError, placed
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Case, Column, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import RecordType, TensorType, Type, storage_dtype
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.limits import StepCounting
from tidu_cli.rules.contract import Kernel, Primitive
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.liveness import alive_within
from tidu_cli.watching import watch

Run = Callable[[Mapping[Key, Any]], list[Any]]
"""From the inputs of a chunk, with the batch as their first axis, to the values of the outputs, None for structural zeros."""


class Runnable(ABC):
    """A graph made ready to be run many times: `outputs` are what a run computes, and `inputs` what it needs for that.

    `graph` may be without its nodes; `primitives` are those of it.
    """

    graph: Graph
    primitives: PrimitiveSet
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]

    @property
    def current(self) -> Runnable:
        """What runs: itself, but for one that tries others."""
        return self

    def run(self, inputs: Mapping[Key, Any], *, once: bool = False) -> list[Any]:
        """The values of `outputs`, in order, for values of the declared types (`evaluate` checks what users give).

        Times are arrays of the numbers that hold them, records tuples of their fields' values, in order. In those of tangents None
        stands for a field that is zero; results hold arrays of zeros there. The results belong to the caller: they share no memory
        with the inputs, which are left as they are, or one another. With `once` nothing need be kept for a later run. Raises
        EvaluationError when memory runs out.
        """
        return self.run_in_order([inputs[i.key] for i in self.inputs], once=once)

    @abstractmethod
    def run_in_order(self, values: Sequence[Any], *, once: bool = False) -> list[Any]:
        """Likewise, of the values of `inputs` in order. A call may take no longer than it takes to look up a few keys."""

    @abstractmethod
    def nbytes(self) -> int:
        """About how many bytes a run takes, with inputs and results."""


UNARY, WIDE = -1, -2
"""What stands in the column `right` for a step of one operand, and for a step whose slots are listed in `wide`."""

MOST_KEPT = 2**20
"""The bytes of results that a program may keep from its first run on."""

SCRATCH = 0
"""The slot that a step clears when it has nothing to clear, so that the loop need not ask."""

_NOT = bytes([1, 0]) + bytes(254)
"""Turns 0 to 1 and 1 to 0."""


class Wide(Frozen):
    """The slots of a step: those of its operands, of its results, and those it clears in the end."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    clears: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Program(Runnable):
    """A compiled graph: a step is an entry of each column.

    Step i applies a kernel of case `code[i]` to slots `left[i]` and `right[i]`, puts the result into slot `target[i]`,
    then clears slot `cleared[i]`; `node[i]` is the node of the graph that it computes. Where `right[i]` is UNARY there is one
    operand; where it is WIDE the slots are those of `wide[left[i]]`. `kernel[i]` is `code[i]`, or a `reusing_number` where the
    kernel may make its result in the memory of an operand, which dies there, was made by an earlier step, and is seen by no other
    value.
    Where `constant[i]` is 1, the step depends on no input, and runs once: its results are in slots that no other step writes or
    clears. `input_slots` and `output_slots` belong to `inputs` and `outputs`; the slot of a structural zero is None. `graph` is
    without its nodes, whose place the columns take.
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
    constant: bytes

    @property
    def n_steps(self) -> int:
        """The number of kernel calls of a run."""
        return len(self.code)

    def nbytes(self) -> int:
        """More bytes than any run takes, with inputs and results: `estimate_memory` walks through the steps, and says it better."""
        cases = [self.graph.cases[code] for code in set(self.code)]
        ends = [*(i.type for i in self.inputs), *(o.type for o in self.outputs)]
        largest = max([t.nbytes for case in cases for t in case.results], default=0)
        within = max([alive_within(case, self.primitives) for case in cases], default=0)
        return self.n_slots * largest + within + sum(t.nbytes for t in ends)

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
            code, operand = (number, None) if number >= 0 else divmod(-1 - number, 2)
            case = self.graph.cases[code]
            primitive = self.primitives[case.op]
            reusing = None if operand is None else reusing_kernel(np, primitive, case, operand)
            kernels[number] = reusing or primitive.evaluation.kernel(np, case.attrs, case.operands, case.results)  # type: ignore[arg-type]
        return kernels

    def run_in_order(self, values: Sequence[Any], *, once: bool = False) -> list[Any]:
        """What `run` says. Nothing is kept but constants."""
        import numpy as np

        del once

        try:
            with np.errstate(all="ignore"), StepCounting():
                slots = self._constants.copy()
                for value, slot in zip(values, self.input_slots, strict=True):
                    slots[slot] = entering(np, value)
                self._execute(slots, self.constant.translate(_NOT))
                results = [None if slot is None else slots[slot] for slot in self.output_slots]
                del slots
                return owned(np, results, self.outputs)
        except MemoryError:
            raise EvaluationError(f"graph '{self.graph.name}': evaluation ran out of memory") from None

    @cached_property
    def _constants(self) -> list[Any]:
        """The slots as each run finds them: with the results of steps that depend on no input."""
        import numpy as np

        slots: list[Any] = [None] * self.n_slots
        self._execute(slots, self.constant)
        return [kept(np, value) for value in slots]

    def _execute(self, slots: list[Any], chosen: bytes) -> None:
        numbers = watch("evaluating", self.n_steps)(self.kernel)
        steps = zip(map(self.kernels.__getitem__, numbers), self.left, self.right, self.target, self.cleared, strict=True)
        kernel, left, right, target, cleared = None, 0, 0, 0, 0
        try:
            for kernel, left, right, target, cleared in compress(steps, chosen):
                if right >= 0:
                    slots[target] = kernel(slots[left], slots[right])
                elif right == UNARY:
                    slots[target] = kernel(slots[left])
                else:
                    _execute_wide(kernel, self.wide[left], slots)
                slots[cleared] = None
        except StepsError as error:
            # It is looked for, as counting along would take time of every step. Those of equal slots and case are as good.
            at = zip(map(self.kernels.__getitem__, self.kernel), self.left, self.right, self.target, self.cleared, strict=True)
            step = next(k for k, same in enumerate(at) if chosen[k] and same == (kernel, left, right, target, cleared))
            place = f"graph '{self.graph.name}', node {self.node[step]} ({self.graph.cases[self.code[step]].op})"
            raise StepsError(placed(place, error)) from None


def reusing_number(code: int, operand: int) -> int:
    """The number of the kernel of a case that makes its result in the memory of an operand, 0 or 1."""
    return -1 - (2 * code + operand)


def reusing_kernel(np: Any, primitive: Primitive, case: Case, operand: int) -> Kernel | None:
    """A kernel that may make its result in the memory of this operand; None if there is none.

    A primitive may have one, for operand 0. A function of NumPy's has one for each operand of the result's type. The result has the
    layout of a new one, as sums and products of matrices are rounded by it: NumPy makes one row by row if one of two operands is.
    """
    if operand == 0 and primitive.evaluation.reusing is not None:
        return primitive.evaluation.reusing(np, case.attrs, case.operands, case.results)  # type: ignore[arg-type]
    if operand >= len(case.operands) or case.operands[operand] != case.results[0] or not is_ufunc(np, primitive, case):
        return None
    function = primitive.evaluation.kernel(np, case.attrs, case.operands, case.results)  # type: ignore[arg-type]
    if len(case.operands) == 1:
        return lambda x: function(x, out=x)
    if operand == 0:
        return lambda x, y: function(x, y, out=x if x.flags.c_contiguous else None)
    return lambda x, y: function(x, y, out=y if y.flags.c_contiguous else None)


def is_ufunc(np: Any, primitive: Primitive, case: Case) -> bool:
    """Whether the kernel of a case of arrays is a function of NumPy's that works element by element, and gives new arrays."""
    shapes = {t.shape if isinstance(t, TensorType) else None for t in (*case.operands, case.results[0])}
    if not 1 <= len(case.operands) <= 2 or len(shapes) > 1 or None in shapes:
        return False
    kernel = primitive.evaluation.kernel(np, case.attrs, case.operands, case.results)  # type: ignore[arg-type]
    return isinstance(kernel, np.ufunc) and kernel.nin == len(case.operands)


def _execute_wide(kernel: Kernel, wide: Wide, slots: list[Any]) -> None:
    results = kernel(*[slots[k] for k in wide.reads])
    for k, value in zip(wide.writes, results if len(wide.writes) > 1 else (results,), strict=True):
        slots[k] = value
    for k in wide.clears:
        slots[k] = None


def each(function: Callable[[Any], Any], value: Any) -> Any:
    """A function of arrays applied to each array of a value; what is structurally zero stays so."""
    if isinstance(value, tuple):
        return tuple(each(function, field) for field in value)
    return None if value is None else function(value)


def entering(np: Any, value: Any) -> Any:
    """An input as kernels take it."""
    return each(lambda x: np.asarray(x)[()], value)  # of rank 0 a scalar: NumPy's arithmetic on them is the faster


def owned(np: Any, values: list[Any], outputs: Sequence[Output]) -> list[Any]:
    """Values of outputs, None for structural zeros, as the caller's own. Overwrites `values`."""
    # Kernels may give views, of inputs too, or the same array twice. `values` is overwritten as we go, so that what is
    # copied can be let go.
    taken: set[int] = set()
    for k, output in enumerate(outputs):
        values[k] = _leaving(np, output.type, values[k], taken)
    return values


def kept(np: Any, value: Any) -> Any:
    """What depends on no input, for later runs too: arrays as views, which are copied where they are results."""
    return value.view() if isinstance(value, np.ndarray) else value


def _leaving(np: Any, type_: Type, value: Any, taken: set[int]) -> Any:
    """A result as the caller's own; None is a structural zero. `taken` are the ids of arrays that are the caller's already."""
    if isinstance(type_, RecordType):
        fields = zip(type_.fields, (None,) * len(type_.fields) if value is None else value, strict=True)
        return tuple([_leaving(np, field_type, field, taken) for (_, field_type), field in fields])
    dtype = numpy_dtype(np, storage_dtype(type_.dtype))
    result = np.zeros(type_.shape, dtype) if value is None else np.asarray(value, dtype)
    if not result.flags.owndata or id(result) in taken:
        result = result.copy()
    taken.add(id(result))
    return result


def kept_bytes(case: Case) -> int:
    """What it takes to keep the results of a case, in bytes: too many for records, whose fields may be arrays that others see."""
    return sum(t.nbytes if isinstance(t, TensorType) else MOST_KEPT + 1 for t in case.results)
