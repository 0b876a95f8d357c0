"""Sums over a batch, as trees of partial sums: their shape follows from the numbers of items alone, and so do their bits.

Addends are added in pairs, then sums of pairs, and so on (pairwise summation): of n floats the rounding error is at most about
log2(n) units of the last place of the sum of absolute values, where one after the other it would be n (N. J. Higham, Accuracy and
Stability of Numerical Algorithms, section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tidu_cli.errors import EvaluationError
from tidu_cli.graph.graph import Output
from tidu_cli.graph.types import COMPLEXES, INEXACT, INTEGERS, ITEMSIZE, TIMES, TensorType, leaves, real_dtype
from tidu_cli.lax.arrays.dtypes import numpy_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
                raise EvaluationError(f"output {place}: {type_} has no exact mean; take the sum, or make it a float before")


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


# Arrays of one dtype for inputs of another: taken where every number stays what it is for any array of that dtype; integers where
# these do.
#
# Others are refused, with a number that would change: no array is rounded that a user did not round.


_DIGITS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
"""The binary digits of floats, the leading one included."""


def widened(place: str, type_: TensorType, given: TensorType, array: NDArray[Any]) -> NDArray[Any] | None:
    """An array of type `given` as one of `type_`, if that is wider, of integers, floats or complex numbers; or integers that fit.

    None where they are of different shapes, or one is not of numbers. Raises EvaluationError where it is not wider, and for an
    integer that would be rounded or does not fit.
    """
    import numpy as np

    if given.shape != type_.shape or type_.dtype not in ITEMSIZE or given.dtype not in ITEMSIZE:
        return None
    if not _is_wider(type_.dtype, given.dtype, array):
        raise EvaluationError(f"{place}: expected {type_}, got {given}{_what_changes(type_.dtype, given.dtype, array)}")
    with np.errstate(over="ignore"):  # what is out of range is told below
        wider: NDArray[Any] = array.astype(numpy_dtype(np, type_.dtype))
    part = real_dtype(type_.dtype)
    if given.dtype in INTEGERS and type_.dtype in INEXACT and (lost := _inexact(array, wider, part)).any():
        raise EvaluationError(f"{place}: expected {type_}, got {given}, and {array[lost][0]} would be rounded to {part}")
    return wider


def _is_wider(target: str, given: str, array: NDArray[Any]) -> bool:
    if target in INTEGERS and given in INTEGERS:  # NumPy makes i64 of lists, where exported modules take i32
        import numpy as np

        bounds = np.iinfo(numpy_dtype(np, target))
        return not array.size or bounds.min <= int(array.min()) <= int(array.max()) <= bounds.max
    if target not in INEXACT or given in INTEGERS:
        return target in INEXACT
    if given not in INEXACT or (given.startswith("c") and not target.startswith("c")):
        return False
    part, given_part = real_dtype(target), real_dtype(given)
    return part == given_part or ITEMSIZE[part] > ITEMSIZE[given_part]


def _inexact(integers: NDArray[Any], floats: NDArray[Any], part: str) -> NDArray[Any]:
    """Which integers have more digits than floats of this dtype have, from their first 1 to their last; or are out of range."""
    import numpy as np

    # Without a look at the floats, which past 2**63 could not be converted back.
    size = np.abs(integers.astype(np.int64)).view(np.uint64) if integers.dtype.kind == "i" else integers.astype(np.uint64)
    size = np.maximum(size, np.uint64(1))  # 0 is as exact as 1
    last = size & ~(size - np.uint64(1))
    is_inexact: NDArray[Any] = (size // last >= np.uint64(1 << _DIGITS[part])) | ~np.isfinite(floats)
    return is_inexact


def _what_changes(target: str, given: str, array: NDArray[Any]) -> str:
    """What a message says of an array that is not taken for another dtype: a number that would change, and the way out."""
    import numpy as np

    dtype = numpy_dtype(np, target)
    way = f"convert it, if that is meant: .astype({dtype.name!r})"
    if given in COMPLEXES and target not in COMPLEXES:
        changed, way = array.imag != 0, "take its real part, if that is meant: .real"
        array, told = array[changed].ravel(), " has an imaginary part"
    else:
        with np.errstate(all="ignore"):
            cast = array.astype(dtype)
            back = (cast.real if target in COMPLEXES and given not in COMPLEXES else cast).astype(array.dtype)
        changed = (back != array) & ~((back != back) & (array != array))  # but for NaN, which stays
        if target in INTEGERS:
            changed |= (cast < 0) != (array < 0)  # of which the bits are the same, and so it comes back
        told = f" would become {cast[changed].ravel()[0].item()}" if changed.any() else ""
        array = array[changed].ravel()
    if not len(array):
        return f", which is not converted unasked, though no number in it would change; {way}"
    at = ",".join(map(str, np.argwhere(changed)[0]))
    return f", and {array[0]!s}{f' at [{at}]' if changed.ndim else ''}{told}; {way}"
