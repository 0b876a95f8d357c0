"""Attention and rotary embeddings of ONNX: all options against the reference evaluator, and their derivatives."""

import numpy as np
import pytest

import tidu_cli as api
from tests.onnx.operators.derivatives import require_right
from tests.onnx.operators.node_tests import imported
from tests.onnx.operators.one_node import NEWEST, One, by_reference, by_runtime, by_tidu, draw, eps, require_equal
from tidu_cli.errors import TiduError

BATCH, HEADS, QUERIES, KEYS, PAST, SIZE = 2, 4, 3, 5, 2, 4


def numbers(*shape, seed=0, dtype="f4"):
    return draw(np.random.default_rng(seed), dtype, shape, special=False)


def operands(groups=HEADS, flat=False, past=False, mask=None, valid=None, dtype="f4", keys=KEYS):
    q, k, v = (numbers(BATCH, h, n, s, seed=i, dtype=dtype) for i, (h, n, s) in enumerate(
        [(HEADS, QUERIES, SIZE), (groups, keys, SIZE), (groups, keys, 3)]
    ))  # fmt: skip
    if flat:
        q, k, v = (np.moveaxis(x, 1, 2).reshape(BATCH, x.shape[2], -1) for x in (q, k, v))
    history = [numbers(BATCH, groups, PAST, s, seed=5, dtype=dtype) for s in (SIZE, 3)] if past else [None, None]
    inputs = [q, k, v, mask, *history, valid]
    while inputs[-1] is None:
        inputs.pop()
    return inputs


def bools(*shape):
    return np.random.default_rng(7).random(shape) < 0.6


MASKS = {
    "none": None,
    "bools": bools(QUERIES, KEYS),
    "bools of heads": bools(BATCH, HEADS, QUERIES, KEYS),
    "bools that hide all": np.zeros((QUERIES, KEYS), bool),
    "fewer bools": bools(QUERIES, KEYS - 2),
    "numbers": numbers(HEADS, QUERIES, KEYS, seed=8),
    "numbers that hide": np.where(bools(BATCH, 1, QUERIES, KEYS), numbers(BATCH, 1, QUERIES, KEYS), -np.inf).astype("f4"),
    "numbers that hide all": np.full((1, KEYS), -np.inf, "f4"),
}


def require_reference(one, tolerance=1e-5):
    outputs = by_tidu(one)
    require_equal(outputs, by_reference(one), f"{one}", tolerance, tolerance)
    require_equal(by_tidu(one, fold=True), outputs, f"{one}, folded", tolerance, tolerance)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("groups", [HEADS, 2, 1])
def test_masks_and_heads(mask, causal, groups):
    one = One("Attention", operands(groups, mask=MASKS[mask]), {"is_causal": causal}, 23, 4)
    require_reference(one)
    if "hide" not in mask:
        given = [x if x is None or x.dtype == bool else x.astype("f8") for x in one.operands]
        one = One("Attention", given, one.attrs)
        require_right(one.model, one.given, wrt=["x0", "x1", "x2"])


@pytest.mark.parametrize("scale", [None, 0.7])
@pytest.mark.parametrize("softcap", [0.0, 1.5])
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("past", [False, True])
def test_what_is_shown_of_scores(scale, softcap, mode, past):
    """Raw scores are those before the cap, as the function in the specification has it, and the reference evaluator not."""
    if mode == 0 and softcap:
        return
    attrs = {"softcap": softcap, "qk_matmul_output_mode": mode, "is_causal": 1} | ({} if scale is None else {"scale": scale})
    mask = numbers(QUERIES, KEYS + PAST * past, seed=9)
    for flat in (False, True):
        heads = {"q_num_heads": HEADS, "kv_num_heads": 2} if flat else {}
        one = One("Attention", operands(2, flat, past, mask), attrs | heads, 24, 4)
        require_reference(one)
    if mode != 2:  # where scores of hidden keys are infinite
        require_right(one.model, one.given)


def test_raw_scores_are_before_the_cap():
    plain, capped = (by_tidu(One("Attention", operands(), {"softcap": c}, 24, 4))[3] for c in (0.0, 0.1))
    require_equal([capped], [plain], "raw scores")


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("windows", [(-1, -1), (1, -1), (-1, 1), (2, 0), (0, 0)])
@pytest.mark.parametrize("valid", [None, [5, 4], [3, 1]])
@pytest.mark.parametrize("mask", ["none", "bools", "numbers"])
def test_windows_and_lengths(causal, windows, valid, mask):
    attrs = {"is_causal": causal, "left_window_size": windows[0], "right_window_size": windows[1]}
    given = operands(2, mask=MASKS[mask], valid=valid and np.array(valid, "i8"))
    require_reference(One("Attention", given, attrs, 25, 4))
    if valid is None:
        later = {"none": None, "bools": bools(QUERIES, PAST + KEYS), "numbers": numbers(QUERIES, PAST + KEYS)}[mask]
        require_reference(One("Attention", operands(2, past=True, mask=later), attrs, 25, 4))


@pytest.mark.parametrize("dtype", ["f2", "f8"])
@pytest.mark.parametrize("precision", [None, 1, 11])
def test_dtypes(dtype, precision):
    attrs = {} if precision is None else {"softmax_precision": precision}
    for groups in (HEADS, 2):
        require_reference(One("Attention", operands(groups, dtype=dtype), attrs, 24, 4), 16 * eps(dtype))


def test_onnxruntime_agrees():
    one = One("Attention", operands(2, mask=MASKS["numbers"]), {"softcap": 2.0}, 23)
    require_equal(by_tidu(one), by_runtime(one), f"{one}", 1e-5, 1e-5)


def test_queries_that_see_nothing_have_derivatives_that_are_numbers():
    for mask in (MASKS["bools that hide all"], MASKS["numbers that hide all"]):
        given = [x if x.dtype == bool else x.astype("f8") for x in operands(mask=mask)]
        one = One("Attention", given)
        assert not by_tidu(one)[0].any()
        document = api.vjp(imported(one.model, one.given).document, ["x0", "x1", "x2"], ["y0"])
        values = {k: v for k, v in one.given.items() if k in map(str, document.inputs)} | {"y0@-1": np.ones(by_tidu(one)[0].shape)}
        assert not any(np.any(v) or np.isnan(v).any() for v in api.evaluate(document, values).values())


def test_causal_masks_of_long_sequences_are_computed_in_the_graph():
    n = 300
    q = numbers(1, 1, n, 2)
    one = One("Attention", [q, q, q], {"is_causal": 1})
    document = imported(one.model, one.given).document
    assert not [t for case, _ in document.head.nodes() for t in case.results if case.op == "constant" and t.size > n]
    require_equal(by_tidu(one), by_reference(one)[:1], "long", 1e-5, 1e-5)


@pytest.mark.parametrize(("given", "attrs", "text"), [
    (operands(3), {}, "4 heads of queries are not a multiple of 3 of keys"),
    (operands(flat=True), {}, r"its Q of shape \[2, 3, 16\] does not consist of 0 heads"),
    (operands(flat=True), {"q_num_heads": 3, "kv_num_heads": 4}, r"its Q of shape \[2, 3, 16\] does not consist of 3 heads"),
    ([*operands()[:2], numbers(BATCH, HEADS, 2, 3)], {}, "queries, keys and values of shapes .* do not fit each other"),
    (operands(), {"qk_matmul_output_mode": 4}, "its qk_matmul_output_mode is 4"),
    ([*operands(), None, numbers(BATCH, HEADS, 1, SIZE)], {}, "takes past_key and past_value together"),
])  # fmt: skip
def test_what_does_not_fit(given, attrs, text):
    with pytest.raises(TiduError, match=rf"node 0 \(Attention\): {text}"):
        by_tidu(One("Attention", given, attrs))


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("size", [0, 4])
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("placed", [False, True])
def test_rotary_embeddings(interleaved, size, flat, placed):
    heads, sequence, width = 2, 3, 6
    x = numbers(BATCH, sequence, heads * width) if flat else numbers(BATCH, heads, sequence, width)
    angles = [numbers(*((7,) if placed else (BATCH, sequence)), (size or width) // 2, seed=k) for k in (1, 2)]
    places = [np.random.default_rng(0).integers(0, 7, (BATCH, sequence))] if placed else []
    attrs = {"interleaved": interleaved, "rotary_embedding_dim": size} | ({"num_heads": heads} if flat else {})
    one = One("RotaryEmbedding", [x, *angles, *places], attrs, NEWEST)
    require_reference(one)
    require_right(one.model, one.given)


def test_angles_that_do_not_fit():
    x = numbers(BATCH, 2, 3, 6)
    for pairs, attrs, text in (
        (2, {}, "there are 2 angles for heads of 6 elements"), (4, {"rotary_embedding_dim": 8}, "do not fit heads of 6 elements"),
        (2, {"rotary_embedding_dim": 6}, "its rotary_embedding_dim is 6, and there are 2 angles"),
    ):  # fmt: skip
        angles = numbers(BATCH, 3, pairs)
        with pytest.raises(TiduError, match=text):
            by_tidu(One("RotaryEmbedding", [x, angles, angles], attrs))
