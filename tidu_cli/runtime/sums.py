"""Sums over a batch, as trees of partial sums: their shape follows from the numbers of items alone, and so do their bits.

Addends are added in pairs, then sums of pairs, and so on (pairwise summation): of n floats the rounding error is at most about
log2(n) units of the last place of the sum of absolute values, where one after the other it would be n (N. J. Higham, Accuracy and
Stability of Numerical Algorithms, section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tidu_cli.errors import EvaluationError
from tidu_cli.graph.graph import Output
from tidu_cli.graph.types import TIMES, leaves

REDUCTIONS = ("sum", "mean")
"""What a batch may be reduced to."""


def require_reducible(outputs: Iterable[Output], reduction: str) -> None:
    """Raises EvaluationError for an output that has no sum over a batch, or no mean."""
    for output in outputs:
        for path, type_ in leaves(output.type):
            place = ".".join([str(output.key), *path])
            if type_.dtype in TIMES or type_.dtype == "bool":
                raise EvaluationError(f"output {place}: {type_} has no {reduction} over a batch; choose other outputs")
            if reduction == "mean" and not type_.inexact:
                raise EvaluationError(f"output {place}: the mean of {type_} is no {type_}; take the sum, or make it a float before")


def summed(value: Any) -> Any:
    """The sum over the first axis of an array, or of each in a record. None, a structural zero, stays."""
    return _of_arrays(_pairwise, value)


def added(values: Sequence[Any]) -> Any:
    """The sum of values of one type, arrays or records of them, in pairs."""
    rest = list(values)
    while len(rest) > 1:
        pairs = [_of_arrays(_plus, *rest[k : k + 2]) for k in range(0, len(rest) - 1, 2)]
        rest = pairs + rest[len(rest) & ~1 :]
    return rest[0]


def divided(value: Any, n: int) -> Any:
    """A sum of `n` items as their mean, in the same dtype."""
    return _of_arrays(lambda x: _quietly(lambda: (_wide(x) / _wide(x).dtype.type(n)).astype(x.dtype)), value)


def _wide(x: Any) -> Any:
    """An array in a dtype that counts as far as there are items: in f16 65520 are infinitely many."""
    return x.astype("f4") if x.dtype.itemsize == 2 else x


class Partial:
    """Sums that come one after the other, added as a tree: `fan_in` of a level make one of the next.

    What is alive are less than `fan_in` sums of each level.
    """

    def __init__(self, fan_in: int = 2) -> None:
        self.fan_in = fan_in
        self.levels: list[list[Any]] = []

    def take(self, value: Any) -> None:
        """One more addend, the next in order."""
        for level in self.levels:
            level.append(value)
            if len(level) < self.fan_in:
                return
            value = added(level)
            level.clear()
        self.levels.append([value])

    def total(self) -> Any:
        """The sum of all that was taken, which was something."""
        carried: list[Any] = []
        for level in self.levels:
            parts = [*level, *carried]  # what came earlier is at the higher level
            carried = [added(parts)] if parts else []
        return carried[0]


def _of_arrays(function: Callable[..., Any], *values: Any) -> Any:
    """A function of arrays, applied to each tensor of values of one type; None, a structural zero, is left out."""
    (first, *_) = given = [value for value in values if value is not None] or [None]
    if isinstance(first, dict):
        return {name: _of_arrays(function, *(value[name] for value in given)) for name in first}
    if isinstance(first, tuple):
        return tuple(_of_arrays(function, *parts) for parts in zip(*given, strict=True))
    return first if len(given) < len(values) or first is None else function(*given)


def _plus(a: Any, b: Any) -> Any:
    return _quietly(lambda: a + b)


def _pairwise(x: Any) -> Any:
    import numpy as np

    if len(x) == 0:
        return np.zeros(x.shape[1:], x.dtype)
    n = len(x)
    half = (n + 1) // 2
    y = np.array(x[:half])
    with np.errstate(all="ignore"):
        y[: n - half] += x[half:]
        while (n := len(y)) > 1:
            half = (n + 1) // 2
            y[: n - half] += y[half:]
            y = y[:half]
    return np.array(y[0])


def _quietly(compute: Callable[[], Any]) -> Any:
    import numpy as np

    with np.errstate(all="ignore"):
        return np.asarray(compute())
