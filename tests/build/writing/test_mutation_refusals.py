"""Changing arrays in place where NumPy's meaning cannot be had: it is refused with the file, the line and what to write instead."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tidu_cli
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.errors import TiduError

PLACE = __file__.rsplit("/", 1)[-1]


def helper(x):
    x += 1.0


def may_be_a_number(x, s, i):
    old = s
    helper(s)
    return old * 2


def may_be_copied(x, s, i):
    y = x.T * 2
    z = y.reshape(-1)
    z += 1.0
    return y * 2


def taken_by_a_number(x, s, i):
    row = x[i]
    row += 1.0
    return x * 2


def read_only(x, s, i):
    y = np.broadcast_to(x, (3, 2, 2))
    y[0] = 1.0
    return x


def of_outside(x, s, i):
    y = x * 1

    def step(carry, k):
        y[0] = carry
        return carry + y.sum(), None

    return tidu_cli.scan(step, s, length=3)


def does_not_fit(x, s, i):
    x[0] = np.ones(3)
    return x


def a_number(x, s, i):
    y = x[0, 0]
    y[()] = 1.0
    return x


def by_a_mask(x, s, i):
    x[x > 0] = np.ones(3)
    return x


def unknown_length(x, s, i):
    return x[x > 0].sum()


def shuffled(x, s, i):
    np.random.default_rng(1).shuffle(x)
    return x


def line(function, k: int) -> str:
    """FILE:LINE of the k-th line after the head of a function."""
    return f"tests/build/writing/{PLACE}:{function.__code__.co_firstlineno + k}"


TOLD = {
    may_be_a_number: (
        3,
        f"a value of f64[] that was changed in place at {line(helper, 1)} is used again: a number would still have",
    ),
    may_be_copied: (
        4,
        f"changed in place at {line(may_be_copied, 3)} is used again: it may be a view or a copy of it, which depends",
    ),
    taken_by_a_number: (
        3,
        f"changed in place at {line(taken_by_a_number, 2)} is used again: x[i] shows elements of x if i is a number",
    ),
    read_only: (
        2,
        "assignment to elements of an array: it is read-only, as it shows elements of another; write x = x.copy() before",
    ),
    of_outside: (4, "would change an array of outside; let the function take it and return it (carry it), or change a copy there"),
    does_not_fit: (1, "ValueError: could not broadcast input array from shape (3,) into shape (2,)"),
    a_number: (2, "assignment to elements of a number (f64[]), which NumPy cannot change; write x = new"),
    by_a_mask: (1, "to as many elements as the mask, which is traced, has True; write x[...] = np.where(mask, new, x)"),
    unknown_length: (
        1,
        "indexing with a mask that is traced gives an array of unknown shape; it can be assigned, y[mask] = x[mask]",
    ),
    shuffled: (1, "shuffle() of a traced array; write x = x[rng.permutation(len(x))]"),
}
"""The line of the function at which it is refused, and what is said."""


@pytest.mark.parametrize("function", TOLD)
def test_refusals_name_the_line_of_the_use_and_of_the_change(function):
    at, words = TOLD[function]
    with pytest.raises(TiduError) as refusal:
        trace(function, "f64[2,2]", "f64[]", "i64[]")
    message = str(refusal.value)
    assert words in message
    assert message.startswith(f"{line(function, at)}: ") and "\n" not in message


ROOM = np.zeros(4)
WRITING: dict[str, Callable[[Any], Any]] = {
    "out=": lambda x: np.add(x, 1, out=ROOM),
    "where=": lambda x: np.multiply(x, 2, where=x > 0),
    "sum out=": lambda x: np.sum(x, 0, out=ROOM),
    "sum by position": lambda x: np.sum(x, 0, None, ROOM),
    "std by position": lambda x: np.std(x, 0, None, ROOM),
    "nansum by position": lambda x: np.nansum(x, 0, None, ROOM),
    "take by position": lambda x: np.take(x, [0], None, ROOM),
    "method by position": lambda x: x.sum(0, None, ROOM),
    "concatenate out=": lambda x: np.concatenate([x], out=ROOM),
    "dot out=": lambda x: x.dot(x, ROOM),
    "einsum out=": lambda x: np.einsum("i->i", x, out=ROOM),
    "overwrite_input": lambda x: np.median(x, overwrite_input=True),
    "overwrite_input of percentile": lambda x: np.percentile(x, 3, None, None, True),
    "array += traced": lambda x: operator.iadd(ROOM, x),
    "array[k] = traced": lambda x: operator.setitem(ROOM, 0, x[0]),
    "array[:] = traced": lambda x: operator.setitem(ROOM, slice(None), x),
    "array.fill": lambda x: ROOM.fill(x[0]),
    "array.put": lambda x: ROOM.put(0, x[0]),
    "fill_diagonal of a row": lambda x: np.fill_diagonal(x, 0.0),
    "del x[k]": lambda x: operator.delitem(x, 0),
    "add.at of an array": lambda x: np.add.at(ROOM, [0], x[:1]),
    "copyto of an array": lambda x: np.copyto(ROOM, x),
    "shuffle": lambda x: np.random.shuffle(x),
    "Generator.shuffle": lambda x: np.random.default_rng(1).shuffle(x),
    "resize": lambda x: x.resize(2),
    "partition": lambda x: x.partition(2),
    "itemset": lambda x: x.itemset(0, 1),
    "byteswap": lambda x: x.byteswap(True),
    "setflags": lambda x: x.setflags(write=False),
    "setfield": lambda x: x.setfield(1, np.float64),
    ".dtype": lambda x: setattr(x, "dtype", np.int64),
    ".imag": lambda x: setattr(x, "imag", 1.0),
    ".strides": lambda x: setattr(x, "strides", (8,)),
    ".T": lambda x: setattr(x, "T", x),
    "memoryview": lambda x: memoryview(x),
    "as_strided": lambda x: np.lib.stride_tricks.as_strided(x, (2, 2)),
}


@pytest.mark.parametrize("name", WRITING)
@pytest.mark.filterwarnings("ignore:you are shuffling:UserWarning")
def test_every_way_to_write_into_an_array_is_refused(name):
    with pytest.raises(TiduError) as refusal:
        trace(lambda x: (WRITING[name](x), x)[1], "f64[4]")
    message = str(refusal.value)
    assert message.startswith(f"tests/build/writing/{PLACE}:{WRITING[name].__code__.co_firstlineno}: ") and "\n" not in message
    assert not ROOM.any()
