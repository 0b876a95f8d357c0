"""Changing traced arrays: a write through a view reaches all arrays that share its elements, as in NumPy.

A graph has values and no memory. So an array that changes gets another value, and so do those that it is a view of: each view knows
the array that it was made of, its parent, and by a `Lens` what it shows of that, and what becomes of the parent if this is
replaced. Views that were not written through are computed anew from their parents where they are read again. Nothing of this costs
anything as long as nothing is changed: an array that has no views knows its value only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.shares import Lens, Root, Share
from tidu_cli.adapters.numpy.errors import UntraceableError, place_of_caller
from tidu_cli.graph.open_sizes import has_open_size
from tidu_cli.graph.types import TensorType

A_NUMBER = "a number would still have its old value, and an array the new one; write x = x + y there for x += y"
"""Why it is not certain whether something without axes shares elements: an input may be either."""

A_COPY = "it may be a view or a copy of it, which depends on how NumPy has laid that out in memory; write x = x.copy() before it"
"""Why it is not certain whether a reshaped array shares elements."""

AN_INDEX = (
    "x[i] shows elements of x if i is a number, and copies them if it is an array without axes, and of an input it is not known "
    "which; write x[i].copy(), or change x itself"
)
"""Why it is not certain whether what a traced integer takes shares elements."""


def current(x: Array) -> int:
    """The number of an array's value as it is now. Raises UntraceableError if it is not certain whether that has been changed."""
    if x.share is not None:
        x.value = _current(x.share)
    return x.value


def _current(share: Share) -> int:
    root = share.root
    if share.seen != root.version:
        doubt = root.doubt or share.doubt
        if doubt or share.parent is None or share.lens is None:
            what = "a value" if not share.type.rank else "an array"
            place = f" at {root.place}" if root.place else ""
            raise UntraceableError(f"{what} of {share.type} that was changed in place{place} is used again: {doubt}")
        with _recording(root.recorder):
            shown = share.lens.get(Array(root.recorder, _current(share.parent), share.parent.type))
            share.value, share.seen = root.recorder.value_of(shown), root.version
    return share.value


@contextmanager
def _recording(recorder: Any) -> Iterator[None]:
    """Within the block this recording is the innermost one: the value of an array is recorded where the array is."""
    inner = recorder.open[recorder.open.index(recorder) + 1 :]
    del recorder.open[len(recorder.open) - len(inner) :]
    try:
        yield
    finally:
        recorder.open += inner


def own(x: Array) -> Array:
    """An array of its own with the value of x, in the recording that goes on."""
    recorder = x.recorder.open[-1]
    return Array(recorder, recorder.value_of(x), x.type)


def rooted(x: Array, contiguous: bool | None = True, doubt: str = "") -> Share:
    """The share of x, which has one from now on: of elements of its own, if it had none."""
    if x.share is None:
        x.share = Share(Root(x.recorder, contiguous, doubt=doubt), x.value, x.type)
    return x.share


def view_of(x: Array, shown: Array, lens: Lens, *, writable: bool = True) -> Array:
    """An array with the value of `shown`, what `lens` shows of x. Numbers have no views that can be changed."""
    if x.share is None and not x.type.rank:
        view = own(shown)
        if not writable:
            rooted(view).writable = False
        return view
    parent = rooted(x)
    value, root = current(shown), parent.root
    view = Array(shown.recorder, value, shown.type)
    view.share = Share(root, value, shown.type, root.version, parent, lens, writable and parent.writable)
    return view


LARGEST = 1 << 24
"""How arrays of more elements lie in memory is not known: NumPy would have to make them."""


def layout(share: Share) -> Any:
    """An empty NumPy array that lies in memory as this array of NumPy's would; None if that is not known."""
    if share.layout is None:
        if share.parent is not None and share.lens is not None:
            whole = layout(share.parent)
            share.layout = None if whole is None else share.lens.laid(whole)
        elif (share.root.contiguous or share.type.rank < 2) and math.prod(_in_memory(share.type)) <= LARGEST:
            share.layout = blank(share.type)
    return share.layout


def is_view(shown: Any, whole: Any) -> bool:
    """Whether an empty NumPy array shows another one; of what has no elements it makes no difference."""
    return not whole.size or np.may_share_memory(shown, whole)


def blank(type_: TensorType) -> Any:
    """An empty NumPy array of a type's shape, as C lays it out. Complex numbers have parts; nothing else is asked of elements."""
    return np.empty(_in_memory(type_), np.complex64 if type_.complex else bool)


def _in_memory(type_: TensorType) -> tuple[int, ...]:
    """A type's shape, with numbers for open sizes."""
    if not has_open_size(type_):
        return type_.shape
    from tidu_cli.adapters.numpy.arrays.sizes import standing  # which graphs without open sizes do without

    return standing(type_.shape)  # type: ignore[no-any-return]


def in_order(x: Array) -> bool:
    """Whether NumPy is known to have the elements of x in memory as C has."""
    if x.share is None or x.type.rank < 2:
        return True
    laid = layout(x.share)
    return laid is not None and bool(laid.flags.c_contiguous)


def require_writable(x: Array, what: str) -> None:
    """Raises UntraceableError for what cannot be changed by the statement `what`: numbers, read-only views, arrays of outside."""
    if x.share is None and not x.type.rank:
        raise UntraceableError(f"{what} of a number ({x.type}), which NumPy cannot change; write x = new")
    recorder: Any = x.recorder if x.share is None else x.share.root.recorder
    if recorder is not recorder.open[-1]:
        raise UntraceableError(
            f"{what} in the function of a loop or branch would change an array of outside; let the function take it and return it "
            "(carry it), or change a copy there: x = x.copy()"
        )
    if x.share is not None and not x.share.writable:
        reason = x.share.doubt or "it is read-only, as it shows elements of another; write x = x.copy() before"
        raise UntraceableError(f"{what} of an array: {reason}")


def write(x: Array, new: Array) -> None:
    """Have x, which is writable, show `new`, which is of its type; and so have all that share these elements."""
    value = new.recorder.open[-1].value_of(new)
    share = x.share
    if share is None:
        x.value = value
        return
    root, shown = share.root, Array(x.recorder, value, x.type)
    chain = [(share, value)]
    while share.parent is not None and share.lens is not None and not root.doubt and not share.doubt:
        parent = share.parent
        whole = Array(root.recorder, _current(parent), parent.type)
        shown = share.lens.put(whole, shown)
        chain.append((parent, shown.recorder.open[-1].value_of(shown)))
        share = parent
    root.version += 1
    root.doubt = root.doubt or share.doubt
    root.place = place_of_caller() if root.doubt else ""
    for part, number in chain:
        part.value, part.seen = number, root.version
    x.value = value


# What a traced mask selects, x[mask]: an array whose length is not known, so that only elementwise functions of it are recorded.
#
# They are recorded of all elements of x, and what they give is of use where it is assigned to the elements that the same mask
# selects: `y[mask] = np.sqrt(x[mask])`, `y[mask] += 1`. Elements that are not selected are replaced before they enter a function
# whose value or derivative may not be finite: the derivative of a choice is a product with 0, and 0 times infinity is not 0.


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
        results = numpy["ufunc"](ufunc, method, given, {})
        parts = tuple(Selection(x, self._mask, self._axis) for x in (results if isinstance(results, tuple) else (results,)))
        return parts if isinstance(results, tuple) else parts[0]

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
