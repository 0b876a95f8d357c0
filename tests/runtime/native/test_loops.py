"""Loops and branches on the machine: jumps, what is carried, and slices of arrays."""

from __future__ import annotations

import signal
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tidu_cli as tidu
from tests.runtime.native.agreement import assert_agrees, native


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def shape(dtype, *sizes):
    return jax.ShapeDtypeStruct(sizes, dtype)


def checked(function, *arguments, ulps=4, own=True):
    """The program of a function, held to the plain interpreter at some arguments; `own`: all of it is the machine's."""
    given = [np.asarray(a) for a in arguments]
    graph = tidu.from_jax(function, *[shape(a.dtype, *a.shape) for a in given]).head
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
            return (jnp.sin(a) * y + k, n + 1), (a * z, n, z * 1j)

        return jax.lax.scan(step, (x, 3), (ys, zs), reverse=reverse)

    rng = np.random.default_rng(0)
    checked(f, 0.5, 0.7, rng.normal(size=length), rng.normal(size=(length, 2)), ulps=16)


def test_what_is_carried_may_change_places():
    def f(x, y, z):
        return jax.lax.fori_loop(0, 5, lambda k, c: (c[1], c[2], c[0] + c[1]), (x, y, z)), jax.lax.scan(
            lambda c, _: ((c[1], c[0]), c[0]), (x, y), None, length=3
        )

    checked(f, 1.5, 2.5, -3.0, ulps=0)


def test_complex_numbers_are_carried_and_stacked():
    def f(c, zs):
        return jax.lax.scan(lambda z, w: (z * w + c, z - w), c, zs)

    rng = np.random.default_rng(0)
    checked(f, 0.3 + 0.4j, rng.normal(size=5) + 1j * rng.normal(size=5), ulps=16)


def test_a_scan_of_what_is_not_side_by_side():
    def f(xs):
        return jax.lax.scan(lambda c, x: (c + x[0] * x[1], c), 0.0, jnp.flip(xs.T, 0))

    checked(f, np.arange(8.0).reshape(2, 4), ulps=0)


def test_a_while_loop_runs_as_long_as_it_should():
    def f(x):
        return jax.lax.while_loop(lambda c: (c[0] > 1) & (c[1] < 100), lambda c: (c[0] / 2, c[1] + 1), (x, 0))

    for x in (0.5, 1.0, 1e9, np.inf, np.nan):
        checked(f, x, ulps=0)


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 9])
def test_a_branch_is_taken_by_its_number(index):
    def f(k, x):
        return jax.lax.switch(k, [jnp.sin, jnp.cos, lambda x: x * 2], x), jax.lax.cond(x > k, lambda: x, lambda: -x)

    checked(f, np.int32(index), 0.7)


def test_loops_in_loops_begin_anew():
    def f(x, ys):
        def outer(carry, y):
            inner, seen = jax.lax.scan(lambda c, y: (c * y + carry, c), 1.0, ys)
            steps = jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + c[0]), (0, 0))
            taken = jax.lax.cond(y > 0, lambda: inner, lambda: -inner)
            return carry * 0.5 + taken, (seen, steps[1])

        return jax.lax.scan(outer, x, ys)

    checked(f, 0.3, np.array([0.5, -0.7, 0.2]), ulps=64)


def test_a_loop_of_what_the_machine_lacks_leaves_its_steps_to_numpy():
    checked(lambda x: jax.lax.fori_loop(0, 4, lambda k, c: jax.scipy.special.polygamma(1, c) + 3, x), 2.5, own=False)


def test_gradients_of_loops():
    def f(x, ys):
        return jax.lax.scan(lambda c, y: (jnp.tanh(c * y), c), x, ys)[0]

    document = tidu.from_jax(f, shape("f8"), shape("f8", 50))
    graph = tidu.grad(document, [i.key for i in document.head.inputs]).head
    rng = np.random.default_rng(0)
    inputs = {i.key: rng.uniform(0.5, 1.5, i.type.shape) for i in graph.inputs}
    made = native(graph)
    assert not made.layout.escapes
    assert_agrees(graph, inputs, ulps=256, made=made)


def test_more_turns_than_python_waits_for():
    made = checked(lambda n: jax.lax.while_loop(lambda k: k < n, lambda k: k + 1, 0), np.int64(10))
    assert made.run({made.inputs[0].key: np.array(2_500_000)})[0] == 2_500_000


def test_an_endless_loop_is_interrupted():
    endless = native(tidu.from_jax(lambda x: jax.lax.while_loop(lambda c: c == c, lambda c: c * 1.0, x), shape("f8")).head)

    def interrupt():
        time.sleep(0.2)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        endless.run({endless.inputs[0].key: np.array(1.0)})
    thread.join()
