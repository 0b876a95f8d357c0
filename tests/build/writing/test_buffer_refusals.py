"""What arrays that traced values are written into refuse: each message names the line and what to write instead."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tidu_cli as tidu
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.errors import TiduError

X = np.array([1.25, 2.0, 3.5])
TABLE = np.arange(12.0).reshape(3, 4)
ROOM = np.zeros(3)


def float_of(x):
    return float(x[0])


def numpys_float_of(x):
    return np.float64(x[0] + 1)


def int_of(x):
    return [0] * int(x[0])


def modf_of(x):
    return math.modf(x[0])


def ufunc_of_a_list(x):
    return np.cos([x[0], 1.0])


def into_a_module(x):
    ROOM[0] = x[0]
    return ROOM


def into_a_default(x, room=ROOM):
    room[0] = x[0]
    return room


def into_flags(x):
    flags = np.zeros(3, bool)
    flags[0] = x[0] > 1
    return flags


def the_greatest(x):
    b = np.zeros(3)
    b[0] = x[0]
    return max(b)


def ragged(x):
    return np.array([[x[0]], [x[1], x[2]]])


def too_far(x):
    b = np.zeros(3)
    b[3] = x[0]
    return b


def too_many(x):
    b = np.zeros(3)
    b[:2] = x
    return b


def outside_of_a_loop(x):
    out = np.zeros(3)

    def step(carry, v):
        out[0] = v
        return carry, v

    return tidu.scan(step, 0.0, x)


def outside_of_a_branch(x):
    out = np.zeros(3)
    return tidu.cond(x[0] > 0, lambda: out.fill(1.0) or 1.0, lambda: 0.0)


def pickled(x):
    b = np.zeros(3)
    pickle.dumps(b)
    b[0] = x[0]
    return pickle.dumps(b)


def compared(x):
    b = np.zeros(3)
    b[0] = x[0]
    np.testing.assert_allclose(b, b)
    return b


def changed_by_others(x):
    b = np.zeros(3)
    b[0] = x[0]
    memoryview(b)[0] = 3.0
    return b


def bytes_of(x):
    b = np.zeros(3)
    b[0] = x[0]
    return b.view(np.int64)


def leaked(x):
    b = np.zeros(3)
    b[0] = x[0]
    return np.frombuffer(b) * 2


def into_a_part(x):
    z = np.zeros(3, complex)
    z.real = x
    z.imag[:] = 2 * x
    return z


REFUSED: dict[Callable[..., Any], tuple[int, str]] = {
    float_of: (1, "float() needs the value of an array, which a graph does not have yet (f64[]); leave float() out, or write"),
    numpys_float_of: (
        1,
        "np.float64() needs the value of an array, which a graph does not have yet (f64[]); write x.astype(np.float64)",
    ),
    int_of: (1, "int() needs the value of an array, which a graph does not have yet (f64[]); write x.astype(int)"),
    modf_of: (1, "math.modf() needs the value of an array, which a graph does not have yet (f64[]); write np.modf"),
    ufunc_of_a_list: (1, "give it an array: np.cos(np.array(...))"),
    into_a_module: (1, "an array that was made before the function was traced"),
    into_a_default: (1, "write into a copy, y = np.array(y)"),
    into_flags: (2, "collect the elements in a list and write np.array(elements)"),
    the_greatest: (3, "max() needs the value of an array"),
    ragged: (1, "ValueError: setting an array element with a sequence. The requested array has an inhomogeneous shape"),
    too_far: (2, "IndexError: index 3 is out of bounds for axis 0 with size 3"),
    too_many: (2, "ValueError: could not broadcast input array from shape (3,) into shape (2,)"),
    outside_of_a_loop: (4, "the function of a loop or branch would change an array of outside"),
    outside_of_a_branch: (2, "the function of a loop or branch would change an array of outside"),
    pickled: (4, "<traced f64[3]> cannot be pickled; return it"),
    compared: (3, "a branch on a value"),
    changed_by_others: (4, "was changed by code that is not traced"),
    bytes_of: (3, "write astype() to convert it"),
    into_a_part: (
        3,
        "it is a part of complex numbers, of which graphs have copies; write z.real.copy() or z.imag.copy() to read it",
    ),
    leaked: (3, "what code that is not traced computed of an array"),
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_refusals_name_the_line_and_the_way_out(function):
    line, words = REFUSED[function]
    with pytest.raises(TiduError) as refusal:
        trace(function, x="f64[3]")
    message = str(refusal.value)
    assert words in message
    place = f"tests/build/writing/{__file__.rsplit('/', 1)[-1]}:{function.__code__.co_firstlineno + line}: "
    assert message.startswith(place) or function in (
        changed_by_others, leaked,
    )  # fmt: skip
    assert not ROOM.any()
