"""Graphs on the machine: many scalars, arrays by element, steps left to NumPy, and what is refused."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.generate import SHAPES
from tests.runtime.graphs import Sketch
from tests.runtime.native.agreement import assert_agrees, native
from tests.runtime.native.anything import any_graph
from tests.runtime.plans.test_plans import bits
from tests.tiers import examples
from tidu_cli.adapters.native.engine import program, refusal
from tidu_cli.errors import EvaluationError, LimitError
from tidu_cli.graph.keys import Key
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.plans.program import plain_program

X = Key("x")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_random_graphs_of_scalars(shape, seed):
    graph = SHAPES[shape](700, seed).head
    rng = np.random.default_rng(seed)
    inputs = {i.key: rng.uniform(-1, 1, ()) for i in graph.inputs}
    made = native(graph)
    assert not made.layout.escapes
    assert_agrees(graph, inputs, ulps=64, made=made)  # what functions round otherwise goes on through hundreds of nodes
    once, again = (made.run(inputs, once=once) for once in (False, True))
    assert once == again


BINARY = ("add", "sub", "mul", "max", "min")
UNARY = ("neg", "abs", "sign", "square", "floor", "ceil")


@settings(max_examples=examples(40))
@given(data=st.data(), dtype=st.sampled_from(["f64", "f32", "i32", "i8", "u64", "c128"]))
def test_random_graphs_round_as_the_plain_interpreter(data, dtype):
    """Of operations that round correctly the results are the same, bit for bit."""
    shape = data.draw(st.sampled_from(["", "3", "2,2"]))
    s = Sketch(x=f"{dtype}[{shape}]", y=f"{dtype}[{shape}]")
    exact = {"c128": (("add", "sub"), ("neg",))}.get(dtype) or (
        (BINARY, UNARY) if dtype[0] == "f" else (BINARY, UNARY[: 4 if dtype[0] == "i" else 1])
    )
    values = [0, 1]
    for _ in range(data.draw(st.integers(1, 12))):
        op = data.draw(st.sampled_from([*exact[0], *exact[1]]))
        n = 2 if op in BINARY else 1
        values.append(s.apply(op, *[data.draw(st.sampled_from(values)) for _ in range(n)]))
    graph = s.graph(**{f"y{k}": v for k, v in enumerate(values)})
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    sizes = tuple(map(int, shape.split(","))) if shape else ()
    low, held = 0 if dtype[0] == "u" else -5, numpy_dtype(np, dtype)
    inputs = {i.key: np.asarray(rng.uniform(low, 5, sizes)).astype(held) for i in graph.inputs}
    assert_agrees(graph, inputs, ulps=0)


def test_what_moves_elements_takes_no_instruction():
    s = Sketch(x="f64[2,3]", z="f64[]")
    y = s.apply("transpose", 0, permutation=[1, 0])
    y = s.apply("slice", y, start_indices=[1, 0], limit_indices=[3, 2], strides=[1, 1])
    y = s.apply("reshape", y, new_sizes=[4])
    y = s.apply("pad", s.apply("rev", y, dimensions=[0]), 1, padding_config=[[1, 0, 0]])
    y = s.apply("concatenate", y, y, dimension=0)
    graph = s.graph(y=y, z=s.apply("broadcast_in_dim", 1, shape=[2], broadcast_dimensions=[]))
    made = native(graph)
    assert len(made.code) == 1
    assert_agrees(graph, {X: np.arange(6.0).reshape(2, 3), Key("z"): np.array(9.0)}, ulps=0)


@pytest.mark.parametrize("dtype", ["f64", "f32", "i32", "c128", "bool"])
def test_results_that_are_inputs_or_constants_are_the_callers_own(dtype):
    s = Sketch(x=f"{dtype}[3]", z=f"{dtype}[]")
    constant = s.apply("constant", value={"type": "f64[2]", "data": [2.0, 3.0]})
    graph = s.graph(a=0, b=0, c=1, d=constant, e=constant, zero=f"{dtype}[2]")
    x = np.ones(3, {"f64": "f8", "f32": "f4", "i32": "i4", "c128": "c16", "bool": "?"}[dtype])
    inputs = {X: x, Key("z"): x[0]}
    assert_agrees(graph, inputs, ulps=0)
    made = native(graph)
    results = made.run(inputs)
    for array in results:
        array[...] = 0
    assert x.all()
    again = made.run(inputs)
    assert again[0].all() and again[1].all() and again[3].tolist() == [2, 3] == again[4].tolist()


def test_steps_without_an_opcode_are_numpys():
    s = Sketch(x="f64[]", h="f16[]", z="c128[]")
    y = s.apply("polygamma", s.apply("sin", 0), 0)
    h = s.apply("exp", 1)
    z = s.apply("exp", s.apply("mul", 2, 2))
    y = s.apply("mul", s.apply("add", s.apply("sub", y, 0), s.apply("cos", 0)), y)
    graph = s.graph(y=s.apply("mul", y, 0), h=s.apply("convert_element_type", h, new_dtype="f32"), z=s.apply("add", z, 2))
    made = native(graph)
    assert len(made.layout.escapes) >= 3
    assert_agrees(graph, {X: np.array(0.7), Key("h"): np.array(0.5, "f2"), Key("z"): np.array(0.3 + 2j)}, made=made)


def test_reductions_of_small_arrays():
    s = Sketch(x="f64[2,3,4]", n="i32[5]", b="bool[3]")
    outputs = {
        "sum": s.apply("reduce_sum", 0, axes=[0, 2]), "product": s.apply("reduce_prod", 0, axes=[1]),
        "most": s.apply("reduce_max", 0, axes=[0, 1, 2]), "least": s.apply("reduce_min", 0, axes=[2]),
        "n": s.apply("reduce_sum", 1, axes=[0]), "odd": s.apply("reduce_xor", 1, axes=[0]),
        "all": s.apply("reduce_and", 2, axes=[0]), "any": s.apply("reduce_or", 2, axes=[0]),
    }  # fmt: skip
    graph, rng = s.graph(**outputs), np.random.default_rng(0)
    inputs = {X: rng.normal(size=(2, 3, 4)), Key("n"): rng.integers(-9, 9, 5).astype("i4"), Key("b"): np.array([True, False, True])}
    made = native(graph)
    assert not made.layout.escapes
    assert_agrees(graph, inputs, ulps=16, made=made)


def test_graphs_of_arrays_are_refused_by_their_first_node_that_is():
    s = Sketch(x="f64[500,500]")
    y = s.apply("mul", s.apply("sin", 0), 0)
    graph = s.graph(y=s.apply("dot_general", y, y, dimension_numbers=[[[1], [0]], [[], []]]))
    told = refusal(graph, BUILTIN)
    assert told == (
        "graph 'f', node 0 (sin) has no native instruction, as most nodes of this graph: choose the engine numpy, or xla"
    )
    with pytest.raises(EvaluationError, match=r"the engine native cannot run it: graph 'f', node 0 \(sin\)"):
        program(graph, BUILTIN, None, None)


def test_other_devices_are_refused():
    s = Sketch(x="f64[]")
    with pytest.raises(EvaluationError, match="the engine native has no device 'gpu', only cpu"):
        program(s.graph(y=s.apply("sin", 0)), BUILTIN, None, "gpu")


def test_more_numbers_than_instructions_can_name_are_refused(monkeypatch):
    s = Sketch(x="f64[100]")
    graph = s.graph(y=s.apply("sin", 0))
    assert native(graph).layout.n_words == 201
    monkeypatch.setattr("tidu_cli.adapters.native.layout.MOST_WORDS", 200)
    for other in (graph, SHAPES["chain"](400).head):
        with pytest.raises(
            LimitError, match="the engine native has no room for this many numbers: choose the engine numpy, or xla"
        ):
            native(other)


def test_only_the_outputs_asked_for_are_computed():
    s = Sketch(x="f64[]", z="f64[]")
    graph = s.graph(a=s.apply("sin", 0), b=s.apply("cos", 1))
    made = program(graph, BUILTIN, [1], None)
    assert [str(i.key) for i in made.inputs] == ["z"]
    assert len(made.code) == 2 and made.run({Key("z"): np.array(0.0)}) == [1.0]


@settings(max_examples=examples(150))
@given(st.integers(0, 2**32 - 1))
def test_loops_and_branches_of_any_dtypes_give_the_same_bits(seed):
    graph, values = any_graph(Random(seed))
    if refusal(graph, BUILTIN) is None:
        assert bits(native(graph).run(values)) == bits(plain_program(graph).run(values))
