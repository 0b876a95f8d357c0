"""The functions of Python's `math` of traced values: NumPy's, which give numbers of Python's.

Where `math` raises, as for the root of a negative number, a graph has NaN or an infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.buffers.memory import resolved
from tidu_cli.adapters.numpy.errors import UntraceableError

_RENAMED = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2",
    "atanh": "arctanh", "pow": "float_power", "fabs": "absolute",
}  # fmt: skip
_SAME = (
    "cbrt", "copysign", "cos", "cosh", "degrees", "exp", "exp2", "expm1", "fmod", "isfinite", "isinf", "isnan", "log10", "log1p",
    "log2", "radians", "sin", "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
_WHOLE = ("ceil", "floor", "trunc")
_SPECIAL = {"erf": "erf", "erfc": "erfc", "gamma": "gamma", "lgamma": "gammaln"}


def _numbers(name: str, args: Any) -> list[Any]:
    """Arguments as floats. Raises TypeError for what is no number."""
    found = []
    for x in resolved(args):
        if isinstance(x, Array):
            if x.shape:
                raise TypeError(f"math.{name} of an array of {x.type}; write np.{_RENAMED.get(name, name)}")
            if x.type.complex:
                raise TypeError(f"math.{name} of a complex number; write np.{_RENAMED.get(name, name)}")
            x = x.convert("f64")
        found.append(x if isinstance(x, Array) else float(x))
    return found


def _of_python(x: Any) -> Any:
    """A result as a number of Python's, whose dtype gives way."""
    weak = {"f": float, "i": int}.get(x.dtype.kind)
    return Array(x.recorder, x.value, x.type, weak) if isinstance(x, Array) else x


def _function(name: str, ufunc: Any) -> Callable[..., Any]:
    return lambda *args: _of_python(ufunc(*_numbers(name, args)))


def _whole(name: str, ufunc: Any) -> Callable[..., Any]:
    return lambda x: _of_python(ufunc(*_numbers(name, (x,))).astype(np.int64))


def _special(name: str, function: str) -> Callable[..., Any]:
    def apply(x: Any) -> Any:
        from scipy import special  # type: ignore[import-untyped]  # slow to import, and rarely needed

        return _of_python(getattr(special, function)(*_numbers(name, (x,))))

    return apply


def _log(x: Any, *base: Any) -> Any:
    found = [np.log(v) for v in _numbers("log", (x, *base))]
    return _of_python(found[0] / found[1] if base else found[0])


def _hypot(*args: Any) -> Any:
    numbers = _numbers("hypot", args)
    return _of_python(np.hypot(*numbers) if len(numbers) == 2 else np.sqrt(sum(x * x for x in numbers)))


def _dist(p: Any, q: Any) -> Any:
    return _hypot(*(a - b for a, b in zip(p, q, strict=True)))


def _fsum(values: Any) -> Any:
    return _of_python(sum(_numbers("fsum", list(values)), 0.0))


def _isclose(a: Any, b: Any, *, rel_tol: Any = 1e-9, abs_tol: Any = 0.0) -> Any:
    raise UntraceableError(
        "math.isclose needs values, which a graph does not have yet; write np.isclose, and np.where for branches"
    )


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{name: _function(name, getattr(np, name)) for name in _SAME},
    **{name: _function(name, getattr(np, numpys)) for name, numpys in _RENAMED.items()},
    **{name: _whole(name, getattr(np, name)) for name in _WHOLE},
    **{name: _special(name, function) for name, function in _SPECIAL.items()},
    "log": _log,
    "hypot": _hypot,
    "dist": _dist,
    "fsum": _fsum,
    "isclose": _isclose,
}
"""By the names of `math`."""
