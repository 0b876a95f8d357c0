"""What NumPy, SciPy and Python have and graphs have not, and what to write instead.

Error messages and the documentation read the tables of functions. Where an array is asked for a value, the frame of the caller says
which function asks.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np

from tidu_cli.frozen import Frozen


class Refusal(Frozen):
    """Functions that are refused for one reason. `names` are NumPy's, less `numpy.`, apart by blanks."""

    what: str
    names: str
    instead: str


REFUSALS = (
    Refusal("Polynomials by their roots", "roots poly", "write np.linalg.eigvals of the companion matrix, or np.convolve"),
    Refusal(
        "Shapes that depend on values",
        "nonzero flatnonzero argwhere unique unique_all unique_counts unique_inverse unique_values union1d intersect1d setdiff1d "
        "setxor1d compress extract trim_zeros histogram_bin_edges",
        "the shape of the result depends on values; write np.where(mask, x, 0), and sums of masks for counts",
    ),
    Refusal(
        "Sorting by several keys, medians without NaN",
        "lexsort sort_complex nanmedian nanquantile nanpercentile",
        "write np.sort or np.argsort",
    ),
    Refusal(
        "Functions that call a function",
        "apply_along_axis apply_over_axes piecewise fromfunction",
        "write a loop, a formula of whole arrays, or np.select",
    ),
    Refusal(
        "Choices and places",
        "choose ix_ unravel_index ravel_multi_index",
        "write np.select, np.take, or an index of constant or traced integers",
    ),
    Refusal(
        "Polynomials as arrays of coefficients",
        "poly1d polyadd polysub polymul polydiv polyder polyint",
        "write np.polyval, sums of arrays, np.convolve, and products with np.arange",
    ),
    Refusal("Angles without jumps", "unwrap", "it depends on values which multiples are added; write np.arctan2 of what is smooth"),
    Refusal(
        "Bits, bytes and memory",
        "packbits unpackbits frexp ldexp spacing gcd lcm may_share_memory shares_memory",
        "graphs know values and not their bytes; write arithmetic, such as x * 2.0**n",
    ),
    Refusal("Sequences between traced ends", "logspace geomspace", "write np.exp(np.linspace(np.log(a), np.log(b), n))"),
    Refusal(
        "Text, files and dates",
        "array2string array_repr array_str frombuffer fromfile fromiter fromstring genfromtxt loadtxt save savetxt savez "
        "savez_compressed busday_count busday_offset datetime_as_string is_busday isnat",
        "return what you would write, and look at its value",
    ),
    Refusal(
        "Questions about types and costs",
        "array_equiv common_type min_scalar_type real_if_close einsum_path",
        "ask for x.dtype and x.shape, which are known while tracing",
    ),
)
"""Everything of NumPy's that an array may meet and that cannot be traced."""

FUNCTIONS: Mapping[str, str] = {name: refusal.instead for refusal in REFUSALS for name in refusal.names.split()}
"""What to write instead of a function."""

MODULES = ("char.", "lib.recfunctions.", "lib.scimath.", "ma.", "polynomial.", "rec.", "strings.")
"""Modules of NumPy's that are refused as a whole: of text, records and masks, and some whose dtypes depend on values."""

CHANGING: Mapping[str, str] = {
    "byteswap": "graphs know values and not their bytes",
    "itemset": "write x[k] = new",
    "partition": "write x = np.sort(x)",
    "resize": "write x = np.resize(x, shape)",
    "setfield": "write x[...] = new",
    "setflags": "leave it out",
}
"""Methods of NumPy's arrays that change them, and what to write instead."""

OF_SCIPY: Mapping[str, str] = {
    "scipy.cluster": "it chooses by values; make its result an input",
    "scipy.constants": "it takes numbers; call it with constants",
    "scipy.differentiate": "leave it out: linearize and grad give derivatives of what is built",
    "scipy.fft": "write np.fft; for cosines and sines multiply by the constant matrix that it makes of np.eye(n)",
    "scipy.integrate": "the steps depend on values; write a loop of a fixed number of steps, such as Runge-Kutta's, or a sum over "
    "fixed nodes: np.sum(w * f(t)) with constant t and w, such as those of np.polynomial.legendre.leggauss",
    "scipy.interpolate": "write CubicSpline, PchipInterpolator, make_interp_spline or interp1d with constant knots",
    "scipy.linalg": "write what np.linalg has of it, or make its result an input",
    "scipy.ndimage": "write a filter with constant weights, such as convolve, or sums of shifted slices",
    "scipy.optimize": "the steps depend on values; write a fixed number of steps, such as Newton's, or make the solution an input",
    "scipy.signal": "write scipy.signal.convolve, correlate, lfilter or savgol_filter",
    "scipy.sparse": "graphs have dense arrays only; write np.matmul",
    "scipy.spatial": "write scipy.spatial.distance.cdist or pdist, or the distances: np.sum((x[:, None] - y[None]) ** 2, -1)",
    "scipy.special": "write the formula, of functions that can",
    "scipy.stats": "write the formula, with np.mean, np.var, and functions of scipy.special",
}
"""What to write instead of a function, by its module."""


def refusal(name: str) -> str:
    """Why a function of that name cannot be traced, and what to write instead."""
    instead = OF_SCIPY.get(".".join(name.split(".")[:2]), "write it with functions of NumPy")
    return f"{name} cannot be traced; {instead} (docs/build.md lists what can)"


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
    module, _, function = name.partition(".")
    if module in ("np", "numpy"):
        if function.rstrip("_0123456789") in ("float", "int", "uint", "complex", "bool"):
            return f"write x.astype({name})"
        if isinstance(getattr(np, function, None), np.ufunc):
            return f"give it an array: {name}(np.array(...))"
    if name.endswith(".sort"):
        return INSTEAD["sorted"]
    return INSTEAD.get(name) or (f"write np.{name[5:]}" if name.startswith("math.") else None)
