"""Changing arrays in place: what a traced function gives is what NumPy gives, or it is refused with the file and line."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build.comparing import compare, of_numpy
from tests.build.numpy.test_functions import FUNCTIONS, W
from tests.tiers import examples, few
from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.graph.keys import Key
from tidu_cli.runtime.evaluate import evaluate

PLACE = __file__.rsplit("/", 1)[-1]

IN_PLACE: dict[str, Callable[..., Any]] = {
    "+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv, "//": operator.ifloordiv,
    "%": operator.imod, "**": operator.ipow, "@": operator.imatmul, "&": operator.iand, "|": operator.ior, "^": operator.ixor,
    "<<": operator.ilshift, ">>": operator.irshift,
}  # fmt: skip


def traced(x):
    """What like= takes of x."""
    return x if isinstance(x, Array) else None


# Random programs, which keep all they compute in a list.

X, Y = np.arange(9.0).reshape(3, 3) + 1, np.array([0.5, -1.0, 2.0])
VIEWS: dict[str, Callable[[Any], Any]] = {
    "x[1:]": lambda x: x[1:],
    "x[::-1]": lambda x: x[::-1],
    "x[...]": lambda x: x[...],
    "x[:]": lambda x: x[:],
    "x[()]": lambda x: x[()],
    "x[0]": lambda x: x[0],
    "x[0, ...]": lambda x: x[0, ...],
    "x[None]": lambda x: x[None],
    "x[-1, 1]": lambda x: x[-1, 1],
    "x.T": lambda x: x.T,
    "x.reshape(-1)": lambda x: x.reshape(-1),
    "x.reshape(x.shape)": lambda x: x.reshape(x.shape),
    "np.ravel(x)": np.ravel,
    "np.ravel(x.T)": lambda x: np.ravel(x.T),
    "np.flip(x)": np.flip,
    "np.squeeze(x)": np.squeeze,
    "np.real(x)": np.real,
    "x.real": lambda x: x.real,
    "np.atleast_2d(x)": np.atleast_2d,
    "np.broadcast_to(x, (3, *x.shape))": lambda x: np.broadcast_to(x, (3, *x.shape)),
    "np.split(x, 3)[1]": lambda x: np.split(x, 3)[1],
    "np.diagonal(x)": np.diagonal,
    "np.einsum('ij->ji', x)": lambda x: np.einsum("ij->ji", x),
    "np.diff(x, 0)": lambda x: np.diff(x, 0),
    "list(x)[1]": lambda x: list(x)[1],
    "np.asarray(x)": lambda x: np.asarray(x, like=traced(x)),
    "np.astype(x, f64, copy=False)": lambda x: np.astype(x, np.float64, copy=False),
}
COPIES: dict[str, Callable[[Any], Any]] = {
    "x.copy()": lambda x: x.copy(),
    "np.copy(x)": np.copy,
    "np.array(x)": lambda x: np.array(x, like=traced(x)),
    "copy(x)": copy.copy,
    "deepcopy(x)": copy.deepcopy,
    "+x": lambda x: +x,
    "x * 2": lambda x: x * 2,
    "x.astype(f64)": lambda x: x.astype(np.float64),
    "x.astype(f32)": lambda x: x.astype(np.float32),
    "x.flatten()": lambda x: x.flatten(),
    "x[[0, 1]]": lambda x: x[[0, 1]],
    "x[mask]": lambda x: x[np.arange(len(x)) != 1],
    "np.sum(x)": np.sum,
    "np.sum(x, axis=())": lambda x: np.sum(x, axis=()),
    "np.where(True, x, 0)": lambda x: np.where(True, x, 0),
    "np.clip(x, None, 9)": lambda x: np.clip(x, None, 9),
    "np.roll(x, 0)": lambda x: np.roll(x, 0),
    "np.concatenate([x])": lambda x: np.concatenate([x]),
    "np.zeros_like(x)": np.zeros_like,
    "np.tensordot(x, x, x.ndim)": lambda x: np.tensordot(x, x, x.ndim),
}
places = st.integers(0, 30)
constants = st.sampled_from([1, 2.0, np.float32(0.5), np.float64(3.0), np.array([1, 2, 3]), np.ones(3, np.float32), np.int64(2)])
changes = st.sampled_from(["+", "-", "*", "/"])
whole = st.one_of(
    st.tuples(st.just("name"), places),
    st.tuples(st.just("make"), st.sampled_from(sorted(COPIES)), places),
    st.tuples(st.just("change"), changes, places, st.one_of(constants, places.map(lambda k: ("of", k)))),
    st.tuples(st.just("helper"), changes, places, st.one_of(constants, places.map(lambda k: ("of", k)))),
)
viewing = st.tuples(st.just("make"), st.sampled_from(sorted(VIEWS)), places)


def helper(x, symbol, y):
    """Changes its argument and returns nothing: what `x` names now is lost, but for the change itself."""
    x = IN_PLACE[symbol](x, y)


def program(statements):
    def steps(*inputs):
        known = list(inputs)
        for kind, *rest in statements:
            if kind == "name":
                known.append(known[rest[0] % len(known)])
            elif kind == "make":
                known.append({**VIEWS, **COPIES}[rest[0]](known[rest[1] % len(known)]))
            else:
                at, y = rest[1] % len(known), rest[2]
                y = known[y[1] % len(known)] if isinstance(y, tuple) else y
                if kind == "change":
                    known[at] = IN_PLACE[rest[0]](known[at], y)
                else:
                    helper(known[at], rest[0], y)
        return known

    return steps


@settings(max_examples=examples(400, check=34))
@given(st.lists(st.one_of(whole, viewing), max_size=7))
def test_programs_give_what_numpy_gives_or_are_refused(statements):
    """A number and an array without axes, which f64[] stands for alike, both give it."""
    function = program(statements)
    refused = [compare(function, X, Y, s) for s in (np.float64(3.0), np.array(3.0))]
    assert len(set(refused)) == 1


@settings(max_examples=examples(200, check=60))
@given(st.lists(st.one_of(whole, viewing), max_size=7))
def test_arrays_are_never_refused(statements):
    """But for what NumPy refuses, too, values without axes, and arrays of which the order in memory is not known."""
    steps = program(statements)

    def function(x, y):
        return [v for v in steps(x, y) if v.ndim]

    message = compare(function, X, Y)
    if message is not None and of_numpy(function, (X, Y)) is not None:
        assert any(words in message for words in (" f64[];", "of f64[]", "of f32[]", "may be a view or a copy")), message


# All functions.

WITHOUT_AXES: dict[str, Callable[[Any], Any]] = {
    "0d reshape": lambda x: x[:1, 0, 0].reshape(()),
    "0d squeeze": lambda x: np.squeeze(x[:1, :1, :1]),
    "0d item": lambda x: x[0, 0, 0],
    "0d dots": lambda x: x[0, 0, 0, ...],
    "0d tuple": lambda x: x[0, 0, 0, ...][()],
    "0d where": lambda x: np.where(x[0, 0, 0] > 0, x[0, 0, 0], 1.0),
    "0d select": lambda x: np.select([x[0, 0, 0] > 0], [x[0, 0, 0]], 1.0),
    "0d copy": lambda x: np.copy(x[0, 0, 0]),
    "0d method copy": lambda x: x[0, 0, 0].copy(),
    "0d asarray": lambda x: np.asarray(x[0, 0, 0], like=traced(x)),
    "0d array": lambda x: np.array(3.0, like=traced(x)) * x[0, 0, 0],
    "0d constant": lambda x: np.array(3.0, like=traced(x)),
    "0d zeros_like": lambda x: np.zeros_like(x[0, 0, 0]),
    "0d full": lambda x: np.full((), 2.0, like=traced(x)),
    "0d tensordot": lambda x: np.tensordot(x, x, 3),
    "0d kron": lambda x: np.kron(x[0, 0, 0], x[0, 0, 0]),
    "0d cov": lambda x: np.cov(x[0, 0]),
    "0d corrcoef": lambda x: np.corrcoef(x[0, 0]),
    "0d einsum": lambda x: np.einsum("i,i->", x[0, 0], x[0, 0]),
    "0d einsum of one": lambda x: np.einsum("i->", x[0, 0]),
    "0d dot": lambda x: np.dot(x[0, 0], x[0, 0]),
    "0d inner": lambda x: np.inner(x[0, 0], x[0, 0]),
    "0d vdot": lambda x: np.vdot(x[0, 0], x[0, 0]),
    "0d matmul": lambda x: x[0, 0] @ x[0, 0],
    "0d trace": lambda x: np.trace(x[0]),
    "0d linalg.trace": lambda x: np.linalg.trace(x[0]),
    "0d norm": lambda x: np.linalg.norm(x),
    "0d vector_norm": lambda x: np.linalg.vector_norm(x),
    "0d matrix_norm": lambda x: np.linalg.matrix_norm(x[0]),
    "0d det": lambda x: np.linalg.det(x[0, :, :3]),
    "0d slogdet": lambda x: np.linalg.slogdet(x[0, :, :3])[1],
    "0d multi_dot": lambda x: np.linalg.multi_dot([x[0, 0], x[0].T, x[0, :, 0]]),
    "0d tensorsolve": lambda x: np.linalg.tensorsolve(x[0, :1, :1], x[0, 0, :1])[0],
    "0d median": lambda x: np.median(x),
    "0d quantile": lambda x: np.quantile(x, 0.3),
    "0d percentile": lambda x: np.percentile(x, 30),
    "0d average": lambda x: np.average(x),
    "0d var": lambda x: np.var(x),
    "0d nanmean": lambda x: np.nanmean(x),
    "0d nanstd": lambda x: np.nanstd(x),
    "0d nansum": lambda x: np.nansum(x),
    "0d nanmax": lambda x: np.nanmax(x),
    "0d max": lambda x: np.max(x),
    "0d prod": lambda x: np.prod(x),
    "0d interp": lambda x: np.interp(x[0, 0, 0], np.arange(3.0), np.arange(3.0)),
    "0d searchsorted": lambda x: np.searchsorted(np.arange(3.0), x[0, 0, 0]),
    "0d digitize": lambda x: np.digitize(x[0, 0, 0], np.arange(3.0)),
    "0d take": lambda x: np.take(x, 3),
    "0d clip": lambda x: np.clip(x[0, 0, 0], 0, 1),
    "0d round": lambda x: np.round(x[0, 0, 0], 1),
    "0d nan_to_num": lambda x: np.nan_to_num(x[0, 0, 0]),
    "0d real": lambda x: np.real(x[0, 0, 0]),
    "0d imag": lambda x: np.imag(x[0, 0, 0]),
    "0d angle": lambda x: np.angle(x[0, 0, 0]),
    "0d sinc": lambda x: np.sinc(x[0, 0, 0]),
    "0d i0": lambda x: np.i0(x[0, 0, 0]),
    "0d fix": lambda x: np.fix(x[0, 0, 0]),
    "0d trapezoid": lambda x: np.trapezoid(x[0, 0]),
    "0d polyval": lambda x: np.polyval([1.0, 2.0], x[0, 0, 0]),
    "0d cross": lambda x: np.linalg.cross(x[0, 0, :3], x[0, 1, :3])[0],
    "0d transpose": lambda x: np.transpose(x[0, 0, 0]),
    "0d broadcast_to": lambda x: np.broadcast_to(x[0, 0, 0], ()),
    "0d diagonal": lambda x: np.diagonal(x[0])[0],
    "0d where method": lambda x: x.sum().astype(np.float32),
    "0d isclose": lambda x: np.isclose(x[0, 0, 0], 1.0),
    "0d conjugate": lambda x: x[0, 0, 0].conj(),
    "0d stack": lambda x: np.stack([x[0, 0, 0]])[0],
    "0d linspace": lambda x: np.linspace(x[0, 0, 0], 1.0, 3)[1],
    "0d unstack": lambda x: np.unstack(x[0, 0])[1],
    "0d split": lambda x: np.split(x[0, 0], 4)[1],
    "0d logaddexp": lambda x: np.logaddexp.reduce(x[0, 0]),
}
ALL: dict[str, Callable[[Any], Any]] = {**FUNCTIONS, **WITHOUT_AXES}
del ALL["allclose"]  # a bool of Python's in NumPy


def doubled(x):
    """x, in place."""
    if x.dtype == bool:
        x ^= x
    else:
        x += x
    return x


def changes_result(function):
    def change(x):
        x = x * 1
        result = function(x)
        other = result
        result = doubled(result)
        return [result, other, x]

    return change


def changes_operand(function):
    def change(x):
        x = x * 1
        result = function(x)
        x += 1
        return [result, x]

    return change


@pytest.mark.parametrize("name", few(ALL, 80))
@pytest.mark.parametrize("change", [changes_result, changes_operand])
def test_results_share_elements_as_numpys_do(change, name):
    """What shares nothing is never refused, but for values that NumPy may give as numbers and as arrays."""
    function = change(ALL[name])
    message = compare(function, W)
    result = ALL[name](W)
    if message is not None and of_numpy(function, (W,)) is not None:
        assert np.shares_memory(result, W) or not np.ndim(result), message


# Dtypes and shapes.


@pytest.mark.check
@pytest.mark.parametrize("symbol", IN_PLACE)
@pytest.mark.parametrize("dtype", few(["bool", "i1", "u1", "i8", "u8", "f2", "f4", "f8", "c8"], 3))
def test_the_dtype_stays_or_it_is_refused(symbol, dtype):
    x = np.array([[1, 1], [0, 1]], dtype)
    others = [1, 2.0, 1j, True, *(np.array([[1, 1], [1, 1]], d) for d in ("bool", "i1", "u2", "i8", "f4", "f8", "c16"))]
    for y in few(others, 4):
        compare(lambda x, y=y: [IN_PLACE[symbol](x, y), x], x)


@pytest.mark.parametrize(
    ("symbol", "y", "words"),
    [
        ("+", np.ones((2, 2, 2)), "x += y gives f64[2,2,2], which does not fit into x, f64[2,2]; write x = x + y"),
        ("*", 1j, "x *= y gives c128[2,2], which is not converted to f64 in place; write x = x * y"),
        ("@", np.ones(2), "x @= y takes a y of two axes or more; write x = x @ y"),
        ("-", {}, "x -= y of a traced array and a dict"),
    ],
)
def test_what_does_not_fit_is_refused(symbol, y, words):
    message = compare(lambda x: [IN_PLACE[symbol](x, y)], np.ones((2, 2)))
    assert message is not None and words in message


def test_tuples_and_records():
    assert compare(lambda x: [operator.iadd(x, (1, 2))], np.ones(2)) is None
    document = trace(lambda p: [p.w, helper(p.w, "+", 1.0), p["w"]][0], "{w: f64[2]}")
    assert evaluate(document.head, {Key("p"): {"w": np.ones(2)}})[Key("y")].tolist() == [2, 2]


# Statements as people write them.


def uses_a_view(x):
    row = x[0]
    helper(row, "+", 1.0)
    return [x, x.sum()]


def uses_a_base(x):
    turned = x.T
    x *= 2.0
    return [turned + 1]


def returns_a_base(x):
    y = x.reshape(4)
    y += 1.0
    return [x]


def goes_on(x):
    for row in x:
        row /= np.linalg.norm(row)
    return [x]


def sets_elements(x):
    x[0] += 1.0
    x[1, 0] = x[0, 1] * 2
    x.T[1] = 7.0
    return [x]


def sets_a_shape(x):
    x.shape = (4,)
    return [x]


def sets_a_part(x):
    x.real = x.imag + 1
    return [x]


def exchanges_rows(x):
    x[0], x[1] = x[1], x[0]
    return [x]


def exchanges_elements(x):
    x[0, 0], x[1, 1] = x[1, 1], x[0, 0]
    return [x]


def eliminates(x):
    for k in range(2):
        x[k] /= x[k, k]
        for other in range(2):
            if other != k:
                x[other] -= x[other, k] * x[k]
    return [x]


@pytest.mark.parametrize(
    "function",
    [uses_a_view, uses_a_base, returns_a_base, goes_on, sets_elements, sets_a_shape, sets_a_part, exchanges_rows,
     exchanges_elements, eliminates],
)  # fmt: skip
def test_statements_as_people_write_them(function):
    assert compare(function, np.array([[2.0, -1.0], [0.5, 3.0]]) + (1j if function is sets_a_part else 0)) is None
