"""The functions of NumPy and of the array API that have a counterpart in graphs, by name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from typing import Any

import numpy as np

from tidu_cli.build.arrays.aliasing import shared, view_of
from tidu_cli.build.arrays.array import Array
from tidu_cli.build.arrays.operands import Operand, an_array, arrays_in, result_dtype
from tidu_cli.build.errors import UnknownFunctionError, UntraceableError
from tidu_cli.build.numpy import indexing, joining, shaping
from tidu_cli.build.numpy.elementwise import choosing, elementary
from tidu_cli.build.numpy.elementwise.elementwise import UFUNCS
from tidu_cli.build.numpy.elementwise.ufuncs import apply_ufunc, call_ufunc
from tidu_cli.build.numpy.linear_algebra import contracting, einsum, matrices, norms, systems
from tidu_cli.build.numpy.reductions import ordering, reducing, series, statistics
from tidu_cli.build.numpy.refused import FUNCTIONS as REFUSED
from tidu_cli.errors import did_you_mean


def _astype(x: Operand, dtype: Any, /, *, copy: bool = True, device: object = None) -> Array:
    return an_array(x).convert(np.dtype(dtype))


def _asarray(x: Operand, dtype: Any = None, *args: object, **options: object) -> Array:
    found = an_array(x)
    return found if dtype is None else found.convert(np.dtype(dtype))


def _filled(value: Any) -> Callable[..., Array]:
    return lambda x, dtype=None, order="K", subok=True, shape=None, **options: shaping.full_like(x, value, dtype, shape=shape)


def _ufunc(name: str) -> Callable[..., Any]:
    return lambda *operands, **options: call_ufunc(getattr(np, name), "__call__", operands, options)


def _of(module: Any, *names: str) -> dict[str, Callable[..., Any]]:
    return {name: getattr(module, name) for name in names}


GROUPS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "ufuncs": {name: _ufunc(name) for name in UFUNCS if hasattr(np, name)},
    "shapes": {
        **_of(
            shaping, "reshape", "ravel", "transpose", "swapaxes", "matrix_transpose", "moveaxis", "rollaxis", "expand_dims",
            "squeeze", "broadcast_to", "broadcast_arrays", "atleast_1d", "atleast_2d", "atleast_3d", "flip", "meshgrid",
        ),
        **_of(joining, "rot90", "resize"),
        "permute_dims": shaping.transpose,
        "flipud": lambda m: shaping.flip(m, 0),
        "fliplr": lambda m: shaping.flip(m, 1),
    },
    "joining and splitting": {
        **_of(
            joining, "concatenate", "stack", "vstack", "hstack", "dstack", "column_stack", "append", "block", "array_split",
            "split", "hsplit", "vsplit", "dsplit", "unstack", "tile", "repeat", "roll", "pad", "delete", "insert",
            "sliding_window_view",
        ),
        "concat": joining.concatenate,
        "fft.fftshift": joining.fftshift,
        "fft.ifftshift": joining.ifftshift,
    },
    "matrices": {
        **_of(matrices, "tril", "triu", "diagonal", "diag", "diagflat", "vander"),
        "linalg.diagonal": lambda x, /, *, offset=0: matrices.diagonal(x, offset, -2, -1),
        "linalg.matrix_transpose": shaping.matrix_transpose,
    },
    "products and norms": {
        **_of(
            contracting, "matmul", "dot", "inner", "outer", "vdot", "vecdot", "matvec", "vecmat", "tensordot", "trace", "cross",
            "kron",
        ),
        "einsum": einsum.einsum,
        "linalg.norm": norms.norm,
        "linalg.vector_norm": norms.vector_norm,
        "linalg.matrix_norm": norms.matrix_norm,
        "linalg.multi_dot": contracting.multi_dot,
        "linalg.matmul": contracting.matmul,
        "linalg.outer": contracting.outer,
        "linalg.tensordot": lambda x1, x2, /, *, axes=2: contracting.tensordot(x1, x2, axes),
        "linalg.vecdot": lambda x1, x2, /, *, axis=-1: contracting.vecdot(x1, x2, axis),
        "linalg.trace": lambda x, /, *, offset=0, dtype=None: contracting.trace(x, offset, -2, -1, dtype),
        "linalg.cross": lambda x1, x2, /, *, axis=-1: contracting.cross(x1, x2, axis),
    },
    "linear systems": {
        f"linalg.{name}": function
        for name, function in _of(
            systems, "solve", "inv", "det", "slogdet", "cholesky", "matrix_power", "tensorsolve", "tensorinv"
        ).items()
    },
    "reductions": {
        **_of(
            reducing, "sum", "prod", "max", "min", "all", "any", "count_nonzero", "ptp", "argmax", "argmin", "cumsum", "cumprod",
            "cummax", "cummin", "logsumexp", "softmax", "log_softmax", "nansum", "nanprod", "nanmax", "nanmin", "nanargmax",
            "nanargmin", "nancumsum", "nancumprod",
        ),
        "amax": reducing.max,
        "amin": reducing.min,
        "cumulative_sum": lambda x, /, *, axis=None, **options: reducing.cumsum(x, axis, **options),
        "cumulative_prod": lambda x, /, *, axis=None, **options: reducing.cumprod(x, axis, **options),
    },
    "statistics": _of(
        statistics, "mean", "var", "std", "average", "median", "quantile", "percentile", "cov", "corrcoef", "nanmean", "nanvar",
        "nanstd",
    ),
    "order": _of(ordering, "sort", "argsort", "searchsorted", "digitize", "interp"),
    "samples": _of(series, "linspace", "diff", "ediff1d", "gradient", "trapezoid", "convolve", "correlate", "polyval"),
    "choosing": {
        **_of(choosing, "where", "clip", "isclose", "allclose", "array_equal", "isin"),
        "select": choosing.choose,
        "take": indexing.taken,
        "take_along_axis": indexing.taken_along,
    },
    "elements": {
        **_of(
            elementary, "real", "imag", "angle", "iscomplex", "isreal", "isposinf", "isneginf", "sinc", "i0", "round", "nan_to_num",
        ),
        "around": elementary.round,
        "fix": lambda x, out=None: apply_ufunc("trunc", x),
        "astype": _astype,
    },
    "arrays and their types": {
        "asarray": _asarray,
        "copy": lambda a, order="K", subok=False: an_array(a),
        "zeros_like": _filled(0),
        "ones_like": _filled(1),
        "empty_like": _filled(0),
        "full_like": shaping.full_like,
        "shape": lambda a: an_array(a).shape,
        "ndim": lambda a: an_array(a).ndim,
        "size": lambda a, axis=None: an_array(a).size if axis is None else an_array(a).shape[axis],
        "result_type": lambda *operands: result_dtype(*operands),
        "can_cast": lambda from_, to, casting="safe": np.can_cast(an_array(from_).dtype, to, casting),
        "iscomplexobj": lambda x: an_array(x).type.complex,
        "isrealobj": lambda x: not an_array(x).type.complex,
    },
}  # fmt: skip
"""What can be traced, by NumPy's name under `numpy`, in the groups of the documentation.

Names that NumPy has not got are for formulas and methods.
"""


def numpys(name: str) -> Any:
    """NumPy's function of a name of `FUNCTIONS`, None if this NumPy has none."""
    if name == "sliding_window_view":
        return np.lib.stride_tricks.sliding_window_view
    module, _, function = name.rpartition(".")
    return getattr({"": np, "linalg": np.linalg, "fft": np.fft}[module], function, None)


@lru_cache(maxsize=1024)
def _places_of_out(name: str) -> Mapping[str, float]:
    """The options of NumPy's function that say what to write into, and where they are by position."""
    try:
        parameters = list(inspect.signature(numpys(name)).parameters.values())
    except (TypeError, ValueError):
        return {}
    alone = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    return {p.name: math.inf if p.kind in alone else k for k, p in enumerate(parameters) if p.name in ("out", "overwrite_input")}


def _as_numpys(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with results that share elements with its arguments where NumPy's do, and without out=."""

    @wraps(function)
    def apply(*args: Any, **options: Any) -> Any:
        for option, place in _places_of_out(name).items():
            given = args[int(place)] if place < len(args) else options.get(option)
            if not any(given is nothing for nothing in (None, False, np._NoValue)):
                raise UntraceableError(f"np.{name} with {option}= would write into an array; leave it out and use the result")
        return shared(name, function(*args, **options), args, options)

    return apply


FUNCTIONS: Mapping[str, Callable[..., Any]] = {k: _as_numpys(k, v) for group in GROUPS.values() for k, v in group.items()}
"""All of them."""

NOT_NUMPYS = frozenset({"cummax", "cummin", "logsumexp", "softmax", "log_softmax"})
"""Those that NumPy has not got: they are for formulas and for arrays' methods."""

ALIASES: Mapping[str, str] = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "pow": "power", "conj": "conjugate", "mod": "remainder", "true_divide": "divide",
    "bitwise_invert": "invert", "bitwise_not": "invert", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
}  # fmt: skip
"""Other names of ufuncs, NumPy's and the array API's."""


_BY_FUNCTION: dict[Any, Callable[..., Any]] = {}


CREATION: Mapping[Any, str] = {
    getattr(np, name): name
    for name in (
        "arange", "array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "empty", "eye", "full", "identity",
        "ones", "require", "tri", "zeros",
    )
}  # fmt: skip
"""Functions that make arrays of numbers. NumPy asks an array about them where it is given as like=."""


def call_function(function: Any, args: Sequence[Any], options: Mapping[str, Any], like: Array) -> Any:
    """What `like.__array_function__` does. Raises UnknownFunctionError for what has no counterpart."""
    if function in CREATION:
        name = CREATION[function]
        if not holds_arrays(args, options):
            found = function(*args, **options)
            constant = like.recorder.constant(found)
            return view_of(constant, constant, writable=False) if found is args[0] else shared(name, constant, (), {})
        if "array" in name:
            return shared(name if name == "array" else "asarray", _asarray(*args, **options), args, options)
    if not _BY_FUNCTION:
        _BY_FUNCTION.update((numpys(name), implementation) for name, implementation in FUNCTIONS.items())
        _BY_FUNCTION.pop(None, None)
    implementation = _BY_FUNCTION.get(function)
    if implementation is None:
        raise UnknownFunctionError(refusal(f"{function.__module__}.{function.__name__}".removeprefix("numpy."), "np."))
    return implementation(*args, **options)


def refusal(name: str, module: str = "") -> str:
    """Why a function of that name cannot be traced, and what to write instead."""
    instead = REFUSED.get(name)
    hint = f"; {instead}" if instead else did_you_mean(name, list(FUNCTIONS))
    return f"{module}{name} cannot be traced{hint} (docs/build.md lists what can)"


def traced(name: str) -> Callable[..., Any] | None:
    """The function of that name or alias, of NumPy's or of the array API's."""
    return FUNCTIONS.get(ALIASES.get(name, name))


def holds_arrays(args: Sequence[Any], options: Mapping[str, Any]) -> bool:
    """Whether something traced is among the arguments of a call."""
    return bool(arrays_in([*args, *options.values()]))
