"""Derivative rules by themselves: JVPs against differences, transposes against <J v, w> = <v, J^T w>."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.graphs.templates import apply, inner, jvp, make_case, transpose, type_of
from tests.lax.sampling.samples import DOTS, OPS, Sample, by_op, draw
from tests.tiers import few
from tidu_cli.errors import MissingRuleError
from tidu_cli.graph.types import INEXACT
from tidu_cli.lax.vocabulary import BUILTIN

PIECEWISE = {"sign", "stop_gradient", "floor", "ceil", "round", "nextafter", "reduce_precision"}
"""Derivatives that differences do not show."""
WITHOUT = {
    *("eq", "ne", "lt", "le", "gt", "ge", "is_finite", "constant", "iota", "argmax", "argmin", "bitcast_convert_type", "schur"),
}
"""These have no tangents."""
KINKED = {
    "max", "min", "abs", "reduce_max", "reduce_min", "cummax", "cummin", "sort",
    "reduce_window_max", "reduce_window_min", "select_and_gather_add", "select_and_scatter_add",
}  # fmt: skip
"""Where steps must be small."""
EXTREMES = ("reduce_max", "reduce_min", "reduce_window_max", "reduce_window_min")
CURVED = {"qr", "svd", "eigh", "eig", "pinv"}  # where they must be smaller than what is between eigenvalues


def active(sample):
    """The operands in which a primitive has derivatives."""
    return [k for k, t in enumerate(sample.case.operands) if t.inexact and k not in BUILTIN[sample.op].rules.inert]


def smooth(sample):
    """Where differences in double precision work: f64 and c128, away from kinks and branch cuts."""
    types = sample.case.operands
    return (
        any(t.dtype in ("f64", "c128") for t in types)
        and all(t.dtype in ("f64", "c128") or not t.inexact for t in types)
        and all(t.dtype in ("f64", "c128") for t in sample.case.results if t.inexact)
        and any(t.inexact for t in sample.case.results)
        and len(active(sample)) > 0
        and sample.op not in PIECEWISE
        and not (sample.op in EXTREMES and np.isinf(apply(sample.case, sample.operands)[0]).any())  # constant, of no element
    )


def directions(sample, seed):
    return [draw(type_of(x).dtype, x.shape, 50 + seed + k) if type_of(x).inexact else None for k, x in enumerate(sample.operands)]


def richardson(function, h=2.0**-6):
    """f'(0), from central differences extrapolated to h^10."""
    table = [(function(h / 2**k) - function(-h / 2**k)) / (2 * h / 2**k) for k in range(5)]
    for order in range(1, 5):
        table = [(4**order * b - a) / (4**order - 1) for a, b in itertools.pairwise(table)]
    return table[0]


SMOOTH = [
    op
    for op in OPS
    if BUILTIN[op].rules.jvp is not None and BUILTIN[op].domain.dtypes & {"f64", "c128"} and op not in PIECEWISE | WITHOUT
]


def operands_of(sample):
    """The sample's operands, away from poles, which differences would step over."""
    if sample.op == "div":
        return [sample.operands[0], sample.operands[1] + np.copysign(0.75, np.real(sample.operands[1]))]
    return sample.operands


@pytest.mark.every
@pytest.mark.parametrize("op", SMOOTH)
def test_jvp_is_the_derivative(op):
    samples = few(filter(smooth, by_op()[op]), 4)
    assert samples
    for sample in samples:
        operands, given = operands_of(sample), directions(sample, 0)
        step = 2.0 ** (-12 if op.removeprefix("scatter-") in KINKED else -9 if op in CURVED else -6)
        subsets = [[k] for k in active(sample)] + [active(sample)] if len(active(sample)) > 1 else [active(sample)]
        for subset in subsets:
            tangents = [t if k in subset else None for k, t in enumerate(given)]
            for number, tangent in enumerate(jvp(sample.case, operands, tangents)):
                if not sample.case.results[number].inexact:
                    assert tangent is None
                    continue

                def along(h, tangents=tangents, operands=operands, sample=sample, number=number):
                    moved = [x if t is None else x + h * t for x, t in zip(operands, tangents, strict=True)]
                    return apply(sample.case, moved)[number]

                expected = richardson(along, step)
                tangent = np.zeros_like(expected) if tangent is None else tangent
                np.testing.assert_allclose(tangent, expected, 1e-8, 1e-9, err_msg=f"{sample}, result {number}")


@pytest.mark.parametrize("op", ["exp", "log", "log1p", "sin", "cos", "tanh", "logistic", "sqrt"])
@pytest.mark.parametrize("dtype", sorted(INEXACT))
def test_jvp_keeps_the_dtype_and_what_precision_it_has(op, dtype):
    x, t = draw(dtype, (3,), 1, 0.3), draw(dtype, (3,), 2)
    (narrow,) = jvp(make_case(op, {}, [type_of(x)]), [x], [t])
    wide = "c128" if dtype[0] == "c" else "f64"
    xw, tw = x.astype("c16" if wide == "c128" else "f8"), t.astype("c16" if wide == "c128" else "f8")
    (expected,) = jvp(make_case(op, {}, [type_of(xw)]), [xw], [tw])
    tolerance = {"f16": 1e-2, "bf16": 6e-2, "f32": 1e-5, "c64": 1e-5}.get(dtype, 1e-15)
    np.testing.assert_allclose(narrow.astype(expected.dtype), expected, tolerance, tolerance)


# Linear nodes: op, and the masks that the transforms make.
LINEAR = {
    "add": [(True, True), (True, False), (False, True)],
    "sub": [(True, True), (True, False), (False, True)],
    "strong_mul": [(True, False), (False, True)],
    "strong_div": [(True, False)],
    "mul": [(True, False), (False, True)],
    "div": [(True, False)],
    "dot_general": [(True, False), (False, True)],
    "conv_general_dilated": [(True, False), (False, True)],
    "select_and_gather_add": [(True, False)],
    "select_and_scatter_add": [(True, False)],
    "complex": [(True, True), (True, False), (False, True)],
    "scatter-mul": [(True, False, False)],
    "triangular_solve": [(False, True)],
    "expm_frechet": [(False, True)],
    "logm_frechet": [(False, True)],
    "solve_sylvester": [(False, False, True)],
    "cofactors": [(False, True), (False, True, False)],
}


def masks_of(sample):
    active = [type_of(x).inexact for x in sample.operands]
    if sample.op == "select_n":
        cases = len(active) - 1
        return [(False, *([True] * cases)), (False, *([True] + [False] * (cases - 1)))]
    return [mask for mask in LINEAR.get(sample.op, [tuple(active)]) if len(mask) == len(active)]


def rounds(sample):
    """Whether the map is linear but for rounding."""
    return sample.op == "reduce_precision" and sample.attrs != {"exponent_bits": 11, "mantissa_bits": 52}


def linear(sample):
    """Whether its transpose is tried, in double precision."""
    types = sample.case.operands
    return (
        all(t.dtype in ("f64", "c128") or not t.inexact for t in types)
        and any(t.inexact for t in types)
        and sample.case.results[0].dtype in ("f64", "c128")
        and not rounds(sample)
    )


@pytest.mark.every
@pytest.mark.parametrize("op", [op for op in OPS if BUILTIN[op].rules.transpose is not None])
def test_transpose_is_the_adjoint(op):
    samples = few(filter(linear, by_op()[op]), 15)
    assert samples
    for sample in samples:
        for mask in masks_of(sample):
            check_adjoint(sample, mask)


def check_adjoint(sample, mask, tolerance=1e-12):
    case = make_case(sample.op, sample.attrs, [type_of(x) for x in sample.operands], mask)
    tangents = directions(sample, 0)

    # A linear node as a map of its active operands: less what it gives for zeros there, where the others come in alone.
    at = [
        [scale * t if a else x for x, t, a in zip(operands_of(sample), tangents, mask, strict=True)]
        for scale in (np.int8(1), np.int8(0))
    ]
    operands = at[0]
    image = apply(case, at[0])[0] - apply(case, at[1])[0]
    (result,) = case.results
    cotangent = draw(result.dtype, result.shape, 99)
    pulled = transpose(case, operands, [cotangent])
    assert [p is not None for p in pulled] == list(mask) or not result.size
    product = sum(inner(t, p) for t, p in zip(tangents, pulled, strict=True) if p is not None)
    np.testing.assert_allclose(product, inner(image, cotangent), tolerance, tolerance, err_msg=f"{sample} {mask}")


@pytest.mark.parametrize(
    ("old", "new"), [("f32", "f64"), ("f32", "c128"), ("f64", "c128"), ("c64", "c128"), ("f64", "f32"), ("c128", "f64")]
)
def test_conversions_transpose_to_conversions_back(old, new):
    check_adjoint(Sample("convert_element_type", [draw(old, (3,))], {"new_dtype": new}), (True,), 1e-6)


@pytest.mark.parametrize("mask", [(True, False), (False, True)])
@pytest.mark.parametrize(("old", "new"), [("f32", "f64"), ("c64", "c128"), ("f32", "c128"), ("f32", "f32")])
def test_dot_general_with_preferred_element_type_transposes(old, new, mask):
    for lhs, rhs, numbers in DOTS:
        attrs = {"dimension_numbers": numbers, "preferred_element_type": new}
        check_adjoint(Sample("dot_general", [draw(old, lhs), draw(old, rhs, 1)], attrs), mask, 1e-5)


@pytest.mark.parametrize("op", ["mul", "dot_general"])
def test_bilinear_nodes_do_not_transpose_in_both_operands(op):
    attrs = {"dimension_numbers": [[[0], [0]], [[], []]]} if op == "dot_general" else {}
    x = draw("f64", (3,))
    case = make_case(op, attrs, [type_of(x)] * 2, (True, True))
    with pytest.raises(MissingRuleError, match=f"{op} with active inputs"):
        transpose(case, [x, x], apply(case, [x, x]))


def test_triangular_systems_do_not_transpose_in_the_matrix():
    x = np.eye(2)
    case = make_case("triangular_solve", {}, [type_of(x)] * 2, (True, False))
    with pytest.raises(MissingRuleError, match="active matrix: it is linear in b alone"):
        transpose(case, [x, x], [x])


def test_division_does_not_transpose_in_the_divisor():
    x = draw("f64", (3,))
    case = make_case("div", {}, [type_of(x)] * 2, (False, True))
    with pytest.raises(MissingRuleError, match="active divisor"):
        transpose(case, [x, x], [x])
