"""Sums as trees: their bits follow from the numbers of addends alone, and their errors are those of pairwise summation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu_cli as tidu
from tests.tiers import examples
from tidu_cli.errors import EvaluationError
from tidu_cli.runtime.sums import Partial, added, divided, require_reducible, summed

doubles = st.floats(-1e100, 1e100)


def bound(addends):
    """Of pairwise summation: a unit roundoff of the sum of absolute values for each level (Higham 2002, eq. 4.6)."""
    depth = max(math.ceil(math.log2(max(len(addends), 1))), 0)
    return 2.0**-53 * depth / (1 - depth * 2.0**-53) * math.fsum(map(abs, addends)) + 2.0**-1074


@given(st.lists(doubles, max_size=300))
def test_the_error_of_a_sum(addends):
    total = float(summed(np.array(addends)))
    assert abs(math.fsum([total, *(-x for x in addends)])) <= bound(addends)


@given(st.lists(doubles, min_size=1, max_size=300), st.integers(1, 40), st.integers(2, 9))
def test_the_error_of_a_tree_of_partial_sums(addends, chunk, fan_in):
    """Chunks, partial sums of them, and sums of these are a tree that is a few levels deeper, as parts are not of equal size."""
    partial = Partial(fan_in)
    for k in range(0, len(addends), chunk):
        partial.take(summed(np.array(addends[k : k + chunk])))
    depth = 4 + 2 * math.ceil(math.log2(len(addends) + 1))
    total = float(partial.total())
    assert abs(math.fsum([total, *(-x for x in addends)])) <= 2.0**-53 * depth * math.fsum(map(abs, addends)) + 2.0**-1074


def test_one_after_the_other_would_be_worse():
    """10^6 times 0.1: pairwise to the last places, where one after the other loses six digits."""
    addends = np.full(10**6, 0.1)
    exact = math.fsum(addends)
    assert abs(float(summed(addends)) - exact) <= 20 * np.spacing(exact)
    assert abs(float(np.cumsum(addends)[-1]) - exact) > 1e4 * np.spacing(exact)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50), st.integers(1, 7))
def test_integers_wrap(addends, chunk):
    due = (sum(addends) + 2**63) % 2**64 - 2**63
    x = np.array(addends, np.int64)
    assert int(summed(x)) == due
    if len(x):
        assert int(added([summed(x[k : k + chunk]) for k in range(0, len(x), chunk)])) == due


@settings(max_examples=examples(50))
@given(st.integers(1, 40), st.sampled_from(["f2", "f4", "f8", "c8", "c16"]), st.integers(0, 99))
def test_dtypes_and_shapes_stay(n, dtype, seed):
    x = np.random.default_rng(seed).normal(size=(n, 2, 3)).astype(dtype)
    for result in (summed(x), added(list(x)), divided(x[0], n)):
        assert (result.dtype, result.shape) == (x.dtype, (2, 3))
    np.testing.assert_allclose(summed(x), x.astype("c16").sum(0), atol=float(np.finfo(dtype).eps) * 8 * float(np.abs(x).sum()))


def test_of_records_and_zeros():
    x = {"a": np.arange(6.0).reshape(3, 2), "b": (np.arange(3), None)}
    total = summed(x)
    assert total["a"].tolist() == [6, 9] and int(total["b"][0]) == 3 and total["b"][1] is None
    twice = added([total, total])
    assert twice["a"].tolist() == [12, 18] and int(twice["b"][0]) == 6 and twice["b"][1] is None


def test_means_over_more_items_than_a_dtype_counts_to():
    """In f16 100,000 are infinitely many, and in bf16 259 are 260."""
    import ml_dtypes

    assert divided(np.array(49984.0).astype("f2"), 100_000) == np.array(0.49984).astype("f2")
    assert divided(np.array(200.0).astype(ml_dtypes.bfloat16), 259) == np.array(200 / 259).astype(ml_dtypes.bfloat16)


def test_of_no_items():
    assert summed(np.zeros((0, 2))).tolist() == [0, 0]


def test_inputs_stay():
    x = np.arange(5.0)
    summed(x)
    added([x, x])
    partial = Partial()
    for _ in range(5):
        partial.take(x)
    assert partial.total().tolist() == [0, 5, 10, 15, 20]
    assert x.tolist() == [0, 1, 2, 3, 4]


@settings(max_examples=examples(60))
@given(st.integers(1, 200), st.integers(2, 9))
def test_a_tree_takes_few_places(n, fan_in):
    partial = Partial(fan_in)
    for k in range(n):
        partial.take(np.array(k))
        assert sum(map(len, partial.levels)) <= (fan_in - 1) * (math.floor(math.log(k + 1, fan_in) + 1e-9) + 1)
    assert int(partial.total()) == n * (n - 1) // 2


def test_what_has_no_sum():
    booleans = tidu.trace(lambda x: {"b": x > 0, "n": x > 1}, x="f64[]").head.outputs
    with pytest.raises(EvaluationError, match=r"output b: bool.* has no sum over a batch; choose other outputs"):
        require_reducible(booleans, "sum")
    integers = tidu.trace(lambda k: {"y": k + 1}, k="i64[]").head.outputs
    require_reducible(integers, "sum")
    with pytest.raises(EvaluationError, match=r"output y: i64.* has no exact mean; take the sum"):
        require_reducible(integers, "mean")
