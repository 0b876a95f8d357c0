"""What users write with arrays of their own: each function gives what it gives in NumPy, or says what to write instead."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
from collections import deque, namedtuple
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import pytest
from numpy import r_, zeros

import tidu_cli as tidu
from tidu_cli.adapters.numpy.tracing import trace

X = np.array([1.25, 2.0, 3.5])
TABLE = np.arange(12.0).reshape(3, 4)
ROOM = np.zeros(3)
Pair = namedtuple("Pair", "a b")


@dataclasses.dataclass
class State:
    position: Any = dataclasses.field(default_factory=lambda: np.zeros(3))
    velocity: Any = dataclasses.field(default_factory=lambda: np.ones(3))


class Model:
    def __init__(self):
        self.room, self.history = np.zeros((3, 3)), []

    def step(self, x):
        self.room[0] = x
        self.room[:, 1] += x
        self.history.append(self.room.copy())
        return self.room @ x


def in_a_loop(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = x[i] ** 2
    return out


def with_imported_names(x):
    out = zeros(4)
    out[1:] = x
    return out, r_[x, 0.0, 1:3], sqrt(x[0]) * np.float32(2)


def rotation(x):
    c, s = np.cos(x[0]), np.sin(x[0])
    return np.array([[c, -s], [s, c]]) @ np.array([1, 2])


def symmetric(x):
    a = np.zeros((3, 3))
    for i in range(3):
        for j in range(i + 1):
            a[i, j] = x[i] * x[j]
            a[j, i] = a[i, j]
    return a, np.linalg.inv(a + np.eye(3)), a.trace(), a.diagonal()


def views(x):
    a = np.zeros((2, 3))
    v = a.T
    v[0, 1] = x[0]
    w = v[::-1]
    w[0] = x[:2]
    flat = a.reshape(-1)
    flat[1] = 5
    return a, v, w, flat, a.sum(), v.mean(0), np.linalg.norm(w)


def aliases(x):
    b = np.zeros(3)
    c = b
    b += x
    c *= 2
    b -= 1
    return b, c


def the_same_row(x):
    rows, row = [], np.zeros(2)
    for v in x:
        row[0] = v
        rows.append(row)
    return np.array(rows)


def copied_rows(x):
    rows, row = [], np.zeros(2)
    for v in x:
        row[0] = v
        rows.append(row.copy())
    return np.array(rows), np.vstack(rows), np.concatenate(rows), np.stack(rows, 1)


def objects(x):
    state, model = State(), Model()
    state.position[1] = x[0]
    state.velocity *= x
    model.step(x)
    return state, model.step(x * 2), model.history[0], model.room


def shared_rooms(x):
    rooms = {"a": np.zeros(2)}
    rooms["a"][0] = x[0]
    twice = [np.zeros(2)] * 2
    twice[0][1] = x[1]
    pair = Pair(np.zeros(2), np.ones(2))
    pair.a[0] = x[0]
    other = copy.deepcopy(pair)
    other.a[1] = x[1]
    return rooms, twice, pair, other


def static_branches(x):
    b = np.zeros(3)
    b[0] = x[0]
    for k in range(1, 3):
        b[k] = 7 if b[k] == 0 and not b[k:].any() else x[k]
    return b, [float(v) for v in b[1:]], b[1:].tolist()


def tables(x):
    table, i = np.arange(5.0) ** 2, (x[0] > 0).astype(int)
    entry = table[i]
    table[i] = x[1]
    return entry, table, TABLE[i]


def constants_of_modules(x):
    u = TABLE[1:].copy()
    u[0, 0] = x[0]
    v = TABLE * 2
    v[1] = x[1]
    w = TABLE.T.reshape(-1)[:3] + 0
    w[1] = x[0]
    return u, v, w


def random_numbers(x):
    noise = np.random.default_rng(0).normal(size=3)
    noise[0] = x[0]
    return noise


def nested_lists(x):
    m = [[0.0] * 3 for _ in range(3)]
    for i in range(3):
        m[i][i], m[i][2] = x[i], 1
    return (
        np.array(m),
        np.asarray(m) @ x,
        np.array(m, dtype=np.float32),
        np.array([x, x], ndmin=3),
        np.array((x[0], 1)),
        np.array([1j, x[0]]),
    )


def collections_of_scalars(x):
    last = deque(x, maxlen=2)
    twice = np.fromiter((v * 2 for v in x), float)
    return np.array(last), twice, np.array([v**2 for v in x] + [1]), np.array([v > 1.5 for v in x])


def functions_of_lists(x):
    parts = [v**2 for v in x]
    return (
        np.sum(parts),
        np.mean([x[0], 2]),
        np.max(parts),
        np.linalg.norm(parts),
        np.cross([x[0], 1, 2], [1, 2, 3]),
        np.dot([x[0], 1], [2, 3]),
    )


def filled(x):
    y, z, w, e = np.zeros_like(x), np.full(3, x[1]), np.full((2, 2), [x[0], x[1]]), np.empty_like(x)
    y[1], z[0], e[:] = 3 * x[0], 0, 1
    return y, z, w, e


def stacked(x):
    b = np.zeros(3)
    b[0] = x[0]
    blocks = np.block([[b], [x]])
    return np.c_[b, x], np.r_["-1", b, x], np.stack([b, x]), np.hstack([b, [1, 2]]), blocks, np.append(b, x), np.where(b > 0, b, x)


def vectorized(x):
    doubled = np.vectorize(lambda a, b: a * b + 1)(x, 2.0)
    both = np.vectorize(lambda a: (a, a**2), otypes="ff")(x)
    return doubled, both, np.vectorize(lambda a: 1)(x)


def mathematics(x):
    return (
        math.sin(x[0]) * np.float32(2), math.hypot(x[0], x[1]), math.atan2(x[0], 2), math.floor(x[2]), math.log(x[1], 2),
        math.erf(x[0]), math.gamma(x[0]), math.fsum(x), math.prod(x), math.dist(x, [1, 1, 1]), math.exp(1), math.pow(x[0], 2),
        math.hypot(x[0], 1, 2), math.isfinite(x[0]),
    )  # fmt: skip


def arrays_of_objects(x):
    m = np.empty((2, 2), dtype=object)
    m[0, 0], m[0, 1], m[1] = x[0], 1, [x[1], 2.0]
    total = np.array([x[0], x[1]], dtype=object) * 2
    return (m @ np.array([1.0, 2.0])).astype(float), m.astype(float), total.astype(float), m.sum()


def of_complex_numbers(x):
    m = np.zeros((2, 2), dtype=complex)
    m[0, 1], m[1, 0] = x[0] * 1j, x[1]
    return m.real, m.imag, np.abs(m), m.conj().T


def joined_in_lists(x):
    ones, half = np.ones((2, 3)), np.ones(3, np.float32)
    ones[0], half[1] = x, x[0]
    mixed = np.array([ones, ones * 2]), np.array([ones[1], half]), np.array([half, half]), np.array([ones[1], x], dtype=complex)
    return *mixed, r_[ones[1], half], np.array([[ones[1, 0], half[0]], [half[1], ones[0, 0]]])


def of_integers(x):
    b = np.zeros(3, int)
    b[0], b[1] = x[1], 2.7
    single = np.zeros(3, np.float32)
    single[:] = x
    return b, TABLE[b], single, single * x


def indices(x):
    order = np.zeros(3, int)
    for i in range(3):
        order[i] = (i * 2) % 3
    b = np.zeros((3, 3))
    b[np.tril_indices(3)] = np.concatenate([x, x])
    b[np.diag_indices(3)] += 1
    b[np.ix_([0, 1], [1, 2])] = x[0]
    return x[order], b


def traced_places(x):
    b = np.zeros(3)
    b[x > 1.5] = 5.0
    b[np.argmin(x)] = x[2]
    c = np.zeros(3)
    np.add.at(c, np.array([0, 1, 0]), x)
    return b, c


def results_of_numpy(x):
    b = np.zeros(3)
    b[0] = x[0]
    return (
        np.outer(b, x), np.interp(x, [0, 1, 2.0], b), np.convolve(b, x), np.gradient(b), np.kron(b, x), np.diff(b), b == x, b @ x,
        np.einsum("i,j->ij", b, x), np.isclose(b, 0), b.argmax(), np.sort(b), b.cumsum(), np.roll(b, 1), np.pad(b, 1), b.std(),
        (b > 0).sum(), b.round(1), b.clip(0, 1), x / (b + 1), b.dot(x), -b, abs(b), 2**b, b.T.flatten(), np.tile(b, 2),
        np.var([b, x]),
    )  # fmt: skip


def functions_of_scipy(x):
    from scipy import linalg, signal, special

    b = np.zeros(3)
    b[0] = x[0]
    matrix = np.eye(3)
    matrix[0, 1] = x[0]
    return special.erf(b), linalg.expm(np.diag(b)), signal.lfilter([1.0], [1.0, 0.5], b), linalg.solve(matrix, [1.0, 2.0, 3.0])


def outputs(x):
    a, b, c = np.zeros(3), np.zeros((3, 3)), np.zeros(3)
    np.cumsum(x, out=a)
    np.matmul(np.eye(3), np.diag(x), out=b)
    np.dot(b, x, out=c)
    np.maximum(x, 2, out=c, where=[True, False, True])
    np.clip(a, 2, 3, out=a)
    return a, b, c


def not_written_in_full(x):
    b = np.empty(4)
    b[0], b[1:] = x[0], x
    return b[:2], len(b), b.shape


def helpers(x):
    def swap(a, i, j):
        a[i], a[j] = a[j], a[i]

    a = np.zeros(3)
    a[:] = x
    swap(a, 0, 2)
    first, *rest = a
    a[1] = 9.0
    return first, rest, a, functools.reduce(np.add, [a, x])


def of_loops(x):
    b = np.zeros(2)
    b[0] = x[0]

    def step(carry, v):
        inner = np.zeros(2)
        inner[0], inner[1] = v, carry
        return inner.sum() + b[0], inner * b

    scanned = tidu.scan(step, 0.0, x)
    return scanned, tidu.cond(x[0] > 0, lambda: b, lambda: b * 2)


EXAMPLES: list[Callable[..., Any]] = [
    in_a_loop, with_imported_names, rotation, symmetric, views, aliases, the_same_row, copied_rows, objects, shared_rooms,
    static_branches, tables, constants_of_modules, random_numbers, nested_lists, collections_of_scalars, functions_of_lists, filled,
    stacked, vectorized, mathematics, arrays_of_objects, of_complex_numbers, of_integers, joined_in_lists, indices, traced_places,
    results_of_numpy, functions_of_scipy, outputs, not_written_in_full, helpers, of_loops,
]  # fmt: skip


def leaves(value):
    if dataclasses.is_dataclass(value):
        value = [getattr(value, f.name) for f in dataclasses.fields(value)]
    if isinstance(value, dict):
        value = list(value.values())
    return [x for v in value for x in leaves(v)] if isinstance(value, list | tuple) else [np.asarray(value)]


@pytest.mark.parametrize("function", EXAMPLES, ids=lambda f: f.__name__)
def test_it_gives_what_numpy_gives(function):
    expected = leaves(function(X.copy()))
    results = tidu.evaluate(trace(function, x="f64[3]"), x=X)
    for x, y in zip(results.values(), expected, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, rtol=1e-6 if x.dtype == np.float32 else 1e-13, atol=1e-14)


def test_elements_that_are_read_again_are_no_nodes():
    """A recurrence has the nodes of its arithmetic, and those that join its elements in the end."""

    def recurrence(x):
        out = np.zeros(50)
        out[0] = x
        for k in range(1, 50):
            out[k] = out[k - 1] * 0.5 + 1
        return out

    operations = [case.op for case, _ in trace(recurrence, x="f64[]").head.nodes()]
    assert sorted(set(operations)) == ["add", "concatenate", "constant", "mul", "reshape"]
    assert (operations.count("mul"), operations.count("concatenate"), operations.count("reshape")) == (49, 1, 50)
