"""What a sample of a primitive is, and how operands and references are made. The samples themselves are in `samples`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from tests.graphs.templates import make_case, type_of
from tidu_cli.graph.types import COMPLEXES, INTEGERS, ITEMSIZE
from tidu_cli.lax.arrays.structural import numpy_dtype

SHAPES = [(), (1,), (4,), (0,), (2, 3), (2, 0), (2, 1, 3), (1, 2, 1, 2)]
ORDER = list(ITEMSIZE)


@dataclass
class Sample:
    op: str
    operands: list
    attrs: dict = field(default_factory=dict)
    reference: object = None  # from operands to the expected array, of any dtype
    seen: object = None  # from results and operands to what of them is compared, where not all of them are determined

    @cached_property
    def case(self):
        return make_case(self.op, self.attrs, [type_of(x) for x in self.operands])

    def __str__(self):
        types = ",".join(str(type_of(x)) for x in self.operands)
        return f"{self.op}({types}){self.attrs if self.op != 'constant' else ''}"


def draw(dtype, shape, seed=0, low=None):
    """An array of moderate values; integers with both ends of their range among them, floats at least `low`."""
    return _drawn(dtype, tuple(shape), seed, low).copy()


@cache
def _drawn(dtype, shape, seed, low):
    rng = np.random.default_rng([seed, ORDER.index(dtype), *shape])
    dt = numpy_dtype(np, dtype)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        info = np.iinfo(dt)
        x = np.array(rng.integers(max(info.min, -5), 6, shape), dtype=dt)
        if x.size > 2 and low is None:
            x.flat[0], x.flat[1] = info.min, info.max
        return x
    x = rng.uniform(-2, 2, shape) if low is None else rng.uniform(low, low + 2, shape)
    if dtype in COMPLEXES:
        x = x + 1j * rng.uniform(-2, 2, shape)
    return np.asarray(x).astype(dt)


def each(function):
    """Reference from a Python function of one element of each operand."""

    def reference(*operands):
        out = [function(*elements) for elements in zip(*(x.ravel().tolist() for x in operands), strict=True)]
        return np.array(out, dtype=object).reshape(operands[0].shape)

    return reference


def wrap(function):
    """Integers in Python's unbounded arithmetic, brought back into the operands' range; other numbers untouched."""

    def reference(*operands):
        return wrapped(each(function)(*operands), operands[0].dtype)

    return reference


def wrapped(values, dtype):
    if dtype.kind not in "iu":
        return values
    low, span = int(np.iinfo(dtype).min), 2 ** (8 * dtype.itemsize)
    return np.array([(int(v) - low) % span + low for v in values.ravel()], object).reshape(values.shape)
