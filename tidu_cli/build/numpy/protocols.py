"""What traced arrays do: NumPy's functions, and what Python, NumPy and the array API ask of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidu_cli.build.arrays.aliasing import changed_by, item_of
from tidu_cli.build.numpy.elementwise.ufuncs import apply_operator, call_ufunc
from tidu_cli.build.numpy.functions import FUNCTIONS, call_function
from tidu_cli.build.numpy.indexing import indexed
from tidu_cli.build.numpy.namespace import NAMESPACE

PROTOCOLS: Mapping[str, Callable[..., Any]] = {
    **FUNCTIONS,
    "operator": apply_operator,
    "in place": changed_by,
    "item": lambda x, index: item_of(x, index, indexed(x, index)),
    "ufunc": call_ufunc,
    "function": call_function,
    "namespace": lambda: NAMESPACE,
}
"""By name: NumPy's functions by theirs. Arrays find them through their recording, as these are made of arrays."""
