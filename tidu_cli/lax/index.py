"""Which family has an op, in the order of the catalogue. This file is generated: `make generated` writes it."""

from __future__ import annotations

from collections.abc import Mapping

FAMILIES: Mapping[str, str] = {
    "elementwise.arithmetic": "add sub mul div neg integer_pow pow max min abs sign strong_mul strong_div",
    "elementwise.elementary": "exp exp2 expm1 log log1p logistic sqrt rsqrt cbrt square sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh",  # noqa: E501
    "elementwise.special": "erf erfc erf_inv gamma lgamma digamma polygamma zeta igamma igammac regularized_incomplete_beta bessel_i0e bessel_i1e",  # noqa: E501
    "special.orders": "igamma_grad_a regularized_incomplete_beta_grad zeta_grad igamma_inv igammac_inv regularized_incomplete_beta_inv",  # noqa: E501
    "special.bessel": "bessel_j bessel_y bessel_ie bessel_ke spherical_bessel_j",
    "special.integrals": "erfcx erfc_inv dawsn expi expn fresnel_s fresnel_c sin_integral cos_integral owens_t spence hyp0f1 hyp1f1 hyp2f1",  # noqa: E501
    "elementwise.rounding": "floor ceil round rem is_finite nextafter",
    "elementwise.complex_numbers": "conj real imag complex",
    "elementwise.comparison": "eq ne lt le gt ge select_n clamp not and or xor shift_left shift_right_logical shift_right_arithmetic population_count clz bitcast_convert_type",  # noqa: E501
    "arrays.structural": "constant convert_element_type broadcast_in_dim reshape transpose stop_gradient optimization_barrier",
    "arrays.slicing": "slice dynamic_slice dynamic_update_slice split",
    "arrays.joining": "pad concatenate squeeze expand_dims rev iota size copy",
    "arrays.gather": "gather",
    "arrays.scatter": "scatter scatter-add scatter-sub scatter-mul scatter-max scatter-min",
    "reductions.reduction": "reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor argmax argmin",
    "reductions.cumulative": "cumsum cumprod cummax cummin cumlogsumexp",
    "reductions.sorting": "sort top_k",
    "elementwise.precision": "reduce_precision",
    "linear_algebra.contraction": "dot_general",
    "linear_algebra.factorizations": "cholesky triangular_solve lu lu_pivots_to_permutation",
    "signal.fourier": "fft",
    "signal.convolution": "conv_general_dilated",
    "signal.window_reduction": "reduce_window_sum reduce_window_max reduce_window_min",
    "signal.window_selection": "select_and_gather_add select_and_scatter_add",
    "records.records": "record field",
    "records.cotangents": "add_cotangents",
    "records.motion": "difference retract",
    "control_flow.scan": "scan",
    "control_flow.cond": "cond",
    "control_flow.while_loop": "while",
    "control_flow.implicit": "linear_solve root fixed_point",
    "linear_algebra.orthogonal": "qr",
    "linear_algebra.singular_values": "svd pinv",
    "linear_algebra.eigenvalues": "eigh eig schur",
    "linear_algebra.matrix_functions": "expm expm_frechet logm logm_frechet sqrtm solve_sylvester polar",
    "linear_algebra.determinants": "det cofactors",
}
"""The ops of each family, a module of this package by its path."""
