"""Transforms of large graphs work on whole columns, and write the same bytes as those that walk node by node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import process_time
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.custom.making import own_documents
from tests.graphs.interpret import free_inputs
from tests.graphs.sketch import Sketch, Value, document, function, key, structure
from tests.graphs.strategies import ANY, SMOOTH, documents, seeds
from tests.tiers import examples
from tests.transforms.laws.test_laws import wrt_of
from tidu_cli.errors import TiduError
from tidu_cli.formats.write import format_document
from tidu_cli.graph import dataflow, large
from tidu_cli.graph.graph import Binding, CaseTable, Document, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder, link
from tidu_cli.graph.types import TensorType, moves
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import JVP
from tidu_cli.rules.families import primitive
from tidu_cli.rules.terms import Term
from tidu_cli.transforms.columns import kept as equal
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.stamp import Stamper
from tidu_cli.transforms.transpose import transpose
from tidu_cli.watching import listening

law = settings(
    max_examples=examples(150, check=60),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)

X, Y = key("x"), key("y")
F64 = TensorType("f64")


@contextmanager
def large_from(n_nodes: float, *, few: int = 64, block: int = 2**15, searches: int = 1) -> Iterator[None]:
    """Graphs of so many nodes are large, however many cases they have; the other sizes are as in the modules that have them."""
    with (
        patch.object(large, "NODES_WITH_NUMPY", n_nodes),
        patch.object(equal, "NODES_PER_CASE", 0),
        patch.object(dataflow, "FEW", few),
        patch.object(dataflow, "BLOCK", block),
        patch.object(equal, "SEARCHES", searches),
    ):
        yield


@contextmanager
def in_bulk_only() -> Iterator[None]:
    """What the plain way does node by node fails."""

    def fail(*_: object) -> object:
        raise AssertionError("this is the plain way")

    # The plain way stamps nodes, appends them, or copies them whole: so it cannot do anything unseen.
    plain_copy = patch("tidu_cli.transforms.materialize.whole_nodes", fail)
    with patch.object(Stamper, "_stamp_of", fail), patch.object(GraphBuilder, "append", fail), plain_copy:
        yield


def told(work: Callable[[], Document]) -> Document | str:
    """What work gives, or how it fails."""
    try:
        return work()
    except TiduError as error:
        return f"{type(error).__name__}: {error}"


def written(made: Document | str) -> object:
    if isinstance(made, str):
        return made
    return structure(made), format_document(made, "json", types=True), format_document(made, "msgpack")


def both(work: Callable[[], Document], **sizes: int) -> Document | str:
    """What work gives both ways, which write the same."""
    with large_from(float("inf")):
        plain = told(work)
    with large_from(1, **sizes):
        bulk = told(work)
    assert written(bulk) == written(plain)
    return bulk


sizes = st.sampled_from([{}, {"few": 0, "searches": 0}, {"few": 2, "block": 3}])


def derivatives(doc: Document, wrt: list[Key], steps: str, **sizes: int) -> None:
    """Linearize (l), transpose (t), in turn as `steps` says, and materialize each, both ways."""
    both(lambda: materialize(doc), **sizes)
    for step in steps:
        made = both(lambda d=doc, s=step: linearize(d, wrt) if s == "l" else transpose(d), **sizes)  # type: ignore[misc]
        if isinstance(made, str):
            return
        doc = made
        both(lambda d=doc: materialize(d), **sizes)  # type: ignore[misc]


orders = st.sampled_from(["l", "lt", "ltl", "ltlt", "ll", "lll", "ltltl", "ltt"])


@law
@given(documents(makers=ANY), seeds, orders, sizes)
def test_both_ways_write_the_same(doc: Document, seed: int, steps: str, sizes: dict[str, int]) -> None:
    derivatives(doc, wrt_of(doc, seed), steps, **sizes)


@settings(law, max_examples=examples(150, check=30))
@given(documents(makers=SMOOTH, shapes=((),), max_nodes=24, max_graphs=3), seeds, orders, sizes)
def test_both_ways_write_the_same_of_scalars(doc: Document, seed: int, steps: str, sizes: dict[str, int]) -> None:
    derivatives(doc, wrt_of(doc, seed), steps, **sizes)


# What documents of formulas seldom have: values that are computed again and again, from others that are, and that nothing reads.

I64, C128 = TensorType("i64"), TensorType("c128")
CHOICES: dict[TensorType, tuple[tuple[str, tuple[TensorType, ...], dict[str, object]], ...]] = {
    F64: (
        *((name, (F64, F64), {}) for name in ("add", "mul", "sub", "max")),
        *((name, (F64,), {}) for name in ("neg", "sin", "tanh", "sign", "stop_gradient")),
        ("real", (C128,), {}),
        ("convert_element_type", (I64,), {"new_dtype": "f64"}),
        ("constant", (), {"value": {"type": "f64[]", "data": [2.0]}}),
        ("mul", (F64, F64), {}),
    ),
    I64: (
        *((name, (I64, I64), {}) for name in ("add", "mul")),
        ("neg", (I64,), {}),
        ("convert_element_type", (F64,), {"new_dtype": "i64"}),
    ),
    C128: (
        *((name, (C128, C128), {}) for name in ("add", "mul")),
        *((name, (C128,), {}) for name in ("conj", "sin")),
        ("complex", (F64, F64), {}),
    ),
}
"""Of each type, operations that make such values: their operands' types and their attrs."""

numbers = st.integers(0, 30)
programs = st.lists(st.tuples(st.sampled_from([F64, F64, F64, I64, C128]), numbers, numbers, numbers), max_size=30)


@st.composite
def tangles(draw: Callable[..., object]) -> Document:
    """Documents of up to three graphs of scalars, floats, integers and complex ones, with small numbers of distinct values."""
    declared = {"x": F64, "n": I64, "z": C128, "y": F64}
    table, graphs, earlier, bindings = CaseTable(), [], [], []
    for g in range(draw(st.integers(1, 3))):
        inputs = {"x": F64, "n": I64, "z": C128} if g == 0 else {k: declared[k] for k in draw(st.sets(st.sampled_from("xnzy")))}
        if earlier and draw(st.booleans()):
            bound = draw(st.sampled_from(earlier))
            inputs[f"b{g}"] = bound.type
            bindings.append(Binding(Key(f"b{g}"), bound.sketch.number, bound.id))
        sketch = Sketch(inputs, cases=table, number=g)
        values = [*earlier, *sketch.inputs]
        for type_, choice, left, right in draw(programs):
            name, types, attrs = CHOICES[type_][choice % len(CHOICES[type_])]
            pools = [[v for v in values if v.type == t] for t in types]
            if all(pools):
                reads = [pool[-1 - k % len(pool)] for pool, k in zip(pools, (left, right), strict=False)]
                values.append(apply(sketch, name, reads, attrs))
        outputs = draw(st.lists(st.sampled_from(values[-6:]), min_size=1, max_size=4))
        graphs.append(sketch.build("fgh"[g], {f"{'uvw'[g]}{k}": value for k, value in enumerate(outputs)}))
        earlier = values
    return document(*graphs, bindings=tuple(bindings))


def apply(sketch: Sketch, name: str, reads: list[Value], attrs: dict[str, object]) -> Value:
    # A sketch that is asked to copes with constants, which have no operand.
    case = BUILTIN.case(name, BUILTIN.parse_attrs(name, attrs), None, [v.type for v in reads])
    made = sketch.builder.append(sketch.builder.cases.intern(case), [sketch.argument(v) for v in reads])
    return Value(sketch, made, case.results[0])


@settings(parent=law, max_examples=examples(400, check=37))
@given(tangles(), st.sets(st.sampled_from("xnz"), min_size=1), orders, sizes)
def test_both_ways_write_the_same_of_tangles(doc: Document, wrt: set[str], steps: str, sizes: dict[str, int]) -> None:
    derivatives(doc, [key(k) for k in sorted(wrt)], steps, **sizes)


@settings(parent=law, max_examples=examples(50))
@given(own_documents(), orders, sizes)
def test_both_ways_write_the_same_with_own_primitives(doc: Document, steps: str, sizes: dict[str, int]) -> None:
    derivatives(doc, [k for k, type_ in free_inputs(doc).items() if moves(type_)], steps, **sizes)


# Large graphs in fact take the way by columns.


def scalars(n: int, seed: int = 0, n_inputs: int = 4) -> Document:
    """A random graph of n scalars, in which a tenth of the nodes are dead and as many computed again."""
    rng = np.random.default_rng(seed)
    sketch = Sketch({f"x{k}": F64 for k in range(n_inputs)})
    values = list(sketch.inputs)
    for _ in range(n):
        left, right = (values[-1 - int(k)] for k in rng.integers(0, min(len(values), 12), 2))
        name = ("add", "mul", "sub", "sin", "tanh", "logistic")[rng.integers(6)]
        for _ in range(1 + (rng.random() < 0.1)):
            values.append(sketch.apply(name, *((left, right) if name in ("add", "mul", "sub") else (left,))))
    return document(sketch.build("f", {"y": values[-1], "z": values[-2]}))


@pytest.mark.check
def test_no_node_of_a_large_graph_is_stamped_by_itself() -> None:
    doc = scalars(2000)
    wrt = [i.key for i in doc.head.inputs]
    for steps in ("lt", "ltlt", "ll"):
        plain = bulk = doc
        for step in steps:
            with large_from(float("inf")):
                plain = linearize(plain, wrt) if step == "l" else transpose(plain)
            with large_from(1000), in_bulk_only():
                bulk = linearize(bulk, wrt) if step == "l" else transpose(bulk)
                single = materialize(bulk)
            assert written(bulk) == written(plain)
            with large_from(float("inf")):
                assert written(single) == written(materialize(plain))


def test_small_graphs_are_walked() -> None:
    with in_bulk_only(), pytest.raises(AssertionError, match="the plain way"):
        linearize(scalars(100), [key("x0")])


def test_a_graph_of_many_cases_is_walked() -> None:
    """Each slice is a case of its own, and the calls that a case takes would cost more than its node."""
    x = Sketch({"x": "f64[300]"})
    total = None
    for k in range(300):
        entry = x.apply("slice", x.inputs[0], start_indices=[k], limit_indices=[k + 1])
        total = entry if total is None else total + entry
    doc = document(x.build("f", {"y": total}))
    with patch.object(large, "NODES_WITH_NUMPY", 1), in_bulk_only(), pytest.raises(AssertionError, match="the plain way"):
        linearize(doc, [X])
    derivatives(doc, [X], "ltl")


@pytest.mark.parametrize("width", [9, 70, 400])
def test_operations_of_many_operands(width: int) -> None:
    """Masks of more than a byte, and hashes of more operands than are taken one after the other."""

    def body(x: Value, y: Value) -> dict[str, Value]:
        sketch, parts, made = x.sketch, [x, y], []
        for k in range(width):
            parts.append(parts[k] * parts[k + 1] if k % 3 else sketch.apply("stop_gradient", parts[k]))
        for shift in (0, 1, 0, 2, 0):
            made.append(sketch.apply("concatenate", *parts[shift : shift + width], dimension=0))
        return {f"z{k}": value for k, value in enumerate(made)}

    doc = function("f", {"x": "f64[2]", "y": "f64[2]"}, body)
    derivatives(doc, [X], "lt", few=2)
    derivatives(doc, [Y], "ltl")


def test_meta_of_nodes_is_kept() -> None:
    doc = scalars(200)
    graph = replace(doc.head, node_meta={k: {"number": k} for k in range(0, doc.head.n_nodes, 3)})
    made = both(lambda: materialize(replace(doc, graphs=(graph,))))
    assert isinstance(made, Document) and len(made.head.node_meta) > 20


def test_the_outputs_asked_for_say_what_is_needed() -> None:
    doc = scalars(300)
    for output in ("y", "z"):
        both(lambda o=output: materialize(doc, outputs=[key(o)]))  # type: ignore[misc]
        both(lambda o=output: linearize(doc, [key("x1"), key("x0")], outputs=[key(o)]))  # type: ignore[misc]


def test_tangents_of_chosen_types() -> None:
    doc = scalars(300)
    both(lambda: linearize(doc, [key("x0"), key("x1")], tangent_types={key("x0"): TensorType("f32")}))


# Errors are those of the plain way.


def with_op(name: str, arity: int, jvp: Callable[[JVP], list[Term | None]], **rules: object) -> Sketch:
    """A sketch of a graph of x, over the built-in primitives and one more."""
    more = primitive(name, arity, lambda attrs, types: types[:1], lambda *_: np.add, jvp=jvp, **rules)
    return Sketch({"x": F64}, primitives=replace(BUILTIN, primitives={**BUILTIN.primitives, name: more}))


@pytest.mark.parametrize(("name", "wrong"), [("frexp_like", "missing JVP rule"), ("untransposable", "missing transpose rule")])
def test_missing_rules_are_named_alike(name: str, wrong: str) -> None:
    def one_way(node: JVP) -> list[Term]:
        (t,) = node.tangents
        return [t.trace.emit(name, t)]

    sketch = with_op(name, 1, None if "frexp" in name else one_way)  # type: ignore[arg-type]
    value = sketch.inputs[0]
    for k in range(40):
        value = sketch.apply(name, value) if k == 20 else sketch.apply("sin", value)
    doc = document(sketch.build("f", {"y": value}))
    outcome = both(lambda: transpose(linearize(doc, [X])))
    assert isinstance(outcome, str) and wrong in outcome and "graph 'f" in outcome


def test_a_rule_that_gives_a_tangent_only_where_an_operand_has_none() -> None:
    """No rule should. Masks are corrected from many to few, so this is left to the plain way."""

    def jvp(node: JVP) -> list[Term | None]:
        a, b = node.tangents
        return [None if a and b else a or b]

    sketch = with_op("odd", 2, jvp)
    (x,) = sketch.inputs
    silent = sketch.apply("odd", x, x)
    doc = document(sketch.build("f", {"y": sketch.apply("sin", sketch.apply("odd", silent, x)), "z": silent}))
    derivatives(doc, [X], "l")
    with large_from(1), in_bulk_only(), pytest.raises(AssertionError, match="the plain way"):
        linearize(doc, [X])


def test_what_depends_on_zero_tangents_only() -> None:
    sketch = Sketch({"x": F64})
    (x,) = sketch.inputs
    steps = sketch.apply("sin", sketch.apply("sign", sketch.apply("exp", x)))
    doc = document(sketch.build("f", {"y": steps + x * steps, "z": steps}))
    derivatives(doc, [X], "ltlt")
    with large_from(1), in_bulk_only():
        assert [o.value is None for o in linearize(doc, [X]).head.outputs] == [False, True]


def test_what_gets_no_contribution_has_no_cotangent() -> None:
    def jvp(node: JVP) -> list[Term | None]:
        (t,) = node.tangents
        return [t and t.trace.emit("nothing", t)]

    sketch = with_op("nothing", 1, jvp, transpose=lambda node: [None])
    (x,) = sketch.inputs
    value = sketch.apply("nothing", sketch.apply("sin", sketch.apply("exp", x)))
    doc = document(sketch.build("f", {"y": value + x * x}))
    derivatives(doc, [X], "lt")
    forward = linearize(doc, [X])
    with large_from(1), in_bulk_only():
        back = transpose(forward)
    assert back.head.n_nodes == 3, "one product for each factor, and an add"


def test_a_head_that_is_not_linear_is_refused_alike() -> None:
    def head(mask: tuple[bool, ...]) -> Document:
        sketch = Sketch({"x@1": F64})
        value = sketch.inputs[0]
        for _ in range(10):
            value = sketch.apply("mul", value, value, mask=mask)
        return document(sketch.build("f@1", {"y@1": value}, linear=1))

    assert isinstance(both(lambda: transpose(head((True, False)))), str)


# Parts.


@law
@given(documents(makers=ANY), st.sampled_from([0, 2, 64]), seeds)
def test_what_outputs_depend_on(doc: Document, few: int, seed: int) -> None:
    with large_from(float("inf")):
        plain = link(doc)
        chosen = np.random.default_rng(seed).integers(0, plain.n_values, 3).tolist()
        expected = plain.depends_on(chosen)
    with large_from(0, few=few):
        bulk = link(doc)
        assert bulk.flow is not None
        assert bulk.depends_on(chosen) == expected
    assert (list(bulk.outside), list(bulk.args), bulk.source) == (list(plain.outside), list(plain.args), plain.source)


@law
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4))))
def test_spans(pieces: list[tuple[int, int]]) -> None:
    first = np.array([a for a, _ in pieces], np.int32)
    end = np.array([a + n for a, n in pieces], np.int32)
    assert dataflow.spans(first, end).tolist() == [k for a, n in pieces for k in range(a, a + n)]
    start = np.cumsum([0, *(n for _, n in pieces)]).astype(np.int32)
    assert dataflow.owners(start).tolist() == [v for v, (_, n) in enumerate(pieces) for _ in range(n)]


@law
@given(st.lists(st.integers(0, 20)), st.integers(1, 9), st.integers(1, 9))
def test_values_in_order(listed: list[int], parts: int, block: int) -> None:
    values = np.array(listed, np.int32)
    with patch.object(dataflow, "PARTS", parts), patch.object(dataflow, "BLOCK", block):
        places = np.concatenate(list(dataflow.in_order(values, 21)))
        assert dataflow.counts(values, 21).tolist() == np.bincount(values, minlength=21).tolist()
    assert places.tolist() == np.argsort(values, kind="stable").tolist()


def copies(depth: int) -> Document:
    """One chain, twice over."""
    builder = GraphBuilder(CaseTable(), [Input(X, F64)])
    codes = [builder.cases.intern(BUILTIN.case(o, BUILTIN.parse_attrs(o, {}), None, [F64])) for o in ("sin", "exp")]
    ends = []
    for _ in range(2):
        value = 0
        for k in range(depth):
            value = builder.append(codes[k % 2], [value])
        ends.append(value)
    return document(builder.build("f", [Output(key(f"y{k}"), end, F64) for k, end in enumerate(ends)]))


def test_equal_values_that_build_upon_equal_values() -> None:
    shallow, deep = copies(12), copies(300)
    with large_from(1), in_bulk_only():
        assert materialize(shallow).head.n_nodes == 12
    made = both(lambda: materialize(deep), few=2)
    assert isinstance(made, Document) and made.head.n_nodes == 300
    with large_from(1), in_bulk_only(), pytest.raises(AssertionError, match="the plain way"):
        materialize(deep)


def test_equal_values_that_nothing_reads() -> None:
    sketch = Sketch({"x": F64})
    two = {"value": {"type": "f64[]", "data": [2.0]}}
    ends = [sketch.apply("sin", sketch.inputs[0]), *(apply(sketch, "constant", [], two) for _ in range(3))]
    made = both(lambda: materialize(document(sketch.build("f", {f"y{k}": end for k, end in enumerate(ends)}))))
    assert isinstance(made, Document) and made.head.n_nodes == 2


@pytest.mark.parametrize("kept", [0, 3])
def test_no_hash_is_trusted(kept: int) -> None:
    """With hashes of two bits, or none at all, different nodes collide; then they are compared."""
    doc = scalars(400)
    exact = equal.hashes_of

    def poor(*args: object) -> object:
        hashes = exact(*args)  # type: ignore[arg-type]
        # Cut by places, the first hash keeps its upper bits.
        return hashes & np.uint64(kept << 62 | (kept if args[-1] == equal.SECOND else 0))

    def poor_first(*args: object) -> object:
        return poor(*args) if args[-1] == equal.FIRST else exact(*args)  # type: ignore[arg-type]

    for hashing in (poor, poor_first):
        with patch.object(equal, "hashes_of", hashing):
            assert isinstance(both(lambda: materialize(doc)), Document)


def test_a_listener_is_told() -> None:
    class Recorder:
        def __init__(self) -> None:
            self.stages: list[str] = []

        def begin(self, stage: str, total: int | None) -> None:
            self.stages.append(stage)

        def advance(self, n: int) -> None:
            self.stages.append(f"{n}")

    recorder, doc = Recorder(), scalars(300)
    with large_from(100), in_bulk_only(), listening(recorder):
        materialize(transpose(linearize(doc, [key("x0")])))
    assert [stage for stage in recorder.stages if not stage.isdigit()] == ["linearizing", "transposing", "materializing"]


def chain(n: int) -> Document:
    """A chain of n nodes that all read the input, too, or apply a function."""
    builder = GraphBuilder(CaseTable(), [Input(X, F64)])
    product, sine = (
        builder.cases.intern(BUILTIN.case(o, BUILTIN.parse_attrs(o, {}), None, [F64] * k)) for o, k in (("mul", 2), ("sin", 1))
    )
    value = 0
    for k in range(n):
        value = builder.append(product, [value, 0]) if k % 2 else builder.append(sine, [value])
    return document(builder.build("f", [Output(Y, value, F64)]))


@pytest.mark.campaign
@pytest.mark.parametrize("make", [chain, lambda n: scalars(n // 8)], ids=["chain", "dag"])
def test_twice_the_nodes_take_twice_the_time(make: Callable[[int], Document]) -> None:
    n = 160_000
    docs = {size: make(size) for size in (n, 2 * n)}

    def seconds(size: int) -> float:
        doc = docs[size]
        start = process_time()
        materialize(transpose(linearize(doc, [i.key for i in doc.head.inputs])))
        return process_time() - start

    seconds(n)  # imports
    taken = {size: min(seconds(size) for _ in range(4)) for size in docs}
    assert taken[2 * n] < 2.6 * taken[n]
