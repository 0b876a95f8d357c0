"""Changing traced arrays: a write through a view reaches all arrays that share its elements, as in NumPy.

A graph has values and no memory. So an array that changes gets another value, and so do those that it is a view of: each view knows
the array that it was made of, its parent, and by a `Lens` what it shows of that, and what becomes of the parent if this is
replaced. Views that were not written through are computed anew from their parents where they are read again. Nothing of this costs
anything as long as nothing is changed: an array that has no views knows its value only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.shares import Lens, Root, Share
from tidu_cli.adapters.numpy.errors import UntraceableError, place_of_caller
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
    share = x.share
    if share is not None:
        x.value = _current(share)
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
            found = share.lens.get(Array(root.recorder, _current(share.parent), share.parent.type))
            share.value, share.seen = root.recorder.value_of(found), root.version
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


def view_of(x: Array, found: Array, lens: Lens, *, writable: bool = True) -> Array:
    """An array with the value of `found`, which shows what `lens` does of x. Numbers have no views that can be changed."""
    if x.share is None and not x.type.rank:
        view = own(found)
        if not writable:
            rooted(view).writable = False
        return view
    parent = rooted(x)
    value, root = current(found), parent.root
    view = Array(found.recorder, value, found.type)
    view.share = Share(root, value, found.type, root.version, parent, lens, writable and parent.writable)
    return view


LARGEST = 1 << 24
"""How arrays of more elements lie in memory is not known: NumPy would have to make them."""


def layout(share: Share) -> Any:
    """An empty NumPy array that lies in memory as this array of NumPy's would; None if that is not known."""
    if share.layout is None:
        if share.parent is not None and share.lens is not None:
            whole = layout(share.parent)
            share.layout = None if whole is None else share.lens.laid(whole)
        elif (share.root.contiguous or share.type.rank < 2) and share.type.size <= LARGEST:
            share.layout = blank(share.type)
    return share.layout


def is_view(shown: Any, whole: Any) -> bool:
    """Whether an empty NumPy array shows another one; of what has no elements it makes no difference."""
    return not whole.size or np.may_share_memory(shown, whole)


def blank(type_: TensorType) -> Any:
    """An empty NumPy array of a type's shape, as C lays it out. Complex numbers have parts; nothing else is asked of elements."""
    return np.empty(type_.shape, np.complex64 if type_.complex else bool)


def in_order(x: Array) -> bool:
    """Whether NumPy is known to have the elements of x in memory as C has."""
    if x.share is None or x.type.rank < 2:
        return True
    found = layout(x.share)
    return found is not None and bool(found.flags.c_contiguous)


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
    root, found = share.root, Array(x.recorder, value, x.type)
    chain = [(share, value)]
    while share.parent is not None and share.lens is not None and not root.doubt and not share.doubt:
        parent = share.parent
        whole = Array(root.recorder, _current(parent), parent.type)
        found = share.lens.put(whole, found)
        chain.append((parent, found.recorder.open[-1].value_of(found)))
        share = parent
    root.version += 1
    root.doubt = root.doubt or share.doubt
    root.place = place_of_caller() if root.doubt else ""
    for part, number in chain:
        part.value, part.seen = number, root.version
    x.value = value
