"""What a traced mask selects, x[mask]: an array whose length is not known, so that only elementwise functions of it are recorded.

They are recorded of all elements of x, and what they give is of use where it is assigned to the elements that the same mask
selects: `y[mask] = np.sqrt(x[mask])`, `y[mask] += 1`. Elements that are not selected are replaced before they enter a function
whose value or derivative may not be finite: the derivative of a choice is a product with 0, and 0 times infinity is not 0.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.storage import own
from tidu_cli.adapters.numpy.errors import UntraceableError, place_of_caller

_FINITE = frozenset({"add", "subtract", "negative", "positive", "conjugate", "logical_and", "logical_or", "logical_not", "less",
                     "less_equal", "greater", "greater_equal", "equal", "not_equal", "invert", "maximum", "minimum"})  # fmt: skip
"""Functions that are harmless wherever they are taken."""

_HARMLESS = {"arccosh": 2, "arcsin": 0, "arccos": 0, "arctanh": 0}
"""Where functions and their derivatives are finite; 1 for all others."""


def masked_axes(x: Array, index: Any) -> tuple[Any, int] | None:
    """The mask and the axis of x where it begins, for an index that has one mask, and besides takes axes whole; None for others."""
    entries = list(index) if isinstance(index, tuple) else [index]
    masks = [k for k, e in enumerate(entries) if _is_mask(e)]
    traced = any(isinstance(entries[k], Array) for k in masks)
    whole = all(k in masks or e is Ellipsis or (isinstance(e, slice) and e == slice(None)) for k, e in enumerate(entries))
    if len(masks) != 1 or not whole:
        if traced:
            raise UntraceableError(
                "a mask that is traced stands alone in an index, or beside ':' and '...'; write np.where(mask, new, x)"
            )
        return None
    k = masks[0]
    mask = entries[k] if isinstance(entries[k], Array) else np.asarray(entries[k])
    dots = [j for j, e in enumerate(entries) if e is Ellipsis]
    axis = k if not dots or dots[0] > k else x.ndim - mask.ndim - (len(entries) - 1 - k)
    if len(dots) > 1 or axis < 0 or tuple(mask.shape) != x.shape[axis : axis + mask.ndim]:
        raise IndexError(f"boolean index did not match indexed array: a mask of shape {list(mask.shape)} for {x.type}")
    return mask, axis


def _is_mask(e: Any) -> bool:
    if isinstance(e, Array):
        return e.type.dtype == "bool"
    if isinstance(e, list):
        return bool(e) and np.asarray(e, object).dtype == object and all(isinstance(i, bool | np.bool_) for i in e)
    return isinstance(e, bool | np.bool_) or (isinstance(e, np.ndarray) and e.dtype == bool)


class Selection(np.lib.mixins.NDArrayOperatorsMixin):
    """x[mask], of all elements of x. `mask` is traced and is about the axes of x from `axis` on."""

    __array_priority__ = 2000

    def __init__(self, full: Array, mask: Array, axis: int) -> None:
        self._full, self._mask, self._axis = own(full), own(mask), axis
        self.place = place_of_caller()

    def put(self, x: Array, index: Any) -> Array:
        """x with what the index selects replaced by this. Raises UntraceableError unless it selects the same."""
        masked = masked_axes(x, index)
        if masked is None or not isinstance(masked[0], Array) or not self._as(masked[0], masked[1], x.shape):
            raise self.refusal(
                "it can be assigned to what the same mask selects, y[mask] = f(x[mask]), of an array of one shape with x"
            )
        numpy = x.recorder.numpy
        chosen: Array = numpy["over"](self._mask, x.shape, self._axis)
        return chosen.emit("select_n", x, numpy["converted"](self._full, x))

    def _as(self, mask: Array, axis: int, shape: tuple[int, ...]) -> bool:
        value_of = mask.recorder.open[-1].value_of
        return value_of(mask) == value_of(self._mask) and axis == self._axis and shape == self._full.shape

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        options.pop("out", None)  # of operators in place: the selection is a copy of elements, which nothing else shows
        if method != "__call__" or ufunc.signature is not None or options:
            raise self.refusal()
        numpy, given = self._full.recorder.numpy, []
        for x in inputs:
            if isinstance(x, Selection):
                if not self._as(x._mask, x._axis, x._full.shape):
                    raise self.refusal("and two such arrays are taken together if one mask selects both, of arrays of one shape")
                x = x._full
                if ufunc.__name__ not in _FINITE:
                    harmless = x.constant(x.dtype.type(_HARMLESS.get(ufunc.__name__, 1))).broadcast(x.shape)
                    x = numpy["over"](self._mask, x.shape, self._axis).emit("select_n", harmless, x)
            elif np.ndim(x):
                raise self.refusal("and arrays are taken together with it if the same mask selects from them: x[mask] * y[mask]")
            given.append(x)
        found = numpy["ufunc"](ufunc, method, given, {})
        parts = tuple(Selection(x, self._mask, self._axis) for x in (found if isinstance(found, tuple) else (found,)))
        return parts if isinstance(found, tuple) else parts[0]

    def astype(self, dtype: Any, **options: Any) -> Selection:
        """This as another dtype."""
        return Selection(self._full.astype(dtype), self._mask, self._axis)

    def copy(self) -> Selection:
        """This: nothing else shows its elements."""
        return Selection(self._full, self._mask, self._axis)

    def refusal(
        self, more: str = "it can be assigned, y[mask] = x[mask]; for all else write np.where(mask, x, 0)"
    ) -> UntraceableError:
        """Why it cannot be used so."""
        return UntraceableError(f"indexing with a mask that is traced gives an array of unknown shape; {more}")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.refusal()

    def _refuse(self, *args: object, **options: object) -> NoReturn:
        raise self.refusal()

    __array__ = __array_function__ = __len__ = __iter__ = __getitem__ = __setitem__ = __bool__ = __float__ = __int__ = _refuse

    def __repr__(self) -> str:
        return f"<a traced mask's selection of {self._full.type}>"
