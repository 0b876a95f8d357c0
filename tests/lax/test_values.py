"""Values: every primitive on every dtype it takes, against references in plain Python; types as the type rule says."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graphs.templates import apply
from tests.lax.sampling.samples import ELSEWHERE, OPS, by_op
from tests.tiers import few
from tidu_cli.lax.arrays.structural import dtype_name
from tidu_cli.lax.vocabulary import BUILTIN

TOLERANCE = {"f16": 4e-3, "bf16": 3e-2, "f32": 4e-6, "f64": 1e-14, "c64": 4e-6, "c128": 2e-14}


def test_every_primitive_has_samples():
    assert {p.name for p in BUILTIN} - ELSEWHERE == set(by_op())


@pytest.mark.every
@pytest.mark.parametrize("op", OPS)
def test_value(op):
    for sample in few(by_op()[op], 24):
        results, expected = apply(sample.case, sample.operands), sample.reference(*sample.operands)
        if sample.seen:
            results = sample.seen(results, *sample.operands)
        for one, reference in zip(results, expected if len(results) > 1 else [expected], strict=True):
            check_close(one, reference, sample)


@pytest.mark.parametrize("op", OPS)
def test_scalars_evaluate_as_arrays_of_rank_0_do(op):
    # Programs hold values of rank 0 as NumPy scalars, whose arithmetic has other code paths.
    for sample in few(by_op()[op], 30):
        expected = apply(sample.case, sample.operands)
        of_scalars = apply(sample.case, [x[()] for x in sample.operands])
        assert [np.asarray(y).tobytes() for y in of_scalars] == [np.asarray(y).tobytes() for y in expected], sample


def check_close(actual, reference, sample):
    actual = np.asarray(actual)
    expected = np.asarray(reference)
    assert expected.shape == actual.shape, sample
    if actual.dtype.kind in "iub":
        assert actual.tolist() == expected.tolist(), sample
        return
    wide = np.complex128 if actual.dtype.kind == "c" else np.float64
    tolerance = TOLERANCE[dtype_name(actual.dtype)]
    with np.errstate(all="ignore"):
        rounded = expected.astype(wide).astype(actual.dtype)  # what overflows is to overflow in the reference too
    np.testing.assert_allclose(actual.astype(wide), rounded.astype(wide), tolerance, tolerance, err_msg=str(sample))
