"""Values of equations: arrays of the recording, and those that depend on no input, which JAX computes while a jaxpr is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.errors import BuildError

MOST_KNOWN = 65_536
"""As many elements of what is computed while a jaxpr is read."""

SMALL = 256
"""Known values of so many bytes become constants of the graph, whatever they are made of."""


class Known:
    """A value that depends on no input.

    `array` is its node in the graph, if it has one. `cost` is how many bytes of constants it takes there: a known value becomes a
    constant itself where that takes no more. Otherwise it stays what computes it, and is computed here only if it is asked for.
    """

    __slots__ = ("_compute", "_operands", "_value", "array", "cost")

    def __init__(self, value: Any, array: Array | None = None, cost: int = 0) -> None:
        self._value = value
        self.array = array
        self.cost = cost
        self._compute: Callable[..., Any] | None = None
        self._operands: Sequence[Known] = ()

    @classmethod
    def later(cls, compute: Callable[..., Any], operands: Sequence[Known], array: Array, cost: int) -> Known:
        """A value that is computed when it is asked for, from those of operands."""
        found = cls(None, array, cost)
        found._compute, found._operands = compute, operands
        return found

    @property
    def value(self) -> Any:
        """The value: an array of NumPy or JAX."""
        pending = [self]
        while pending:
            here = pending[-1]
            if here._compute is None:
                pending.pop()
            elif missing := [k for k in here._operands if k._compute is not None]:
                pending += missing
            else:
                here._value = here._compute(*[k._value for k in here._operands])
                here._compute = None
        return self._value


Value = Array | Known
"""What a variable of a jaxpr stands for."""


def known(value: Any) -> Known:
    """A value of JAX's, of NumPy's or of Python's. Raises BuildError for one that is traced, which a rule may close over."""
    if hasattr(value, "dtype") and not isinstance(value.dtype, np.dtype):  # keys of random numbers
        return Known(value, None, value.size * 8)
    if hasattr(value, "_trace"):
        raise BuildError("it closes over a value that is computed; make this an argument")
    array = np.asarray(value)
    return Known(array, None, array.nbytes if any(array.strides) or not array.ndim else array.itemsize)


def as_numpy(value: Any) -> Any:
    """A known value as an array of NumPy; of keys the integers that they hold."""
    if isinstance(value.dtype, np.dtype):
        return np.asarray(value)
    import jax

    return np.asarray(jax.random.key_data(value))
