"""The functions of NumPy and of the array API that have a counterpart in graphs, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.build import contracting, indexing, reducing, shaping
from tidu_cli.build.array import Array, Operand, lift, result_dtype
from tidu_cli.build.elementwise import UFUNCS, apply_ufunc, call_ufunc
from tidu_cli.build.recorder import arrays_in
from tidu_cli.build.trouble import UnknownFunctionError
from tidu_cli.errors import did_you_mean


def _angle(x: Operand, deg: bool = False) -> Array:
    z = shaping.an_array(x)
    real, imag = _real(z), _imag(z)
    found: Array = apply_ufunc("arctan2", imag, real)
    return found * (180 / np.pi) if deg else found


def _real(x: Operand) -> Array:
    z = shaping.an_array(x)
    return z.emit("real") if z.type.complex else z


def _imag(x: Operand) -> Array:
    z = shaping.an_array(x)
    return z.emit("imag") if z.type.complex else z.constant(z.dtype.type(0)).broadcast(z.shape)


def _sinc(x: Operand) -> Array:
    turned = shaping.an_array(x) * np.pi
    zero = turned == 0
    safe = shaping.where(zero, 1.0, turned)
    return shaping.where(zero, 1 - turned * turned / 6, apply_ufunc("sin", safe) / safe)


def _nan_to_num(x: Operand, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    a = shaping.an_array(x)
    if a.type.dtype not in ("f16", "f32", "f64"):
        return a
    bounds = np.finfo(a.dtype)
    a = shaping.where(a == np.inf, a.dtype.type(bounds.max if posinf is None else posinf), a)
    a = shaping.where(a == -np.inf, a.dtype.type(bounds.min if neginf is None else neginf), a)
    return shaping.where(a != a, a.dtype.type(nan), a)


def _polyval(p: Operand, x: Operand) -> Array:
    like = arrays_in([p, x])[0]
    coefficients = lift(p, like)
    found: Any = coefficients[0] * 0
    for c in coefficients:
        found = found * x + c
    return shaping.an_array(found)


def _astype(x: Operand, dtype: Any, /, *, copy: bool = True, device: object = None) -> Array:
    return shaping.an_array(x).convert(np.dtype(dtype))


def _asarray(x: Operand, dtype: Any = None, *args: object, **options: object) -> Array:
    found = shaping.an_array(x)
    return found if dtype is None else found.convert(np.dtype(dtype))


def _filled(value: Any) -> Callable[..., Array]:
    return lambda x, dtype=None, order="K", subok=True, shape=None, **options: shaping.full_like(x, value, dtype, shape=shape)


def _ufunc(name: str) -> Callable[..., Any]:
    return lambda *operands, **options: call_ufunc(getattr(np, name), "__call__", operands, options)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{name: _ufunc(name) for name in UFUNCS},
    **{name: getattr(shaping, name) for name in (
        "reshape", "ravel", "transpose", "swapaxes", "matrix_transpose", "moveaxis", "rollaxis", "expand_dims", "squeeze",
        "broadcast_to", "broadcast_arrays", "atleast_1d", "atleast_2d", "atleast_3d", "concatenate", "stack", "vstack", "hstack",
        "dstack", "column_stack", "append", "array_split", "split", "unstack", "tile", "repeat", "flip", "roll", "pad", "tril",
        "triu", "diagonal", "diag", "diff", "where", "meshgrid", "full_like",
    )},
    **{name: getattr(contracting, name) for name in (
        "matmul", "dot", "inner", "outer", "vdot", "vecdot", "matvec", "vecmat", "tensordot", "trace", "cross", "kron", "einsum",
    )},
    **{name: getattr(reducing, name) for name in (
        "sum", "prod", "max", "min", "all", "any", "count_nonzero", "mean", "var", "std", "average", "ptp", "argmax", "argmin",
        "cumsum", "cumprod", "cummax", "cummin", "logsumexp", "softmax", "log_softmax", "sort", "argsort", "median", "clip",
        "round", "nansum", "nanprod", "nanmean",
    )},
    "select": shaping.choose,
    "amax": reducing.max,
    "amin": reducing.min,
    "around": reducing.round,
    "fix": lambda x, out=None: apply_ufunc("trunc", x),
    "permute_dims": shaping.transpose,
    "concat": shaping.concatenate,
    "cumulative_sum": lambda x, /, *, axis=None, **options: reducing.cumsum(x, axis, **options),
    "cumulative_prod": lambda x, /, *, axis=None, **options: reducing.cumprod(x, axis, **options),
    "flipud": lambda x: shaping.flip(x, 0),
    "fliplr": lambda x: shaping.flip(x, 1),
    "take": indexing.taken,
    "take_along_axis": indexing.taken_along,
    "real": _real,
    "imag": _imag,
    "angle": _angle,
    "sinc": _sinc,
    "nan_to_num": _nan_to_num,
    "polyval": _polyval,
    "astype": _astype,
    "asarray": _asarray,
    "copy": lambda x, order="K", subok=False: shaping.an_array(x),
    "zeros_like": _filled(0),
    "ones_like": _filled(1),
    "empty_like": _filled(0),
    "shape": lambda x: shaping.an_array(x).shape,
    "ndim": lambda x: shaping.an_array(x).ndim,
    "size": lambda x, axis=None: shaping.an_array(x).size if axis is None else shaping.an_array(x).shape[axis],
    "result_type": lambda *operands: result_dtype(*operands),
    "iscomplexobj": lambda x: shaping.an_array(x).type.complex,
    "isrealobj": lambda x: not shaping.an_array(x).type.complex,
    "linalg.norm": contracting.norm,
    "linalg.vector_norm": contracting.vector_norm,
    "linalg.matrix_norm": lambda x, /, *, keepdims=False, ord="fro": contracting.norm(x, ord, (-2, -1), keepdims),
    "linalg.multi_dot": contracting.multi_dot,
    "linalg.matrix_power": contracting.matrix_power,
    "linalg.matmul": contracting.matmul,
    "linalg.outer": contracting.outer,
    "linalg.tensordot": lambda x, y, /, *, axes=2: contracting.tensordot(x, y, axes),
    "linalg.vecdot": lambda x, y, /, *, axis=-1: contracting.vecdot(x, y, axis),
    "linalg.trace": lambda x, /, *, offset=0, dtype=None: contracting.trace(x, offset, -2, -1, dtype),
    "linalg.diagonal": lambda x, /, *, offset=0: shaping.diagonal(x, offset, -2, -1),
    "linalg.cross": lambda x, y, /, *, axis=-1: contracting.cross(x, y, axis),
    "linalg.matrix_transpose": shaping.matrix_transpose,
}  # fmt: skip
"""What can be traced, by NumPy's name under `numpy`. Names that NumPy has not got are for formulas and methods."""

ALIASES: Mapping[str, str] = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "pow": "power", "conj": "conjugate", "mod": "remainder", "true_divide": "divide",
    "bitwise_invert": "invert", "bitwise_not": "invert", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
}  # fmt: skip
"""Other names of ufuncs, NumPy's and the array API's."""


def _by_function() -> dict[Any, Callable[..., Any]]:
    found: dict[Any, Callable[..., Any]] = {}
    for name, implementation in FUNCTIONS.items():
        module, _, function = name.rpartition(".")
        numpys = getattr(np.linalg if module else np, function, None)
        if numpys is not None:
            found[numpys] = implementation
    return found


_BY_FUNCTION: dict[Any, Callable[..., Any]] = {}


def call_function(function: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """What `__array_function__` does. Raises UnknownFunctionError for what has no counterpart."""
    if not _BY_FUNCTION:
        _BY_FUNCTION.update(_by_function())
    implementation = _BY_FUNCTION.get(function)
    if implementation is None:
        module = function.__module__.replace("numpy", "np", 1)
        hint = did_you_mean(function.__name__, list(FUNCTIONS))
        raise UnknownFunctionError(f"{module}.{function.__name__} cannot be traced{hint} (docs/build.md lists what can)")
    return implementation(*args, **options)


class Namespace:
    """What `__array_namespace__` gives: the array API's names. Without an array that is traced they are NumPy's."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name == "linalg" and not self._prefix:
            return Namespace("linalg.")
        numpys = getattr(np.linalg if self._prefix else np, name, None) if not name.startswith("_") else None
        traced = FUNCTIONS.get(self._prefix + ALIASES.get(name, name))
        if numpys is None or (traced is None and callable(numpys) and not isinstance(numpys, type) and name not in _CREATION):
            hint = did_you_mean(name, [k for k in FUNCTIONS if "." not in k])
            raise UnknownFunctionError(
                f"the array API's {self._prefix}{name} cannot be traced{hint} (docs/build.md lists what can)"
            )
        if traced is None:
            return numpys

        def function(*args: Any, **options: Any) -> Any:
            return traced(*args, **options) if arrays_in([*args, *options.values()]) else numpys(*args, **options)

        function.__name__ = name
        return function


_CREATION = frozenset({"arange", "empty", "eye", "finfo", "full", "iinfo", "isdtype", "linspace", "ones", "zeros", "can_cast"})

NAMESPACE = Namespace()
