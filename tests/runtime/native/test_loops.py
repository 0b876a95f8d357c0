"""Loops and branches on the machine: jumps, what is carried, and slices of arrays."""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest
import scipy.special

import tidu_cli as tidu
from tests.runtime.native.agreement import assert_agrees, native

TYPES = {"float64": "f64", "int64": "i64", "int8": "i8", "int32": "i32", "complex128": "c128"}


def traced(function, *arguments):
    """The graph of a function of arguments like these."""
    return tidu.trace(function, *[f"{TYPES[a.dtype.name]}{list(a.shape)}".replace(" ", "") for a in arguments]).head


def checked(function, *arguments, ulps=4, own=True):
    """The program of a function, held to the plain interpreter at some arguments; `own`: all of it is the machine's."""
    given = [np.asarray(a) for a in arguments]
    graph = traced(function, *given)
    made = native(graph)
    assert (not made.layout.escapes) == own
    assert_agrees(graph, {i.key: a for i, a in zip(graph.inputs, given, strict=True)}, ulps, made)
    return made


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 7])
def test_a_scan_takes_and_gives_slices(length, reverse):
    def f(k, x, ys, zs):
        def step(carry, slices):
            (a, n), (y, z) = carry, slices
            return (np.sin(a) * y + k, n + 1), (a * z, n, z * 1j)

        return tidu.scan(step, (x, 3), (ys, zs), reverse=reverse)

    rng = np.random.default_rng(0)
    checked(f, 0.5, 0.7, rng.normal(size=length), rng.normal(size=(length, 2)), ulps=16)


def test_what_is_carried_may_change_places():
    def f(x, y, z):
        return tidu.fori_loop(0, 5, lambda k, c: (c[1], c[2], c[0] + c[1]), (x, y, z)), tidu.scan(
            lambda c, _: ((c[1], c[0]), c[0]), (x, y), None, length=3
        )

    checked(f, 1.5, 2.5, -3.0, ulps=0)


def test_complex_numbers_are_carried_and_stacked():
    def f(c, zs):
        return tidu.scan(lambda z, w: (z * w + c, z - w), c, zs)

    rng = np.random.default_rng(0)
    checked(f, 0.3 + 0.4j, rng.normal(size=5) + 1j * rng.normal(size=5), ulps=16)


def test_a_scan_of_what_is_not_side_by_side():
    def f(xs):
        return tidu.scan(lambda c, x: (c + x[0] * x[1], c), 0.0, np.flip(xs.T, 0))

    checked(f, np.arange(8.0).reshape(2, 4), ulps=0)


def test_a_while_loop_runs_as_long_as_it_should():
    def f(x):
        return tidu.while_loop(lambda c: (c[0] > 1) & (c[1] < 100), lambda c: (c[0] / 2, c[1] + 1), (x, 0))

    for x in (0.5, 1.0, 1e9, np.inf, np.nan):
        checked(f, x, ulps=0)


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 9])
def test_a_branch_is_taken_by_its_number(index):
    def f(k, x):
        return tidu.switch(k, [np.sin, np.cos, lambda x: x * 2], x), tidu.cond(x > k, lambda: x, lambda: -x)

    checked(f, np.int32(index), 0.7)


@pytest.mark.parametrize("index", [-128, 5, 127])
def test_branches_may_be_more_than_an_index_counts(index):
    checked(lambda k, x: tidu.switch(k, [lambda x, n=n: x * n for n in range(130)], x), np.int8(index), 0.7)


def test_loops_in_loops_begin_anew():
    def f(x, ys):
        def outer(carry, y):
            inner, seen = tidu.scan(lambda c, y: (c * y + carry, c), 1.0, ys)
            steps = tidu.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + c[0]), (0, 0))
            taken = tidu.cond(y > 0, lambda: inner, lambda: -inner)
            return carry * 0.5 + taken, (seen, steps[1])

        return tidu.scan(outer, x, ys)

    checked(f, 0.3, np.array([0.5, -0.7, 0.2]), ulps=64)


def test_a_loop_of_what_the_machine_lacks_leaves_its_steps_to_numpy():
    checked(lambda x: np.sin(tidu.fori_loop(0, 4, lambda k, c: scipy.special.polygamma(1, c) + 3, x)) * x, 2.5, own=False)


def test_gradients_of_loops():
    def f(x, ys):
        return tidu.scan(lambda c, y: (np.tanh(c * y), c), x, ys)[0]

    document = tidu.trace(f, "f64[]", "f64[50]")
    graph = tidu.grad(document, [i.key for i in document.head.inputs]).head
    rng = np.random.default_rng(0)
    inputs = {i.key: rng.uniform(0.5, 1.5, i.type.shape) for i in graph.inputs}
    made = native(graph)
    assert not made.layout.escapes
    assert_agrees(graph, inputs, ulps=256, made=made)


def test_gradients_of_long_loops_stack_what_they_read_in_words():
    n = 2**16 + 1
    document = tidu.trace(lambda x: tidu.scan(lambda c, _: (np.sin(c) + x, None), x, None, length=n)[0], "f64[]")
    graph = tidu.grad(document, [i.key for i in document.head.inputs]).head
    made = native(graph)
    assert not made.layout.escapes and made.layout.n_words > n
    assert_agrees(graph, {graph.inputs[0].key: np.array(0.7)}, ulps=16, made=made)


def test_more_turns_than_python_waits_for():
    made = checked(lambda n: tidu.while_loop(lambda k: k < n, lambda k: k + 1, 0), np.int64(10))
    assert made.run({made.inputs[0].key: np.array(2_500_000)})[0] == 2_500_000


def test_an_endless_loop_is_interrupted():
    endless = native(tidu.trace(lambda x: tidu.while_loop(lambda c: c == c, lambda c: c * 1.0, x), "f64[]").head)

    def interrupt():
        time.sleep(0.2)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        endless.run({endless.inputs[0].key: np.array(1.0)})
    thread.join()
