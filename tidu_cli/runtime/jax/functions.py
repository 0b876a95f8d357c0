"""Primitives of tidu as functions of JAX: op and attr names are lax's, so most calls need no word of translation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tidu_cli.graph.graph import Case
from tidu_cli.lax.arrays.structural import literal_array, numpy_dtype

ALIASES = {
    "not": "bitwise_not",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "regularized_incomplete_beta": "betainc",
}


def jax_function(case: Case) -> Callable[..., tuple[Any, ...]]:
    """From JAX arrays to the tuple of results, without derivative rules of ours."""
    from jax import lax

    attrs = dict(case.attrs)
    special = SPECIAL.get(case.op)
    if special is not None:
        return lambda *xs: _tuple(special(lax, attrs, *xs))
    name = ALIASES.get(case.op, case.op).replace("-", "_")
    # Older versions export some operations as primitives only.
    function = getattr(lax, name, None) or getattr(lax, f"{name}_p").bind
    return lambda *xs: _tuple(function(*xs, **attrs))


def _tuple(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, tuple | list) else (results,)


def _dtype(name: str | None) -> Any:
    return None if name is None else numpy_dtype(np, name)


def _constant(lax: Any, attrs: dict[str, Any]) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(literal_array(np, attrs["value"]))


def _gather(lax: Any, attrs: dict[str, Any], operand: Any, indices: Any) -> Any:
    numbers = lax.GatherDimensionNumbers(**dict(attrs["dimension_numbers"]))
    fill = attrs["fill_value"]
    if fill is not None:
        fill = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}.get(fill, fill)
    return lax.gather(operand, indices, numbers, attrs["slice_sizes"], mode=attrs["mode"], fill_value=fill)


def _scatter(name: str) -> Callable[..., Any]:
    def scatter(lax: Any, attrs: dict[str, Any], operand: Any, indices: Any, updates: Any) -> Any:
        numbers = lax.ScatterDimensionNumbers(**dict(attrs["dimension_numbers"]))
        unique = attrs.get("unique_indices", False)
        return getattr(lax, name)(operand, indices, updates, numbers, mode=attrs["mode"], unique_indices=unique)

    return scatter


def _phase(v: Any, x: Any, ours: Callable[[Any], Any]) -> Any:
    """By which columns are to be multiplied so that their greatest components are real, and of the sign that they have in ours.

    `ours` is NumPy's function of x that gives the vectors: of real ones each LAPACK has other signs.
    """
    import jax
    import jax.numpy as jnp

    def signs(x: Any) -> Any:
        found = ours(np.asarray(x))
        at = np.abs(found).argmax(-2, keepdims=True)
        return np.sign(np.take_along_axis(found, at, -2).real).astype(found.real.dtype)

    k = jnp.argmax(abs(v), axis=-2, keepdims=True)
    greatest = jnp.take_along_axis(v, k, -2)
    turned = jnp.conj(greatest) / abs(greatest)
    if x.dtype.kind == "c":
        return turned
    shape = jax.ShapeDtypeStruct((*v.shape[:-2], 1, v.shape[-1]), jnp.real(v).dtype)
    return turned * jax.pure_callback(signs, shape, jax.lax.stop_gradient(x), vmap_method="sequential")


def _eigh(lax: Any, attrs: dict[str, Any], x: Any) -> Any:
    # Of the triangle that is read; JAX's derivative rule takes a tangent for Hermitian.
    import jax.numpy as jnp

    lower = x if attrs["lower"] else jnp.conj(x.mT)
    below = jnp.tril(lower, -1)
    whole = below + jnp.conj(below.mT) + (jnp.real(lower) * jnp.eye(x.shape[-1])).astype(x.dtype)
    v, w = lax.linalg.eigh(whole, symmetrize_input=False)
    return v * _phase(v, x, lambda x: np.linalg.eigh(x, "L" if attrs["lower"] else "U")[1]), w


def _eig(lax: Any, attrs: dict[str, Any], x: Any) -> Any:
    w, *vectors = lax.linalg.eig(x, **attrs, enable_eigvec_derivs=True)
    if x.dtype.kind != "c":
        if attrs["compute_left_eigenvectors"]:
            vectors[0] = vectors[0] * _phase(vectors[0], x, lambda x: _left(x))
        if attrs["compute_right_eigenvectors"]:
            vectors[-1] = vectors[-1] * _phase(vectors[-1], x, lambda x: np.linalg.eig(x)[1])
    return (w, *vectors)


def _left(x: Any) -> Any:
    import scipy.linalg

    return np.stack([scipy.linalg.eig(one, left=True, right=False)[1] for one in x])


def _svd(lax: Any, attrs: dict[str, Any], x: Any) -> Any:
    # The columns that complete U are a function of the others.
    import jax.numpy as jnp

    if not attrs["compute_uv"]:
        return (lax.linalg.svd(x, compute_uv=False),)
    u, s, vh = lax.linalg.svd(x, full_matrices=False)
    phase = _phase(u, x, lambda x: np.linalg.svd(x, full_matrices=False)[0])
    u, vh = u * phase, vh * jnp.conj(phase.mT)
    m, n = x.shape[-2:]
    if attrs["full_matrices"] and m > n:
        u = jnp.concatenate([u, lax.linalg.qr(u)[0][..., n:]], -1)
    if attrs["full_matrices"] and n > m:
        vh = jnp.concatenate([vh, jnp.conj(lax.linalg.qr(jnp.conj(vh.mT))[0][..., m:].mT)], -2)
    return s, u, vh


def _expm_frechet(lax: Any, attrs: dict[str, Any], a: Any, e: Any) -> Any:
    import jax

    return jax.jvp(jax.scipy.linalg.expm, (a,), (e,))[1]


def _pinv(lax: Any, attrs: dict[str, Any], x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.linalg.pinv(x, rtol=attrs["rtol"])


def _expm(lax: Any, attrs: dict[str, Any], x: Any) -> Any:
    import jax

    return jax.scipy.linalg.expm(x)


def _conv(lax: Any, attrs: dict[str, Any], lhs: Any, rhs: Any) -> Any:
    numbers = lax.ConvDimensionNumbers(**dict(attrs["dimension_numbers"]))
    preferred = _dtype(attrs["preferred_element_type"])
    return lax.conv_general_dilated(lhs, rhs, **(attrs | {"dimension_numbers": numbers, "preferred_element_type": preferred}))


def _reduce_window(function: str) -> Callable[..., Any]:
    def reduce_window(lax: Any, attrs: dict[str, Any], x: Any) -> Any:
        from jax._src.lax import windowed_reductions  # the primitives: the public function takes a reducer

        return getattr(windowed_reductions, function).bind(x, **attrs)

    return reduce_window


def _select(function: str) -> Callable[..., Any]:
    def select(lax: Any, attrs: dict[str, Any], values: Any, operand: Any) -> Any:
        from jax._src.lax import windowed_reductions

        # JAX's select_and_scatter_add has no dilation.
        given = {k: v for k, v in attrs.items() if not ("scatter" in function and "dilation" in k and max(v or (1,)) == 1)}
        given["select_prim"] = lax.ge_p if attrs["select_prim"] == "ge" else lax.le_p
        return getattr(windowed_reductions, function).bind(values, operand, **given)

    return select


SPECIAL: dict[str, Callable[..., Any]] = {
    "constant": _constant,
    "iota": lambda lax, attrs: lax.broadcasted_iota(_dtype(attrs["dtype"]), attrs["shape"], attrs["dimension"]),
    "copy": lambda lax, attrs, x: lax.copy_p.bind(x),
    "optimization_barrier": lambda lax, attrs, *xs: lax.optimization_barrier(xs),
    "convert_element_type": lambda lax, attrs, x: lax.convert_element_type_p.bind(
        x, new_dtype=_dtype(attrs["new_dtype"]), weak_type=False, sharding=None
    ),
    "dot_general": lambda lax, attrs, x, y: lax.dot_general(
        x, y, attrs["dimension_numbers"], preferred_element_type=_dtype(attrs["preferred_element_type"])
    ),
    # The primitives: the public functions count negative indices from the end.
    "dynamic_slice": lambda lax, attrs, x, *indices: lax.dynamic_slice_p.bind(x, *indices, slice_sizes=attrs["slice_sizes"]),
    "dynamic_update_slice": lambda lax, attrs, x, update, *indices: lax.dynamic_update_slice_p.bind(x, update, *indices),
    "argmax": lambda lax, attrs, x: lax.argmax(x, attrs["axes"][0], _dtype(attrs["index_dtype"])),
    "argmin": lambda lax, attrs, x: lax.argmin(x, attrs["axes"][0], _dtype(attrs["index_dtype"])),
    "round": lambda lax, attrs, x: lax.round(x, lax.RoundingMethod[attrs["rounding_method"]]),
    "sort": lambda lax, attrs, *xs: lax.sort(xs, **attrs),
    "concatenate": lambda lax, attrs, *xs: lax.concatenate(xs, **attrs),
    "top_k": lambda lax, attrs, x: lax.top_k(x, attrs["k"], axis=attrs["axis"]),
    "gather": _gather,
    # The primitive leaves above the diagonal what it found there; the function takes that away.
    "cholesky": lambda lax, attrs, x: lax.linalg.cholesky(x, symmetrize_input=False),
    "triangular_solve": lambda lax, attrs, a, b: lax.linalg.triangular_solve(a, b, **attrs),
    "igamma_grad_a": lambda lax, attrs, a, x: lax.igamma_grad_a(a, x),
    "lu": lambda lax, attrs, x: lax.linalg.lu(x),
    "lu_pivots_to_permutation": lambda lax, attrs, x: lax.linalg.lu_pivots_to_permutation(x, **attrs),
    "qr": lambda lax, attrs, x: lax.linalg.qr(x, **attrs),
    "svd": _svd,
    "pinv": _pinv,
    "eigh": _eigh,
    "eig": _eig,
    "schur": lambda lax, attrs, x: lax.linalg.schur(x, **attrs),
    "expm": _expm,
    "expm_frechet": _expm_frechet,
    "fft": lambda lax, attrs, x: lax.fft(x, attrs["fft_type"], attrs["fft_lengths"]),
    "conv_general_dilated": _conv,
    **{f"reduce_window_{kind}": _reduce_window(f"reduce_window_{kind}_p") for kind in ("sum", "max", "min")},
    **{name: _select(f"{name}_p") for name in ("select_and_gather_add", "select_and_scatter_add")},
    **{f"scatter{kind}": _scatter(f"scatter{kind.replace('-', '_')}") for kind in ("", "-add", "-sub", "-mul", "-max", "-min")},
}
"""The calls that need more than a name: lax (the module), attrs and operands."""
