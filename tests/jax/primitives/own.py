"""What JAX itself computes of a primitive, with JAX's own derivatives: the other side of comparisons.

The derivatives of `jax_function` are tidu's where JAX has none. Here they are JAX's, and so some primitives are made of others: of
a triangle the Hermitian matrix, as JAX's rules take tangents for Hermitian, and of vectors those that have the phases of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tidu_cli.adapters.jax.lowering.functions import computed
from tidu_cli.graph.graph import Case


def function_of_jax(case: Case) -> Callable[..., tuple[Any, ...]]:
    """From JAX arrays to the tuple of results, without derivative rules of ours."""
    own = OWN.get(case.op)
    if own is None:
        return computed(case)
    attrs = dict(case.attrs)

    def call(*xs: Any) -> tuple[Any, ...]:
        results = own(attrs, *xs)
        return results if isinstance(results, tuple) else (results,)

    return call


def _phase(v: Any, x: Any, ours: Callable[[Any], Any]) -> Any:
    """By which columns are to be multiplied so that their greatest components are real, and of the sign that they have in ours.

    `ours` is NumPy's function of x that gives the vectors: of real ones each LAPACK has other signs.
    """
    import jax
    import jax.numpy as jnp

    def signs(x: Any) -> Any:
        vectors = ours(np.asarray(x))
        at = np.abs(vectors).argmax(-2, keepdims=True)
        return np.sign(np.take_along_axis(vectors, at, -2).real).astype(vectors.real.dtype)

    k = jnp.argmax(abs(v), axis=-2, keepdims=True)
    greatest = jnp.take_along_axis(v, k, -2)
    turned = jnp.conj(greatest) / abs(greatest)
    if x.dtype.kind == "c":
        return turned
    shape = jax.ShapeDtypeStruct((*v.shape[:-2], 1, v.shape[-1]), jnp.real(v).dtype)
    return turned * jax.pure_callback(signs, shape, jax.lax.stop_gradient(x), vmap_method="sequential")


def _eigh(attrs: dict[str, Any], x: Any) -> Any:
    import jax.numpy as jnp
    from jax import lax

    lower = x if attrs["lower"] else jnp.conj(x.mT)
    below = jnp.tril(lower, -1)
    whole = below + jnp.conj(below.mT) + (jnp.real(lower) * jnp.eye(x.shape[-1])).astype(x.dtype)
    v, w = lax.linalg.eigh(whole, symmetrize_input=False)
    return v * _phase(v, x, lambda x: np.linalg.eigh(x, "L" if attrs["lower"] else "U")[1]), w


def _eig(attrs: dict[str, Any], x: Any) -> Any:
    from jax import lax

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


def _svd(attrs: dict[str, Any], x: Any) -> Any:
    # The columns that complete U are a function of the others.
    import jax.numpy as jnp
    from jax import lax

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


def _abs(attrs: dict[str, Any], x: Any) -> Any:
    from jax import lax

    return lax.abs(x)


def _converted(attrs: dict[str, Any], x: Any) -> Any:
    from jax import lax

    from tidu_cli.lax.arrays.structural import numpy_dtype

    return lax.convert_element_type_p.bind(x, new_dtype=numpy_dtype(np, attrs["new_dtype"]), weak_type=False, sharding=None)


def _selected(name: str) -> Callable[..., Any]:
    def select(attrs: dict[str, Any], values: Any, operand: Any) -> Any:
        from jax import lax
        from jax._src.lax import windowed_reductions

        # JAX's select_and_scatter_add has no dilation.
        given = {k: v for k, v in attrs.items() if not ("scatter" in name and "dilation" in k and max(v or (1,)) == 1)}
        given["select_prim"] = lax.ge_p if attrs["select_prim"] == "ge" else lax.le_p
        return getattr(windowed_reductions, f"{name}_p").bind(values, operand, **given)

    return select


OWN = {
    "eigh": _eigh,
    "eig": _eig,
    "svd": _svd,
    "abs": _abs,
    "convert_element_type": _converted,
    **{name: _selected(name) for name in ("select_and_gather_add", "select_and_scatter_add")},
}
"""The primitives of which ours computes something else, or more: of attrs and arrays."""
