"""Programs: what runs, what does not, and how long values live."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from tests.runtime.graphs import Sketch
from tidu_cli.errors import TransformError
from tidu_cli.graph.keys import Key
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.families import primitive
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.plans.program import compile_graph, grouped_program, plain_program

X = Key("x")


def test_runs_a_graph_of_every_arity():
    s = Sketch(x="f64[2]", c="bool[]")
    two = s.apply("constant", value={"type": "f64[2]", "data": [2.0, 3.0]})
    y = s.apply("mul", 0, two)
    z = s.apply("neg", y)
    w = s.apply("select_n", 1, y, z)
    results = compile_graph(s.graph(y=y, w=w)).run({X: np.array([1.0, 4.0]), Key("c"): np.array(True)})
    assert [r.tolist() for r in results] == [[2, 12], [-2, -12]]


def test_roles_do_not_hide_that_nodes_are_equal():
    s = Sketch(x="f64[]", y="f64[]")
    plain = s.apply("mul", 0, 1)
    linear = s.apply("mul", 0, 1, mask=(True, False))
    again = s.apply("mul", 0, 1, mask=(False, True))
    total = s.apply("add", s.apply("add", plain, linear), s.apply("add", again, plain))
    other = s.apply("mul", 1, 0)
    program = compile_graph(s.graph(total=total, other=other))
    assert program.n_steps == 4  # one product, one sum of it with itself, their sum; and the product the other way round
    assert [float(r) for r in program.run({X: np.array(3.0), Key("y"): np.array(2.0)})] == [24, 6]


def test_only_what_the_outputs_need_is_run_and_asked_for():
    s = Sketch(x="f64[]", y="f64[]")
    a, b = s.apply("sin", 0), s.apply("cos", 1)
    s.apply("exp", b)
    graph = s.graph(a=a, b=b)
    assert compile_graph(graph).n_steps == 2
    program = compile_graph(graph, outputs=[1])
    assert (program.n_steps, [str(i.key) for i in program.inputs]) == (1, ["y"])
    assert program.run({Key("y"): np.array(0.0)}) == [1.0]
    assert [str(o.key) for o in compile_graph(graph, outputs=[1, 0]).outputs] == ["b", "a"]


def test_structural_zeros():
    s = Sketch(x="f64[]")
    program = compile_graph(s.graph(a="c64[2,3]", b="bool[]"))
    zeros, false = program.run({})
    assert (program.inputs, zeros.dtype, zeros.shape, zeros.any()) == ((), np.complex64, (2, 3), False)
    assert (false.dtype, false.shape) == (np.bool_, ())


def test_external_values_are_refused():
    s = Sketch(x="f64[]")
    s.builder.refer(0, 0)
    with pytest.raises(TransformError, match="materialize"):
        compile_graph(s.graph())


def test_results_share_no_memory_with_inputs_or_each_other():
    s = Sketch(x="f64[3]")
    view = s.apply("transpose", 0, permutation=[0])
    wide = s.apply("broadcast_in_dim", 0, shape=[2, 3], broadcast_dimensions=[1])
    made = s.apply("neg", 0)
    same = s.apply("stop_gradient", made)
    constant = s.apply("constant", value={"type": "f64[2]", "data": [2.0, 3.0]})
    program = compile_graph(s.graph(x=0, view=view, wide=wide, made=made, again=made, same=same, constant=constant))
    x = np.array([1.0, 2.0, 3.0])
    results = program.run({X: x})
    expected = [r.copy() for r in program.run({X: x})]
    for k, result in enumerate(results):
        assert result.flags.writeable
        result[...] = 100 + k
    assert x.tolist() == [1, 2, 3]
    assert all((r == 100 + k).all() for k, r in enumerate(results))
    assert all((a == b).all() for a, b in zip(expected, program.run({X: x}), strict=True))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "c64", "c128"])
def test_scalars_come_out_as_arrays_of_the_declared_dtype(dtype):
    s = Sketch(x=f"{dtype}[]")
    y = s.apply("integer_pow", s.apply("exp", s.apply("add", 0, 0)), y=2)
    graph = s.graph(y=y)
    dt = compile_graph(s.graph(z=f"{dtype}[]")).run({})[0].dtype
    (array,) = compile_graph(graph).run({X: np.zeros((), dt)})
    assert isinstance(array, np.ndarray) and array.shape == () and array.dtype == dt and complex(array) == 1


@pytest.mark.check
def test_long_chains_do_not_recurse():
    s = Sketch(x="f64[]")
    y = 0
    for k in range(10**5):
        y = s.apply("add" if k % 2 else "sub", y, 0) if k % 3 else s.apply("neg", y)
    program = compile_graph(s.graph(y=y))
    assert program.n_slots == 3
    expected = 0.5
    for k in range(10**5):
        expected = (expected + 0.5 if k % 2 else expected - 0.5) if k % 3 else -expected
    assert program.run({X: np.array(0.5)}) == [expected]


def counting(record):
    """A set of primitives whose kernels note how many of the arrays they made are alive when they are called."""
    alive = weakref.WeakSet()

    class Tracked(np.ndarray):
        __hash__ = object.__hash__

    def made(n):
        value = np.full(4, float(n)).view(Tracked)
        alive.add(value)
        return value

    def kernel(n_results):
        def call(*operands):
            record.append(len(alive))
            results = tuple(made(1) for _ in range(n_results))
            return results if n_results > 1 else results[0]

        return lambda np, attrs, operands, results: call

    return PrimitiveSet.of(
        [
            primitive("one", 1, lambda attrs, t: t, kernel(1)),
            primitive("two", 2, lambda attrs, t: t[:1], kernel(1)),
            primitive("three", 3, lambda attrs, t: t[:1], kernel(1)),
            primitive("pair", 1, lambda attrs, t: (t[0], t[0]), kernel(2)),
        ]
    )


def test_values_are_freed_after_their_last_use():
    record = []
    s = Sketch(counting(record), x="f64[4]")
    y = 0
    for _ in range(10):
        y = s.apply("one", y)
    z = s.apply("one", y)
    v = s.apply("two", y, z)  # both die here
    w = s.apply("two", v, v)
    u = s.apply("three", w, s.apply("one", w), s.apply("one", w))
    p = s.apply("pair", u)  # its second result is never read
    q = s.apply("one", p)
    r = s.apply("two", q, 0)
    program = compile_graph(s.graph(r=r), s.primitives)
    gc.disable()  # what is freed is freed at once, without the collector
    try:
        program.run({X: np.zeros(4)})
    finally:
        gc.enable()
    # y ten times, z; then v reads both, w reads v, the equal operands of u are one, and so on
    assert record == [0, *[1] * 10, 2, 1, 1, 2, 1, 1, 1]
    assert program.n_slots <= 6


def test_multi_result_values_reach_their_readers():
    halves = primitive("halves", 1, lambda a, t: (t[0], t[0]), lambda np, a, t, r: lambda x: (x / 2, x * 2))
    primitives = PrimitiveSet.of([*BUILTIN, halves])
    s = Sketch(primitives, x="f64[]")
    first = s.apply("halves", 0)
    again = s.apply("halves", 0, mask=(True,))
    total = s.apply("sub", first + 1, again)
    program = compile_graph(s.graph(total=total, low=first), primitives)
    assert program.n_steps == 2
    assert [float(r) for r in program.run({X: np.array(4.0)})] == [6, 2]


def test_what_depends_on_no_input_runs_once_and_stays_as_it_was() -> None:
    s = Sketch(x="f64[4]", t="f64[]")
    counted = s.apply("iota", dtype="f64", shape=(4,), dimension=0)
    c = s.apply("add", counted, counted)
    graph = s.graph(y=s.apply("add", 0, c), c=c, t=s.apply("sin", s.apply("sin", s.apply("sin", s.apply("sin", 1)))))
    plain, grouped = plain_program(graph), grouped_program(graph)
    assert grouped is not None
    assert sum(plain.constant) == 2
    for program in (plain, grouped):
        for _ in range(3):
            y, c, _ = program.run({X: np.ones(4), Key("t"): np.array(0.5)})
            assert y.tolist() == [1, 3, 5, 7]
            assert c.tolist() == [0, 2, 4, 6]
            c += 1  # the caller's own
            y += 1
