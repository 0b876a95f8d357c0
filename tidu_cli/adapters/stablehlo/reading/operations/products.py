"""Products of arrays: dot_general, convolutions, Fourier transforms, factorizations that are operations of their own."""

from __future__ import annotations

from typing import Any

from tidu_cli.adapters.stablehlo.reading.site import Reader, RefusedError, Site
from tidu_cli.rules.terms import Term


def _dot_general(site: Site, x: Term, y: Term) -> Term:
    numbers = site.attribute("dot_dimension_numbers")
    contracting = (tuple(numbers["lhs_contracting_dimensions"]), tuple(numbers["rhs_contracting_dimensions"]))
    batch = (tuple(numbers["lhs_batching_dimensions"]), tuple(numbers["rhs_batching_dimensions"]))
    return _dot(site, x, y, (contracting, batch))


def _dot_of_ranks(site: Site, x: Term, y: Term) -> Term:
    """The dot of older modules: the last axis of x with the first of y."""
    return _dot(site, x, y, (((x.type.rank - 1,), (0,)), ((), ())))


def _dot(site: Site, x: Term, y: Term, numbers: object) -> Term:
    due = site.result.dtype
    preferred = None if due == x.type.dtype == y.type.dtype else due
    return site.emit("dot_general", x, y, dimension_numbers=numbers, preferred_element_type=preferred)


def _convolution(site: Site, x: Term, kernel: Term) -> Term:
    numbers = site.attribute("dimension_numbers")
    n = len(numbers["input_spatial_dimensions"])
    if any(site.ints("window_reversal")):
        axes = tuple(a for a, r in zip(numbers["kernel_spatial_dimensions"], site.ints("window_reversal"), strict=True) if r)
        kernel = site.emit("rev", kernel, dimensions=axes)
    due = site.result.dtype
    return site.emit(
        "conv_general_dilated",
        x,
        kernel,
        window_strides=tuple(site.ints("window_strides", [1] * n)),
        padding=tuple(site.pairs("padding", n)),
        lhs_dilation=tuple(site.ints("lhs_dilation", [1] * n)),
        rhs_dilation=tuple(site.ints("rhs_dilation", [1] * n)),
        dimension_numbers={
            "lhs_spec": _axes(numbers, "input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"),
            "rhs_spec": _axes(
                numbers, "kernel_output_feature_dimension", "kernel_input_feature_dimension", "kernel_spatial_dimensions"
            ),
            "out_spec": _axes(numbers, "output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"),
        },
        feature_group_count=site.attribute("feature_group_count", 1),
        batch_group_count=site.attribute("batch_group_count", 1),
        preferred_element_type=None if due == x.type.dtype else due,
    )


def _axes(numbers: dict[str, Any], first: str, second: str, others: str) -> tuple[int, ...]:
    return (numbers[first], numbers[second], *numbers[others])


def _fft(site: Site, x: Term) -> Term:
    return site.emit("fft", x, fft_type=site.attribute("fft_type"), fft_lengths=tuple(site.ints("fft_length")))


def _cholesky(site: Site, x: Term) -> Term:
    """The lower factor, or the upper one, which is its adjoint and made of the upper triangle."""
    if site.attribute("lower", False):
        return site.emit("cholesky", x)
    swapped = (*range(x.type.rank - 2), x.type.rank - 1, x.type.rank - 2)
    return _adjoint(site, site.emit("cholesky", _adjoint(site, x, swapped)), swapped)


def _adjoint(site: Site, x: Term, permutation: tuple[int, ...]) -> Term:
    turned = site.emit("transpose", x, permutation=permutation)
    return site.emit("conj", turned) if x.type.dtype in ("c64", "c128") else turned


def _triangular_solve(site: Site, a: Term, b: Term) -> Term:
    turned = site.attribute("transpose_a")
    if turned not in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"):
        raise RefusedError(f"has transpose_a {turned}, which is none of NO_TRANSPOSE, TRANSPOSE and ADJOINT")
    return site.emit(
        "triangular_solve",
        a,
        b,
        left_side=site.attribute("left_side", False),
        lower=site.attribute("lower", False),
        transpose_a=turned != "NO_TRANSPOSE",
        conjugate_a=turned == "ADJOINT",
        unit_diagonal=site.attribute("unit_diagonal", False),
    )


OPERATIONS: dict[str, Reader] = {
    "stablehlo.cholesky": _cholesky,
    "stablehlo.convolution": _convolution,
    "stablehlo.dot": _dot_of_ranks,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.fft": _fft,
    "stablehlo.triangular_solve": _triangular_solve,
}
