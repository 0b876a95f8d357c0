"""A sample of the tests of operators that the package onnx brings; `check_node_tests.py` has all."""

from __future__ import annotations

import pytest

N = 150


@pytest.mark.sample
def test_a_sample_of_the_node_tests() -> None:
    from tests.onnx.operators.check_node_tests import require_node  # which imports what makes 1,829 models
    from tests.onnx.operators.node_tests import cases, has_tensors_only

    every = [case for case in cases().values() if has_tensors_only(case)]
    for k in range(N):
        require_node(every[k * len(every) // N])
