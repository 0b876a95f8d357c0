"""Which results of NumPy's functions share elements with their arguments, and in which order NumPy has them in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.lenses import Call, Item, Part, Same
from tidu_cli.adapters.numpy.arrays.operands import arrays_in
from tidu_cli.adapters.numpy.arrays.shares import Lens, Share
from tidu_cli.adapters.numpy.arrays.storage import A_COPY, AN_INDEX, in_order, is_view, layout, own, rooted, view_of
from tidu_cli.frozen import replace

VIEWS = frozenset(
    {"array_split", "atleast_1d", "atleast_2d", "atleast_3d", "dsplit", "expand_dims", "flip", "fliplr", "flipud", "hsplit",
     "linalg.matrix_transpose", "matrix_transpose", "moveaxis", "permute_dims", "ravel", "reshape", "rollaxis", "rot90",
     "split", "squeeze", "swapaxes", "transpose", "unstack", "vsplit"}
)  # fmt: skip
"""Functions whose results are views in NumPy; of those that are reshaped it depends on the order in memory."""

READ_ONLY = frozenset({"broadcast_arrays", "broadcast_to", "diagonal", "linalg.diagonal", "meshgrid", "sliding_window_view"})
"""Those whose results cannot be changed, or had better not be, as one element stands in several places."""

OPERANDS = frozenset({"asanyarray", "asarray", "ascontiguousarray", "astype", "diff", "linalg.matrix_power", "require"})
"""Functions that may give an operand back."""

GIVING_BACK = frozenset({"atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "squeeze"})
"""Functions that give operands back which have the shape already."""

SHARING = VIEWS | READ_ONLY | OPERANDS | {"diag", "einsum", "imag", "nan_to_num", "real"}
"""Functions whose results may share elements with their arguments."""

RESHAPING = frozenset({"ascontiguousarray", "ravel", "require", "reshape"})
"""Functions that copy what they cannot show as it lies in memory."""

_EACH = frozenset({"atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "meshgrid"})
"""Functions that give a result for each argument."""

WITHOUT_AXES = frozenset(
    {"arange", "array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "copy", "cov", "cross", "empty",
     "empty_like", "full", "full_like", "i0", "linalg.cross", "linalg.tensordot", "linalg.tensorsolve", "ones", "ones_like",
     "require", "resize", "roll", "select", "tensordot", "tile", "where", "zeros", "zeros_like"}
)  # fmt: skip
"""Functions that in NumPy give an array even where it has no axes. All others then give a number, which cannot be changed."""

OTHER_ORDER = frozenset({"asfortranarray", "linspace"})
"""Functions whose results NumPy may lay out otherwise than C, though it has all arguments as C has."""


def shared(name: str, found: Any, args: Sequence[Any], options: Mapping[str, Any], numpys: Callable[..., Any] | None = None) -> Any:
    """What the function of that name gave, as NumPy's shares elements with its arguments: views, or arrays of their own.

    `numpys` is NumPy's function; None stands for others, whose results have elements of their own.
    """
    operands = arrays_in([*args, *options.values()])
    model = operands[0] if operands else None
    call = Call(name, numpys, args, options, model) if numpys is not None and model is not None else None
    return _shared(name, found, operands, call)


def _shared(name: str, found: Any, operands: Sequence[Array], call: Call | None) -> Any:
    if isinstance(found, list | tuple):
        parts = []
        for k, x in enumerate(found):
            one = call.of(k) if call is not None else None
            if one is not None and name in _EACH and len(one.args) > 1:
                given = one.args[k]
                one = replace(one, model=given) if isinstance(given, Array) else None
            parts.append(_shared(name, x, operands, one))
        return type(found)(*parts) if hasattr(found, "_fields") else type(found)(parts)
    if not isinstance(found, Array):
        return found
    lens = _lens(name, found, call) if call is not None else None
    if lens is None or call is None:
        return _own(name, found, operands)
    model = call.model
    read_only = not isinstance(lens, Same) and (name in READ_ONLY or (name == "diag" and found.type.rank == 1))
    if name in RESHAPING and model.share is not None and found.type.rank + model.type.rank > 1:
        whole = layout(model.share)
        if whole is None and (isinstance(lens, Same) or [n for n in found.shape if n != 1] != [n for n in model.shape if n != 1]):
            copy, root = own(found), model.share.root
            root.doubt = A_COPY
            copy.share = Share(root, copy.value, copy.type, root.version)
            return copy
        if whole is not None and not is_view(call.laid(whole), whole):
            return _own(name, found, ())
    if isinstance(lens, Same) and name != "nan_to_num" and model.type.rank:
        return model
    return _as_array(name, view_of(model, found, lens, writable=not read_only))


def _lens(name: str, found: Array, call: Call) -> Lens | None:
    """What a result shows of its argument, None if it has elements of its own."""
    model = call.model
    if name in ("real", "imag") and model.type.complex:
        return Part(name)
    copies = call.options.get("copy", name in ("astype", "nan_to_num"))
    if name in GIVING_BACK and found.type == model.type:
        return Same()
    if name == "real" or (found is model and not copies and (name in OPERANDS or name == "nan_to_num")):
        return Same()
    if name == "broadcast_arrays":
        return Call("broadcast_to", np.broadcast_to, (model, found.shape), {}, model)
    if name == "meshgrid":
        return call if not call.options.get("copy", True) else None
    shows = (
        (name in VIEWS and not (name == "unstack" and not found.type.rank))
        or name in READ_ONLY
        or (name == "diag" and found.type.rank == 1)
    )
    shows = shows or (name == "einsum" and _only_moves(call.args))
    return call if shows and not copies else None


def _only_moves(args: Sequence[Any]) -> bool:
    """Whether an einsum is of one array and adds nothing up."""
    before, arrow, after = args[0].partition("->") if isinstance(args[0], str) else ("", "->", "")
    return (
        len(args) == 2 and bool(np.ndim(args[1])) and (set(before) <= {*after, " "} if arrow else len(set(before)) == len(before))
    )


def _own(name: str, found: Array, operands: Sequence[Array]) -> Array:
    x = own(found)
    if x.type.rank > 1 and (name in OTHER_ORDER or not all(map(in_order, operands))):
        rooted(x, contiguous=None)
    if name == "astype":
        return as_kind_of(operands[0], x)
    return _as_array(name, x)


def as_kind_of(x: Array, copy: Array) -> Array:
    """A copy, which without axes is a number or an array as x is."""
    if x.share is not None and not x.type.rank:
        rooted(copy, doubt=x.share.root.doubt)
    return copy


def copied(x: Array, order: str = "C") -> Array:
    """x.copy(), which unlike np.copy lays out what it gives as C does."""
    copy = own(x)
    if x.type.rank > 1 and order != "C":
        rooted(copy, contiguous=None)
    return as_kind_of(x, copy)


def _as_array(name: str, x: Array) -> Array:
    if not x.type.rank and name in WITHOUT_AXES:
        rooted(x)
    return x


def like_operands(found: Array, operands: Sequence[Any]) -> Array:
    """A result of a ufunc, which NumPy lays out in memory as it has the operands."""
    if found.type.rank > 1 and not all(in_order(x) for x in operands if isinstance(x, Array)):
        rooted(found, contiguous=None)
    return found


def is_basic(index: Any) -> bool:
    """Whether an index is of integers, slices, None and Ellipsis, so that it shows elements and copies none."""
    return all(
        (isinstance(e, int | np.integer | slice | EllipsisType) and not isinstance(e, bool))
        or e is None
        or (isinstance(e, Array) and not e.type.rank and e.type.dtype != "bool")
        for e in (index if isinstance(index, tuple) else (index,))
    )


def item_of(x: Array, index: Any, found: Array) -> Array:
    """What x[index] found: a view but for numbers, and for indices that are masks or arrays of integers."""
    entries = index if isinstance(index, tuple) else (index,)
    if not found.type.rank and not any(e is Ellipsis for e in entries):
        return own(found)
    if is_basic(index):
        arrays = [e.share.root.doubt for e in entries if isinstance(e, Array) and e.share is not None]
        if not all(arrays):
            return like_operands(own(found), [x])
        fixed = tuple(own(e) if isinstance(e, Array) else e for e in entries)  # as they are now
        view = view_of(x, found, Item(fixed))
        if arrays and view.share is not None:
            view.share.doubt = AN_INDEX
        return view
    copy = own(found)
    if found.type.rank > 1 and not (in_order(x) and not isinstance(index, tuple)):
        rooted(copy, contiguous=None)  # NumPy may lay out results of several indices in any order
    return copy
