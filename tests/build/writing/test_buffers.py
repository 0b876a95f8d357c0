"""Arrays of NumPy's that traced values are written into: what a traced function gives is what NumPy gives, or it is refused."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build.comparing import compare, of_numpy
from tests.tiers import examples
from tidu_cli.adapters.numpy.buffers import elements, memory

X, Y, K = np.arange(1.0, 5.0) / 3, np.arange(6.0).reshape(2, 3) - 2.5, np.array([2, 0, 1])


# Random programs, which keep all arrays in a list.

MADE: dict[str, Any] = {
    "zeros": lambda: np.zeros(4),
    "zeros of two axes": lambda: np.zeros((3, 4)),
    "ones by columns": lambda: np.ones((4, 3), order="F"),
    "arange": lambda: np.arange(4.0),
    "integers": lambda: np.arange(4),
    "f32": lambda: np.zeros((2, 4), np.float32),
    "complex": lambda: np.zeros(4, complex),
    "three axes": lambda: np.zeros((2, 3, 4)),
    "no axes": lambda: np.zeros(()),
    "full": lambda: np.full((3, 3), 2.5),
    "eye": lambda: np.eye(4),
    "of a list": lambda: np.array([[1.0, 2.0], [3.0, 4.0]]),
    "linspace": lambda: np.linspace(0.0, 1.0, 5),
    "transposed": lambda: np.arange(12.0).reshape(3, 4).T,
}
VIEWS: dict[str, Any] = {
    "x[1:]": lambda x: x[1:],
    "x[::-1]": lambda x: x[::-1],
    "x[..., ::2]": lambda x: x[..., ::2],
    "x[0]": lambda x: x[0],
    "x[-1, 1]": lambda x: x[-1, 1],
    "x[None]": lambda x: x[None],
    "x[...]": lambda x: x[...],
    "x.T": lambda x: x.T,
    "x.reshape(-1)": lambda x: x.reshape(-1),
    "x.ravel()": lambda x: x.ravel(),
    "np.ravel(x.T)": lambda x: np.ravel(x.T),
    "x.reshape(2, -1)": lambda x: x.reshape(2, -1),
    "np.flip(x)": np.flip,
    "np.swapaxes(x, 0, -1)": lambda x: np.swapaxes(x, 0, -1),
    "x.transpose()": lambda x: x.transpose(),
    "np.diagonal(x)": np.diagonal,
    "np.split(x, 2)[1]": lambda x: np.split(x, 2)[1],
    "np.broadcast_to(x, (2, *x.shape))": lambda x: np.broadcast_to(x, (2, *x.shape)),
    "np.einsum('i...->...i', x)": lambda x: np.einsum("i...->...i", x),
    "np.atleast_2d(x)": np.atleast_2d,
    "np.asarray(x)": lambda x: np.asarray(x),
    "x.real": lambda x: x.real,
    "x.squeeze()": lambda x: x.squeeze(),
    "list(x)[0]": lambda x: next(iter(x)),
    "np.expand_dims(x, -1)": lambda x: np.expand_dims(x, -1),
}
COPIES: dict[str, Any] = {
    "x.copy()": lambda x: x.copy(),
    "np.array(x)": lambda x: np.array(x),
    "np.copy(x)": np.copy,
    "x.flatten()": lambda x: x.flatten(),
    "x[[0, 1, 0]]": lambda x: x[[0, 1, 0]],
    "x[x.shape mask]": lambda x: x[np.arange(x.size).reshape(x.shape) % 2 == 0],
    "x * 2": lambda x: x * 2,
    "2 - x": lambda x: 2 - x,
    "-x": operator.neg,
    "np.tanh(x)": np.tanh,
    "x.sum()": lambda x: x.sum(),
    "np.sum(x, 0)": lambda x: np.sum(np.atleast_1d(x), 0),
    "x.mean(-1)": lambda x: np.atleast_1d(x).mean(-1),
    "x.astype(int)": lambda x: x.astype(int),
    "x.astype(f32)": lambda x: x.astype(np.float32),
    "np.array([x, x * 2])": lambda x: np.array([x, x * 2]),
    "np.array([x[0], 1])": lambda x: np.array([x[0], np.ones_like(x[0])]),
    "np.concatenate([x, [1]])": lambda x: np.concatenate([np.ravel(x), [1.0]]),
    "np.stack([x, x])": lambda x: np.stack([x, x], -1),
    "np.where(c, x, 0)": lambda x: np.where(np.arange(x.size).reshape(x.shape) > 1, x, 0),
    "np.zeros_like(x)": np.zeros_like,
    "x @ x.T": lambda x: x @ x.T,
    "np.cumsum(x)": np.cumsum,
    "np.roll(x, 1)": lambda x: np.roll(x, 1),
    "x.imag": lambda x: x.imag + 0,
    "x.conj()": lambda x: np.conj(x),
    "np.sort(x)": lambda x: np.sort(np.atleast_1d(x)),
    "np.float64": lambda x: x + np.float64(1),
}
INDICES: dict[str, Any] = {
    "0": lambda x: 0,
    "-1": lambda x: -1,
    "1:3": lambda x: slice(1, 3),
    "::-2": lambda x: slice(None, None, -2),
    "...": lambda x: ...,
    "..., 1": lambda x: (..., 1),
    "0, 1": lambda x: (0, 1),
    "1, 1:": lambda x: (1, slice(1, None)),
    "None": lambda x: (None, 0),
    "[0, 1, 0]": lambda x: [0, 1, 0],
    "[1, 0], ...": lambda x: ([1, 0], ...),
    "mask": lambda x: np.arange(x.size).reshape(x.shape) % 3 == 0,
    "mask of rows": lambda x: np.arange(len(x)) % 2 == 0,
    "()": lambda x: (),
    "7": lambda x: 7,
}
IN_PLACE: dict[str, Any] = {
    "+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv, "//": operator.ifloordiv,
    "@": operator.imatmul,
}  # fmt: skip
WAYS: dict[str, Any] = {
    "fill": lambda x, v: x.fill(v),
    "fill_diagonal": lambda x, v: np.fill_diagonal(x, v),
    "copyto": lambda x, v: np.copyto(x, v),
    "copyto where": lambda x, v: np.copyto(x, v, where=np.arange(x.size).reshape(x.shape) % 2 == 0),
    "put": lambda x, v: np.put(x, [0, 2, 0], v),
    "x.put": lambda x, v: x.put([1, 2], v),
    "place": lambda x, v: np.place(x, np.arange(x.size).reshape(x.shape) % 2 == 0, np.ravel(v).astype(x.dtype)),
    "putmask": lambda x, v: np.putmask(x, np.arange(x.size).reshape(x.shape) % 2 == 1, v),
    "put_along_axis": lambda x, v: np.put_along_axis(x, np.argsort(np.arange(x.size).reshape(x.shape) % 3, -1), v, -1),
    "flat": lambda x, v: operator.setitem(x.flat, slice(None, None, 2), v),
    "flat 1": lambda x, v: operator.setitem(x.flat, 1, np.ravel(v)[0]),
    "add.at": lambda x, v: np.add.at(x, [0, 1, 0], v),
    "maximum.at": lambda x, v: np.maximum.at(x, ..., v),
    "out": lambda x, v: np.multiply(x, v, out=x),
    "out where": lambda x, v: np.add(x, v, out=x, where=np.arange(x.size).reshape(x.shape) % 2 == 0),
    "sum out": lambda x, v: np.sum(v, out=x),
    "sort": lambda x, v: x.sort(),
    "iter": lambda x, v: [operator.setitem(row, ..., v) for row in x],
    "real": lambda x, v: setattr(x, "real", v),
    "shape": lambda x, v: setattr(x, "shape", (x.size,)),
}
places = st.integers(0, 30)
values = st.one_of(
    places.map(lambda k: ("of", k)),
    st.sampled_from([1, 2.5, np.float32(0.5), np.array([1, 2, 3]), np.ones(3, np.float32), [1.0, 2.0, 3.0, 4.0], 1j]),
)
statements = st.one_of(
    st.tuples(st.just("make"), st.sampled_from(sorted(MADE))),
    st.tuples(st.just("view"), st.sampled_from(sorted(VIEWS)), places),
    st.tuples(st.just("copy"), st.sampled_from(sorted(COPIES)), places),
    st.tuples(st.just("set"), st.sampled_from(sorted(INDICES)), places, values),
    st.tuples(st.just("set"), st.sampled_from(sorted(INDICES)), places, values),
    st.tuples(st.just("get"), st.sampled_from(sorted(INDICES)), places),
    st.tuples(st.just("change"), st.sampled_from(sorted(IN_PLACE)), places, values),
    st.tuples(st.just("write"), st.sampled_from(sorted(WAYS)), places, values),
)


def program(steps):
    """A function that makes the steps; it writes into arrays that it made, and into views and copies of these."""

    def function(x, y):
        known, own = [x, y, np.zeros(4), np.zeros((3, 4))], [False, False, True, True]

        def value_of(given):
            return known[given[1] % len(known)] if isinstance(given, tuple) else given

        for kind, name, *rest in steps:
            if kind == "make":
                known.append(MADE[name]())
                own.append(True)
                continue
            k = rest[0] % len(known)
            if kind in ("view", "copy", "get"):
                known.append(known[k][INDICES[name](known[k])] if kind == "get" else {**VIEWS, **COPIES}[name](known[k]))
                own.append(kind == "copy" or own[k])
                continue
            if not (own[k] and np.ndim(known[k])):  # what has no axes may be a number
                continue
            if kind == "set":
                known[k][INDICES[name](known[k])] = value_of(rest[1])
            elif kind == "change":
                known[k] = IN_PLACE[name](known[k], value_of(rest[1]))
            else:
                WAYS[name](known[k], value_of(rest[1]))
        return known

    return function


REFUSED = (
    "indexing with one bool cannot be traced",
    "assignment to .flat reads elements of the array while it writes them",
    "it is a part of complex numbers, of which graphs have copies",
    "it is read-only, as it shows elements of another",
    ".at from complex128 to float64 with casting rule",
    "of complex numbers has no counterpart in graphs, as they have no order",
)
"""What is refused though NumPy takes it."""


@settings(max_examples=examples(400, check=60))
@given(st.lists(statements, max_size=8), st.sampled_from([1, 32]))
def test_programs_give_what_numpy_gives(steps, many):
    """However many parts there have to be for an array to be joined at once, or by a table of places."""
    function = program(steps)
    expected = of_numpy(function, (X, Y))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "MANY", many)
        patch.setattr(elements, "MANY", many)
        message = compare(function, X, Y)
    assert expected is None or message is None or any(words in message for words in REFUSED), message
