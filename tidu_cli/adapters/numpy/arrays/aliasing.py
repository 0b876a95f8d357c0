"""Which results of NumPy's functions share elements with their arguments, and in which order NumPy has them in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import arrays_in
from tidu_cli.adapters.numpy.arrays.shares import Lens, Share
from tidu_cli.adapters.numpy.arrays.storage import A_COPY, AN_INDEX, blank, in_order, is_view, layout, own, rooted, view_of
from tidu_cli.adapters.numpy.errors import UntraceableError
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.open_sizes import has_open_size
from tidu_cli.graph.sizes.open import OpenSize

# What views show of arrays: the same elements in another shape or order, some of them, or parts of complex numbers.
#
# Each view knows the call of NumPy's function that made it. After its array has changed, that call is made again to
# get what the view shows.
# How an array changes with what is shown of it is read off NumPy's own view of an empty array: where it begins, and its strides.


class Same(Frozen, eq=False):
    """All elements as they are."""

    def get(self, whole: Array) -> Array:
        """As `Lens.get`."""
        return whole

    def put(self, whole: Array, shown: Array) -> Array:
        """As `Lens.put`."""
        return shown

    def laid(self, whole: Any) -> Any:
        """As `Lens.laid`."""
        return whole


class Item(Frozen, eq=False):
    """x[index], of integers, slices, None and Ellipsis. Integers may be traced."""

    index: Any

    def get(self, whole: Array) -> Array:
        """As `Lens.get`."""
        shown: Array = whole.recorder.numpy["indexed"](whole, self.index)
        return shown

    def put(self, whole: Array, shown: Array) -> Array:
        """As `Lens.put`."""
        updated: Array = whole.recorder.numpy["updated"](whole, self.index, shown)
        return updated

    def laid(self, whole: Any) -> Any:
        """As `Lens.laid`."""
        entries = _known(self.index if isinstance(self.index, tuple) else (self.index,))
        # All places of an axis are laid out alike, wherever a traced index leads; an Ellipsis keeps it an array.
        dots = () if any(e is Ellipsis for e in entries) else (...,)
        return whole[(*(0 if isinstance(e, Array) else e for e in entries), *dots)]


class Part(Frozen, eq=False):
    """The real or the imaginary part of complex numbers."""

    name: str

    def get(self, whole: Array) -> Array:
        """As `Lens.get`."""
        return whole.emit(self.name)

    def put(self, whole: Array, shown: Array) -> Array:
        """As `Lens.put`."""
        return shown.emit("complex", whole.emit("imag")) if self.name == "real" else whole.emit("real").emit("complex", shown)

    def laid(self, whole: Any) -> Any:
        """As `Lens.laid`."""
        return getattr(whole, self.name)


class Call(Frozen, eq=False):
    """A result of a function of NumPy's, whose arguments hold `model` for the array.

    `numpys` is NumPy's function; of several results, `part` is the number of this one.
    """

    name: str
    numpys: Callable[..., Any]
    args: Sequence[Any]
    options: Mapping[str, Any]
    model: Array
    part: int | None = None

    def _called(self, function: Callable[..., Any], whole: Any) -> Any:
        blanks = isinstance(whole, np.ndarray)
        args = [whole if x is self.model else blank(x.type) if blanks and isinstance(x, Array) else x for x in self.args]
        options = {k: whole if x is self.model else x for k, x in self.options.items()}
        if blanks:
            args, options = _known(args), dict(zip(options, _known(list(options.values())), strict=True))
        result = function(*args, **options)
        return result if self.part is None else result[self.part]

    def get(self, whole: Array) -> Array:
        """As `Lens.get`."""
        shown: Array = self._called(whole.recorder.numpy[self.name], whole)
        return shown

    def laid(self, whole: Any) -> Any:
        """As `Lens.laid`."""
        return self._called(self.numpys, whole)

    def put(self, whole: Array, shown: Array) -> Array:
        """As `Lens.put`."""
        empty = blank(whole.type)
        view = self.laid(empty)
        if not view.size:
            return whole
        begin = (view.__array_interface__["data"][0] - empty.__array_interface__["data"][0]) // empty.itemsize
        strides = [stride // empty.itemsize for stride in view.strides]
        if view.size == empty.size:
            return _rearranged(shown, strides).reshaped(whole.shape)
        if has_open_size(whole.type):
            raise UntraceableError(
                f"assignment to what np.{self.name} shows of {whole.type}; write into the array itself, or a copy"
            )
        index = _slices(empty.shape, view.shape, begin, strides)
        if index is not None:
            return Item(index).put(whole, shown)
        places = np.full(view.shape, begin, np.int64)
        for axis, stride in enumerate(strides):
            places += (np.arange(view.shape[axis]) * stride).reshape(-1, *(1,) * (view.ndim - axis - 1))
        row = whole.reshaped((whole.size,))
        return Item(places.ravel()).put(row, shown.reshaped((shown.size,))).reshaped(whole.shape)


def _known(arguments: Any) -> Any:
    """Arguments with numbers for open sizes in them."""
    if not any(isinstance(x, OpenSize | tuple | list | slice) for x in arguments):
        return arguments
    from tidu_cli.adapters.numpy.arrays.sizes import standing  # which graphs without open sizes do without

    return standing(arguments)


def _rearranged(shown: Array, strides: Sequence[int]) -> Array:
    """All elements of an array that were shown with these strides, in the order in which C has them there, in any shape."""
    axes = [axis for axis, n in enumerate(shown.shape) if n != 1]
    x = shown.reshaped(tuple(shown.shape[axis] for axis in axes))
    back = tuple(k for k, axis in enumerate(axes) if strides[axis] < 0)
    x = x.emit("rev", dimensions=back) if back else x
    return x.permuted(sorted(range(len(axes)), key=lambda k: -abs(strides[axes[k]])))


def _slices(whole: Sequence[int], shown: Sequence[int], begin: int, strides: Sequence[int]) -> tuple[slice, ...] | None:
    """The slices that show this much of an array, with these strides; None if it takes more than slices."""
    if len(whole) != len(shown):
        return None
    index = []
    lengths = [int(np.prod(whole[axis + 1 :], dtype=np.int64)) for axis in range(len(whole))]
    for n, size, stride, length in zip(shown, whole, strides, lengths, strict=True):
        first, begin = divmod(begin, length)
        step, rest = divmod(stride, length) if n > 1 else (1, 0)
        last = first + (n - 1) * step
        if rest or not step or not 0 <= first < size or not 0 <= last < size:
            return None
        index.append(slice(first, last + 1 if step > 0 else last - 1 if last else None, step))
    return tuple(index)


VIEWS = frozenset(
    {"array_split", "atleast_1d", "atleast_2d", "atleast_3d", "dsplit", "expand_dims", "flip", "fliplr", "flipud", "hsplit",
     "linalg.matrix_transpose", "matrix_transpose", "moveaxis", "permute_dims", "ravel", "reshape", "rollaxis", "rot90",
     "split", "squeeze", "swapaxes", "transpose", "unstack", "vsplit"}
)  # fmt: skip
"""Functions whose results are views in NumPy; of those that are reshaped it depends on the order in memory."""

READ_ONLY = frozenset({"broadcast_arrays", "broadcast_to", "diagonal", "linalg.diagonal", "meshgrid", "sliding_window_view"})
"""Those whose results cannot be changed, or had better not be, as one element stands in several places."""

OPERANDS = frozenset(
    {"asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "astype", "diff", "linalg.matrix_power", "require"}
)
"""Functions that may give an operand back."""

GIVING_BACK = frozenset({"atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "squeeze"})
"""Functions that give operands back which have the shape already."""

SHARING = VIEWS | READ_ONLY | OPERANDS | {"diag", "einsum", "imag", "nan_to_num", "real"}
"""Functions whose results may share elements with their arguments."""

RESHAPING = frozenset({"ascontiguousarray", "asfortranarray", "ravel", "require", "reshape"})
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


def shared(name: str, value: Any, args: Sequence[Any], options: Mapping[str, Any], numpys: Callable[..., Any] | None = None) -> Any:
    """What the function of that name gave, as NumPy's shares elements with its arguments: views, or arrays of their own.

    `numpys` is NumPy's function; None stands for others, whose results have elements of their own.
    """
    operands = arrays_in([*args, *options.values()])
    call = Call(name, numpys, args, options, operands[0]) if numpys is not None and operands else None
    return _shared(name, value, operands, call)


def _shared(name: str, result: Any, operands: Sequence[Array], call: Call | None) -> Any:
    if isinstance(result, list | tuple):
        parts = []
        for k, x in enumerate(result):
            one = replace(call, part=k) if call is not None else None
            if one is not None and name in _EACH and len(one.args) > 1:
                given = one.args[k]
                one = replace(one, model=given) if isinstance(given, Array) else None
            parts.append(_shared(name, x, operands, one))
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    if not isinstance(result, Array):
        return result
    lens = _lens(name, result, call) if call is not None else None
    if lens is None or call is None:
        return _own(name, result, operands)
    model = call.model
    read_only = not isinstance(lens, Same) and (name in READ_ONLY or (name == "diag" and result.type.rank == 1))
    if name in ("asfortranarray", "require") and model.type.rank:
        rooted(model)
    if name in RESHAPING and model.share is not None and result.type.rank + model.type.rank > 1:
        whole = layout(model.share)
        if whole is None and (isinstance(lens, Same) or [n for n in result.shape if n != 1] != [n for n in model.shape if n != 1]):
            copy, root = own(result), model.share.root
            root.doubt = A_COPY
            copy.share = Share(root, copy.value, copy.type, root.version)
            return copy
        if whole is not None and not is_view(call.laid(whole), whole):
            return _own(name, result, ())
    if isinstance(lens, Same) and name != "nan_to_num" and model.type.rank:
        return model
    return _as_array(name, view_of(model, result, lens, writable=not read_only))


def _lens(name: str, result: Array, call: Call) -> Lens | None:
    """What a result shows of its argument, None if it has elements of its own."""
    model = call.model
    if name in ("real", "imag") and model.type.complex:
        return Part(name)
    copies = call.options.get("copy", name in ("astype", "nan_to_num"))
    if name in GIVING_BACK and result.type == model.type:
        return Same()
    if name == "real" or (result is model and not copies and (name in OPERANDS or name == "nan_to_num")):
        return Same()
    if name == "broadcast_arrays":
        return Call("broadcast_to", np.broadcast_to, (model, result.shape), {}, model)
    if name == "meshgrid":
        return call if not call.options.get("copy", True) else None
    shows = (
        (name in VIEWS and not (name in ("flip", "unstack") and not result.type.rank))
        or name in READ_ONLY
        or (name == "diag" and result.type.rank == 1)
        or (name == "einsum" and _only_moves(call.args))
    )
    return call if shows and not copies else None


def _only_moves(args: Sequence[Any]) -> bool:
    """Whether an einsum is of one array and adds nothing up."""
    if len(args) != 2 or not np.ndim(args[1]):
        return False
    before, arrow, after = args[0].partition("->") if isinstance(args[0], str) else ("", "->", "")
    return set(before) <= {*after, " "} if arrow else len(set(before)) == len(before)


def _own(name: str, result: Array, operands: Sequence[Array]) -> Array:
    x = own(result)
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


def like_operands(result: Array, operands: Sequence[Any]) -> Array:
    """A result of a ufunc, which NumPy lays out in memory as it has the operands."""
    if result.type.rank > 1 and not all(in_order(x) for x in operands if isinstance(x, Array)):
        rooted(result, contiguous=None)
    return result


def is_basic(index: Any) -> bool:
    """Whether an index is of integers, slices, None and Ellipsis, so that it shows elements and copies none."""
    return all(
        (isinstance(e, int | np.integer | slice | EllipsisType | OpenSize) and not isinstance(e, bool))
        or e is None
        or (isinstance(e, Array) and not e.type.rank and e.type.dtype != "bool")
        for e in (index if isinstance(index, tuple) else (index,))
    )


def item_of(x: Array, index: Any, part: Array) -> Array:
    """x[index], whose value is `part`: a view but for numbers, and for indices that are masks or arrays of integers."""
    entries = index if isinstance(index, tuple) else (index,)
    if not part.type.rank and not any(e is Ellipsis for e in entries):
        return own(part)
    if is_basic(index):
        arrays = [e.share.root.doubt for e in entries if isinstance(e, Array) and e.share is not None]
        if not all(arrays):
            return like_operands(own(part), [x])
        fixed = tuple(own(e) if isinstance(e, Array) else e for e in entries)  # as they are now
        view = view_of(x, part, Item(fixed))
        if arrays and view.share is not None:
            view.share.doubt = AN_INDEX
        return view
    copy = own(part)
    if part.type.rank > 1 and not (in_order(x) and not isinstance(index, tuple)):
        rooted(copy, contiguous=None)  # NumPy may lay out results of several indices in any order
    return copy
