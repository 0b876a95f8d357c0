"""Primitives that lax has under another name, with other attrs, or not for every dtype: of elements, places, matrices and windows.

Factorizations of matrices on CPUs are LAPACK's, as they are in NumPy. Phases that nothing else determines are chosen as
`tidu_cli.lax.linear_algebra.matrices` has them.

For graphs that the engine xla runs, elementwise functions are `PRECISE`: right to more digits, or at more edges, than lax's of
their names. Modules and functions of JAX have lax's, by which they are shorter, and derivatives JAX's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp
from jax._src.lax import windowed_reductions
from jax.scipy.linalg import expm

from tidu_cli.graph.literals import NONFINITE
from tidu_cli.lax.arrays.structural import dtype_name, literal_array, numpy_dtype
from tidu_cli.lax.signal.window_reduction import highest, lowest

Attrs = dict[str, Any]


def magnitude(attrs: Attrs, x: Any) -> Any:
    """|x|, which lax has not got for unsigned integers."""
    return lax.abs(x) if x.dtype.kind != "u" else x


def _strong(x: Any, result: Any) -> Any:
    """The result, but for 0 where it is NaN and x is 0."""
    return jnp.where((x == 0) & (result != result), 0, result)


def _gather(attrs: Attrs, operand: Any, indices: Any) -> Any:
    numbers = lax.GatherDimensionNumbers(**dict(attrs["dimension_numbers"]))
    fill = NONFINITE.get(attrs["fill_value"], attrs["fill_value"])
    return lax.gather(operand, indices, numbers, attrs["slice_sizes"], mode=attrs["mode"], fill_value=fill)


def _scatter(name: str) -> Callable[..., Any]:
    function = getattr(lax, name.replace("-", "_"))

    def scatter(attrs: Attrs, operand: Any, indices: Any, updates: Any) -> Any:
        numbers = lax.ScatterDimensionNumbers(**dict(attrs["dimension_numbers"]))
        unique = attrs.get("unique_indices", False)
        return function(operand, indices, updates, numbers, mode=attrs["mode"], unique_indices=unique)

    return scatter


def dtype_of(name: str | None) -> Any:
    """The dtype of arrays that hold values of one of tidu's."""
    return None if name is None else numpy_dtype(np, name)


def convert(attrs: Attrs, x: Any) -> Any:
    """x in another dtype: of complex numbers the real part, or as bools whether they are not 0."""
    new = dtype_of(attrs["new_dtype"])
    if x.dtype.kind == "c" and new.kind != "c":
        if new.kind == "b":
            return lax.ne(x, lax.full_like(x, 0))
        x = lax.real(x)  # which JAX would warn of
    return lax.convert_element_type(x, new)


def _dot_general(attrs: Attrs, x: Any, y: Any) -> Any:
    return lax.dot_general(x, y, attrs["dimension_numbers"], preferred_element_type=dtype_of(attrs["preferred_element_type"]))


def _adjoint(x: Any) -> Any:
    return jnp.conj(x.mT)


def _phases(v: Any) -> Any:
    """By which columns are to be multiplied so that their greatest components are real and positive."""
    if not v.size:
        return jnp.ones((*v.shape[:-2], 1, v.shape[-1]), v.dtype)
    greatest = jnp.take_along_axis(v, jnp.argmax(abs(v), axis=-2, keepdims=True), -2)
    size = abs(greatest)
    zero = size == 0
    return jnp.where(zero, 1, jnp.conj(greatest) / jnp.where(zero, 1, size)).astype(v.dtype)


def _eigh(attrs: Attrs, x: Any) -> Any:
    v, w = lax.linalg.eigh(x, lower=attrs["lower"], symmetrize_input=False, sort_eigenvalues=attrs["sort_eigenvalues"])
    return (v * _phases(v), w) if x.dtype.kind == "c" else (v, w)


def _svd(attrs: Attrs, x: Any) -> Any:
    if not attrs["compute_uv"]:
        return (lax.linalg.svd(x, compute_uv=False),)
    u, s, vh = lax.linalg.svd(x, full_matrices=False)
    if x.dtype.kind == "c":
        phase = _phases(u)
        u, vh = u * phase, vh * _adjoint(phase)
    m, n = x.shape[-2:]
    # The columns that complete U, or V, are a function of the others.
    if attrs["full_matrices"] and m > n:
        u = jnp.concatenate([u, lax.linalg.qr(u)[0][..., n:]], -1)
    if attrs["full_matrices"] and n > m:
        vh = jnp.concatenate([vh, _adjoint(lax.linalg.qr(_adjoint(vh))[0][..., m:])], -2)
    return s, u, vh


def _conv(attrs: Attrs, lhs: Any, rhs: Any) -> Any:
    numbers = lax.ConvDimensionNumbers(**dict(attrs["dimension_numbers"]))
    preferred = dtype_of(attrs["preferred_element_type"])
    params = attrs | {"dimension_numbers": numbers, "preferred_element_type": preferred}
    if all(type(n) is int for pads in attrs["padding"] for n in pads):
        return lax.conv_general_dilated(lhs, rhs, **params)
    ones = (1,) * (lhs.ndim - 2)  # the primitive: the public function takes numbers for paddings alone
    params |= {name: attrs[name] or ones for name in ("window_strides", "lhs_dilation", "rhs_dilation")}
    return lax.conv_general_dilated_p.bind(lhs, rhs, **{"precision": None, "out_sharding": None} | params)


def _fft(attrs: Attrs, x: Any) -> Any:
    # The primitive: the public function is a call of it.
    return lax.fft_p.bind(x, fft_type=lax.FftType[attrs["fft_type"]], fft_lengths=attrs["fft_lengths"])


def _reduce_window(name: str) -> Callable[..., Any]:
    primitive = getattr(windowed_reductions, f"{name}_p")
    return lambda attrs, x: primitive.bind(x, **attrs)


def is_plain(attrs: Attrs) -> bool:
    """Whether windows are neither dilated nor cut off: of others JAX's selections have no transposes, or none that it computes."""
    dilations = [*(attrs["base_dilation"] or ()), *(attrs["window_dilation"] or ())]
    return max(dilations, default=1) == 1 and all(edge >= 0 for edges in attrs["padding"] for edge in edges)


def _gather_selected(attrs: Attrs, values: Any, x: Any) -> Any:
    if values.dtype == x.dtype and is_plain(attrs):
        return windowed_reductions.select_and_gather_add_p.bind(values, x, **(attrs | {"select_prim": _selection(attrs)}))
    return lax.reshape(values, (values.size,)).at[_chosen(attrs, x)].get(mode="fill", fill_value=0, wrap_negative_indices=False)


def _scatter_selected(attrs: Attrs, source: Any, x: Any) -> Any:
    if source.dtype == x.dtype and is_plain(attrs):
        given = {k: v for k, v in attrs.items() if "dilation" not in k}
        return windowed_reductions.select_and_scatter_add_p.bind(source, x, **(given | {"select_prim": _selection(attrs)}))
    return (
        jnp.zeros(x.size, source.dtype).at[_chosen(attrs, x)].add(source, mode="drop", wrap_negative_indices=False).reshape(x.shape)
    )


def _selection(attrs: Attrs) -> Any:
    return lax.ge_p if attrs["select_prim"] == "ge" else lax.le_p


def _chosen(attrs: Attrs, x: Any) -> Any:
    """The row-major place of the element that each window chooses, the first of ties and NaN first; of padding x.size."""
    x = lax.stop_gradient(x)
    greatest = attrs["select_prim"] == "ge"
    worst = (lowest if greatest else highest)(np, dtype_name(x.dtype))
    is_open = not isinstance(x.size, int)
    places = jnp.arange(x.size, dtype=np.int64 if is_open or x.size >= 2**31 else np.int32).reshape(x.shape)
    # Of open sizes a reducer is a function, in which JAX calls no others: what it writes of them is invalid.
    choose = lax.select if is_open else jnp.where

    def better(one: Any, other: Any) -> Any:
        (x, i), (y, k) = one, other
        beats = (y > x if greatest else y < x) | ((y != y) & (x == x))
        ties = (y == x) | ((y != y) & (x != x))
        # Padding is the worst there is, and of ties it is the last.
        taken = beats | (ties & (k < i))
        return choose(taken, y, x), choose(taken, k, i)

    init = jnp.asarray(worst, x.dtype), jnp.asarray(x.size, places.dtype)
    windows = [attrs[name] or (1,) * x.ndim for name in ("base_dilation", "window_dilation")]
    dimensions, strides = attrs["window_dimensions"], attrs["window_strides"]
    return lax.reduce_window((x, places), init, better, dimensions, strides, attrs["padding"], *windows)[1]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "constant": lambda attrs: jnp.asarray(literal_array(np, attrs["value"])),
    "size": lambda attrs: jnp.asarray(attrs["expression"], dtype_of(attrs["dtype"])),
    "iota": lambda attrs: lax.broadcasted_iota(dtype_of(attrs["dtype"]), attrs["shape"], attrs["dimension"]),
    "copy": lambda attrs, x: lax.copy_p.bind(x),
    "convert_element_type": convert,
    "bitcast_convert_type": lambda attrs, x: lax.bitcast_convert_type(x, dtype_of(attrs["new_dtype"])),
    "dot_general": _dot_general,
    "concatenate": lambda attrs, *xs: lax.concatenate(xs, attrs["dimension"]),
    # The primitives: the public functions count negative indices from the end.
    "dynamic_slice": lambda attrs, x, *indices: lax.dynamic_slice_p.bind(x, *indices, slice_sizes=attrs["slice_sizes"]),
    "dynamic_update_slice": lambda attrs, x, update, *indices: lax.dynamic_update_slice_p.bind(x, update, *indices),
    "argmax": lambda attrs, x: lax.argmax(x, attrs["axes"][0], dtype_of(attrs["index_dtype"])),
    "argmin": lambda attrs, x: lax.argmin(x, attrs["axes"][0], dtype_of(attrs["index_dtype"])),
    "sort": lambda attrs, *xs: lax.sort(xs, **attrs),
    "top_k": lambda attrs, x: lax.top_k(x, attrs["k"], axis=attrs["axis"]),
    "gather": _gather,
    **{name: _scatter(name) for name in ("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-max", "scatter-min")},
    "abs": magnitude,
    "round": lambda attrs, x: lax.round(x, lax.RoundingMethod[attrs["rounding_method"]]),
    "regularized_incomplete_beta": lambda attrs, a, b, x: lax.betainc(a, b, x),
    "strong_mul": lambda attrs, x, y: _strong(y, lax.mul(x, y)),
    "strong_div": lambda attrs, x, y: _strong(x, lax.div(x, y)),
    "optimization_barrier": lambda attrs, *xs: lax.optimization_barrier(xs),
    # As the primitive: the function of jax.numpy takes away what is above the diagonal.
    "cholesky": lambda attrs, x: lax.linalg.cholesky(x, symmetrize_input=False),
    "svd": _svd,
    "pinv": lambda attrs, x: jnp.linalg.pinv(x, rtol=attrs["rtol"]),
    "eigh": _eigh,
    "expm": lambda attrs, x: expm(x),
    "expm_frechet": lambda attrs, a, e: jax.jvp(expm, (a,), (e,))[1],
    "fft": _fft,
    "conv_general_dilated": _conv,
    **{name: _reduce_window(name) for name in ("reduce_window_sum", "reduce_window_max", "reduce_window_min")},
    "select_and_gather_add": _gather_selected,
    "select_and_scatter_add": _scatter_selected,
}
"""By op, of attrs and arrays."""


def _exp2(attrs: Attrs, x: Any) -> Any:
    """As a power: lax has exp(x log 2), in which the rounding of x log 2 counts the more the greater that is."""
    return lax.exp2(x) if x.dtype.kind == "c" else lax.pow(lax.full_like(x, 2), x)


def _log1p(attrs: Attrs, x: Any) -> Any:
    """Below -1/4 the logarithm of 1 + x, which is right to its last digit: XLA loses two digits there, from -0.42 to -0.36."""
    if x.dtype != np.float64:
        return lax.log1p(x)
    below = lax.lt(x, lax.full_like(x, -0.25))
    return lax.select(below, lax.log(lax.add(x, lax.full_like(x, 1))), lax.log1p(x))


def _atanh(attrs: Attrs, x: Any) -> Any:
    if x.dtype != np.float64:
        return lax.atanh(x)
    return lax.mul(lax.full_like(x, 0.5), lax.sub(_log1p(attrs, x), _log1p(attrs, lax.neg(x))))


def _halves(x: Any) -> tuple[Any, Any]:
    """Half of exp(x) and of exp(-x): as squares, which overflow no sooner; XLA has exp(x + log(1/2)), where the sum is rounded."""
    half = lax.full_like(x, 0.5)
    up, down = lax.exp(lax.mul(half, x)), lax.exp(lax.mul(lax.neg(half), x))
    return lax.mul(lax.mul(half, up), up), lax.mul(lax.mul(half, down), down)


def _sinh(attrs: Attrs, x: Any) -> Any:
    if x.dtype not in _SINGLE_AND_DOUBLE:
        return lax.sinh(x)
    near = lax.lt(lax.abs(x), lax.full_like(x, 1))
    return lax.select(near, lax.sinh(x), lax.sub(*_halves(x)))


_SINGLE_AND_DOUBLE = (np.float32, np.float64)

_BY_PRODUCTS = 8
"""Powers to greater integers are no products: each factor would be a rounding."""


def _integer_pow(attrs: Attrs, x: Any) -> Any:
    y = attrs["y"]
    if abs(y) <= _BY_PRODUCTS or x.dtype.kind in "ciu" or float(x.dtype.type(y)) != y:
        return lax.integer_pow(x, y)
    return lax.pow(x, lax.full_like(x, y))


def _abs(attrs: Attrs, x: Any) -> Any:
    """An infinite part outweighs a NaN, as in C99's hypot."""
    if x.dtype.kind != "c":
        return magnitude(attrs, x)
    parts = [lax.abs(lax.real(x)), lax.abs(lax.imag(x))]
    infinite = lax.full_like(parts[0], np.inf)
    return lax.select(lax.bitwise_or(*[lax.eq(part, infinite) for part in parts]), infinite, lax.abs(x))


def _pow(attrs: Attrs, x: Any, y: Any) -> Any:
    """Zero to a complex power of positive real part is zero; lax multiplies its logarithm."""
    power = lax.pow(x, y)
    if y.dtype.kind != "c":
        return power
    zero = lax.full_like(power, 0)
    positive = lax.gt(lax.real(y), lax.real(zero))
    return lax.select(lax.bitwise_and(lax.eq(x, zero), positive), zero, power)


PRECISE: dict[str, Callable[..., Any]] = {
    "abs": _abs,
    "pow": _pow,
    "exp2": _exp2,
    "log1p": _log1p,
    "atanh": _atanh,
    "sinh": _sinh,
    "cosh": lambda attrs, x: lax.add(*_halves(x)) if x.dtype in _SINGLE_AND_DOUBLE else lax.cosh(x),
    "integer_pow": _integer_pow,
}
"""By op, of attrs and arrays."""
