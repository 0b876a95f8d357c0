"""Typed numbers for inputs of wider floats: integers and narrower floats are taken where no digit is lost, as JSON numbers are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidu_cli.errors import EvaluationError
from tidu_cli.graph.types import INEXACT, INTEGERS, ITEMSIZE, TensorType, real_dtype
from tidu_cli.lax.arrays.structural import numpy_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DIGITS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
"""The binary digits of floats, the leading one included."""


def widened(place: str, type_: TensorType, given: TensorType, array: NDArray[Any]) -> NDArray[Any] | None:
    """An array of type `given` as one of `type_`, if that is wider: of floats, or of complex numbers.

    None where it is not, or of another shape. Raises EvaluationError for an integer that would be rounded.
    """
    import numpy as np

    if given.shape != type_.shape or not _is_wider(type_.dtype, given.dtype):
        return None
    with np.errstate(over="ignore"):  # what is out of range is told below
        found: NDArray[Any] = array.astype(numpy_dtype(np, type_.dtype))
    part = real_dtype(type_.dtype)
    if given.dtype in INTEGERS and (lost := _inexact(array, found, part)).any():
        raise EvaluationError(f"{place}: expected {type_}, got {given}, and {array[lost][0]} is no {part} unless it is rounded")
    return found


def _is_wider(target: str, given: str) -> bool:
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
