"""The tests of operators that the package onnx brings: values, derivatives, and derivatives written as ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import tidu_cli as api
from tests.onnx.operators.derivatives import require_right
from tests.onnx.operators.evaluators import require_same_values
from tests.onnx.operators.node_tests import array, cases_of, has_tensors_only, imported, modules, outcome
from tests.tiers import few
from tidu_cli.adapters.numpy.arrays.array import dtype_of
from tidu_cli.adapters.onnx.contents import as_key
from tidu_cli.adapters.onnx.loading import loaded
from tidu_cli.adapters.onnx.writing.lowering import NoMeaningError
from tidu_cli.adapters.onnx.writing.model import onnx_bytes
from tidu_cli.errors import MissingRuleError
from tidu_cli.graph.types import FLOATS

COMPARED_WITH = "1.23.2"
REFUSED = {
    "adagrad": 2, "adam": 2, "bernoulli": 6, "bitcast": 6, "cast": 20, "castlike": 36, "dropout": 4,
    "image_decoder": 9, "maxunpool": 1, "momentum": 3, "nonmaxsuppression": 10, "quantizelinear": 3, "resize": 2,
    "tfidfvectorizer": 7,
}  # fmt: skip
"""How many tests of each module are refused, with this version of the package; no others are."""

NO_DIFFERENCES = {
    "acosh_example": "steps leave its domain, which begins at 1",
    "attention_4d_with_past_and_present_qk_matmul_bias_3d_mask_causal": "products that are -infinity where they are masked",
    "attention_4d_with_past_and_present_qk_matmul_bias_3d_mask_causal_expanded": "likewise",
    "attention_4d_with_past_and_present_qk_matmul_bias_4d_mask_causal": "likewise",
    "attention_4d_with_past_and_present_qk_matmul_bias_4d_mask_causal_expanded": "likewise",
    "basic_deform_conv_with_padding": "places on elements, where linear interpolation has kinks",
    "deform_conv_with_multiple_offset_groups": "likewise",
    "l2normalization_axis_0": "norms of next to nothing",
    "maxpool_3d_default": "so many windows that in one the greatest change places",
    "mod_float_edge_cases_fmod_0_float16": "remainders of infinities",
    "mod_float_edge_cases_fmod_0_float32": "likewise",
    "mod_float_edge_cases_fmod_0_float64": "likewise",
    "reduce_l2_empty_set": "the root of nothing",
    "reduce_l2_empty_set_expanded": "likewise",
    "reduce_log_sum_empty_set": "the logarithm of nothing",
    "reduce_log_sum_empty_set_expanded": "likewise",
    "reduce_log_sum_exp_empty_set": "likewise",
    "reduce_log_sum_exp_empty_set_expanded": "likewise",
    "reduce_max_empty_set": "infinity, the greatest of nothing",
    "reduce_min_empty_set": "likewise",
    "softmax_large_number": "inputs of 10,000, which round by more than what steps change",
    "softmax_large_number_expanded": "likewise",
    "softmax_large_number_expanded_ver18": "likewise",
}
"""Tests at whose points differences tell nothing of derivatives, and why."""

NAN_COTANGENTS = (
    "attention_4d_causal_padded_kv_bf16",
    "attention_causal_boolmask_nan_robustness",
    "attention_23_boolmask_fullymasked_row_nan_robustness",
    "attention_4d_causal_nonpad_negative_offset_structural_empty",
    "attention_23_fullymasked_qk_matmul_output_mode3_zero",
    "attention_24_fullymasked_qk_matmul_output_mode3_zero",
    "attention_24_qk_matmul_output_mode3_softmax_precision",
    "attention_local_window_gqa_rank4_mask",
)
"""Tests whose expanded form computes NaN in rows that are masked, and puts 0 in its place: reverse mode has 0 · NaN there, as JAX
has. The operator itself, as it is read here, computes no NaN."""

PRODUCTS = ("scatter_elements_with_reduction_mul", "scatternd_multiply")
"""Tests that multiply elements which may be the same, as far as is known: such a product has no derivative by its factors here."""

UNWRITTEN = ("dft_inverse",)
"""Tests with complex numbers within, which ONNX has not got."""


def point(case: Any) -> tuple[Any, dict[str, Any]]:
    """A test's model, and its inputs: finite, and floats moved off kinks but for those that say how the operator works."""
    model, rng = loaded(case.model.SerializeToString()), np.random.default_rng(0)
    given = dict(zip([i.name for i in model.graph.input], map(array, case.data_sets[0][0]), strict=False))
    for key, x in given.items():
        if x.ndim and (x.dtype.kind == "f" or x.dtype.name == "bfloat16") and key not in ("scales", "roi"):
            finite = np.where(np.isfinite(x), x, np.ones_like(x))
            given[key] = finite + (1e-3 * rng.standard_normal(x.shape)).astype(x.dtype)
    return model, given


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "module" in metafunc.fixturenames:
        metafunc.parametrize("module", modules(), ids=lambda module: module.rpartition(".")[2])


def test_nodes(module: str) -> None:
    """Of each test of a module its values; of some their derivatives, and derivatives written as ONNX."""
    cases = [case for case in cases_of(module).values() if has_tensors_only(case)]
    derived = {id(case) for case in few(cases, 1)}
    kinds = [require_node(case, derivatives=id(case) in derived) for case in cases]
    if onnx.__version__ == COMPARED_WITH:
        assert kinds.count("refused") == REFUSED.get(module.rpartition(".")[2], 0)


def require_node(case: Any, *, derivatives: bool = True) -> str:
    """Whether a test passed or was refused. Fails unless it is refused in words, or its values and derivatives are right."""
    result = outcome(case)
    assert result.kind in ("passed", "refused"), f"{case.name}: {result.text}"
    assert result.text.startswith(("graph '", "is a ")) or result.kind == "passed", f"{case.name}: {result.text}"
    if result.kind == "passed" and derivatives:
        require_derivatives(case)
        if not case.name.endswith("_expanded"):
            require_written_gradients(case)
    return result.kind


def floats_of(case: Any) -> tuple[Any, dict[str, Any], list[str], list[str]]:
    """The document of a test that passes, its inputs, and the inputs and outputs that are floats."""
    model, given = point(case)
    document = imported(model, given).document
    values = {str(as_key(key)): x for key, x in given.items() if as_key(key) in document.inputs}
    wrt = [str(i.key) for i in document.head.inputs if i.type.dtype in FLOATS]
    return document, values, wrt, [str(o.key) for o in document.head.outputs if o.type.dtype in FLOATS]


def require_derivatives(case: Any) -> None:
    """Fails unless the derivatives are those of the values."""
    if not all(floats_of(case)[2:]):
        return  # nothing to differentiate
    model, given = point(case)
    short = case.name.removeprefix("test_")
    if short in NO_DIFFERENCES:
        return
    if short in PRODUCTS:
        with pytest.raises(MissingRuleError, match="unique_indices"):
            require_right(model, given)
    elif short.removesuffix("_expanded") in NAN_COTANGENTS and short.endswith("_expanded"):
        with pytest.raises(AssertionError, match="nan"):
            require_right(model, given)
    else:
        require_right(model, given)


def require_written_gradients(case: Any) -> None:
    """Fails unless the gradient, written as ONNX, computes the same."""
    document, values, wrt, outputs = floats_of(case)
    if not wrt or not outputs:
        gradient = document
    else:
        if case.name.removeprefix("test_") in PRODUCTS:
            return
        gradient = api.vjp(document, wrt, outputs)
    rng = np.random.default_rng(1)
    for i in gradient.head.inputs:
        if str(i.key) not in values:
            values[str(i.key)] = rng.standard_normal(i.type.shape).astype(dtype_of(i.type.dtype))
    if case.name.removeprefix("test_").startswith(UNWRITTEN):
        with pytest.raises(NoMeaningError):
            onnx_bytes(gradient)
        return
    data = onnx_bytes(gradient)
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    require_same_values(gradient, data, values)
