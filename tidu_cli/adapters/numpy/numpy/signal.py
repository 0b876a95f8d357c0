"""Convolutions, correlations and reductions of windows, and what np.fft has.

NumPy's convolutions are of whole arrays, over all of their axes, as parts of the full one. Transforms are over any axes, cut or
filled to any lengths, with all norms, onto the primitive over last axes.

What networks need and NumPy has not got, convolutions with features and reductions of windows, has the names and arguments of
`jax.lax`'s functions: of traced arrays it is recorded what is computed, and of NumPy's it is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod, sqrt
from typing import Any, cast

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, name_of
from tidu_cli.adapters.numpy.arrays.operands import Operand, an_array, array_dtype, arrays_in, lift, lifted_as_arrays
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.numpy.indexing import normal_axis, part, size_of
from tidu_cli.adapters.numpy.numpy.shaping import atleast_1d, flip, pad
from tidu_cli.graph.sizes.open import surely
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.signal.convolution import ConvDimensionNumbers
from tidu_cli.lax.signal.sliding import spread
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import Types

MODES = ("full", "same", "valid")

Window = tuple[Sequence[int], Sequence[int]]
"""Where a part of the full result starts along each axis, and how long it is."""


def window_of(mode: str, x: Sequence[int], kernel: Sequence[int], like: Sequence[int]) -> Window:
    """The part of the full result that a mode means, of arrays of these shapes; `same` is the middle, of shape `like`."""
    if mode not in MODES:
        raise ValueError(f"mode is 'full', 'same' or 'valid', not {mode!r}")
    whole = [n + m - 1 for n, m in zip(x, kernel, strict=True)]
    lengths = {"full": whole, "same": like, "valid": [n - m + 1 for n, m in zip(x, kernel, strict=True)]}[mode]
    return [(n - length) // 2 for n, length in zip(whole, lengths, strict=True)], lengths


def slid(x: Array, kernel: Array, window: Window) -> Array:
    """The part of the full correlation of x by a kernel, which is neither reversed nor conjugated. They have one dtype and rank."""
    if x.type.dtype == "bool":
        return slid(x.convert("i32"), kernel.convert("i32"), window) != 0
    rank, edges = x.ndim, zip(x.shape, kernel.shape, *window, strict=True)
    ones, axes = (1,) * rank, tuple(range(rank + 2))
    correlated = x.reshaped((1, 1, *x.shape)).emit(
        "conv_general_dilated",
        kernel.reshaped((1, 1, *kernel.shape)),
        window_strides=ones,
        padding=tuple((m - 1 - start, start + length - n) for n, m, start, length in edges),
        lhs_dilation=ones,
        rhs_dilation=ones,
        dimension_numbers=ConvDimensionNumbers(lhs_spec=axes, rhs_spec=axes, out_spec=axes),
    )
    return correlated.reshaped(correlated.shape[2:])


def _vectors(name: str, a: Operand, v: Operand) -> tuple[Array, Array]:
    x, kernel = (atleast_1d(operand) for operand in lifted_as_arrays(a, v))
    if x.ndim != 1 or kernel.ndim != 1 or not x.size or not kernel.size:
        raise ValueError(f"{name} takes vectors that are not empty, got {x.type} and {kernel.type}")
    return x, kernel


def convolve(a: Operand, v: Operand, mode: str = "full") -> Array:
    x, kernel = _vectors("convolve", a, v)
    # Of open sizes the full result is the same either way; what else there is of it depends on which is longer.
    swapped = surely(lambda: kernel.size > x.size) if mode == "full" else kernel.size > x.size
    x, kernel = (kernel, x) if swapped else (x, kernel)
    return slid(x, flip(kernel, 0), window_of(mode, x.shape, kernel.shape, x.shape))


def correlate(a: Operand, v: Operand, mode: str = "valid") -> Array:
    x, kernel = _vectors("correlate", a, v)
    if kernel.size > x.size:
        return flip(correlate(kernel, x, mode).conj(), 0)
    return slid(x, kernel.conj(), window_of(mode, x.shape, kernel.shape, x.shape))


_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The norm of the inverse transform by which a Hermitian one is defined."""

Transform = Callable[..., Array]


def _scale(norm: Any, n: int, inverse: bool) -> float:
    """By what the primitive is multiplied, whose inverse divides by n."""
    if norm not in _SWAPPED:
        raise ValueError(f"norm is 'backward', 'ortho' or 'forward', not {norm!r}")
    if norm == "ortho":
        root = sqrt(n) if isinstance(n, int) else n**0.5
        return root if inverse else 1 / root
    return 1.0 if norm != "forward" else n * 1.0 if inverse else 1 / n


def _as_floats(x: Array) -> Array:
    """As NumPy takes them: integers and bools as f64, half precision as f32."""
    return x if x.type.dtype in ("f32", "f64", "c64", "c128") else x.convert("f32" if x.type.inexact else "f64")


def _resized(x: Array, axis: int, n: int) -> Array:
    """x with n elements along an axis: the first ones, or zeros after them."""
    if x.shape[axis] == n:
        return x
    if x.shape[axis] >= n:
        return part(x, axis, slice(0, n))
    return pad(x, [(0, n - size) if k == axis else (0, 0) for k, size in enumerate(x.shape)])


def transform(x: Array, kind: str, lengths: Sequence[int], axes: Sequence[int], norm: Any = None) -> Array:
    """The transform over these axes, which differ, cut or filled to these lengths: those of the result, of an inverse real one."""
    if any(n < 1 for n in lengths):
        raise ValueError(f"a transform of {min(lengths)} elements; the lengths are {list(lengths)}")
    given, x = x.type.dtype, _as_floats(x)
    if kind == "RFFT" and x.type.complex:
        raise BuildError(f"a transform of real numbers, got {x.type}; write np.fft.fft, or take it of x.real")
    if kind != "RFFT" and not x.type.complex:
        x = x.convert("c64" if x.type.dtype == "f32" else "c128")
    sizes = [*lengths[:-1], lengths[-1] // 2 + 1] if kind == "IRFFT" else lengths
    for axis, n in zip(axes, sizes, strict=True):
        x = _resized(x, axis, n)
    order = [*(k for k in range(x.ndim) if k not in axes), *axes]
    transformed = x.permuted(order).emit("fft", fft_type=kind, fft_lengths=tuple(lengths))
    transformed = transformed.permuted(sorted(range(len(order)), key=order.__getitem__))
    scale = _scale(norm, prod(lengths), kind in ("IFFT", "IRFFT"))
    transformed = transformed if isinstance(scale, float) and scale == 1 else transformed * scale
    # The result of half precision is that again where NumPy makes nothing complex of it before.
    return transformed.convert(given) if (given, kind, len(axes)) == ("f16", "IRFFT", 1) else transformed


def _lengths(x: Array, s: Any, axes: Any, kind: str) -> tuple[list[int], list[int]]:
    """The lengths and axes that NumPy's functions of several axes mean."""
    if axes is None:
        chosen = list(range(x.ndim)) if s is None else list(range(x.ndim - len(s), x.ndim))
    else:
        chosen = [normal_axis(axis, x.ndim) for axis in axes]
    if s is not None and len(s) != len(chosen):
        raise ValueError(f"{len(s)} lengths for {len(chosen)} axes")
    sizes = [x.shape[axis] for axis in chosen]
    if kind == "IRFFT" and sizes:
        sizes[-1] = 2 * (sizes[-1] - 1)
    given = sizes if s is None else s
    return [n if g is None or g == -1 else size_of(g) for g, n in zip(given, sizes, strict=True)], chosen


def _over_one(kind: str) -> Transform:
    def over_one(a: Operand, n: Any = None, axis: int = -1, norm: Any = None, out: object = None) -> Array:
        x = an_array(a)
        return transform(x, kind, *_lengths(x, None if n is None else [n], [axis], kind), norm)

    return over_one


def _over_several(kind: str, default: Any = None) -> Transform:
    def over_several(a: Operand, s: Any = None, axes: Any = default, norm: Any = None, out: object = None) -> Array:
        x = an_array(a)
        lengths, chosen = _lengths(x, s, axes, kind)
        if not chosen:
            if kind in ("RFFT", "IRFFT"):
                raise ValueError("a transform of real numbers is over an axis at least")
            return x.convert(x.type.dtype if x.type.complex else "c128")
        if len(set(chosen)) == len(chosen):
            return transform(x, kind, lengths, chosen, norm)
        # An axis that comes again is transformed again, one after the other in NumPy's order: real ones where the signal is.
        kinds = [*["IFFT" if kind[0] == "I" else "FFT"] * (len(chosen) - 1), kind]
        steps = list(zip(kinds, lengths, chosen, strict=True))
        for of, n, axis in steps if kind == "IRFFT" else reversed(steps):
            x = transform(x, of, [n], [axis], norm)
        return x

    return over_several


def _hfft(a: Operand, n: Any = None, axis: int = -1, norm: Any = None, out: object = None) -> Array:
    """Of a signal that is Hermitian in time, and so real in frequency."""
    _scale(norm, 1, False)
    return _over_one("IRFFT")(an_array(a).conj(), n, axis, _SWAPPED[norm])


def _ihfft(a: Operand, n: Any = None, axis: int = -1, norm: Any = None, out: object = None) -> Array:
    _scale(norm, 1, False)
    return _over_one("RFFT")(an_array(a), n, axis, _SWAPPED[norm]).conj()


_KINDS = {"fft": "FFT", "ifft": "IFFT", "rfft": "RFFT", "irfft": "IRFFT"}

FUNCTIONS: Mapping[str, Transform] = {
    **{f"fft.{name}": _over_one(kind) for name, kind in _KINDS.items()},
    **{f"fft.{name}n": _over_several(kind) for name, kind in _KINDS.items()},
    **{f"fft.{name}2": _over_several(kind, (-2, -1)) for name, kind in _KINDS.items()},
    "fft.hfft": _hfft,
    "fft.ihfft": _ihfft,
}
"""By NumPy's names."""

Pads = str | Sequence[tuple[int, int]]
"""`VALID`, `SAME`, or [low, high] for each axis."""


def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Pads,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: tuple[str, str, str] | ConvDimensionNumbers | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
) -> Any:
    """The convolution of lhs by rhs, which is not reversed. Raises TypeRuleError for shapes that do not fit.

    `dimension_numbers` are texts such as ("NHWC", "HWIO", "NHWC"): N for the batch, C for features, and for rhs O and I; by default
    ("NCHW", "OIHW", "NCHW"), with as many axes after the first two.
    """
    rank = np.ndim(rhs)
    numbers = _numbers(dimension_numbers, rank)
    ones = (1,) * (rank - 2)
    lhs_dilation, rhs_dilation = tuple(lhs_dilation or ones), tuple(rhs_dilation or ones)
    places = _spread([np.shape(lhs)[axis] for axis in numbers.lhs_spec[2:]], lhs_dilation)
    window = _spread([np.shape(rhs)[axis] for axis in numbers.rhs_spec[2:]], rhs_dilation)
    return _applied(
        "conv_general_dilated",
        (lhs, rhs),
        window_strides=tuple(window_strides),
        padding=_padding(padding, places, window, window_strides),
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=numbers,
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
    )


def _numbers(given: Any, rank: int) -> ConvDimensionNumbers:
    if isinstance(given, ConvDimensionNumbers):
        return given
    if given is None:
        axes = tuple(range(rank))
        return ConvDimensionNumbers(lhs_spec=axes, rhs_spec=axes, out_spec=axes)
    lhs, rhs, out = given
    if not set(lhs) == set(out) == {"N", "C"} | (set(rhs) - {"O", "I"}) or not len(lhs) == len(rhs) == len(out) == rank:
        raise BuildError(f"dimension_numbers {given} of arrays of {rank} axes; write such as ('NHWC', 'HWIO', 'NHWC')")
    rest = [letter for letter in rhs if letter not in "OI"]
    specs = (tuple(map(text.index, [*first, *rest])) for text, first in ((lhs, "NC"), (rhs, "OI"), (out, "NC")))
    return ConvDimensionNumbers(**dict(zip(("lhs_spec", "rhs_spec", "out_spec"), specs, strict=True)))


def _padding(padding: Pads, places: Sequence[int], window: Sequence[int], strides: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Padding in numbers; `SAME` gives as many windows as there are strides in an axis, the odd place being after it."""
    if not isinstance(padding, str):
        return tuple((low, high) for low, high in padding)
    if padding == "VALID":
        return ((0, 0),) * len(places)
    if padding != "SAME":
        raise BuildError(f"padding is 'SAME', 'VALID' or [low, high] for each axis, not {padding!r}")
    missing = [max(((n + s - 1) // s - 1) * s + w - n, 0) for n, w, s in zip(places, window, strides, strict=True)]
    return tuple((total // 2, total - total // 2) for total in missing)


def _reduction(kind: str, what: str) -> Callable[..., Any]:
    def reduce_window(
        operand: Any,
        window_dimensions: Sequence[int],
        window_strides: Sequence[int] | None = None,
        padding: Pads = "VALID",
        base_dilation: Sequence[int] | None = None,
        window_dilation: Sequence[int] | None = None,
    ) -> Any:
        ones = (1,) * len(window_dimensions)
        strides, base, dilation = (tuple(given or ones) for given in (window_strides, base_dilation, window_dilation))
        places, window = _spread(np.shape(operand), base), _spread(window_dimensions, dilation)
        return _applied(
            f"reduce_window_{kind}",
            (operand,),
            window_dimensions=tuple(window_dimensions),
            window_strides=strides,
            padding=_padding(padding, places, window, strides),
            base_dilation=base,
            window_dilation=dilation,
        )

    reduce_window.__name__ = reduce_window.__qualname__ = f"reduce_window_{kind}"
    reduce_window.__doc__ = f"The {what} of each window. Raises TypeRuleError for windows that do not fit."
    return reduce_window


reduce_window_sum = _reduction("sum", "sum")
reduce_window_max = _reduction("max", "maximum")
reduce_window_min = _reduction("min", "minimum")


def _spread(sizes: Sequence[int], dilation: Sequence[int]) -> list[int]:
    return [spread(n, d) for n, d in zip(sizes, dilation, strict=False)]  # the type rule refuses what does not fit


def _applied(op: str, operands: Sequence[Operand], **attrs: object) -> Any:
    """A primitive of operands, made of one dtype: recorded where one of them is traced, else computed."""
    held, dtype = arrays_in(operands), array_dtype(*operands)
    if held:
        first, *rest = (lift(x, held[0], dtype) for x in operands)
        return first.emit(op, *rest, **attrs)
    arrays = [np.asarray(x, dtype) for x in operands]
    types = [TensorType(name_of(x.dtype), x.shape) for x in arrays]
    case = BUILTIN.case(op, BUILTIN.parse_attrs(op, attrs), None, types)
    return BUILTIN[op].evaluation.kernel(np, case.attrs, tuple(types), cast(Types, case.results))(*arrays)
