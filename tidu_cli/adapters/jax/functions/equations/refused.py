"""Equations that are not read, and why."""

from __future__ import annotations

_SEVERAL = "a graph runs on one device and cannot talk to others; write it without jax.pmap, shard_map and collectives"
_CALLBACK = "it calls back into Python, which a graph cannot; take jax.debug.print and callbacks out of the function"
_CHECK = f"{_CALLBACK} (EQX_ON_ERROR=off does that with the checks of equinox and diffrax)"
_STATE = "it changes a reference in place; a graph has values only"
_KERNEL = "it is a kernel for one kind of device; choose the implementation of plain JAX"
_OUTSIDE = "it runs compiled code that is not in the jaxpr"
_DYNAMIC = "sizes are fixed in a graph; give shapes without symbolic dimensions"

_COLLECTIVES = (
    "all_gather", "all_gather_invariant", "all_gather_reduced", "all_to_all", "axis_index", "pbroadcast", "pmax", "pmin",
    "ppermute", "precv", "preduced", "psend", "psum", "psum_invariant", "ragged_all_to_all", "reduce_scatter", "shard_map",
    "unreduced_psum", "unreduced_reduce_scatter", "xla_pmap",
)  # fmt: skip

REFUSED = {
    **{f"{name}{part}": _SEVERAL for name in _COLLECTIVES for part in ("", "_start", "_done")},
    **dict.fromkeys(("debug_callback", "debug_print", "io_callback", "outside_call"), _CALLBACK),
    "pure_callback": _CHECK,
    **dict.fromkeys(("get", "swap", "addupdate", "new_ref", "empty_ref", "free_ref", "freeze", "run_state", "accum_grad_in_ref",
                     "box_get", "box_set", "new_box", "ref"), _STATE),
    **dict.fromkeys(("cudnn_fusion", "dot_product_attention_fwd", "dot_product_attention_fwd_wrapper", "dot_product_attention_bwd",
                     "dot_product_attention_bwd_wrapper", "scaled_matmul", "scaled_matmul_wrapper", "pallas_call",
                     "triton_kernel_call"), _KERNEL),
    **dict.fromkeys(("ffi_call", "call_exported", "custom_partitioning"), _OUTSIDE),
    **dict.fromkeys(("dim_as_value", "dimension_size", "shape_assertion"), _DYNAMIC),
    **dict.fromkeys(("philox2x32", "philox4x32", "threefry4x32"), "a graph draws random numbers by threefry2x32, JAX's default"),
    **dict.fromkeys(("from_edtype", "to_edtype"), "a graph has no extended dtypes but keys of random numbers"),
    "select_and_scatter": "windows are chosen from by their greatest or least element, and updates are added; write it so",
    "scaled_dot": "products with scales of blocks are no operation of a graph; multiply by the scales before",
    "infeed": _CALLBACK,
    "outfeed": _CALLBACK,
    "rng_uniform": "its numbers depend on the device; draw them with jax.random and a key",
    "rng_bit_generator": "its numbers depend on the device; draw them with jax.random and a key of threefry",
    "geqrf": "Householder reflectors as LAPACK packs them are no operation of a graph; write jnp.linalg.qr",
    "geqp3": "QR factors with column pivoting are no operation of a graph; write jnp.linalg.qr",
    "ormqr": "Householder reflectors as LAPACK packs them are no operation of a graph; write jnp.linalg.qr",
    "hessenberg": "the reduction to Hessenberg form is no operation of a graph; write jax.scipy.linalg.schur",
    "tridiagonal": "the reduction to tridiagonal form is no operation of a graph; write jnp.linalg.eigh",
}  # fmt: skip
"""What is said of equations by the names of their primitives."""
