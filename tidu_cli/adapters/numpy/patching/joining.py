"""What of NumPy's is neither function nor method, with traced values: np.r_, np.c_, np.vectorize and np.ndenumerate.

And functions that call a function of users', with traced arrays.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import MAX_STEPS
from tidu_cli.adapters.numpy.buffers.buffer import Buffer, wrapped
from tidu_cli.adapters.numpy.buffers.memory import holds_traced
from tidu_cli.adapters.numpy.errors import UntraceableError
from tidu_cli.adapters.numpy.patching.creating import assembled, nested


def joined(numpys: Any, key: Any) -> Any:
    """np.r_[key] or np.c_[key]."""
    if not holds_traced(key):
        return wrapped(numpys[key])
    parts = [numpys[k] if isinstance(k, slice) else k for k in (key if isinstance(key, tuple) else (key,))]
    said = [k for k in parts if isinstance(k, str)]
    given = [k for k in parts if not isinstance(k, str)]
    return assembled(lambda values, _: numpys[(*said, *values)], given)


def enumerated(numpys: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """np.ndenumerate: the elements of an array with their places."""
    if options or len(args) != 1 or not holds_traced(args):
        return numpys(*args, **options)
    x = args[0] if hasattr(args[0], "shape") else nested(args[0])  # itself: changes while it goes on are seen
    return ((k, x[k]) for k in np.ndindex(*x.shape))


def along_axis(numpys: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """np.apply_along_axis: the results for all rows along an axis, in the place of that axis."""
    if not holds_traced((args, options)):
        return numpys(*args, **options)
    given = dict(zip(("func1d", "axis", "arr"), args, strict=False))
    function, axis, x = ({**given, **options}[k] for k in ("func1d", "axis", "arr"))
    named = {k: v for k, v in options.items() if k not in ("func1d", "axis", "arr")}
    x = x if hasattr(x, "shape") else nested(x)
    axis = range(x.ndim)[axis]
    rows = np.moveaxis(x, axis, -1)
    shape = rows.shape[:-1]
    if not math.prod(shape) or math.prod(shape) > MAX_STEPS:
        raise UntraceableError(f"np.apply_along_axis of {math.prod(shape):,} rows; write it with whole arrays")
    found = nested([function(rows[k], *args[3:], **named) for k in np.ndindex(*shape)])
    found = found.reshape((*shape, *found.shape[1:]))
    return np.moveaxis(found, range(len(shape), found.ndim), range(axis, axis + found.ndim - len(shape)))


def piecewise(numpys: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """np.piecewise: what each function gives of the elements for which its condition holds; later ones win."""
    if len(args) < 3 or not holds_traced((args, options)):
        return numpys(*args, **options)
    x, conditions, functions, *rest = args
    x = x if hasattr(x, "shape") else nested(x)
    first = conditions[0] if isinstance(conditions, list | tuple) else conditions
    if not isinstance(conditions, list | tuple) and np.ndim(conditions) <= x.ndim:
        conditions = [conditions]
    elif x.ndim and not np.ndim(first):
        conditions = [nested(list(conditions))]
    conditions = list(conditions)
    if len(functions) == len(conditions) + 1:
        conditions.append(~functools.reduce(operator.or_, conditions))
    if len(functions) != len(conditions):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} functions are expected"
        )
    y = np.zeros_like(x)
    for condition, function in zip(conditions, functions, strict=True):
        y[condition] = function(x[condition], *rest, **options) if callable(function) else function
    return y


def vectorized(self: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """What np.vectorize calls for each element, called so. Raises UntraceableError for its options."""
    if options or self.signature is not None or self.excluded:
        raise UntraceableError(
            "np.vectorize with signature=, excluded= or named arguments cannot be traced; write a loop over the rows and np.stack"
        )
    arrays = [x if isinstance(x, Buffer) or hasattr(x, "recorder") else np.asarray(x) for x in args]
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    if math.prod(shape) > MAX_STEPS:
        raise UntraceableError(
            f"np.vectorize of {math.prod(shape):,} elements; the most are {MAX_STEPS:,}: write it with whole arrays"
        )
    full = [np.broadcast_to(x, shape) for x in arrays]
    results = [self.pyfunc(*(_element(x, k) for x in full)) for k in np.ndindex(*shape)]
    if not results:
        return self(*(np.zeros(x.shape, x.dtype) for x in arrays))
    if not isinstance(results[0], tuple):
        return _of_results(results, shape, self.otypes, 0)
    return tuple(_of_results([r[k] for r in results], shape, self.otypes, k) for k in range(len(results[0])))


def _element(x: Any, k: tuple[int, ...]) -> Any:
    found = x[k]
    return found.item() if isinstance(found, np.generic) else found


def _of_results(results: Sequence[Any], shape: tuple[int, ...], types: str | None, k: int) -> Any:
    """Results as one array, of the dtype that is asked for, or that the first of them has."""
    first = results[0]
    dtype = np.dtype(types[k]) if types else first.dtype if hasattr(first, "dtype") else np.asarray(first).dtype
    return nested(list(results), dtype).reshape(shape)
