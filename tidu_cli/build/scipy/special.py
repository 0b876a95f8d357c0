"""What `scipy.special` has beside ufuncs."""

from __future__ import annotations

from typing import Any

from tidu_cli.build.arrays.array import Array
from tidu_cli.build.numpy.reductions import reducing


def softmax(x: Array, axis: Any = None) -> Array:
    return reducing.softmax(x, axis)


def log_softmax(x: Array, axis: Any = None) -> Array:
    return reducing.log_softmax(x, axis)
