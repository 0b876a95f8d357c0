"""The graphs of loops and branches: made of terms, and derived by the transforms.

The derivative of such a graph is cut in two, as that of a document is: the residuals, which may be computed before tangents are
known, and a graph that is linear in tangents and reads residuals as inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, count
from typing import Any, cast

from tidu_cli.errors import LimitError, MissingRuleError, TypeRuleError
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import ClosedGraph, forwards
from tidu_cli.graph.graph import Case, CaseTable, Document, Externals, Graph, Input, Output, Place, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import ANY, Type, of_batch, parse_type
from tidu_cli.lax.vocabulary import BUILTIN, vocabulary
from tidu_cli.rules.batching import repeated
from tidu_cli.rules.catalogue import Caption, Part
from tidu_cli.rules.contract import Types
from tidu_cli.rules.recording.trace import Trace, recorded, spliced
from tidu_cli.rules.tangents import natural
from tidu_cli.rules.terms import Recorder, Term, op
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.batch import vectorized
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.watching import listening

Terms = Sequence[Term | None]
Flags = tuple[bool, ...]

OF_ALL_TYPES: Any = {"dtypes": ANY, "records": True, "integers": "exact"}
"""What the declarations of primitives on graphs have in common: their graphs compute, whatever the types of operands."""


def made(
    primitives: PrimitiveSet, inputs: Sequence[tuple[str, Type]], emit: Callable[[Trace, list[Term]], Sequence[Term]]
) -> ClosedGraph:
    """The graph of what `emit` records of inputs of these names and types, without what is dead or computed twice.

    Inputs of one name would be one input: those that follow the first get others.
    """
    trace = Trace(primitives, CaseTable(primitives.weak or primitives))
    terms = [trace.source(t, linear=False) for _, t in inputs]
    outputs = [Output(Key(f"y{k}"), t.slot, t.value_type) for k, t in enumerate(emit(trace, terms))]
    keys = map(Key, _distinct([name for name, _ in inputs]))
    graph = recorded(trace, "", [Input(key, t) for key, (_, t) in zip(keys, inputs, strict=True)], outputs)
    with listening(None):
        closed = ClosedGraph.of(materialize(Document((graph,), graph.cases)).head)
    closed.tidy = True
    return closed


def _distinct(names: Sequence[str]) -> list[str]:
    distinct: dict[str, None] = {}
    for name in names:
        others = (f"{name}.{k}" for k in count(2))
        distinct[next(n for n in chain([name], others) if n not in distinct)] = None
    return list(distinct)


def named(name: str, types: Sequence[Type]) -> list[tuple[str, Type]]:
    """Inputs of these types: the name and a number."""
    return [(f"{name}{k}", t) for k, t in enumerate(types)]


def inputs_of(graph: ClosedGraph) -> list[tuple[str, Type]]:
    """The inputs of a graph by name, for another that takes the same."""
    return [(str(i.key), i.type) for i in graph.graph.inputs]


def batched_inputs(graph: ClosedGraph, batched: Sequence[bool], size: int) -> list[tuple[str, Type]]:
    """Likewise where these have a batch as their first axis."""
    return [(name, of_batch(t, size) if b else t) for (name, t), b in zip(inputs_of(graph), batched, strict=True)]


def outputs_of(trace: Recorder, graph: ClosedGraph, operands: Sequence[Term]) -> list[Term]:
    """Emit a graph. Gives its outputs."""
    return cast(list[Term], spliced(trace, graph.document, _by_input(graph.graph, operands)))


@contextmanager
def naming_place(place: str, graph: ClosedGraph) -> Iterator[None]:
    """Errors of a missing rule or a limit name the place of the graph in the node that holds it: `, body, node 7 (mul)`."""
    try:
        yield
    except (MissingRuleError, LimitError) as error:
        begin, message = f"graph '{graph.graph.name}', ", str(error)
        raise type(error)(f", {place}, {message.removeprefix(begin)}" if message.startswith(begin) else message) from None


class Linearized:
    """The derivative of a closed graph along its `active` inputs, those of which carry no tangent excepted.

    `residuals` are the values that the linear graph reads, as (graph, value) of `document`, in which graph 0 is the closed one;
    `constants` are those that depend on nothing, and are computed where they are read, so that a zero is seen to be one.
    `place` is what messages call it. `live` says of each output whether its tangent is not zero.
    """

    def __init__(self, graph: ClosedGraph, active: Sequence[bool], primitives: PrimitiveSet, place: str = "body") -> None:
        self.active = tuple([a and natural(i.type) is not None for i, a in zip(graph.graph.inputs, active, strict=True)])
        self._keys = [i.key for i in graph.graph.inputs]
        wrt = [key for key, a in zip(self._keys, self.active, strict=True) if a]
        self.live: Flags = (False,) * len(graph.graph.outputs)
        if not wrt:
            return
        with listening(None), naming_place(place, graph):
            self.document = linearize(graph.document, wrt, primitives=primitives)
        self.linear = self.document.head
        depends = self.depending_on(range(len(self._keys)))
        self.residuals: list[Place] = [(g, v) for g, v in self.linear.external if depends[g][v]]
        self.constants: list[Place] = [(g, v) for g, v in self.linear.external if not depends[g][v]]
        self.live = tuple([o.value is not None for o in self.linear.outputs])

    def type_of(self, residual: Place) -> Type:
        """The type of a residual."""
        return self.document.graphs[residual[0]].type_of(residual[1])

    def emit_residuals(self, trace: Recorder, residuals: Sequence[Place], operands: Terms) -> list[Term]:
        """Emit the values of these residuals for operands of the closed graph; None stands for one that they do not depend on."""
        cases, types = self.document.cases, map(self.type_of, residuals)
        outputs = [Output(Key(str(k)), -1 - k, t) for k, t in enumerate(types)]
        external = Externals(column(g for g, _ in residuals), column(v for _, v in residuals))
        last = Graph("residuals", (), tuple(outputs), cases, external=external)
        sources = {key: t for key, t in zip(self._keys, operands, strict=True) if t is not None}
        return cast(list[Term], spliced(trace, Document((*self.document.graphs[:-1], last), cases), sources))

    def emit_linear(self, trace: Recorder, residuals: Mapping[Place, Term], tangents: Sequence[Term]) -> Terms:
        """Emit the linear graph for these residuals and the tangents of active inputs. Gives the outputs' tangents."""
        graph = _with_residuals_as_inputs(self.linear)
        constants = self.emit_residuals(trace, self.constants, [None] * len(self._keys)) if self.constants else []
        known = {**residuals, **dict(zip(self.constants, constants, strict=True))}
        values = [*[known[r] for r in self.linear.external], *tangents]
        return spliced(trace, Document((graph,), graph.cases), _by_input(graph, values))

    def depending_on(self, inputs: Collection[int]) -> list[bytearray]:
        """Of each value of each graph before the linear one, whether it depends on these inputs of the closed graph."""
        flags: list[bytearray] = []
        for graph in self.document.graphs[:-1]:
            depends = bytearray(len(graph.inputs))
            if not flags:
                for k in inputs:
                    depends[k] = 1
            outside = [flags[g][v] for g, v in graph.external]
            for _, args, first, end in forwards(graph, graph.args):
                depends += bytes([any(depends[a] if a >= 0 else outside[~a] for a in args)]) * (end - first)
            flags.append(depends)
        return flags


def fixed_point(carry: Flags, step: Callable[[Flags], Sequence[bool]]) -> Flags:
    """The flags of what is carried, which steps can only add to, after the last step that adds to them."""
    while True:
        after = tuple([a or b for a, b in zip(carry, step(carry), strict=True)])
        if after == carry:
            return carry
        carry = after


def _with_residuals_as_inputs(graph: Graph) -> Graph:
    n = len(graph.external)
    inputs = [Input(Key(f"r{k}", ()), t) for k, t in enumerate(_external_types(graph))]
    outputs = [replace(o, value=None if o.value is None else o.value + n if o.value >= 0 else ~o.value) for o in graph.outputs]
    args = column(a + n if a >= 0 else ~a for a in graph.args)
    kept = [replace(i, key=Key(f"t{k}")) for k, i in enumerate(graph.inputs)]
    return replace(graph, inputs=(*inputs, *kept), outputs=tuple(outputs), args=args, external=Externals())


def _external_types(graph: Graph) -> list[Type]:
    types: dict[int, Type] = {}
    for code, args, _, _ in forwards(graph, graph.args):
        types.update((~a, cast(Type, t)) for a, t in zip(args, graph.cases[code].operands, strict=True) if a < 0)
    types.update((~o.value, o.type) for o in graph.outputs if o.value is not None and o.value < 0)
    return [types[k] for k in range(len(graph.external))]


def _by_input(graph: Graph, operands: Sequence[Term]) -> dict[Key, Term]:
    return {i.key: t for i, t in zip(graph.inputs, operands, strict=True)}


def batched_outputs(
    trace: Recorder, graph: ClosedGraph, operands: Sequence[Term], batched: Sequence[bool], size: int
) -> list[tuple[Term, bool]]:
    """Emit a graph for a batch of these operands. Gives its outputs, and of each whether it has the batch as its first axis."""
    keys = {i.key for i, b in zip(graph.graph.inputs, batched, strict=True) if b}
    with listening(None):
        batched_graph, depend = vectorized(graph.document.head, keys, size, trace.primitives)
    outputs = spliced(trace, Document((batched_graph,), batched_graph.cases), _by_input(batched_graph, operands))
    return list(zip(cast(list[Term], outputs), depend, strict=True))


def as_batch(x: Term, is_batched: bool, size: int) -> Term:
    """A value with the batch as its first axis."""
    return x if is_batched else repeated(x, size)


def flops(graph: ClosedGraph) -> int:
    """The operations that a graph takes."""
    cases, primitives = graph.graph.cases, vocabulary(graph.graph.cases)
    each = [primitives[c.op].evaluation.flops(c.attrs, cast(Types, c.operands), cast(Types, c.results)) for c in cases.cases]
    return sum(map(each.__getitem__, graph.graph.code))


def require_types(what: str, graph: ClosedGraph, given: Sequence[Type], due: Sequence[Type], numbers: Sequence[int]) -> None:
    """Raises TypeRuleError unless operands of these numbers have the types that inputs of a graph make due."""
    for k, (t, d) in enumerate(zip(given, due, strict=True)):
        if t != d:
            raise TypeRuleError(f"input {numbers[k]} has type {t}, but the {what} takes {d} as '{graph.graph.inputs[k].key}'")


# The words for loops and branches: captions, the roles of the graphs in them, and examples.


def scan_caption(case: Case, operands: Sequence[str]) -> Caption:
    """`a loop of 4 steps`."""
    attrs: Any = case.attrs
    steps = f"{attrs.length:,} step{'' if attrs.length == 1 else 's'}{', from the last to the first' if attrs.reverse else ''}"
    return Caption(f"scan({', '.join(operands)})", f"the loop of {steps}", label=steps)


def while_caption(case: Case, operands: Sequence[str]) -> Caption:
    """`a loop as long as its condition holds`."""
    does = "the loop as long as its condition holds"
    return Caption(f"while({', '.join(operands)})", does, label="as long as its condition holds")


def cond_caption(case: Case, operands: Sequence[str]) -> Caption:
    """`the one of 2 branches that i chooses`."""
    attrs: Any = case.attrs
    n = len(attrs.branches)
    which = f"one of {n} branches" if n > 1 else "one branch"
    return Caption(f"cond({', '.join(operands)})", f"the {which}, chosen by {operands[0]}", "through the branch", label=which)


def scan_parts(attrs: Any) -> Sequence[Part]:
    """The body: constants, what goes round, and slices."""
    n, end = attrs.num_consts, attrs.num_consts + attrs.num_carry
    roles = [(k, "const" if k < n else "carry" if k < end else "slice") for k in range(len(attrs.body.input_types))]
    return [Part("body", tuple(roles), tuple((k, n + k) for k in range(attrs.num_carry)))]


def while_parts(attrs: Any) -> Sequence[Part]:
    """The condition and the body, both of what goes round."""
    n, m = attrs.cond_consts, attrs.body_consts
    n_carry = len(attrs.body.output_types)
    carry = tuple((n + m + k, "carry") for k in range(n_carry))
    condition = Part("condition", (*((k, "const") for k in range(n)), *carry))
    return [condition, Part("body", (*((n + k, "const") for k in range(m)), *carry), tuple((k, m + k) for k in range(n_carry)))]


def cond_parts(attrs: Any) -> Sequence[Part]:
    """The branches, each of the operands after the index."""
    return [
        Part(f"branch {k}", tuple((i + 1, "") for i in range(len(branch.input_types)))) for k, branch in enumerate(attrs.branches)
    ]


def solve_caption(case: Case, operands: Sequence[str]) -> Caption:
    """`the solution of a linear system`."""
    return Caption(f"linear_solve({', '.join(operands)})", "the solution of a linear system", label="A x = b")


def root_caption(case: Case, operands: Sequence[str]) -> Caption:
    """`the root of an equation`."""
    return Caption(f"root({', '.join(operands)})", "the root of an equation", label="f(x) = 0")


def fixed_point_caption(case: Case, operands: Sequence[str]) -> Caption:
    """`the fixed point of a function`."""
    return Caption(f"fixed_point({', '.join(operands)})", "the fixed point of a function", label="x = f(x)")


def solve_parts(attrs: Any) -> Sequence[Part]:
    """The map and its solvers: constants, and what stands in the place of the right side."""
    return [Part(name, _unknowns(attrs, attrs.matvec, word)) for name, word in _SOLVE_PARTS if getattr(attrs, name) is not None]


def root_parts(attrs: Any) -> Sequence[Part]:
    """The equation and its solvers: constants, and what stands in the place of the first guess."""
    parts = []
    for name, *words in _ROOT_PARTS:
        if getattr(attrs, name) is not None:
            first, *others = [_unknowns(attrs, attrs.f, word) for word in words]
            parts.append(Part(name, (*first, *[pair for some in others for pair in some[attrs.num_consts :]])))
    return parts


_SOLVE_PARTS = (("matvec", "unknown"), ("solve", "right side"), ("transpose_solve", "right side"))
_ROOT_PARTS = (("f", "unknown"), ("solve", "guess"), ("tangent_solve", "unknown", "right side"))


def _unknowns(attrs: Any, graph: ClosedGraph, word: str) -> tuple[tuple[int, str], ...]:
    return tuple([(k, "const" if k < attrs.num_consts else word) for k in range(len(graph.graph.inputs))])


Attributes = Mapping[str, Any]

cos, dot_general, less, sin, sqrt = map(op, ("cos", "dot_general", "lt", "sin", "sqrt"))

_MATRIX_VECTOR = {"dimension_numbers": (((1,), (0,)), ((), ()))}


def _graph(types: Sequence[str], emit: Callable[..., Sequence[Term]]) -> ClosedGraph:
    inputs = [(f"x{k}", parse_type(t)) for k, t in enumerate(types)]
    return made(BUILTIN, inputs, lambda trace, terms: emit(*terms))


def recurrence() -> Attributes:
    """s ← sin(k) s + x, which also gives cos(s)."""

    def step(k: Term, s: Term, x: Term) -> Sequence[Term]:
        after = sin(k) * s + x
        return after, cos(after)

    return {"length": 4, "num_consts": 1, "num_carry": 1, "body": _graph(["f64[]"] * 3, step)}


def powers() -> Attributes:
    """v ← A v, from the last step to the first, each of which gives v."""

    def step(matrix: Term, v: Term) -> Sequence[Term]:
        return dot_general(matrix, v, **_MATRIX_VECTOR), v

    body = _graph(["f64[2,2]", "f64[2]"], step)
    return {"length": 3, "num_consts": 1, "num_carry": 1, "reverse": True, "body": body}


def two_branches() -> Attributes:
    """sin(x) or x²."""
    return {"branches": (_graph(["f64[3]"], lambda x: [sin(x)]), _graph(["f64[3]"], lambda x: [x * x]))}


def counted() -> Attributes:
    """x ← sin(a) x as long as a count, which goes up, is below 3."""

    def step(a: Term, count: Term, x: Term) -> Sequence[Term]:
        return count + 1, sin(a) * x

    condition = _graph(["i32[]", "f64[]"], lambda count, x: [less(count, 3)])
    return {"cond_consts": 0, "body_consts": 1, "condition": condition, "body": _graph(["f64[]", "i32[]", "f64[]"], step)}


def a_system() -> Attributes:
    """A x = b."""
    matvec = _graph(["f64[3,3]", "f64[3]"], lambda a, x: [dot_general(a, x, **_MATRIX_VECTOR)])
    return {"num_consts": 1, "matvec": matvec}


def a_solved_system() -> Attributes:
    """a x = b, element by element, by division."""
    types = ["f64[3]", "f64[3]"]
    quotient = _graph(types, lambda a, b: [b / a])
    return {"num_consts": 1, "matvec": _graph(types, lambda a, x: [a * x]), "solve": quotient, "transpose_solve": quotient}


def an_equation() -> Attributes:
    """x³ + x = a."""
    return {"num_consts": 1, "f": _graph(["f64[]", "f64[]"], lambda a, x: [x * x * x + x - a])}


def a_solved_equation() -> Attributes:
    """x² = a, by the root, whose tangents are quotients by 2 x."""
    types = ["f64[]"] * 2
    f, solve = _graph(types, lambda a, x: [x * x - a]), _graph(types, lambda a, x: [sqrt(a)])
    return {"num_consts": 1, "f": f, "solve": solve, "tangent_solve": _graph(["f64[]"] * 3, lambda a, x, b: [b / (x + x)])}


def a_contraction() -> Attributes:
    """x = cos(x) / 2 + a."""
    return {"num_consts": 1, "f": _graph(["f64[]", "f64[]"], lambda a, x: [cos(x) / (x.trace.full(2, x.type)) + a])}


def a_solved_contraction() -> Attributes:
    """x = (x + a / x) / 2, which is √a, where the slope of that is 0."""
    types = ["f64[]"] * 2
    f = _graph(types, lambda a, x: [(x + a / x) / x.trace.full(2, x.type)])
    return {
        "num_consts": 1,
        "f": f,
        "solve": _graph(types, lambda a, x: [sqrt(a)]),
        "tangent_solve": _graph(["f64[]"] * 3, lambda a, x, b: [b]),
    }
