"""Laws that hold but for rounding, tried: what linear graphs and kernels compute, against what is said of it.

Linear graphs are exactly zero at zero, and additive in their inputs. Readers see that each node is linear by what its primitive
says of itself. Here that is put to the test, as a primitive of a package may say what is not so.

What a primitive's kernel computes is held against its types, its definition and batches of it:

- *types*: results have the types that the type rule gives;
- *definition*: they are those of the graph of other operations that it is defined as;
- *batch*: three applications at once are three applications.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.checking.numeric import trials
from tidu_cli.checking.numeric.laws import EXACT, Verdict, least_precision
from tidu_cli.checking.numeric.quotients import Map, cast, compiled, relative
from tidu_cli.errors import MissingRuleError, StepsError, TiduError
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Binding, Case, Document, Externals, Graph, Input, Output, Place, column
from tidu_cli.graph.identity import digests
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder, LogicalGraph, link
from tidu_cli.graph.types import TensorType, leaves, storage_dtype
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.limits import limited_steps
from tidu_cli.rules.catalogue import Example
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.recording.trace import expanded
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.plans.program import compile_graph
from tidu_cli.transforms.batch import vectorized
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose


def linear_verdicts(
    document: Document, primitives: PrimitiveSet, *, given: Mapping[Key, Any] | None = None, seed: int = 0
) -> list[Verdict]:
    """The worst verdicts on the linear graphs of a document: *zero*, L 0 = 0, and *additive*, L (2 a - 3 b) = 2 L a - 3 L b.

    None if it has no such graph. Inputs are as `given`, or drawn. Raises what materialize raises.
    """
    worst: dict[str, Verdict] = {}
    for g, graph in enumerate(document.graphs):
        if graph.linear is None or all(o.value is None for o in graph.outputs):
            continue
        graphs = document.graphs[: g + 1]
        declared = {i.key for other in graphs for i in other.inputs}
        part = replace(document, graphs=graphs, bindings=tuple(b for b in document.bindings if b.key in declared))
        try:
            with limited_steps(None, drawn=True):
                verdicts = _of_head(part, primitives, given or {}, seed)
        except StepsError as error:
            verdicts = [Verdict(law, None, 0.0, why=(str(error),)) for law in ("zero", "additive")]
        for verdict in verdicts:
            worst[verdict.law] = min(worst.get(verdict.law, verdict), verdict, key=lambda v: v.ok)
    return [*worst.values()]


def _of_head(document: Document, primitives: PrimitiveSet, given: Mapping[Key, Any], seed: int) -> list[Verdict]:
    f = compiled(document, primitives)
    free = [i for i in f.program.inputs if i.key in {own.key for own in document.head.inputs}]
    types = {p: t for i in free for p, t in trials.leaf_types(i.key, i.type).items()}
    results = [t for o in f.outputs for _, t in trials.leaf_types(o.key, o.type).items()]
    bound = EXACT[least_precision([*types.values(), *results])]
    rng = np.random.default_rng([seed, len(document.graphs)])
    x = trials.Drawing(f.program.inputs, given, {}, {}, seed).finite_point(f, rng)
    if x is None or len(free) < len(document.head.inputs):  # what is bound cannot be moved
        return [Verdict("zero", None, 0.0), Verdict("additive", None, bound)]
    a, b = trials.draw_all(rng, types), trials.draw_all(rng, types)
    at_zero = f(x | {p: np.zeros_like(t) for p, t in a.items()})
    of_a, of_b = f(x | a), f(x | b)
    mixed = f(x | {p: cast(2 * a[p] - 3 * b[p], a[p]) for p in a})
    verdicts = [
        Verdict("zero", relative(at_zero, {p: np.zeros_like(y) for p, y in at_zero.items()}), 0.0),
        Verdict("additive", relative(mixed, {p: 2 * of_a[p] - 3 * of_b[p] for p in mixed}), bound),
    ]
    return [v if v.ok else replace(v, at=trials.shown(x, f.program.inputs)) for v in verdicts]


# Which primal values the cotangents in a transposed graph belong to, though the linear graph between the two is gone.
#
# A cotangent of v is the cotangent of an e in v + e. So e is added to every value that depends on the inputs, and the graph is
# linearized by all the e and transposed again; what is structurally equal in the new graph and in the given one is the same value.
# Where the given graph is not such a transpose, nothing is equal, and nothing is said.


def cotangent_owners(document: Document) -> Mapping[int, Sequence[Place]]:
    """For values of a transposed head, by local id, the values (graph number, local id) whose whole cotangents they are.

    Values of which nothing is known are left out. Linear in the size of the document.
    """
    head = document.head
    seeds = [i.key for i in head.inputs if i.key.path[-1:] == (-(head.linear or 0),)]
    if head.linear is None or not seeds:
        return {}
    outputs = [Key(key.name, key.path[:-1]) for key in seeds]
    earlier = range(len(document.graphs) - 2, -1, -1)
    g = next((g for g in earlier if {o.key for o in document.graphs[g].outputs}.issuperset(outputs)), None)
    if g is None:
        return {}
    wrt = [Key(o.key.name, o.key.path[:-1]) for o in head.outputs]
    added, owners, old = _with_added(document, g, wrt)
    try:
        again = transpose(linearize(added, [*wrt, *owners], outputs=outputs, pass_number=head.linear))
    except TiduError:
        return {}
    head_digests = digests(_without_added(again, document, g, old))[-1]
    known: dict[bytes, list[Place]] = {}
    for output in again.head.outputs:
        if output.value is not None and output.value >= 0 and (e := Key(output.key.name, output.key.path[:-1])) in owners:
            known.setdefault(head_digests[output.value], []).append((g, owners[e]))
    return {value: known[digest] for value, digest in enumerate(digests(document)[-1]) if digest in known}


def _with_added(document: Document, g: int, wrt: Collection[Key]) -> tuple[Document, dict[Key, int], list[int]]:
    """The document up to graph g, with v + e for each value v of its nodes that depends on wrt.

    And the v by the keys of the e; and of each value of the changed graph the one of graph g that it is where all e are 0.
    """
    graph, logical = document.graphs[g], link(document)
    depends = computed_from(logical, wrt, any)[logical.base[g] :]
    first = len(graph.inputs)
    # Not to records: a sum of records is put together, where the given graph may have taken their fields as they come.
    chosen = [v for v in range(first, graph.n_values) if depends[v] and isinstance(t := graph.type_of(v), TensorType) and t.inexact]
    owners = {Key(f"\0{v}"): v for v in chosen}  # no key of a document has such a name but by malice, and then linearize refuses it
    builder = GraphBuilder(document.cases, [*graph.inputs, *(Input(e, graph.type_of(v)) for e, v in owners.items())])
    e_of = {v: first + k for k, v in enumerate(chosen)}
    new = list(range(first))
    old = [*new, *chosen]
    attrs = BUILTIN.parse_attrs(BUILTIN.add, {})

    def moved(argument: int) -> int:
        return new[argument] if argument >= 0 else builder.refer(*graph.place(g, argument))

    for case, arguments in graph.nodes():
        made = builder.append(document.cases.intern(case), [moved(argument) for argument in arguments])
        for slot, type_ in enumerate(case.results):
            v = len(new)
            old.append(v)
            add = document.cases.intern(BUILTIN.case(BUILTIN.add, attrs, None, [type_, type_])) if v in e_of else None
            new.append(made + slot if add is None else builder.append(add, [made + slot, e_of[v]]))
            old += [v] * (add is not None)
    outputs = [Output(o.key, None if o.value is None else moved(o.value), o.type) for o in graph.outputs]
    changed = builder.build(graph.name, outputs)
    bindings = tuple(Binding(b.key, b.graph, new[b.value] if b.graph == g else b.value) for b in document.bindings if b.graph <= g)
    return replace(document, graphs=(*document.graphs[:g], changed), bindings=bindings), owners, old


def _without_added(again: Document, document: Document, g: int, old: Sequence[int]) -> Document:
    """A document derived of the changed one, as if derived of the given one: what it reads of the changed graph is of graph g."""

    def reading_given(graph: Graph) -> Graph:
        values = column(old[v] if of == g else v for of, v in graph.external)
        return replace(graph, external=Externals(graph.external.graph, values))

    graphs = (*document.graphs[: g + 1], *map(reading_given, again.graphs[g + 1 :]))
    return replace(again, graphs=graphs, bindings=tuple(b for b in document.bindings if b.graph <= g))


def computed_from(logical: LogicalGraph, inputs: Container[Key], how: Callable[[Iterable[int]], bool]) -> bytearray:
    """For each flat id whether it is computed from one of these inputs (`any`), or from them and constants alone (`all`)."""
    flags = bytearray(logical.n_values)
    for key, flat in logical.source.items():
        flags[flat] |= key in inputs
    for g, graph in enumerate(logical.document.graphs):
        for _, operands, first, after in forwards(graph, logical.args[g], logical.base[g]):
            flags[first:after] = bytes([how(flags[operand] for operand in operands)]) * (after - first)
    return flags


_ITEMS = 3


def kernel_verdicts(primitive: Primitive, primitives: PrimitiveSet, dtypes: Container[str]) -> list[Verdict]:
    """The worst verdict on each law of kernels over a primitive's examples, in those of its dtypes."""
    worst: dict[str, Verdict] = {}
    for example, case in trials.example_cases(primitives, primitive):
        arrays = [leaf for t in (*case.operands, *case.results) if t is not None for _, leaf in leaves(t)]
        if all(not t.inexact or storage_dtype(t.dtype) in dtypes for t in arrays):
            for verdict in _verdicts(example, case, primitives):
                worst[verdict.law] = max(worst.get(verdict.law, verdict), verdict, key=lambda v: v.strain)
    return list(worst.values())


def _verdicts(example: Example, case: Case, primitives: PrimitiveSet) -> Iterator[Verdict]:
    graph = trials.one_node_document(case).head
    intervals = {i.key: trials.of_operand(example.within, k) for k, i in enumerate(graph.inputs)}
    diagonals = {i.key: trials.of_operand(example.diagonals, k) for k, i in enumerate(graph.inputs)}
    drawing, rng = trials.Drawing(graph.inputs, {}, intervals, diagonals, 0), np.random.default_rng(0)
    f = Map(compile_graph(graph, primitives))
    points = [x for _ in range(_ITEMS) if (x := drawing.finite_point(f, rng)) is not None]
    if len(points) < _ITEMS:
        return
    types = {p: t for o in graph.outputs for p, t in trials.leaf_types(o.key, o.type).items()}
    bound = EXACT[least_precision(types.values())] if any(t.inexact for t in types.values()) else 0.0
    values = [f(x) for x in points]
    yield Verdict("types", 0.0 if _types_agree(graph, case, primitives, points[0]) else 1.0, 0.0)
    if primitives[case.op].evaluation.definition is not None:
        defined = Map(compile_graph(expanded(primitives, case), primitives))
        yield Verdict("definition", relative(values[0], defined(points[0])), bound, points[0])
    if primitives[case.op].rules.batch is not None:
        yield Verdict("batch", _batch_error(graph, primitives, points, values), bound)


def _types_agree(graph: Graph, case: Case, primitives: PrimitiveSet, x: trials.Arrays) -> bool:
    """Whether the kernel itself gives what is declared: programs may convert it."""
    kernel = primitives[case.op].evaluation.kernel(np, case.attrs, case.operands, case.results)  # type: ignore[arg-type]
    values = kernel(*[trials.together(x, i.key, i.type) for i in graph.inputs])
    results = trials.apart(graph.outputs, values if len(graph.outputs) != 1 else (values,))
    due = {p: t for o in graph.outputs for p, t in trials.leaf_types(o.key, o.type).items()}
    return all((y.dtype, y.shape) == (numpy_dtype(np, due[p].dtype), due[p].shape) for p, y in results.items())


def _batch_error(graph: Graph, primitives: PrimitiveSet, points: list[trials.Arrays], values: list[trials.Arrays]) -> float | None:
    try:
        batched, _ = vectorized(graph, [i.key for i in graph.inputs], _ITEMS, primitives)
    except MissingRuleError:
        return None

    def stacked(some: list[trials.Arrays]) -> trials.Arrays:
        return {p: np.stack([a[p] for a in some]) for p in some[0]}

    return relative(stacked(values), Map(compile_graph(batched, primitives))(stacked(points)))
