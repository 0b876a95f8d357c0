"""Cotangents of reads of few elements: the same sums as dense ones, in time and memory that grow with what is read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.graphs.interpret import evaluate, free_inputs, inner, random_value
from tests.graphs.sketch import Value, function, key, listing, names, op, type_of
from tests.graphs.strategies import seeds
from tests.graphs.templates import interpret
from tests.tiers import examples
from tidu_cli.checking.numeric.trials import example_cases
from tidu_cli.graph.graph import Case, CaseTable, Document
from tidu_cli.graph.keys import Key
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.recording import functions
from tidu_cli.rules.recording.functions import FEW, merging_template, positions_template, reads_few
from tidu_cli.rules.recording.templates import transpose_template
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.memory import evaluation
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.compose import detach
from tidu_cli.transforms.linking.resolve import resolve
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.matrix import matrix
from tidu_cli.transforms.transpose import transpose

X = key("x")
add, mul, sin, slice_, dynamic_slice, gather, reshape, reduce_sum = map(
    op, ("add", "mul", "sin", "slice", "dynamic_slice", "gather", "reshape", "reduce_sum")
)
law = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])


def ops(doc: Document, graph: int = -1) -> list[str]:
    return [doc.graphs[graph].case(n).op for n in range(doc.graphs[graph].n_nodes)]


def gradient(doc: Document, wrt: Key = X) -> Document:
    return transpose(linearize(doc, [wrt]))


def dense(make: Callable[[], Document]) -> Document:
    """What `make` gives where no read is of few elements."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(functions, "FEW", 10**9)
        return make()


def one_by_one(n: int, *, products: bool = False) -> Document:
    """sin x₀ + sin x₁ + …, each element read by a node of its own; if `products`, every other sum is a product."""

    def body(x: Value) -> Value:
        total = None
        for k in range(n):
            term = sin(slice_(x, start_indices=(k,), limit_indices=(k + 1,)))
            total = term if total is None else total * term if products and k % 2 else total + term
        return reshape(total, new_sizes=())

    return function("f", {"x": f"f64[{n}]"}, body)


SHAPES = ((40,), (12, 5), (3, 4, 5))
MODES = ("clip", "fill", "promise_in_bounds")


@st.composite
def reading(draw: Callable[..., object], dtype: str = "f64") -> Document:
    """A document whose output y sums up products of elements that are read from x and from x², at fixed and at computed places."""
    shape = draw(st.sampled_from(SHAPES))
    reads = draw(st.lists(st.sampled_from(["slice", "dynamic", "rows", "many", "dense", "square"]), min_size=1, max_size=9))
    axis = st.integers(0, len(shape) - 1)

    def body(x: Value, i: Value, rows: Value) -> Value:
        arrays, total = [x], None
        for kind in reads:
            a = draw(st.sampled_from(arrays))
            if kind == "slice":
                starts = tuple(draw(st.integers(0, n - 1)) for n in shape)
                limits = tuple(draw(st.integers(s + 1, min(s + 2, n))) for s, n in zip(starts, shape, strict=True))
                term = slice_(a, start_indices=starts, limit_indices=limits)
            elif kind == "dynamic":
                sizes = tuple(draw(st.integers(1, 2)) for _ in shape)
                term = dynamic_slice(a, *[i] * len(shape), slice_sizes=sizes)
            elif kind in ("rows", "many"):
                along = draw(axis)
                sizes = tuple(n if kind == "many" and k != along else 1 for k, n in enumerate(shape))
                numbers = {
                    "offset_dims": tuple(range(1, len(shape))),
                    "collapsed_slice_dims": (along,),
                    "start_index_map": (along,),
                }
                term = gather(
                    a, rows, dimension_numbers=numbers, slice_sizes=sizes, mode=draw(st.sampled_from(MODES)), fill_value=0
                )
            elif kind == "square":
                arrays.append(mul(a, a))
                continue
            else:
                term = a
            term = reduce_sum(sin(term) if draw(st.booleans()) else term, axes=tuple(range(term.type.rank)))
            total = term if total is None else add(mul(total, term), term) if draw(st.booleans()) else add(total, term)
        return total if total is not None else reduce_sum(arrays[-1], axes=tuple(range(len(shape))))

    text = ",".join(map(str, shape))
    return function("f", {"x": f"{dtype}[{text}]", "i": "i32[]", "rows": "i64[3,1]"}, body)


def inputs(doc: Document, seed: int) -> dict[Key, object]:
    """Random values; of indices also such as are out of range."""
    rng = np.random.default_rng(seed)
    values = {k: random_value(t, rng) for k, t in free_inputs(doc).items()}
    return values | {key("i"): np.int32(rng.integers(-3, 45)), key("rows"): rng.integers(-3, 45, (3, 1))}


@law
@given(reading(), seeds)
def test_the_sums_are_those_of_dense_cotangents(doc: Document, seed: int) -> None:
    """Digit for digit, unless one node reads an element twice: then what it contributes is not summed up by itself first."""
    sparse, expected = gradient(doc), dense(lambda: gradient(doc))
    at = inputs(sparse, seed)
    a, b = (next(iter(evaluate(d, at).values())) for d in (sparse, expected))
    assert np.all(np.abs(a - b) <= 1e-13 * np.max(np.abs(b)))
    at[key("rows")] = np.random.default_rng(seed).permutation(3)[:, None]
    a, b = (next(iter(evaluate(d, at).values())) for d in (sparse, expected))
    assert np.array_equal(a, b)


@settings(law, max_examples=examples(60, check=25))
@given(st.one_of(reading(), reading(dtype="c128")), seeds)
def test_transpose_is_the_adjoint_at_every_order(doc: Document, seed: int) -> None:
    forward = linearize(doc, [X])
    for linear in (forward, linearize(transpose(forward), [X])):  # and of forward over reverse: reverse over reverse
        back = transpose(linear)
        at = inputs(linear, seed) | inputs(back, seed + 1)
        at = {k: v for k, v in at.items() if k not in (key("i"), key("rows"))} | {
            key("i"): inputs(doc, seed)[key("i")],
            key("rows"): inputs(doc, seed)[key("rows")],
        }
        out, pulled = evaluate(linear, at), evaluate(back, at)
        left = sum(inner(at[o.dual()], v) for o, v in out.items() if o.dual() in at)
        right = sum(inner(at[i.key], pulled[i.key.dual()]) for i in linear.head.inputs)
        scale = 1 + sum(float(np.sum(np.abs(v))) for v in (*out.values(), *pulled.values()))
        assert abs(left - right) <= 1e-9 * scale


@law
@given(reading(), seeds)
def test_forward_over_reverse_is_that_of_dense_cotangents(doc: Document, seed: int) -> None:
    second = linearize(gradient(doc), [X])
    expected = linearize(dense(lambda: gradient(doc)), [X])
    at = inputs(second, seed)
    a, b = evaluate(materialize(second), at), evaluate(expected, at)
    for k in a:
        assert np.allclose(a[k], b[k], rtol=1e-13, atol=1e-13)


def test_the_hessian_by_a_batch_of_reads() -> None:
    doc = matrix(linearize(gradient(one_by_one(20)), [X]))
    at = {X: np.linspace(0.1, 2, 20), key("y@-1"): np.float64(1)}
    (hessian,) = evaluate(materialize(doc), at).values()
    assert np.allclose(hessian, -np.diag(np.sin(at[X])), rtol=0, atol=1e-15)


READERS = [
    pytest.param(case, id=f"{primitive.name} {number}")
    for primitive in BUILTIN
    if primitive.rules.reads is not None
    for number, (_, case) in enumerate(example_cases(BUILTIN, primitive))
    if case.results[0].inexact and case.results[0].dtype in ("f64", "c64")
]


@pytest.mark.parametrize("case", READERS)
def test_positions_and_values_are_what_the_transpose_rule_makes_dense(case: Case) -> None:
    cases, rng = CaseTable(), np.random.default_rng(0)
    mask = (True, *(False for _ in case.operands[1:]))
    code = cases.intern(Case(case.op, case.attrs, mask, case.operands, case.results))
    for _ in range(5):
        given = [rng.integers(-2, 9, t.shape).astype(t.dtype.replace("i", "int")) for t in case.operands[1:]]
        ct = random_value(case.results[0], rng)
        (positions,) = interpret(positions_template(BUILTIN, cases, code), cases, [None, *given])
        assert positions.dtype == np.int64 and positions.shape == (ct.size,)
        (expected,) = interpret(transpose_template(BUILTIN, cases, code, (True,)), cases, [None, *given, ct])[:1]
        type_ = case.operands[0]
        for onto in (False, True):
            template = merging_template(BUILTIN, cases, type_, (case.results[0],) * 2, onto=onto)
            base = random_value(type_, rng)
            (total,) = interpret(template, cases, [*([base] if onto else []), ct, ct, positions, positions])
            assert np.allclose(total, expected + expected + (base if onto else 0), rtol=1e-6)


def test_a_single_read_has_the_dense_form() -> None:
    assert FEW == 8
    read = function("f", {"x": "f64[9]"}, lambda x: slice_(x, start_indices=(2,), limit_indices=(3,)))
    assert listing(gradient(read).head) == ["pad(0, [1,0]) TF"]


def test_reads_of_much_of_an_array_have_the_dense_form() -> None:
    def differences(x: Value) -> Value:
        return slice_(x, start_indices=(1,), limit_indices=(100,)) - slice_(x, start_indices=(0,), limit_indices=(99,))

    assert ops(gradient(function("f", {"x": "f64[100]"}, differences))) == ["neg", "pad", "pad", "add"]
    assert "pad" in ops(gradient(one_by_one(8))) and "scatter-add" not in ops(gradient(one_by_one(8)))
    assert "pad" not in ops(gradient(one_by_one(9))) and ops(gradient(one_by_one(9))).count("scatter-add") == 1


def test_what_waits_is_added_before_a_dense_contribution() -> None:
    def body(x: Value) -> dict[str, Value]:
        a, b = (slice_(x, start_indices=(k,), limit_indices=(k + 1,)) for k in (3, 4))
        y = sin(x)
        c, d = (slice_(x, start_indices=(k,), limit_indices=(k + 1,)) for k in (3, 3))
        return {"a": a, "b": b, "y": y, "c": c, "d": d}

    made = ops(gradient(function("f", {"x": "f64[10]"}, body)))
    assert made == ["mul", "concatenate", "scatter-add", "add", "concatenate", "scatter-add"]


def test_as_many_elements_as_the_array_has_are_added_at_once() -> None:
    """Waiting without end would keep all cotangents alive: 50 reads of each of 10 elements are ten sums of 50."""

    def body(x: Value) -> Value:
        parts = [slice_(x, start_indices=(k % 10,), limit_indices=(k % 10 + 1,)) for k in range(500)]
        total = parts[0]
        for part in parts[1:]:
            total = mul(total, part)
        return total

    doc = gradient(function("f", {"x": "f64[10]"}, body))
    assert ops(doc).count("scatter-add") == 50
    x = np.linspace(0.9, 1.1, 10)
    (cotangent,) = evaluate(doc, {X: x, key("y@-1"): np.ones(1)}).values()
    assert np.allclose(cotangent, np.prod(x**50) * 50 / x, rtol=1e-12)


def test_windows_out_of_range_contribute_nothing_in_mode_fill() -> None:
    numbers = {"offset_dims": (), "collapsed_slice_dims": (0,), "start_index_map": (0,)}

    def body(x: Value, i: Value) -> dict[str, Value]:
        def read(mode: str) -> Value:
            fill = 0 if mode == "fill" else None
            return gather(x, i, dimension_numbers=numbers, slice_sizes=(1,), mode=mode, fill_value=fill)

        return {"u": read("fill"), "v": read("clip")}

    doc = gradient(function("f", {"x": "f64[30]", "i": "i32[2,1]"}, body))
    assert names(doc) == ["f", "f@-1.residual", "f@-1"] and "pad" not in ops(doc)
    at = {key("i"): np.array([[5], [40]]), key("u@-1"): np.array([1.0, 2.0]), key("v@-1"): np.array([10.0, 20.0])}
    (cotangent,) = evaluate(doc, at).values()
    assert cotangent.tolist() == [0.0] * 5 + [11.0] + [0.0] * 23 + [20.0]


def growth(make: Callable[[int], Document]) -> list[tuple[int, int, int]]:
    """Nodes, flops and peak of evaluating, for 250, 500 and 1000 elements."""
    costs = []
    for n in (250, 500, 1000):
        cost = evaluation(materialize(make(n)))
        assert cost.peak is not None
        costs.append((cost.nodes, cost.flops.known, cost.peak))
    return costs


ORDERS = {
    "reverse": gradient,
    "forward over reverse": lambda d: linearize(gradient(d), [X]),
    "reverse over reverse": lambda d: transpose(linearize(gradient(d), [X])),
    "third order": lambda d: linearize(transpose(linearize(gradient(d), [X])), [X]),
}


@pytest.mark.check
@pytest.mark.parametrize("order", ORDERS)
def test_reading_n_elements_one_by_one_takes_a_constant_each_at_every_order(order: str) -> None:
    small, middle, large = growth(lambda n: ORDERS[order](one_by_one(n, products=True)))
    for a, b, c in zip(small, middle, large, strict=True):
        assert c - b == 2 * (b - a), (small, middle, large)


@pytest.mark.check
def test_dense_cotangents_would_grow_with_the_square() -> None:
    """The growth test can fail."""
    small, _, large = growth(lambda n: dense(lambda: gradient(one_by_one(n))))
    assert large[1] > 12 * small[1]


def test_detached_linear_graphs_are_transposed_alike() -> None:
    def body(x: Value, i: Value) -> Value:
        parts = [dynamic_slice(mul(x, x), i, slice_sizes=(1,)), slice_(x, start_indices=(7,), limit_indices=(8,))]
        return mul(mul(*parts), dynamic_slice(x, i, slice_sizes=(1,)))

    f = function("f", {"x": "f64[30]", "i": "i32[]"}, body)
    forward = linearize(f, [X])
    whole, loose = transpose(forward), transpose(detach(forward, 1))
    assert "scatter-add" in ops(whole) and "scatter-add" in ops(loose)
    at = {X: np.linspace(-1, 1, 30), key("i"): np.int32(4), key("y@-1"): np.array([2.0])}
    (a,), (b,) = evaluate(resolve([f, loose]), at).values(), evaluate(whole, at).values()
    assert np.array_equal(a, b) and np.count_nonzero(a) == 2


def test_indices_of_unknown_type_leave_cotangents_dense() -> None:
    """Which then fails as it did: the rule needs their type, and says so."""
    operand, scalar = type_of("f64[30]"), type_of("f64[1]")
    attrs = BUILTIN.parse_attrs("dynamic_slice", {"slice_sizes": [1]})
    assert reads_few(BUILTIN, Case("dynamic_slice", attrs, (True, False), (operand, type_of("i32[]")), (scalar,)))
    assert not reads_few(BUILTIN, Case("dynamic_slice", attrs, (True, False), (operand, None), (scalar,)))


def test_a_set_without_the_primitives_of_merging_keeps_to_dense_cotangents() -> None:
    small = PrimitiveSet({name: p for name, p in BUILTIN.primitives.items() if name != "iota"})
    doc = transpose(linearize(one_by_one(20), [X], primitives=small), primitives=small)
    assert ops(doc).count("pad") == 20


def test_reading_a_matrix_row_by_row_takes_a_constant_for_each_element() -> None:
    def make(n: int) -> Document:
        def body(x: Value, i: Value) -> Value:
            total = None
            for _ in range(n):
                row = sin(dynamic_slice(x, i, mul(i, i), slice_sizes=(1, 4)))
                total = row if total is None else total + row
                i = i + 1
            return total

        return gradient(function("f", {"x": f"f64[{n},4]", "i": "i64[]"}, body))

    small, middle, large = growth(make)
    for a, b, c in zip(small, middle, large, strict=True):
        assert c - b == 2 * (b - a)
    assert ops(make(20)).count("scatter-add") == 1
