"""Which function users call where an array is asked for a value, and what to write instead of it."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np

INSTEAD: Mapping[str, str] = {
    "float": "leave float() out, or write np.asarray(x, float)",
    "int": "write x.astype(int), and tidu.fori_loop for range(int(x))",
    "complex": "write x + 0j",
    "math.isclose": "write np.isclose",
    "math.isqrt": "write np.floor(np.sqrt(x)).astype(int)",
    "math.modf": "write np.modf",
    "math.frexp": "write np.floor(np.log2(np.abs(x)))",
    "math.ldexp": "write x * 2.0**n",
    "math.remainder": "write x - y * np.rint(x / y)",
    "math.sumprod": "write np.dot(x, y)",
    "max": "write np.maximum(a, b), or np.max of an array",
    "min": "write np.minimum(a, b), or np.min of an array",
    "sorted": "write np.sort",
    "any": "write np.any",
    "all": "write np.all",
    "bool": "write x != 0",
}
"""By the names of functions that need values."""


def name_of_call(frame: Any) -> str | None:
    """The function that a frame calls now, as it is written there: `float`, `np.float64`, `math.exp`. None if that is not known."""
    place = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    if place is None or None in place:
        return None
    first, last, start, end = place
    lines = [linecache.getline(frame.f_code.co_filename, k).encode() for k in range(first, last + 1)]
    if not all(lines):
        return None
    lines[-1] = lines[-1][:end]  # columns count bytes
    lines[0] = lines[0][start:]
    try:
        call = ast.parse(f"({b''.join(lines).decode()})", mode="eval").body
    except (SyntaxError, UnicodeDecodeError):
        return None
    if not isinstance(call, ast.Call):
        return None
    name = ast.unparse(call.func)
    return name if len(name) <= 60 else None


def instead_of(name: str) -> str | None:
    """What to write instead of a function of that name."""
    if name.startswith(("np.", "numpy.")) and name.partition(".")[2].rstrip("_0123456789") in (
        "float",
        "int",
        "uint",
        "complex",
        "bool",
    ):
        return f"write x.astype({name})"
    if isinstance(getattr(np, name.partition(".")[2], None), np.ufunc) and name.startswith(("np.", "numpy.")):
        return f"give it an array: {name}(np.array(...))"
    if name.endswith(".sort"):
        return INSTEAD["sorted"]
    return INSTEAD.get(name) or (f"write np.{name[5:]}" if name.startswith("math.") else None)
