"""Primitives as operators of ONNX: that models of them are valid, and compute what the documents say; what has no such model."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from tests import tiers
from tests.onnx.writing.lowered import (
    LONG,
    by_reference,
    by_runtime,
    by_tidu,
    case,
    checked_model,
    difference,
    drawn,
    dtypes,
    examples,
    foreign,
    point,
    told,
)
from tidu_cli.adapters.onnx.writing.lowering import NoMeaningError
from tidu_cli.adapters.onnx.writing.model import OPSET
from tidu_cli.adapters.onnx.writing.templates import LOWERINGS, operators
from tidu_cli.lax.vocabulary import BUILTIN

ITERATIVE = "eig eigh expm expm_frechet logm logm_frechet pinv polar schur solve_sylvester sqrtm svd"
"""What LAPACK finds by iteration, whose digits and signs no short sequence of operators gives."""

FOREIGN = "complex fft field imag real record"
"""What is of complex numbers or records by nature."""

OTHERS = "bitcast_convert_type nextafter"

REFUSED = frozenset(f"{ITERATIVE} {FOREIGN} {OTHERS}".split())
"""Primitives that have no meaning in ONNX, whatever their operands."""

PARTLY_REFUSED = {
    "difference": "of [iu]64 is exact",
    "qr": "with exchanged columns",
}
"""Primitives of which some examples have none, and why."""

REVERSED = frozenset({"scan"})
"""Primitives of whose examples the reference evaluator does not run those that go backwards."""

WITHOUT_KERNELS = {
    **{op: {"u64"} for op in ("argmax", "argmin", "reduce_max", "reduce_min", "sort", "top_k")},
    **{op: {"u64"} for op in ("reduce_window_max", "reduce_window_min")},
    "conv_general_dilated": {"f64"},
    "reduce_window_sum": {"f64", "u64"},
}
"""The dtypes of which onnxruntime has no kernels on CPUs; of bf16 its Python interface takes no arrays."""

TRIED = sorted(p.name for p in BUILTIN if p.name not in REFUSED and any(not foreign(c) for _, c in examples(p.name)))


def runs_in_the_reference(given):
    return not (given.op in REVERSED and getattr(given.attrs, "reverse", False))


RUNTIME_DIFFERS = {
    "logistic f32": "its Sigmoid gives 0 below -18",
    "sign f16": "its Sign gives 0 of NaN",
}
"""Elementwise primitives of which onnxruntime computes other values than the standard says."""


def refusal(op, given):
    """The model of a case, or None where it is refused for the reason that is known."""
    try:
        return checked_model(given)
    except NoMeaningError as error:
        if op not in PARTLY_REFUSED or not re.search(PARTLY_REFUSED[op], str(error)):
            raise
        return None


def agrees(given, model, operands, relative=False):
    """Require all evaluators to agree. Gives the dtype of which onnxruntime has no kernel, None if it has one or was not asked."""
    due = by_tidu(given, operands)
    if runs_in_the_reference(given):
        assert not difference(by_reference(model, operands), due, relative), f"reference: {told(given)}"
    if "bf16" in dtypes(given):
        return None
    try:
        outputs = by_runtime(model, operands)
    except Exception as error:
        if "NOT_IMPLEMENTED" not in str(error):
            raise
        return (given.operands or given.results)[given.op == "select_n"].dtype
    differing = difference(outputs, due, relative)
    if f"{given.op} {given.operands[0].dtype if given.operands else ''}" in RUNTIME_DIFFERS and relative:
        assert differing, "onnxruntime differs no more"
    else:
        assert not differing, f"onnxruntime: {told(given)}"
    return None


@pytest.mark.every  # each op is written by a function of its own
@pytest.mark.parametrize("op", TRIED)
def test_models_of_examples_compute_what_documents_say(op):
    missing = set()
    for example, given in tiers.few(examples(op), 1 if op in LONG else 5):
        model = None if foreign(given) else refusal(op, given)
        if model is not None:
            missing.add(agrees(given, model, point(example, given)))
    without = WITHOUT_KERNELS.get(op, set())
    assert missing - {None} == without if tiers.campaign() else missing - {None} <= without


def test_what_is_refused_is_known():
    refused = set()
    for primitive in BUILTIN:
        for _, given in examples(primitive.name):
            if primitive.name in REFUSED or foreign(given):
                with pytest.raises(NoMeaningError, match=r"; (compute|write|take|convert)|write --format msgpack"):
                    checked_model(given)
                refused.add(primitive.name)
    assert refused >= REFUSED
    assert not REFUSED & set(LOWERINGS)
    opaque = {p.name for p in BUILTIN if p.evaluation.opaque}
    assert opaque == set(f"{ITERATIVE} {OTHERS}".split()), "what has neither operators nor a definition says why"


@pytest.mark.parametrize("op", sorted(PARTLY_REFUSED))
def test_some_examples_are_refused(op):
    assert None in [refusal(op, given) for _, given in examples(op) if not foreign(given)]


# Values at the edges.


NUMBERS = (0.0, 1, 0.5, 1.5, 2.5, 0.3, 1e-8, 1e-3, 3.7, 8, 17, 20, 27, 88, 90, 700, 800, 1e10, np.inf, 1e-300, 1e300)
FLOATS = (*NUMBERS, *[-x for x in NUMBERS], np.nan)

ZEROS = {"lgamma": 1e-14, "digamma": 1e-14}
"""Functions that are exact to so much near their zeros, not relative to the value."""


def edges(dtype):
    if dtype == "bool":
        return [0, 1]
    if dtype[0] in "iu":
        info = np.iinfo(f"{dtype[0]}{int(dtype[1:]) // 8}")
        return np.array(sorted({info.min, info.min + 1, 0, 1, 2, 3, 5, 7, info.max // 2 + 1, info.max - 1, info.max}), info.dtype)
    return FLOATS


ELEMENTWISE = sorted(
    op
    for op in TRIED
    if BUILTIN[op].name in LOWERINGS
    and op not in ("broadcast_in_dim", "reshape", "cond", "while", "scan")
    and any(g.operands and all(not t.shape for t in (*g.operands, *g.results)) for _, g in examples(op) if not foreign(g))
)


def crossed(columns):
    """All combinations of up to two, as flat arrays."""
    return [np.ravel(x) for x in np.meshgrid(*map(np.asarray, columns))]


@pytest.mark.parametrize("op", ELEMENTWISE)
def test_edge_values_are_what_documents_say(op):
    seen = set()
    for _, example in examples(op):
        kinds = () if foreign(example) else tuple(t.dtype for t in example.operands)
        if not kinds or len(kinds) > 2 or kinds in seen or any(t.shape for t in example.operands):
            continue
        seen.add(kinds)
        values = crossed([edges(dtype) for dtype in kinds])
        given = case(op, example.attrs.to_data(binary=True), *[f"{dtype}[{values[0].size}]" for dtype in kinds])
        operands = drawn(given, dict(enumerate(values)))
        agrees(given, checked_model(given), operands, relative=op not in ZEROS)
    assert seen


UNUSUAL = [0.0, -0.0, 1, np.nan, 3, np.inf, -np.inf, 1, 3, -1]


@pytest.mark.parametrize(
    ("kind", "permutation", "operator"),
    [
        ("f32[2,1,3]", [1, 0, 2], "Reshape"),
        ("f32[2,n,1]", [2, 0, 1], "Reshape"),
        ("f32[m,n,1]", [2, 0, 1], "Transpose"),
        ("f32[2,1,3]", [2, 1, 0], "Transpose"),
    ],
)
def test_transposes_that_move_axes_of_one_element_copy_nothing(kind, permutation, operator):
    assert operators(case("transpose", {"permutation": permutation}, kind), OPSET, BUILTIN) == [operator]


def test_integers_move_by_whole_steps_up_to_the_last():
    for dtype in ("i8", "u16", "i32"):
        given = case("retract", {}, f"{dtype}[43]", "f64[43]")
        agrees(given, checked_model(given), drawn(given, {0: np.resize(edges(dtype), 43), 1: FLOATS}))


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_sorts_put_nan_last_and_zeros_in_their_order(dtype):
    given = case("sort", {"dimension": 0}, f"{dtype}[10]")
    operands = drawn(given, {0: UNUSUAL})
    agrees(given, checked_model(given), operands)
    given = case("sort", {"dimension": 0, "num_keys": 2}, f"{dtype}[10]", f"{dtype}[10]", "i32[10]")
    operands = drawn(given, {0: [1, 1, np.nan, 0, -0.0, 0, 1, np.nan, 0, -0.0], 1: UNUSUAL, 2: range(10)})
    agrees(given, checked_model(given), operands)


def one(op, *operands, values=None, **attrs):
    return pytest.param(op, attrs, operands, values or {}, id=f"{op}-{'-'.join(operands)}-{attrs}"[:120])


def along(n, *rest):
    return [one(op, f"{dtype}{shape}", axes=[0]) for op in rest for dtype in n for shape in ("[0,3]", "[2,3]", "[3]")]


PADS = ([[1, 2, 0], [0, 0, 0]], [[-1, 2, 1], [2, -1, 0]], [[-2, 3, 0], [0, 0, 3]], [[-5, 7, 0], [0, 0, 0]], [[4, -4, 1], [0, 0, 0]])

UNUSUAL_CASES = [
    *along(("i32", "bool", "i8", "u32"), "reduce_and", "reduce_or", "reduce_xor"),
    *along(("i32", "i8", "f32"), "reduce_sum", "reduce_prod"),
    *along(("bool", "f32"), "reduce_max", "reduce_min"),
    *[one(op, f"f32{s}", axis=0) for op in ("cumsum", "cumprod", "cummax", "cumlogsumexp") for s in ("[0]", "[3,0]", "[3]")],
    *[one("pad", f"f32{s}", "f32[]", padding_config=p) for p in PADS for s in ("[3,4]", "[1,4]", "[3,0]", "[0,4]")],
    one("pad", "f32[]", "f32[]", padding_config=[]),
    one("transpose", "f32[]", permutation=[]),
    one("broadcast_in_dim", "f32[1]", shape=[0], broadcast_dimensions=[0]),
    one("concatenate", "f32[0]", "f32[2]", dimension=0),
    one("rev", "f32[0]", dimensions=[0]),
    one("reshape", "f32[0]", new_sizes=[0, 3]),
    one("split", "f32[2]", sizes=[0, 2], axis=0),
    one("top_k", "f32[3]", k=0, axis=0),
    one("iota", dtype="u8", shape=[300, 70], dimension=0),
    *[
        one(
            "conv_general_dilated",
            f"f32[1,1,{n}]",
            "f32[1,1,2]",
            window_strides=[2],
            padding=[[2, 2]],
            lhs_dilation=[3],
            rhs_dilation=[1],
            feature_group_count=1,
            batch_group_count=1,
            dimension_numbers={f"{k}_spec": [0, 1, 2] for k in ("lhs", "rhs", "out")},
        )
        for n in (1, 2)
    ],
    *[one("dynamic_slice", "f32[4]", "i32[]", values={1: i}, slice_sizes=[2]) for i in (-5, 1, 9)],
    one("dynamic_slice", "f32[4]", "u64[]", values={1: np.uint64(2**63)}, slice_sizes=[1]),
    *[one("dynamic_update_slice", "f32[4]", "f32[2]", "i64[]", values={2: i}) for i in (-5, 1, 9)],
    one("dynamic_update_slice", "f32[4]", "f32[0]", "i32[]"),
    one("dynamic_update_slice", "f32[]", "f32[]"),
    *[
        one("dot_general", a.replace("T", t), b.replace("T", t), dimension_numbers=d)
        for t in ("f32", "i32")
        for a, b, d in (
            ("T[]", "T[]", [[[], []], [[], []]]),
            ("T[2]", "T[3]", [[[], []], [[], []]]),
            ("T[2,0]", "T[0,3]", [[[1], [0]], [[], []]]),
            ("T[2,3]", "T[2,3]", [[[1], [1]], [[0], [0]]]),
            ("T[2,4,3]", "T[2,3]", [[[2], [1]], [[0], [0]]]),
            ("T[2,3]", "T[3,2]", [[[0, 1], [1, 0]], [[], []]]),
            ("T[3,0]", "T[2,3]", [[[0], [1]], [[], []]]),
        )
    ],
]


@pytest.mark.every
@pytest.mark.parametrize(("op", "attrs", "types", "values"), UNUSUAL_CASES)
def test_unusual_shapes_and_attrs(op, attrs, types, values):
    given = case(op, attrs, *types)
    assert agrees(given, checked_model(given), drawn(given, values)) is None


WINDOWS = list(itertools.product([1, 2], [[0, 0], [2, 1], [-1, 2], [-1, -1]], [1, 3], [1, 2]))


@pytest.mark.every  # of few milliseconds each, by other ways of writing them
@pytest.mark.parametrize(("features", "batches"), [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize(("stride", "pads", "base", "dilation"), WINDOWS)
def test_convolutions(stride, pads, base, dilation, features, batches):
    attrs = {
        "window_strides": [stride],
        "padding": [pads],
        "lhs_dilation": [base],
        "rhs_dilation": [dilation],
        "feature_group_count": features,
        "batch_group_count": batches,
    }
    for specs, left, right in (
        ([[0, 1, 2], [0, 1, 2], [0, 1, 2]], (2 * batches, 2 * features, 6), (4, 2, 2)),
        ([[2, 1, 0], [1, 2, 0], [1, 0, 2]], (6, 2 * features, 2 * batches), (2, 4, 2)),
    ):
        numbers = dict(zip(("lhs_spec", "rhs_spec", "out_spec"), specs, strict=True))
        for dtype in ("f32", "i32"):
            types = [f"{dtype}{list(shape)}".replace(" ", "") for shape in (left, right)]
            given = case("conv_general_dilated", {**attrs, "dimension_numbers": numbers}, *types)
            model, operands = checked_model(given), drawn(given, {})
            assert not difference(by_runtime(model, operands), by_tidu(given, operands))
        if not (features * batches > 1 and "ConvTranspose" in str(model)):  # of which the reference evaluator knows no groups
            assert not difference(by_reference(model, operands), by_tidu(given, operands))


@pytest.mark.parametrize("op", ["reduce_window_max", "reduce_window_min", "reduce_window_sum"])
@pytest.mark.parametrize(("stride", "pads", "base", "dilation"), WINDOWS)
def test_windows(op, stride, pads, base, dilation):
    sizes = {"window_dimensions": [3], "window_strides": [stride], "padding": [pads]}
    given = case(op, {**sizes, "base_dilation": [base], "window_dilation": [dilation]}, "f32[8]")
    model, operands = checked_model(given), drawn(given, {})
    if "MaxPool" in str(model) and pads[0] != pads[1]:  # of which the reference evaluator reads beyond the end
        assert not difference(by_runtime(model, operands), by_tidu(given, operands))
    else:
        assert agrees(given, model, operands) is None


def moded(mode, op):
    # Of several updates of one element scatter takes any.
    return [0, 2, 1, -2, 9] if mode == "fill" else [0, 2] if mode == "promise_in_bounds" or op == "scatter" else [0, 1, 1, -2, 9]


@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
@pytest.mark.parametrize("dtype", ["f32", "i32", "u8", "bool"])
def test_gathers_and_scatters_outside(mode, dtype):
    for op in ("gather", "scatter", "scatter-add", "scatter-mul", "scatter-min", "scatter-max", "scatter-sub"):
        if dtype == "bool" and op in ("scatter-add", "scatter-mul", "scatter-sub"):
            continue
        places = moded(mode, op)
        rows = {"update_window_dims": [1], "inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0]}
        attrs, more = {"dimension_numbers": rows, "mode": mode}, [f"{dtype}[{len(places)},2]"]
        if op == "gather":
            rows = {"offset_dims": [1], "collapsed_slice_dims": [0], "start_index_map": [0]}
            attrs, more = {"dimension_numbers": rows, "slice_sizes": [1, 2], "mode": mode}, []
        given = case(op, attrs, f"{dtype}[3,2]", f"i32[{len(places)},1]", *more)
        assert agrees(given, checked_model(given), drawn(given, {1: places})) is None


# Matrices.


def test_triangular_systems_read_one_triangle():
    rng = np.random.default_rng(4)
    for left, lower, turned, unit in itertools.product([True, False], repeat=4):
        triangle = np.tri(5, dtype=bool) if lower else np.tri(5, dtype=bool).T
        a = np.where(triangle, rng.standard_normal((2, 5, 5)) + 4 * np.eye(5), np.nan)
        attrs = {"left_side": left, "lower": lower, "transpose_a": turned, "unit_diagonal": unit}
        given = case("triangular_solve", attrs, "f64[2,5,5]", "f64[2,5,2]" if left else "f64[2,2,5]")
        assert agrees(given, checked_model(given), drawn(given, {0: a})) is None


@pytest.mark.parametrize("shape", ["[1,1]", "[7,7]", "[2,5,3]", "[2,3,5]", "[0,0]", "[2,0,3]", "[4,0]"])
@pytest.mark.parametrize("attrs", [None, {}, {"full_matrices": False}])
def test_factors_are_those_of_documents(shape, attrs):
    given = case("lu", {}, f"f64{shape}") if attrs is None else case("qr", attrs, f"f64{shape}")
    assert agrees(given, checked_model(given), drawn(given, {})) is None


@pytest.mark.parametrize("op", ["lu", "qr"])
def test_factors_of_singular_matrices(op):
    given = case(op, {}, "f64[3,3]")
    assert agrees(given, checked_model(given), drawn(given, {0: [0, 0, 3, 0, 1, 2, 0, -1, 2]})) is None


def test_cholesky_factors_are_nan_where_there_is_none():
    rng = np.random.default_rng(4)
    root = rng.standard_normal((3, 6, 6))
    x = root @ np.swapaxes(root, 1, 2) + np.eye(6)
    x[1, 4, 4] = -1
    given = case("cholesky", {}, "f64[3,6,6]")
    assert agrees(given, checked_model(given), drawn(given, {0: np.where(np.tri(6, dtype=bool), x, 7)})) is None


# Digits.


def test_erfc_of_f32_is_some_operators_and_has_all_digits():
    from scipy import special

    given = case("erfc", {}, "f32[6000]")
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 3e38, -3e38, 40]
    x = np.concatenate([np.linspace(-6, 10.1, 5990), odd]).astype("f4")
    due = special.erfc(x.astype("f8"))
    for outputs in (by_reference(checked_model(given), [x]), by_runtime(checked_model(given), [x])):
        assert outputs[0].dtype == x.dtype
        np.testing.assert_allclose(outputs[0], due, 1e-7, 2e-45)  # one unit in the last place, or of subnormal numbers
    assert len(operators(given, OPSET, BUILTIN)) < 40


DIGITS = {
    "acos": (-1, 1),
    "acosh": (1, 30),
    "asin": (-1, 1),
    "asinh": (-5, 5),
    "atan": (-5, 5),
    "atanh": (-1, 1),
    "cbrt": (-30, 30),
    "cosh": (-5, 5),
    "erf": (-6, 6),
    "erfc": (-6, 26),
    "erfcx": (-26, 30),
    "erf_inv": (-1, 1),
    "erfc_inv": (0, 2),
    "expm1": (-3, 3),
    "lgamma": (5, 100),
    "digamma": (2, 100),
    "gamma": (-20, 170),
    "log1p": (-0.9, 3),
    "logistic": (-30, 30),
    "sinh": (-5, 5),
}


@pytest.mark.parametrize("op", sorted(DIGITS))
def test_functions_of_f64_have_fifteen_digits(op):
    given = case(op, {}, "f64[4000]")
    x = np.random.default_rng(3).uniform(*DIGITS[op], 4000)
    for outputs in (by_reference(checked_model(given), [x]), by_runtime(checked_model(given), [x])):
        np.testing.assert_allclose(outputs[0], by_tidu(given, [x])[0], {"erfcx": 1e-13, "gamma": 1e-14}.get(op, 5e-15), 0)
