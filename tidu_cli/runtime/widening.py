"""Arrays of one dtype for inputs of another: taken where every number stays what it is for any array of that dtype, or integers do.

Others are refused, with a number that would change: no array is rounded that a user did not round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidu_cli.errors import EvaluationError
from tidu_cli.graph.types import COMPLEXES, INEXACT, INTEGERS, ITEMSIZE, TensorType, real_dtype
from tidu_cli.lax.arrays.structural import numpy_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DIGITS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
"""The binary digits of floats, the leading one included."""


def widened(place: str, type_: TensorType, given: TensorType, array: NDArray[Any]) -> NDArray[Any] | None:
    """An array of type `given` as one of `type_`, if that is wider: of integers, floats or complex numbers.

    None where they are of different shapes, or one is not of numbers. Raises EvaluationError where it is not wider, and for an
    integer that would be rounded.
    """
    import numpy as np

    if given.shape != type_.shape or type_.dtype not in ITEMSIZE or given.dtype not in ITEMSIZE:
        return None
    if not _is_wider(type_.dtype, given.dtype):
        raise EvaluationError(f"{place}: expected {type_}, got {given}{_what_changes(type_.dtype, given.dtype, array)}")
    with np.errstate(over="ignore"):  # what is out of range is told below
        found: NDArray[Any] = array.astype(numpy_dtype(np, type_.dtype))
    part = real_dtype(type_.dtype)
    if given.dtype in INTEGERS and type_.dtype in INEXACT and (lost := _inexact(array, found, part)).any():
        raise EvaluationError(f"{place}: expected {type_}, got {given}, and {array[lost][0]} is no {part} unless it is rounded")
    return found


def _is_wider(target: str, given: str) -> bool:
    if target in INTEGERS and given in INTEGERS:
        import numpy as np

        return bool(np.can_cast(numpy_dtype(np, given), numpy_dtype(np, target)))
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
    found: NDArray[Any] = (size // last >= np.uint64(1 << _DIGITS[part])) | ~np.isfinite(floats)
    return found


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
