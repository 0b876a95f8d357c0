"""Results in the memory of operands that nothing else sees: the same bits, and nobody's array is overwritten."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.graphs.interpret import evaluate, random_value
from tests.graphs.sketch import Value, function, key, op
from tests.graphs.strategies import seeds
from tests.tiers import examples
from tests.transforms.large.test_sparse import inputs as reading_inputs
from tests.transforms.large.test_sparse import one_by_one, reading
from tidu_cli.checking.numeric.trials import example_cases
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.graph.types import RecordType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.plans.interpreter import Program
from tidu_cli.runtime.plans.program import compile_graph
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

X, INDICES, U = key("x"), key("i"), key("u")
law = settings(max_examples=examples(250, check=60), suppress_health_check=[HealthCheck.too_slow])
add, mul, neg, reshape = map(op, ("add", "mul", "neg", "reshape"))
NUMBERS = {"update_window_dims": (), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)}
GATHERED = {"offset_dims": (), "collapsed_slice_dims": (0,), "start_index_map": (0,)}
SIZE = 6


KINDS = ("add", "add", "mul", "scatter", "scatter", "onto itself", "update", "neg", "view", "view", "rev", "same", "pad")


def made_of(draw: object, x: Value, y: Value, i: Value, j: Value) -> dict[str, Value]:
    """Many arrays of one type, made by operations that reuse memory, that make views, and that keep arrays."""
    scalar = x.sketch.full(2, replace(x.type, shape=()))
    pool = [x, y, x.sketch.full(3, x.type)]
    rows = reshape(i, new_sizes=(3, 1))
    index = reshape(x.sketch.apply("slice", i, start_indices=(0,), limit_indices=(1,)), new_sizes=())
    places = reshape(j, new_sizes=(SIZE, 1))
    for _ in range(draw(st.integers(1, 20))):
        kind = draw(st.sampled_from(KINDS))
        a, b = draw(st.sampled_from(pool[-3:])), draw(st.sampled_from(pool[-5:]))
        short = x.sketch.apply("gather", b, rows, dimension_numbers=GATHERED, slice_sizes=(1,), mode="clip")
        if kind in ("add", "mul"):
            made = x.sketch.apply(kind, *draw(st.permutations([a, b])))
        elif kind == "scatter":
            name = draw(st.sampled_from(["scatter-add", "scatter-sub", "scatter", "scatter-mul"]))
            made = x.sketch.apply(name, a, rows, short, dimension_numbers=NUMBERS, mode=draw(st.sampled_from(["clip", "fill"])))
        elif kind == "onto itself":
            made = x.sketch.apply("scatter-add", a, places, a, dimension_numbers=NUMBERS, mode="clip")
        elif kind == "update":
            made = x.sketch.apply("dynamic_update_slice", a, short, index)
        elif kind == "view":
            made = reshape(reshape(a, new_sizes=(2, SIZE // 2)), new_sizes=(SIZE,))
        elif kind == "rev":
            made = x.sketch.apply("rev", a, dimensions=(0,))
        elif kind == "same":
            made = x.sketch.apply("stop_gradient", a)
        elif kind == "pad":
            made = x.sketch.apply("pad", short, scalar, padding_config=((1, 2, 0),))
        else:
            made = neg(a)
        pool.append(made)
    chosen = draw(st.lists(st.sampled_from(pool), max_size=2))
    return {f"u{k}": value for k, value in enumerate([pool[-1], pool[-2], *chosen])}


@st.composite
def graphs(draw: object) -> Document:
    dtype = draw(st.sampled_from(["f64", "f32", "f16", "c128", "i32"]))
    types = {"x": f"{dtype}[{SIZE}]", "y": f"{dtype}[{SIZE}]", "i": "i64[3]", "j": "i64[6]"}
    return function("f", types, lambda *values: made_of(draw, *values))


def reusing_steps(program: Program) -> int:
    return sum(number < 0 for number in program.kernel)


@law
@given(graphs(), seeds)
def test_the_bits_are_those_of_the_plain_interpreter_and_inputs_stay(doc: Document, seed: int) -> None:
    rng = np.random.default_rng(seed)
    at = {i.key: random_value(i.type, rng) for i in doc.head.inputs} | {
        INDICES: rng.integers(-2, 8, 3),
        key("j"): rng.integers(-2, 8, 6),
    }
    before = {k: np.copy(v) for k, v in at.items()}
    with np.errstate(all="ignore"):
        expected = list(evaluate(doc, at).values())
    program = compile_graph(doc.head)
    at = {i.key: at[i.key] for i in program.inputs}
    for _ in range(2):  # constants are kept from run to run
        results = program.run(at)
        assert [f.tobytes() for f in results] == [np.asarray(e).tobytes() for e in expected]
    assert all(at[k].tobytes() == before[k].tobytes() for k in at)


@law
@given(reading(), seeds)
def test_gradients_have_the_bits_of_the_plain_interpreter(doc: Document, seed: int) -> None:
    back = materialize(transpose(linearize(doc, [X])))
    at = reading_inputs(back, seed)
    expected = list(evaluate(back, at).values())
    program = compile_graph(back.head)
    results = program.run({i.key: np.asarray(at[i.key]) for i in program.inputs})
    assert [f.tobytes() for f in results] == [np.asarray(e).tobytes() for e in expected]


def chain(n: int, name: str = "scatter-add") -> Graph:
    def body(x: Value, i: Value, u: Value) -> Value:
        total = mul(x, x)
        for _ in range(n):
            attrs = {"dimension_numbers": NUMBERS, "mode": "fill"} if name.startswith("scatter") else {}
            total = x.sketch.apply(name, total, i, u, **attrs) if attrs else x.sketch.apply(name, total, u)
        return total

    shape = "[2]" if name.startswith("scatter") else "[1000]"
    return function("f", {"x": "f64[1000]", "i": "i64[2,1]", "u": f"f64{shape}"}, body).head


@pytest.mark.parametrize("name", ["scatter-add", "add"])
def test_a_chain_accumulates_in_one_buffer(name: str) -> None:
    program = compile_graph(chain(10, name))
    assert reusing_steps(program) == 10
    made = []
    for number, kernel in program.kernels.items():
        if number < 0:
            program.kernels[number] = lambda *operands, kernel=kernel: made.append(kernel(*operands)) or made[-1]
    at = {X: np.ones(1000), INDICES: np.array([[1], [1]]), U: np.ones(2)}
    if name == "add":
        at = {X: np.ones(1000), U: np.ones(1000)}
    (array,) = program.run(at)
    assert len(made) == 10 and all(m is made[0] for m in made)
    assert array.tolist() == ([1.0, 21.0, *[1.0] * 998] if name == "scatter-add" else [11.0] * 1000)


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_one_complex_number_has_the_bits_of_many(dtype: str) -> None:
    """NumPy rounds a product otherwise that is alone and goes into the memory of a factor."""

    def body(x: Value) -> Value:
        for _ in range(3):
            x = mul(neg(x), x)
        return x

    one, many = (compile_graph(function("f", {"x": f"{dtype}[{n}]"}, body).head) for n in (1, 200))
    assert reusing_steps(many) > 0
    parts = np.random.default_rng(0).uniform(-1, 1, (2, 200))
    x = (parts[0] + 1j * parts[1]).astype("c8" if dtype == "c64" else "c16")
    (expected,) = many.run({X: x})
    singles = [one.run({X: x[k : k + 1]})[0] for k in range(200)]
    assert np.concatenate(singles).tobytes() == expected.tobytes()


def test_what_others_see_is_not_overwritten() -> None:
    """An input, a constant, a value that is read again, a view of it, an output."""

    def steps(body: object) -> int:
        return reusing_steps(compile_graph(function("f", {"x": "f64[4]"}, body).head))

    def constant(x: Value) -> Value:
        return x.sketch.apply("constant", value={"type": "f64[4]", "data": [1.0, 2.0, 3.0, 4.0]})

    assert steps(lambda x: add(x, x)) == 0
    assert steps(lambda x: add(p := mul(x, x), p)) == 0
    assert steps(lambda x: add(x, neg(x))) == 1  # the second operand's
    assert steps(lambda x: add(constant(x), x)) == 0
    assert steps(lambda x: add(mul(x, x), x)) == 1
    assert steps(lambda x: {"s": add(p := mul(x, x), x), "p": p}) == 0

    def read_again(x: Value) -> Value:
        p = mul(x, x)
        return mul(add(p, x), p)

    def seen_through_a_view(x: Value) -> Value:
        p = mul(x, x)
        view = reshape(p, new_sizes=(2, 2))
        return mul(add(p, x), reshape(view, new_sizes=(4,)))

    assert steps(read_again) == 1  # the sum's, in the end
    assert steps(seen_through_a_view) == 1
    x = np.arange(4.0)
    (array,) = compile_graph(function("f", {"x": "f64[4]"}, seen_through_a_view).head).run({X: x})
    assert array.tolist() == ((x * x + x) * x * x).tolist()


FRESH = [
    pytest.param(primitive.name, id=primitive.name)
    for primitive in BUILTIN
    if primitive.evaluation.fresh or primitive.evaluation.reusing is not None
]


@pytest.mark.parametrize("name", FRESH)
def test_fresh_results_share_no_memory_and_reusing_kernels_give_the_same_bits(name: str) -> None:
    primitive, rng = BUILTIN[name], np.random.default_rng(0)
    for _, case in example_cases(BUILTIN, primitive):
        if any(isinstance(t, RecordType) for t in (*case.operands, *case.results)) or not case.results[0].rank:
            continue
        for _ in range(3):
            operands = [random_value(t, rng) for t in case.operands]
            before = [np.copy(x) for x in operands]
            run = primitive.evaluation.kernel(np, case.attrs, case.operands, case.results)
            with np.errstate(all="ignore"):
                result, again = run(*operands), run(*operands)
                assert not any(np.shares_memory(result, x) for x in operands) and not np.shares_memory(result, again)
                assert result.flags.writeable
                assert all(a.tobytes() == b.tobytes() for a, b in zip(operands, before, strict=True))
                if primitive.evaluation.reusing is not None:
                    reused = primitive.evaluation.reusing(np, case.attrs, case.operands, case.results)(*operands)
                    assert np.asarray(reused).tobytes() == np.asarray(again).tobytes()


def test_operands_in_another_layout_are_reused_rightly() -> None:
    """A sum of transposed arrays has their layout, which scatter cannot write to as rows."""

    def body(x: Value, i: Value, u: Value) -> Value:
        turned = x.sketch.apply("transpose", x, permutation=(1, 0))
        numbers = {"update_window_dims": (1,), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)}
        total = mul(turned, turned)
        return x.sketch.apply("scatter-add", add(total, turned), i, u, dimension_numbers=numbers, mode="fill")

    doc = function("f", {"x": "f64[3,4]", "i": "i64[2,1]", "u": "f64[2,3]"}, body)
    rng = np.random.default_rng(0)
    at = {X: rng.normal(size=(3, 4)), INDICES: np.array([[1], [1]]), U: rng.normal(size=(2, 3))}
    program = compile_graph(doc.head)
    assert reusing_steps(program) == 2
    assert program.run(at)[0].tobytes() == next(iter(evaluate(doc, at).values())).tobytes()


def test_the_gradient_of_reads_one_by_one_has_one_scatter() -> None:
    back = materialize(transpose(linearize(one_by_one(100), [X])))
    ops = [back.head.case(n).op for n in range(back.head.n_nodes)]
    assert ops.count("scatter-add") == 1 and "pad" not in ops


@pytest.mark.parametrize("name", ["add", "mul"])
@pytest.mark.parametrize("dying", [0, 1])
def test_a_result_in_the_memory_of_an_operand_has_the_layout_of_a_new_one(name: str, dying: int) -> None:
    """Sums are rounded by the order of memory: of a transposed operand and one that is not, a new result is not."""

    def body(x: Value) -> Value:
        turned = x.sketch.apply("transpose", x, permutation=(1, 0))
        operands = (mul(turned, turned), x)
        return x.sketch.apply("reduce_sum", x.sketch.apply(name, *(operands if dying == 0 else operands[::-1])), axes=(0, 1))

    doc = function("f", {"x": "f64[33,33]"}, body)
    x = np.random.default_rng(0).normal(size=(33, 33))
    program = compile_graph(doc.head)
    assert reusing_steps(program) == 1
    assert program.run({X: x})[0].tobytes() == next(iter(evaluate(doc, {X: x}).values())).tobytes()
