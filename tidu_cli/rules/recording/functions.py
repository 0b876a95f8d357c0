"""Closed graphs as functions of Python: a statement a node, compiled once, so that a loop over it costs what one by hand does.

Names are slots: that of a value which was read for the last time serves the next. What depends on no input is computed when the
function is made. Sums, products and the like of scalars, whose kernels are Python's operators, are written as such.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, cast

from tidu_cli.graph.closed import backwards, forwards
from tidu_cli.graph.graph import Case, CaseTable, Graph
from tidu_cli.graph.sizes.open import surely
from tidu_cli.graph.types import TensorType
from tidu_cli.rules.contract import Kernel, Types
from tidu_cli.rules.recording.trace import Template, Trace
from tidu_cli.rules.terms import Term, op
from tidu_cli.rules.vocabulary import PrimitiveSet

_SIGNS = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/"}

Lines = list[str]


class Writer:
    """Writes graphs as statements of one function. `known` is what the names in them stand for, beside its variables."""

    def __init__(self, np: Any, primitives: PrimitiveSet) -> None:
        self.np = np
        self.primitives = primitives
        self.known: dict[str, Any] = {"np": np}
        self._n_variables = 0

    def variable(self) -> str:
        """A new variable."""
        self._n_variables += 1
        return f"v{self._n_variables}"

    def constant(self, value: Any) -> str:
        """A name for a value."""
        name = f"k{len(self.known)}"
        self.known[name] = value
        return name

    def statements(self, graph: Graph, inputs: Sequence[str]) -> tuple[Lines, list[str]]:
        """The statements that compute a closed graph of inputs of these names, which they leave alone; and its outputs' names."""
        names: dict[int, str] = dict(enumerate(inputs))
        results = [o.value for o in graph.outputs if o.value is not None]
        last = _last_uses(graph, results)
        kernels: dict[int, tuple[Kernel, str]] = {}
        closed: dict[int, Any] = {}
        free: list[str] = []
        lines: Lines = []
        for node, (code, args, first, end) in enumerate(forwards(graph, graph.args)):
            if code not in kernels:
                case = graph.cases[code]
                made = self.primitives[case.op].evaluation.kernel(
                    self.np, case.attrs, cast(Types, case.operands), cast(Types, case.results)
                )
                kernels[code] = made, self.constant(made) if made not in _SIGNS else _SIGNS[made]
            kernel, name = kernels[code]
            made_here = range(first, end)
            if not any(v in last for v in made_here):
                continue
            if all(a in closed for a in args):
                computed = kernel(*[closed[a] for a in args])
                closed.update(zip(made_here, computed if len(made_here) > 1 else (computed,), strict=True))
                continue
            for a in args:
                if a not in names:
                    names[a] = self.constant(_kept(self.np, closed[a]))
            operands = [names[a] for a in args]
            free += [names[a] for a in dict.fromkeys(args) if last[a] == node and a >= len(inputs) and a not in closed]
            for value in made_here:
                names[value] = free.pop() if free else self.variable()
            text = f" {name} ".join(operands) if kernel in _SIGNS else f"{name}({', '.join(operands)})"
            lines.append(f"{', '.join(names[v] for v in made_here)} = {text}")
            free += [names[v] for v in made_here if v not in last]
        for value in results:
            if value not in names:
                names[value] = self.constant(_kept(self.np, closed[value]))
        return lines, [names[v] for v in results]

    def function(self, parameters: Sequence[str], lines: Lines) -> Kernel:
        """The function of these parameters and statements."""
        head = f"def run({', '.join(parameters)}):"
        exec(compile("\n ".join([head, *lines]), "<graph>", "exec"), self.known)  # of names and numbers that are all made here
        return cast(Kernel, self.known.pop("run"))


def kernel(np: Any, graph: Graph, primitives: PrimitiveSet) -> Kernel:
    """A function of the arrays of a closed graph's inputs that gives its output, or a tuple of several, but for zeros."""
    writer = Writer(np, primitives)
    inputs = [writer.variable() for _ in graph.inputs]
    lines, results = writer.statements(graph, inputs)
    return writer.function(inputs, [*lines, f"return {returned(results)}"])


def returned(names: Sequence[str]) -> str:
    """What kernels give: one result, or a tuple of several."""
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _last_uses(graph: Graph, results: Sequence[int]) -> dict[int, int]:
    """Of each value that a result needs, the last node that reads it; of results the number of nodes."""
    last = dict.fromkeys(results, graph.n_nodes)
    node = graph.n_nodes
    for _, args, first, end in backwards(graph, graph.args):
        node -= 1
        if any(v in last for v in range(first, end)):
            for a in args:
                last.setdefault(a, node)
    return last


def _kept(np: Any, value: Any) -> Any:
    """What is computed once: an array as a view, which is copied where it is a result."""
    return value.view() if isinstance(value, np.ndarray) else value


# Scattered cotangents: those of arrays of which nodes read a few elements, as pairs of values and positions.
#
# The cotangent of an array that is read at one place is zero everywhere else. Made dense for each read, n reads of one of n
# elements would cost n² elements; kept as what was read and where, they are n, and one scatter-add makes them the array's
# cotangent. Positions count the array's elements row-major; its number of elements stands for none of them.


concatenate, reshape, scatter_add = op("concatenate"), op("reshape"), op("scatter-add")

POSITION = "i64"

_MERGING = ("iota", "reshape", "concatenate", "scatter-add")
"""What merging takes. In a set that lacks some of it, all cotangents are dense."""

FEW = 8
"""A read is of few elements if the array has more than so many times as many: else its cotangent is dense at once.

An element that is read takes its value, its position, a copy of both and a slow addition: about as much as eight elements of an
array of zeros. So the dense form is the smaller one then, and either way reads cost in proportion to what they read.
"""


def reads_few(primitives: PrimitiveSet, case: Case) -> bool:
    """Whether a linear node of this case reads few elements of operand 0, at places that it is known how to tell."""
    if case.mask is None or not case.mask[0] or any(case.mask[1:]) or None in case.operands:
        return False
    if primitives[case.op].rules.reads is None or any(name not in primitives.primitives for name in _MERGING):
        return False
    few, size = FEW * case.results[0].size, operand_type(case).size
    return surely(lambda: 0 < few < size)


def operand_type(case: Case) -> TensorType:
    """The type of the array that a node reads few elements of."""
    (array, *_) = case.operands
    assert isinstance(array, TensorType)
    return array


def positions_template(primitives: PrimitiveSet, cases: CaseTable, code: int) -> Template:
    """The template of the positions that a node reads: one i64 array of rank 1, in the order of the elements of its result.

    Its sources are the operands, of which the first is never read. Nothing in it is linear. Raises MissingRuleError.
    """
    case = cases[code]
    reads = primitives[case.op].rules.reads
    assert reads is not None
    trace = Trace(primitives, cases)
    array, *others = [trace.source(t, linear=False) for t in case.operands]
    n_sources, shape = trace.n_slots, array.type.shape
    numbers = trace.emit("iota", dtype=POSITION, shape=(math.prod(shape),), dimension=0)
    return trace.template(n_sources, [_flat(reads(case.attrs, _shaped(numbers, shape), others))])


def merging_template(primitives: PrimitiveSet, cases: CaseTable, type_: TensorType, parts: Types, *, onto: bool) -> Template:
    """The template of a cotangent of type `type_` from values of the types `parts` and where they belong.

    Its sources are the values, then their positions; and before both, if `onto`, a dense cotangent that they are added to. Values
    of one position are added one after the other, in the order of the parts.
    """
    trace = Trace(primitives, cases)
    dense = trace.source(type_, linear=True) if onto else None
    values = [trace.source(part, linear=True) for part in parts]
    positions = [trace.source(TensorType(POSITION, (part.size,)), linear=False) for part in parts]
    n_sources, flat = trace.n_slots, type_.with_shape((type_.size,))
    rows = reshape(concatenate(*positions, dimension=0), new_sizes=(sum(part.size for part in parts), 1))
    updates = concatenate(*map(_flat, values), dimension=0)
    target = trace.full(0, flat) if dense is None else _flat(dense)
    numbers = {"update_window_dims": (), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)}
    total = scatter_add(target, rows, updates, dimension_numbers=numbers, mode="fill")
    return trace.template(n_sources, [_shaped(total, type_.shape)])


def _flat(term: Term) -> Term:
    return _shaped(term, (term.type.size,))


def _shaped(term: Term, shape: Sequence[int]) -> Term:
    return term if term.type.shape == tuple(shape) else reshape(term, new_sizes=tuple(shape))
