"""The samples of primitives cover every dtype of numbers, ranks 0 to 4, empty arrays, axes of size 1, and the edges of attrs.

Times have tests of their own (tests/lax/times/test_times.py), and so have records (tests/checking/test_records.py), loops and
branches (tests/control_flow).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.lax.sampling.samples import OPS, Sample, by_op
from tidu_cli.graph.types import ALL, TensorType
from tidu_cli.lax.vocabulary import BUILTIN

NEEDS_AN_AXIS = {
    *("split", "concatenate", "iota", "argmax", "argmin", "sort", "top_k"),
    *("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "lu_pivots_to_permutation", "fft"),
}
NEEDS_MATRICES = {
    *("cholesky", "triangular_solve", "lu", "qr", "svd", "pinv", "det", "cofactors", "eigh", "eig", "schur", "polar"),
    *("expm", "expm_frechet", "logm", "logm_frechet", "sqrtm", "solve_sylvester"),
}


def types_of(sample: Sample) -> tuple[TensorType, ...]:
    """Of the operands; of the results where there is none."""
    case = sample.case
    return tuple(t for t in case.operands if t is not None) or case.results


@pytest.mark.parametrize("op", OPS)
def test_every_dtype(op: str) -> None:
    # The cases that select_n chooses among are its operands from 1 on.
    dtypes = {types_of(sample)[op == "select_n"].dtype for sample in by_op()[op]}
    assert dtypes == (ALL if op == "select_n" else BUILTIN[op].domain.dtypes & ALL)


@pytest.mark.parametrize("op", OPS)
def test_every_rank(op: str) -> None:
    ranks = {t.rank for sample in by_op()[op] for t in types_of(sample)}
    least = 2 if op in NEEDS_MATRICES or op == "conv_general_dilated" else 1 if op in NEEDS_AN_AXIS else 0
    assert ranks >= set(range(least, 5))
    assert min(ranks) == least


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("size", [0, 1])
def test_empty_arrays_and_axes_of_size_1(op: str, size: int) -> None:
    assert any(size in t.shape for sample in by_op()[op] for t in (*types_of(sample), *sample.case.results))


def fits(sample: Sample) -> np.ndarray:
    """Of each index of a gather or scatter along the operand's first axis, whether it is within."""
    return (sample.operands[1] >= 0) & (sample.operands[1] < max(sample.operands[0].shape, default=1))


def repeats(sample: Sample) -> bool:
    rows = sample.operands[1].reshape(-1, sample.operands[1].shape[-1]).tolist() if sample.operands[1].size else []
    return len({*map(tuple, rows)}) < len(rows)


EDGES: dict[str, tuple[str, Callable[[Sample], bool]]] = {
    "padding that takes away before": ("pad", lambda s: any(low < 0 for low, _, _ in s.attrs["padding_config"])),
    "padding that takes away after": ("pad", lambda s: any(high < 0 for _, high, _ in s.attrs["padding_config"])),
    "padding between": ("pad", lambda s: any(gap > 0 for _, _, gap in s.attrs["padding_config"])),
    "padding on either side of 0 with gaps": (
        "pad",
        lambda s: any(a < 0 < g or b < 0 < g for a, b, g in s.attrs["padding_config"]),
    ),
    "strides": ("slice", lambda s: max(s.attrs["strides"] or [1], default=1) > 1),
    "an empty slice": ("slice", lambda s: s.case.results[0].size == 0 and s.operands[0].size > 0),
    "a slice below the start": ("dynamic_slice", lambda s: any(i < 0 for i in s.operands[1:])),
    "a slice past the end": ("dynamic_slice", lambda s: any(i > 9 for i in s.operands[1:])),
    "an update past the end": ("dynamic_update_slice", lambda s: any(i > 9 for i in s.operands[2:])),
    "no axes": ("reduce_sum", lambda s: s.attrs["axes"] == () and s.operands[0].ndim > 0),
    "all axes": ("reduce_max", lambda s: len(s.attrs["axes"]) == s.operands[0].ndim > 1),
    "in reverse": ("cumprod", lambda s: s.attrs["reverse"]),
    "several batch axes": ("dot_general", lambda s: len(s.attrs["dimension_numbers"][1][0]) > 1),
    "a wider result": ("dot_general", lambda s: "preferred_element_type" in s.attrs),
    "a selector of integers": ("select_n", lambda s: s.operands[0].dtype == np.int32 and len(s.operands) > 3),
    "one operand": ("concatenate", lambda s: len(s.operands) == 1),
    "indices that repeat": ("gather", repeats),
    "updates of one place": ("scatter", repeats),
    "sums at one place": ("scatter-add", repeats),
    "products at one place": ("scatter-mul", lambda s: repeats(s) and not s.attrs["unique_indices"]),
    **{
        f"{op}, mode {mode}, out of range": (op, lambda s, mode=mode: s.attrs["mode"] == mode and not fits(s).all())
        for op in ("gather", "scatter", "scatter-add", "scatter-max")
        for mode in ("clip", "fill")
    },
}


@pytest.mark.parametrize("edge", EDGES)
def test_edges_of_attrs(edge: str) -> None:
    op, is_edge = EDGES[edge]
    edges = [sample for sample in by_op()[op] if is_edge(sample)]
    assert edges
    assert len(edges) < len(by_op()[op])  # it tells edges from the rest
