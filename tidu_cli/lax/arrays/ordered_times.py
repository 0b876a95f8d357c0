"""Datetimes in order: kernels that compare see NumPy's datetimes, in which NaT is what NaN is among floats.

Held as numbers, NaT is the least of all. To NumPy it equals nothing, wins as maximum and as minimum, and is sorted to the end.
"""

from __future__ import annotations

from typing import Any

from tidu_cli.graph.types import ANY, COMPLEXES, DATETIMES
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.rules.contract import Kernel, KernelRule, Types

ORDERED = ANY - COMPLEXES
"""The dtypes whose values are in order."""

_UNIT = "M8[s]"
"""Any unit: only the order counts."""


def ordered_dtype(np: Any, dtype: str) -> Any:
    """The NumPy dtype in which a dtype is compared."""
    return np.dtype(_UNIT) if dtype in DATETIMES else numpy_dtype(np, dtype)


def in_order(rule: KernelRule) -> KernelRule:
    """The kernel rule of a primitive that compares, such that its kernels compare datetimes as NumPy does."""

    def kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
        compute = rule(np, attrs, operands, results)
        taken, given = ([t.dtype in DATETIMES for t in types] for types in (operands, results))
        if not any(taken):
            return compute

        def compared(*arrays: Any) -> Any:
            computed = compute(*[x.view(_UNIT) if t else x for x, t in zip(map(np.asarray, arrays), taken, strict=True)])
            if len(given) == 1:
                return computed.view(np.int64) if given[0] else computed
            return [x.view(np.int64) if t else x for x, t in zip(computed, given, strict=True)]

        return compared

    return kernel
