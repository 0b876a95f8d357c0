"""NumPy's dtypes for those of tidu, the arrays of literals, and datetimes in order."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tidu_cli.graph.literals import Literal
from tidu_cli.graph.types import ANY, COMPLEXES, DATETIME, DATETIMES, DURATION, ITEMSIZE, TIMES, storage_dtype
from tidu_cli.rules.contract import Kernel, KernelRule, Types


@lru_cache
def numpy_dtype(np: Any, dtype: str) -> Any:
    """The NumPy dtype in which values of a tidu dtype are held: of times that of their counts; bf16 is that of ml_dtypes."""
    dtype = storage_dtype(dtype)
    if dtype == "bf16":
        import ml_dtypes  # slow to import, and rarely needed

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(f"{dtype[0]}{ITEMSIZE[dtype]}")  # bool is NumPy's b1


@lru_cache
def dtype_name(dtype: Any) -> str:
    """The tidu name of a NumPy dtype; for one that tidu does not have, NumPy's name."""
    if dtype.name == "bfloat16":
        return "bf16"
    if dtype.kind in "mM":
        name: str = dtype.name.replace("datetime64", DATETIME).replace("timedelta64", DURATION)
        return name if name in TIMES else str(dtype.name)
    letter = dtype.kind if dtype.kind in "iufc" else ""
    return f"{letter}{8 * dtype.itemsize}" if letter and dtype.itemsize <= 16 else str(dtype.name)


def literal_array(np: Any, literal: Literal) -> Any:
    """The array that a literal spells: read-only, and where the machine is little-endian a view of its bytes."""
    dtype = numpy_dtype(np, literal.type.dtype)
    return np.frombuffer(literal.data, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(literal.type.shape)


# Datetimes in order: kernels that compare see NumPy's datetimes, in which NaT is what NaN is among floats. Held as numbers, NaT is
# the least of all. To NumPy it equals nothing, wins as maximum and as minimum, and is sorted to the end.


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
