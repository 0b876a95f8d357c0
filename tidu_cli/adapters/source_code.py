"""What formats of source code have in common, and what files of NumPy source have.

Formats of source code are written, and not read as formats. Files of NumPy source begin with `MARK` and hold `HELPERS`, by which
they are known when they are read again, as functions of Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidu_cli.errors import DocumentError, TiduError
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.port_data import Asked, Imported, Option, Remarks
from tidu_cli.ports import Readable


class UnwrittenError(DocumentError):
    """Something that the language is not written of."""


class WrittenOnly:
    """The part of a format that is about reading."""

    binary = False
    reading: tuple[Option, ...] = ()
    runtimes: tuple[str, ...] = ()

    def double(self, options: Mapping[str, Any]) -> None:
        """It is not read."""

    def remarks(self, source: Readable, where: str, imported: Imported, options: Mapping[str, Any], asked: Asked) -> Remarks:
        """None, as it is not read."""
        return Remarks()

    def outline(self, data: bytes) -> dict[str, Any]:
        """Nothing: it is not read."""
        return {"graphs": []}


def alone(document: Document) -> Graph:
    """The document as one graph. Raises UnwrittenError."""
    if len(document.graphs) == 1 and not document.bindings and not len(document.head.external):
        return document.head
    from tidu_cli.transforms.materialize import materialize

    try:
        return materialize(document).head
    except TiduError as error:
        raise UnwrittenError(f"graph '{document.head.name}' cannot stand alone: {error}") from None


MARK = '"""Written by tidu: a function of NumPy arrays."""\n'
"""How they begin."""

HELPERS = {
    "_constant": '''def _constant(x):
    """x, which derivatives take as a constant."""
    return x''',
    "_strong_mul": '''def _strong_mul(x, y):
    """x * y, and 0 where y is 0, also if x is infinite or NaN."""
    product = x * y
    return np.where((y == 0) & np.isnan(product), np.zeros_like(product), product)''',
    "_strong_div": '''def _strong_div(x, y):
    """x / y, and 0 where x is 0, also if y is 0 or NaN."""
    quotient = x / y
    return np.where((x == 0) & np.isnan(quotient), np.zeros_like(quotient), quotient)''',
    "_logistic": '''def _logistic(z):
    """1 / (1 + exp(-z)) of complex numbers."""
    right = z.real >= 0
    e = np.exp(np.where(right, -z, z))
    return np.where(right, np.ones_like(e), e) / (1 + e)''',
    "_round": '''def _round(x):
    """The nearest integers, of halves those away from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)''',
    "_slice": '''def _slice(x, starts, sizes):
    """The part of x that begins at these places and has these sizes, moved so that it fits."""
    room = [n - m for n, m in zip(x.shape, sizes)]
    firsts = [min(max(int(k), 0), most) for k, most in zip(starts, room)]
    return x[tuple(slice(k, k + m) for k, m in zip(firsts, sizes))]''',
    "_updated": '''def _updated(x, part, starts):
    """x with a part in it that begins at these places, moved so that it fits."""
    room = [n - m for n, m in zip(x.shape, part.shape)]
    firsts = [min(max(int(k), 0), most) for k, most in zip(starts, room)]
    whole = np.array(x)
    whole[tuple(slice(k, k + m) for k, m in zip(firsts, part.shape))] = part
    return whole''',
    "_div": '''def _div(x, y):
    """Quotients of integers, rounded towards zero; -1 where y is 0."""
    divisor = np.where(y == 0, np.ones_like(y), y)
    quotient = x // divisor
    up = (quotient * divisor != x) & ((x < 0) != (divisor < 0))
    return np.where(y == 0, ~np.zeros_like(y), quotient + up.astype(quotient.dtype))''',
    "_rem": '''def _rem(x, y):
    """What is left of integers divided towards zero; x where y is 0."""
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, np.ones_like(y), y)))''',
    "_to_integer": '''def _to_integer(x, dtype):
    """Floats as integers: towards zero, within the range, and 0 for NaN."""
    info = np.iinfo(dtype)
    x = np.asarray(x).astype(np.float64)
    low, high = x <= float(info.min), x >= float(info.max)
    inside = np.where(low | high | np.isnan(x), 0.0, x).astype(dtype)
    bounded = np.where(high, dtype(info.max), inside)
    return np.where(low, dtype(info.min), bounded)''',
    "_clz": '''def _clz(x):
    """The zero bits above the highest bit that is set."""
    bits = x.view(f"u{x.dtype.itemsize}")
    shift = 1
    while shift < 8 * x.dtype.itemsize:
        bits = bits | (bits >> bits.dtype.type(shift))
        shift *= 2
    return np.bitwise_count(~bits).astype(x.dtype)''',
    "_complex": '''def _complex(real, imag, dtype):
    """Complex numbers of their parts."""
    z = np.zeros(np.shape(real), dtype)
    z.real, z.imag = real, imag
    return z''',
    "_shift_right_arithmetic": '''def _shift_right_arithmetic(x, y):
    """x shifted to the right, its highest bit counting as a sign."""
    signed = np.dtype(f"i{x.dtype.itemsize}")
    most = x.dtype.type(8 * x.dtype.itemsize - 1)
    return (x.view(signed) >> np.minimum(y, most).view(signed)).view(x.dtype)''',
    "_solve_triangular": '''def _solve_triangular(a, b, lower, unit):
    """The solution x of a x = b, row by row; a is triangular."""
    n, done = a.shape[-1], []
    for k in range(n) if lower else reversed(range(n)):
        row = b[..., k, :]
        for j, x in done:
            row = row - a[..., k, j, None] * x
        done.append((k, row if unit else row / a[..., k, k, None]))
    return np.stack([x for _, x in sorted(done, key=lambda one: one[0])], axis=-2)''',
    "_lu": '''def _lu(x):
    """LU factors of matrices, the rows that change places in turn, and their order."""
    *batch, m, n = x.shape
    a = np.array(x).reshape(int(np.prod(batch)), m, n)
    every = np.arange(len(a))
    order = np.tile(np.arange(m, dtype=np.int32), (len(a), 1))
    pivots = np.zeros((len(a), min(m, n)), np.int32)
    for k in range(min(m, n)):
        below = a[:, k:, k]
        p = pivots[:, k] = k + np.argmax(np.abs(below.real) + np.abs(below.imag), 1)
        a[every, k], a[every, p] = a[every, p], a[every, k].copy()
        order[every, k], order[every, p] = order[every, p], order[every, k].copy()
        a[:, k + 1 :, k] /= a[:, None, k, k]
        a[:, k + 1 :, k + 1 :] -= a[:, k + 1 :, k, None] * a[:, None, k, k + 1 :]
    pivots = pivots.reshape(*batch, min(m, n))
    return a.reshape(x.shape), pivots, order.reshape(*batch, m)''',
    "_permutation": '''def _permutation(pivots, n):
    """The order of n rows after each row k has changed places with row pivots[k]."""
    lists = pivots.reshape(int(np.prod(pivots.shape[:-1])), pivots.shape[-1])
    every = np.arange(len(lists))
    order = np.tile(np.arange(n, dtype=np.int32), (len(lists), 1))
    for k in range(lists.shape[1]):
        p = np.clip(lists[:, k], 0, n - 1)
        order[every, p], order[:, k] = order[:, k].copy(), order[every, p]
    return order.reshape(*pivots.shape[:-1], n)''',
    "_spread": '''def _spread(x, fill, padding, dilation):
    """x with `fill` around it, or with less of it, and between its elements."""
    for k, (low, high) in enumerate(padding):
        x = np.moveaxis(x, k, 0)
        n = max((len(x) - 1) * dilation[k] + 1, 0)
        y = np.full((max(low, 0) + n + max(high, 0), *x.shape[1:]), fill, x.dtype)
        y[max(low, 0) : max(low, 0) + n : dilation[k]] = x
        x = np.moveaxis(y[max(-low, 0) : len(y) - max(-high, 0)], 0, k)
    return x''',
    "_windows": '''def _windows(x, shape, strides, dilation):
    """The windows that slide along the last axes of x, as more axes."""
    first = x.ndim - len(shape)
    reach = [(n - 1) * d + 1 for n, d in zip(shape, dilation)]
    if any(n > have for n, have in zip(reach, x.shape[first:])):
        return np.zeros((*x.shape[:first], *[0] * len(shape), *shape), x.dtype)
    axes = tuple(range(first, x.ndim))
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axes)
    steps = [slice(None, None, step) for step in (*strides, *dilation)]
    return view[(..., *steps)]''',
    "_argsort": '''def _argsort(keys, axis):
    """The places that sort by the first key, and by the next where that ties."""
    parts = []
    for key in keys:
        parts += [key.real, key.imag] if np.iscomplexobj(key) else [key]
    return np.lexsort(parts[::-1], axis=axis)''',
    "_chosen": '''def _chosen(x, fold, fill, padding, base, shape, strides, dilation):
    """Where each window has its extremum, counting elements row by row; -1 if nowhere."""
    places = np.arange(x.size).reshape(x.shape)
    values, places = (
        _windows(_spread(part, gap, padding, base), shape, strides, dilation)
        for part, gap in ((x, fill), (places, -1))
    )
    values = values.reshape(*values.shape[: x.ndim], -1)
    places = places.reshape(values.shape)
    best = fold(values, axis=-1, keepdims=True)
    met = ((values == best) | (values != values)) & (places >= 0)
    first = np.argmax(met, -1)[..., None]
    return np.where(met.any(-1), np.take_along_axis(places, first, -1)[..., 0], -1)''',
    "_cofactors": '''def _cofactors(x):
    """The gradient of the determinant."""
    u, s, vh = np.linalg.svd(x)
    n = s.shape[-1]
    others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(-1)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    rows = others[..., :, None] * np.conj(vh)
    return (sign[..., None, None] * (np.conj(u) @ rows)).astype(x.dtype)''',
}  # fmt: skip
"""Functions for operations that NumPy has no expression for, by name. Each is laid out as black lays it out."""
